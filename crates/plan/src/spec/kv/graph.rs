//! `mixgraph`: gets, puts and scans of a social graph, as `db_bench` has them.
//!
//! The models and their parameters are those of Z. Cao, S. Dong, S. Vemuri, D. H. C. Du:
//! Characterizing, Modeling, and Benchmarking RocksDB Key-Value Workloads at Facebook, FAST '20.

/// The operations of `mixgraph`, and the distributions of their keys, values and scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KvGraph {
    /// The proportions of the operations.
    pub mix: KvGraphMix,
    /// The number of ranges into which the keys are divided.
    pub key_ranges: u32,
    /// The frequencies of the ranges; `None`: all are equally frequent.
    pub range_frequency: Option<KvTwoTermExponential>,
    /// The frequencies of the keys of a range; `None`: all are equally frequent.
    pub key_frequency: Option<KvPower>,
    /// The sizes of values.
    pub value_size: KvPareto,
    /// The largest value.
    pub value_size_max: u32,
    /// The entries of scans.
    pub scan_length: KvPareto,
    /// The longest scan has fewer entries.
    pub scan_length_end: u32,
}

/// The proportions of operations, whatever their sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KvGraphMix {
    /// Reads of one key.
    pub gets: f64,
    /// New values of keys.
    pub puts: f64,
    /// Scans upward.
    pub scans: f64,
}

/// Frequencies of the ranges 1, 2, ... in proportion to `a exp(b n) + c exp(d n)`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the formula says what they are")]
pub struct KvTwoTermExponential {
    pub a: f64,
    pub b: f64,
    pub c: f64,
    pub d: f64,
}

/// Frequencies of keys: the `x` most frequent ones have the share `a x^b`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the formula says what they are")]
pub struct KvPower {
    pub a: f64,
    pub b: f64,
}

/// The generalized Pareto distribution: larger than `x` with the probability
/// `(1 + k (x - theta) / sigma)^(-1 / k)`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the formula says what they are")]
pub struct KvPareto {
    pub theta: f64,
    pub k: f64,
    pub sigma: f64,
}

/// A model of the frequencies of keys, by its name in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvGraphModel {
    /// Frequent ranges, and frequent keys in each range.
    PrefixDist,
    /// Frequent ranges, whose keys are equally frequent.
    PrefixRandom,
    /// Frequent keys.
    AllDist,
    /// All keys are equally frequent.
    AllRandom,
}

impl KvGraphModel {
    /// The models with their names in plans.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("prefix_dist", Self::PrefixDist),
        ("prefix_random", Self::PrefixRandom),
        ("all_dist", Self::AllDist),
        ("all_random", Self::AllRandom),
    ];
}

impl KvGraph {
    /// Returns a model with the parameters of the wiki of RocksDB (RocksDB Trace, Replay, Analyzer,
    /// and Workload Generation), which were fitted to ZippyDB.
    pub fn of_model(model: KvGraphModel) -> Self {
        let has_ranges = matches!(model, KvGraphModel::PrefixDist | KvGraphModel::PrefixRandom);
        let has_frequent_keys = matches!(model, KvGraphModel::PrefixDist | KvGraphModel::AllDist);
        let range_frequency = KvTwoTermExponential { a: 14.18, b: -2.917, c: 0.0164, d: -0.08082 };
        let key_frequency = KvPower { a: 0.002312, b: 0.3467 };

        Self {
            mix: KvGraphMix { gets: 0.83, puts: 0.14, scans: 0.03 },
            key_ranges: if has_ranges { 30 } else { 1 },
            range_frequency: has_ranges.then_some(range_frequency),
            key_frequency: has_frequent_keys.then_some(key_frequency),
            value_size: KvPareto { theta: 0.0, k: 0.2615, sigma: 25.45 },
            value_size_max: 1024,
            scan_length: KvPareto { theta: 0.0, k: 2.517, sigma: 14.236 },
            scan_length_end: 10_000,
        }
    }
}
