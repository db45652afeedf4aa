//! The times for which a client waits between its transactions, which make it a terminal.

use std::time::Duration;

/// The waits of a client with one kind of transaction, as in clauses 5.2.5.2 and 5.2.5.4 of TPC-C.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// The mean of the exponential think time, which follows the transaction.
    pub think_mean: Duration,
    /// The constant keying time, which precedes the transaction.
    pub keying: Duration,
}

impl Pause {
    /// The longest think time as a multiple of its mean.
    const THINK_MAX: f64 = 10.0;

    /// Returns a think time in nanoseconds; `fraction` is uniform from 0 on, and below 1.
    #[inline]
    pub fn think_ns(&self, fraction: f64) -> u64 {
        let multiple = (-(1.0 - fraction).ln()).min(Self::THINK_MAX);
        (self.think_mean.as_nanos() as f64 * multiple) as u64
    }

    /// Returns the mean of a keying time and a think time, which are those of one transaction in a
    /// cycle of a client.
    pub fn mean(&self) -> Duration {
        // The mean of a truncated exponential is that of the whole less what is cut off.
        let kept = 1.0 - (-Self::THINK_MAX).exp();
        self.keying + self.think_mean.mul_f64(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_are_exponential_and_truncated_at_ten_times_their_mean() {
        let pause = Pause { think_mean: Duration::from_micros(1_500), ..Pause::default() };
        assert_eq!(pause.think_ns(0.0), 0);
        // Half of them are shorter than the mean times the logarithm of 2.
        assert_eq!(pause.think_ns(0.5), (1_500_000.0 * std::f64::consts::LN_2) as u64);
        assert_eq!(pause.think_ns(1.0 - f64::EPSILON), 15_000_000);

        let count = 1_000_000_u32;
        let fractions = (0..count).map(|at| (f64::from(at) + 0.5) / f64::from(count));
        let sum: u64 = fractions.map(|fraction| pause.think_ns(fraction)).sum();
        let mean_ns = sum as f64 / f64::from(count);
        let expected_ns = pause.mean().as_nanos() as f64;
        assert!((mean_ns / expected_ns - 1.0).abs() < 1e-4, "{mean_ns} and {expected_ns}");
    }
}
