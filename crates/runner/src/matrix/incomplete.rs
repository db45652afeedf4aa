//! The cells of a run that are not complete.

use std::path::Path;

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
    let path = path_in_command(directory);
    let plan = if run.plan.password_removed { " PLAN" } else { "" };
    format!("assay run --resume {path}{plan}")
}

/// Returns the path of a run as commands name it, quoted for a shell: relative to the working
/// directory where the run is below it, whether or not the run was resumed.
pub fn path_in_command(directory: &RunDir) -> String {
    let path = directory.path();
    let shown = match std::env::current_dir() {
        Ok(here) => relative_below(path, &here),
        Err(_) => path,
    };
    shell_quoted(&shown.display().to_string())
}

/// Returns a path relative to a directory, if it is below it.
fn relative_below<'p>(path: &'p Path, directory: &Path) -> &'p Path {
    let below = path.strip_prefix(directory).ok();
    below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_below_the_working_directory_has_the_same_path_before_and_after_it_was_resumed() {
        let here = Path::new("/home/me");
        let shown = |path: &'static str| relative_below(Path::new(path), here).to_str().unwrap();
        assert_eq!(shown("results/a"), "results/a");
        assert_eq!(shown("/home/me/results/a"), "results/a");
        assert_eq!(shown("/srv/results/a"), "/srv/results/a");
        assert_eq!(shown("/home/me"), "/home/me");
    }
}
