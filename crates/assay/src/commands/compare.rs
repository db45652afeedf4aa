//! `assay compare`: which targets are faster or slower than a base, how surely, and why; from run directories alone.

mod factors;
mod gate;
mod groups;
mod steps;

use std::path::PathBuf;

use analysis::compat::{self, Recorded};
use analysis::{CompareOptions, Compared, Figures, Series, THROUGHPUT};
use record::{CellKey, CellRef, Run, RunDir};
use report::{ComparedRun, Comparison};
use words::{METRICS, Metric};

use self::groups::Part;
use crate::cli::{CompareArgs, Format};
use crate::outcome::{Exit, UsageError, most_alike_first};
use crate::output::{json_text, print, style};
use crate::runs::{exit_of_reading, figures, keep_steps};

/// The nearest metrics that a refusal names.
const METRICS_NAMED_MAX: usize = 10;

/// Runs that are compared.
struct Runs {
    paths: Vec<PathBuf>,
    recorded: Vec<Recorded>,
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
    let Prepared {
        shown,
        figures,
        notes,
    } = prepare(&directories, &runs.recorded, args)?;
    let names = runs.paths.iter().map(|path| path.display().to_string());
    let sources: Vec<ComparedRun<'_>> = names
        .zip(&runs.recorded)
        .map(|(name, Recorded { run, .. })| ComparedRun { name, run })
        .collect();
    if !args.by.is_empty() {
        return factors::by_factor(args, &shown, &sources, &figures, notes);
    }
    let shown_targets: Vec<String> = match args.by_step.is_empty() {
        true => Vec::new(),
        false => shown.targets.iter().map(|it| it.name.clone()).collect(),
    };
    let parts = groups::parts(&args.bases, shown, figures)?;
    if args.gate && parts.len() > 1 {
        let help = "give it once for each base";
        return Err(UsageError::new("`--gate` judges by one base", Some(help.into())).into());
    }
    let compared = |Part { run, figures }: &Part| judged(args, run, figures, notes.clone());
    let compared: Vec<Compared> = parts.iter().map(compared).collect();
    let mut printed = Vec::new();
    for (Part { run, figures }, compared) in parts.iter().zip(&compared) {
        let findings = analysis::explain(figures, compared);
        let comparison = Comparison {
            run,
            runs: &sources,
            figures,
            compared,
            findings: &findings,
        };
        printed.push(match args.format {
            Format::Table => Printed::Text(report::compared(&comparison, style())),
            Format::Markdown => Printed::Text(report::compared_markdown(&comparison)),
            Format::Csv => Printed::Lines(report::compared_csv(&comparison)),
            Format::Json => Printed::Json(report::compared_json(&comparison)),
        });
    }
    print(&together_printed(printed)?)?;
    if let ([Part { figures, .. }], [compared], true) = (&*parts, &*compared, args.gate) {
        let lines = lines(&runs.recorded, args.by_run, &shown_targets);
        return Ok(gate::judge(args, &runs, figures, compared, &lines));
    }
    let exits = parts.iter().map(|part| exit_of_reading(&part.figures));
    Ok(exits.max().unwrap_or(Exit::Ok))
}

/// A comparison as it is printed.
enum Printed {
    Text(String),
    /// With a head.
    Lines(String),
    Json(serde_json::Value),
}

/// Returns several comparisons as one text.
fn together_printed(mut all: Vec<Printed>) -> anyhow::Result<String> {
    if let [Printed::Json(json)] = all.as_slice() {
        return json_text(json);
    }
    let (mut text, mut groups) = (String::new(), Vec::new());
    for (index, printed) in all.drain(..).enumerate() {
        match printed {
            Printed::Text(next) if index > 0 => text += &format!("\n{next}"),
            Printed::Lines(next) if index > 0 => {
                text += next.split_once('\n').map_or("", |(_, lines)| lines);
            }
            Printed::Text(first) | Printed::Lines(first) => text = first,
            Printed::Json(json) => groups.push(json),
        }
    }
    match groups.is_empty() {
        true => Ok(text),
        false => json_text(&serde_json::json!({ "groups": groups })),
    }
}

/// What comes of a comparison.
pub struct Answer {
    /// The targets of all runs, and the base.
    pub shown: Run,
    pub figures: Figures,
    pub compared: Compared,
}

/// Compares the targets of some runs with the base.
pub fn answer(
    directories: &[RunDir],
    recorded: &[Recorded],
    args: &CompareArgs,
) -> anyhow::Result<Answer> {
    let Prepared {
        shown,
        figures,
        notes,
    } = prepare(directories, recorded, args)?;
    Ok(Answer {
        compared: judged(args, &shown, &figures, notes),
        shown,
        figures,
    })
}

fn judged(args: &CompareArgs, shown: &Run, figures: &Figures, notes: Vec<String>) -> Compared {
    let mut compared = analysis::compare(figures, &options(args, &shown.base, figures));
    compared.notes.extend(notes);
    compared
}

/// What is to be compared, and what should be known of it.
struct Prepared {
    shown: Run,
    figures: Figures,
    notes: Vec<String>,
}

/// Reads what is to be compared; runs that can't be are refused.
fn prepare(
    directories: &[RunDir],
    recorded: &[Recorded],
    args: &CompareArgs,
) -> anyhow::Result<Prepared> {
    let notes = match args.by_run {
        true => compat::check_by_run(recorded),
        false => compat::check_repeats(recorded),
    };
    let mut notes = notes.map_err(UsageError::from)?;
    // Of many long steps the seconds take gigabytes, and what they come to is in the rows.
    let (mut figures, _) = figures(directories, |row| row.series = Series::default())?;
    let by_step = (!args.by_step.is_empty())
        .then(|| steps::by_step(&recorded[0].run, &mut figures, &args.by_step))
        .transpose()?;
    if !args.steps.is_empty() {
        keep_steps(&mut figures, &args.steps)?;
    }
    check_metrics(&figures, &args.metrics)?;
    let shown = if let Some((shown, of_steps)) = by_step {
        notes.extend(of_steps);
        shown
    } else if args.by_run {
        compat::by_run(recorded, &mut figures).map_err(UsageError::from)?
    } else {
        let base = args.bases.first().map(|base| base.target.as_str());
        together(recorded, base)?
    };
    Ok(Prepared {
        shown,
        figures,
        notes,
    })
}

/// Refuses a metric that no step has.
fn check_metrics(figures: &Figures, wanted: &[&'static str]) -> Result<(), UsageError> {
    let has = |name: &str| figures.rows.iter().any(|row| row.metric(name).is_some());
    let mut wanted = wanted.iter().filter(|name| **name != THROUGHPUT);
    let Some(lacking) = wanted.find(|name| !has(name)) else {
        return Ok(());
    };
    let mut there: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    there.retain(|name| has(name));
    most_alike_first(&mut there, lacking, |name| name);
    there.truncate(METRICS_NAMED_MAX);
    Err(UsageError::new(
        format!("no step that is compared has the metric `{lacking}`"),
        Some(format!(
            "metrics here, the nearest first: {}",
            there.join(", ")
        )),
    ))
}

fn open(args: &CompareArgs) -> anyhow::Result<(Vec<RunDir>, Runs)> {
    let opened: Result<Vec<_>, _> = args.runs.iter().map(RunDir::open).collect();
    let directories = opened?;
    if args.by_run && directories.len() < 2 {
        let help = "give the run that others are compared to first, then these";
        return Err(UsageError::new("`--by-run` takes two runs or more", Some(help.into())).into());
    }
    let runs = Runs {
        paths: args.runs.clone(),
        recorded: Recorded::read(&directories)?,
    };
    Ok((directories, runs))
}

/// The targets of all runs, of which those of one name are one, and the base.
fn together(runs: &[Recorded], base: Option<&str>) -> anyhow::Result<Run> {
    let runs = || runs.iter().map(|recorded| &recorded.run);
    let mut shown = runs().next().cloned().unwrap_or_default();
    for target in runs().flat_map(|run| &run.targets) {
        if shown.targets.iter().all(|known| known.name != target.name) {
            shown.targets.push(target.clone());
        }
    }
    if let Some(base) = base {
        shown.base = base.to_owned();
    }
    let cells = || runs().flat_map(|run| &run.cells);
    let mut names: Vec<&str> = shown.targets.iter().map(|it| it.name.as_str()).collect();
    names.retain(|name| cells().any(|cell| cell.key.target == *name));
    if !names.contains(&shown.base.as_str()) {
        let mut alike = names.clone();
        most_alike_first(&mut alike, &shown.base, |name| name);
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
        let help = "give a run of another target as well, or two runs of this one and `--by-run`; `assay report` draws one target \
                    over its clients";
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
        asked: args.metrics.clone(),
        ..CompareOptions::default()
    }
}

/// Returns which cells stand behind which line; where steps are compared each cell is behind one for each of `steps`.
fn lines<'a>(runs: &'a [Recorded], by_run: bool, steps: &[String]) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for (run, recorded) in runs.iter().enumerate() {
        for cell in &recorded.run.cells {
            let keys = match (by_run, steps) {
                (true, _) => vec![compat::key_by_run(run, &cell.key)],
                (false, []) => vec![cell.key.clone()],
                (false, steps) => {
                    let keys = steps.iter().map(|it| compat::key_by_step(it, &cell.key));
                    keys.collect()
                }
            };
            lines.extend(keys.into_iter().map(|key| Line { key, run, cell }));
        }
    }
    lines
}
