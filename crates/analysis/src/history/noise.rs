//! The noise of a series, from its own past: how much its points vary within a level, and how much
//! the level itself wanders.

use std::ops::Range;

use super::segments::segments;
use crate::figures::average::median;

/// The most that a point counts for, in spreads.
pub(super) const CLIP: f64 = 3.0;
/// The least spread, as a share of a value: changes below it are of no use to anybody.
const SPREAD_MIN: f64 = 0.0005;
/// The points on either side by whose median a point is judged to be an outlier.
const NEIGHBORS: usize = 2;
/// The means of so many neighboring points are compared, to see how much the level wanders.
const BLOCKS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// A series has at least so many blocks of a length that is looked at.
const BLOCKS_MIN: usize = 6;
/// The share of differences that are smaller than the one that is taken for usual. Less than half:
/// the few that have a change between them are among the larger ones.
const USUAL: f64 = 0.4;
/// The |x| below which that share of a normal x of variance 1 is.
const USUAL_NORMAL: f64 = 0.524_400_51;
/// The cost of a level that is certain enough not to count as wandering, in squared spreads; and
/// the least share of blocks without such a change between them. A series with less of them
/// wanders.
const CERTAIN_PENALTY: f64 = 30.0;
const CERTAIN_SHARE: f64 = 0.25;
/// So many series say together how much levels wander.
const POOL_MIN: usize = 4;
/// The weight of what is expected of a series, in blocks: by other series, and by none.
const POOL_WEIGHT: f64 = 20.0;
const LONE_WEIGHT: f64 = 8.0;

/// The noise of a series.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    /// The spread by the differences of neighboring points, which levels don't affect.
    pub unit: f64,
    /// The standard deviation of points around the levels, with clipped outliers.
    pub spread: f64,
    /// The degrees of freedom of `spread`.
    pub freedom: f64,
    /// The number of points.
    count: usize,
    /// The variance of a mean of so many points, relative to that of independent points with the
    /// spread `unit`.
    wander: Vec<(usize, f64)>,
}

impl Noise {
    /// Measures the noise by differences alone, as long as no level is known.
    pub(super) fn of_differences(values: &[f64]) -> Self {
        let unit = (block_difference(values, 1, &[]) / 2.0).sqrt().max(SPREAD_MIN);
        let freedom = values.len().saturating_sub(1) as f64;
        Self { unit, spread: unit, freedom, count: values.len(), wander: wander(values, unit) }
    }

    /// Returns the noise with the spread around these levels.
    pub(super) fn around(&self, values: &[f64], levels: &[Range<usize>]) -> Self {
        let mut squares = 0.0;

        for level in levels {
            let inside = &values[level.clone()];
            let center = median(inside.iter().copied()).unwrap_or(0.0);
            squares += inside.iter().map(|value| self.clip(value - center).powi(2)).sum::<f64>();
        }

        let freedom = values.len().saturating_sub(levels.len()).max(1) as f64;
        let spread = (squares / freedom).sqrt().max(SPREAD_MIN);
        Self { spread, freedom, ..self.clone() }
    }

    /// Limits a deviation to [`CLIP`] spreads.
    pub(super) fn clip(&self, deviation: f64) -> f64 {
        deviation.clamp(-CLIP * self.unit, CLIP * self.unit)
    }

    /// Returns the standard error of the difference between the means of two neighboring levels.
    pub(super) fn error(&self, lengths: [usize; 2]) -> f64 {
        let [left, right] = lengths.map(|length| length as f64);
        let wander = self.wander_of(lengths[0].min(lengths[1]));
        let variance = (self.unit * self.unit * wander).max(self.spread * self.spread);
        (variance * (1.0 / left + 1.0 / right)).sqrt()
    }

    fn wander_of(&self, length: usize) -> f64 {
        let known = self.wander.iter().rev().find(|(block, _)| *block <= length);
        known.map_or(1.0, |(_, ratio)| *ratio)
    }
}

/// Combines what each series says of its wandering with what all say: most of it is the machine's,
/// and one short series cannot tell it from chance.
pub(super) fn pool(noises: &mut [Noise]) {
    for length in BLOCKS.into_iter().skip(1) {
        let ratio = |noise: &Noise| {
            let mut known = noise.wander.iter();
            known.find(|(block, _)| *block == length).map(|(_, ratio)| *ratio)
        };

        let ratios: Vec<f64> = noises.iter().filter_map(ratio).collect();
        let (expected, weight) = if ratios.len() < POOL_MIN {
            (1.0, LONE_WEIGHT)
        } else {
            (median(ratios).unwrap_or(1.0).max(1.0), POOL_WEIGHT)
        };

        for noise in noises.iter_mut() {
            let own_weight = noise.count as f64 / length as f64;
            for (_, ratio) in noise.wander.iter_mut().filter(|(block, _)| *block == length) {
                *ratio = (own_weight * *ratio + weight * expected) / (own_weight + weight);
            }
        }
    }

    // A longer mean never wanders less.
    for noise in noises {
        let mut most = 1.0_f64;
        for (_, ratio) in &mut noise.wander {
            most = most.max(*ratio);
            *ratio = most;
        }
    }
}

/// Limits each point to what its neighbors allow (a Hampel filter): one or two odd points are no
/// level.
pub(super) fn without_outliers(values: &[f64], unit: f64) -> Vec<f64> {
    let last = values.len().saturating_sub(1);
    let limited = values.iter().enumerate().map(|(at, value)| {
        // At the ends, the window keeps its length.
        let width = (2 * NEIGHBORS).min(last);
        let from = at.saturating_sub(NEIGHBORS).min(last - width);
        let center = median(values[from..=from + width].iter().copied()).unwrap_or(*value);
        center + (value - center).clamp(-CLIP * unit, CLIP * unit)
    });
    limited.collect()
}

/// Returns the square of the usual difference between the means of two neighboring blocks, of those
/// that have none of the changes in them, if these are enough.
fn block_difference(values: &[f64], length: usize, changes: &[usize]) -> f64 {
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain(values.iter().scan(0.0, |sum, value| {
            *sum += value;
            Some(*sum)
        }))
        .collect();

    let difference = |end: usize| {
        let middle = sums[end - length];
        let (left, right) = (middle - sums[end - 2 * length], sums[end] - middle);
        ((right - left) / length as f64).abs()
    };
    let has_change =
        |end: &usize| changes.iter().any(|change| (end - 2 * length + 1..*end).contains(change));

    let ends = 2 * length..sums.len();
    let without: Vec<f64> = ends.clone().filter(|end| !has_change(end)).map(difference).collect();
    let is_enough = without.len() as f64 >= CERTAIN_SHARE * ends.len() as f64;

    let mut sorted = if is_enough { without } else { ends.map(difference).collect() };
    sorted.sort_by(f64::total_cmp);
    let usual = sorted.get((sorted.len() as f64 * USUAL) as usize).copied().unwrap_or(0.0);
    (usual / USUAL_NORMAL).powi(2)
}

/// Returns the variance of the means of blocks, relative to that of independent points, for each
/// length of which there are enough blocks.
fn wander(values: &[f64], unit: f64) -> Vec<(usize, f64)> {
    let changes = segments(values, unit, CERTAIN_PENALTY);
    let values = without_outliers(values, unit);
    let single = block_difference(&values, 1, &[]).max(2.0 * SPREAD_MIN * SPREAD_MIN);
    let lengths = BLOCKS.into_iter().filter(|length| values.len() >= length * BLOCKS_MIN);
    let ratio =
        |length: usize| block_difference(&values, length, &changes) * length as f64 / single;
    lengths.map(|length| (length, ratio(length))).collect()
}
