//! Runs, and the cells and steps of them that were chosen.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use analysis::compat::{Recorded, refuse_copies};
use analysis::figures::{Row, Series};
use record::{RecordError, Run, RunDir, StepReader, StepState};
use report::terminal_text;
use runner::failure::UsageError;
use runner::matrix::only::CellFilters;

use crate::compare::{self, Answer, CompareRequest};
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

            if row.damaged || step.is_lost() {
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

    /// Notes that somebody else saw damage in the runs.
    pub fn note_damage(&self) {
        self.saw_damage.set(true);
    }

    /// Returns true if a step was damaged, of those that were read.
    pub fn saw_damage(&self) -> bool {
        self.saw_damage.get()
    }
}
