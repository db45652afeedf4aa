//! The key-value sequence in a plan.

use std::time::Duration;

use super::{Settle, StepPolicy, StepRun};

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

/// One step of the key-value sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct KvStep {
    /// The position in the list of steps, from 0.
    pub number: u32,
    /// The name, unique within the plan: `readwhilewriting`, `readwhilewriting.2`.
    pub name: String,
    /// The work.
    pub kind: KvStepKind,
}

impl KvStep {
    pub(super) fn run(&self) -> StepRun<'_> {
        match self.kind {
            KvStepKind::Drain => StepRun::settling(&self.name, Settle::Pending),
            KvStepKind::Flush => StepRun::settling(&self.name, Settle::EmptyLevel0),
            KvStepKind::FillSeq | KvStepKind::OverwriteSome { .. } => {
                StepRun::measured(&self.name, None)
            }
            KvStepKind::Read { time, .. }
            | KvStepKind::ReadWhileWriting { time, .. }
            | KvStepKind::Mixed { time, .. } => StepRun::measured(&self.name, Some(time)),
            KvStepKind::Overwrite { time } => StepRun {
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
    /// `drain`: waits for compaction.
    Drain,
    /// `flush`: flushes memtables, waits, compacts level 0, waits.
    Flush,
    /// `readrandom`, `multireadrandom`, `fwdrange`, `revrange`
    Read {
        /// The kind of reads.
        read: KvRead,
        /// The duration.
        time: Duration,
    },
    /// `readwhilewriting`, `multireadwhilewriting`, `fwdrangewhilewriting`, `revrangewhilewriting`
    ReadWhileWriting {
        /// The kind of reads.
        read: KvRead,
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
    /// `overwritesome`
    OverwriteSome {
        /// Writes of all clients together.
        writes: u64,
    },
    /// `overwrite`: overwrites as fast as possible, then waits for compaction.
    Overwrite {
        /// The time for which it writes.
        time: Duration,
    },
}

impl KvStepKind {
    /// Returns whether it only reads.
    pub(crate) fn only_reads(self) -> bool {
        match self {
            Self::Read { .. } => true,
            Self::Mixed { mix, .. } => mix.only_reads(),
            _ => false,
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
