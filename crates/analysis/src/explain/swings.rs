//! Steps whose throughput rises and falls with a period.

use super::case::Context;
use super::clients::by_step;
use super::explanation::Explanation;
use super::finding::{Evidence, place_of};
use super::statement::{Statement, SwingingTarget};
use super::thresholds::SAME_PERIOD;
use crate::figures::Row;
use crate::figures::swing::{InStep, Swing};
use crate::order::{grouped, sort_largest_first, sort_smallest_first};

/// The weight of the logarithm of the range of a cycle: it is not a loss of throughput by itself.
const WEIGHT: f64 = 0.3;

/// Returns the steps whose throughput swings in most repeats.
pub(super) fn explain<'a>(context: Context<'a>) -> Vec<Explanation<'a>> {
    let steps = by_step(context.figures).into_iter();
    steps.filter_map(|(_, rows)| swinging_step(context, &rows)).collect()
}

/// Returns the targets whose throughput swings in a step.
fn swinging_step<'a>(context: Context<'a>, rows: &[&'a Row]) -> Option<Explanation<'a>> {
    let repeats = rows.iter().map(|row| (context.named(&row.cell.target, &row.cell), *row));
    let targets = grouped(repeats).into_iter();
    let mut swinging: Vec<(SwingingTarget, &'a Row)> =
        targets.filter_map(|(who, repeats)| swinging_target(who, &repeats)).collect();
    sort_largest_first(&mut swinging, |(item, _)| item.swing.range_of_mean);

    let largest = &swinging.first()?.0.swing;
    Some(Explanation {
        places: swinging.iter().map(|(_, row)| place_of(row)).collect(),
        evidence: evidence(largest),
        caveats: Vec::new(),
        weight: WEIGHT * largest.range_of_mean.ln_1p(),
        statement: Statement::Swings(swinging.into_iter().map(|(target, _)| target).collect()),
    })
}

/// Returns a target with its typical repeat, if more than half of its repeats swing with about the
/// same period.
fn swinging_target<'a>(who: String, repeats: &[&'a Row]) -> Option<(SwingingTarget, &'a Row)> {
    let swings = repeats.iter().filter_map(|row| Some((*row, row.swing.as_ref()?)));
    let mut swings: Vec<(&'a Row, &'a Swing)> = swings.collect();
    sort_smallest_first(&mut swings, |(_, item)| item.period_seconds);

    let median = *swings.get(swings.len() / 2)?;
    let is_alike =
        |swing: &Swing| (swing.period_seconds / median.1.period_seconds).ln().abs() <= SAME_PERIOD;
    swings.retain(|(_, swing)| is_alike(swing));
    if 2 * swings.len() <= repeats.len() {
        return None;
    }

    // A neighbor in any repeat takes the claim about the engine away.
    let beside_neighbor = swings.iter().find(|(_, swing)| swing.host_load.is_some());
    let (row, swing) = *beside_neighbor.unwrap_or(&median);
    let target = SwingingTarget {
        who,
        swing: swing.clone(),
        swinging_repeats: swings.len(),
        repeat_count: repeats.len(),
    };
    Some((target, row))
}

fn evidence(swing: &Swing) -> Vec<Evidence> {
    let figure = |name: &str, unit, value| Evidence::single(name.to_owned(), unit, value);

    let mut evidence = vec![
        figure("period", "s", swing.period_seconds),
        figure("cycles", "", swing.cycles),
        figure("share of the variance of throughput", "%", 100.0 * swing.variance_share),
        figure("range of a cycle, of the mean rate", "%", 100.0 * swing.range_of_mean),
    ];

    let in_step = swing.host_load.iter().chain(&swing.in_step);
    evidence.extend(in_step.map(|InStep { name, correlation, .. }| {
        Evidence::single(format!("correlation with {name}"), "", *correlation)
    }));
    evidence
}
