//! `assay report`: writes the results of runs as one HTML file.

use std::path::Path;

use analysis::Figures;
use analysis::compat::{Recorded, check_repeats};
use anyhow::Context;
use record::{Run, RunDir};
use report::{CellRecord, Curves, Page, Source};

use crate::cli::ReportArgs;
use crate::outcome::{Exit, UsageError};
use crate::output::{eprint_line, print};
use crate::runs::{exit_of_reading, figures};

/// Writes the HTML report of one or several runs.
pub fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let directories = args.runs.iter().map(RunDir::open).collect::<Result<Vec<_>, _>>()?;
    let runs = Recorded::read(&directories)?;
    let notes = check_repeats(&runs).map_err(UsageError::from)?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None => directories[0].path().join("report.html"),
    };
    let (figures, curves) = figures(&directories, Curves::take)?;
    write_report(&directories, &figures, &curves, &notes, &output)?;
    print(&format!("{}\n", output.display()))?;
    if let (Some(folder), Some(first)) = (&args.svg, runs.first()) {
        write_plots(&first.run, &figures, folder)?;
    }
    Ok(exit_of_reading(&figures))
}

/// Writes the report of `directories` with these figures, curves and notes to the file `output`.
pub fn write_report(
    directories: &[RunDir],
    figures: &Figures,
    curves: &[Curves],
    notes: &[String],
    output: &Path,
) -> anyhow::Result<()> {
    let sources = directories.iter().map(source).collect::<anyhow::Result<Vec<_>>>()?;
    let page = Page { sources: &sources, figures, curves, notes };
    fs_err::write(output, report::html_page(&page))
        .context("cannot write the report; `-o FILE` chooses another file")
}

/// Writes each plot of a report to a file.
fn write_plots(run: &Run, figures: &Figures, folder: &Path) -> anyhow::Result<()> {
    let plots = report::plots(run, figures);
    if plots.is_empty() {
        eprint_line!(
            "warning: no plots were written: the run needs several targets, numbers of clients, or rates"
        );
        return Ok(());
    }
    fs_err::create_dir_all(folder).context("cannot write the plots")?;
    for (name, svg) in plots {
        let file = folder.join(name).with_extension("svg");
        fs_err::write(&file, svg).context("cannot write the plots")?;
        print(&format!("{}\n", file.display()))?;
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
