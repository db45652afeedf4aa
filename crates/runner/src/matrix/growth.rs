//! Runs that add cells after each round of measuring, by what the cells before have shown.
//!
//! A search for a rate adds the rates to try next, and a run until all is decided adds a repeat.
//! Both say which cells come next ([`find`], [`decided`]); how they get into the run is the same.

use std::time::Duration;

use plan::{Plan, UntilDecided};
use record::{CellRef, RateSearch, Run, RunDir};

use super::decided::OpenComparisons;
use super::only::CellFilters;
use super::repeats::raise_repeats;
use super::{Matrix, decided, find, references, steps_of_variants};
use crate::ground::events::Events;
use crate::prepare::plan_file::PlanFile;

/// The source of cells that a run gets while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Growth {
    /// Nothing: the cells are those of the plan.
    Fixed,
    /// A search for the highest rate.
    Search(RateSearch),
    /// Repeats are added until all comparisons are decided.
    UntilDecided(UntilDecided),
}

impl Growth {
    /// Returns what adds cells to a run of a plan.
    pub fn of(plan: &Plan, run: &Run) -> Self {
        match (&run.search, plan.until_decided) {
            (Some(search), _) => Self::Search(search.clone()),
            (None, Some(until_decided)) => Self::UntilDecided(until_decided),
            (None, None) => Self::Fixed,
        }
    }

    /// Returns whether a run whose cells are complete has to measure more of those that match.
    pub fn goes_on(
        &self,
        directory: &RunDir,
        run: &Run,
        only: &CellFilters,
    ) -> anyhow::Result<bool> {
        Ok(match self {
            Self::Fixed => false,
            Self::Search(_) => !find::next_rates(directory, run, only)?.is_empty(),
            Self::UntilDecided(until_decided) => {
                OpenComparisons::of(directory, run, only, *until_decided)?.has_any()
            }
        })
    }

    /// Adds the next cells to the plan and to the record of a run. Returns the cells to measure;
    /// `None` if the run has ended, for those that match. `elapsed` is how long this invocation has
    /// run.
    pub fn extend(
        &self,
        growing: GrowingRun<'_>,
        only: &[String],
        elapsed: Duration,
    ) -> anyhow::Result<Option<Matrix>> {
        match self {
            Self::Fixed => Ok(None),
            Self::Search(search) => {
                let only = CellFilters::new(only, &growing.run.cells)?;
                find::extend(growing, search, &only)
            }
            Self::UntilDecided(until_decided) => {
                let only = CellFilters::new(only, &growing.run.cells)?;
                decided::extend(growing, *until_decided, &only, elapsed)
            }
        }
    }
}

/// A run to which cells are added.
pub struct GrowingRun<'r> {
    pub file: &'r mut PlanFile,
    pub directory: &'r RunDir,
    pub run: &'r mut Run,
    pub events: &'r dyn Events,
}

/// The cells of a run with those that a round adds.
pub struct NextRound {
    cells: Vec<CellRef>,
    /// The cells that the round measures.
    pub matrix: Matrix,
}

impl GrowingRun<'_> {
    /// Returns the round that measures the cells of the plan that `are_next`, of as many `repeats`
    /// as they need.
    pub fn next_round(
        &mut self,
        repeats: u32,
        are_next: impl Fn(&CellRef) -> bool,
    ) -> anyhow::Result<NextRound> {
        // The plan has these repeats only while cells are chosen: not all may be needed.
        let plan = &mut self.file.plan;
        let planned = plan.repeats;
        plan.repeats = plan.repeats.max(repeats);
        let mut new = references(plan);
        new.retain(|cell| are_next(cell) && !self.run.cells.contains(cell));

        let cells = [self.run.cells.clone(), new].concat();
        plan.repeats = planned;
        raise_repeats(plan, &cells);

        let all = CellFilters::default();
        let mut matrix = Matrix::resume(plan, &cells, self.directory, &all)?;
        // Not what failed before.
        matrix.tasks.retain(|task| are_next(&task.reference));
        Ok(NextRound { cells, matrix })
    }

    /// Adds the cells of a round to the record of the run.
    pub fn record(&mut self, round: NextRound) -> anyhow::Result<Matrix> {
        self.run.cells = round.cells;
        self.run.plan = self.file.to_record();
        self.run.workloads = steps_of_variants(&self.file.plan);
        self.directory.write_run(self.run)?;
        Ok(round.matrix)
    }
}
