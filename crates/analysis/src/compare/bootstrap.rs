//! Computes the symmetric studentized bootstrap (Hall 1988): the values of t in resamples of the
//! measured values. Where these are skewed or have long tails, it needs larger values than
//! Student's t.

use words::Random;

use super::mean::{Mean, mean, mean_of};

/// Returns the |t| of every resample, in ascending order. `difference` computes a mean from the
/// samples, each of which is drawn from again.
///
/// Resamples of values that are nearly equal have almost no error of their own, so that |t| has no
/// bound. Therefore no mean counts as further off than the value that is furthest.
pub(super) fn studentized(
    samples: &[&[f64]],
    difference: impl Fn(&[Vec<f64>]) -> Mean,
    resamples: u32,
    seed: u64,
) -> Vec<f64> {
    // Sorted, so that the order in which values came does not matter.
    let mut sorted: Vec<Vec<f64>> = samples.iter().map(|sample| sample.to_vec()).collect();
    for sample in &mut sorted {
        sample.sort_by(f64::total_cmp);
    }

    let measured = difference(&sorted);
    let t_max = sorted.iter().map(|sample| furthest(sample)).sum::<f64>() / measured.error;

    let mut random = Random::new(seed);
    let mut drawn = sorted.clone();
    let mut t_values = Vec::new();
    for _ in 0..resamples {
        for (values, from) in drawn.iter_mut().zip(&sorted) {
            for value in values {
                *value = from[random.below(from.len() as u64) as usize];
            }
        }

        let mean = difference(&drawn);
        let t = ((mean.center - measured.center) / mean.error).abs();
        t_values.push(t.min(t_max));
    }

    t_values.sort_by(f64::total_cmp);
    t_values
}

/// Returns the |t| of resamples of one sample, whose mean has an error of at least `floor`.
pub(super) fn of_one(values: &[f64], floor: f64, resamples: u32, seed: u64) -> Vec<f64> {
    let difference = |drawn: &[Vec<f64>]| mean_of(&drawn[0], floor);
    studentized(&[values], difference, resamples, seed)
}

/// Returns the distance of a sample's furthest value from its mean.
fn furthest(sample: &[f64]) -> f64 {
    let mean = mean(sample);
    let distances = sample.iter().map(|value| (value - mean).abs());
    distances.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_resamples_in_any_order_of_the_values() {
        let (values, swapped) = ([0.1, -0.2, 0.05, 0.3], [0.3, 0.05, -0.2, 0.1]);
        assert_eq!(of_one(&values, 0.0, 200, 7), of_one(&swapped, 0.0, 200, 7));
        assert_ne!(of_one(&values, 0.0, 200, 7), of_one(&values, 0.0, 200, 8));
    }

    /// Shows why percentiles of the resampled means are not used, on normal values with a mean of
    /// zero.
    #[test]
    fn percentiles_of_resampled_means_are_too_narrow_with_few_repeats() {
        let mut random = Random::new(5);
        let mut normal = || (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0;
        for (repeats, at_least) in [(3, 0.2), (5, 0.1), (10, 0.06)] {
            let (mut percentile, mut students) = (0, 0);
            for seed in 0..1000 {
                let values: Vec<f64> = (0..repeats).map(|_| normal()).collect();
                let mut draws = Random::new(seed);
                let mut means: Vec<f64> = (0..199)
                    .map(|_| {
                        let drawn =
                            (0..repeats).map(|_| values[draws.below(repeats as u64) as usize]);
                        drawn.sum::<f64>() / repeats as f64
                    })
                    .collect();
                means.sort_by(f64::total_cmp);
                percentile += usize::from(means[4] > 0.0 || means[194] < 0.0);
                let mean = mean_of(&values, 0.0);
                let reach = crate::compare::student::quantile(0.05, mean.freedom) * mean.error;
                students += usize::from(mean.center.abs() > reach);
            }
            let (percentile, students) = (percentile as f64 / 1e3, students as f64 / 1e3);
            assert!(percentile > at_least, "{repeats}: {percentile}");
            assert!((0.03..0.07).contains(&students), "{repeats}: {students}");
        }
    }

    #[test]
    fn a_skewed_sample_needs_more_than_students_quantile() {
        let even: Vec<f64> = (0..20).map(|i| f64::from(i) - 9.5).collect();
        let skewed: Vec<f64> = (0..20).map(|i| f64::from(i).exp2()).collect();
        let upper = |values: &[f64]| of_one(values, 0.0, 2000, 1)[1899];
        let students = crate::compare::student::quantile(0.05, 19.0);
        assert!((upper(&even) / students - 1.0).abs() < 0.15);
        assert!(upper(&skewed) > 2.0 * students);
    }
}
