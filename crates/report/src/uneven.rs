//! Targets of one table beside which other programs used different shares of the processors: what is compared is not
//! the targets alone then.

use analysis::Row;

use crate::classic::{comparable, comparable_by_target};
use crate::matrix::{Line, Matrix, StepHead};

/// Percentage points by which the shares must differ: a tenth of the processors may be a tenth of the throughput.
const POINTS: f64 = 10.0;

/// Percent of the processors from which others leave small differences untold, even if all targets had them.
const BUSY_PERCENT: f64 = 25.0;

/// Says what other programs did to the results, where they used so much of the processors beside a step, or beside one
/// target more than beside another, that small differences can't be seen.
pub(crate) fn busy(matrix: &Matrix<'_>) -> Option<String> {
    let rows = matrix.measured().flat_map(|step| {
        let lines = matrix.lines.iter();
        lines.filter_map(move |line| line.row(step.name).filter(|row| comparable(row)))
    });
    let most = rows.filter_map(others).fold(0.0, f64::max);
    let what = if most > BUSY_PERCENT {
        format!("used up to {most:.0}% of the processors")
    } else {
        let (points, _) = differences(matrix).into_iter().next()?;
        format!(
            "used {points:.0} percentage points more of the processors beside one target than beside another"
        )
    };
    Some(format!(
        "other programs {what}: small differences can't be seen"
    ))
}

/// Steps in which targets had different shares of others beside them, each with those that had least and most; the worst
/// first.
pub(crate) fn places(matrix: &Matrix<'_>) -> Vec<String> {
    let found = differences(matrix).into_iter();
    found.map(|(_, text)| text).collect()
}

/// The percentage points by which the shares differ, and where.
fn differences(matrix: &Matrix<'_>) -> Vec<(f64, String)> {
    let mut found: Vec<(f64, String)> = Vec::new();
    for step in matrix.measured() {
        for lines in matrix.groups() {
            let shares = shares(lines, step);
            let order = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
            let (Some(least), Some(most)) =
                (shares.iter().min_by(order), shares.iter().max_by(order))
            else {
                continue;
            };
            let points = most.1 - least.1;
            if points >= POINTS {
                let of = matrix.group_label(lines);
                let of = of.map_or_else(String::new, |label| format!(", {label}"));
                let text = format!(
                    "{}{of}: {} {:.0}%, {} {:.0}%",
                    step.name, least.0, least.1, most.0, most.1
                );
                found.push((points, text));
            }
        }
    }
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found
}

/// The share that others used beside a step, in percent.
fn others(row: &Row) -> Option<f64> {
    row.metric("others%")
}

/// The share that others used beside each target, in percent, on average over its repeats.
fn shares<'a>(lines: &[Line<'a>], step: StepHead<'_>) -> Vec<(&'a str, f64)> {
    let of_target = |(name, rows): (&'a str, Vec<&Row>)| {
        let shares: Vec<f64> = rows.iter().filter_map(|row| others(row)).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        (!shares.is_empty()).then_some((name, mean))
    };
    let targets = comparable_by_target(lines, step).into_iter();
    targets.filter_map(of_target).collect()
}
