//! Student's t and Fisher's F distribution, whose tails are the regularised incomplete beta
//! function (Abramowitz and Stegun, 26.6.2 and 26.7.1).

use statrs::function::beta::{beta_reg, inv_beta_reg};

/// Returns the probability that |t| is at least this by chance, with so many degrees of freedom:
/// both tails.
pub(crate) fn tails(t: f64, freedom: f64) -> f64 {
    beta_reg(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// Returns the |t| that chance alone reaches with probability `both_tails`, in 0..1: of both tails
/// together.
pub(crate) fn quantile(both_tails: f64, freedom: f64) -> f64 {
    let x = inv_beta_reg(freedom / 2.0, 0.5, both_tails);
    (freedom * (1.0 - x) / x).sqrt()
}

/// Returns the probability that a ratio of two equal variances is at least `ratio` by chance, with
/// the degrees of freedom of the first and the second.
pub(super) fn f_tail(ratio: f64, freedom: [f64; 2]) -> f64 {
    let [first, second] = freedom;
    beta_reg(second / 2.0, first / 2.0, second / (second + first * ratio))
}

/// Returns the ratio of two equal variances that chance alone exceeds with probability `tail`, in
/// 0..1.
pub(super) fn f_quantile(tail: f64, freedom: [f64; 2]) -> f64 {
    let [first, second] = freedom;
    let x = inv_beta_reg(second / 2.0, first / 2.0, tail);
    second * (1.0 - x) / (first * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Abramowitz and Stegun, table 26.10, and the table of the NIST/SEMATECH e-Handbook,
    /// 1.3.6.7.2.
    #[test]
    fn quantiles_are_those_of_the_published_tables() {
        for (both_tails, freedom, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 4.0, 2.776),
            (0.05, 9.0, 2.262),
            (0.05, 30.0, 2.042),
            (0.05, 100.0, 1.984),
            (0.01, 1.0, 63.657),
            (0.01, 4.0, 4.604),
            (0.01, 10.0, 3.169),
            (0.002, 3.0, 10.215),
            (0.002, 4.0, 7.173),
            (0.002, 20.0, 3.552),
            (0.2, 5.0, 1.476),
        ] {
            let t = quantile(both_tails, freedom);
            assert!(
                (t - expected).abs() <= 0.000_51,
                "{both_tails} {freedom}: {t}, in the table {expected}"
            );
        }
    }

    #[test]
    fn with_one_degree_it_is_cauchys_distribution() {
        for t in [0.01_f64, 0.5, 1.0, 12.7, 1e4] {
            let exact = 2.0 * (0.5 - t.atan() / std::f64::consts::PI);
            assert!((tails(t, 1.0) / exact - 1.0).abs() < 1e-9, "{t}");
        }
    }

    #[test]
    fn with_two_degrees_it_has_a_closed_form_also_between_and_far_out() {
        for t in [0.1_f64, 1.0, 4.3, 50.0] {
            let exact = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((tails(t, 2.0) / exact - 1.0).abs() < 1e-9, "{t}");
        }
        for (both_tails, freedom) in [(0.05, 2.7), (1e-5, 4.0), (1e-9, 7.0), (0.7, 55.5)] {
            let back = tails(quantile(both_tails, freedom), freedom);
            assert!((back / both_tails - 1.0).abs() < 1e-8);
        }
    }

    /// Abramowitz and Stegun, table 26.9.
    #[test]
    fn ratios_of_variances_are_those_of_the_published_tables() {
        for (tail, freedom, expected) in [
            (0.05, [1.0, 8.0], 5.32),
            (0.05, [4.0, 4.0], 6.39),
            (0.05, [3.0, 10.0], 3.71),
            (0.025, [2.0, 2.0], 39.00),
            (0.025, [4.0, 4.0], 9.60),
            (0.25, [4.0, 5.0], 1.89),
            (0.01, [5.0, 20.0], 4.10),
        ] {
            let ratio = f_quantile(tail, freedom);
            assert!(
                (ratio - expected).abs() <= 0.0051,
                "{tail} {freedom:?}: {ratio}, in the table {expected}"
            );
            assert!((f_tail(ratio, freedom) / tail - 1.0).abs() < 1e-8);
        }
        // The square of Student's t.
        let t = quantile(0.05, 7.0);
        assert!((f_quantile(0.05, [1.0, 7.0]) - t * t).abs() < 1e-6);
        assert_eq!(f_tail(0.0, [3.0, 4.0]), 1.0);
    }

    #[test]
    fn nothing_has_all_of_the_tails_and_the_infinite_none() {
        assert_eq!(tails(0.0, 4.0), 1.0);
        assert_eq!(tails(f64::INFINITY, 4.0), 0.0);
        assert_eq!(tails(-2.0, 4.0), tails(2.0, 4.0));
    }
}
