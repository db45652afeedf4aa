//! Compares exact work: the instructions per operation of the connections' threads and of the
//! background, and the functions in which they changed.
//!
//! The cells of a target differ by what is not deterministic in it. That range is the floor, and a
//! change is shown if it is several times as large. `docs/exact.md` has the rules.
//!
//! ```text
//! ExactStep ─┬─► floor                    verdict of a part
//!            └─► fold ─► union            functions of both, by their names without versions
//!                          └─► causes     more work of a function, or more calls of it
//!                                └─► shifts ─► functions    what was only moved, and what changed
//! ```

mod calls;
mod causes;
mod floor;
mod fold;
mod functions;
mod names;
mod shifts;
mod union;

use std::collections::BTreeMap;
use std::fmt;

use record::{CellKey, StepKind};
use serde::Serialize;
use words::{CellKind, WorkRole};

use super::Sample;
use super::mean::mean;
use crate::figures::index::TargetPlace;
use crate::figures::{ExactStep, Figures, run_label};
use crate::order::distinct;
use floor::{Floor, NOT_DETERMINISTIC, multiple, range};
use functions::changes;
use union::CellGraph;

pub(crate) use names::function as plain_function_name;

pub(super) use calls::numbers_differ;
pub use calls::{CallKind, ComparedCalls};
pub use functions::{ChangedCalls, ChangedFunction, FunctionWork, WorkChanges, WorkShift};

/// The share of the main function's change from which a change in the other direction is of similar
/// size.
const OPPOSITE_SHARE: f64 = 0.5;

/// The work of one part of a step in a target and its base.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComparedWork {
    /// The target's exact cells, in all repeats.
    pub cell: CellKey,
    /// The workload.
    pub workload: String,
    /// The step.
    pub step: String,
    /// The part, whose work is compared.
    #[serde(flatten)]
    pub part: ComparedPart,
    /// The base's instructions per operation, by run and exact cell.
    pub base_values: Vec<Sample>,
    /// The target's.
    pub values: Vec<Sample>,
    /// Target / base, of the means of the cells.
    pub ratio: Option<f64>,
    /// The largest range of the cells of either target, relative to their mean; `None` if one of
    /// them has a single cell.
    pub floor: Option<f64>,
    /// The least relative change that these cells show; `None` without a floor.
    pub shown_from: Option<f64>,
    /// The verdict.
    pub verdict: WorkVerdict,
    /// The functions in which work changed, if a change is shown. Connections share them: they are
    /// with the first one that changed.
    pub functions: Option<WorkChanges>,
    /// System calls and allocations per operation of all connections, with the first connection.
    pub calls: Vec<ComparedCalls>,
    /// Cells that were left out, and why a ratio or verdict is missing.
    pub reasons: Vec<String>,
}

/// The work of one part of a target's step, by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetWork {
    /// The target's exact cells, in all repeats.
    pub cell: CellKey,
    /// The step.
    pub step: String,
    /// The part.
    #[serde(flatten)]
    pub part: ComparedPart,
    /// The mean of the cells' instructions per operation.
    pub per_operation: Option<f64>,
    /// The range of the cells, relative to their mean; `None` with a single cell.
    pub floor: Option<f64>,
    /// System calls and allocations per operation of all connections, with the first connection.
    pub calls: Vec<ComparedCalls>,
    /// Cells that were left out.
    pub reasons: Vec<String>,
}

/// A part of a step whose work is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComparedPart {
    /// The role of the connection; `None`: the engine's background.
    pub connection: Option<String>,
    /// The kinds of operation by which its instructions are divided: those of the connection, or
    /// all kinds for the background.
    pub operations: Vec<String>,
}

impl ComparedPart {
    /// Returns the part's name in tables.
    pub fn name(&self) -> &str {
        self.connection.as_deref().unwrap_or(WorkRole::Background.name())
    }

    fn role(&self) -> WorkRole {
        if self.connection.is_some() { WorkRole::Serving } else { WorkRole::Background }
    }

    fn is_named(&self, role: WorkRole, name: &str) -> bool {
        match &self.connection {
            Some(connection) => role == WorkRole::Serving && connection == name,
            None => role == WorkRole::Background,
        }
    }
}

impl ComparedWork {
    /// Returns the mean of the base's instructions per operation.
    pub fn base_mean(&self) -> Option<f64> {
        mean_of(&self.base_values)
    }

    /// Returns the mean of the target's instructions per operation.
    pub fn target_mean(&self) -> Option<f64> {
        mean_of(&self.values)
    }

    /// Returns the relative change: 0.01 is 1% more work.
    pub fn change(&self) -> Option<f64> {
        Some(self.ratio? - 1.0)
    }

    /// Returns the function with most of the change. One that does less explains nothing if the
    /// whole does more.
    pub fn main_function(&self) -> Option<&ChangedFunction> {
        let does_more = self.change()? > 0.0;
        let mut functions = self.functions.as_ref()?.functions.iter();
        functions.find(|function| (function.difference > 0.0) == does_more)
    }

    /// Returns the function with most of the change against that of the whole; `None` if it is less
    /// than half of that of [`Self::main_function`].
    pub fn opposite_function(&self) -> Option<&ChangedFunction> {
        let main = self.main_function()?;
        let mut functions = self.functions.as_ref()?.functions.iter();
        let does_more = main.difference > 0.0;
        let opposite = functions.find(|function| (function.difference > 0.0) != does_more)?;
        let is_large = opposite.difference.abs() >= OPPOSITE_SHARE * main.difference.abs();
        is_large.then_some(opposite)
    }

    /// Returns true if work is nearly the same each time.
    pub fn is_deterministic(&self) -> bool {
        self.floor.is_some_and(|floor| floor <= NOT_DETERMINISTIC)
    }
}

/// The verdict on the work of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkVerdict {
    /// The target does more work.
    More,
    /// The target does less work.
    Less,
    /// No change is shown.
    NoChangeShown,
    /// No change is shown, and the cells of a target differ too much to show a small one.
    NotDeterministic,
    /// Base or target has a single cell, which does not tell how exact it is.
    Single,
    /// There is nothing to compare.
    #[default]
    NotComparable,
}

impl WorkVerdict {
    /// Returns whether a change is shown.
    pub fn is_change(self) -> bool {
        matches!(self, Self::More | Self::Less)
    }
}

impl fmt::Display for WorkVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::More => "more work",
            Self::Less => "less work",
            Self::NoChangeShown => "no change shown",
            Self::NotDeterministic => "not deterministic",
            Self::Single => "single cell",
            Self::NotComparable => "not comparable",
        })
    }
}

/// Compares the exact cells of all targets with those of `base`, part by part.
pub(super) fn compare_work(figures: &Figures, base: &str) -> Vec<ComparedWork> {
    let index = ExactIndex::new(figures);
    let places = index.reported.iter().filter(|place| place.target != base);
    let compared: Vec<ComparedPlace<'_>> =
        places.map(|place| ComparedPlace::new(&index, *place, base)).collect();

    let mut all = Vec::new();
    for place in &compared {
        let of_target = compared.iter().filter(|other| other.place.target == place.place.target);
        let comparison_count = of_target.map(|other| other.parts.len()).sum();
        all.extend(place.compare(comparison_count));
    }
    all
}

/// The exact cells of a target and its base, in one step.
struct ComparedPlace<'a> {
    place: TargetPlace<'a>,
    base: Cells<'a>,
    target: Cells<'a>,
    parts: Vec<ComparedPart>,
}

impl<'a> ComparedPlace<'a> {
    fn new(index: &ExactIndex<'a>, place: TargetPlace<'a>, base: &'a str) -> Self {
        let of_target = index.cells(place);
        let of_base = index.cells(TargetPlace { target: base, ..place });
        let parts = parts(&[&of_base, &of_target]);
        Self { place, base: of_base, target: of_target, parts }
    }

    /// Compares each part, as one of the comparisons of its target.
    fn compare(&self, comparison_count: usize) -> Vec<ComparedWork> {
        let (of_base, of_target) = (&self.base, &self.target);
        let mut compared = Vec::new();
        let mut explained = Vec::new();
        for (part_number, part) in self.parts.iter().enumerate() {
            let mut work =
                compare_part(self.place, part.clone(), of_base, of_target, comparison_count);
            let role = work.part.role();
            if work.verdict.is_change() && !explained.contains(&role) {
                work.functions = changes(&of_base.graphs(role), &of_target.graphs(role));
                explained.push(role);
            }

            if part_number == 0 {
                work.calls = calls::compared(&of_base.graphs(role), &of_target.graphs(role));
            }
            compared.push(work);
        }
        compared
    }
}

/// Returns the work of every part of every target, in the order of the plan.
pub fn target_work(figures: &Figures) -> Vec<TargetWork> {
    let mut all = Vec::new();
    let index = ExactIndex::new(figures);
    for &exact in &index.reported {
        let cells = index.cells(exact);
        for (number, part) in parts(&[&cells]).into_iter().enumerate() {
            let graphs = if number == 0 { cells.graphs(part.role()) } else { Vec::new() };

            let values = cells.values(&part);
            all.push(TargetWork {
                cell: exact.cell(CellKind::Exact),
                step: exact.place.step.to_owned(),
                per_operation: mean_of(&values),
                floor: range(&values),
                calls: calls::compared(&[], &graphs),
                reasons: reasons(&[&cells]),
                part,
            });
        }
    }
    all
}

/// The steps of exact cells. A comparison looks them up for each target, so it makes the index once.
struct ExactIndex<'a> {
    by_place: BTreeMap<TargetPlace<'a>, Vec<&'a ExactStep>>,
    /// The places of reported steps, in the order of the plan.
    reported: Vec<TargetPlace<'a>>,
}

impl<'a> ExactIndex<'a> {
    fn new(figures: &'a Figures) -> Self {
        let mut index = Self { by_place: BTreeMap::new(), reported: Vec::new() };
        for step in &figures.exact {
            let place = TargetPlace::of(&step.row);
            let steps = index.by_place.entry(place).or_default();
            // Nothing of a step in which the engine settles is counted.
            let is_counted = step.row.reported && step.row.kind != StepKind::Settle;
            if is_counted && !steps.iter().any(|known| known.row.reported) {
                index.reported.push(place);
            }
            steps.push(step);
        }
        index
    }

    /// Returns the exact cells of a target's step.
    fn cells(&self, place: TargetPlace<'a>) -> Cells<'a> {
        Cells::of(place.target, self.by_place.get(&place).map_or(&[], Vec::as_slice))
    }
}

/// The exact cells of a target's step.
struct Cells<'a> {
    target: &'a str,
    /// Those whose work is known.
    counted: Vec<&'a ExactStep>,
    /// The others, by the reason why they do not count.
    left_out: Vec<LeftOut<'a>>,
}

impl<'a> Cells<'a> {
    fn of(target: &'a str, steps: &[&'a ExactStep]) -> Self {
        let mut cells = Self { target, counted: Vec::new(), left_out: Vec::new() };
        for &step in steps {
            let Some(reason) = step.missing() else {
                cells.counted.push(step);
                continue;
            };
            let (run, repeat) = (step.row.run, step.row.cell.repeat);
            let mut known = cells.left_out.iter_mut();
            match known.find(|known| known.run == run && known.reason == reason) {
                Some(known) => known.repeats.push(repeat),
                None => {
                    let targets = vec![target];
                    cells.left_out.push(LeftOut { targets, run, repeats: vec![repeat], reason });
                }
            }
        }
        cells
    }

    /// Returns the functions of each cell.
    fn graphs(&self, role: WorkRole) -> Vec<CellGraph<'a>> {
        let mut graphs = Vec::new();
        for step in &self.counted {
            if let Some(graph) = step.graphs.get(&role).filter(|graph| !graph.functions.is_empty())
            {
                let operations = operations(step, &ComparedPart::default());
                graphs.push(CellGraph { graph, operations });
            }
        }
        graphs
    }

    /// Returns the instructions per operation of a part in each cell.
    fn values(&self, part: &ComparedPart) -> Vec<Sample> {
        let mut values = Vec::new();
        for step in &self.counted {
            if let Some(value) = per_operation(step, part) {
                values.push(Sample { run: step.row.run, repeat: step.row.cell.repeat, value });
            }
        }
        values
    }
}

/// Exact cells that do not count, for the same reason.
#[derive(Clone)]
struct LeftOut<'a> {
    targets: Vec<&'a str>,
    run: usize,
    repeats: Vec<u32>,
    reason: &'a str,
}

/// Returns why cells do not count. Targets of which the same cells lack for the same reason share a
/// sentence.
fn reasons(all: &[&Cells<'_>]) -> Vec<String> {
    let mut merged: Vec<LeftOut<'_>> = Vec::new();
    for left_out in all.iter().flat_map(|cells| &cells.left_out) {
        let is_same = |known: &&mut LeftOut<'_>| {
            (known.run, &known.repeats, known.reason)
                == (left_out.run, &left_out.repeats, left_out.reason)
        };
        match merged.iter_mut().find(is_same) {
            Some(known) => known.targets.extend(&left_out.targets),
            None => merged.push(left_out.clone()),
        }
    }
    merged.iter().map(LeftOut::to_string).collect()
}

impl fmt::Display for LeftOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = if self.run > 0 { format!("{}, ", run_label(self.run)) } else { String::new() };
        let repeats: Vec<String> = self.repeats.iter().map(u32::to_string).collect();
        let are_several = repeats.len() > 1 || self.targets.len() > 1;
        let cells = if repeats.len() > 1 { "cells" } else { "cell" };
        let are = if are_several { "are" } else { "is" };
        let (targets, repeats) = (self.targets.join(" and "), repeats.join(", "));
        write!(f, "{targets}, {run}exact {cells} {repeats} {are} left out: {}", self.reason)
    }
}

/// Returns the parts that any target has: connections by their roles, then the background.
fn parts(targets: &[&Cells<'_>]) -> Vec<ComparedPart> {
    let steps = targets.iter().flat_map(|cells| &cells.counted);
    let known: Vec<_> = steps.flat_map(|step| &step.work.parts).collect();
    let serving = known.iter().filter(|part| part.role == WorkRole::Serving);

    let mut parts = Vec::new();
    for name in distinct(serving.clone().map(|part| part.name.as_str())) {
        let of_connection = serving.clone().filter(|part| part.name == name);
        let kinds = distinct(of_connection.flat_map(|part| &part.operations));
        let operations = kinds.into_iter().cloned().collect();
        parts.push(ComparedPart { connection: Some(name.to_owned()), operations });
    }

    let has_background = known.iter().any(|part| part.role == WorkRole::Background);
    // A step without any work still has a row, which says why.
    if has_background || parts.is_empty() {
        parts.push(ComparedPart::default());
    }
    parts
}

/// Returns the instructions of a part per operation of that part; `None` without any.
fn per_operation(step: &ExactStep, part: &ComparedPart) -> Option<f64> {
    let own = step.work.parts.iter().filter(|own| part.is_named(own.role, &own.name));
    let instructions: u64 = own.map(|own| own.instructions).reduce(u64::saturating_add)?;
    let operations = operations(step, part);
    (operations > 0).then(|| instructions as f64 / operations as f64)
}

/// Returns the operations by which the work of a part is divided: of the background, all.
fn operations(step: &ExactStep, part: &ComparedPart) -> u64 {
    let is_of_part = |kind: &String| part.connection.is_none() || part.operations.contains(kind);
    let counts = step.work.operations.iter().filter(|(kind, _)| is_of_part(kind));
    counts.map(|(_, count)| *count).fold(0, u64::saturating_add)
}

/// Compares the work of one part.
fn compare_part(
    exact: TargetPlace<'_>,
    part: ComparedPart,
    base: &Cells<'_>,
    target: &Cells<'_>,
    comparison_count: usize,
) -> ComparedWork {
    let mut compared = ComparedWork {
        cell: exact.cell(CellKind::Exact),
        workload: exact.place.workload.to_owned(),
        step: exact.place.step.to_owned(),
        base_values: base.values(&part),
        values: target.values(&part),
        part,
        reasons: reasons(&[base, target]),
        ..ComparedWork::default()
    };

    for (cells, values) in [(base, &compared.base_values), (target, &compared.values)] {
        match values.len() {
            0 => compared.reasons.push(format!("{} has no work counted here", cells.target)),
            1 => compared.reasons.push(format!("{} has one exact cell that counts", cells.target)),
            _ => {}
        }
    }

    compared.reasons.extend(other_counting(base, target));
    compared.judge(comparison_count);
    compared
}

/// Says that base and target were not counted alike.
fn other_counting(base: &Cells<'_>, target: &Cells<'_>) -> Option<String> {
    let steps = base.counted.iter().chain(&target.counted);
    let ways = distinct(steps.map(|step| {
        let work = &step.work;
        format!("{} after {} operations", work.tool, work.warmup_operations)
    }));
    (ways.len() > 1)
        .then(|| format!("the cells were counted in different ways: {}", ways.join(", ")))
}

impl ComparedWork {
    /// Sets the ratio, the floor and the verdict, as one of the comparisons of its target.
    fn judge(&mut self, comparison_count: usize) {
        let (Some(base), Some(target)) = (self.base_mean(), self.target_mean()) else {
            return;
        };
        if base <= 0.0 {
            self.reasons.push("the base did no work here".to_owned());
            return;
        }

        let ratio = target / base;
        self.ratio = Some(ratio);

        let count = self.values.len().min(self.base_values.len());
        let (Some(multiple), Some(of_base), Some(of_target)) =
            (multiple(count, comparison_count), range(&self.base_values), range(&self.values))
        else {
            self.verdict = WorkVerdict::Single;
            return;
        };

        let floor = Floor { range: of_base.max(of_target), multiple };
        self.floor = Some(floor.range);
        self.shown_from = Some(floor.shown_from());
        self.verdict = floor.verdict(ratio);
    }
}

fn mean_of(values: &[Sample]) -> Option<f64> {
    let values: Vec<f64> = values.iter().map(|sample| sample.value).collect();
    (!values.is_empty()).then(|| mean(&values))
}
