//! Runs, and the cells and steps of them that were chosen.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use analysis::compat::{Recorded, refuse_copies};
use analysis::figures::{Row, Series};
use record::{RecordError, Run, RunDir, StepReader, StepState};
use report::terminal_text;
use runner::failure::UsageError;
use runner::matrix::only::CellFilters;

use crate::compare::{self, Answer, CompareRequest};
use crate::damage::DamageFacts;
use crate::reading::{SetAsideCounts, unknown_step};

/// Runs, and the cells and steps of them that were chosen.
pub struct Selection {
    /// The run directories.
    pub directories: Vec<RunDir>,
    /// The runs as they are recorded.
    pub runs: Vec<Run>,
    /// The names of the chosen steps; empty: all.
    pub steps: Vec<String>,
    only: CellFilters,
    /// Gets a line for each step that is damaged.
    say: fn(&str),
    saw_damage: Cell<bool>,
    /// The facts of all steps that were read, also of those that are not chosen.
    damage_facts: RefCell<DamageFacts>,
}

impl Selection {
    /// Chooses steps of some runs, all of them if none is named, of the cells that match the filters.
    /// `say` gets a line for each of them that turns out to be damaged.
    ///
    /// # Errors
    /// A run is given twice or cannot be read, no cell matches, or no run has a step that is named.
    pub fn new(
        runs: &[PathBuf],
        steps: &[String],
        filters: &[String],
        say: fn(&str),
    ) -> anyhow::Result<Self> {
        let opened: Result<Vec<_>, _> = runs.iter().map(RunDir::open).collect();
        let directories = opened?;

        // Nobody would notice in a table that a measurement counts twice.
        let recorded = Recorded::read(&directories)?;
        refuse_copies(&recorded).map_err(UsageError::from)?;

        let runs: Vec<Run> = recorded.into_iter().map(|recorded| recorded.run).collect();
        let cells: Vec<_> = runs.iter().flat_map(|run| run.cells.clone()).collect();

        let selection = Self {
            directories,
            runs,
            steps: steps.to_owned(),
            only: CellFilters::new(filters, &cells)?,
            say,
            saw_damage: Cell::new(false),
            damage_facts: RefCell::default(),
        };

        selection.check_steps()?;
        Ok(selection)
    }

    /// Chooses all steps of one run.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn whole_run(path: &Path, say: fn(&str)) -> Result<Self, RecordError> {
        let directory = RunDir::open(path)?;
        Ok(Self {
            runs: vec![directory.read_run()?],
            directories: vec![directory],
            steps: Vec::new(),
            only: CellFilters::default(),
            say,
            saw_damage: Cell::new(false),
            damage_facts: RefCell::default(),
        })
    }

    /// Checks that the runs have the chosen steps.
    fn check_steps(&self) -> anyhow::Result<()> {
        if self.steps.is_empty() {
            return Ok(());
        }

        let mut known: Vec<String> = Vec::new();
        for (directory, run) in self.directories.iter().zip(&self.runs) {
            for cell in &run.cells {
                let steps = directory.cell(cell)?.read_steps()?;
                let planned = run.workloads.iter().flat_map(|of| &of.steps);
                for name in planned.chain(steps.iter().map(|step| &step.step().name)) {
                    if !known.contains(name) {
                        known.push(name.clone());
                    }
                }
            }
        }

        match self.steps.iter().find(|step| !known.contains(step)) {
            Some(unknown) => {
                let known = known.iter().map(String::as_str).collect();
                Err(unknown_step(unknown, known).into())
            }
            None => Ok(()),
        }
    }

    /// Returns whether a step is chosen.
    pub fn has(&self, row: &Row) -> bool {
        let mut cells = self.runs[row.run].cells.iter();
        (self.steps.is_empty() || self.steps.contains(&row.step))
            && cells.all(|cell| cell.key != row.cell || self.only.matches(cell))
    }

    /// Returns references to the runs.
    pub fn runs(&self) -> Vec<&Run> {
        self.runs.iter().collect()
    }

    /// Calls `take` with each chosen step, in the order of their cells.
    ///
    /// # Errors
    /// A record cannot be read, another process resumed its run, or `take` fails.
    pub fn each(
        &self,
        mut take: impl FnMut(&StepReader, Row) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let paths: Vec<&Path> = self.directories.iter().map(RunDir::path).collect();
        let before = SetAsideCounts::of(&paths);

        analysis::figures::for_each_row(&self.directories, |step, row| {
            if row.damaged || step.state() == StepState::Missing {
                before.refuse_changes(&paths)?;
            }

            let is_damaged = row.damaged || step.is_lost();
            if is_damaged || step.state() != StepState::Missing {
                self.damage_facts.borrow_mut().add(&row, is_damaged);
            }

            if is_damaged {
                self.saw_damage.set(true);
                (self.say)(&format!("error: {}", terminal_text(&row.reasons.join("; "))));
            }

            if self.has(&row) {
                take(step, row)?;
            }

            Ok(())
        })
    }

    /// Returns the chosen steps without their series of seconds.
    ///
    /// # Errors
    /// Those of [`Self::each`].
    pub fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.each(|_, mut row| {
            row.series = Series::default();
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Compares the targets of the runs with their bases, in the chosen steps. The comparisons need
    /// all cells. `note` gets what a reader should know about the bases.
    ///
    /// # Errors
    /// The runs cannot be read or compared.
    pub fn answers(&self, note: &dyn Fn(&str)) -> anyhow::Result<Vec<Answer>> {
        let recorded = Recorded::read(&self.directories)?;
        let request = CompareRequest { steps: self.steps.clone(), ..CompareRequest::default() };
        compare::answers(&self.directories, &recorded, &request, note)
    }

    /// Notes the damage that these comparisons of the runs found. It is not said again.
    pub fn note_damage(&self, answers: &[Answer]) {
        // One of the answers has the damage of all: its step may be one of another answer.
        let mut damages = Vec::new();
        for answer in answers {
            damages.extend(answer.figures.damages.iter().cloned());
        }
        if damages.is_empty() {
            return;
        }

        self.saw_damage.set(true);
        let mut facts = self.damage_facts.borrow_mut();
        for answer in answers {
            facts.add_figures(&answer.figures, &damages);
        }
    }

    /// Returns the facts about damage; `None` if nothing was damaged, of what was read.
    pub fn seen_damage(&self) -> Option<DamageFacts> {
        self.saw_damage.get().then(|| self.damage_facts.borrow().clone())
    }
}

#[cfg(test)]
mod tests {
    use record::{CellRef, Status};

    use super::*;

    #[test]
    fn reading_the_chosen_steps_also_tells_what_is_damaged() {
        let results = tempfile::tempdir().unwrap();
        let cell = CellRef::new("a.x", "insert", None, 1, 1);
        let plan = Run { cells: vec![cell.clone()], ..Run::default() };
        let run = RunDir::create(results.path(), &plan).unwrap();
        let begun = run.begin_cell(&cell).unwrap();
        let seen = |status| {
            let steps = vec!["l.i0".to_owned()];
            let key = cell.key.clone();
            let recorded = record::Cell { key, status, steps, ..record::Cell::default() };
            begun.write(&recorded).unwrap();

            let selection = Selection::whole_run(run.path(), |_| {}).unwrap();
            assert!(selection.seen_damage().is_none(), "nothing was read");
            selection.rows().unwrap();
            selection.seen_damage().is_some()
        };

        assert!(!seen(Status::Interrupted), "the step has not begun");
        assert!(seen(Status::Complete), "the step is lost");
    }
}
