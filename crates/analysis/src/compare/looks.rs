//! The price of looking at results more than once.
//!
//! Student's t is for a number of repeats that was chosen in advance. Whoever looks after each
//! repeat, and stops when something is shown, has many chances to be wrong. A confidence sequence
//! allows for that: all of its intervals together hold the true mean with the stated probability
//! (Lai 1976; Wang and Ramdas, *Anytime-valid t-tests and confidence sequences for Gaussian means
//! with unknown variance*, 2025).
//!
//! A run that ends when its time is up has a last look that no result has chosen. Student's t holds
//! there, and says much more. So such a run divides its error rate between the looks before and the
//! last one. `docs/statistics.md` has the formulas.

use super::student;
use crate::figures::Looks;

/// The standard deviation of supposed changes, in spreads of one repeat's ratio. Sequences for
/// other changes are wider, but not much.
const CHANGE_SPREADS: f64 = 3.0;

/// The share of the error rate for all looks while repeats are added.
const SHARE_OF_GROWING: f64 = 0.5;

/// The share for the end of the time.
const SHARE_OF_TIME_UP: f64 = 0.4;

/// The share for each end of the time after a run was resumed.
const SHARE_OF_TIME_UP_AGAIN: f64 =
    (1.0 - SHARE_OF_GROWING - SHARE_OF_TIME_UP) / Looks::AGAIN_MAX as f64;

/// The values on which a mean rests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    /// The number of values, such as pairs.
    pub count: f64,
    /// The degrees of freedom of the mean's error.
    pub freedom: f64,
}

impl Looks {
    /// Returns the number of standard errors that an interval reaches to each side with the error
    /// rate `level`; infinity if these values bound nothing.
    pub(super) fn quantile(self, level: f64, evidence: Evidence) -> f64 {
        let level = level * self.share();
        if self.is_sequence() {
            sequence_quantile(level, evidence)
        } else {
            student::quantile(level, evidence.freedom)
        }
    }

    /// Returns the error rate at which a mean is shown that Student's t shows at `students`.
    pub(super) fn p_value(self, students: f64, evidence: Evidence) -> f64 {
        let of_look = if self.is_sequence() { sequence_p(students, evidence) } else { students };
        (of_look / self.share()).min(1.0)
    }

    /// Returns whether more looks like this one may come.
    fn is_sequence(self) -> bool {
        match self {
            Self::AnyTime | Self::Growing => true,
            Self::Once | Self::TimeUp | Self::TimeUpAgain => false,
        }
    }

    /// Returns the share of the error rate that this look has: together with all others, at most 1.
    pub fn share(self) -> f64 {
        match self {
            Self::Once | Self::AnyTime => 1.0,
            Self::Growing => SHARE_OF_GROWING,
            Self::TimeUp => SHARE_OF_TIME_UP,
            Self::TimeUpAgain => SHARE_OF_TIME_UP_AGAIN,
        }
    }
}

/// Returns the error rate at which a sequence shows a mean that Student's t shows at `students`.
fn sequence_p(students: f64, evidence: Evidence) -> f64 {
    let t = if students <= 0.0 {
        f64::INFINITY
    } else {
        student::quantile(students.min(1.0), evidence.freedom)
    };
    (1.0 / bayes_factor(t, evidence)).min(1.0)
}

impl Evidence {
    /// Returns the variance of a mean in squared standard errors, if the true one is a supposed
    /// change: 1, and that of the change.
    fn change_variance(self) -> f64 {
        1.0 + self.count * CHANGE_SPREADS * CHANGE_SPREADS
    }
}

/// Returns by how much more probable `t` is under a supposed change than without a change.
fn bayes_factor(t: f64, evidence: Evidence) -> f64 {
    let Evidence { freedom, .. } = evidence;
    let variance = evidence.change_variance();
    let ratio = if t.is_finite() {
        (1.0 + t * t / freedom) / (1.0 + t * t / (variance * freedom))
    } else {
        variance
    };
    (f64::midpoint(freedom, 1.0) * ratio.ln() - variance.ln() / 2.0).exp()
}

/// Returns the |t| at which [`bayes_factor`] is `1 / level`; infinity if no t is enough.
fn sequence_quantile(level: f64, evidence: Evidence) -> f64 {
    let Evidence { freedom, .. } = evidence;
    let variance = evidence.change_variance();
    let exponent = (variance.ln() / 2.0 - level.ln()) / f64::midpoint(freedom, 1.0);
    let beyond_largest = exponent - variance.ln();
    if beyond_largest >= 0.0 {
        return f64::INFINITY;
    }
    (freedom * exponent.exp_m1() / -beyond_largest.exp_m1()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Looks; 5] =
        [Looks::Once, Looks::AnyTime, Looks::Growing, Looks::TimeUp, Looks::TimeUpAgain];

    #[test]
    fn all_looks_of_a_run_share_one_error_rate() {
        let again = Looks::AGAIN_MAX as f64 * Looks::TimeUpAgain.share();
        let sum = Looks::Growing.share() + Looks::TimeUp.share() + again;
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }

    #[test]
    fn the_end_of_the_time_shows_more_than_the_looks_before() {
        for (count, freedom) in [(4, 3.0), (10, 20.0), (28, 27.0)] {
            let evidence = evidence(count, freedom);
            for level in [0.05, 0.003] {
                let [growing, time_up, once] = [Looks::Growing, Looks::TimeUp, Looks::Once]
                    .map(|looks| looks.quantile(level, evidence));
                assert!(once < time_up && time_up < growing, "{once} {time_up} {growing}");
            }
        }
    }

    fn evidence(count: u32, freedom: f64) -> Evidence {
        Evidence { count: f64::from(count), freedom }
    }

    #[test]
    fn the_quantile_is_where_the_bayes_factor_reaches_the_level() {
        for (count, freedom) in [(4, 3.0), (5, 11.5), (30, 29.0), (1000, 999.0), (3, 1002.0)] {
            for level in [0.05, 0.002, 1e-6] {
                let evidence = evidence(count, freedom);
                let t = sequence_quantile(level, evidence);
                if t.is_finite() {
                    let factor = bayes_factor(t, evidence);
                    assert!((factor * level - 1.0).abs() < 1e-9, "{count} {freedom} {level}");
                } else {
                    assert!(bayes_factor(f64::INFINITY, evidence) <= 1.0 / level);
                }
            }
        }
    }

    #[test]
    fn a_mean_is_shown_exactly_where_its_p_is_at_most_the_level() {
        for (count, freedom) in [(3, 2.0), (4, 3.0), (8, 15.0), (40, 39.0)] {
            let evidence = evidence(count, freedom);
            for looks in ALL {
                for t in [0.1, 1.0, 3.0, 8.0, 40.0] {
                    let p = looks.p_value(student::tails(t, freedom), evidence);
                    for level in [0.05, 0.01, 0.001] {
                        let is_shown = t >= looks.quantile(level, evidence);
                        assert_eq!(is_shown, p <= level, "{looks:?} {count} {t} {level}");
                    }
                }
            }
        }
    }

    #[test]
    fn looking_often_needs_more_than_looking_once() {
        for (count, freedom) in [(3, 2.0), (5, 4.0), (10, 20.0), (100, 99.0)] {
            let evidence = evidence(count, freedom);
            for level in [0.05, 0.001] {
                let once = Looks::Once.quantile(level, evidence);
                assert!(Looks::AnyTime.quantile(level, evidence) > once);
            }
        }
    }

    /// With two values, no ratio of mean and spread is impossible by chance.
    #[test]
    fn two_values_bound_nothing() {
        let two = evidence(2, 1.0);
        assert_eq!(Looks::AnyTime.quantile(0.05, two), f64::INFINITY);
        assert!(Looks::AnyTime.p_value(0.0, two) > 0.05);
        assert_eq!(Looks::AnyTime.p_value(1.0, two), 1.0);
    }
}
