//! The runs of a folder, as lists show them.

use std::path::Path;

use analysis::figures::Series;
use inquiry::reading::{figures, read_until_stable};
use record::RunDir;
use report::{Outline, StepPoint, result_in_brief, step_points};

/// Reads what `run.json` says of a run.
pub fn outline(path: &Path) -> anyhow::Result<Outline> {
    Ok(Outline::new(&RunDir::open(path)?.read_run()?))
}

/// The results of a run, as lists and trends show them.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result in a few words.
    pub result: String,
    /// The results of its steps.
    pub points: Vec<StepPoint>,
}

/// Reads the figures of a run.
///
/// # Errors
/// The record can't be read, or a part of it is damaged.
pub fn outcome(path: &Path) -> anyhow::Result<Outcome> {
    read_until_stable(&[path], || {
        let directory = RunDir::open(path)?;
        let run = directory.read_run()?;
        let (figures, _) = figures(&[directory], |row| row.series = Series::default())?;
        // What is left of a damaged record would be taken for all of it.
        if let Some(damage) = figures.damages.first() {
            anyhow::bail!("damaged: {damage}");
        }
        Ok(Outcome { result: result_in_brief(&run, &figures), points: step_points(&figures) })
    })
}

/// Returns the name of a run: that of its directory.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
