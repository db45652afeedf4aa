//! Computes means with their errors.

use super::Sample;

/// A mean with what is known about its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub center: f64,
    /// The standard error. It is zero if all values agree, and counting has no error either.
    pub error: f64,
    /// Degrees of freedom of that.
    pub freedom: f64,
}

impl Mean {
    /// Creates a mean with an error of at least `floor`.
    pub fn new(center: f64, variance: f64, freedom: f64, floor: f64) -> Self {
        Self { center, error: variance.sqrt().max(floor), freedom }
    }

    /// Returns its distance from no change, in standard errors; infinite if the error is zero.
    pub fn t(self) -> f64 {
        // Zero by zero is not a number.
        if self.center == 0.0 {
            return 0.0;
        }
        (self.center / self.error).abs()
    }
}

/// A pair of repeats that ran side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub base: f64,
    pub value: f64,
    /// The times at which each was begun, in any unit, from any start.
    pub base_at: f64,
    pub at: f64,
    /// The invocation that measured them.
    pub block: Block,
}

/// An invocation of a run, on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Block {
    pub machine: usize,
    pub run: usize,
    /// From 1; 0 if the record does not say.
    pub invocation: u32,
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the mean of the values of some repeats that tables show: the geometric mean, whose ratios are
/// the shown ratios, or the arithmetic mean if a value is not above zero. `None` without values.
pub fn mean_of_samples(samples: &[Sample]) -> Option<f64> {
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    shown_mean(&values)
}

/// Returns the mean that [`mean_of_samples`] is.
pub(super) fn shown_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    if values.iter().any(|value| *value <= 0.0) {
        return Some(mean(values));
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    Some(mean(&logarithms).exp())
}

/// Returns the variance of a sample; zero with fewer than two values.
pub(super) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() as f64 - 1.0)
}

/// Returns the mean of a sample of two values or more, with an error of at least `floor`.
pub(crate) fn mean_of(values: &[f64], floor: f64) -> Mean {
    let count = values.len() as f64;
    let variance = variance(values) / count;
    Mean::new(mean(values), variance, count - 1.0, floor)
}

/// Returns the difference of two means, with degrees of freedom for unequal variances (Welch 1947),
/// and an error of at least `floor`.
pub(crate) fn difference_of(base: &[f64], values: &[f64], floor: f64) -> Mean {
    let part = |sample: &[f64]| variance(sample) / sample.len() as f64;
    let (of_base, of_values) = (part(base), part(values));

    let variance = of_base + of_values;
    let share = |part: f64, sample: &[f64]| part * part / (sample.len() as f64 - 1.0);
    let freedom = variance * variance / (share(of_base, base) + share(of_values, values));

    // Without any spread the smaller sample decides.
    let least = (base.len().min(values.len()) as f64 - 1.0).max(1.0);
    Mean::new(
        mean(values) - mean(base),
        variance,
        if freedom.is_finite() { freedom.max(least) } else { least },
        floor,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_all_agree_are_no_distance_from_themselves() {
        let zero = mean_of(&[0.0, 0.0], 0.0);
        assert_eq!((zero.t(), zero.freedom), (0.0, 1.0));

        let same = difference_of(&[3.0, 3.0], &[3.0, 3.0], 0.0);
        assert_eq!((same.t(), same.freedom), (0.0, 1.0));
    }

    #[test]
    fn values_that_agree_on_a_change_are_infinitely_far() {
        assert_eq!(mean_of(&[2.0, 2.0], 0.0).t(), f64::INFINITY);
    }
}
