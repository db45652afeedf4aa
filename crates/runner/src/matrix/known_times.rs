//! Reads what an earlier run took.

use std::path::Path;

use record::RunDir;

use super::numbered;
use super::repeats::raise_repeats;
use crate::ground::failure::UsageError;
use crate::prepare::known_times::KnownTimes;
use crate::prepare::plan_file;

/// Reads the times and sizes of a run.
///
/// # Errors
/// The directory has no readable run, or none of its steps is complete.
pub fn of_run(path: &Path) -> anyhow::Result<KnownTimes> {
    let directory = RunDir::open(path)?;
    let run = directory.read_run()?;
    let mut file = plan_file::recorded_quietly(&run.plan)?;
    raise_repeats(&mut file.plan, &run.cells);

    let mut known = KnownTimes::default();
    for task in numbered(&file.plan, &run.cells)? {
        let cell = directory.cell(&task.reference)?;
        if cell.exists() {
            known.add_cell(&file.plan, &task.cell, &cell.read_steps()?)?;
        }
    }

    if known.is_empty() {
        let message =
            format!("no step of `{}` is complete, so its times are unknown", path.display());
        let help = "give a run with a complete step to `--like`";
        return Err(UsageError::new(message, Some(help.into())).into());
    }
    Ok(known)
}
