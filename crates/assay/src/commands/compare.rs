//! `assay compare`: shows which targets are faster or slower than a base, how sure that is, and
//! why. It reads only run directories.

mod ci;
mod factors;
mod gate;
mod groups;
mod lines;
mod requirements;
mod steps;

use analysis::compat::{self, Recorded};
use analysis::{
    compare::{CompareOptions, Compared, EFFECT, THROUGHPUT, WORK},
    distinct,
    figures::{Figures, Row, Series},
};
use inquiry::reading::{check_steps, figures, retain_steps};
use record::{Run, RunDir};
use report::{ComparedRun, Comparison, json_text};
use runner::failure::UsageError;
use runner::similar::did_you_mean;
use words::Metric;

use self::groups::Group;
use self::lines::{Line, Runs};
use crate::cli::{CompareArgs, Format, METRIC_LIST};
use crate::damages::exit_of_reading;
use crate::exit::Exit;
use crate::output::{eprint_line, print, style};

/// Compares the targets of some runs.
pub fn compare(args: &CompareArgs) -> anyhow::Result<Exit> {
    if args.metrics.iter().any(|name| name == METRIC_LIST) {
        print(&report::metric_list(style()))?;
        return Ok(Exit::Ok);
    }

    ci::check(args)?;
    let (directories, runs) = open(args)?;
    let Prepared { shown, figures, notes } = prepare(&directories, &runs.recorded, args)?;
    let sources = sources(&runs);
    if !args.by.is_empty() {
        return factors::by_factor(args, &shown, &sources, figures, notes);
    }

    // With `--by-step`, targets are steps. The gate names them after `by_base` has taken `shown`.
    let shown_targets: Vec<String> = if args.by_step.is_empty() {
        Vec::new()
    } else {
        shown.targets.iter().map(|target| target.name.clone()).collect()
    };
    let mut groups = groups::by_base(&args.bases, shown, figures)?;
    if args.gate && groups.len() > 1 {
        let help = "run `assay compare --gate` once for each `--base`";
        let message = "`--gate` judges by one base, but several are given";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    let ComparedGroups { comparisons, printed, markdown } =
        compare_groups(args, &sources, &notes, &mut groups);
    print(&joined(printed)?)?;

    let mut exits = Vec::new();
    let mut judgements = Vec::new();
    match (groups.as_slice(), comparisons.as_slice()) {
        ([group], [compared]) if args.gate => {
            let lines = lines(&runs.recorded, args.by_run, &shown_targets);
            exits.push(gate::judge(args, &runs, &group.figures, compared, &lines));
            judgements.extend(ci::of_gate(args, &group.figures, compared, &lines));
        }
        // Without a gate, only damage to the records counts.
        _ => exits.extend(groups.iter().map(|group| exit_of_reading(&group.figures))),
    }

    for compared in &comparisons {
        exits.push(requirements::judge(&compared.requirements));
        judgements.extend(ci::of_requirements(&compared.requirements));
    }

    let run = &runs.recorded[0].run;
    let path = run.plan.path.as_deref().unwrap_or("assay");
    let plan = ci::Plan { name: &run.name, path };
    ci::write(args, plan, &judgements, &markdown)?;

    Ok(most_telling(&exits))
}

/// Returns the runs with their paths as names.
fn sources(runs: &Runs) -> Vec<ComparedRun<'_>> {
    let mut sources = Vec::new();
    for (path, recorded) in runs.paths.iter().zip(&runs.recorded) {
        sources.push(ComparedRun { name: path.display().to_string(), run: &recorded.run });
    }
    sources
}

/// The comparisons of all groups, and how they are shown.
struct ComparedGroups {
    comparisons: Vec<Compared>,
    printed: Vec<Printed>,
    /// All comparisons for a file of Markdown; empty if none is wanted.
    markdown: String,
}

/// Compares the targets of each group with its base.
fn compare_groups(
    args: &CompareArgs,
    sources: &[ComparedRun<'_>],
    notes: &[String],
    groups: &mut [Group],
) -> ComparedGroups {
    let mut all =
        ComparedGroups { comparisons: Vec::new(), printed: Vec::new(), markdown: String::new() };
    for Group { run, figures } in groups {
        // Effects rest on all steps, of which `compared_with` leaves those to show.
        let options = options(args, &run.base, figures);
        let effects = report::effects_of_matrices(figures, &options);
        let compared = compared_with(args, run, figures, notes.to_vec());
        let findings = analysis::explain::explain(figures, &compared);

        let comparison = Comparison {
            run,
            runs: sources,
            figures,
            compared: &compared,
            effects: &effects,
            findings: &findings,
        };
        all.printed.push(match &args.why {
            Some(step) => Printed::Text(report::why(&comparison, step)),
            None => formatted(args.format, &comparison),
        });
        if args.markdown.is_some() {
            all.markdown += &report::compared_markdown(&comparison);
        }
        all.comparisons.push(compared);
    }

    all
}

/// Formats the comparison of one group.
fn formatted(format: Format, comparison: &Comparison<'_>) -> Printed {
    match format {
        Format::Table => Printed::Text(report::compared(comparison, style())),
        Format::Markdown => Printed::Text(report::compared_markdown(comparison)),
        Format::Csv => Printed::Lines(report::compared_csv(comparison)),
        Format::Json => Printed::Json(report::compared_json(comparison)),
    }
}

/// Returns the exit code that says most: what is shown to be worse outweighs what is not certain.
fn most_telling(exits: &[Exit]) -> Exit {
    let order = [Exit::Regressed, Exit::Invalid, Exit::Failed];
    order.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Ok)
}

/// A comparison in an output format.
enum Printed {
    Text(String),
    /// Lines with a header line.
    Lines(String),
    Json(serde_json::Value),
}

/// Joins several comparisons into one text.
fn joined(mut all: Vec<Printed>) -> anyhow::Result<String> {
    if let [Printed::Json(json)] = all.as_slice() {
        return Ok(json_text(json)?);
    }

    // Only the first comparison of CSV keeps its header line.
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

    if groups.is_empty() {
        Ok(text)
    } else {
        Ok(json_text(&serde_json::json!({ "groups": groups }))?)
    }
}

/// The result of a comparison.
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
    let Prepared { shown, mut figures, notes } = prepare(directories, recorded, args)?;
    let compared = compared_with(args, &shown, &mut figures, notes);
    Ok(Answer { shown, figures, compared })
}

/// Compares all steps, then leaves only those to show in the figures as well.
fn compared_with(
    args: &CompareArgs,
    shown: &Run,
    figures: &mut Figures,
    notes: Vec<String>,
) -> Compared {
    let mut compared = analysis::compare::compare(figures, &options(args, &shown.base, figures));
    compared.notes.extend(notes);

    if !args.steps.is_empty() {
        retain_steps(figures, &args.steps);
    }

    compared
}

/// The input of a comparison.
struct Prepared {
    shown: Run,
    figures: Figures,
    /// Remarks on how the runs differ.
    notes: Vec<String>,
}

/// Reads the input of a comparison. Refuses runs that can't be compared.
fn prepare(
    directories: &[RunDir],
    recorded: &[Recorded],
    args: &CompareArgs,
) -> anyhow::Result<Prepared> {
    let checked =
        if args.by_run { compat::check_by_run(recorded) } else { compat::check_repeats(recorded) };
    let mut notes = checked.map_err(UsageError::from)?;

    // The seconds of many long steps would take gigabytes; the rows have their totals.
    let (mut figures, _) = figures(directories, |row| row.series = Series::default())?;
    let by_step = if args.by_step.is_empty() {
        None
    } else {
        Some(steps::by_step(&recorded[0].run, &mut figures, &args.by_step)?)
    };
    check_steps(&figures, &args.steps)?;
    check_steps(&figures, args.why.as_slice())?;
    check_metrics(&figures, args)?;
    requirements::check(&figures, &args.requirements)?;

    let shown = if let Some((shown, of_steps)) = by_step {
        notes.extend(of_steps);
        shown
    } else if args.by_run {
        compat::by_run(recorded, &mut figures).map_err(UsageError::from)?
    } else {
        let base = args.bases.first().map(|base| base.target.as_str());
        let shown = merged(recorded, base)?;
        // A requirement needs no base.
        if args.requirements.is_empty() {
            refuse_single_target(recorded)?;
        }
        shown
    };

    Ok(Prepared { shown, figures, notes })
}

/// Refuses a metric that no step has, of those to show.
fn check_metrics(figures: &Figures, args: &CompareArgs) -> Result<(), UsageError> {
    let mut rows: Vec<&Row> = figures.rows.iter().collect();
    rows.retain(|row| args.steps.is_empty() || args.steps.contains(&row.step));
    for name in args.metrics.iter().filter(|name| *name != THROUGHPUT) {
        if !rows.iter().any(|row| row.metric(name).is_some()) {
            let message = format!("none of the compared steps has the metric `{name}`");
            return Err(UsageError::new(message, lacking_metric(&rows, name)));
        }
    }

    Ok(())
}

/// Returns the help for a metric that none of the rows has.
fn lacking_metric(rows: &[&Row], name: &str) -> Option<String> {
    let needed = rows.iter().find_map(|row| analysis::figures::operations_needed(row, name));
    if let Some(needed) = needed {
        return Some(format!("`{name}` needs at least {needed} operations in a step"));
    }

    if let Some((time, kind)) = name.split_once(':') {
        let mut kinds = distinct(rows.iter().flat_map(|row| row.ops.keys().map(String::as_str)));
        let help = did_you_mean(&mut kinds, kind, "kinds of operation");
        return help.map(|kinds| format!("write `{time}:KIND`; {kinds}"));
    }

    // Published reports call rates `p50` and `p99`, which short steps don't have.
    if let Some(time) = Metric::named(&format!("response_{name}")) {
        return Some(format!(
            "`{name}` is a rate, and needs steps of at least 10 seconds; the time of operations is `{}`",
            time.name
        ));
    }

    let mut present: Vec<&str> = Metric::all().map(|metric| metric.name).collect();
    present.retain(|name| rows.iter().any(|row| row.metric(name).is_some()));
    did_you_mean(&mut present, name, "metrics")
}

fn open(args: &CompareArgs) -> anyhow::Result<(Vec<RunDir>, Runs)> {
    let opened: Result<Vec<_>, _> = args.runs.iter().map(RunDir::open).collect();
    let directories = opened?;
    if args.by_run && directories.len() < 2 {
        let help = "give the base run first, then the runs to compare with it";
        return Err(UsageError::new("`--by-run` needs at least two runs", Some(help.into())).into());
    }

    let runs = Runs { paths: args.runs.clone(), recorded: Recorded::read(&directories)? };
    Ok((directories, runs))
}

/// Returns a run with the targets of all runs, merged by name, and the base.
fn merged(runs: &[Recorded], base: Option<&str>) -> anyhow::Result<Run> {
    let mut shown = runs.first().map(|first| first.run.clone()).unwrap_or_default();
    for target in runs.iter().flat_map(|recorded| &recorded.run.targets) {
        if shown.targets.iter().all(|known| known.name != target.name) {
            shown.targets.push(target.clone());
        }
    }

    // A target of the plan may have no cell in these runs.
    let is_measured = |target: &str| runs.iter().any(|recorded| recorded.run.has_cell_of(target));
    if let Some(base) = base {
        let mut names: Vec<&str> =
            shown.targets.iter().map(|target| target.name.as_str()).collect();
        names.retain(|name| is_measured(name));
        if !names.contains(&base) {
            let help = did_you_mean(&mut names, base, "targets");
            let message = format!("unknown target `{base}` in `--base`");
            return Err(UsageError::new(message, help).into());
        }
        shown.base = base.to_owned();
        return Ok(shown);
    }

    let measured = shown.measured_base(is_measured).map(str::to_owned);
    if let Some(measured) = measured.filter(|measured| *measured != shown.base) {
        eprint_line!(
            "note: the plan's base, `{}`, was not measured: `{measured}` takes its place; `--base TARGET` \
             chooses another",
            shown.base
        );
        shown.base = measured;
    }

    Ok(shown)
}

fn refuse_single_target(runs: &[Recorded]) -> Result<(), UsageError> {
    let cells = runs.iter().flat_map(|recorded| &recorded.run.cells);
    let targets = distinct(cells.map(|cell| cell.key.target.as_str()));
    let [only] = targets[..] else {
        return Ok(());
    };

    let message = format!("there is nothing to compare: `{only}` is the only target");
    let help = "add a run of another target, or compare two runs of this target with `--by-run`; `assay show` and \
                `assay report` show one target";
    Err(UsageError::new(message, Some(help.into())))
}

/// Returns the smallest change that matters: the given one, or that of the runs' plans.
fn effect(args: &CompareArgs, figures: &Figures) -> f64 {
    let given = args.effect.map(|percent| percent / 100.0);
    given.or(figures.effect).unwrap_or(EFFECT)
}

fn options(args: &CompareArgs, base: &str, figures: &Figures) -> CompareOptions {
    let mut metrics = analysis::compare::costs(figures);
    for threshold in &args.thresholds {
        // Throughput and work are compared in any case.
        let Some(name) = &threshold.metric else { continue };
        if name != THROUGHPUT && name != WORK && !metrics.contains(name) {
            metrics.push(name.clone());
        }
    }

    CompareOptions {
        base: base.to_owned(),
        effect: effect(args, figures),
        error_rate: args.error_rate / 100.0,
        metrics,
        shown_metrics: args.metrics.clone(),
        requirements: args.requirements.clone(),
        steps: args.steps.clone(),
        ..CompareOptions::default()
    }
}

/// Returns a line for each cell. If steps are compared, each cell has a line for each of `steps`.
fn lines<'a>(runs: &'a [Recorded], by_run: bool, steps: &[String]) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for (run, recorded) in runs.iter().enumerate() {
        for cell in &recorded.run.cells {
            let keys = match (by_run, steps) {
                (true, _) => vec![compat::key_by_run(run, &cell.key)],
                (false, []) => vec![cell.key.clone()],
                (false, steps) => {
                    let keys = steps.iter().map(|step| compat::key_by_step(step, &cell.key));
                    keys.collect()
                }
            };
            lines.extend(keys.into_iter().map(|key| Line { key, run, cell }));
        }
    }
    lines
}
