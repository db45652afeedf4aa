//! The counters of an engine.

use serde::{Deserialize, Serialize};

/// The largest latency that histograms tell apart: one hour, with three significant digits. Longer ones are counted as
/// that.
pub const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// How a counter behaves over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// It only grows: a step's figure is the difference.
    Cumulative,
    /// It is what it is at that moment.
    Gauge,
}

/// What a counter counts, where the reading half makes something of it. The unit is last in the name. Several counters of
/// one role add up, unless a label tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Fsyncs of all files; only where all are counted.
    FsyncCount,
    /// Fsyncs of the log that makes commits durable.
    LogFsyncCount,
    /// Fsyncs of data files.
    DataFsyncCount,
    /// Fsyncs of the binary log.
    BinlogFsyncCount,
    /// Bytes written to the log that makes commits durable.
    LogBytes,
    /// Bytes written to all files.
    WrittenBytes,
    /// Bytes that checkpoints wrote to data files.
    CheckpointBytes,
    /// The database's size, as the engine itself states it.
    DatabaseBytes,
    /// Rows that were deleted or replaced and not yet removed; labeled by table.
    DeadRows,
    /// Transactions whose old versions are not yet purged.
    HistoryListLength,
    /// Changed pages that are not yet written to data files.
    DirtyBytes,
    /// Log since the last checkpoint.
    CheckpointAgeBytes,
    /// What compactions have yet to rewrite, by the engine's estimate.
    PendingCompactionBytes,
    /// Live files of a log-structured merge tree, without those of blobs.
    TreeBytes,
    /// Live files of blobs.
    BlobBytes,
    /// Bytes that compactions and flushes of memtables wrote.
    CompactionAndFlushWrittenBytes,
    /// Bytes that flushes of memtables wrote.
    FlushWrittenBytes,
    /// Bytes that compactions wrote.
    CompactionWrittenBytes,
    /// Bytes that compactions read.
    CompactionReadBytes,
    /// Bytes of blobs that compactions read.
    BlobReadBytes,
    /// Bytes of blobs that flushes and compactions wrote.
    BlobWrittenBytes,
    /// Time of threads that flush and compact.
    CompactionAndFlushSeconds,
    /// CPU time of threads that flush and compact.
    CompactionAndFlushCpuSeconds,
    /// Bytes of keys and values that the engine was given.
    IngestedBytes,
    /// Time in which writes were slowed down or stopped.
    StallSeconds,
    /// Times that writes were slowed down or stopped; labeled by reason, with `total-delays` and `total-stops`.
    WriteStallCount,
    /// Files of a level of the tree; labeled by the level's number.
    LevelFileCount,
    /// Bytes of a level of the tree; labeled by the level's number.
    LevelBytes,
    /// How much a level asks for compaction; labeled by the level's number.
    LevelScore,
    /// Bytes that compactions into a level read; labeled by the level's number.
    LevelReadBytes,
    /// Bytes that flushes and compactions wrote to a level; labeled by the level's number.
    LevelWrittenBytes,
    /// Time of threads that flush or compact into a level; labeled by the level's number.
    LevelCompactionSeconds,
    /// Flushes and compactions into a level; labeled by the level's number.
    LevelCompactionCount,
    /// Files of all levels of the tree.
    FileCount,
    /// What memtables take in memory.
    MemtableBytes,
    /// What the cache of blocks takes in memory.
    BlockCacheBytes,
    /// Blocks of data that were found in the cache.
    DataBlockHitCount,
    /// Blocks of data that were not found in the cache.
    DataBlockMissCount,
    /// Time since the engine was started: it grows whatever is done.
    UptimeSeconds,
    /// The share of that time in which writes were held up.
    StallPercent,
    /// Other work: more of it for the same load means that something is done in another way.
    Work,
    /// A role that a newer version of the format added.
    #[serde(other)]
    Unknown,
}

impl Role {
    /// Returns true where more of it for the same load means that something is done in another way.
    pub fn is_work(self) -> bool {
        matches!(
            self,
            Self::LogFsyncCount
                | Self::DataFsyncCount
                | Self::BinlogFsyncCount
                | Self::LogBytes
                | Self::CompactionAndFlushWrittenBytes
                | Self::FlushWrittenBytes
                | Self::CompactionWrittenBytes
                | Self::CompactionReadBytes
                | Self::StallSeconds
                | Self::Work
        )
    }
}

/// One counter of the engine at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// Its name, with its unit last: `wal_bytes`, `checkpoint_count`. A label follows a dot: `dead_rows.pi1`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// It only grows, so that a difference means something.
    pub cumulative: bool,
    /// What it counts, where the reading half makes something of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// By how much the value may be off, because the engine rounds it; 0: it is exact.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rounding: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Counter {
    /// Returns a counter without a role.
    pub fn new(name: impl Into<String>, value: f64, kind: CounterKind) -> Self {
        Self {
            name: name.into(),
            value,
            cumulative: kind == CounterKind::Cumulative,
            role: None,
            rounding: 0.0,
        }
    }

    /// Returns a counter that only grows.
    pub fn cumulative(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, CounterKind::Cumulative)
    }

    /// Returns a counter that goes up and down.
    pub fn gauge(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, CounterKind::Gauge)
    }

    /// Gives it a role.
    #[must_use]
    pub fn with_role(self, role: impl Into<Option<Role>>) -> Self {
        Self {
            role: role.into(),
            ..self
        }
    }

    /// Returns what follows the first dot of its name.
    pub fn label(&self) -> Option<&str> {
        Some(self.name.split_once('.')?.1)
    }
}

/// Returns the unit of a counter by its name: `bytes`, `us`, `ms`, `seconds`; empty for counts.
pub fn unit_of(name: &str) -> &'static str {
    let name = name.split('.').next().unwrap_or(name);
    ["bytes", "us", "ms", "seconds"]
        .into_iter()
        .find(|unit| {
            let rest = name.strip_suffix(unit);
            rest.is_some_and(|rest| rest.ends_with('_'))
        })
        .unwrap_or("")
}
