//! When the results of repeats are looked at: once, or after each of them.
//!
//! Student's t is for a number of repeats that was chosen in advance. Whoever looks after each
//! repeat, and stops when something is shown, has many chances to be wrong. A confidence sequence
//! allows for that: all of its intervals together hold the true mean with the stated probability
//! (Lai 1976; Wang and Ramdas, *Anytime-valid t-tests and confidence sequences for Gaussian means
//! with unknown variance*, 2025). `docs/statistics.md` has the formulas and the simulations.

use serde::Serialize;

use super::student;

/// The standard deviation of supposed changes, in spreads of one repeat's ratio. Sequences for
/// other changes are wider, but not much.
const CHANGE_SPREADS: f64 = 3.0;

/// How often the results of repeats are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Looks {
    /// Once: the number of repeats was chosen in advance.
    #[default]
    Once,
    /// At any time: repeats are added while earlier ones can be seen.
    AnyTime,
}

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
        match self {
            Self::Once => student::quantile(level, evidence.freedom),
            Self::AnyTime => sequence_quantile(level, evidence),
        }
    }

    /// Returns the error rate at which a mean is shown that Student's t shows at `students`.
    pub(super) fn p_value(self, students: f64, evidence: Evidence) -> f64 {
        match self {
            Self::Once => students,
            Self::AnyTime if students <= 0.0 => 1.0 / bayes_factor(f64::INFINITY, evidence),
            Self::AnyTime => {
                let t = student::quantile(students.min(1.0), evidence.freedom);
                1.0_f64.min(1.0 / bayes_factor(t, evidence))
            }
        }
    }
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
            for t in [0.1, 1.0, 3.0, 8.0, 40.0] {
                let p = Looks::AnyTime.p_value(student::tails(t, freedom), evidence);
                for level in [0.05, 0.01, 0.001] {
                    let is_shown = t >= Looks::AnyTime.quantile(level, evidence);
                    assert_eq!(is_shown, p <= level, "{count} {t} {level}");
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
