//! Computes the number of repeats that a change needs.

use super::Pairing;
use super::borrowed::REPEATS_MIN;
use super::equality;
use super::looks::Evidence;
use crate::figures::Looks;

/// The probability with which a real change is shown.
pub const POWER: f64 = 0.8;

/// The quantile of the normal distribution at [`POWER`].
const POWER_QUANTILE: f64 = 0.841_621_233_6;

/// The largest number of repeats that is reported.
pub const REPEATS_CAP: u32 = 100;

/// The relation of repeats and visible changes, where comparisons are decided at one level.
#[derive(Clone, Copy)]
pub(super) struct PowerAnalysis {
    pub level: f64,
    pub looks: Looks,
    pub pairing: Pairing,
    /// The degrees of freedom of the measured repeats.
    pub own_freedom: f64,
    /// The degrees of freedom that other comparisons lent them.
    pub borrowed_freedom: f64,
}

impl PowerAnalysis {
    /// Returns the relation if repeats are added after the measured ones were looked at.
    pub fn with_added_repeats(self) -> Self {
        Self { looks: Looks::Growing, ..self }
    }

    /// Returns the least relative change that is shown in [`POWER`] of all cases with a number of
    /// repeats, where ratios differ by `spread`. `None` with fewer than two repeats; with more
    /// than [`REPEATS_CAP`], the change for these.
    pub fn effect(self, repeats: u32, spread: f64) -> Option<f64> {
        if repeats < 2 {
            return None;
        }
        let repeats = repeats.min(REPEATS_CAP);
        let Evidence { count, freedom } = self.evidence(repeats);
        let errors = shown(self.errors(repeats), freedom);
        // JSON has no infinity.
        Some((errors / count.sqrt() * spread).exp_m1().min(f64::MAX))
    }

    /// Returns the fewest repeats, of those that are more than `measured`, that would decide a
    /// comparison whose logarithm of the ratio stays at `center`: show a change, or rule out one of
    /// `effect`. At most [`REPEATS_CAP`], which means that or more.
    pub fn repeats_to_decide(self, center: f64, spread: f64, effect: f64, measured: u32) -> u32 {
        let reach =
            |power: Self, repeats: u32| power.errors(repeats) * spread / f64::from(repeats).sqrt();
        let equality = Self { level: equality::LEVEL, ..self };
        let is_enough = |repeats: &u32| {
            let is_shown = center.abs() > reach(self, *repeats);
            let farthest_from_1 = center.abs() + reach(equality, *repeats);
            is_shown || farthest_from_1 <= effect.ln_1p()
        };
        let first = measured.saturating_add(1).max(2);
        (first..REPEATS_CAP).find(is_enough).unwrap_or(REPEATS_CAP)
    }

    /// Returns the number of standard errors that an interval of so many repeats reaches to each
    /// side.
    fn errors(self, repeats: u32) -> f64 {
        self.looks.quantile(self.level, self.evidence(repeats))
    }

    /// Returns what so many repeats would rest on.
    fn evidence(self, repeats: u32) -> Evidence {
        let count = f64::from(repeats);
        let own_freedom = match self.pairing {
            Pairing::Independent => 2.0 * (count - 1.0),
            Pairing::Paired | Pairing::Single => count - 1.0,
        };
        Evidence { count, freedom: own_freedom + self.borrowed_with(own_freedom, count) }
    }

    /// Returns the degrees of freedom that others would lend to so many repeats, if theirs had as
    /// many: fewer repeats borrow less, and two nothing.
    fn borrowed_with(self, own_freedom: f64, repeats: f64) -> f64 {
        if repeats < f64::from(REPEATS_MIN) || self.own_freedom <= 0.0 {
            return 0.0;
        }
        self.borrowed_freedom * (own_freedom / self.own_freedom).min(1.0)
    }

    /// Returns the repeats with which a change of `effect` is seen, up to [`REPEATS_CAP`].
    pub fn repeats(self, effect: f64, spread: f64) -> u32 {
        let (mut too_few, mut enough) = (1, REPEATS_CAP);

        while enough - too_few > 1 {
            let middle = u32::midpoint(too_few, enough);
            let least = self.effect(middle, spread);
            if least.is_some_and(|least| least <= effect) {
                enough = middle
            } else {
                too_few = middle
            }
        }

        enough
    }
}

/// Returns the number of standard errors by which a mean must differ so that |t| exceeds
/// `threshold` in [`POWER`] of all cases: the noncentral t distribution's approximation by the
/// normal (Abramowitz and Stegun, 26.7.10).
fn shown(threshold: f64, freedom: f64) -> f64 {
    threshold * (1.0 - 1.0 / (4.0 * freedom))
        + POWER_QUANTILE * (1.0 + threshold * threshold / (2.0 * freedom)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(level: f64) -> PowerAnalysis {
        PowerAnalysis {
            level,
            looks: Looks::Once,
            pairing: Pairing::Paired,
            own_freedom: 0.0,
            borrowed_freedom: 0.0,
        }
    }

    /// Sample sizes of the paired t test, two-sided 5%, power 80%, as power tables give them
    /// (Cohen 1988 and G*Power): effect in standard deviations -> pairs.
    #[test]
    fn sample_sizes_are_those_of_the_tables() {
        let sight = paired(0.05);
        for (size, pairs) in [(0.5_f64, 34), (0.8, 15), (1.0, 10), (1.5, 6), (2.0, 5)] {
            let got = sight.repeats(size.exp_m1(), 1.0);
            assert!(got.abs_diff(pairs) <= 1, "{size}: {got}, in tables {pairs}");
        }
        // Two samples of n each: the difference of one repeat has the square root of 2 times a
        // sample's spread.
        let sight = PowerAnalysis { pairing: Pairing::Independent, ..paired(0.05) };
        for (size, each) in [(0.5_f64, 64), (0.8, 26), (1.0, 17), (1.5, 9)] {
            let got = sight.repeats(size.exp_m1(), 2.0_f64.sqrt());
            assert!(got.abs_diff(each) <= 1, "{size}: {got}, in tables {each}");
        }
    }

    #[test]
    fn more_noise_and_more_comparisons_need_more_repeats_up_to_the_cap() {
        let (alone, among_many) = (paired(0.05), paired(0.05 / 40.0));
        assert!(alone.repeats(0.03, 0.01) < alone.repeats(0.03, 0.03));
        assert!(alone.repeats(0.03, 0.01) < among_many.repeats(0.03, 0.01));
        assert_eq!(alone.repeats(0.001, 0.1), REPEATS_CAP);
        assert_eq!(alone.repeats(0.03, 0.0), 2);
        assert_eq!(alone.effect(1, 0.01), None);
        assert_eq!(among_many.effect(2, 10.0), Some(f64::MAX));
    }
}
