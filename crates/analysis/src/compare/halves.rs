//! Compares two targets turn by turn, where they took turns with each other.
//!
//! Both met the same machine in each half of a block, on the same processors where they are drawn. So
//! the ratio of a typical turn is what is typical of the ratios of halves, and not the ratio of what
//! is typical of each target. How much these ratios differ says how exact that of one repeat is.

use std::collections::BTreeMap;

use super::mean::{mean, variance};
use super::metric::{OWN_CPU, THROUGHPUT};
use crate::figures::typical::{
    TRIMMED_SHARE, TURNS_MIN, ln_cpu, ln_mean_rate, ln_rate, trimmed, trimmed_mean,
};
use crate::figures::{HalfBlock, STEADINESS, TYPICAL_CPU, TYPICAL_RATE};

/// A figure of a turn.
type Figure = fn(&HalfBlock) -> f64;

/// The halves of blocks in which two targets both had a turn.
pub(super) struct HalfPairs {
    base: Vec<HalfBlock>,
    target: Vec<HalfBlock>,
}

impl HalfPairs {
    pub fn new(base: &[HalfBlock], target: &[HalfBlock]) -> Self {
        let by_number: BTreeMap<(u32, u32), &HalfBlock> =
            target.iter().map(|half| ((half.block, half.half), half)).collect();

        let mut pairs = Self { base: Vec::new(), target: Vec::new() };
        for of_base in base {
            if let Some(&of_target) = by_number.get(&(of_base.block, of_base.half)) {
                pairs.base.push(*of_base);
                pairs.target.push(*of_target);
            }
        }
        pairs
    }

    /// Returns whether the turns are enough to say what is typical, and how they differ.
    pub fn are_enough(&self) -> bool {
        self.base.len() >= TURNS_MIN
    }

    /// Returns target / base of a figure of a typical turn; zero if either target did nothing in a
    /// fifth of the turns; `None` if they have too few in common, or the figure is unknown.
    pub fn ratio(&self, metric: &str) -> Option<f64> {
        let ln_ratio = match metric {
            TYPICAL_CPU => self.typical_ln_ratio(ln_cpu)?,
            TYPICAL_RATE => self.typical_ln_ratio(ln_rate)?,
            STEADINESS => {
                let of_all = ln_mean_rate(&self.target) - ln_mean_rate(&self.base);
                of_all - self.typical_ln_ratio(ln_rate)?
            }
            _ => return None,
        };

        Some(if ln_ratio.is_finite() { ln_ratio.exp() } else { 0.0 })
    }

    /// Returns the trimmed mean of the turns' differences of a logarithm; `None` with too few.
    fn typical_ln_ratio(&self, logarithm: Figure) -> Option<f64> {
        trimmed_mean(self.ln_ratios(logarithm).into_iter())
    }

    /// Returns the standard error of the logarithm of a ratio, as the spread of the turns tells;
    /// `None` with too few turns, and for metrics that turns don't have.
    ///
    /// An influence is how much a turn moves the ratio, and the error is that of their mean (Hampel
    /// 1974).
    pub fn error(&self, metric: &str) -> Option<f64> {
        if !self.are_enough() {
            return None;
        }

        let operations: Figure = |half| half.operations as f64;
        let seconds: Figure = |half| half.seconds;
        let cpu_seconds: Figure = |half| half.cpu_seconds.unwrap_or(f64::NAN);

        let influences = match metric {
            THROUGHPUT => self.influences_on_all(operations, seconds),
            OWN_CPU => self.influences_on_all(cpu_seconds, operations),
            TYPICAL_RATE => influences_on_typical(&self.ln_ratios(ln_rate))?,
            TYPICAL_CPU => influences_on_typical(&self.ln_ratios(ln_cpu))?,
            STEADINESS => {
                let on_all = self.influences_on_all(operations, seconds);
                let on_typical = influences_on_typical(&self.ln_ratios(ln_rate))?;
                on_all.iter().zip(on_typical).map(|(all, typical)| all - typical).collect()
            }
            _ => return None,
        };

        let error = (variance(&influences) / influences.len() as f64).sqrt();
        error.is_finite().then_some(error)
    }

    /// Returns the difference of a logarithm between target and base in each half.
    fn ln_ratios(&self, logarithm: Figure) -> Vec<f64> {
        let pairs = self.base.iter().zip(&self.target);
        pairs.map(|(base, target)| logarithm(target) - logarithm(base)).collect()
    }

    /// Returns the influence of each turn on the logarithm of the ratio over all turns.
    fn influences_on_all(&self, numerator: Figure, denominator: Figure) -> Vec<f64> {
        let of_base = influences_on_quotient(&self.base, numerator, denominator);
        let of_target = influences_on_quotient(&self.target, numerator, denominator);
        of_target.iter().zip(of_base).map(|(target, base)| target - base).collect()
    }
}

/// Returns the influence of each turn on the logarithm of a quotient of sums over all turns, to
/// first order (Cochran 1977, section 6.3).
fn influences_on_quotient(
    halves: &[HalfBlock],
    numerator: Figure,
    denominator: Figure,
) -> Vec<f64> {
    let numerators: Vec<f64> = halves.iter().map(numerator).collect();
    let denominators: Vec<f64> = halves.iter().map(denominator).collect();
    let (mean_numerator, mean_denominator) = (mean(&numerators), mean(&denominators));

    let pairs = numerators.iter().zip(&denominators);
    pairs.map(|(above, below)| above / mean_numerator - below / mean_denominator).collect()
}

/// Returns the influence of each value on their trimmed mean: its distance from the center, with the
/// values at the ends replaced by the nearest that is kept (Tukey and McLaughlin 1963). A value that
/// is no number has none. `None` with too few values.
fn influences_on_typical(values: &[f64]) -> Option<Vec<f64>> {
    let kept = trimmed(values.iter().copied())?;
    let (least, most) = (*kept.first()?, *kept.last()?);

    // What is no number stays so.
    let replaced: Vec<f64> = values.iter().map(|value| value.clamp(least, most)).collect();
    let known: Vec<f64> = replaced.iter().copied().filter(|value| !value.is_nan()).collect();
    let center = mean(&known);

    let share_kept = 1.0 - 2.0 * TRIMMED_SHARE;
    let mut influences = Vec::new();
    for value in replaced {
        influences.push(if value.is_nan() { 0.0 } else { (value - center) / share_kept });
    }
    Some(influences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::typical::tests::halves;

    fn ratio(metric: &str, base: &[HalfBlock], target: &[HalfBlock]) -> Option<f64> {
        HalfPairs::new(base, target).ratio(metric)
    }

    fn error(metric: &str, base: &[HalfBlock], target: &[HalfBlock]) -> f64 {
        HalfPairs::new(base, target).error(metric).unwrap()
    }

    #[track_caller]
    fn assert_near(value: Option<f64>, expected: f64) {
        let value = value.unwrap();
        assert!((value / expected - 1.0).abs() < 1e-6, "{value}, not {expected}");
    }

    #[test]
    fn a_stall_is_in_the_ratio_of_steadiness_alone() {
        let mut operations = [100; 20];
        operations[3..6].fill(0);
        let (base, stalled) = (halves(&[50; 20]), halves(&operations));
        assert_near(ratio(TYPICAL_RATE, &base, &stalled), 2.0);
        assert_near(ratio(STEADINESS, &base, &stalled), 0.85);
        assert_near(ratio(TYPICAL_CPU, &base, &halves(&[100; 20])), 0.5);
    }

    #[test]
    fn what_both_meet_in_a_half_is_in_no_ratio() {
        let common: Vec<u64> = (0..40).map(|half| 100 + 400 * (half % 7)).collect();
        let twice: Vec<u64> = common.iter().map(|operations| 2 * operations).collect();
        let (base, target) = (halves(&common), halves(&twice));
        assert_near(ratio(TYPICAL_RATE, &base, &target), 2.0);
        assert_near(ratio(STEADINESS, &base, &target), 1.0);
        assert!(error(THROUGHPUT, &base, &target) < 1e-12);
    }

    /// Whole values from -10 to 10 percent: replaced beyond 6 where the ends don't count.
    #[test]
    fn the_error_of_a_ratio_is_that_of_the_mean_of_its_turns() {
        let ratios: Vec<f64> = (-10..=10).map(|value| f64::from(value) / 100.0).collect();
        let operations: Vec<u64> =
            ratios.iter().map(|ratio| (1e9 * ratio.exp()).round() as u64).collect();
        let (base, target) = (halves(&[1_000_000_000; 21]), halves(&operations));

        let replaced: Vec<f64> = ratios.iter().map(|ratio| ratio.clamp(-0.06, 0.06)).collect();
        let typical = (variance(&replaced) / 21.0).sqrt() / 0.6;
        assert_near(Some(error(TYPICAL_RATE, &base, &target)), typical);
        assert_near(Some(error(TYPICAL_CPU, &base, &target)), typical);

        let rates: Vec<f64> = ratios.iter().map(|ratio| ratio.exp()).collect();
        let all = (variance(&rates) / 21.0).sqrt() / mean(&rates);
        assert_near(Some(error(THROUGHPUT, &base, &target)), all);
        assert_near(Some(error(OWN_CPU, &base, &target)), all);
    }

    #[test]
    fn a_stall_makes_the_error_of_steadiness_and_not_of_the_typical_rate() {
        let mut operations = [100; 20];
        operations[3] = 0;
        let (base, stalled) = (halves(&[100; 20]), halves(&operations));
        assert!(error(TYPICAL_RATE, &base, &stalled) < 1e-12);

        // One turn of twenty: a share of 5% with an error of 5%.
        assert_near(Some(error(STEADINESS, &base, &stalled)), 1.0 / 19.0);
        assert_near(Some(error(THROUGHPUT, &base, &stalled)), 1.0 / 19.0);
    }

    #[test]
    fn only_halves_that_both_have_count() {
        let (base, mut target) = (halves(&[100; 22]), halves(&[100; 22]));
        target[0].operations = 9;
        target.remove(0);
        target.remove(7);
        assert_near(ratio(TYPICAL_RATE, &base, &target), 1.0);

        target.remove(0);
        let few = HalfPairs::new(&base, &target);
        assert_eq!((few.are_enough(), few.error(THROUGHPUT)), (false, None));
        assert_eq!(few.ratio(TYPICAL_RATE), None, "19 turns are too few");
    }

    #[test]
    fn a_target_that_stands_still_has_no_typical_ratio() {
        let mut operations = [0; 20];
        operations[0..8].fill(100);
        let (base, still) = (halves(&[100; 20]), halves(&operations));
        assert_eq!(ratio(TYPICAL_RATE, &base, &still), Some(0.0));
        assert_eq!(ratio(STEADINESS, &still, &base), Some(0.0));
    }

    #[test]
    fn cpu_that_is_unknown_says_nothing() {
        let mut unknown = halves(&[100; 20]);
        for half in &mut unknown {
            half.cpu_seconds = None;
        }
        let pairs = HalfPairs::new(&unknown, &unknown);
        assert_eq!((pairs.ratio(TYPICAL_CPU), pairs.error(TYPICAL_CPU)), (None, None));
        assert_eq!(pairs.error(OWN_CPU), None);
    }
}
