//! The certainty of a change between two levels.

use std::f64::consts::{PI, SQRT_2};
use std::ops::Range;

use statrs::function::erf::{erfc, erfc_inv};

use super::noise::{CLIP, Noise};
use crate::compare::student::tails;
use crate::figures::average::median;

/// The deviances by which a place may be worse than the best one and still be where the change is:
/// about 95%.
const PLACE_DEVIANCE: f64 = 8.0;
/// The most that a point counts for when a change is placed, in spreads: where it is certain that
/// there is a change, a point far off its old level belongs to the new one.
const PLACE_CLIP: f64 = 2.0 * CLIP;

/// Two neighboring levels.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    pub left: Range<usize>,
    pub right: Range<usize>,
}

impl Sides {
    pub(super) fn lengths(&self) -> [usize; 2] {
        [self.left.len(), self.right.len()]
    }

    /// Returns the values of both, as deviations from the median of the longer one, clipped to so
    /// many spreads: so one or two wild points are no evidence.
    fn deviations(&self, values: &[f64], noise: &Noise, limit: f64) -> Vec<f64> {
        let longer = if self.right.len() > self.left.len() { &self.right } else { &self.left };
        let center = median(values[longer.clone()].iter().copied()).unwrap_or(0.0);
        let both = &values[self.left.start..self.right.end];
        let limit = limit * noise.unit;
        both.iter().map(|value| (value - center).clamp(-limit, limit)).collect()
    }

    /// Returns the difference between the means of both sides, in standard errors.
    fn distance(&self, values: &[f64], noise: &Noise) -> f64 {
        let deviations = self.deviations(values, noise, CLIP);
        let (left, right) = deviations.split_at(self.left.len());
        (mean(right) - mean(left)).abs() / noise.error(self.lengths())
    }

    /// Returns the probability that chance makes such a change anywhere in the series of `count`
    /// points.
    pub(super) fn p(&self, values: &[f64], noise: &Noise) -> f64 {
        let at_this_place = tails(self.distance(values, noise), noise.freedom);
        let length = self.right.end - self.left.start;
        let anywhere = anywhere(at_this_place, length);

        // A short level between two others could have been at many places as well.
        let count = values.len();
        let shorter = if self.right.len() < self.left.len() { &self.right } else { &self.left };
        let is_inside = shorter.start > 0 && shorter.end < count;
        let places = if is_inside { count as f64 / (2 * shorter.len()) as f64 } else { 1.0 };
        (anywhere * places.max(1.0)).min(1.0)
    }

    /// Returns the place between the outer ends of the two levels at which the change is most
    /// likely, and the range of places at which it may be.
    pub(super) fn place(&self, values: &[f64], noise: &Noise, shortest: usize) -> ChangePlace {
        let deviations = self.deviations(values, noise, PLACE_CLIP);
        let count = deviations.len();
        let total: f64 = deviations.iter().sum();

        let mut sum = 0.0;
        let mut scores = vec![f64::NEG_INFINITY; count];

        for (at, deviation) in deviations.iter().enumerate() {
            if at >= shortest && count - at >= shortest {
                let (left, right) = (at as f64, (count - at) as f64);
                let difference = (total - sum) / right - sum / left;
                scores[at] = difference * difference * left * right / count as f64;
            }
            sum += deviation;
        }

        let best = (0..count).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0);
        let accepted = scores[best] - PLACE_DEVIANCE * noise.spread * noise.spread;
        let is_possible = |at: &usize| scores[*at] >= accepted;
        let earliest = (0..=best).rev().take_while(is_possible).last().unwrap_or(best);
        let latest = (best..count).take_while(is_possible).last().unwrap_or(best);
        let offset = self.left.start;

        ChangePlace { best: offset + best, earliest: offset + earliest, latest: offset + latest }
    }
}

/// Where a change is: the first point of the new level.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangePlace {
    pub best: usize,
    pub earliest: usize,
    pub latest: usize,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the probability that chance makes such a difference at the best of all places in
/// `count` points, for a p at this place alone (James, James and Siegmund 1987).
pub(super) fn anywhere(at_this_place: f64, count: usize) -> f64 {
    if at_this_place >= 1.0 || count < 3 {
        return at_this_place;
    }

    // Below this, the inverse has no digits left, and every rate is larger.
    let distance = SQRT_2 * erfc_inv(at_this_place.max(1e-300));
    let density = (-distance * distance / 2.0).exp() / (2.0 * PI).sqrt();
    let length = count as f64;

    let crossings: f64 = (1..count)
        .map(|left| {
            let share = length / (left as f64 * (length - left as f64));
            share * overshoot(distance * share.sqrt())
        })
        .sum();

    let approximate = at_this_place + distance * density * crossings;
    approximate.min((count - 1) as f64 * at_this_place).min(1.0)
}

/// Returns the share of crossings that are left when a path is looked at only at separate points
/// (Siegmund and Yakir 2007).
fn overshoot(step: f64) -> f64 {
    if step < 1e-3 {
        return 1.0;
    }
    let half = step / 2.0;
    let below = 1.0 - erfc(half / SQRT_2) / 2.0;
    let density = (-half * half / 2.0).exp() / (2.0 * PI).sqrt();
    (2.0 / step) * (below - 0.5) / (half * below + density)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The maximum of independent looks is bounded by their sum, and one look is itself.
    #[test]
    fn choosing_the_place_costs_less_than_trying_each_place_by_itself() {
        for count in [10, 50, 200, 1000] {
            for p in [1e-3, 1e-5, 1e-8] {
                let chosen = anywhere(p, count);
                assert!(chosen > p && chosen <= p * (count - 1) as f64, "{count} {p} {chosen}");
            }
        }
        assert_eq!(anywhere(0.01, 2), 0.01);
        assert!((overshoot(1e-4) - 1.0).abs() < 1e-3 && overshoot(2.0) < 0.4);
    }
}
