//! Finds the levels of many series together, so that the share of false changes among all is
//! bounded.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::evidence::{ChangePlace, Sides, anywhere};
use super::noise::{CLIP, Noise, pool};
use super::segments::{LEVEL_MIN, PENALTY, segments};
use crate::compare::family;
use crate::compare::student::{quantile, tails};

/// The fewest points of a series with changes: with less, its noise is unknown.
pub const POINTS_MIN: usize = 5;
/// The share of changes that may be false, over all series.
pub const ERROR_RATE: f64 = 0.05;
/// A candidate whose p is above this is not a hypothesis.
const CANDIDATE_P: f64 = 0.05;
/// The level changes when changes are removed; this often is enough.
const ROUNDS_MAX: usize = 20;
/// The newest points that a change is sized for, and the most that a confirmation needs.
const CONFIRMING_MAX: usize = 30;

/// The options of levels.
#[derive(Clone, Copy, Debug)]
pub struct LevelOptions {
    /// The share of changes that may be false, over all series.
    pub error_rate: f64,
    /// The smallest relative change that matters: 0.01 is 1%.
    pub effect: f64,
}

impl Default for LevelOptions {
    fn default() -> Self {
        Self { error_rate: ERROR_RATE, effect: 0.01 }
    }
}

/// The levels of a series.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// The levels, the oldest first; the changes lie between them.
    pub levels: Vec<Level>,
    /// The changes, one fewer than levels.
    pub changes: Vec<LevelChange>,
    /// The standard deviation of a point within a level, as a share of the value. `None`: the
    /// series is too short.
    pub spread: Option<f64>,
    /// The newest points, if they are far off their level and no change is shown yet.
    pub pending: Option<Pending>,
    /// The number of points that show any change, however large. `None`: no number does.
    pub confirming: Option<usize>,
    /// The smallest change that this many points show, as a share of the value: see
    /// [`Levels::confirming`].
    pub visible: Option<f64>,
    pub(super) noise: Option<Noise>,
}

/// Points between two changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Their indexes in the series.
    pub points: Range<usize>,
    /// Their mean, without what outliers add.
    pub mean: f64,
}

/// A change from one level to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelChange {
    /// The most likely first point of the new level.
    pub at: usize,
    /// The first point that may be the first one of the new level, with a confidence of about
    /// 95%.
    pub earliest: usize,
    /// The last such point.
    pub latest: usize,
    /// New / old.
    pub ratio: f64,
    /// The ends of the interval of the ratio, at the level at which the change is shown.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// The probability that chance makes such a change anywhere in the series.
    pub p: f64,
}

/// The newest points are far off their level, but too few to be a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pending {
    /// Their number.
    pub points: usize,
    /// Their mean / the level.
    pub ratio: f64,
}

/// Returns the levels of each series. A value is the logarithm of what was measured.
pub fn levels(series: &[Vec<f64>], options: LevelOptions) -> Vec<Levels> {
    let mut noises: Vec<Noise> =
        series.iter().map(|values| Noise::of_differences(values)).collect();
    pool(&mut noises);

    let mut fits: Vec<Fit<'_>> =
        series.iter().zip(noises).map(|(values, noise)| Fit::new(values, noise)).collect();

    for fit in &mut fits {
        fit.prune(CANDIDATE_P, options.effect);
    }

    // A series without a candidate is a hypothesis as well: that it has no change.
    let mut level = CANDIDATE_P;
    for _ in 0..ROUNDS_MAX {
        let mut p_values = Vec::new();
        for fit in fits.iter().filter(|fit| fit.is_judged()) {
            p_values.extend(fit.p_values.iter().copied());
            if fit.changes.is_empty() {
                p_values.push(1.0);
            }
        }
        level = family::level(&p_values, options.error_rate);

        let mut is_stable = true;

        for fit in &mut fits {
            is_stable &= !fit.prune(level, options.effect);
        }
        if is_stable {
            break;
        }
    }

    let alone =
        options.error_rate / fits.iter().filter(|fit| fit.is_judged()).count().max(1) as f64;
    fits.iter().map(|fit| fit.levels(level, alone)).collect()
}

/// A series with the changes that are left.
struct Fit<'v> {
    values: &'v [f64],
    by_differences: Noise,
    noise: Noise,
    changes: Vec<usize>,
    p_values: Vec<f64>,
}

impl<'v> Fit<'v> {
    fn new(values: &'v [f64], by_differences: Noise) -> Self {
        let changes = if values.len() < POINTS_MIN {
            Vec::new()
        } else {
            segments(values, by_differences.unit, PENALTY)
        };

        let mut fit = Self {
            values,
            noise: by_differences.clone(),
            by_differences,
            changes,
            p_values: Vec::new(),
        };

        fit.judge();
        fit
    }

    fn is_judged(&self) -> bool {
        self.values.len() >= POINTS_MIN
    }

    fn ranges(&self) -> Vec<Range<usize>> {
        let starts = std::iter::once(0).chain(self.changes.iter().copied());
        let ends = self.changes.iter().copied().chain([self.values.len()]);
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    fn sides(&self, change: usize) -> Sides {
        let ranges = self.ranges();
        Sides { left: ranges[change].clone(), right: ranges[change + 1].clone() }
    }

    /// Computes the noise around the levels, and how certain each change is.
    fn judge(&mut self) {
        self.noise = self.by_differences.around(self.values, &self.ranges());
        let all = 0..self.changes.len();
        self.p_values = all.map(|change| self.sides(change).p(self.values, &self.noise)).collect();
    }

    /// Removes changes, the least sure first, until all have a p of at most `level` and are no
    /// smaller than `effect`. Returns whether any was removed.
    fn prune(&mut self, level: f64, effect: f64) -> bool {
        let before = self.changes.len();
        while let Some(weakest) = self.weakest(level, effect) {
            self.changes.remove(weakest);
            // What the removed one has left moves its neighbors.
            for neighbor in [weakest.wrapping_sub(1), weakest] {
                if neighbor < self.changes.len() {
                    self.changes[neighbor] = self.place(neighbor).best;
                }
            }
            self.judge();
        }
        self.changes.len() < before
    }

    fn weakest(&self, level: f64, effect: f64) -> Option<usize> {
        let all = 0..self.changes.len();
        let least_sure = all.clone().max_by(|a, b| self.p_values[*a].total_cmp(&self.p_values[*b]));
        if let Some(found) = least_sure.filter(|change| self.p_values[*change] > level) {
            return Some(found);
        }
        let sizes: Vec<f64> = all.map(|change| self.size(change).abs()).collect();
        let smallest = (0..sizes.len()).min_by(|a, b| sizes[*a].total_cmp(&sizes[*b]));
        smallest.filter(|change| sizes[*change] < effect.ln_1p())
    }

    fn place(&self, change: usize) -> ChangePlace {
        self.sides(change).place(self.values, &self.noise, LEVEL_MIN)
    }

    fn mean(&self, range: &Range<usize>) -> f64 {
        let inside = &self.values[range.clone()];
        let center = crate::figures::average::median(inside.iter().copied()).unwrap_or(0.0);
        let clipped: f64 = inside.iter().map(|value| self.noise.clip(value - center)).sum();
        center + clipped / inside.len().max(1) as f64
    }

    /// Returns the difference between the logarithms of two levels.
    fn size(&self, change: usize) -> f64 {
        let sides = self.sides(change);
        self.mean(&sides.right) - self.mean(&sides.left)
    }

    fn levels(&self, level: f64, alone: f64) -> Levels {
        if !self.is_judged() {
            let all = Level {
                points: 0..self.values.len(),
                mean: self.mean(&(0..self.values.len())).exp(),
            };
            let levels = if self.values.is_empty() { Vec::new() } else { vec![all] };
            return Levels { levels, ..Levels::default() };
        }

        let q = quantile(level, self.noise.freedom);
        let mut changes = Vec::new();
        for change in 0..self.changes.len() {
            let place = self.place(change);
            let size = self.size(change);
            let reach = q * self.noise.error(self.sides(change).lengths());
            changes.push(LevelChange {
                at: self.changes[change],
                earliest: place.earliest.min(self.changes[change]),
                latest: place.latest.max(self.changes[change]),
                ratio: size.exp(),
                low: (size - reach).exp(),
                high: (size + reach).exp(),
                p: self.p_values[change],
            });
        }

        let ranges = self.ranges();
        let newest = ranges.last().cloned().unwrap_or(0..0);
        let confirming = self.confirming(newest.len(), alone);

        Levels {
            levels: ranges
                .iter()
                .map(|points| Level { points: points.clone(), mean: self.mean(points).exp() })
                .collect(),
            changes,
            spread: Some(self.noise.spread),
            pending: self.pending(&newest),
            confirming,
            noise: Some(self.noise.clone()),
            visible: confirming.map(|points| self.visible(newest.len(), points, alone)),
        }
    }

    /// Returns the newest points of the last level that are off by more than [`CLIP`] spreads, all
    /// in one direction.
    fn pending(&self, newest: &Range<usize>) -> Option<Pending> {
        let center = self.mean(newest);
        let newest = &self.values[newest.clone()];

        let off = |value: &f64| {
            let deviation = value - center;
            if deviation.abs() > CLIP * self.noise.spread { deviation.signum() } else { 0.0 }
        };

        let side = off(newest.last()?);
        if side == 0.0 {
            return None;
        }

        let points = newest.iter().rev().take_while(|value| off(value) == side).count();
        let sum: f64 = newest[newest.len() - points..].iter().sum();
        Some(Pending { points, ratio: (sum / points as f64 - center).exp() })
    }

    /// Returns the number of new points after a level of `old` that show any change, if the p of a
    /// series that changed alone must be at most `level`.
    fn confirming(&self, old: usize, level: f64) -> Option<usize> {
        (LEVEL_MIN..CONFIRMING_MAX).find(|new| {
            let most = CLIP * self.noise.unit / self.noise.error([old, *new]);
            anywhere(tails(most, self.noise.freedom), old + new) <= level
        })
    }

    /// Returns the smallest change that `new` points after a level of `old` show.
    fn visible(&self, old: usize, new: usize, level: f64) -> f64 {
        let error = self.noise.error([old, new]);
        let (mut low, mut high) = (0.0, 1e3);

        // Each turn halves the range, so that a few dozen reach the precision of a float.
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if anywhere(tails(middle, self.noise.freedom), old + new) <= level {
                high = middle;
            } else {
                low = middle;
            }
        }
        (high * error).exp_m1()
    }
}
