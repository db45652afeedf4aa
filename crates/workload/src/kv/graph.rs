//! The distributions of `mixgraph`. The formulas are those of `MixGraph` and
//! `GenerateTwoTermExpKeys` in `db_bench` (`tools/db_bench_tool.cc` of RocksDB), which has them from
//! Cao et al., FAST '20.

use plan::{KvGraph, KvGraphMix, KvPareto, KvPower, KvTwoTermExponential};

use super::data::VALUE_BYTES_MIN;
use crate::Random;
use crate::hash::hash;

/// The purpose of the random stream that orders the ranges, the only part of its path.
const RANGES: u64 = 5;
/// Smaller frequencies count as zero.
const FREQUENCY_MIN: f64 = 1e-16;

/// An operation of `mixgraph`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GraphOperation {
    Get,
    Put,
    Scan,
}

/// Draws the operations of one step.
#[derive(Debug)]
pub(super) struct Graph {
    /// The shares of gets, and of gets and puts together.
    get_share: f64,
    get_put_share: f64,
    /// The share of all operations on a range and those before it, in the order of the keys.
    range_ends: Vec<f64>,
    /// The number of keys of a range. Fewer keys than that, the last ones, are in no range.
    range_size: u64,
    key_frequency: Option<KvPower>,
    value_size: KvPareto,
    value_size_max: u64,
    scan_length: KvPareto,
    scan_length_end: u64,
}

impl Graph {
    /// Returns the distributions on `keys` keys. The order of the ranges follows from the seed.
    pub(super) fn new(plan: &KvGraph, keys: u64, seed: u64) -> Self {
        let KvGraphMix { gets, puts, scans } = plan.mix;
        let all = gets + puts + scans;
        let ranges = u64::from(plan.key_ranges).clamp(1, keys.max(1));

        Self {
            get_share: gets / all,
            get_put_share: (gets + puts) / all,
            range_ends: range_ends(plan.range_frequency, ranges, seed),
            range_size: (keys / ranges).max(1),
            key_frequency: plan.key_frequency,
            value_size: plan.value_size,
            value_size_max: plan.value_size_max.into(),
            scan_length: plan.scan_length,
            scan_length_end: plan.scan_length_end.into(),
        }
    }

    /// Returns the shares of gets, puts and scans among all operations.
    pub(super) fn shares(&self) -> [f64; 3] {
        let puts = self.get_put_share - self.get_share;
        [self.get_share, puts, 1.0 - self.get_put_share]
    }

    pub(super) fn value_size_max(&self) -> usize {
        self.value_size_max as usize
    }

    #[inline]
    pub(super) fn draw_operation(&self, random: &mut Random) -> GraphOperation {
        let share = random.fraction();
        if share < self.get_share {
            GraphOperation::Get
        } else if share < self.get_put_share {
            GraphOperation::Put
        } else {
            GraphOperation::Scan
        }
    }

    /// Draws the number of a key.
    #[inline]
    pub(super) fn draw_key(&self, random: &mut Random) -> u64 {
        let share = random.fraction();
        let range = self.range_ends.partition_point(|end| *end <= share) as u64;
        let range = range.min(self.range_ends.len() as u64 - 1);

        let place = match self.key_frequency {
            None => random.below(self.range_size),
            Some(KvPower { a, b }) => {
                // The `x` most frequent keys have the share `a x^b`.
                let rank = (fraction_above_zero(random) / a).powf(1.0 / b).ceil() as u64;
                hash(rank.cast_signed()).cast_unsigned() % self.range_size
            }
        };
        range * self.range_size + place
    }

    /// Draws the size of a value.
    #[inline]
    pub(super) fn draw_value_size(&self, random: &mut Random) -> usize {
        let size = draw_pareto(self.value_size, random);
        let size = if size > self.value_size_max { size % self.value_size_max } else { size };
        (size as usize).max(VALUE_BYTES_MIN)
    }

    /// Draws the number of entries of a scan.
    #[inline]
    pub(super) fn draw_scan_length(&self, random: &mut Random) -> u64 {
        (draw_pareto(self.scan_length, random) % self.scan_length_end).max(1)
    }

    /// Returns the mean size of a value.
    pub(super) fn value_size_mean(&self) -> f64 {
        // The mean of many draws, which is exact enough for a figure of bytes.
        const DRAWS: u64 = 100_000;
        let mut random = Random::new(0);
        let sum: usize = (0..DRAWS).map(|_| self.draw_value_size(&mut random)).sum();
        sum as f64 / DRAWS as f64
    }
}

/// Returns the share of all operations on each range and those before it, in the order of the keys.
fn range_ends(frequency: Option<KvTwoTermExponential>, ranges: u64, seed: u64) -> Vec<f64> {
    let mut shares: Vec<f64> = (1..=ranges)
        .map(|number| match frequency {
            None => 1.0,
            Some(KvTwoTermExponential { a, b, c, d }) => {
                let number = number as f64;
                let frequency = a * (b * number).exp() + c * (d * number).exp();
                if frequency < FREQUENCY_MIN { 0.0 } else { frequency }
            }
        })
        .collect();

    // The frequent ranges are scattered among the others.
    let mut random = Random::stream(seed, &[RANGES]);
    for end in (1..shares.len()).rev() {
        shares.swap(end, random.below(end as u64 + 1) as usize);
    }

    let all: f64 = shares.iter().sum();
    let mut before = 0.0;
    for share in &mut shares {
        before += *share / all;
        *share = before;
    }
    shares
}

/// Returns a number above 0, up to 1.
#[inline]
fn fraction_above_zero(random: &mut Random) -> f64 {
    1.0 - random.fraction()
}

/// Draws from a generalized Pareto distribution, rounded up, by the inverse of its distribution.
#[inline]
fn draw_pareto(pareto: KvPareto, random: &mut Random) -> u64 {
    let KvPareto { theta, k, sigma } = pareto;
    let above = fraction_above_zero(random);
    let excess = if k == 0.0 { -above.ln() } else { (above.powf(-k) - 1.0) / k };
    (theta + sigma * excess).ceil() as u64
}

#[cfg(test)]
mod tests {
    use plan::KvGraphModel;

    use super::super::tests::assert_fit;
    use super::*;

    const DRAWS: u32 = 400_000;

    fn graph(model: KvGraphModel, keys: u64) -> Graph {
        Graph::new(&KvGraph::of_model(model), keys, 1)
    }

    /// Returns how often each of the numbers below `count` is drawn, and the last one or a larger
    /// one.
    fn counts(count: usize, mut draw: impl FnMut(&mut Random) -> u64) -> Vec<u32> {
        let mut random = Random::stream(3, &[count as u64]);
        let mut counts = vec![0; count];
        for _ in 0..DRAWS {
            counts[(draw(&mut random) as usize).min(count - 1)] += 1;
        }
        counts
    }

    fn expected(shares: &[f64]) -> Vec<f64> {
        let all: f64 = shares.iter().sum();
        shares.iter().map(|share| f64::from(DRAWS) * share / all).collect()
    }

    #[test]
    fn operations_have_their_proportions() {
        let graph = graph(KvGraphModel::PrefixDist, 3000);
        let found = counts(3, |random| graph.draw_operation(random) as u64);
        assert_fit(&found, &expected(&[0.83, 0.14, 0.03]));
    }

    #[test]
    fn ranges_have_the_frequencies_of_the_formula() {
        for model in [KvGraphModel::PrefixDist, KvGraphModel::PrefixRandom] {
            let graph = graph(model, 3000);
            let mut found = counts(30, |random| graph.draw_key(random) / 100);
            let mut shares: Vec<f64> = (1..=30)
                .map(f64::from)
                .map(|number| {
                    14.18 * f64::exp(-2.917 * number) + 0.0164 * f64::exp(-0.08082 * number)
                })
                .collect();
            assert!(!found.is_sorted() && !found.is_sorted_by(|a, b| a >= b), "not scattered");

            found.sort_unstable();
            shares.sort_by(f64::total_cmp);
            assert_fit(&found, &expected(&shares));
        }
    }

    /// The share of rank x is `a x^b - a (x-1)^b`, up to the rank at which all have been counted.
    #[test]
    fn keys_have_the_frequencies_of_the_formula() {
        const RANKS: u32 = 5000;
        let b = 0.3467;
        let power = KvPower { a: f64::from(RANKS).powf(-b), b };
        let usual = KvGraph::of_model(KvGraphModel::AllDist);
        let graph = Graph::new(&KvGraph { key_frequency: Some(power), ..usual }, 700, 1);

        let mut shares = vec![0.0; 700];
        for rank in 1..=RANKS {
            let up_to = |rank: u32| power.a * f64::from(rank).powf(b);
            let key = hash(rank.into()).cast_unsigned() % 700;
            shares[key as usize] += up_to(rank) - up_to(rank - 1);
        }
        assert_fit(&counts(700, |random| graph.draw_key(random)), &expected(&shares));
    }

    #[test]
    fn keys_are_uniform_without_a_model() {
        let graph = graph(KvGraphModel::AllRandom, 1000);
        assert_fit(&counts(1000, |random| graph.draw_key(random)), &expected(&[1.0; 1000]));
    }

    /// Larger than x with the probability `(1 + k x / sigma)^(-1 / k)`.
    fn pareto_share(k: f64, sigma: f64, x: usize) -> f64 {
        let above = |x: usize| (1.0 + k * x as f64 / sigma).powf(-1.0 / k);
        if x == 0 { 0.0 } else { above(x - 1) - above(x) }
    }

    #[test]
    fn values_have_the_sizes_of_the_formula() {
        let graph = graph(KvGraphModel::AllDist, 1000);
        let found = counts(201, |random| graph.draw_value_size(random) as u64);
        let mut shares = vec![0.0; 201];
        // Sizes beyond the largest are folded; those beyond this one are very rare.
        for size in 1..100_000 {
            let folded = if size > 1024 { size % 1024 } else { size };
            shares[folded.clamp(16, 200)] += pareto_share(0.2615, 25.45, size);
        }
        assert_fit(&found, &expected(&shares));

        let mean = graph.value_size_mean();
        assert!((38.0..40.0).contains(&mean), "{mean}");
    }

    #[test]
    fn scans_have_the_lengths_of_the_formula() {
        let graph = graph(KvGraphModel::AllDist, 1000);
        let found = counts(101, |random| graph.draw_scan_length(random));
        let mut shares = vec![0.0; 101];
        for length in 1..2_000_000 {
            shares[(length % 10_000).clamp(1, 100)] += pareto_share(2.517, 14.236, length);
        }
        // The rest is spread evenly over all lengths.
        let rest = 1.0 - shares.iter().sum::<f64>();
        for share in &mut shares[1..100] {
            *share += rest / 10_000.0;
        }
        shares[100] += rest * 0.99;
        assert_fit(&found, &expected(&shares));
    }

    #[test]
    fn without_a_shape_the_distribution_is_exponential() {
        let pareto = KvPareto { theta: 5.0, k: 0.0, sigma: 10.0 };
        let found = counts(60, |random| draw_pareto(pareto, random));
        let above = |x: f64| f64::exp(-(x - 5.0).max(0.0) / 10.0);
        let mut shares: Vec<f64> =
            (0..60).map(f64::from).map(|x| above(x - 1.0) - above(x)).collect();
        shares[59] += above(59.0);
        assert_fit(&found, &expected(&shares));
    }
}
