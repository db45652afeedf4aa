//! Subtracts the steady drift of the machine between the two repeats of a pair from the mean of
//! ratios.

use super::mean::{Mean, Pair};

/// The drift of the machine in one block of pairs: those that one invocation of a run measured.
struct BlockDrift {
    /// The time from the base's repeat to the target's, summed over all pairs.
    delay: f64,
    /// The time from the first pair to the last; zero if there is only one.
    span: f64,
    /// The logarithm of the last pair's level over the first one's.
    rise: f64,
}

impl BlockDrift {
    fn new(pairs: &[Pair]) -> Self {
        let (first, last) = (&pairs[0], &pairs[pairs.len() - 1]);
        let level = |pair: &Pair| f64::midpoint(pair.base.ln(), pair.value.ln());
        let middle = |pair: &Pair| f64::midpoint(pair.base_at, pair.at);
        Self {
            delay: pairs.iter().map(|pair| pair.at - pair.base_at).sum(),
            span: middle(last) - middle(first),
            rise: level(last) - level(first),
        }
    }

    /// Returns whether its pairs can show a drift.
    fn has_drift(&self) -> bool {
        self.span > 0.0
    }
}

fn blocks(pairs: &[Pair]) -> Vec<BlockDrift> {
    let blocks = pairs.chunk_by(|a, b| a.block == b.block);
    blocks.map(BlockDrift::new).collect()
}

/// Returns whether base and target came second equally often, give or take one pair, in all blocks
/// together and in each block. Drift then cancels in the mean, and what remains of it is in the
/// spread.
fn is_balanced(pairs: &[Pair]) -> bool {
    let is_even = |pairs: &[Pair]| {
        let later = pairs.iter().filter(|pair| pair.at > pair.base_at).count();
        let earlier = pairs.iter().filter(|pair| pair.at < pair.base_at).count();
        later.abs_diff(earlier) <= 1
    };
    is_even(pairs) && pairs.chunk_by(|a, b| a.block == b.block).all(is_even)
}

/// Returns whether a drift within blocks cannot be seen: each block has only one pair, and the
/// order does not cancel the drift.
pub(super) fn is_hidden(pairs: &[Pair]) -> bool {
    let blocks = blocks(pairs);
    blocks.len() > 1 && !blocks.iter().any(BlockDrift::has_drift) && !is_balanced(pairs)
}

/// Returns the mean of the ratios minus the drift; in a balanced order, the mean unchanged.
///
/// The drift of a pair is the time between its two repeats, times the rate at which the machine
/// changed from the first to the last pair of its block. Changes between blocks, such as after a
/// reboot, do not count. A block with one pair takes the rate of all other blocks together. If each
/// block has only one pair, those of a machine count as one block. The noise of the first and last
/// pairs, whose ratios have the standard deviation `spread`, is part of the rates and adds to the
/// error. If the change is not steady, the spread of the ratios shows it.
pub(super) fn detrended(measured: Mean, spread: f64, floor: f64, pairs: &[Pair]) -> Mean {
    if pairs.len() < 2 || is_balanced(pairs) {
        return measured;
    }

    let mut blocks = blocks(pairs);
    if !blocks.iter().any(BlockDrift::has_drift) {
        let machines = pairs.chunk_by(|a, b| a.block.machine == b.block.machine);
        blocks = machines.map(BlockDrift::new).collect();
    }

    let (drifting, others): (Vec<BlockDrift>, Vec<BlockDrift>) =
        blocks.into_iter().partition(BlockDrift::has_drift);

    let span: f64 = drifting.iter().map(|block| block.span).sum();
    let delay: f64 = others.iter().map(|block| block.delay).sum();
    let count = pairs.len() as f64;

    let (mut drift, mut squares) = (0.0, 0.0);
    for block in &drifting {
        let times = (block.delay / block.span + delay / span) / count;
        drift += times * block.rise;
        squares += times * times;
    }

    // The variance of a pair's level is a quarter of that of its log ratio, and a rise has two
    // levels.
    let variance = measured.error.powi(2) + spread * spread * squares / 2.0;
    Mean::new(measured.center - drift, variance, measured.freedom, floor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::mean::Block;

    /// Returns a block of the first machine.
    fn block(invocation: usize) -> Block {
        Block { invocation: invocation as u32, ..Block::default() }
    }

    /// Returns the pairs of blocks, each of a number of pairs, the delay within a pair, and the
    /// rate of change. Each block begins at a level of 100, a day after the one before.
    fn pairs(blocks: &[(usize, f64, f64)]) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (block, &(count, delay, rate)) in blocks.iter().enumerate() {
            let level = |at: f64| 100.0 * (rate * at).exp();
            for index in 0..count {
                let at = 3.0 * index as f64;
                let day = 10_000.0 * block as f64;
                pairs.push(Pair {
                    base: level(at),
                    value: level(at + delay),
                    base_at: day + at,
                    at: day + at + delay,
                    block: self::block(block),
                });
            }
        }
        pairs
    }

    #[track_caller]
    fn check(pairs: &[Pair], center: f64, factor: f64) {
        let ratios = pairs.iter().map(|pair| (pair.value / pair.base).ln());
        let count = pairs.len() as f64;
        let measured = Mean::new(ratios.sum::<f64>() / count, 4.0 / count, 1.0, 0.0);
        let detrended = detrended(measured, 2.0, 0.0, pairs);
        assert!((detrended.center - center).abs() < 1e-12, "{detrended:?}");
        let expected = 2.0 * factor.sqrt();
        assert!((detrended.error - expected).abs() < 1e-12, "{detrended:?}");
    }

    #[test]
    fn the_drift_of_each_block_is_subtracted() {
        // By hand, for one block: 1/n + h² / 2(n - 1)², with h = 1/3.
        check(&pairs(&[(4, 1.0, 0.01)]), 0.0, 0.25 + 1.0 / 162.0);
        // Each rise counts for delay / span / n: 2 x 1/6 / 4, and 2 x 2/3 / 4.
        let two = [(2, 1.0, 0.01), (2, 2.0, -0.03)];
        let (a, b) = (2.0 / 3.0 / 4.0, 4.0 / 3.0 / 4.0);
        check(&pairs(&two), 0.0, 0.25 + (a * a + b * b) / 2.0);
    }

    #[test]
    fn a_block_of_one_pair_has_the_drift_of_the_others() {
        let pairs = pairs(&[(1, 2.0, 0.01), (3, 1.0, 0.01)]);
        let times = (3.0 / 6.0 + 2.0 / 6.0) / 4.0;
        check(&pairs, 0.0, 0.25 + times * times / 2.0);
        assert!(!is_hidden(&pairs));
    }

    #[test]
    fn blocks_of_one_pair_count_as_one_block() {
        let single = pairs(&[(1, 1.0, 0.01), (1, 1.0, 0.01), (1, 1.0, 0.01)]);
        assert!(is_hidden(&single));
        // The change from day to day does not show the drift of 0.01 in each pair.
        let times = 3.0 / 20_000.0 / 3.0;
        check(&single, 0.01, 1.0 / 3.0 + times * times / 2.0);
    }

    /// Returns the pairs of blocks a day apart. Each flag says whether the target came second in a
    /// pair.
    fn in_order(blocks: &[&[bool]]) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (block, order) in blocks.iter().enumerate() {
            for (index, &is_later) in order.iter().enumerate() {
                let at = 10_000.0 * block as f64 + 3.0 * index as f64;
                let (base_at, at) = if is_later { (at, at + 1.0) } else { (at + 1.0, at) };
                let level = |at: f64| 100.0 * (0.01 * at).exp();
                pairs.push(Pair {
                    base: level(base_at),
                    value: level(at),
                    base_at,
                    at,
                    block: self::block(block),
                });
            }
        }
        pairs
    }

    #[test]
    fn in_a_balanced_order_nothing_is_subtracted() {
        for order in [
            &[&[true, false][..]][..],
            &[&[true, false, false, true, true]],
            &[&[true, false], &[false], &[true]],
        ] {
            let pairs = in_order(order);
            let measured = Mean::new(0.5, 0.0, 1.0, 0.0);
            assert_eq!(detrended(measured, 1.0, 0.0, &pairs), measured, "{order:?}");
            assert!(!is_hidden(&pairs), "{order:?}");
        }
    }

    #[test]
    fn an_order_must_be_balanced_in_each_block() {
        for order in [
            &[&[true, true][..]][..],
            &[&[true, true], &[false, false]],
            &[&[true, false], &[true], &[true]],
        ] {
            let measured = Mean::new(0.5, 0.0, 1.0, 0.0);
            let detrended = detrended(measured, 1.0, 0.0, &in_order(order));
            assert_ne!(detrended, measured, "{order:?}");
        }
        assert!(is_hidden(&in_order(&[&[true], &[true]])));
        assert!(!is_hidden(&in_order(&[&[true], &[false]])));
    }

    #[test]
    fn one_pair_has_no_drift() {
        check(&pairs(&[(1, 1.0, 0.01)]), 0.01, 1.0);
    }

    #[test]
    fn the_time_between_machines_shows_no_drift() {
        // Of three machines at nearly the same time, each with one pair, the last one is much
        // faster.
        let mut at_once = pairs(&[(1, 1.0, 0.01), (1, 1.0, 0.01), (1, 1.0, 0.01)]);
        for (machine, pair) in at_once.iter_mut().enumerate() {
            pair.block.machine = machine;
            pair.base_at = 0.001 * machine as f64;
            pair.at = pair.base_at + 1.0;
            pair.base *= 2.0_f64.powi(machine as i32);
            pair.value *= 2.0_f64.powi(machine as i32);
        }
        assert!(is_hidden(&at_once));
        check(&at_once, 0.01, 1.0 / 3.0);
    }
}
