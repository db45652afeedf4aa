//! The key-value sequence in a plan.

mod graph;

use std::fmt;
use std::time::Duration;

pub use graph::{KvGraph, KvGraphMix, KvGraphModel, KvPareto, KvPower, KvTwoTermExponential};

use words::MergeOperator;

use super::{Settle, StepPolicy, StepRun, TestRate};

/// The parameters of the key-value sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Kv {
    /// The steps in their order.
    pub steps: Vec<KvStep>,
    /// The number of keys.
    pub keys: u64,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// The operator that combines merged values. With sums, all values are numbers of 64 bits.
    pub merge_operator: MergeOperator,
    /// The share of a value that is random; the rest compresses to nothing.
    pub compression_ratio: f64,
    /// Entries of a scan.
    pub scan_length: u32,
    /// Keys of a multi-get.
    pub multiget_keys: u32,
    /// The share of reads that compare a value with what was written.
    pub verify_share: f64,
    /// The options of all steps: checks, failures and settling.
    pub policy: StepPolicy,
}

impl Kv {
    /// Returns whether a step merges values into keys.
    pub fn merges(&self) -> bool {
        self.steps.iter().any(|step| step.kind.merges())
    }

    /// Removes each rate that is a share of the highest one: what is left measures the highest rate.
    pub fn remove_shares(&mut self) {
        for step in &mut self.steps {
            step.rate.take_if(|rate| matches!(rate, TestRate::OfMax(_)));
        }
    }

    /// Removes the rates of all clients.
    pub fn remove_rates(&mut self) {
        for step in &mut self.steps {
            step.rate = None;
        }
    }

    /// Returns whether a step has transactions.
    pub fn has_transactions(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(step.kind, KvStepKind::Transactions { .. }))
    }
}

/// One step of the key-value sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct KvStep {
    /// The position in the list of steps, from 0.
    pub number: u32,
    /// The name, unique within the plan: `readwhilewriting`, `readwhilewriting.2`.
    pub name: String,
    /// The work.
    pub kind: KvStepKind,
    /// Each write is on the disk before it returns, whatever the config's durability.
    pub sync: bool,
    /// The rate of the clients' operations; `None` for as fast as possible. A writer beside readers
    /// has a rate of its own.
    pub rate: Option<TestRate>,
}

impl KvStep {
    pub(super) fn run(&self) -> StepRun<'_> {
        match self.kind {
            KvStepKind::Drain => StepRun::settling(&self.name, Settle::Pending),
            KvStepKind::Flush => StepRun::settling(&self.name, Settle::EmptyLevel0),
            KvStepKind::FillSeq
            | KvStepKind::FillSst
            | KvStepKind::OverwriteSome { .. }
            | KvStepKind::Delete { .. } => StepRun::measured(&self.name, None),
            KvStepKind::Read { time, .. }
            | KvStepKind::ReadWhileWriting { time, .. }
            | KvStepKind::Mixed { time, .. }
            | KvStepKind::MixGraph { time, .. }
            | KvStepKind::Transactions { time, .. } => StepRun::measured(&self.name, Some(time)),
            KvStepKind::Overwrite { time, .. } => StepRun {
                settle: Some(Settle::Pending),
                ..StepRun::measured(&self.name, Some(time))
            },
        }
    }
}

/// The work of a step of the key-value sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KvStepKind {
    /// `fillseq`: one client writes all keys in order, without a log.
    FillSeq,
    /// `fillsst`: one client writes all keys in order into files, which the database takes over.
    FillSst,
    /// `drain`: waits for compaction.
    Drain,
    /// `flush`: flushes memtables, waits, compacts level 0, waits.
    Flush,
    /// `readrandom`, `multireadrandom`, `fwdrange`, `revrange`
    Read {
        /// The kind of reads.
        read: KvRead,
        /// The distribution of the keys that it reads.
        keys: KvKeys,
        /// The duration.
        time: Duration,
    },
    /// `readwhilewriting`, `multireadwhilewriting`, `fwdrangewhilewriting`, `revrangewhilewriting`, and
    /// the same with `whilemerging`
    ReadWhileWriting {
        /// The kind of reads.
        read: KvRead,
        /// The distribution of the keys that it reads.
        keys: KvKeys,
        /// The kind of writes.
        write: KvWrite,
        /// Bytes of keys and values that the writer writes per second.
        write_bytes_per_s: u64,
        /// The duration.
        time: Duration,
    },
    /// `ycsb_a` to `ycsb_f`: each client reads and writes, as in a core workload of YCSB.
    Mixed {
        /// The operations.
        mix: KvMix,
        /// The duration.
        time: Duration,
    },
    /// `mixgraph`: each client reads and writes, as users of a social graph do.
    MixGraph {
        /// The operations.
        graph: KvGraph,
        /// The duration.
        time: Duration,
    },
    /// `randomtransaction`: each client changes one key of each set in a transaction.
    Transactions {
        /// The keys, and how transactions wait for each other.
        transactions: KvTransactions,
        /// The duration.
        time: Duration,
    },
    /// `overwritesome`
    OverwriteSome {
        /// Writes of all clients together.
        writes: u64,
    },
    /// `deleteseq`, `deleterandom`, `deleterange`
    Delete {
        /// The choice of the keys.
        delete: KvDelete,
        /// Deletions of all clients together.
        deletes: u64,
    },
    /// `overwrite`, `mergerandom`: overwrites, then waits for compaction.
    Overwrite {
        /// The kind of writes.
        write: KvWrite,
        /// The time for which it writes.
        time: Duration,
    },
}

impl KvStepKind {
    /// Returns whether its clients may have a rate: they do the same until the time is up.
    pub(crate) fn may_have_rate(self) -> bool {
        match self {
            Self::Read { .. }
            | Self::ReadWhileWriting { .. }
            | Self::Mixed { .. }
            | Self::MixGraph { .. }
            | Self::Transactions { .. }
            | Self::Overwrite { .. } => true,
            Self::FillSeq
            | Self::FillSst
            | Self::Drain
            | Self::Flush
            | Self::OverwriteSome { .. }
            | Self::Delete { .. } => false,
        }
    }

    /// Returns whether it only reads.
    pub(crate) fn only_reads(self) -> bool {
        match self {
            Self::Read { .. } => true,
            Self::Mixed { mix, .. } => mix.only_reads(),
            _ => false,
        }
    }

    /// Returns whether it loads the keys.
    pub fn is_load(self) -> bool {
        matches!(self, Self::FillSeq | Self::FillSst)
    }

    /// Returns whether it merges values into keys.
    pub fn merges(self) -> bool {
        match self {
            Self::Overwrite { write, .. } | Self::ReadWhileWriting { write, .. } => {
                write == KvWrite::Merge
            }
            _ => false,
        }
    }

    /// Returns whether values that are sums can be checked after it: it writes none but by merges.
    pub(crate) fn keeps_sums(self) -> bool {
        let never_writes = matches!(self, Self::Drain | Self::Flush) || self.only_reads();
        self.is_load() || self.merges() || never_writes
    }

    /// Returns whether its writes may be synchronous.
    pub(crate) fn may_sync(self) -> bool {
        let never_writes = matches!(self, Self::Drain | Self::Flush) || self.only_reads();
        // The load is without a log.
        !self.is_load() && !never_writes
    }
}

/// The transactions of a step. Each adds a number to one key of each set, so that the sums of all sets
/// stay equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvTransactions {
    /// The number of sets, which are ranges of the loaded keys.
    pub sets: u32,
    /// The number of keys of a set, from the first key of its range on.
    pub keys_per_set: u64,
    /// The longest wait for a lock. Of optimistic transactions, none waits.
    pub lock_timeout: Duration,
    /// A transaction fails if a key was changed since it began, not only since it read the key.
    pub takes_snapshot: bool,
}

/// The distribution of the loaded keys that a step reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KvKeys {
    /// All keys are equally frequent.
    Uniform,
    /// That of the steps `ycsb_*`, with this exponent: the frequent keys are scattered over all.
    Zipfian {
        /// Above 0, up to 10. YCSB has 0.99.
        exponent: f64,
    },
    /// That of `db_bench --read_random_exp_range`: a number falls exponentially over this range, and
    /// a multiplication scatters the frequent keys over all.
    Exponential {
        /// The logarithm of the ratio of the probabilities of the most and the least frequent key.
        range: f64,
    },
}

impl KvKeys {
    const EXPONENT_MAX: f64 = 10.0;
    /// The largest range. Beyond it, a few keys would have all reads.
    const RANGE_MAX: f64 = 100.0;

    /// Reads `uniform`, `zipfian(EXPONENT)` or `exponential(RANGE)`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "uniform" {
            return Some(Self::Uniform);
        }

        let (name, number) = text.strip_suffix(')')?.split_once('(')?;
        let number: f64 = number.trim().parse().ok()?;
        let is_below = |most: f64| number > 0.0 && number <= most;
        match name {
            "zipfian" if is_below(Self::EXPONENT_MAX) => Some(Self::Zipfian { exponent: number }),
            "exponential" if is_below(Self::RANGE_MAX) => Some(Self::Exponential { range: number }),
            _ => None,
        }
    }
}

impl fmt::Display for KvKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipfian { exponent } => write!(f, "zipfian({exponent})"),
            Self::Exponential { range } => write!(f, "exponential({range})"),
        }
    }
}

/// The kind of reads of a step of the key-value sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvRead {
    /// One random key.
    Get,
    /// Several random keys at once.
    MultiGet,
    /// From a random key upward.
    Forward,
    /// From a random key downward.
    Reverse,
}

/// The kind of writes of a step that gives random keys new values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvWrite {
    /// A new value replaces the old one.
    Put,
    /// A new value is kept beside the old ones, until a read or a compaction finds the newest.
    Merge,
}

/// The choice of the keys that a step deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvDelete {
    /// From the first key upward.
    InOrder,
    /// Random keys, whether or not they exist.
    Random,
    /// Ranges from random keys on.
    Range {
        /// The number of keys of a range; fewer at the last key.
        width: u32,
    },
}

/// The operations of a client that reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvMix {
    /// The reads.
    pub read: KvMixRead,
    /// The writes.
    pub write: KvMixWrite,
    /// The percentage of writes among all operations.
    pub write_percent: u32,
}

/// The reads of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvMixRead {
    /// Loaded keys, of which the frequent ones are scattered.
    Scrambled,
    /// Keys of which the newest are the most frequent.
    Latest,
    /// Scans upward from loaded keys, of which the frequent ones are scattered.
    Scan,
}

/// The writes of a mix. Those of loaded keys have the distribution of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvMixWrite {
    /// None.
    Nothing,
    /// New values of loaded keys.
    Update,
    /// Reads of loaded keys, and new values for them.
    ReadModifyWrite,
    /// New keys, beyond all others.
    Insert,
}

impl KvMix {
    /// The core workloads of YCSB, each with the name of its step.
    pub const YCSB: [(&'static str, Self); 6] = [
        ("ycsb_a", Self::new(KvMixRead::Scrambled, KvMixWrite::Update, 50)),
        ("ycsb_b", Self::new(KvMixRead::Scrambled, KvMixWrite::Update, 5)),
        ("ycsb_c", Self::new(KvMixRead::Scrambled, KvMixWrite::Nothing, 0)),
        ("ycsb_d", Self::new(KvMixRead::Latest, KvMixWrite::Insert, 5)),
        ("ycsb_e", Self::new(KvMixRead::Scan, KvMixWrite::Insert, 5)),
        ("ycsb_f", Self::new(KvMixRead::Scrambled, KvMixWrite::ReadModifyWrite, 50)),
    ];

    const fn new(read: KvMixRead, write: KvMixWrite, write_percent: u32) -> Self {
        Self { read, write, write_percent }
    }

    /// Returns whether it only reads.
    pub fn only_reads(self) -> bool {
        self.write == KvMixWrite::Nothing
    }
}
