//! What went wrong and what should be known, in words.

use analysis::Figures;
use record::{Run, Status};

use crate::matrix::Matrix;

/// How much a problem weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// A figure is missing.
    Error,
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
            Some(Status::Complete) => "the cell ended without all of its steps",
        };
        let place = format!(
            "{}, {} clients, repeat {}",
            cell.target, cell.clients, cell.repeat
        );
        let failed = cell.status == Some(Status::Failed) && !cell.causes.is_empty();
        let what = (!failed).then(|| what.to_string());
        let texts = what
            .into_iter()
            .chain(cell.causes.iter().cloned())
            .collect();
        add(&mut problems, Weight::Error, Some(place), texts);
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
            let weight = if row.status == Status::Complete {
                Weight::Invalid
            } else {
                Weight::Error
            };
            add(&mut problems, weight, place(), texts);
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
    problems.sort_by_key(|problem| match problem.weight {
        Weight::Error => 0,
        Weight::Invalid => 1,
        Weight::Warning => 2,
    });
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

/// How a run ended, in a few words.
pub(crate) fn ended(run: &Run) -> &'static str {
    match run.status {
        Status::Complete => "complete",
        Status::Failed => "failed",
        Status::Interrupted => "interrupted: what follows is what was measured until then",
        Status::Incomplete => "incomplete: it still runs, or it was ended without a word",
    }
}
