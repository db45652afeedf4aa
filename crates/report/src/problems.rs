//! What went wrong and what should be known, in words.

use std::collections::BTreeSet;

use analysis::{Figures, Row, UnfinishedCell, counted};
use record::{OptionStatus, Run, Status};

use crate::differences::not_had;
use crate::matrix::Matrix;
use crate::number::duration;
use crate::{trees, uneven};

/// How much a problem weighs, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// A figure is missing, because something failed.
    Error,
    /// A figure is missing, because its record can't be read any more.
    Damaged,
    /// A figure is not there yet: nobody got so far.
    Missing,
    /// A figure is there and can't be stood behind.
    Invalid,
    /// A figure holds, and something about it should be known.
    Warning,
}

impl Weight {
    /// The word before the sentence.
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

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub weight: Weight,
    /// Where: a line and a step, a cell, or nothing for the whole run.
    pub places: Vec<String>,
    /// What, outermost cause first.
    pub texts: Vec<String>,
}

/// Returns all problems of some runs, the gravest first. The same text at several places is one problem.
pub(crate) fn problems(runs: &[&Run], figures: &Figures, matrix: &Matrix<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for cell in &figures.unfinished {
        let (weight, place, texts) = of_cell(cell, matrix);
        add(&mut problems, weight, Some(place), texts);
    }
    let rows = || {
        let lines = matrix.lines.iter();
        lines.flat_map(|line| line.rows.iter().map(move |row| (line, row)))
    };
    for (line, row) in rows().filter(|(_, row)| !row.valid) {
        let place = format!("{} {}", matrix.label(line), row.step);
        let texts = match row.reasons.is_empty() {
            true => vec!["no reason recorded".into()],
            false => row.reasons.clone(),
        };
        let weight = match row.status {
            _ if row.damaged => Weight::Damaged,
            Status::Complete => Weight::Invalid,
            _ => Weight::Error,
        };
        add(&mut problems, weight, Some(place), texts);
    }
    let mut warn = |code: &str, text: &str, place: Option<String>| {
        let text = format!("{text} [{code}]");
        add(&mut problems, Weight::Warning, place, vec![text]);
    };
    let targets = figures.settings.targets.iter();
    for ignored in targets.flat_map(|target| &target.ignored) {
        // Of what a server does not report nobody knows whether it has it.
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
    // What figures say by themselves: one problem for each sort, its worst place first.
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
            "other programs used different shares of the processors beside the targets: part of what they differ by may \
             be that",
            Some(place),
        );
    }
    for place in trees::places(matrix) {
        warn(
            "lsm::other-tree",
            "the trees were not alike when the step began, which only reads: a read looks into every file of the first \
             level and into each level below",
            Some(place),
        );
    }
    problems.sort_by_key(|problem| problem.weight);
    problems
}

/// Returns the problem that a cell is which has not ended as planned: its weight, its place and its texts.
fn of_cell(cell: &UnfinishedCell, matrix: &Matrix<'_>) -> (Weight, String, Vec<String>) {
    let what = match cell.status {
        None => "the cell was never begun",
        Some(Status::Incomplete) => "the cell was begun and nothing was said since",
        Some(Status::Failed) => "the cell failed",
        Some(Status::Interrupted) => "the cell was interrupted",
        Some(Status::Complete) => {
            "the cell was complete, and the record lacks a part of it: `assay run --resume RUN` measures it again"
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
    let weight = match is_failed {
        true => Weight::Error,
        false => Weight::Missing,
    };
    let what = (!is_failed || cell.causes.is_empty()).then(|| what.to_string());
    let texts = what.into_iter().chain(cell.causes.iter().cloned());
    (weight, place, texts.collect())
}

fn add(problems: &mut Vec<Problem>, weight: Weight, place: Option<String>, texts: Vec<String>) {
    match problems
        .iter_mut()
        .find(|problem| problem.weight == weight && problem.texts == texts)
    {
        Some(problem) => problem.places.extend(place),
        None => problems.push(Problem {
            weight,
            places: place.into_iter().collect(),
            texts,
        }),
    }
}

/// Returns whether the figures can be stood behind, in a few words; and whether all of them can.
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
            1 => "the one step is valid".to_string(),
            _ => format!("all {all} steps are valid"),
        };
        return (text, true);
    }
    let mut texts = vec![format!("{valid} of {} valid", counted(all, "step"))];
    if invalid > 0 {
        texts.push(format!("{invalid} invalid"));
    }
    let not_finished = all - valid - invalid - damaged - missing;
    for (count, what) in [
        (not_finished, "not finished"),
        (damaged, "damaged"),
        (missing, "missing"),
    ] {
        if count > 0 {
            texts.push(format!("{count} {what}"));
        }
    }
    if cells > 0 {
        texts.push(format!("{} not finished", counted(cells, "cell")));
    }
    (texts.join(", "), false)
}

/// What tells the targets of a run apart: the build's version and the settings that not all targets of its engine
/// declare alike. And per engine what they all declare.
pub(crate) fn targets(run: &Run) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let written = |settings: Vec<&(String, String)>| {
        let texts = settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}"));
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
        let own = target
            .set
            .iter()
            .filter(|setting| !shared(&target.engine, setting));
        let limits = ["memory", "cpus"].into_iter().filter_map(|what| {
            let value = limit(run, target, what)?;
            Some(format!("{what} limited to {value}"))
        });
        let own = Some(written(own.collect())).filter(|own| !own.is_empty());
        for more in own.into_iter().chain(limits) {
            text += &format!("; {more}");
        }
        lines.push((target.name.clone(), text));
    }
    let engines: BTreeSet<&str> = run
        .targets
        .iter()
        .map(|target| target.engine.as_str())
        .collect();
    for engine in engines {
        let Some(target) = run.targets.iter().find(|target| target.engine == engine) else {
            continue;
        };
        let all = target.set.iter().filter(|setting| shared(engine, setting));
        let all = written(all.collect());
        if !all.is_empty() {
            lines.push((format!("all of {engine}"), all));
        }
    }
    lines
}

/// What the plan lets the server of a target use, by its config or by those that it extends.
fn limit(run: &Run, target: &record::Target, what: &str) -> Option<String> {
    let value = |config: &str, key: &str| {
        let key = format!("config.{}.{config}.{key}", target.engine);
        let mut values = run.plan.resolved.iter();
        let value = &values.find(|value| value.key == key)?.value;
        Some(value.trim_matches('"').to_owned())
    };
    let mut config = target.config.clone();
    // No chain of configs is longer than the plan.
    for _ in 0..run.plan.resolved.len() {
        if let Some(limit) = value(&config, what) {
            return Some(limit);
        }
        config = value(&config, "extends")?;
    }
    None
}

/// How a run ended, in a few words.
pub(crate) fn ended(run: &Run) -> &'static str {
    match run.status {
        Status::Complete => "complete",
        Status::Failed => "failed",
        Status::Interrupted => "interrupted: what follows is what was measured until then",
        Status::Incomplete => "incomplete: it still runs, or was ended without a word",
    }
}

/// How long a run took, if it has ended.
pub(crate) fn took(run: &Run) -> Option<String> {
    let ns = run.ended_unix_ns?.saturating_sub(run.started_unix_ns);
    Some(duration(ns as f64 / 1e9))
}
