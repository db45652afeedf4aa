//! The difference of a figure between two targets over their repeats, with its interval.

use super::mean::{Mean, difference_of, mean_of};
use super::student;

/// The share of intervals that miss the true difference.
const ERROR_RATE: f64 = 0.05;

/// The least error, as a share of the largest value: values that print as equal may differ by
/// rounding.
const RESOLUTION: f64 = 1e-9;

/// A mean with the interval that holds the true one in 95% of all cases, by Student's t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Difference {
    /// Returns the mean of one value from each repeat; `None` with fewer than two.
    pub fn of_values(values: &[f64]) -> Option<Self> {
        (values.len() >= 2).then(|| Self::new(mean_of(values, resolution(values))))
    }

    /// Returns the mean of target minus base over pairs of repeats that ran next to each other.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(base, value)| value - base).collect();
        Self::of_values(&differences)
    }

    /// Returns the mean of the target minus the mean of the base, for repeats that did not take
    /// turns.
    pub fn of_samples(base: &[f64], values: &[f64]) -> Option<Self> {
        let floor = resolution(base).max(resolution(values));
        (base.len().min(values.len()) >= 2).then(|| Self::new(difference_of(base, values, floor)))
    }

    /// Returns whether the interval excludes zero.
    pub fn is_shown(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    fn new(mean: Mean) -> Self {
        let reach = student::quantile(ERROR_RATE, mean.freedom) * mean.error;
        Self { mean: mean.center, low: mean.center - reach, high: mean.center + reach }
    }
}

fn resolution(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    (largest * RESOLUTION).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10, 12 and 14 more: mean 12, standard deviation 2, t(0.05, 2) = 4.302653.
    #[test]
    fn the_interval_of_pairs_matches_students_t_by_hand() {
        let pairs = [(100.0, 110.0), (50.0, 62.0), (70.0, 84.0)];
        let difference = Difference::of_pairs(&pairs).unwrap();
        let reach = 4.302_653 * 2.0 / 3.0_f64.sqrt();
        assert!((difference.mean - 12.0).abs() < 1e-12);
        assert!((difference.low - (12.0 - reach)).abs() < 1e-5, "{difference:?}");
        assert!((difference.high - (12.0 + reach)).abs() < 1e-5, "{difference:?}");
        assert!(difference.is_shown());
    }

    #[test]
    fn equal_values_differ_by_nothing_and_one_value_has_no_interval() {
        let equal = Difference::of_samples(&[7.0, 7.0, 7.0], &[7.0, 7.0]).unwrap();
        assert!(!equal.is_shown() && equal.mean == 0.0);
        assert_eq!(Difference::of_pairs(&[(7.0, 8.0)]), None);
        assert_eq!(Difference::of_samples(&[7.0], &[8.0, 9.0]), None);
    }
}
