//! `assay show` and `assay report`: what a run came to, from its directory alone.

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use record::{RunDir, Status};
use report::{CellRecord, Source, TableStyle};

use crate::cli::{Format, ReportArgs, ShowArgs};
use crate::outcome::Exit;

/// Prints the tables of a run.
pub fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let directory = RunDir::open(&args.run)?;
    let run = directory.read_run()?;
    let figures = analysis::figures(std::slice::from_ref(&directory))?;
    let text = match args.format {
        Format::Table => report::tables(&run, &figures, style()),
        Format::Json => {
            let mut text = serde_json::to_string_pretty(&analysis::json(&run, &figures))?;
            text.push('\n');
            text
        }
        Format::Csv => report::csv(&figures),
    };
    print(&text)?;
    Ok(Exit::Ok)
}

/// The tables that end a run.
pub fn brief(directory: &RunDir) -> anyhow::Result<String> {
    let run = directory.read_run()?;
    let figures = analysis::figures(std::slice::from_ref(directory))?;
    Ok(report::tables_brief(&run, &figures, style()))
}

/// Writes the HTML report of one or several runs.
pub fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let directories = args
        .runs
        .iter()
        .map(RunDir::open)
        .collect::<Result<Vec<_>, _>>()?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None => directories[0].path().join("report.html"),
    };
    write_report(&directories, &output)?;
    print(&format!("{}\n", output.display()))?;
    Ok(Exit::Ok)
}

/// Writes the report of `directories` to the file `output`.
pub fn write_report(directories: &[RunDir], output: &Path) -> anyhow::Result<()> {
    let figures = analysis::figures(directories)?;
    let sources = directories
        .iter()
        .map(source)
        .collect::<anyhow::Result<Vec<_>>>()?;
    fs_err::write(output, report::html(&sources, &figures)).context("the report can't be written")
}

fn source(directory: &RunDir) -> anyhow::Result<Source> {
    let run = directory.read_run()?;
    let mut cells = Vec::new();
    for cell in &run.cells {
        let directory = directory.cell(cell)?;
        if directory.exists() {
            let steps = directory
                .read_steps()?
                .iter()
                .map(|step| step.step().clone())
                .collect();
            cells.push(CellRecord {
                cell: directory.read()?,
                steps,
            });
        }
    }
    Ok(Source { run, cells })
}

/// How good the results of a run are, as an exit code.
pub fn exit_of(directory: &RunDir) -> anyhow::Result<Exit> {
    let run = directory.read_run()?;
    let mut exit = match run.status {
        Status::Interrupted => Exit::Interrupted,
        Status::Complete => Exit::Ok,
        Status::Incomplete | Status::Failed => Exit::Failed,
    };
    if exit == Exit::Ok {
        // What the record says of itself is not enough: it may contradict itself.
        let figures = analysis::figures(std::slice::from_ref(directory))?;
        if figures.rows.iter().any(|row| !row.valid) {
            exit = Exit::Invalid;
        }
    }
    Ok(exit)
}

fn style() -> TableStyle {
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
    }
}

/// Prints to stdout; a reader that has gone is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("stdout can't be written"),
    }
}
