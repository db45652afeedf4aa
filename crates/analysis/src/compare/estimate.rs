//! Estimates one ratio from repeats: its logarithm, its interval, and the probability of such a
//! ratio by chance.

use super::looks::Evidence;
use super::mean::{Mean, Pair, difference_of, mean_of, variance};
use super::{anova, drift, student};
use crate::figures::Looks;

/// Differences of logarithms below this are rounding errors of equal figures.
const RESOLUTION: f64 = 1e-9;

/// The logarithm of a ratio.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    /// The measured logarithm.
    measured: Mean,
    /// The same less a steady drift between the two repeats of a pair.
    detrended: Mean,
    /// The standard deviation of the logarithm of one repeat's ratio.
    pub spread: f64,
    /// The errors of both means, divided by those that only the own spread gives: 1 until
    /// [`Self::moderate`].
    error_scale: f64,
    /// The least error: that of rounding.
    floor: f64,
    /// The number of values on which the mean rests: of repeats, or of machines.
    count: f64,
    looks: Looks,
    /// The standard deviation of the logarithm of one machine's mean ratio, if ratios differ
    /// between machines. Each machine then counts as one value.
    pub machine_spread: Option<f64>,
    /// Repeats differ by less than the rounding of the figures, which more repeats do not reduce.
    pub is_coarse: bool,
}

impl Estimate {
    /// Estimates a ratio from pairs in the order of machines and of time, block after block.
    /// `rounding` is the standard deviation that rounding adds to the logarithm of each ratio.
    pub fn of_pairs(pairs: &[Pair], rounding: f64) -> Self {
        let ratios: Vec<f64> = pairs.iter().map(|p| p.value.ln() - p.base.ln()).collect();

        // Equal repeats were rounded in the same way, so that more of them do not reduce the error.
        let floor = rounding.max(RESOLUTION);

        let of_machines = anova::machine_values(pairs);
        let values = of_machines.as_ref().unwrap_or(&ratios);
        let measured = mean_of(values, floor);
        let spread = variance(&ratios).sqrt();

        Self {
            measured,
            detrended: drift::detrended(measured, spread, floor, pairs),
            spread,
            error_scale: 1.0,
            floor,
            count: values.len() as f64,
            looks: Looks::Once,
            machine_spread: of_machines.map(|values| variance(&values).sqrt()),
            is_coarse: measured.error <= rounding,
        }
    }

    /// Estimates a ratio from two independent samples.
    pub fn of_samples(base: &[f64], values: &[f64], rounding: f64) -> Self {
        let ln = |sample: &[f64]| sample.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        let (base, values) = (ln(base), ln(values));
        let floor = rounding.max(RESOLUTION);
        let measured = difference_of(&base, &values, floor);
        let count = base.len().min(values.len());
        let spread = (variance(&base) + variance(&values)).sqrt();
        Self::of_known(measured, spread, rounding, count)
    }

    /// Estimates a ratio whose logarithm is known with its error. `spread` is the standard
    /// deviation of what one of `count` repeats says of it.
    pub fn of_known(measured: Mean, spread: f64, rounding: f64, count: usize) -> Self {
        let floor = rounding.max(RESOLUTION);

        let measured = Mean { error: measured.error.max(floor), ..measured };
        Self {
            measured,
            detrended: measured,
            spread,
            error_scale: 1.0,
            floor,
            count: count as f64,
            looks: Looks::Once,
            machine_spread: None,
            is_coarse: measured.error <= rounding,
        }
    }

    /// Returns the estimate for results that are looked at in this way.
    pub fn for_looks(self, looks: Looks) -> Self {
        Self { looks, ..self }
    }

    /// Returns the degrees of freedom of its spread; `None` if the spread is no sample of what
    /// other comparisons have too: the figures are coarse, or all equal, or machines differ.
    pub fn spread_freedom(&self) -> Option<f64> {
        let is_own = self.spread > RESOLUTION && !self.is_coarse && self.machine_spread.is_none();
        is_own.then_some(self.measured.freedom)
    }

    /// Replaces the variance of one repeat's ratio, on which its errors rest, by a moderated one, to
    /// which others than its repeats lend degrees of freedom.
    pub fn moderate(&mut self, variance: f64, lent_freedom: f64) {
        let own = self.spread * self.spread;

        // The errors of both means are multiples of the spread. Others cannot say more about a mean
        // than its rounding allows.
        let rounding = self.floor / self.measured.error;
        self.error_scale = (variance / own).sqrt().max(rounding);

        for mean in [&mut self.measured, &mut self.detrended] {
            mean.error *= self.error_scale;
            mean.freedom += lent_freedom;
        }
    }

    /// Returns the spread of one repeat's ratio on which the interval rests.
    pub fn moderated_spread(&self) -> f64 {
        self.spread * self.error_scale
    }

    /// Returns the degrees of freedom on which the interval rests.
    pub fn freedom(&self) -> f64 {
        self.measured.freedom
    }

    /// Target / base.
    pub fn ratio(&self) -> f64 {
        self.measured.center.exp()
    }

    /// Returns the probability that chance alone shows a change at least as large. A change counts
    /// only if it is shown with and without a steady drift.
    pub fn p_value(&self) -> f64 {
        if self.measured.center * self.detrended.center < 0.0 {
            return 1.0;
        }
        let students = [self.measured, self.detrended]
            .into_iter()
            .map(|mean| student::tails(mean.t(), mean.freedom))
            .fold(0.0, f64::max);
        self.looks.p_value(students, self.evidence())
    }

    /// Returns the values on which the interval rests. Both means have the same.
    fn evidence(&self) -> Evidence {
        Evidence { count: self.count, freedom: self.measured.freedom }
    }

    /// Returns the interval of the ratio with the error rate `level`. It excludes 1 exactly where
    /// `p_value() <= level`.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let errors = self.looks.quantile(level, self.evidence());
        let ends = [self.measured, self.detrended].map(|mean| {
            let reach = errors * mean.error;
            (mean.center - reach, mean.center + reach)
        });
        let [(a, b), (c, d)] = ends;
        // Two repeats that are far apart overflow, and JSON has no infinity.
        (a.min(c).exp(), b.max(d).exp().min(f64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::mean::Block;
    use crate::compare::prior::Prior;

    fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
        let pair = |(index, &(base, value)): (usize, &(f64, f64))| Pair {
            base,
            value,
            base_at: 2.0 * index as f64,
            at: 2.0 * index as f64 + 1.0,
            block: Block::default(),
        };
        values.iter().enumerate().map(pair).collect()
    }

    fn steady(values: &[(f64, f64)]) -> Vec<Pair> {
        let mut pairs = pairs(values);
        for pair in &mut pairs {
            pair.at = pair.base_at;
        }
        pairs
    }

    /// ln 1.1, ln 1.2, ln 1.3: mean 0.179999, standard deviation 0.083551, t(0.05, 2) = 4.302653.
    #[test]
    fn the_interval_of_pairs_is_students_by_hand() {
        let pairs = steady(&[(100.0, 110.0), (100.0, 120.0), (100.0, 130.0)]);
        let estimate = Estimate::of_pairs(&pairs, 0.0);
        let (low, high) = estimate.interval(0.05);
        let reach = 4.302_653 * 0.083_551 / 3.0_f64.sqrt();
        assert!((estimate.ratio() - 1.716_f64.cbrt()).abs() < 1e-12);
        assert!((low.ln() - (0.179_999 - reach)).abs() < 1e-5, "{low}");
        assert!((high.ln() - (0.179_999 + reach)).abs() < 1e-5, "{high}");
        assert!((estimate.spread - 0.083_551).abs() < 1e-6);
    }

    /// Of e^(1, 2, 3) against e^(2, 4, 6, 8): variances 1 and 20/3, error sqrt(1/3 + 5/3), degrees
    /// of freedom 4 / (1/18 + 25/27).
    #[test]
    fn two_samples_are_welchs() {
        let base = [1.0, 2.0, 3.0].map(f64::exp);
        let values = [2.0, 4.0, 6.0, 8.0].map(f64::exp);
        let estimate = Estimate::of_samples(&base, &values, 0.0);
        let mean = estimate.measured;
        assert!((mean.center - 3.0).abs() < 1e-12);
        assert!((mean.error - 2.0_f64.sqrt()).abs() < 1e-12);
        assert!((mean.freedom - 4.0 / (1.0 / 18.0 + 25.0 / 27.0)).abs() < 1e-9);
        assert_eq!(estimate.measured, estimate.detrended);
    }

    #[test]
    fn an_interval_is_without_1_exactly_where_p_is_at_most_the_level() {
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 40) as f64 / (1_u64 << 24) as f64
        };
        let (mut without, mut with) = (0, 0);
        for count in [2, 3, 5, 8, 12] {
            for _ in 0..40 {
                let shift = 1.0 + 0.05 * next();
                let values: Vec<(f64, f64)> =
                    (0..count).map(|_| (100.0 + next(), (100.0 + 4.0 * next()) * shift)).collect();
                let (base, value): (Vec<f64>, Vec<f64>) = values.iter().copied().unzip();
                let own = [
                    Estimate::of_pairs(&pairs(&values), 0.0),
                    Estimate::of_samples(&base, &value, 0.0),
                ];
                // A prior that makes errors smaller, and one that makes them larger.
                let borrowing = [0.25, 4.0].into_iter().flat_map(|factor| {
                    own.clone().map(|mut estimate| {
                        let own = estimate.spread * estimate.spread;
                        let prior = Prior { variance: factor * own, freedom: 6.0 };
                        let variance = prior.moderate(own, estimate.freedom());
                        estimate.moderate(variance, prior.freedom);
                        estimate
                    })
                });
                for estimate in own.iter().cloned().chain(borrowing) {
                    for level in [0.05, 0.01, 0.002, 0.0005] {
                        let (low, high) = estimate.interval(level);
                        let excluded = low > 1.0 || high < 1.0;
                        assert_eq!(excluded, estimate.p_value() <= level, "{values:?} {level}");
                        assert!(low <= estimate.ratio() && estimate.ratio() <= high);
                        if excluded {
                            without += 1;
                        } else {
                            with += 1;
                        }
                    }
                }
            }
        }
        assert!(without > 100 && with > 100, "{without} {with}");
    }

    #[test]
    fn no_other_comparison_says_more_than_the_rounding_of_figures_allows() {
        let values = steady(&[(100.0, 101.0), (100.0, 102.0), (100.0, 103.0)]);
        let rounding = 0.005;
        let mut estimate = Estimate::of_pairs(&values, rounding);
        estimate.moderate(1e-12, 1000.0);
        assert!((estimate.measured.error - rounding).abs() < 1e-12, "{:?}", estimate.measured);
    }

    #[test]
    fn a_steady_drift_is_not_a_change() {
        // 1% from each slot to the next, and nothing else: without noise both means have no error
        // to speak of.
        let values: Vec<(f64, f64)> = (0..5)
            .map(|i| (100.0 * 1.01_f64.powi(2 * i), 100.0 * 1.01_f64.powi(2 * i + 1)))
            .collect();
        let estimate = Estimate::of_pairs(&pairs(&values), 0.0);
        assert!((estimate.ratio() - 1.01).abs() < 1e-12);
        assert!(estimate.detrended.center.abs() < 1e-12);
        assert!(estimate.p_value() > 0.5);
        let (low, high) = estimate.interval(0.05);
        assert!(low <= 1.0 && high >= 1.01);
    }

    #[test]
    fn equal_values_show_nothing_and_a_change_without_noise_is_sure() {
        let equal = Estimate::of_pairs(&pairs(&[(7.3, 7.3), (7.1, 7.1), (7.2, 7.2)]), 0.0);
        assert_eq!(equal.ratio(), 1.0);
        assert!(equal.p_value() > 0.5);
        let (low, high) = equal.interval(0.05);
        assert!((0.99..=1.0).contains(&low) && (1.0..1.01).contains(&high));
        let halved = Estimate::of_pairs(&pairs(&[(8.0, 4.0), (8.0, 4.0), (8.0, 4.0)]), 0.0);
        assert!(halved.p_value() < 1e-12);
    }

    #[test]
    fn where_next_to_nothing_is_known_an_interval_still_ends_at_numbers() {
        // Two repeats, one of them four times as fast, among three hundred comparisons.
        let values = pairs(&[(100.0, 100.0), (100.0, 400.0)]);
        let estimate = Estimate::of_pairs(&values, 0.0);
        let (low, high) = estimate.interval(0.05 / 300.0);
        assert!(low < 1e-300 && high > 1e300, "{low} {high}");
        assert!(low.is_finite() && high.is_finite(), "{low} {high}");
    }

    #[test]
    fn turning_the_comparison_round_turns_its_interval_round() {
        let values = [(100.0, 103.0), (101.0, 103.5), (99.0, 104.0)];
        let back: Vec<Pair> = pairs(&values)
            .iter()
            .map(|pair| Pair {
                base: pair.value,
                value: pair.base,
                base_at: pair.at,
                at: pair.base_at,
                block: pair.block,
            })
            .collect();
        let (a, b) = (Estimate::of_pairs(&pairs(&values), 0.0), Estimate::of_pairs(&back, 0.0));
        let ((low, high), (back_low, back_high)) = (a.interval(0.05), b.interval(0.05));
        assert!((low * back_high - 1.0).abs() < 1e-12 && (high * back_low - 1.0).abs() < 1e-12);
        assert!((a.p_value() - b.p_value()).abs() < 1e-12);
    }
}
