//! The runs of a folder, as lists show them.

use std::path::Path;

use record::RunDir;
use report::{Outline, result_in_brief};

use crate::runs::{figures, read_until_stable};

/// Reads what `run.json` says of a run.
pub fn outline(path: &Path) -> anyhow::Result<Outline> {
    Ok(Outline::new(&RunDir::open(path)?.read_run()?))
}

/// Reads the figures of a run, and returns its result in a few words.
pub fn result(path: &Path) -> anyhow::Result<String> {
    read_until_stable(&[path], || {
        let directory = RunDir::open(path)?;
        let run = directory.read_run()?;
        let (figures, _) = figures(&[directory], |row| row.series = Default::default())?;
        Ok(result_in_brief(&run, &figures))
    })
}

/// Returns the name of a run: that of its directory.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
