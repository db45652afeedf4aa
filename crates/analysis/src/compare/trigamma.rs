//! The trigamma function, and its inverse: the variance of the logarithm of a measured variance.

/// Returns the second derivative of the logarithm of the gamma function, for x above zero: by
/// recurrence to 8 (Abramowitz and Stegun, 6.4.6), then by the asymptotic series (6.4.12).
pub(super) fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 8.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }

    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + inverse + square / 2.0 + inverse * square * series
}

/// The trigamma of a million. A variance with more degrees of freedom than that counts as known.
const TRIGAMMA_MIN: f64 = 1e-6;

/// Returns the x with this trigamma; infinity where it is below [`TRIGAMMA_MIN`]. Newton's method on
/// 1 / trigamma, which is nearly a line (Smyth 2004, appendix).
pub(super) fn inverse_trigamma(value: f64) -> f64 {
    debug_assert!(!value.is_nan());
    if value < TRIGAMMA_MIN {
        return f64::INFINITY;
    }

    let mut x = 0.5 + 1.0 / value;
    for _ in 0..50 {
        let step = 1e-5 * x;
        let slope = (trigamma(x + step) - trigamma(x - step)) / (2.0 * step);
        let at = trigamma(x);
        let change = at * (1.0 - at / value) / slope;
        x += change;
        // The steps begin above the result, so x only shrinks, except by rounding in the end.
        if -change / x < 1e-10 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Abramowitz and Stegun, table 6.1 (x = 1, 2) and 6.4.4 (x = 1/2).
    #[test]
    fn trigamma_is_that_of_the_published_table() {
        let pi_squared = std::f64::consts::PI.powi(2);
        for (x, expected) in
            [(0.5, pi_squared / 2.0), (1.0, pi_squared / 6.0), (2.0, pi_squared / 6.0 - 1.0)]
        {
            assert!((trigamma(x) - expected).abs() < 1e-10, "{x}");
            assert!((inverse_trigamma(expected) - x).abs() < 1e-8, "{x}");
        }
        assert_eq!(inverse_trigamma(-0.1), f64::INFINITY);
    }
}
