//! Finds competition for processors: other programs that used much hide small differences, and
//! those that used more next to one target than to another make some.

use record::{CellKey, Status, StepKind};
use serde::Serialize;

use crate::figures::{Figures, Row};
use crate::order::{grouped, sort_largest_first, sort_smallest_first};

/// Percentage points by which the shares must differ: a tenth of the processors may be a tenth of
/// the throughput.
const POINTS: f64 = 10.0;

/// The share of the processors, in percent, from which on others hide small differences, even if
/// all targets had them.
const BUSY_PERCENT: f64 = 25.0;

/// Competition by other programs, which hides small differences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Competition {
    /// The programs used up to this percentage of the processors.
    Percent(f64),
    /// The programs used this many percentage points more while one target ran than while another
    /// did.
    PointsApart(f64),
}

/// A step during whose targets other programs used different shares of the processors.
#[derive(Clone, Debug, PartialEq)]
pub struct UnevenStep<'a> {
    /// The step.
    pub step: &'a str,
    /// One of the cells that are compared.
    pub cell: &'a CellKey,
    /// The target with the least competition.
    pub least: TargetCompetition<'a>,
    /// The target with the most.
    pub most: TargetCompetition<'a>,
}

/// The competition by other programs while a target ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetCompetition<'a> {
    /// The name of the target.
    pub target: &'a str,
    /// The share of the processors that others used, in percent: the mean over the target's repeats.
    pub percent: f64,
}

impl UnevenStep<'_> {
    fn points(&self) -> f64 {
        self.most.percent - self.least.percent
    }
}

/// Returns the competition by other programs, if it hides small differences.
pub fn competition(figures: &Figures) -> Option<Competition> {
    let most = measured(figures).filter_map(others).fold(0.0, f64::max);
    if most > BUSY_PERCENT {
        return Some(Competition::Percent(most));
    }
    let worst = uneven_steps(figures).into_iter().next()?;
    Some(Competition::PointsApart(worst.points()))
}

/// Returns the steps whose targets had different competition, the worst first.
pub fn uneven_steps(figures: &Figures) -> Vec<UnevenStep<'_>> {
    let places = measured(figures).map(|row| ((row.step.as_str(), row.cell.load()), row));

    let mut found = Vec::new();
    for ((step, _), rows) in grouped(places) {
        if let Some(uneven) = uneven_step(step, &rows)
            && uneven.points() >= POINTS
        {
            found.push(uneven);
        }
    }

    sort_largest_first(&mut found, |item| item.points());
    found
}

/// Returns the targets with the least and the most competition in the rows of a step; `None` if it
/// is not known of any.
fn uneven_step<'f>(step: &'f str, rows: &[&'f Row]) -> Option<UnevenStep<'f>> {
    let shares = rows.iter().filter_map(|&row| Some((row.cell.target.as_str(), others(row)?)));
    let mut means = Vec::new();
    for (target, of_target) in grouped(shares) {
        let percent = of_target.iter().sum::<f64>() / of_target.len() as f64;
        means.push(TargetCompetition { target, percent });
    }

    sort_smallest_first(&mut means, |mean| mean.percent);
    let (least, most) = (*means.first()?, *means.last()?);
    Some(UnevenStep { step, cell: &rows[0].cell, least, most })
}

/// Returns the rows that can be compared, of steps that are among the results, unless there are no
/// others.
fn measured(figures: &Figures) -> impl Iterator<Item = &Row> {
    let rows = || {
        let rows = figures.rows.iter();
        rows.filter(|row| row.kind != StepKind::Settle)
    };
    let has_results = rows().any(|row| row.reported);
    rows().filter(move |row| {
        (row.reported || !has_results) && row.valid && row.status == Status::Complete
    })
}

/// Returns the share of the processors that others used during a step, in percent.
fn others(row: &Row) -> Option<f64> {
    row.metric("others%")
}
