//! Effects as they would be if none of the factors mattered: the places and the line of a
//! half-normal plot (Daniel, *Technometrics* 1, 1959).

use statrs::function::erf::erf_inv;

use crate::figures::average::median;

/// The places of effects on a half-normal plot, and the line on which those of noise alone lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HalfNormal {
    /// For each effect, from the smallest to the largest: the size that it would have if all were
    /// normal noise with a standard deviation of one. These are the quantiles of `(i - 1/2) / n`.
    pub quantiles: Vec<f64>,
    /// The standard deviation of the noise: the slope of the line.
    pub noise: f64,
}

impl HalfNormal {
    /// Returns the places of effects, by their sizes: the absolute values of logarithms of ratios,
    /// in any order.
    pub fn of(sizes: &[f64]) -> Self {
        let count = sizes.len() as f64;
        let probability = |index: usize| (index as f64 + 0.5) / count;
        let quantiles =
            (0..sizes.len()).map(|index| std::f64::consts::SQRT_2 * erf_inv(probability(index)));
        Self { quantiles: quantiles.collect(), noise: pseudo_standard_error(sizes) }
    }
}

/// Returns the noise that the sizes of effects tell: most factors have no effect, so the median of
/// the small sizes is that of noise (Lenth, *Technometrics* 31, 1989).
pub(super) fn pseudo_standard_error(sizes: &[f64]) -> f64 {
    let first = 1.5 * median(sizes.iter().copied()).unwrap_or(0.0);
    let small = sizes.iter().copied().filter(|size| *size < 2.5 * first);
    1.5 * median(small).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quantiles of the normal distribution at 0.55, 0.65, 0.75, 0.85 and 0.95, from a table.
    #[test]
    fn places_are_those_of_the_upper_half_of_the_normal_distribution() {
        let places = HalfNormal::of(&[0.1; 5]);
        for (quantile, expected) in
            places.quantiles.iter().zip([0.1257, 0.3853, 0.6745, 1.0364, 1.6449])
        {
            assert!((quantile - expected).abs() < 1e-4, "{quantile} instead of {expected}");
        }
    }

    #[test]
    fn large_effects_do_not_raise_the_line() {
        let noise = [0.004, 0.009, 0.001, 0.013, 0.006, 0.002, 0.011];
        let alone = HalfNormal::of(&noise).noise;
        let beside_large = HalfNormal::of(&[&noise[..], &[0.5, 0.7]].concat()).noise;
        assert!((alone - 0.009).abs() < 1e-12, "1.5 times the median: {alone}");
        assert!((beside_large - 0.009).abs() < 1e-12, "{beside_large}");
    }

    #[test]
    fn no_effects_have_no_places() {
        assert_eq!(HalfNormal::of(&[]), HalfNormal::default());
    }
}
