//! The noise that comparisons share: whether the repeats of several steps confirm each other, or
//! tell the same story several times, as next to a noisy neighbor.

use std::collections::BTreeMap;

use super::Sample;
use super::mean::mean;
use crate::order::distinct;

/// The fewest degrees of freedom of a correlation.
const CORRELATION_FREEDOM_MIN: usize = 2;

/// The values of a comparison, by repeat and side.
pub(super) type RepeatValues = BTreeMap<RepeatKey, f64>;

/// The identity of a value, by which two comparisons find the repeats that both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RepeatKey {
    pub side: RepeatSide,
    pub run: usize,
    pub repeat: u32,
}

/// The side of a comparison that a value belongs to. The ratio of a pair belongs to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RepeatSide {
    Both,
    Base,
    Target,
}

impl RepeatSide {
    const ALL: [Self; 3] = [Self::Both, Self::Base, Self::Target];
}

impl RepeatKey {
    /// Returns the key of a value on a side.
    pub fn of(side: RepeatSide, sample: &Sample) -> Self {
        Self { side, run: sample.run, repeat: sample.repeat }
    }
}

/// Returns the number of independent comparisons that say as much about a common variance as these:
/// all of them if their repeats are independent, 1 if they are the same noise.
///
/// The variance of a mean of m variances is that of `m² / Σ ρ²` independent ones, where the sum is
/// over all pairs of them, each with itself included. With the mean ρ² of the pairs of different
/// ones, that is `m / (1 + (m - 1) ρ²)`.
pub(super) fn independent_count(comparisons: &[&RepeatValues]) -> f64 {
    let mut dependences = Vec::new();
    for (index, values) in comparisons.iter().enumerate() {
        for others in &comparisons[..index] {
            // Without common repeats nothing is known, which is no sign of independence.
            dependences.push(dependence(values, others).unwrap_or(1.0));
        }
    }
    if dependences.is_empty() {
        return 1.0;
    }

    // Single ones may be below zero by chance, and only their mean says something.
    let count = comparisons.len() as f64;
    let shared = mean(&dependences).clamp(0.0, 1.0);
    count / (1.0 + (count - 1.0) * shared)
}

/// Returns how dependent the repeats of two comparisons are: the squared correlation over those that
/// both have, less what chance alone makes of independent ones. `None` if both have too few to say
/// anything, or if one of them has no noise.
fn dependence(values: &RepeatValues, others: &RepeatValues) -> Option<f64> {
    let mut common: Vec<RepeatKey> = values.keys().copied().collect();
    common.retain(|key| others.contains_key(key));
    let sides = distinct(common.iter().map(|key| key.side)).len();
    let freedom = common.len().saturating_sub(sides);
    if freedom < CORRELATION_FREEDOM_MIN {
        return None;
    }

    let values = centered(values, &common);
    let others = centered(others, &common);
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (square, other_square) = (product(&values, &values), product(&others, &others));
    if square <= 0.0 || other_square <= 0.0 {
        return None;
    }

    // Independent series have an expected squared correlation of 1 / freedom.
    let squared = product(&values, &others).powi(2) / (square * other_square);
    let by_chance = 1.0 / freedom as f64;
    Some((squared.min(1.0) - by_chance) / (1.0 - by_chance))
}

/// Returns the values of these repeats, relative to their mean on each side.
fn centered(values: &RepeatValues, repeats: &[RepeatKey]) -> Vec<f64> {
    let mut centered: Vec<f64> = repeats.iter().map(|repeat| values[repeat]).collect();
    for side in RepeatSide::ALL {
        let mut places: Vec<usize> = (0..repeats.len()).collect();
        places.retain(|&place| repeats[place].side == side);

        let of_side: Vec<f64> = places.iter().map(|&place| centered[place]).collect();
        let center = mean(&of_side);
        for place in places {
            centered[place] -= center;
        }
    }
    centered
}
