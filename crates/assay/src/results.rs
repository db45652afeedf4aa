//! `assay show` and `assay report`: what a run came to, from its directory alone.

use std::io::{IsTerminal, Write};
use std::path::Path;

use analysis::{Figures, Row, RunSettings};
use anyhow::Context;
use record::{Run, RunDir, Status};
use report::{CellRecord, Curves, Page, Source, TableStyle};

use crate::cli::{Format, ReportArgs, ShowArgs};
use crate::compare::same;
use crate::outcome::{Exit, UsageError, complain};

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
        let count = |run: &Path| RunDir::open(run).ok()?.put_aside_count().ok();
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

/// Prints the tables of a run.
pub fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let directory = RunDir::open(&args.run)?;
    let style = TableStyle {
        all_settings: args.settings,
        ..style()
    };
    if let Some(pair) = &args.between {
        return show_between(&directory, pair, args.format, style);
    }
    let run = directory.read_run()?;
    let (mut figures, _) = figures(std::slice::from_ref(&directory), |_| ())?;
    if !args.steps.is_empty() {
        keep_steps(&mut figures, &args.steps)?;
    }
    let text = match args.format {
        Format::Table => report::tables(&run, &figures, style),
        Format::Json => json_text(&analysis::json(&run, &figures))?,
        Format::Csv => report::csv(&figures),
        Format::Markdown => report::tables_markdown(&run, &figures, args.settings),
    };
    print(&text)?;
    Ok(exit_of_reading(&figures))
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
    let mut steps: Vec<&str> = Vec::new();
    for row in figures.rows.iter().chain(&figures.missing) {
        if !steps.contains(&row.step.as_str()) {
            steps.push(&row.step);
        }
    }
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

/// Prints in which settings two targets of a run differ.
fn show_between(
    directory: &RunDir,
    pair: &[String],
    format: Format,
    style: TableStyle,
) -> anyhow::Result<Exit> {
    let settings = RunSettings::read(directory)?;
    let (a, b) = pair_of(pair, settings.targets())?;
    let settings = settings.between(a, b);
    let text = match format {
        Format::Table => report::differences(&settings, style),
        Format::Json => json_text(&analysis::settings_json(&settings))?,
        Format::Csv | Format::Markdown => {
            return Err(UsageError::new(
                "what differs between two targets is no table of steps",
                Some("use `--format table` or `--format json`".into()),
            )
            .into());
        }
    };
    print(&text)?;
    Ok(Exit::Ok)
}

/// The two targets that were named, if there are such.
pub fn pair_of<'a>(
    pair: &'a [String],
    targets: impl Iterator<Item = &'a str>,
) -> anyhow::Result<(&'a str, &'a str)> {
    let targets: Vec<&str> = targets.collect();
    let [a, b] = pair else {
        unreachable!("the command line has two names or none");
    };
    for name in [a, b] {
        if !targets.contains(&name.as_str()) {
            return Err(UsageError::new(
                format!("`{name}` is no target"),
                Some(format!("targets here: {}", targets.join(", "))),
            )
            .into());
        }
    }
    Ok((a, b))
}

/// JSON for scripts that people can read as well.
pub fn json_text(value: &serde_json::Value) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

/// The tables that end a run.
pub fn brief(run: &Run, figures: &Figures) -> String {
    report::tables_brief(run, figures, style())
}

/// Writes the HTML report of one or several runs.
pub fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let directories = args
        .runs
        .iter()
        .map(RunDir::open)
        .collect::<Result<Vec<_>, _>>()?;
    let runs = directories
        .iter()
        .map(RunDir::read_run)
        .collect::<Result<Vec<_>, _>>()?;
    let notes = same::refuse_no_repeats(&directories, &runs)?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None => directories[0].path().join("report.html"),
    };
    let (figures, curves) = figures(&directories, Curves::take)?;
    write_report(&directories, &figures, &curves, &notes, &output)?;
    print(&format!("{}\n", output.display()))?;
    Ok(exit_of_reading(&figures))
}

/// Writes the report of `directories`, whose figures these are, with the curves of their rows, to the file `output`. `notes`
/// are what should be known of several runs.
pub fn write_report(
    directories: &[RunDir],
    figures: &Figures,
    curves: &[Curves],
    notes: &[String],
    output: &Path,
) -> anyhow::Result<()> {
    let sources = directories
        .iter()
        .map(source)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let page = Page {
        sources: &sources,
        figures,
        curves,
        notes,
    };
    fs_err::write(output, report::html_page(&page)).context("the report can't be written")
}

fn source(directory: &RunDir) -> anyhow::Result<Source> {
    let run = directory.read_run()?;
    let mut cells = Vec::new();
    for cell in &run.cells {
        let directory = directory.cell(cell)?;
        // One that can't be read is told among the figures.
        if let Ok(cell) = directory.read() {
            let steps = directory
                .read_steps()?
                .iter()
                .map(|step| step.step().clone())
                .collect();
            cells.push(CellRecord { cell, steps });
        }
    }
    Ok(Source { run, cells })
}

/// How good the results of a run are, as an exit code.
pub fn exit_of(run: &Run, figures: &Figures) -> Exit {
    match run.status {
        Status::Interrupted => Exit::Interrupted,
        // What the record says of itself is not enough: it may contradict itself.
        Status::Complete if figures.rows.iter().any(|row| !row.valid) => Exit::Invalid,
        Status::Complete => Exit::Ok,
        Status::Incomplete | Status::Failed => Exit::Failed,
    }
}

pub fn style() -> TableStyle {
    let terminal = std::io::stdout().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let width = || {
        rustix::termios::tcgetwinsize(std::io::stdout())
            .ok()
            .map(|size| usize::from(size.ws_col))
    };
    TableStyle {
        colour,
        width: if terminal {
            width().filter(|&width| width > 0)
        } else {
            None
        },
        all_settings: false,
    }
}

/// Prints to stdout; a reader that has gone is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("stdout can't be written"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use record::CellRef;

    use super::*;

    #[test]
    fn what_fails_while_an_attempt_is_put_aside_is_read_again_and_nothing_else() {
        let results = tempfile::tempdir().unwrap();
        let run = RunDir::create(results.path(), &Run::default()).unwrap();
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
