//! Lists what went wrong and what makes results doubtful.
//!
//! One fault often shows in many places: a server that could not start fails each of its repeats.
//! So problems with the same text are merged, and each lists its places.

use analysis::figures::{Figures, Remark, Row, UnfinishedCell};
use record::{OptionStatus, Run, Status};

use super::profiles::{self, MissingProfiles};
use super::settings::unmet_option;
use super::{remarks, trees, uneven};
use crate::model::matrix::{CellLine, Matrix};

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
    let mut list = ProblemList { runs, matrix, problems: Vec::new() };
    list.add_unfinished_cells(figures);
    list.add_invalid_steps(figures);

    list.add_options_not_in_effect(figures);
    list.add_recorded_warnings();
    list.add_remarks();
    list.add_differences_between_targets(figures);
    list.add_missing_profiles(figures);

    list.problems.sort_by_key(|problem| problem.severity);
    list.problems
}

/// Problems under collection, by what they are about.
struct ProblemList<'a> {
    runs: &'a [&'a Run],
    matrix: &'a Matrix<'a>,
    problems: Vec<Problem>,
}

impl ProblemList<'_> {
    fn add_unfinished_cells(&mut self, figures: &Figures) {
        for cell in &figures.unfinished {
            self.add_unfinished_cell(cell);
        }
    }

    /// Adds a cell that did not end as planned.
    fn add_unfinished_cell(&mut self, cell: &UnfinishedCell) {
        let is_failed = cell.status == Some(Status::Failed);
        let severity = if is_failed { Severity::Error } else { Severity::Missing };

        // A cause says more than the words for the state.
        let is_left_out = cell.status.is_none() && !cell.causes.is_empty();
        let needs_words = !(is_failed || is_left_out) || cell.causes.is_empty();
        let mut texts = Vec::new();
        if needs_words {
            texts.push(state_of_cell(cell, self.is_running(cell.run)).to_string());
        }
        texts.extend(cell.causes.iter().cloned());

        self.add(severity, Some(self.place_of_cell(cell)), texts);
    }

    /// Returns the label of a cell, with the steps that a complete cell lacks.
    fn place_of_cell(&self, cell: &UnfinishedCell) -> String {
        let Some(line) = self.matrix.lines.iter().find(|line| line.is_of(cell)) else {
            return cell.cell.target.clone();
        };

        let label = self.matrix.label(line);

        if cell.status == Some(Status::Complete) && !line.missing.is_empty() {
            format!("{label}: {}", line.missing.join(", "))
        } else {
            label
        }
    }

    /// Adds the steps without a valid result, except those whose reason the problem of their cell says.
    fn add_invalid_steps(&mut self, figures: &Figures) {
        for (line, row) in rows(self.matrix).filter(|(_, row)| !row.valid) {
            if figures.unfinished.iter().any(|cell| line.is_of(cell) && says_reason(cell, row)) {
                continue;
            }

            let severity = match row.status {
                _ if row.damaged => Severity::Damaged,
                Status::Incomplete if self.is_running(row.run) => Severity::Missing,
                Status::Complete => Severity::Invalid,
                _ => Severity::Error,
            };

            let texts = if row.reasons.is_empty() {
                vec!["no reason recorded".to_string()]
            } else {
                row.reasons.clone()
            };
            self.add(severity, Some(place(self.matrix, line, row)), texts);
        }
    }

    fn add_options_not_in_effect(&mut self, figures: &Figures) {
        for ignored in figures.settings.targets.iter().flat_map(|target| &target.ignored) {
            // Whether a server has an option that it does not report is unknown.
            if ignored.status != OptionStatus::Unreported {
                self.warn(
                    "settings::not-had",
                    &unmet_option(ignored),
                    Some(ignored.target.clone()),
                );
            }
        }
    }

    fn add_recorded_warnings(&mut self) {
        for warning in self.runs.iter().flat_map(|run| &run.warnings) {
            self.warn(&warning.code, &warning.text, None);
        }
        for (line, row) in rows(self.matrix) {
            for warning in &row.warnings {
                self.warn(&warning.code, &warning.text, Some(place(self.matrix, line, row)));
            }
        }
    }

    /// Adds remarks on figures. They are merged by kind, the worst place first.
    fn add_remarks(&mut self) {
        let mut all: Vec<(&CellLine<'_>, &Row, &Remark)> = rows(self.matrix)
            .flat_map(|(line, row)| row.remarks.iter().map(move |remark| (line, row, remark)))
            .collect();
        all.sort_by(|(.., a), (.., b)| b.weight().total_cmp(&a.weight()));

        for (line, row, remark) in all {
            let place = format!("{}: {}", place(self.matrix, line, row), remarks::size(remark));
            self.warn(remark.code(), &remarks::text(remark), Some(place));
        }
    }

    /// Adds what differed between targets besides the targets themselves.
    fn add_differences_between_targets(&mut self, figures: &Figures) {
        for place in uneven::places(figures, self.matrix) {
            self.warn(
                "host::uneven",
                "other programs used different shares of the processors while the targets ran, which may be part of the \
                 difference between the targets",
                Some(place),
            );
        }

        for place in trees::places(self.matrix) {
            self.warn(
                "lsm::other-tree",
                "the targets began this read-only step with different trees: a read looks into every file of the first level \
                 and into each level below",
                Some(place),
            );
        }
    }

    fn add_missing_profiles(&mut self, figures: &Figures) {
        for MissingProfiles { reason, places } in profiles::missing(figures) {
            self.problems.push(Problem {
                severity: Severity::Warning,
                places,
                texts: vec![format!("no profile: {reason} [profile::missing]")],
            });
        }
    }

    fn is_running(&self, run: usize) -> bool {
        self.runs.get(run).is_some_and(|run| run.is_running)
    }

    /// Adds a warning with its code, by which it can be looked up.
    fn warn(&mut self, code: &str, text: &str, place: Option<String>) {
        self.add(Severity::Warning, place, vec![format!("{text} [{code}]")]);
    }

    /// Adds a problem, or its place to the same problem elsewhere.
    fn add(&mut self, severity: Severity, place: Option<String>, texts: Vec<String>) {
        let known = self
            .problems
            .iter_mut()
            .find(|problem| problem.severity == severity && problem.texts == texts);

        match known {
            Some(problem) => problem.places.extend(place),
            None => {
                let places = place.into_iter().collect();
                self.problems.push(Problem { severity, places, texts });
            }
        }
    }
}

/// Returns all rows, each with its line.
fn rows<'m, 'a>(matrix: &'m Matrix<'a>) -> impl Iterator<Item = (&'m CellLine<'a>, &'a Row)> {
    matrix.lines.iter().flat_map(|line| line.rows.iter().map(move |row| (line, *row)))
}

/// Returns whether the causes of a failed cell have all reasons of a step without a result.
fn says_reason(cell: &UnfinishedCell, row: &Row) -> bool {
    let is_told = |reason: &String| cell.causes.contains(reason);
    cell.status == Some(Status::Failed)
        && row.status == Status::Failed
        && !row.reasons.is_empty()
        && row.reasons.iter().all(is_told)
}

fn place(matrix: &Matrix<'_>, line: &CellLine<'_>, row: &Row) -> String {
    format!("{} {}", matrix.label(line), row.step)
}

/// Returns the state of a cell that did not end as planned.
fn state_of_cell(cell: &UnfinishedCell, is_running: bool) -> &'static str {
    match cell.status {
        None if is_running => "the cell has not started yet",
        None => "the cell was never started",
        Some(Status::Incomplete) if is_running => "the cell is in progress",
        Some(Status::Incomplete) => "the cell was begun, but how it ended is not recorded",
        Some(Status::Failed) => "the cell failed",
        Some(Status::Interrupted) => "the cell was interrupted",
        Some(Status::Complete) => {
            "the cell was complete, but a part of its record is missing: `assay run --resume RUN` measures it again"
        }
    }
}
