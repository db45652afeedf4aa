//! The cells of a run that are not complete.

use analysis::counted;
use record::{Run, RunDir, Status};

use super::display::Display;
use super::matrix;
use super::next::resume_command;

/// The numbers of cells that are not complete.
#[derive(Default, PartialEq)]
pub(super) struct IncompleteCells {
    pub(super) failed: usize,
    pub(super) missing: usize,
}

impl IncompleteCells {
    /// Counts them.
    pub(super) fn of(directory: &RunDir, run: &Run) -> anyhow::Result<Self> {
        let mut incomplete = Self::default();
        for cell in &run.cells {
            match matrix::status(directory, cell)? {
                Some(Status::Complete) => {}
                Some(Status::Failed) => incomplete.failed += 1,
                None | Some(Status::Incomplete | Status::Interrupted) => incomplete.missing += 1,
            }
        }
        Ok(incomplete)
    }

    /// Says how many there are, if any, and the command that measures them.
    pub(super) fn say(&self, display: &Display, directory: &RunDir, run: &Run) {
        let parts: Vec<String> = [(self.failed, "failed"), (self.missing, "missing")]
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, state)| format!("{count} {state}"))
            .collect();
        if !parts.is_empty() {
            display.say(&format!(
                "{} of {}: `{}` measures what is not complete",
                parts.join(" and "),
                counted(run.cells.len(), "cell"),
                resume_command(directory, run)
            ));
        }
    }
}
