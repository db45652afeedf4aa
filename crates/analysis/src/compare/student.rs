//! Student's t distribution. Its tails are the regularised incomplete beta function (Abramowitz and Stegun, 26.7.1 and
//! 26.5.27), here by its continued fraction (26.5.8) with the method of Lentz.

/// How often |t| is at least this by chance, with so many degrees of freedom: both tails.
pub(super) fn tails(t: f64, freedom: f64) -> f64 {
    Student::new(freedom).tails(t)
}

/// The |t| that chance alone reaches with probability `both_tails`, in 0..1: of both tails together.
pub(super) fn quantile(both_tails: f64, freedom: f64) -> f64 {
    Student::new(freedom).quantile(both_tails)
}

/// The distribution with so many degrees of freedom.
struct Student {
    freedom: f64,
    /// ln B(freedom / 2, 1 / 2)
    ln_beta: f64,
}

impl Student {
    fn new(freedom: f64) -> Self {
        let half = freedom / 2.0;
        Self {
            freedom,
            ln_beta: libm::lgamma(half) + libm::lgamma(0.5) - libm::lgamma(half + 0.5),
        }
    }

    fn tails(&self, t: f64) -> f64 {
        if t == 0.0 {
            return 1.0;
        }
        if t.is_infinite() {
            return 0.0;
        }
        let x = self.freedom / (self.freedom + t * t);
        incomplete_beta(self.freedom / 2.0, 0.5, x, self.ln_beta).clamp(0.0, 1.0)
    }

    fn density(&self, t: f64) -> f64 {
        let shape = -(self.freedom + 1.0) / 2.0 * (t * t / self.freedom).ln_1p();
        (shape - self.ln_beta).exp() / self.freedom.sqrt()
    }

    /// By Newton's method on logarithmic scales, where tails fall smoothly; between two bounds, so that it can't leave.
    fn quantile(&self, both_tails: f64) -> f64 {
        const STEPS: u32 = 200;
        let target = both_tails.ln();
        let (mut low, mut high) = (-700.0, 700.0);
        let mut at = 1.0_f64;
        for _ in 0..STEPS {
            let t = at.exp();
            let tails = self.tails(t).max(f64::MIN_POSITIVE);
            let excess = tails.ln() - target;
            if excess.abs() < 1e-13 || high - low < 1e-13 {
                break;
            }
            if excess > 0.0 {
                low = at;
            } else {
                high = at;
            }
            let next = at + excess * tails / (2.0 * t * self.density(t));
            at = if next > low && next < high {
                next
            } else {
                f64::midpoint(low, high)
            };
        }
        at.exp()
    }
}

/// I_x(a, b), given ln B(a, b).
fn incomplete_beta(a: f64, b: f64, x: f64, ln_beta: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on this side; the other is its complement.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x, ln_beta);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta).exp() / a;
    front * fraction(a, b, x)
}

/// The continued fraction of the incomplete beta function.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const TERMS: u32 = 10_000;
    let off_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / off_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for term in 1..=TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / off_zero(1.0 + coefficient * d);
            c = off_zero(1.0 + coefficient / c);
            step = c * d;
            value *= step;
        }
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
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
