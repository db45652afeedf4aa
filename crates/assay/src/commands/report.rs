//! `assay report`: writes the results of runs as one HTML file.

use std::path::Path;

use analysis::compat::{Recorded, VariantSides, check_repeats};
use analysis::figures::Figures;
use anyhow::Context;
use inquiry::compare::{by_variant, differences, with_bases};
use inquiry::page;
use inquiry::reading::{check_steps, figures};
use record::{Run, RunDir};
use report::{Curves, Page, PlotFiles, variants_as_targets};
use runner::failure::UsageError;

use crate::cli::ReportArgs;
use crate::damages::exit_of_reading;
use crate::exit::Exit;
use crate::output::{eprint_line, print, print_note};

/// Writes the HTML report of one or several runs.
pub fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let directories = args.runs.iter().map(RunDir::open).collect::<Result<Vec<_>, _>>()?;
    let runs = Recorded::read(&directories)?;
    let notes = check_repeats(&runs).map_err(UsageError::from)?;
    let (mut figures, curves) = figures(&directories, Curves::take)?;
    check_steps(&figures, &args.steps)?;

    let mut sources = page::sources(&directories)?;
    let variants = VariantSides::of(runs.iter().map(|recorded| &recorded.run));
    let has_base = !args.bases.is_empty();
    if has_base && variants.are_all_there_is() {
        let shown = by_variant(&runs, &mut figures, &variants, &args.bases)?;
        variants_as_targets(&mut sources, &variants, &shown.base);
    } else if let Some(first) = sources.first_mut().filter(|_| has_base) {
        let shown = with_bases(&runs, &args.bases, &print_note)?;
        figures.settings.differences = differences(&directories, &shown)?;
        first.run.base = shown.base;
        first.run.bases = shown.bases;
    }

    let html = report::html_page(&Page {
        sources: &sources,
        figures: &figures,
        curves: &curves,
        notes: &notes,
    });
    let output = page::write_html(&directories[0], &html, args.output.as_deref())?;
    print(&format!("{}\n", output.display()))?;

    if let (Some(folder), Some(first)) = (&args.svg, sources.first()) {
        let files = PlotFiles { width: args.width.map(f64::from), steps: &args.steps };
        write_plots(&first.run, &figures, files, folder)?;
    }

    let paths: Vec<&Path> = directories.iter().map(RunDir::path).collect();
    Ok(exit_of_reading(&figures, &paths))
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
            "warning: no plots were written: no step of the run has two seconds of results"
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
