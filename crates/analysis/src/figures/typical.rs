//! The typical turn of a step: what a target does while nothing holds it up.
//!
//! A hypervisor or a neighbor takes the processor away for a whole turn now and then. A few such
//! turns decide the mean of a step, and they hit either target by chance. The mean of the blocks of
//! turns without the fifth at each end does not feel them. `docs/statistics.md` has the simulations.

use std::collections::BTreeMap;

use super::average::mean;
use super::turns::TurnBlock;

/// The rate in a typical turn, in the unit of the step's throughput.
pub const TYPICAL_RATE: &str = "typical_rate";

/// The CPU time of client and server for an operation of a typical turn, in microseconds.
pub const TYPICAL_CPU: &str = "typical_cpu_us_per_op";

/// The rate over all turns as a share of [`TYPICAL_RATE`].
pub const STEADINESS: &str = "steadiness";

/// The fewest blocks of which one can say what is typical.
const BLOCKS_MIN: usize = 10;

/// The share of the blocks that is left out at each end.
const TRIMMED_SHARE: f64 = 0.2;

/// The number of turns in a whole block.
const TURNS_OF_BLOCK: u32 = 2;

/// Returns the figures of a typical turn of one target by itself. `throughput` is that of the step.
pub(super) fn figures(
    blocks: &[TurnBlock],
    throughput: Option<f64>,
) -> BTreeMap<&'static str, Option<f64>> {
    let whole = whole(blocks);
    let steadiness = typical(whole.iter().map(|block| ln_rate(block)))
        .map(|typical| (ln_mean_rate(&whole) - typical).exp())
        .filter(|steadiness| steadiness.is_finite() && *steadiness > 0.0);
    let cpu = typical(whole.iter().map(|block| ln_cpu(block))).map(|ln_cpu| 1e6 * ln_cpu.exp());

    BTreeMap::from([
        (TYPICAL_RATE, throughput.zip(steadiness).map(|(rate, steadiness)| rate / steadiness)),
        (TYPICAL_CPU, cpu),
        (STEADINESS, steadiness),
    ])
}

/// Returns target / base of one of these figures, for two targets that took turns with each other;
/// `None` if they have too few blocks in common, or if one did nothing in a typical block.
///
/// Both met the same machine in each block, so that the ratio is typical of the ratios of blocks,
/// and not the ratio of what is typical of each.
pub(crate) fn ratio(metric: &str, base: &[TurnBlock], target: &[TurnBlock]) -> Option<f64> {
    let pairs = pairs(base, target);

    if metric == TYPICAL_CPU {
        return typical(pairs.iter().map(|pair| ln_cpu(pair.target) - ln_cpu(pair.base)))
            .map(f64::exp);
    }

    let of_rate = typical(pairs.iter().map(|pair| ln_rate(pair.target) - ln_rate(pair.base)))?;
    if metric == TYPICAL_RATE {
        return Some(of_rate.exp());
    }

    let of_base: Vec<&TurnBlock> = pairs.iter().map(|pair| pair.base).collect();
    let of_target: Vec<&TurnBlock> = pairs.iter().map(|pair| pair.target).collect();
    let of_all = ln_mean_rate(&of_target) - ln_mean_rate(&of_base);
    Some((of_all - of_rate).exp())
}

/// Returns the standard error of the logarithm of one repeat's ratio, as the spread of its blocks
/// tells; `None` for a metric that is not of turns, and with too few blocks.
///
/// That of a trimmed mean is the standard deviation of the values with those at the ends replaced by
/// the nearest that is kept, over the square root of their number and the share that is kept (Tukey
/// and McLaughlin 1963).
pub(crate) fn error_within(metric: &str, base: &[TurnBlock], target: &[TurnBlock]) -> Option<f64> {
    let pairs = pairs(base, target);
    let ratio_of: fn(&TurnBlock) -> f64 = match metric {
        TYPICAL_RATE => ln_rate,
        TYPICAL_CPU => ln_cpu,
        _ => return None,
    };

    let ratios = pairs.iter().map(|pair| ratio_of(pair.target) - ratio_of(pair.base));
    let known: Vec<f64> = ratios.filter(|ratio| !ratio.is_nan()).collect();
    let kept = without_ends(known.iter().copied())?;
    let (least, most) = (kept.first()?, kept.last()?);

    let count = known.len() as f64;
    let replaced = (count - kept.len() as f64) / 2.0;
    let center = (kept.iter().sum::<f64>() + replaced * (least + most)) / count;
    let square = |value: &f64| (value - center).powi(2);
    let squares: f64 =
        kept.iter().map(square).sum::<f64>() + replaced * (square(least) + square(most));

    let deviation = (squares / (count - 1.0)).sqrt();
    let share_kept = 1.0 - 2.0 * TRIMMED_SHARE;
    Some(deviation / (share_kept * count.sqrt())).filter(|error| error.is_finite())
}

/// Returns the error of a typical rate from counting whole operations, as a share of the rate: the
/// standard deviation of a uniform distribution.
///
/// Where the rates of blocks differ by an operation or more, the fractions that counting cuts off
/// differ as well, and their mean is zero (Widrow 1956). Where all blocks have the same few
/// operations, two targets seem equal that are not.
pub(crate) fn rounding(blocks: &[TurnBlock]) -> f64 {
    let whole = whole(blocks);
    let Some(kept) = without_ends(whole.iter().map(|block| ln_rate(block))) else {
        return 0.0;
    };

    let operations: f64 = whole.iter().map(|block| block.operations as f64).sum();
    let operation = whole.len() as f64 / operations;

    // Not a number if a block had no operation: then there is no typical rate either.
    let range = kept[kept.len() - 1] - kept[0];

    let is_counted_alike = operation.is_finite() && range < operation;
    if is_counted_alike { operation / 12.0_f64.sqrt() } else { 0.0 }
}

/// The turns of two targets in the same block.
struct BlockPair<'b> {
    base: &'b TurnBlock,
    target: &'b TurnBlock,
}

/// Returns the blocks in which both targets had all of their turns.
fn pairs<'b>(base: &'b [TurnBlock], target: &'b [TurnBlock]) -> Vec<BlockPair<'b>> {
    let by_number: BTreeMap<u32, &TurnBlock> =
        whole(target).into_iter().map(|block| (block.block, block)).collect();

    let mut pairs = Vec::new();
    for base in whole(base) {
        if let Some(&target) = by_number.get(&base.block) {
            pairs.push(BlockPair { base, target });
        }
    }
    pairs
}

fn whole(blocks: &[TurnBlock]) -> Vec<&TurnBlock> {
    blocks.iter().filter(|block| block.turns == TURNS_OF_BLOCK).collect()
}

/// Returns the logarithm of the operations per second; of zero, minus infinity.
fn ln_rate(block: &TurnBlock) -> f64 {
    (block.operations as f64 / block.seconds).ln()
}

/// Returns the logarithm of the seconds of CPU time per operation; not a number if it is unknown.
fn ln_cpu(block: &TurnBlock) -> f64 {
    block.cpu_seconds.map_or(f64::NAN, |seconds| (seconds / block.operations as f64).ln())
}

/// Returns the logarithm of the operations per second over all of some blocks.
fn ln_mean_rate(blocks: &[&TurnBlock]) -> f64 {
    let operations: f64 = blocks.iter().map(|block| block.operations as f64).sum();
    let seconds: f64 = blocks.iter().map(|block| block.seconds).sum();
    (operations / seconds).ln()
}

/// Returns the mean of some values without the fifth at each end (Tukey and McLaughlin 1963).
/// `None` if there are too few, or if what is left has no bounds.
fn typical(values: impl Iterator<Item = f64>) -> Option<f64> {
    mean(without_ends(values)?).filter(|mean| mean.is_finite())
}

/// Returns some values in their order, without the fifth at each end. Values that are no numbers
/// don't count. `None` if there are too few.
fn without_ends(values: impl Iterator<Item = f64>) -> Option<Vec<f64>> {
    let mut sorted: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    if sorted.len() < BLOCKS_MIN {
        return None;
    }

    sorted.sort_by(f64::total_cmp);
    let trimmed = (TRIMMED_SHARE * sorted.len() as f64) as usize;
    Some(sorted[trimmed..sorted.len() - trimmed].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns blocks with these numbers of operations in a tenth of a second each, half of which
    /// is CPU time.
    fn blocks(operations: &[u64]) -> Vec<TurnBlock> {
        let block = |(number, operations): (usize, &u64)| TurnBlock {
            block: number as u32,
            turns: 2,
            seconds: 0.1,
            operations: *operations,
            cpu_seconds: Some(0.05),
        };
        operations.iter().enumerate().map(block).collect()
    }

    #[track_caller]
    fn assert_near(value: Option<f64>, expected: f64) {
        let value = value.unwrap();
        assert!((value / expected - 1.0).abs() < 1e-9, "{value}, not {expected}");
    }

    #[test]
    fn a_stall_is_in_steadiness_and_not_in_the_typical_rate() {
        let mut operations = [100; 20];
        operations[3..6].fill(0);
        let figures = figures(&blocks(&operations), Some(850.0));
        assert_near(figures[TYPICAL_RATE], 1000.0);
        assert_near(figures[STEADINESS], 0.85);

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
    }

    #[test]
    fn the_error_of_a_repeat_is_that_of_its_blocks() {
        // Whole values from -10 to 10 percent: replaced beyond 6.
        let ratios: Vec<f64> = (-10..=10).map(|value| f64::from(value) / 100.0).collect();
        let operations: Vec<u64> =
            ratios.iter().map(|ratio| (1e9 * ratio.exp()).round() as u64).collect();
        let error = error_within(TYPICAL_RATE, &blocks(&[1_000_000_000; 21]), &blocks(&operations));

        let replaced = ratios.iter().map(|ratio| ratio.clamp(-0.06, 0.06));
        let deviation = (replaced.map(|ratio| ratio * ratio).sum::<f64>() / 20.0).sqrt();
        let expected = deviation / (0.6 * 21.0_f64.sqrt());
        assert!((error.unwrap() / expected - 1.0).abs() < 1e-6, "{error:?}");
        assert_eq!(error_within(STEADINESS, &blocks(&[1; 21]), &blocks(&[1; 21])), None);
    }

    #[test]
    fn only_blocks_that_both_have_in_full_count() {
        let (base, mut target) = (blocks(&[100; 12]), blocks(&[100; 12]));
        target.remove(0);
        target[4].turns = 1;
        target[4].operations = 9;
        assert_near(ratio(TYPICAL_RATE, &base, &target), 1.0);
        target.remove(0);
        assert_eq!(ratio(TYPICAL_RATE, &base, &target), None, "nine blocks are too few");
    }

    #[test]
    fn a_target_that_stands_still_has_no_typical_rate() {
        let mut operations = [0; 20];
        operations[0..8].fill(100);
        assert_eq!(figures(&blocks(&operations), Some(40.0))[TYPICAL_RATE], None);
        assert_eq!(ratio(TYPICAL_RATE, &blocks(&[100; 20]), &blocks(&operations)), None);
    }

    #[test]
    fn whole_operations_have_an_error_where_all_blocks_have_the_same_few() {
        assert_near(Some(rounding(&blocks(&[6; 20]))), 1.0 / 6.0 / 12.0_f64.sqrt());
        let differing: Vec<u64> = (0..20).map(|block| 5 + block % 3).collect();
        assert_eq!(rounding(&blocks(&differing)), 0.0);
        assert_eq!(rounding(&[]), 0.0);
        assert_eq!(rounding(&blocks(&[0; 20])), 0.0, "without operations there is no rate");
    }

    #[test]
    fn cpu_that_is_unknown_says_nothing() {
        let mut unknown = blocks(&[100; 20]);
        for block in &mut unknown {
            block.cpu_seconds = None;
        }
        assert_eq!(figures(&unknown, Some(1000.0))[TYPICAL_CPU], None);
        assert_eq!(ratio(TYPICAL_CPU, &blocks(&[100; 20]), &unknown), None);
    }
}
