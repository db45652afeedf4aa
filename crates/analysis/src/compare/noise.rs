//! Measures the noise of a machine by a target against itself.

use record::CellKey;
use serde::Serialize;

use super::metric::THROUGHPUT;
use super::power::PowerAnalysis;
use super::{Compared, Pairing, Verdict};
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
    /// Its row in [`Compared::rows`].
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
    /// steps: 0.03 is 3 %.
    pub effect: f64,
}

/// Returns the noise floor from a run in which targets were measured against themselves, under two
/// names.
pub fn noise_floor(compared: &Compared) -> NoiseFloor {
    let level = compared.error_rate / compared.comparison_count.max(1) as f64;
    let seen = |pairing: Pairing, spread: Option<f64>| -> Vec<DetectableEffect> {
        let sight = PowerAnalysis { level, pairing };
        let seen = |repeats| {
            let effect = sight.effect(repeats, spread?)?;
            Some(DetectableEffect { repeats, effect })
        };
        REPEATS.into_iter().filter_map(seen).collect()
    };
    let mut floor = NoiseFloor::default();
    for (index, row) in compared.rows.iter().enumerate() {
        let (THROUGHPUT, Some(ratio)) = (row.metric.as_str(), row.ratio) else {
            continue;
        };
        // Unpaired samples are matched by their number: any match is as good.
        let ratios = row.values.iter().zip(&row.base_values);
        let ratios = ratios.map(|(value, base)| value.value / base.value);
        let largest =
            ratios.filter(|ratio| ratio.is_finite()).max_by(|a, b| away(*a).total_cmp(&away(*b)));
        floor.shown += usize::from(matches!(row.verdict, Verdict::Faster | Verdict::Slower));
        floor.steps.push(StepNoise {
            row: index,
            cell: row.cell.clone(),
            step: row.step.clone(),
            repeats: row.values.len().min(row.base_values.len()),
            ratio,
            spread: row.spread,
            largest: largest.unwrap_or(ratio),
            seen: seen(row.pairing, row.spread),
        });
    }
    let worst = floor.steps.iter().enumerate();
    floor.worst_step = worst
        .max_by(|(_, a), (_, b)| away(a.largest).total_cmp(&away(b.largest)))
        .map(|(index, _)| index);
    floor.spread_median = median(floor.steps.iter().filter_map(|step| step.spread));
    floor.seen = seen(Pairing::Paired, floor.spread_median);
    floor
}

/// Returns the distance of a ratio from no change, to either side.
fn away(ratio: f64) -> f64 {
    ratio.ln().abs()
}
