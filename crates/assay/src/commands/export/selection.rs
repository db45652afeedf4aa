//! The runs and steps that an export reads.

use std::cell::Cell;
use std::path::Path;

use analysis::compat::{Recorded, refuse_copies};
use analysis::figures::Row;
use inquiry::reading::{SetAsideCounts, unknown_step};
use record::{RecordError, Run, RunDir, StepReader, StepState};
use runner::failure::UsageError;
use runner::matrix::only::CellFilters;

use crate::cli::ExportArgs;
use crate::damages::say_help_for_damage;
use crate::exit::Exit;
use crate::output::eprint_line;

/// The runs and steps to export.
pub(super) struct Selection {
    pub(super) directories: Vec<RunDir>,
    pub(super) runs: Vec<Run>,
    /// Names of steps; empty: all.
    pub(super) steps: Vec<String>,
    only: CellFilters,
    /// A step was damaged.
    pub(super) saw_damage: Cell<bool>,
}

impl Selection {
    /// Selects what the arguments name.
    ///
    /// # Errors
    /// A run is given twice or can't be read, or no run has a step that is named.
    pub(super) fn new(args: &ExportArgs) -> anyhow::Result<Self> {
        let opened: Result<Vec<_>, _> = args.runs.iter().map(RunDir::open).collect();
        let directories = opened?;

        // Nobody would notice in a table that a measurement counts twice.
        let recorded = Recorded::read(&directories)?;
        refuse_copies(&recorded).map_err(UsageError::from)?;

        let runs: Vec<Run> = recorded.into_iter().map(|recorded| recorded.run).collect();
        let cells: Vec<_> = runs.iter().flat_map(|run| run.cells.clone()).collect();

        let selection = Self {
            directories,
            runs,
            steps: args.steps.clone(),
            only: CellFilters::new(&args.only, &cells)?,
            saw_damage: Cell::new(false),
        };

        selection.check_steps()?;
        Ok(selection)
    }

    /// Selects all steps of one run.
    pub(super) fn whole_run(path: &Path) -> Result<Self, RecordError> {
        let directory = RunDir::open(path)?;
        Ok(Self {
            runs: vec![directory.read_run()?],
            directories: vec![directory],
            steps: Vec::new(),
            only: CellFilters::default(),
            saw_damage: Cell::new(false),
        })
    }

    /// Checks that the runs have the selected steps.
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

    /// Returns whether a step is selected.
    pub(super) fn has(&self, row: &Row) -> bool {
        let mut cells = self.runs[row.run].cells.iter();
        (self.steps.is_empty() || self.steps.contains(&row.step))
            && cells.all(|cell| cell.key != row.cell || self.only.matches(cell))
    }

    /// Returns references to the runs.
    pub(super) fn runs(&self) -> Vec<&Run> {
        self.runs.iter().collect()
    }

    /// Calls `take` with each selected step.
    pub(super) fn each(
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
                eprint_line!("error: {}", report::terminal_text(&row.reasons.join("; ")));
            }

            if self.has(&row) {
                take(step, row)?;
            }

            Ok(())
        })
    }

    /// Returns the exit code of an export that was written.
    pub(super) fn exit(&self) -> Exit {
        if !self.saw_damage.get() {
            return Exit::Ok;
        }
        say_help_for_damage();
        Exit::Failed
    }

    /// Returns the selected steps without their series of seconds.
    pub(super) fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.each(|_, mut row| {
            row.series = analysis::figures::Series::default();
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }
}
