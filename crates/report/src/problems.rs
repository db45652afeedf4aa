//! Lists what went wrong and what makes results doubtful.

use std::collections::BTreeSet;

use analysis::counted;
use analysis::figures::{Figures, Row, UnfinishedCell};
use record::{OptionStatus, Run, Status};

use crate::compared::{MissingProfiles, missing_profiles};
use crate::differences::not_had;
use crate::matrix::Matrix;
use crate::number::duration;
use crate::{trees, uneven};

/// The severity of a problem, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// A figure is missing because something failed.
    Error,
    /// A figure is missing because its record is damaged.
    Damaged,
    /// A figure is missing because it was not measured yet.
    Missing,
    /// A figure is there but not valid.
    Invalid,
    /// A figure is valid, but has a warning.
    Warning,
}

impl Severity {
    /// Returns the word before the sentence.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Error => "failed",
            Self::Damaged => "damaged",
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Warning => "warning",
        }
    }
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub severity: Severity,
    /// The places: a line and a step, or a cell; empty for the whole run.
    pub places: Vec<String>,
    /// The causes, outermost first.
    pub texts: Vec<String>,
}

/// Returns all problems of some runs, the worst first. Problems with the same text are merged.
pub(crate) fn problems(runs: &[&Run], figures: &Figures, matrix: &Matrix<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let is_running = |run: usize| runs.get(run).is_some_and(|run| run.is_running);
    for cell in &figures.unfinished {
        let (severity, place, texts) = of_cell(cell, matrix, is_running(cell.run));
        add(&mut problems, severity, Some(place), texts);
    }
    let rows = || {
        let lines = matrix.lines.iter();
        lines.flat_map(|line| line.rows.iter().map(move |row| (line, row)))
    };
    for (line, row) in rows().filter(|(_, row)| !row.valid) {
        let place = format!("{} {}", matrix.label(line), row.step);
        let texts = if row.reasons.is_empty() {
            vec!["no reason recorded".into()]
        } else {
            row.reasons.clone()
        };
        let severity = match row.status {
            _ if row.damaged => Severity::Damaged,
            Status::Incomplete if is_running(row.run) => Severity::Missing,
            Status::Complete => Severity::Invalid,
            _ => Severity::Error,
        };
        add(&mut problems, severity, Some(place), texts);
    }
    let mut warn = |code: &str, text: &str, place: Option<String>| {
        let text = format!("{text} [{code}]");
        add(&mut problems, Severity::Warning, place, vec![text]);
    };
    let targets = figures.settings.targets.iter();
    for ignored in targets.flat_map(|target| &target.ignored) {
        // Whether a server has an option that it does not report is unknown.
        if ignored.status != OptionStatus::Unreported {
            let place = Some(ignored.target.clone());
            warn("settings::not-had", &not_had(ignored), place);
        }
    }
    for warning in runs.iter().flat_map(|run| &run.warnings) {
        warn(&warning.code, &warning.text, None);
    }
    for (line, row) in rows() {
        for warning in &row.warnings {
            let place = format!("{} {}", matrix.label(line), row.step);
            warn(&warning.code, &warning.text, Some(place));
        }
    }
    // Remarks on figures are merged by kind, the worst place first.
    let remarks = rows().flat_map(|(line, row)| row.remarks.iter().map(move |of| (line, row, of)));
    let mut remarks: Vec<_> = remarks.collect();
    remarks.sort_by(|(.., a), (.., b)| b.weight.total_cmp(&a.weight));
    for (line, row, remark) in remarks {
        let place = format!("{} {}: {}", matrix.label(line), row.step, remark.here);
        warn(remark.code, &remark.text, Some(place));
    }
    for place in uneven::places(figures, matrix) {
        warn(
            "host::uneven",
            "other programs used different shares of the processors while the targets ran, which may be part of the \
             difference between the targets",
            Some(place),
        );
    }
    for place in trees::places(matrix) {
        warn(
            "lsm::other-tree",
            "the targets began this read-only step with different trees: a read looks into every file of the first level \
             and into each level below",
            Some(place),
        );
    }
    let without_profile = missing_profiles(figures).into_iter();
    problems.extend(without_profile.map(|MissingProfiles { reason, places }| Problem {
        severity: Severity::Warning,
        places,
        texts: vec![format!("no profile: {reason} [profile::missing]")],
    }));
    problems.sort_by_key(|problem| problem.severity);
    problems
}

/// Returns the problem of a cell that did not end as planned: its severity, its place and its
/// texts.
fn of_cell(
    cell: &UnfinishedCell,
    matrix: &Matrix<'_>,
    is_running: bool,
) -> (Severity, String, Vec<String>) {
    let what = match cell.status {
        None if is_running => "the cell has not started yet",
        None => "the cell was never started",
        Some(Status::Incomplete) if is_running => "the cell is in progress",
        Some(Status::Incomplete) => "the cell was begun, but how it ended is not recorded",
        Some(Status::Failed) => "the cell failed",
        Some(Status::Interrupted) => "the cell was interrupted",
        Some(Status::Complete) => {
            "the cell was complete, but a part of its record is missing: `assay run --resume RUN` measures it again"
        }
    };
    let line = matrix.lines.iter().find(|line| line.is_of(cell));
    let mut place = line.map_or_else(|| cell.cell.target.clone(), |line| matrix.label(line));
    if let (Some(Status::Complete), Some(line)) = (cell.status, line)
        && !line.missing.is_empty()
    {
        place += &format!(": {}", line.missing.join(", "));
    }
    let is_failed = cell.status == Some(Status::Failed);
    // The cause says more.
    let is_left_out = cell.status.is_none() && !cell.causes.is_empty();
    let severity = if is_failed { Severity::Error } else { Severity::Missing };
    let needs_words = !(is_failed || is_left_out) || cell.causes.is_empty();
    let what = needs_words.then(|| what.to_string());
    let texts = what.into_iter().chain(cell.causes.iter().cloned());
    (severity, place, texts.collect())
}

fn add(problems: &mut Vec<Problem>, severity: Severity, place: Option<String>, texts: Vec<String>) {
    match problems.iter_mut().find(|problem| problem.severity == severity && problem.texts == texts)
    {
        Some(problem) => problem.places.extend(place),
        None => problems.push(Problem { severity, places: place.into_iter().collect(), texts }),
    }
}

/// Returns whether the figures are valid, as text and as a flag.
pub(crate) fn verdict(figures: &Figures) -> (String, bool) {
    let (text, are_valid) = validity(figures);
    match uneven::busy(figures) {
        Some(busy) if are_valid => (format!("{text}, but {busy}"), false),
        Some(busy) => (format!("{text}; {busy}"), false),
        None => (text, are_valid),
    }
}

fn validity(figures: &Figures) -> (String, bool) {
    let missing = figures.missing.len();
    let all = figures.rows.len() + missing;
    let ended = |row: &&Row| row.status == Status::Complete;
    let valid = figures.rows.iter().filter(ended).filter(|row| row.valid);
    let valid = valid.count();
    let invalid = figures.rows.iter().filter(ended).count() - valid;
    let damaged = figures.rows.iter().filter(|row| row.damaged).count();
    let cells = figures.unfinished.len();
    if all == 0 {
        return ("nothing was measured".to_string(), false);
    }
    if valid == all && cells == 0 {
        let text = match all {
            1 => "the only step is valid".to_string(),
            _ => format!("all {all} steps are valid"),
        };
        return (text, true);
    }
    let mut texts = vec![format!("{valid} of {} valid", counted(all, "step"))];
    if invalid > 0 {
        texts.push(format!("{invalid} invalid"));
    }
    let not_finished = all - valid - invalid - damaged - missing;
    for (count, what) in
        [(not_finished, "not finished"), (damaged, "damaged"), (missing, "missing")]
    {
        if count > 0 {
            texts.push(format!("{count} {what}"));
        }
    }
    if cells > 0 {
        texts.push(format!("{} not finished", counted(cells, "cell")));
    }
    (texts.join(", "), false)
}

/// Returns the properties that distinguish the targets of a run: the build's version and the
/// settings that not all targets of the engine declare. Then, for each engine, what all its targets
/// declare.
pub(crate) fn targets(run: &Run) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let written = |settings: Vec<&(String, String)>| {
        let texts = settings.iter().map(|(name, value)| format!("{name} = {value}"));
        texts.collect::<Vec<_>>().join(", ")
    };
    let shared = |engine: &str, setting: &(String, String)| {
        let mut of_engine = run.targets.iter().filter(|target| target.engine == engine);
        of_engine.all(|target| target.set.contains(setting))
    };
    for target in &run.targets {
        let build = run.builds.iter().find(|build| build.name == target.build);
        let mut text = build.map_or_else(
            || target.engine.clone(),
            |build| format!("{} {}", build.engine, build.version),
        );
        let own = target.set.iter().filter(|setting| !shared(&target.engine, setting));
        let limits = ["memory", "cpus", "cpu-quota"].into_iter().filter_map(|what| {
            let value = limit(run, target, what)?;
            Some(format!("{what} limited to {value}"))
        });
        let own = Some(written(own.collect())).filter(|own| !own.is_empty());
        for more in own.into_iter().chain(limits) {
            text += &format!("; {more}");
        }
        lines.push((target.name.clone(), text));
    }
    let engines: BTreeSet<&str> = run.targets.iter().map(|target| target.engine.as_str()).collect();
    for engine in engines {
        let Some(target) = run.targets.iter().find(|target| target.engine == engine) else {
            continue;
        };
        let all = target.set.iter().filter(|setting| shared(engine, setting));
        let all = written(all.collect());
        if !all.is_empty() {
            lines.push((format!("all {engine} targets"), all));
        }
    }
    lines
}

/// Returns a limit of a target's server, from its config or a config that this extends.
fn limit(run: &Run, target: &record::Target, what: &str) -> Option<String> {
    let value = |config: &str, key: &str| {
        let key = format!("config.{}.{config}.{key}", target.engine);
        let mut values = run.plan.resolved.iter();
        let value = &values.find(|value| value.key == key)?.value;
        Some(value.trim_matches('"').to_owned())
    };
    let mut config = target.config.clone();
    // The chain of configs can't be longer than the plan.
    for _ in 0..run.plan.resolved.len() {
        if let Some(limit) = value(&config, what) {
            return Some(limit);
        }
        config = value(&config, "extends")?;
    }
    None
}

/// Returns the outcome of a run, in a few words.
pub(crate) fn ended(run: &Run) -> &'static str {
    match run.status {
        Status::Complete => "complete",
        Status::Failed => "failed",
        Status::Interrupted => "interrupted: only a part was measured",
        Status::Incomplete if run.is_running => "in progress",
        Status::Incomplete => match run.invocations.last() {
            Some(last) if last.ended_unix_ns.is_some() => "incomplete: only a part was measured",
            _ => "incomplete: it was killed, or runs on another host",
        },
    }
}

/// Returns the duration of a run without the pauses between its invocations, if it has ended. A
/// record without the durations of all invocations has only the times of its start and end.
pub(crate) fn took(run: &Run) -> Option<String> {
    let ended_unix_ns = run.ended_unix_ns?;
    let durations = run.invocations.iter().map(|invocation| invocation.elapsed_ns);
    let measured: Option<u64> = durations.sum::<Option<u64>>().filter(|&total| total > 0);
    let ns = measured.unwrap_or_else(|| ended_unix_ns.saturating_sub(run.started_unix_ns));
    Some(duration(ns as f64 / 1e9))
}
