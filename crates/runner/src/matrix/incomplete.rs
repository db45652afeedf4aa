//! The cells of a run that are not complete.

use analysis::counted;
use record::{Run, RunDir, Status};
use words::shell_quoted;

use super::status;

/// The numbers of cells that are not complete.
#[derive(Default, PartialEq)]
pub struct IncompleteCells {
    /// Cells that failed.
    pub failed: usize,
    /// Cells that were interrupted, or never begun.
    pub missing: usize,
}

impl IncompleteCells {
    /// Counts those of a run.
    pub fn of(directory: &RunDir, run: &Run) -> anyhow::Result<Self> {
        let mut incomplete = Self::default();
        for cell in &run.cells {
            match status(directory, cell)? {
                Some(Status::Complete) => {}
                Some(Status::Failed) => incomplete.failed += 1,
                None | Some(Status::Incomplete | Status::Interrupted) => incomplete.missing += 1,
            }
        }

        Ok(incomplete)
    }

    /// Returns how many there are, and the command that measures them; `None` if there are none.
    pub fn text(&self, directory: &RunDir, run: &Run) -> Option<String> {
        let mut parts: Vec<String> = Vec::new();
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        if self.missing > 0 {
            parts.push(format!("{} missing", self.missing));
        }
        if parts.is_empty() {
            return None;
        }

        Some(format!(
            "{} of {}: `{}` measures what is not complete",
            parts.join(" and "),
            counted(run.cells.len(), "cell"),
            resume_command(directory, run)
        ))
    }
}

/// Returns the command that resumes a run. A plan with a password, which is not recorded, must be
/// given again.
pub fn resume_command(directory: &RunDir, run: &Run) -> String {
    let path = shell_quoted(&directory.path().display().to_string());
    let plan = if run.plan.password_removed { " PLAN" } else { "" };
    format!("assay run --resume {path}{plan}")
}
