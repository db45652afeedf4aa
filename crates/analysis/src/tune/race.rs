//! Judges a race: which levels of a combination matter.

use serde::{Deserialize, Serialize};

/// A combination against another one, in the tuned step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// The index of the factor that the other one lacks; 0 where the other one is the base.
    pub factor: usize,
    /// The ratio of the combination to the other one; above 1 is better.
    pub ratio: f64,
    /// The interval of the ratio.
    pub interval: Option<RatioInterval>,
    /// The combination is shown to be better.
    pub is_better: bool,
    /// In a step that must not suffer, the combination is shown to be below its bound. Bounds are
    /// relative to the base, so this is false where the other one is another combination.
    pub breaks_bound: bool,
    /// In each step that must not suffer, the combination is shown to be above its bound. False where
    /// the other one is another combination.
    pub keeps_bounds: bool,
}

/// The interval of a ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RatioInterval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// The result of a race.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RaceResult {
    /// The combination against each one that lacks a level of it.
    pub without: Vec<Contender>,
    /// The factor without which a step that must not suffer gains most, if the combination is shown
    /// to be below the bound of such a step.
    pub worst_for_bound: Option<usize>,
}

impl RaceResult {
    /// Returns the factor to drop: one that breaks a bound, else the one that matters least of those
    /// that are not shown to matter. `None`: all matter.
    pub fn to_drop(&self) -> Option<usize> {
        if self.worst_for_bound.is_some() {
            return self.worst_for_bound;
        }
        let unshown = self.without.iter().filter(|contender| !contender.is_better);
        let least = unshown.min_by(|a, b| a.ratio.total_cmp(&b.ratio));
        least.map(|contender| contender.factor)
    }
}
