//! Compares the targets of some runs with a base, by the rules of `assay compare`.
//!
//! ```text
//! CompareRequest ─► Runs ─► Prepared ─► groups ─┬─► Compared    verdicts of each group
//!                            │ steps            └─► gate, requirements ─► Judged
//!                            └─► factors            effects of factors
//! ```

pub mod arguments;
pub mod factors;
pub mod gate;
mod groups;
mod lines;
pub mod requirements;
mod steps;
mod variants;

use std::path::PathBuf;

use analysis::compare::{
    BaseGroup, CompareOptions, Compared, EFFECT, Effects, Requirement, THROUGHPUT, WORK,
    groups_by_base,
};
use analysis::compat::{self, Recorded, VariantSides};
use analysis::distinct;
use analysis::explain::Finding;
use analysis::figures::{Figures, Row, Series};
use analysis::settings::{self, RunSettings};
use record::{RecordError, Run, RunDir};
use report::{ComparedRun, JudgementOutcome};
use runner::failure::UsageError;
use runner::similar::{ListedNames, did_you_mean};
use words::Metric;

use self::arguments::{Base, StepPattern, Threshold};
use crate::reading::{check_steps, figures};

use self::groups::set_bases;
pub use self::lines::{Line, Runs, Sides, lines_of};
pub use self::variants::by_variant;

/// A comparison of runs.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// The run directories.
    pub runs: Vec<PathBuf>,
    /// The base targets, each of all targets or of a group; none: that of the first run's plan.
    pub bases: Vec<Base>,
    /// Each target is compared with that of the same name in the first run.
    pub by_run: bool,
    /// Steps to compare with each other.
    pub by_step: Vec<StepPattern>,
    /// Factors whose effects are wanted.
    pub by: Vec<String>,
    /// Metrics to show as well.
    pub metrics: Vec<String>,
    /// Bounds that every target has to keep.
    pub requirements: Vec<Requirement>,
    /// The largest changes for the worse that the gate accepts.
    pub thresholds: Vec<Threshold>,
    /// The smallest change that matters, as a share; `None`: that of the runs' plans.
    pub effect: Option<f64>,
    /// The rate of errors over all comparisons of a table.
    pub error_rate: f64,
    /// The steps to show; none: all.
    pub steps: Vec<String>,
    /// The step whose intervals are explained.
    pub why: Option<String>,
}

impl Default for CompareRequest {
    fn default() -> Self {
        Self {
            runs: Vec::new(),
            bases: Vec::new(),
            by_run: false,
            by_step: Vec::new(),
            by: Vec::new(),
            metrics: Vec::new(),
            requirements: Vec::new(),
            thresholds: Vec::new(),
            effect: None,
            error_rate: CompareOptions::default().error_rate,
            steps: Vec::new(),
            why: None,
        }
    }
}

/// A judgment of a whole comparison, in words.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The outcome that says most: what is shown to be worse outweighs what is not certain.
    pub outcome: JudgementOutcome,
    /// The result, and without a clear one what to do, in lines for a terminal.
    pub lines: Vec<String>,
}

/// The result of a comparison with one base.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The targets that share the base.
    pub shown: Run,
    /// The figures of these targets, of the steps to show.
    pub figures: Figures,
    /// The comparisons with the base.
    pub compared: Compared,
}

/// Compares the targets of some runs with their bases: an answer for each base. `note` gets what a
/// reader should know about the bases.
///
/// # Errors
/// The runs cannot be read or compared, or lack what is asked for.
pub fn answers(
    directories: &[RunDir],
    recorded: &[Recorded],
    request: &CompareRequest,
    note: &dyn Fn(&str),
) -> anyhow::Result<Vec<Answer>> {
    let Prepared { shown, figures, notes, .. } = prepare(directories, recorded, request, note)?;
    let mut answers = Vec::new();
    for BaseGroup { run, mut figures, .. } in groups_by_base(shown, figures) {
        let compared = compared_with(request, &run, &mut figures, notes.clone());
        answers.push(Answer { shown: run, figures, compared });
    }
    Ok(answers)
}

/// Compares all steps, then leaves only those to show in the figures as well. `notes` are remarks on
/// how the runs differ.
fn compared_with(
    request: &CompareRequest,
    shown: &Run,
    figures: &mut Figures,
    notes: Vec<String>,
) -> Compared {
    let mut compared = analysis::compare::compare(figures, &options(request, &shown.base, figures));
    compared.notes.extend(notes);

    if !request.steps.is_empty() {
        figures.retain_steps(&request.steps);
    }

    compared
}

/// A comparison with one base, and what explains it.
pub struct Explained {
    /// The comparison.
    pub compared: Compared,
    /// The effects of factors.
    pub effects: Effects,
    /// The findings, the most important first.
    pub findings: Vec<Finding>,
}

/// Compares all steps, leaves only those to show in the figures as well, and explains these. `notes`
/// are remarks on how the runs differ.
pub fn explained(
    request: &CompareRequest,
    shown: &Run,
    figures: &mut Figures,
    notes: Vec<String>,
) -> Explained {
    // Effects rest on all steps, of which `compared_with` leaves those to show.
    let effects = report::effects_of_matrices(figures, &options(request, &shown.base, figures));
    let compared = compared_with(request, shown, figures, notes);
    let findings = analysis::explain::explain(figures, &compared);
    Explained { compared, effects, findings }
}

/// The input of a comparison.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The targets of all runs, and the base.
    pub shown: Run,
    /// Their figures.
    pub figures: Figures,
    /// Remarks on how the runs differ.
    pub notes: Vec<String>,
    /// The sides of the comparison.
    pub sides: Sides,
}

/// Reads the input of a comparison. `note` gets what a reader should know about the base.
///
/// # Errors
/// The runs cannot be read or compared, or lack what is asked for.
pub fn prepare(
    directories: &[RunDir],
    recorded: &[Recorded],
    request: &CompareRequest,
    note: &dyn Fn(&str),
) -> anyhow::Result<Prepared> {
    let checked = if request.by_run {
        compat::check_by_run(recorded)
    } else {
        compat::check_repeats(recorded)
    };
    let mut notes = checked.map_err(UsageError::from)?;
    // Runs with other rates are no repeats of each other.
    notes.extend(recorded[0].run.max_rates.iter().map(report::max_rate_sentence));

    // The seconds of many long steps would take gigabytes; the rows have their totals.
    let (mut figures, _) = figures(directories, |row| row.series = Series::default())?;
    // Pairs of steps have names of their own, which the checks below look for.
    let by_step = if request.by_step.is_empty() {
        None
    } else {
        Some(steps::by_step(&recorded[0].run, &mut figures, &request.by_step)?)
    };

    check_steps(&figures, &request.steps)?;
    check_steps(&figures, request.why.as_slice())?;
    check_metrics(&figures, request)?;
    requirements::check(&figures, &request.requirements)?;

    let (shown, sides) = if let Some((shown, of_steps)) = by_step {
        notes.extend(of_steps);
        let steps = shown.targets.iter().map(|target| target.name.clone()).collect();
        (shown, Sides::Steps(steps))
    } else if request.by_run {
        (compat::by_run(recorded, &mut figures).map_err(UsageError::from)?, Sides::Runs)
    } else if let Some(variants) = variants::to_compare(recorded, request) {
        let shown = variants::by_variant(recorded, &mut figures, &variants, &request.bases)?;
        notes.extend(variants.note().filter(|_| request.by.is_empty()));
        (shown, Sides::Variants(variants))
    } else {
        (by_target(directories, recorded, request, &mut figures, note)?, Sides::Targets)
    };
    Ok(Prepared { shown, figures, notes, sides })
}

/// Returns the targets of all runs, and their bases. If the request has variants as a factor, each of
/// them is a target of its own. `note` gets what a reader should know about the bases.
///
/// # Errors
/// The targets or variants cannot be compared, or a record cannot be read.
fn by_target(
    directories: &[RunDir],
    recorded: &[Recorded],
    request: &CompareRequest,
    figures: &mut Figures,
    note: &dyn Fn(&str),
) -> anyhow::Result<Run> {
    if let Some(variants) = variants::as_factor(recorded, request) {
        let targets = merged(recorded, &request.bases, note)?;
        return Ok(variants::with_factor(targets, figures, &variants, &request.bases)?);
    }

    let shown = if request.by.is_empty() {
        with_bases(recorded, &request.bases, note)?
    } else {
        // Each base of factors belongs to the matrix that it is part of.
        merged(recorded, &request.bases, note)?
    };
    let of_plan = &recorded[0].run;
    if (&shown.base, &shown.bases) != (&of_plan.base, &of_plan.bases) {
        figures.settings.differences = differences(directories, &shown)?;
    }
    // A requirement needs no base.
    if request.requirements.is_empty() {
        refuse_single_target(recorded)?;
    }

    Ok(shown)
}

/// Refuses a metric that no step has, of those to show.
fn check_metrics(figures: &Figures, request: &CompareRequest) -> Result<(), UsageError> {
    let mut rows: Vec<&Row> = figures.rows.iter().collect();
    rows.retain(|row| request.steps.is_empty() || request.steps.contains(&row.step));
    for name in request.metrics.iter().filter(|name| *name != THROUGHPUT) {
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
        let help = did_you_mean(&mut kinds, kind, "kinds of operation", ListedNames::MostSimilar);
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
    did_you_mean(&mut present, name, "metrics", ListedNames::MostSimilar)
}

/// Opens the runs of a request.
///
/// # Errors
/// A run cannot be read, or there are too few of them.
pub fn open(request: &CompareRequest) -> anyhow::Result<(Vec<RunDir>, Runs)> {
    let opened: Result<Vec<_>, _> = request.runs.iter().map(RunDir::open).collect();
    let directories = opened?;
    if request.by_run && directories.len() < 2 {
        let help = "give the base run first, then the runs to compare with it";
        return Err(UsageError::new("`--by-run` needs at least two runs", Some(help.into())).into());
    }

    let runs = Runs { paths: request.runs.clone(), recorded: Recorded::read(&directories)? };
    Ok((directories, runs))
}

/// Returns the differences between the settings of each run's targets and their bases, which are
/// those of `shown`.
///
/// # Errors
/// A record cannot be read.
pub fn differences(
    directories: &[RunDir],
    shown: &Run,
) -> Result<Vec<settings::Comparison>, RecordError> {
    let mut differences = Vec::new();
    for (run, directory) in directories.iter().enumerate() {
        differences.extend(RunSettings::read(directory)?.differences_from(run, shown));
    }
    Ok(differences)
}

/// Returns a run with the targets of all runs, merged by name, and the bases that are given. `note`
/// gets what a reader should know about them.
///
/// # Errors
/// A base is not a target of the runs, or not one of its group.
pub fn with_bases(runs: &[Recorded], bases: &[Base], note: &dyn Fn(&str)) -> anyhow::Result<Run> {
    let mut shown = merged(runs, bases, note)?;
    set_bases(bases, &mut shown, note)?;
    Ok(shown)
}

/// Returns a run with the targets of all runs, merged by name, and the base: the first of `bases`, or
/// that of the plan. `note` gets the bases of the plan that others replace.
///
/// # Errors
/// The first of `bases` is no target of the runs.
fn merged(runs: &[Recorded], bases: &[Base], note: &dyn Fn(&str)) -> anyhow::Result<Run> {
    let mut shown = merged_targets(runs);
    if let Some(base) = bases.first() {
        shown.base = chosen_base(runs, &shown, &base.target)?;
        return Ok(shown);
    }

    let planned = shown.clone();
    shown.replace_unmeasured_bases(|target| is_measured(runs, target));
    note_replaced_bases(&planned, &shown, note);
    Ok(shown)
}

/// Returns the first run with the targets of all runs, merged by name.
fn merged_targets(runs: &[Recorded]) -> Run {
    let mut merged = runs.first().map(|first| first.run.clone()).unwrap_or_default();
    for target in runs.iter().flat_map(|recorded| &recorded.run.targets) {
        if merged.targets.iter().all(|known| known.name != target.name) {
            merged.targets.push(target.clone());
        }
    }
    merged
}

/// Returns true if one of the runs has a cell of this target: a target of the plan may have none.
fn is_measured(runs: &[Recorded], target: &str) -> bool {
    runs.iter().any(|recorded| recorded.run.has_cell_of(target))
}

/// Returns the name of the base that `--base` gives.
///
/// # Errors
/// The base is none of the targets of `shown` that were measured.
fn chosen_base(runs: &[Recorded], shown: &Run, base: &str) -> Result<String, UsageError> {
    let mut names: Vec<&str> = shown.targets.iter().map(|target| target.name.as_str()).collect();
    names.retain(|name| is_measured(runs, name));
    if !names.contains(&base) {
        let help = did_you_mean(&mut names, base, "targets", ListedNames::MostSimilar);
        return Err(UsageError::new(format!("unknown target `{base}` in `--base`"), help));
    }

    Ok(base.to_owned())
}

/// Notes each base of the plan, in `planned`, in whose place `shown` has another target.
fn note_replaced_bases(planned: &Run, shown: &Run, note: &dyn Fn(&str)) {
    let mut replaced = vec![(&planned.base, &shown.base)];
    for base in &shown.bases {
        let before = planned.bases.iter().find(|known| known.group == base.group);
        replaced.extend(before.map(|before| (&before.target, &base.target)));
    }
    replaced.retain(|(of_plan, measured)| of_plan != measured);

    for (of_plan, measured) in distinct(replaced) {
        note(&format!(
            "the plan's base, `{of_plan}`, was not measured: `{measured}` takes its place; `--base TARGET` \
             chooses another"
        ));
    }
}

/// Returns true if a run has a target besides its base, or variants of its only target.
pub fn has_comparison(run: &Run) -> bool {
    if VariantSides::of([run]).are_all_there_is() {
        return true;
    }
    let mut targets = distinct(run.cells.iter().map(|cell| cell.key.target.as_str()));
    let count = targets.len();
    targets.retain(|target| *target != run.base);
    !targets.is_empty() && targets.len() < count
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
fn effect(request: &CompareRequest, figures: &Figures) -> f64 {
    request.effect.or(figures.effect).unwrap_or(EFFECT)
}

/// Returns the options of a comparison with this base.
pub fn options(request: &CompareRequest, base: &str, figures: &Figures) -> CompareOptions {
    let mut metrics = analysis::compare::costs(figures);
    for threshold in &request.thresholds {
        // Throughput and work are compared in any case.
        let Some(name) = &threshold.metric else { continue };
        if name != THROUGHPUT && name != WORK && !metrics.contains(name) {
            metrics.push(name.clone());
        }
    }

    CompareOptions {
        base: base.to_owned(),
        effect: effect(request, figures),
        error_rate: request.error_rate,
        metrics,
        shown_metrics: request.metrics.clone(),
        requirements: request.requirements.clone(),
        steps: request.steps.clone(),
        ..CompareOptions::default()
    }
}

/// Returns the runs with their paths as names.
pub fn sources(runs: &Runs) -> Vec<ComparedRun<'_>> {
    let mut sources = Vec::new();
    for (path, recorded) in runs.paths.iter().zip(&runs.recorded) {
        sources.push(ComparedRun { name: path.display().to_string(), run: &recorded.run });
    }
    sources
}
