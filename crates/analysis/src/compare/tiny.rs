//! Figures that are too small to matter.

use super::mean::mean_of_samples;
use super::{ComparedStep, Sample};

/// Figures that are below this for both targets round to zero in tables and are not shown.
pub const NOTHING: f64 = 0.0005;

impl ComparedStep {
    /// Returns whether the means of both targets are below [`NOTHING`], whatever their ratio.
    pub fn is_tiny(&self) -> bool {
        has_tiny_mean(&self.base_values) && has_tiny_mean(&self.values)
    }
}

fn has_tiny_mean(samples: &[Sample]) -> bool {
    mean_of_samples(samples).is_some_and(|mean| mean < NOTHING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Vec<Sample> {
        values.iter().map(|value| Sample { run: 0, repeat: 1, value: *value }).collect()
    }

    #[test]
    fn a_comparison_is_tiny_by_the_means_that_tables_show() {
        let is_tiny = |base: &[f64], values: &[f64]| {
            let (base_values, values) = (samples(base), samples(values));
            ComparedStep { base_values, values, ..ComparedStep::default() }.is_tiny()
        };
        assert!(is_tiny(&[0.0002, 0.0004], &[0.0001, 0.0008]));
        assert!(!is_tiny(&[0.0002, 0.0004], &[0.0004, 0.0008]));
        assert!(!is_tiny(&[0.0006, 0.0006], &[0.0001, 0.0001]));

        // With a zero, tables have the arithmetic mean.
        assert!(!is_tiny(&[0.0, 0.0], &[0.0, 0.002]));
        assert!(!is_tiny(&[], &[0.0001]));
    }
}
