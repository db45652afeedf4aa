//! Reads runs whose directories somebody may be working at.

use std::path::Path;

use analysis::{Figures, Row, distinct};
use record::RunDir;

use crate::outcome::{Exit, UsageError};
use crate::output::complain;

/// Reads runs, and once more where that fails because somebody goes on with one of them: an attempt at a cell that was
/// being read was put aside.
pub fn steadily<T>(
    runs: &[impl AsRef<Path>],
    read: impl Fn() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    loop {
        let before = PutAside::count(runs);
        let result = read();
        if result.is_ok() || PutAside::count(runs) == before {
            return result;
        }
    }
}

/// How many attempts at cells of some runs were put aside.
#[derive(PartialEq, Eq)]
pub struct PutAside(Vec<Option<usize>>);

impl PutAside {
    pub fn count(runs: &[impl AsRef<Path>]) -> Self {
        let count = |run: &Path| RunDir::open(run).ok()?.set_aside_count().ok();
        Self(runs.iter().map(|run| count(run.as_ref())).collect())
    }

    /// Fails where an attempt was put aside since: what is missing or damaged now was merely moved.
    pub fn refuse_more(&self, runs: &[impl AsRef<Path>]) -> anyhow::Result<()> {
        anyhow::ensure!(
            *self == Self::count(runs),
            "an attempt at a cell was put aside while it was read"
        );
        Ok(())
    }
}

/// Reads the figures of runs. Fails where a part is missing or damaged since an attempt at a cell was put aside meanwhile:
/// see [`steadily`].
pub fn figures<T: Send>(
    runs: &[RunDir],
    take: impl Fn(&mut Row) -> T + Sync,
) -> anyhow::Result<(Figures, Vec<T>)> {
    let paths: Vec<&Path> = runs.iter().map(RunDir::path).collect();
    let before = PutAside::count(&paths);
    let (figures, taken) = analysis::figures_and(runs, take)?;
    if !figures.missing.is_empty() || !figures.damages.is_empty() {
        before.refuse_more(&paths)?;
    }
    Ok((figures, taken))
}

/// Says what of a record is damaged, and which exit code it means: the rest of it is shown all the same.
pub fn exit_of_reading(figures: &Figures) -> Exit {
    for damage in &figures.damages {
        complain!("error: {}", report::terminal_text(damage));
    }
    match figures.damages.is_empty() {
        true => Exit::Ok,
        false => Exit::Failed,
    }
}

/// Leaves out all steps but those that are asked for.
pub fn keep_steps(figures: &mut Figures, wanted: &[String]) -> anyhow::Result<()> {
    let rows = figures.rows.iter().chain(&figures.missing);
    let steps = distinct(rows.map(|row| row.step.as_str()));
    if let Some(unknown) = wanted.iter().find(|step| !steps.contains(&step.as_str())) {
        return Err(UsageError::new(
            format!("the run has no step `{unknown}`"),
            Some(format!("steps here: {}", steps.join(", "))),
        )
        .into());
    }
    figures.rows.retain(|row| wanted.contains(&row.step));
    figures.missing.retain(|row| wanted.contains(&row.step));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use record::CellRef;

    use super::*;

    #[test]
    fn what_fails_while_an_attempt_is_put_aside_is_read_again_and_nothing_else() {
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
            let result = steadily(&[run.path()], || {
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
