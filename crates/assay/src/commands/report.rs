//! `assay report`: writes the results of runs as one HTML file.

use std::path::{Path, PathBuf};

use analysis::compat::{Recorded, check_repeats};
use analysis::figures::Figures;
use anyhow::Context;
use inquiry::compare::{differences, with_bases};
use inquiry::reading::{check_steps, figures};
use record::{Run, RunDir};
use report::{CellRecord, Curves, Page, PlotFiles, Source};
use runner::failure::UsageError;

use crate::cli::ReportArgs;
use crate::damages::exit_of_reading;
use crate::exit::Exit;
use crate::output::{eprint_line, print, print_note};

/// The report in a run's directory.
const REPORT_FILE: &str = "report.html";

/// Writes the HTML report of one or several runs.
pub fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let directories = args.runs.iter().map(RunDir::open).collect::<Result<Vec<_>, _>>()?;
    let runs = Recorded::read(&directories)?;
    let notes = check_repeats(&runs).map_err(UsageError::from)?;
    let (mut figures, curves) = figures(&directories, Curves::take)?;
    check_steps(&figures, &args.steps)?;

    let mut sources = sources(&directories)?;
    if let Some(first) = sources.first_mut().filter(|_| !args.bases.is_empty()) {
        let shown = with_bases(&runs, &args.bases, &print_note)?;
        figures.settings.differences = differences(&directories, &shown)?;
        first.run.base = shown.base;
        first.run.bases = shown.bases;
    }

    let page = Page { sources: &sources, figures: &figures, curves: &curves, notes: &notes };
    let output = write_page(&directories[0], &page, args.output.as_deref())?;
    print(&format!("{}\n", output.display()))?;

    if let (Some(folder), Some(first)) = (&args.svg, sources.first()) {
        let files = PlotFiles { width: args.width.map(f64::from), steps: &args.steps };
        write_plots(&first.run, &figures, files, folder)?;
    }

    Ok(exit_of_reading(&figures))
}

/// Writes the report of a run with these figures and curves into its directory. Returns the file.
pub fn write_report(
    directory: &RunDir,
    figures: &Figures,
    curves: &[Curves],
) -> anyhow::Result<PathBuf> {
    let sources = sources(std::slice::from_ref(directory))?;
    write_page(directory, &Page { sources: &sources, figures, curves, notes: &[] }, None)
}

/// Writes a report to the file `output`, or into the directory of the first run. Returns the file.
fn write_page(first: &RunDir, page: &Page<'_>, output: Option<&Path>) -> anyhow::Result<PathBuf> {
    let html = report::html_page(page);
    let failed = "cannot write the report; `-o FILE` chooses another file";

    if let Some(output) = output {
        fs_err::write(output, html).context(failed)?;
        return Ok(output.to_owned());
    }

    let folder = first.path();
    record::replace_file(folder, REPORT_FILE, html.as_bytes()).context(failed)?;
    Ok(folder.join(REPORT_FILE))
}

/// Returns the report of `directories` with these figures and curves.
pub fn html_of(
    directories: &[RunDir],
    figures: &Figures,
    curves: &[Curves],
) -> anyhow::Result<String> {
    let sources = sources(directories)?;
    Ok(report::html_page(&Page { sources: &sources, figures, curves, notes: &[] }))
}

fn sources(directories: &[RunDir]) -> anyhow::Result<Vec<Source>> {
    directories.iter().map(source).collect()
}

/// Writes each plot of a report to a file.
fn write_plots(
    run: &Run,
    figures: &Figures,
    files: PlotFiles<'_>,
    folder: &Path,
) -> anyhow::Result<()> {
    let plots = report::plots(run, figures, files);
    if plots.is_empty() {
        eprint_line!(
            "warning: no plots were written: the run needs several targets, numbers of clients, or rates"
        );
        return Ok(());
    }

    fs_err::create_dir_all(folder).context("cannot write the plots")?;
    for (name, svg) in plots {
        let name = format!("{name}.svg");
        record::replace_file(folder, &name, svg.as_bytes()).context("cannot write the plots")?;
        print(&format!("{}\n", folder.join(name).display()))?;
    }

    Ok(())
}

fn source(directory: &RunDir) -> anyhow::Result<Source> {
    let run = directory.read_run()?;

    let mut cells = Vec::new();
    for cell in &run.cells {
        let directory = directory.cell(cell)?;
        // The figures report a cell that can't be read.
        if let Ok(cell) = directory.read() {
            let steps = directory.read_steps()?.iter().map(|step| step.step().clone()).collect();
            cells.push(CellRecord { cell, steps });
        }
    }

    Ok(Source { run, cells })
}
