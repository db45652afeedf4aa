//! The claim that two targets are equal: that neither is better than the other by a change that
//! matters.
//!
//! Such a claim is not the lack of another one. It has two tests of its own, one-sided ones that the
//! target is not slower, and not faster, by `effect` or more (Schuirmann 1987). With an error rate of
//! 5% each, they are passed exactly if the interval with a confidence of 90% lies within `effect`.
//!
//! Each step makes its claim with this error rate, however many steps there are: a gate passes only if
//! every step does, so that further steps give it no further chance of passing wrongly (the
//! intersection-union test, Berger 1982). `docs/validation.md` has the simulations.

use super::Interval;
use super::estimate::Estimate;

/// The error rate of both one-sided tests together.
pub(super) const LEVEL: f64 = 0.1;

/// Returns the interval by which two targets are equal, or not.
pub(super) fn interval(estimate: &Estimate) -> Interval {
    let (low, high) = estimate.interval(LEVEL);
    Interval { low, high, confidence: 1.0 - LEVEL }
}

/// Returns whether a change of `effect` or more is ruled out in both directions.
///
/// The bounds are equally far from 1 on logarithms, so that two targets are equal whichever of them
/// is the base. With an effect of 1, half and double are the bounds.
pub(crate) fn is_within(interval: Interval, effect: f64) -> bool {
    interval.low >= 1.0 / (1.0 + effect) && interval.high <= 1.0 + effect
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_and_double_are_the_bounds_of_an_effect_of_1() {
        let is_equal = |low, high| is_within(Interval { low, high, confidence: 0.9 }, 1.0);
        assert!(is_equal(0.51, 1.99));
        assert!(!is_equal(0.02, 0.03), "a fortieth is no equal");
        assert!(!is_equal(0.49, 1.0) && !is_equal(1.0, 2.01));
    }
}
