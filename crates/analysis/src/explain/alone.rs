//! Compares a step in sequence with the same step right after the load, in cells of their own: it
//! may inherit unfinished work from the step before.

use record::CellKey;
use serde::Serialize;

use super::case::{Context, INDEX_GB, Pair};
use super::explanation::Explanation;
use super::finding::{Evidence, place_of};
use super::statement::{SequencedStep, Statement};
use super::thresholds::INDEX_GROWTH;
use crate::compare::{
    CompareOptions, Compared, ComparedStep, Interval, Sample, THROUGHPUT, Verdict, compare,
};
use crate::figures::operation::throughput_unit;
use crate::figures::{Figures, Row, StartedCell};
use crate::order::distinct;

/// The sides of the comparison, which take the place of targets.
const ALONE: &str = "alone";
const IN_SEQUENCE: &str = "in sequence";

/// A step of a target that was measured alone.
#[derive(Clone, Debug, PartialEq)]
struct AloneStep<'a> {
    target: &'a str,
    /// The variant of the cells alone.
    alone: Option<&'a str>,
    /// The variant that has the step after others.
    in_sequence: Option<&'a str>,
    step: &'a str,
}

impl<'a> AloneStep<'a> {
    fn of(row: &'a Row) -> Option<Self> {
        let alone = row.alone.as_ref()?;
        Some(Self {
            target: &row.cell.target,
            alone: row.cell.variant.as_deref(),
            in_sequence: alone.in_sequence.as_deref(),
            step: &row.step,
        })
    }

    /// Returns the side that a cell is of; `None` if it is of another target or variant.
    fn side_of(&self, cell: &CellKey) -> Option<&'static str> {
        match cell.variant.as_deref() {
            _ if cell.target != self.target => None,
            variant if variant == self.alone => Some(ALONE),
            variant if variant == self.in_sequence => Some(IN_SEQUENCE),
            _ => None,
        }
    }

    /// Returns the name that takes the place of the variant.
    fn label(&self) -> String {
        let parts = [Some(self.target), self.in_sequence, Some(self.step)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns whether a comparison of sides is that of this step.
    fn is_compared_in(&self, step: &ComparedStep) -> bool {
        self.step == step.step && step.cell.variant == Some(self.label())
    }

    /// Returns the key of a cell with its side as target; `None` if it has none.
    fn key(&self, cell: &CellKey) -> Option<CellKey> {
        let target = self.side_of(cell)?.to_owned();
        Some(CellKey { target, variant: Some(self.label()), ..cell.clone() })
    }
}

/// Returns one explanation for each step of a target that is shown to be slower or faster after
/// other steps than right after the load.
pub(super) fn explain<'a>(context: Context<'a>) -> Vec<Explanation<'a>> {
    let all = measured(context.figures);
    let steps = compare_sides(context.figures, context.compared, &all).into_iter();
    let changed = steps.filter(|step| step.verdict.is_change());
    changed.filter_map(|step| explanation(context, &all, &step)).collect()
}

/// A step in sequence against the same step alone, without a shown difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnshownSequence {
    /// The target.
    pub target: String,
    /// The step.
    pub step: String,
    /// The variant that has the step after others.
    pub variant: Option<String>,
    /// Clients.
    pub clients: u32,
    /// The throughput in sequence / alone; `None` if there is none to compare.
    pub ratio: Option<f64>,
    /// The interval of the true ratio; `None` without repeats.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Returns the steps that were measured alone whose difference is not shown: who asks for it wants
/// an answer, too.
pub(super) fn unshown(figures: &Figures, compared: &Compared) -> Vec<UnshownSequence> {
    let all = measured(figures);
    let mut unshown = Vec::new();

    for step in compare_sides(figures, compared, &all) {
        let measured = all.iter().find(|measured| measured.is_compared_in(&step));
        let Some(measured) = measured.filter(|_| !step.verdict.is_change()) else {
            continue;
        };

        unshown.push(UnshownSequence {
            target: measured.target.to_owned(),
            step: step.step,
            variant: measured.in_sequence.map(str::to_owned),
            clients: step.cell.clients,
            ratio: step.ratio,
            interval: step.interval,
            verdict: step.verdict,
        });
    }
    unshown
}

/// Returns the steps that were measured alone.
fn measured(figures: &Figures) -> Vec<AloneStep<'_>> {
    distinct(figures.rows.iter().filter_map(AloneStep::of))
}

/// Compares the throughput of steps in sequence with that of the same steps alone.
fn compare_sides(
    figures: &Figures,
    compared: &Compared,
    all: &[AloneStep<'_>],
) -> Vec<ComparedStep> {
    if all.is_empty() {
        return Vec::new();
    }

    let options = CompareOptions {
        base: ALONE.to_owned(),
        effect: compared.effect,
        error_rate: compared.error_rate,
        ..CompareOptions::default()
    };

    let mut rows = compare(&with_sides(figures, all), &options).rows;
    rows.retain(|row| row.metric == THROUGHPUT);
    rows
}

/// Returns the figures of the steps with their sides as targets.
fn with_sides(figures: &Figures, all: &[AloneStep<'_>]) -> Figures {
    let mut sides = Figures { looks: figures.looks, effect: figures.effect, ..Figures::default() };

    for measured in all {
        for row in figures.rows.iter().filter(|row| row.step == measured.step) {
            let key = measured.key(&row.cell);
            sides.rows.extend(key.map(|cell| Row { cell, ..row.clone() }));
        }
        for cell in &figures.begun {
            let key = measured.key(&cell.cell);
            sides.begun.extend(key.map(|key| StartedCell { cell: key, ..cell.clone() }));
        }
    }
    sides
}

fn explanation<'a>(
    context: Context<'a>,
    all: &[AloneStep<'a>],
    step: &ComparedStep,
) -> Option<Explanation<'a>> {
    let measured = all.iter().find(|measured| measured.is_compared_in(step))?;
    let of_side = |side| {
        context.figures.rows.iter().find(|row| {
            row.step == measured.step
                && row.cell.clients == step.cell.clients
                && measured.side_of(&row.cell) == Some(side)
        })
    };
    let (in_sequence, alone) = (of_side(IN_SEQUENCE)?, of_side(ALONE)?);

    let throughput =
        Pair { base: geometric_mean(&step.base_values), value: geometric_mean(&step.values) };
    let unit = throughput_unit(in_sequence.kind, in_sequence.main_operation());
    Some(Explanation {
        places: vec![place_of(in_sequence)],
        evidence: vec![Evidence::throughput(&unit, throughput)],
        caveats: Vec::new(),
        weight: step.ratio?.ln().abs(),
        statement: Statement::Sequence(SequencedStep {
            who: context.named(measured.target, &in_sequence.cell),
            step: step.step.clone(),
            before: steps_between(context.figures, in_sequence, alone),
            index_gb: grown_indexes(alone, in_sequence),
            ratio: step.ratio?,
            interval: step.interval,
            repeat_count: step.values.len(),
        }),
    })
}

fn geometric_mean(samples: &[Sample]) -> f64 {
    let logs: f64 = samples.iter().map(|sample| sample.value.ln()).sum();
    (logs / samples.len() as f64).exp()
}

/// Returns the size of all indexes when the step began, alone and in sequence, if it grew by
/// [`INDEX_GROWTH`] or more.
fn grown_indexes(alone: &Row, in_sequence: &Row) -> Option<Pair> {
    let size = Pair { base: alone.metric(INDEX_GB)?, value: in_sequence.metric(INDEX_GB)? };
    size.ratio().is_some_and(|ratio| ratio >= INDEX_GROWTH).then_some(size)
}

/// Returns the steps of a cell before one of its steps, without those that the cell alone has too.
fn steps_between(figures: &Figures, in_sequence: &Row, alone: &Row) -> Vec<String> {
    let steps_before = |of: &Row| -> Vec<String> {
        let rows = figures.rows.iter().filter(|row| (row.run, &row.cell) == (of.run, &of.cell));
        rows.map(|row| row.step.clone()).take_while(|step| *step != of.step).collect()
    };
    let load = steps_before(alone);
    let mut before = steps_before(in_sequence);
    before.retain(|step| !load.contains(step));
    before
}
