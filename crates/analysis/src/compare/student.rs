//! Student's t distribution, whose tails are the regularised incomplete beta function (Abramowitz and Stegun, 26.7.1).

use statrs::function::beta::{beta_reg, inv_beta_reg};

/// Returns the probability that |t| is at least this by chance, with so many degrees of freedom: both tails.
pub(super) fn tails(t: f64, freedom: f64) -> f64 {
    beta_reg(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// Returns the |t| that chance alone reaches with probability `both_tails`, in 0..1: of both tails together.
pub(super) fn quantile(both_tails: f64, freedom: f64) -> f64 {
    let x = inv_beta_reg(freedom / 2.0, 0.5, both_tails);
    (freedom * (1.0 - x) / x).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Abramowitz and Stegun, table 26.10, and the table of the NIST/SEMATECH e-Handbook, 1.3.6.7.2.
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

    #[test]
    fn nothing_has_all_of_the_tails_and_the_infinite_none() {
        assert_eq!(tails(0.0, 4.0), 1.0);
        assert_eq!(tails(f64::INFINITY, 4.0), 0.0);
        assert_eq!(tails(-2.0, 4.0), tails(2.0, 4.0));
    }
}
