//! Compares two targets block by block, where they took turns with each other.
//!
//! Both met the same machine in each block. So the ratio of a typical turn is what is typical of the
//! ratios of blocks, and not the ratio of what is typical of each target. How much blocks differ
//! says how exact the ratio of one repeat is.

use std::collections::BTreeMap;

use super::mean::{mean, variance};
use super::metric::{OWN_CPU, THROUGHPUT};
use crate::figures::typical::{
    BLOCKS_MIN, TRIMMED_SHARE, ln_cpu, ln_mean_rate, ln_rate, trimmed, trimmed_mean, whole,
};
use crate::figures::{STEADINESS, TYPICAL_CPU, TYPICAL_RATE, TurnBlock};

/// A figure of a block.
type Figure = fn(&TurnBlock) -> f64;

/// The blocks in which two targets had all of their turns.
pub(super) struct BlockPairs<'b> {
    base: Vec<&'b TurnBlock>,
    target: Vec<&'b TurnBlock>,
}

impl<'b> BlockPairs<'b> {
    pub fn new(base: &'b [TurnBlock], target: &'b [TurnBlock]) -> Self {
        let by_number: BTreeMap<u32, &TurnBlock> =
            whole(target).into_iter().map(|block| (block.block, block)).collect();

        let mut pairs = Self { base: Vec::new(), target: Vec::new() };
        for of_base in whole(base) {
            if let Some(&of_target) = by_number.get(&of_base.block) {
                pairs.base.push(of_base);
                pairs.target.push(of_target);
            }
        }
        pairs
    }

    /// Returns whether the blocks are enough to say what is typical, and how they differ.
    pub fn are_enough(&self) -> bool {
        self.base.len() >= BLOCKS_MIN
    }

    /// Returns target / base of a figure of a typical turn; zero if either target did nothing in a
    /// fifth of the blocks; `None` if they have too few blocks in common, or the figure is unknown.
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

    /// Returns the trimmed mean of the blocks' differences of a logarithm; `None` with too few.
    fn typical_ln_ratio(&self, logarithm: Figure) -> Option<f64> {
        trimmed_mean(self.ln_ratios(logarithm).into_iter())
    }

    /// Returns the standard error of the logarithm of a ratio, as the spread of the blocks tells;
    /// `None` with too few blocks, and for metrics that blocks don't have.
    ///
    /// An influence is how much a block moves the ratio, and the error is that of their mean (Hampel
    /// 1974).
    pub fn error(&self, metric: &str) -> Option<f64> {
        if !self.are_enough() {
            return None;
        }

        let operations: Figure = |block| block.operations as f64;
        let seconds: Figure = |block| block.seconds;
        let cpu_seconds: Figure = |block| block.cpu_seconds.unwrap_or(f64::NAN);

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

    /// Returns the difference of a logarithm between target and base in each block.
    fn ln_ratios(&self, logarithm: Figure) -> Vec<f64> {
        let pairs = self.base.iter().zip(&self.target);
        pairs.map(|(base, target)| logarithm(target) - logarithm(base)).collect()
    }

    /// Returns the influence of each block on the logarithm of the ratio over all blocks.
    fn influences_on_all(&self, numerator: Figure, denominator: Figure) -> Vec<f64> {
        let of_base = influences_on_quotient(&self.base, numerator, denominator);
        let of_target = influences_on_quotient(&self.target, numerator, denominator);
        of_target.iter().zip(of_base).map(|(target, base)| target - base).collect()
    }
}

/// Returns the influence of each block on the logarithm of a quotient of sums over all blocks, to
/// first order (Cochran 1977, section 6.3).
fn influences_on_quotient(
    blocks: &[&TurnBlock],
    numerator: Figure,
    denominator: Figure,
) -> Vec<f64> {
    let numerators: Vec<f64> = blocks.iter().map(|block| numerator(block)).collect();
    let denominators: Vec<f64> = blocks.iter().map(|block| denominator(block)).collect();
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
    use crate::figures::typical::tests::blocks;

    fn ratio(metric: &str, base: &[TurnBlock], target: &[TurnBlock]) -> Option<f64> {
        BlockPairs::new(base, target).ratio(metric)
    }

    fn error(metric: &str, base: &[TurnBlock], target: &[TurnBlock]) -> f64 {
        BlockPairs::new(base, target).error(metric).unwrap()
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
        let (base, stalled) = (blocks(&[50; 20]), blocks(&operations));
        assert_near(ratio(TYPICAL_RATE, &base, &stalled), 2.0);
        assert_near(ratio(STEADINESS, &base, &stalled), 0.85);
        assert_near(ratio(TYPICAL_CPU, &base, &blocks(&[100; 20])), 0.5);
    }

    #[test]
    fn what_both_meet_in_a_block_is_in_no_ratio() {
        let common: Vec<u64> = (0..40).map(|block| 100 + 400 * (block % 7)).collect();
        let twice: Vec<u64> = common.iter().map(|operations| 2 * operations).collect();
        let (base, target) = (blocks(&common), blocks(&twice));
        assert_near(ratio(TYPICAL_RATE, &base, &target), 2.0);
        assert_near(ratio(STEADINESS, &base, &target), 1.0);
        assert!(error(THROUGHPUT, &base, &target) < 1e-12);
    }

    /// Whole values from -10 to 10 percent: replaced beyond 6 where the ends don't count.
    #[test]
    fn the_error_of_a_ratio_is_that_of_the_mean_of_its_blocks() {
        let ratios: Vec<f64> = (-10..=10).map(|value| f64::from(value) / 100.0).collect();
        let operations: Vec<u64> =
            ratios.iter().map(|ratio| (1e9 * ratio.exp()).round() as u64).collect();
        let (base, target) = (blocks(&[1_000_000_000; 21]), blocks(&operations));

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
        let (base, stalled) = (blocks(&[100; 20]), blocks(&operations));
        assert!(error(TYPICAL_RATE, &base, &stalled) < 1e-12);

        // One block of twenty: a share of 5 % with an error of 5 %.
        assert_near(Some(error(STEADINESS, &base, &stalled)), 1.0 / 19.0);
        assert_near(Some(error(THROUGHPUT, &base, &stalled)), 1.0 / 19.0);
    }

    #[test]
    fn only_blocks_that_both_have_in_full_count() {
        let (base, mut target) = (blocks(&[100; 12]), blocks(&[100; 12]));
        target.remove(0);
        target[4].turns = 1;
        target[4].operations = 9;
        assert_near(ratio(TYPICAL_RATE, &base, &target), 1.0);

        target.remove(0);
        let nine = BlockPairs::new(&base, &target);
        assert_eq!((nine.are_enough(), nine.error(THROUGHPUT)), (false, None));
        assert_eq!(nine.ratio(TYPICAL_RATE), None, "nine blocks are too few");
    }

    #[test]
    fn a_target_that_stands_still_has_no_typical_ratio() {
        let mut operations = [0; 20];
        operations[0..8].fill(100);
        let (base, still) = (blocks(&[100; 20]), blocks(&operations));
        assert_eq!(ratio(TYPICAL_RATE, &base, &still), Some(0.0));
        assert_eq!(ratio(STEADINESS, &still, &base), Some(0.0));
    }

    #[test]
    fn cpu_that_is_unknown_says_nothing() {
        let mut unknown = blocks(&[100; 20]);
        for block in &mut unknown {
            block.cpu_seconds = None;
        }
        let pairs = BlockPairs::new(&unknown, &unknown);
        assert_eq!((pairs.ratio(TYPICAL_CPU), pairs.error(TYPICAL_CPU)), (None, None));
        assert_eq!(pairs.error(OWN_CPU), None);
    }
}
