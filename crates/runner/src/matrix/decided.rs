//! `repeats = "until decided"`: adds repeats until every comparison of throughput is decided, or
//! the time is up.
//!
//! A round is one repeat: of each target that has an open comparison, and of the base. The analysis
//! says what is open ([`Decision`]), from the record alone, so an interrupted run continues where
//! it ended.

use std::borrow::Cow;
use std::time::Duration;

use analysis::compare::{
    CompareOptions, Decision, REPEATS_CAP, THROUGHPUT, compare, groups_by_base,
};
use analysis::compat::{VariantSides, by_variant};
use analysis::figures::Looks;
use plan::{REPEATS_MAX, UntilDecided};
use record::{CellKey, CellRef, Run, RunDir};

use super::Matrix;
use super::growth::GrowingRun;
use super::incomplete::resume_command;
use super::only::CellFilters;
use crate::ground::events::{JudgedComparison, JudgedRepeat, NextRepeat};
use crate::ground::failure::UsageError;

/// The fewest repeats of pairs with a verdict: an interval of two values that holds at any time has
/// no bounds. (Two repeats of each that are not in pairs are four values, and may show that both are
/// equal.)
pub const REPEATS_WITH_VERDICT: u32 = 3;

/// The comparisons of a run, and the cells whose next repeat may decide the open ones.
pub struct OpenComparisons {
    comparisons: Vec<JudgedComparison>,
    loads: Vec<OpenLoad>,
    /// The variants, if they are compared with each other instead of targets.
    variants: Option<VariantSides>,
}

/// A variant of the workload with a number of clients, for which a comparison is open.
struct OpenLoad {
    /// The targets to measure: those that have an open comparison, and the base.
    targets: Vec<String>,
    /// One of the cells with this load.
    like: CellKey,
    /// The number of the next repeat.
    repeat: u32,
}

impl OpenComparisons {
    /// Judges the comparisons of a run. Targets without a cell that matches are not measured, nor
    /// those whose base is not part of the run.
    pub fn of(
        directory: &RunDir,
        run: &Run,
        only: &CellFilters,
        until_decided: UntilDecided,
    ) -> anyhow::Result<Self> {
        let variants = VariantSides::of([run]);
        let variants = Some(variants).filter(VariantSides::are_all_there_is);
        let comparisons = judge(directory, run, variants.as_ref(), until_decided.effect)?;

        // Variants have the keys of targets, but filters are about the cells as they are recorded.
        let shown = shown_run(run, variants.as_ref());
        let matches = |cell: &CellRef| {
            run.cells.iter().any(|recorded| recorded.path == cell.path && only.matches(recorded))
        };

        // The base and all open targets of a load grow together: a repeat has one round for it.
        let mut loads: Vec<OpenLoad> = Vec::new();
        for comparison in comparisons.iter().filter(|judged| judged.decision.is_open()) {
            let cell = &comparison.cell;
            let Some(base) = base_of(&shown, &cell.target) else { continue };
            let of_base = cell.of_target(base);
            let has_base = shown.cells.iter().any(|known| known.key.is_repeat_of(&of_base));
            let mut of_target = shown.cells.iter().filter(|known| known.key.is_repeat_of(cell));

            if !has_base || !of_target.any(matches) {
                continue;
            }

            match loads.iter_mut().find(|load| load.like.load() == cell.load()) {
                Some(load) => load.add([base, &cell.target]),
                None => loads.push(OpenLoad::new(&shown, base, cell)),
            }
        }

        loads.retain(|load| load.repeat <= REPEATS_MAX);

        Ok(Self { comparisons, loads, variants })
    }

    /// Returns whether another repeat may decide one of them.
    pub fn has_any(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Returns whether a cell belongs to the next repeat.
    fn have_next(&self, cell: &CellRef) -> bool {
        let key = match &self.variants {
            Some(variants) => variants.key(&cell.key),
            None => cell.key.clone(),
        };
        self.loads.iter().any(|load| load.has_next(&key))
    }

    /// Returns the largest number of a next repeat.
    fn repeat(&self) -> u32 {
        self.loads.iter().map(|load| load.repeat).max().unwrap_or(0)
    }

    /// Returns how many more repeats would decide all comparisons; `None` if that is unknown.
    fn repeats_needed(&self) -> Option<u32> {
        let mut needed = 0;
        for judged in &self.comparisons {
            let Decision::Open { repeats_needed } = judged.decision else { continue };
            let total = repeats_needed.filter(|total| *total < REPEATS_CAP)?;
            needed = needed.max(total.saturating_sub(judged.repeats));
        }

        Some(needed)
    }
}

impl OpenLoad {
    fn new(run: &Run, base: &str, open: &CellKey) -> Self {
        Self {
            targets: vec![base.to_owned(), open.target.clone()],
            like: open.clone(),
            repeat: last_repeat(run, |cell| cell.load() == open.load()) + 1,
        }
    }

    fn add(&mut self, targets: [&str; 2]) {
        for target in targets {
            if !self.targets.iter().any(|known| known == target) {
                self.targets.push(target.to_owned());
            }
        }
    }

    fn has_next(&self, cell: &CellKey) -> bool {
        cell.kind.is_measured()
            && cell.repeat == self.repeat
            && cell.load() == self.like.load()
            && self.targets.contains(&cell.target)
    }
}

/// Returns the largest number of a repeat among the cells of a run that match; 0 without any.
fn last_repeat(run: &Run, matches: impl Fn(&CellKey) -> bool) -> u32 {
    let cells = run.cells.iter().map(|cell| &cell.key);
    let repeats =
        cells.filter(|cell| cell.kind.is_measured() && matches(cell)).map(|cell| cell.repeat);
    repeats.max().unwrap_or(0)
}

/// Returns the target with which a target is compared.
fn base_of<'r>(run: &'r Run, target: &str) -> Option<&'r str> {
    let target = run.targets.iter().find(|known| known.name == target);
    target.map_or(Some(run.base.as_str()), |target| run.base_of(target))
}

/// Returns a run with the variants in the place of targets, if they are compared.
fn shown_run<'r>(run: &'r Run, variants: Option<&VariantSides>) -> Cow<'r, Run> {
    match variants {
        Some(variants) => Cow::Owned(variants.run(run, &variants.names[0])),
        None => Cow::Borrowed(run),
    }
}

/// Judges every comparison of throughput with a base.
fn judge(
    directory: &RunDir,
    run: &Run,
    variants: Option<&VariantSides>,
    effect: f64,
) -> anyhow::Result<Vec<JudgedComparison>> {
    let mut figures = analysis::figures::figures(std::slice::from_ref(directory))?;
    // A run that was resumed until all is decided is not yet recorded as one.
    figures.looks = Looks::Growing;
    if let Some(variants) = variants {
        by_variant(run, &mut figures, variants, None).map_err(UsageError::from)?;
    }
    let run = shown_run(run, variants).into_owned();

    let mut comparisons = Vec::new();
    for group in groups_by_base(run.clone(), figures) {
        let options = CompareOptions {
            base: group.run.base,
            effect,
            metrics: Vec::new(),
            ..CompareOptions::default()
        };
        let compared = compare(&group.figures, &options);
        for row in compared.rows.iter().filter(|row| row.metric == THROUGHPUT) {
            // Cells that failed count as tried: a target that always fails would continue forever.
            let tried = run.cells.iter().filter(|cell| cell.key.is_repeat_of(&row.cell)).count();
            comparisons.push(JudgedComparison {
                decision: compared.decision(row, tried as u32),
                is_too_noisy: compared.is_too_noisy_to_decide(row, tried as u32),
                repeats: row.repeats(),
                cell: row.cell.clone(),
                step: row.step.clone(),
            });
        }
    }

    Ok(comparisons)
}

/// Adds the next repeat of all targets with an open comparison, and of the base. `None` if all is
/// decided, or the repeat would not end in time.
pub fn extend(
    mut growing: GrowingRun<'_>,
    until_decided: UntilDecided,
    only: &CellFilters,
    elapsed: Duration,
) -> anyhow::Result<Option<Matrix>> {
    let open = OpenComparisons::of(growing.directory, growing.run, only, until_decided)?;
    let round = growing.next_round(open.repeat(), |cell| open.have_next(cell))?;

    // A repeat that would not end in time is not begun: half of one says nothing.
    let time_left = until_decided.time.saturating_sub(elapsed);
    let repeat_time = round.matrix.time_left(0);
    let next = if !open.has_any() {
        NextRepeat::NoneNeeded
    } else if repeat_time > time_left {
        NextRepeat::NoTime
    } else {
        NextRepeat::Begins
    };

    growing.events.repeat_judged(&JudgedRepeat {
        repeat: last_repeat(growing.run, |_| true),
        comparisons: &open.comparisons,
        time_needed: open.repeats_needed().map(|repeats| repeat_time * repeats),
        time_left,
        next,
        resume_command: resume_command(growing.directory, growing.run),
    });

    growing.run.is_time_up = next == NextRepeat::NoTime;

    if next == NextRepeat::Begins { growing.record(round).map(Some) } else { Ok(None) }
}
