//! The HTML report of runs: what it needs of their records, and the file.

use std::path::{Path, PathBuf};

use analysis::figures::Figures;
use anyhow::Context;
use record::RunDir;
use report::{CellRecord, Curves, Page, Source};

/// The report in a run's directory.
const REPORT_FILE: &str = "report.html";

/// Reads what a report shows of runs besides their figures.
///
/// # Errors
/// A record cannot be read.
pub fn sources(directories: &[RunDir]) -> anyhow::Result<Vec<Source>> {
    directories.iter().map(source).collect()
}

fn source(directory: &RunDir) -> anyhow::Result<Source> {
    let run = directory.read_run()?;

    let mut cells = Vec::new();
    for cell in &run.cells {
        let directory = directory.cell(cell)?;
        // The figures report a cell that cannot be read.
        if let Ok(cell) = directory.read() {
            let steps = directory.read_steps()?.iter().map(|step| step.step().clone()).collect();
            cells.push(CellRecord { cell, steps });
        }
    }

    Ok(Source { run, cells })
}

/// Returns the report of a run with these figures and curves.
///
/// # Errors
/// The record cannot be read.
pub fn html_of(directory: &RunDir, figures: &Figures, curves: &[Curves]) -> anyhow::Result<String> {
    let sources = [source(directory)?];
    Ok(report::html_page(&Page { sources: &sources, figures, curves, notes: &[] }))
}

/// Writes the report of a run with these figures and curves into its directory. Returns the file.
///
/// # Errors
/// The record cannot be read, or the file cannot be written.
pub fn write_report(
    directory: &RunDir,
    figures: &Figures,
    curves: &[Curves],
) -> anyhow::Result<PathBuf> {
    let html = html_of(directory, figures, curves)?;
    write_html(directory, &html, None)
}

/// Writes a report to the file `output`, or into the directory of the first run. Returns the file.
///
/// # Errors
/// The file cannot be written.
pub fn write_html(first: &RunDir, html: &str, output: Option<&Path>) -> anyhow::Result<PathBuf> {
    let failed = "cannot write the report; `-o FILE` chooses another file";
    if let Some(output) = output {
        fs_err::write(output, html).context(failed)?;
        return Ok(output.to_owned());
    }

    let folder = first.path();
    record::replace_file(folder, REPORT_FILE, html.as_bytes()).context(failed)?;
    Ok(folder.join(REPORT_FILE))
}
