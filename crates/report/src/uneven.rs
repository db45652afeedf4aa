//! Targets of one table beside which other programs used different shares of the processors: what is compared is not
//! the targets alone then.

use analysis::Row;

use crate::classic::comparable_by_target;
use crate::matrix::{Line, Matrix, StepHead};

/// Percentage points by which the shares must differ: a tenth of the processors may be a tenth of the throughput.
const POINTS: f64 = 10.0;

/// Steps in which that is so, each with the targets that had least and most of the others beside them; the worst first.
pub(crate) fn places(matrix: &Matrix<'_>) -> Vec<String> {
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
    found.into_iter().map(|(_, text)| text).collect()
}

/// The share that others used beside each target, in percent, on average over its repeats.
fn shares<'a>(lines: &[Line<'a>], step: StepHead<'_>) -> Vec<(&'a str, f64)> {
    let of_target = |(name, rows): (&'a str, Vec<&Row>)| {
        let shares = rows
            .iter()
            .filter_map(|row| row.metrics.get("others%").copied().flatten());
        let shares: Vec<f64> = shares.collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        (!shares.is_empty()).then_some((name, mean))
    };
    let targets = comparable_by_target(lines, step).into_iter();
    targets.filter_map(of_target).collect()
}
