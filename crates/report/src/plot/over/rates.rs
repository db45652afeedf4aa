//! Charts of response times over requested rates.

use analysis::distinct;

use super::curves::{curves, distinct_rates, ends};
use crate::plot::chart::Chart;
use crate::plot::scale::Scale;
use crate::tables::compared::Board;

/// The percentiles that are drawn over rates.
const TIMES: [&str; 3] = ["p50", "p99", "max"];

/// Returns charts of response times over the rates of steps whose names differ only in a number:
/// `qr100`, `qr500`.
pub(in crate::plot) fn rates(board: &Board<'_>) -> Vec<Chart> {
    // Each rate of a search is a variant, which would be a line of its own.
    if board.comparison.run.search.is_some() {
        return Vec::new();
    }

    let families = step_families(board);
    let charts = families
        .iter()
        .flat_map(|family| TIMES.iter().filter_map(|name| rate_chart(board, family, name)));
    charts.collect()
}

/// Steps with a requested rate whose names differ only in a number.
struct StepFamily<'a> {
    /// The common name without the number.
    stem: &'a str,
    /// The kind of operation whose response times are drawn.
    kind: &'a str,
    steps: Vec<&'a str>,
}

/// Returns families of steps: one for the main operation, and one for the operation whose rate is
/// requested if that is another.
fn step_families<'a>(board: &Board<'a>) -> Vec<StepFamily<'a>> {
    let mut families: Vec<StepFamily<'a>> = Vec::new();

    for row in &board.comparison.figures.rows {
        let Some(sla) = row.sla.as_ref().filter(|_| board.matrix.shows(&row.step)) else {
            continue;
        };

        let stem = stem(&row.step);
        for kind in distinct(row.main_op.as_deref().into_iter().chain([sla.kind.as_str()])) {
            let is_same = |family: &&mut StepFamily<'_>| family.stem == stem && family.kind == kind;
            match families.iter_mut().find(is_same) {
                Some(family) if family.steps.contains(&row.step.as_str()) => {}
                Some(family) => family.steps.push(&row.step),
                None => families.push(StepFamily { stem, kind, steps: vec![&row.step] }),
            }
        }
    }
    families
}

/// Returns the chart of a percentile over requested rates; `None` if there is only one rate.
fn rate_chart(board: &Board<'_>, family: &StepFamily<'_>, name: &str) -> Option<Chart> {
    let curves = curves(board, board.keys, |row| {
        let op = row.ops.get(family.kind)?;
        let sla = row.sla.as_ref().filter(|_| family.steps.contains(&row.step.as_str()))?;
        let ms = op.response_us.of_operations(name, op.count)? / 1e3;
        // A logarithmic axis has no place for zero.
        (ms > 0.0).then_some((sla.target, ms))
    });

    let rates = distinct_rates(&curves);
    if rates.len() < 2 {
        return None;
    }

    let (least, most) = ends(&curves);
    Some(Chart {
        title: format!("{}, {}", family.stem.trim_end_matches(['.', '-', '_']), family.kind),
        of: format!("{name} of response time, ms, over the requested rate (/s)"),
        x: Scale::values(&rates),
        y: Scale::logarithmic(least, most),
        effect: None,
        ideal: Vec::new(),
        curves,
        remark: None,
    })
}

/// Returns a step's name without the number at its end.
fn stem(step: &str) -> &str {
    step.trim_end_matches(|letter: char| letter.is_ascii_digit())
}
