//! Reads runs that another process may be resuming at the same time, and chooses steps and targets
//! of them.

use std::path::Path;

use analysis::distinct;
use analysis::figures::{Figures, Row};
use record::{Run, RunDir};
use runner::failure::UsageError;
use runner::similar::{ListedNames, did_you_mean};

/// Reads runs, and reads them again if that failed while another process resumed one of them: it
/// set aside the attempt at a cell that was being read.
///
/// # Errors
/// Those of the last reading.
pub fn read_until_stable<T>(
    runs: &[impl AsRef<Path>],
    read: impl Fn() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    loop {
        let before = SetAsideCounts::of(runs);
        let result = read();
        if result.is_ok() || SetAsideCounts::of(runs) == before {
            return result;
        }
    }
}

/// The number of attempts at cells that were set aside, for each of some runs.
#[derive(PartialEq, Eq)]
pub struct SetAsideCounts(Vec<Option<usize>>);

impl SetAsideCounts {
    /// Counts the attempts of some runs.
    pub fn of(runs: &[impl AsRef<Path>]) -> Self {
        let count = |run: &Path| RunDir::open(run).ok()?.set_aside_count().ok();
        Self(runs.iter().map(|run| count(run.as_ref())).collect())
    }

    /// Fails if an attempt was set aside since: then missing or damaged data was only moved.
    ///
    /// # Errors
    /// Another process resumed a run.
    pub fn refuse_changes(&self, runs: &[impl AsRef<Path>]) -> anyhow::Result<()> {
        anyhow::ensure!(
            *self == Self::of(runs),
            "another process resumed the run while it was read; try again"
        );
        Ok(())
    }
}

/// Reads the figures of runs. Fails if data is missing or damaged because an attempt at a cell was
/// set aside meanwhile; see [`read_until_stable`].
///
/// # Errors
/// A record cannot be read, or another process resumed its run.
pub fn figures<T: Send>(
    runs: &[RunDir],
    take: impl Fn(&mut Row) -> T + Sync,
) -> anyhow::Result<(Figures, Vec<T>)> {
    let paths: Vec<&Path> = runs.iter().map(RunDir::path).collect();
    let before = SetAsideCounts::of(&paths);
    let (figures, taken) = analysis::figures::figures_and(runs, take)?;

    if !figures.missing.is_empty() || !figures.damages.is_empty() {
        before.refuse_changes(&paths)?;
    }

    Ok((figures, taken))
}

/// Returns the error that the runs lack a step, with the known steps, the most similar first.
pub fn unknown_step(unknown: &str, mut steps: Vec<&str>) -> UsageError {
    let help = did_you_mean(&mut steps, unknown, "steps", ListedNames::MostSimilar);
    UsageError::new(format!("the run has no step `{unknown}`"), help)
}

/// Keeps only the `wanted` steps.
///
/// # Errors
/// The figures lack one of them.
pub fn keep_steps(figures: &mut Figures, wanted: &[String]) -> anyhow::Result<()> {
    check_steps(figures, wanted)?;
    figures.retain_steps(wanted);
    Ok(())
}

/// Refuses a step that the figures don't have.
///
/// # Errors
/// The unknown step, with those that are known.
pub fn check_steps(figures: &Figures, wanted: &[String]) -> Result<(), UsageError> {
    // A run may have exact cells alone.
    let exact = figures.exact.iter().map(|step| &step.row);
    let rows = figures.rows.iter().chain(&figures.missing).chain(exact);
    let steps = distinct(rows.map(|row| row.step.as_str()));

    match wanted.iter().find(|step| !steps.contains(&step.as_str())) {
        Some(unknown) => Err(unknown_step(unknown, steps)),
        None => Ok(()),
    }
}

/// Returns the status that engines reported after each step, or only after these steps, with a heading
/// for the step and the cell.
///
/// # Errors
/// A record cannot be read.
pub fn engine_statuses(
    directory: &RunDir,
    run: &Run,
    steps: &[String],
) -> anyhow::Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for cell in &run.cells {
        for step in directory.cell(cell)?.read_steps()? {
            let name = &step.step().name;
            if !steps.is_empty() && !steps.contains(name) {
                continue;
            }

            if let Some(text) = step.engine_status()? {
                texts.push((format!("{name} of {}", cell.name()), text));
            }
        }
    }

    Ok(texts)
}

/// Returns the two targets of `--between`, which must be among `targets`.
pub fn pair_of<'a>(
    pair: &'a [String],
    targets: impl Iterator<Item = &'a str>,
) -> anyhow::Result<(&'a str, &'a str)> {
    let mut targets: Vec<&str> = targets.collect();
    let [a, b] = pair else {
        unreachable!("the command line has two names or none");
    };

    for name in [a, b] {
        if !targets.contains(&name.as_str()) {
            let help = did_you_mean(&mut targets, name, "targets", ListedNames::MostSimilar);
            return Err(UsageError::new(format!("unknown target `{name}`"), help).into());
        }
    }

    Ok((a, b))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use record::CellRef;

    use super::*;

    #[test]
    fn runs_are_read_again_only_if_an_attempt_was_set_aside_meanwhile() {
        let results = tempfile::tempdir().unwrap();
        let run = RunDir::create(results.path(), &record::Run::default()).unwrap();
        let cell = CellRef::new("a.x", "insert", None, 1, 1);
        let begin = || {
            let begun = run.begin_cell(&cell).unwrap();
            begun.write(&record::Cell::default()).unwrap();
        };
        begin();
        let reads = Cell::new(0);
        let fails_while = |happens: &dyn Fn(u32)| {
            reads.set(0);
            let read = || {
                reads.set(reads.get() + 1);
                anyhow::ensure!(reads.get() > 2, "it is gone");
                Ok(())
            };
            let result = read_until_stable(&[run.path()], || {
                happens(reads.get());
                read()
            });
            (result.is_ok(), reads.get())
        };
        assert_eq!(fails_while(&|_| {}), (false, 1));
        assert_eq!(fails_while(&|_| begin()), (true, 3));
        let once = |read| {
            if read == 0 {
                begin()
            }
        };
        assert_eq!(fails_while(&once), (false, 2));
    }
}
