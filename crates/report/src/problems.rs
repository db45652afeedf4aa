//! What went wrong and what should be known, in words.

use std::collections::BTreeSet;

use analysis::{Fate, Figures, Row, counted};
use record::{Run, Status};

use crate::differences::not_had;
use crate::matrix::{Line, Matrix};
use crate::{trees, uneven};

/// How much a problem weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// All problems of some runs, the gravest first. The same text at several places is one problem.
pub(crate) fn problems(runs: &[&Run], figures: &Figures, matrix: &Matrix<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for cell in &figures.unfinished {
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
        let steps: Vec<&str> = match cell.status {
            Some(Status::Complete) => line.map_or_else(Vec::new, |line| line.missing.clone()),
            _ => Vec::new(),
        };
        let mut place = line.map_or_else(|| cell.cell.target.clone(), |line| matrix.label(line));
        if !steps.is_empty() {
            place += &format!(": {}", steps.join(", "));
        }
        let weight = match cell.status {
            Some(Status::Failed) => Weight::Error,
            _ => Weight::Missing,
        };
        let failed = cell.status == Some(Status::Failed) && !cell.causes.is_empty();
        let what = (!failed).then(|| what.to_string());
        let texts = what
            .into_iter()
            .chain(cell.causes.iter().cloned())
            .collect();
        add(&mut problems, weight, Some(place), texts);
    }
    let rows = || {
        matrix
            .lines
            .iter()
            .flat_map(|line| line.rows.iter().map(move |row| (line, row)))
    };
    for (line, row) in rows() {
        let place = || Some(format!("{} {}", matrix.label(line), row.step));
        if !row.valid {
            let texts = if row.reasons.is_empty() {
                vec!["no reason recorded".into()]
            } else {
                row.reasons.clone()
            };
            let weight = match row.status {
                _ if row.damaged => Weight::Damaged,
                Status::Complete => Weight::Invalid,
                _ => Weight::Error,
            };
            add(&mut problems, weight, place(), texts);
        }
    }
    for ignored in figures
        .settings
        .targets
        .iter()
        .flat_map(|target| &target.ignored)
    {
        // Of what a server does not report nobody knows whether it has it.
        if ignored.mark != Fate::Unreported {
            let text = format!("{} [settings::not-had]", not_had(ignored));
            let place = Some(ignored.target.clone());
            add(&mut problems, Weight::Warning, place, vec![text]);
        }
    }
    for warning in runs.iter().flat_map(|run| &run.warnings) {
        add(
            &mut problems,
            Weight::Warning,
            None,
            vec![format!("{} [{}]", warning.text, warning.code)],
        );
    }
    for (line, row) in rows() {
        for warning in &row.warnings {
            let place = format!("{} {}", matrix.label(line), row.step);
            add(
                &mut problems,
                Weight::Warning,
                Some(place),
                vec![format!("{} [{}]", warning.text, warning.code)],
            );
        }
    }
    problems.extend(remarks(matrix, rows()));
    let places = uneven::places(matrix);
    if !places.is_empty() {
        problems.push(Problem {
            weight: Weight::Warning,
            places,
            texts: vec![
                "other programs used different shares of the processors beside the targets: part of what they differ by \
                 may be that [host::uneven]"
                    .to_owned(),
            ],
        });
    }
    let places = trees::places(matrix);
    if !places.is_empty() {
        problems.push(Problem {
            weight: Weight::Warning,
            places,
            texts: vec![
                "the trees were not alike when the step began, which only reads: a read looks into every file of the \
                 first level and into each level below [lsm::other-tree]"
                    .to_owned(),
            ],
        });
    }
    problems.sort_by_key(|problem| match problem.weight {
        Weight::Error => 0,
        Weight::Damaged => 1,
        Weight::Missing => 2,
        Weight::Invalid => 3,
        Weight::Warning => 4,
    });
    problems
}

/// What figures say by themselves: one problem for each sort, its worst place first.
fn remarks<'r, 'a: 'r>(
    matrix: &Matrix<'a>,
    rows: impl Iterator<Item = (&'r Line<'a>, &'r &'a Row)>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let remarks = rows.flat_map(|(line, row)| row.remarks.iter().map(move |of| (line, row, of)));
    let mut remarks: Vec<_> = remarks.collect();
    remarks.sort_by(|(.., a), (.., b)| b.weight.total_cmp(&a.weight));
    for (line, row, remark) in remarks {
        let place = format!("{} {}: {}", matrix.label(line), row.step, remark.here);
        let text = format!("{} [{}]", remark.text, remark.code);
        add(&mut problems, Weight::Warning, Some(place), vec![text]);
    }
    problems
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
pub(crate) fn verdict(figures: &Figures, matrix: &Matrix<'_>) -> (String, bool) {
    let (text, are_valid) = validity(figures);
    match uneven::busy(matrix) {
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
        of_engine.all(|target| target.declared.contains(setting))
    };
    for target in &run.targets {
        let build = run.builds.iter().find(|build| build.name == target.build);
        let mut text = build.map_or_else(
            || target.engine.clone(),
            |build| format!("{} {}", build.engine, build.version),
        );
        let own = target
            .declared
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
        let all = target
            .declared
            .iter()
            .filter(|setting| shared(engine, setting));
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
