//! `assay compare`: which targets are faster or slower than a base, how surely, and why; from run directories alone.

mod by_run;
mod gate;

use std::path::PathBuf;

use analysis::{CompareOptions, Figures, Series};
use record::{CellKey, CellRef, Run, RunDir};
use report::{ComparedRun, Comparison};
use words::Metric;

use crate::cli::{CompareArgs, Format};
use crate::outcome::{Exit, UsageError};
use crate::output::{json_text, print, style};
use crate::runs::{exit_of_reading, figures, keep_steps};
use crate::same;

/// Runs that are compared.
struct Runs {
    paths: Vec<PathBuf>,
    records: Vec<Run>,
}

/// Where the figures of a line come from.
struct Line<'a> {
    /// What it is shown as.
    key: CellKey,
    /// Which run has the cell, and the cell.
    run: usize,
    cell: &'a CellRef,
}

/// Compares the targets of some runs.
pub fn compare(args: &CompareArgs) -> anyhow::Result<Exit> {
    let (directories, runs) = open(args)?;
    let notes = match args.by_run {
        true => same::refuse_no_partners(&directories, &runs.records)?,
        false => same::refuse_no_repeats(&directories, &runs.records)?,
    };
    // Of many long steps the seconds take gigabytes, and what they come to is in the rows.
    let (mut figures, _) = figures(&directories, |row| row.series = Series::default())?;
    if !args.steps.is_empty() {
        keep_steps(&mut figures, &args.steps)?;
    }
    let shown = if args.by_run {
        by_run::tell_apart(&runs.records, &directories, &mut figures)?
    } else {
        together(&runs.records, args.base.as_deref())?
    };
    let mut compared = analysis::compare(&figures, &options(args, &shown.base, &figures));
    if args.by_run {
        by_run::say_once(&mut compared);
    }
    compared.notes.extend(notes);
    let findings = analysis::explain(&figures, &compared);
    let names = runs.paths.iter().map(|path| path.display().to_string());
    let sources: Vec<ComparedRun<'_>> = names
        .zip(&runs.records)
        .map(|(name, run)| ComparedRun { name, run })
        .collect();
    let comparison = Comparison {
        run: &shown,
        runs: &sources,
        figures: &figures,
        compared: &compared,
        findings: &findings,
    };
    let text = match args.format {
        Format::Table => report::compared(&comparison, style()),
        Format::Markdown => report::compared_markdown(&comparison),
        Format::Csv => report::compared_csv(&comparison),
        Format::Json => json_text(&report::compared_json(&comparison))?,
    };
    print(&text)?;
    if args.gate {
        let lines = lines(&runs.records, args.by_run);
        return Ok(gate::judge(args, &runs, &figures, &compared, &lines));
    }
    Ok(exit_of_reading(&figures))
}

fn open(args: &CompareArgs) -> anyhow::Result<(Vec<RunDir>, Runs)> {
    let mut directories = Vec::new();
    let mut records = Vec::new();
    for path in &args.runs {
        let directory = RunDir::open(path)?;
        records.push(directory.read_run()?);
        directories.push(directory);
    }
    if args.by_run && directories.len() < 2 {
        let help = "give the run that others are compared to first, then these";
        return Err(UsageError::new("`--by-run` takes two runs or more", Some(help.into())).into());
    }
    let paths = args.runs.clone();
    Ok((directories, Runs { paths, records }))
}

/// The targets of all runs, of which those of one name are one, and the base.
fn together(runs: &[Run], base: Option<&str>) -> anyhow::Result<Run> {
    let mut shown = runs[0].clone();
    for target in runs[1..].iter().flat_map(|run| &run.targets) {
        if shown.targets.iter().all(|known| known.name != target.name) {
            shown.targets.push(target.clone());
        }
    }
    if let Some(base) = base {
        shown.base = base.to_owned();
    }
    let cells = || runs.iter().flat_map(|run| &run.cells);
    let mut names: Vec<&str> = shown.targets.iter().map(|it| it.name.as_str()).collect();
    names.retain(|name| cells().any(|cell| cell.key.target == *name));
    if !names.contains(&shown.base.as_str()) {
        let mut alike = names.clone();
        let likeness = |name: &str| strsim::normalized_damerau_levenshtein(name, &shown.base);
        alike.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
        let alike = alike.join(", ");
        let (message, help) = match base {
            Some(base) => (
                format!("`--base {base}` is no target of these runs"),
                format!("targets here, the nearest first: {alike}"),
            ),
            None => (
                format!(
                    "the plan's base, `{}`, is in none of these runs",
                    shown.base
                ),
                format!("give another with `--base`: {alike}"),
            ),
        };
        return Err(UsageError::new(message, Some(help)).into());
    }
    if names.len() == 1 {
        let message = format!(
            "there is one target, `{}`, and nothing to compare it with",
            names[0]
        );
        let help = "give a run of another target as well, or two runs of this one and `--by-run`";
        return Err(UsageError::new(message, Some(help.into())).into());
    }
    Ok(shown)
}

fn options(args: &CompareArgs, base: &str, figures: &Figures) -> CompareOptions {
    let mut metrics = analysis::costs(figures);
    for threshold in &args.thresholds {
        let named = threshold.metric.as_deref().and_then(Metric::named);
        let named = named.map(|metric| metric.name);
        metrics.extend(named.filter(|metric| !metrics.contains(metric)));
    }
    CompareOptions {
        base: base.to_owned(),
        effect: args.effect / 100.0,
        error_rate: args.error_rate / 100.0,
        metrics,
        ..CompareOptions::default()
    }
}

/// Which cells stand behind which line.
fn lines(runs: &[Run], by_run: bool) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for (run, record) in runs.iter().enumerate() {
        for cell in &record.cells {
            let key = match by_run {
                true => by_run::key(run, &cell.key),
                false => cell.key.clone(),
            };
            lines.push(Line { key, run, cell });
        }
    }
    lines
}
