//! Measures the noise of a machine by a target against itself.

use record::CellKey;
use serde::Serialize;

use super::metric::THROUGHPUT;
use super::power::PowerAnalysis;
use super::{Compared, ComparedStep, Pairing};
use crate::figures::average::median;

/// The numbers of repeats for which the smallest visible change is listed.
const REPEATS: [u32; 6] = [2, 3, 5, 7, 10, 20];

/// The noise floor of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// Every step whose throughput was compared, in the order of the rows.
    pub steps: Vec<StepNoise>,
    /// False changes that were shown; the error rate lets expect some.
    pub shown: usize,
    /// The step with the pair of repeats that was furthest from no change, by index in `steps`.
    pub worst_step: Option<usize>,
    /// The median spread of the steps; `None` without repeats.
    pub spread_median: Option<f64>,
    /// The smallest visible change in the step of median spread, by repeats.
    pub seen: Vec<DetectableEffect>,
}

/// The noise of one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepNoise {
    /// The row of the step in [`Compared::rows`].
    pub row: usize,
    /// The cells that were compared with themselves, in all repeats.
    #[serde(flatten)]
    pub cell: CellKey,
    /// The step.
    pub step: String,
    /// The number of pairs of repeats, or the smaller number of repeats.
    pub repeats: usize,
    /// The apparent change: the ratio as compared.
    pub ratio: f64,
    /// The standard deviation of the logarithm of one repeat's ratio; `None` with a single one.
    pub spread: Option<f64>,
    /// The ratio of the single repeat that was furthest from 1.
    pub largest: f64,
    /// The smallest visible change in this step, by repeats; empty without repeats.
    pub seen: Vec<DetectableEffect>,
}

/// The smallest visible change for a number of repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DetectableEffect {
    /// Repeats per target.
    pub repeats: u32,
    /// The least relative change that is shown in four of five cases, if it is the only one of all
    /// steps: 0.03 is 3%.
    pub effect: f64,
}

/// Returns the noise floor from a run in which targets were measured against themselves, under two
/// names.
pub fn noise_floor(compared: &Compared) -> NoiseFloor {
    // As if the change were the only one of all steps.
    let level = compared.error_rate / compared.comparison_count.max(1) as f64;
    let mut floor = NoiseFloor::default();

    for (index, row) in compared.rows.iter().enumerate() {
        let (THROUGHPUT, Some(ratio)) = (row.metric.as_str(), row.ratio) else {
            continue;
        };

        floor.shown += usize::from(row.verdict.is_change());
        floor.steps.push(StepNoise {
            row: index,
            cell: row.cell.clone(),
            step: row.step.clone(),
            repeats: row.repeats() as usize,
            ratio,
            spread: row.spread,
            largest: largest_ratio(row).unwrap_or(ratio),
            seen: detectable(row.power(level), row.interval_spread()),
        });
    }

    let steps = floor.steps.iter().enumerate();
    let worst = steps.max_by(|(_, a), (_, b)| away(a.largest).total_cmp(&away(b.largest)));
    floor.worst_step = worst.map(|(index, _)| index);
    floor.spread_median = median(floor.steps.iter().filter_map(|step| step.spread));

    floor.seen = seen_at_median_spread(compared, level);
    floor
}

/// Returns the smallest changes that are visible in the step of median spread, which borrows as much
/// as the median step.
fn seen_at_median_spread(compared: &Compared, level: f64) -> Vec<DetectableEffect> {
    let mut rows: Vec<&ComparedStep> = compared.rows.iter().collect();
    rows.retain(|row| row.metric == THROUGHPUT);
    let spread = median(rows.iter().filter_map(|row| row.interval_spread()));

    rows.retain(|row| row.borrowed_freedom() > 0.0);
    let own_freedom = median(rows.iter().map(|row| row.own_freedom()));
    let borrowed_freedom = median(rows.iter().map(|row| row.borrowed_freedom()));

    let power = PowerAnalysis {
        level,
        looks: compared.looks,
        pairing: Pairing::Paired,
        own_freedom: own_freedom.unwrap_or(0.0),
        borrowed_freedom: borrowed_freedom.unwrap_or(0.0),
    };
    detectable(power, spread)
}

/// Returns the smallest change that is visible with each number of repeats; none without a spread.
fn detectable(power: PowerAnalysis, spread: Option<f64>) -> Vec<DetectableEffect> {
    let Some(spread) = spread else {
        return Vec::new();
    };
    let effects = REPEATS.into_iter().filter_map(|repeats| {
        let effect = power.effect(repeats, spread)?;
        Some(DetectableEffect { repeats, effect })
    });
    effects.collect()
}

/// Returns the ratio of the pair of repeats that is furthest from 1. Unpaired samples are matched
/// by their number: any match is as good.
fn largest_ratio(row: &ComparedStep) -> Option<f64> {
    let pairs = row.values.iter().zip(&row.base_values);
    let ratios = pairs.map(|(value, base)| value.value / base.value);
    ratios.filter(|ratio| ratio.is_finite()).max_by(|a, b| away(*a).total_cmp(&away(*b)))
}

/// Returns the distance of a ratio from no change, to either side.
fn away(ratio: f64) -> f64 {
    ratio.ln().abs()
}
