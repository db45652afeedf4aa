//! The counters of an engine.

use serde::{Deserialize, Serialize};

/// The largest latency in histograms, which have three significant digits: one hour. Longer
/// latencies are counted as one hour.
pub const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// The behavior of a counter over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// The counter only grows; the figure of a step is the difference.
    Cumulative,
    /// The counter is the current value of something that rises and falls.
    Gauge,
}

/// The meaning of a counter, for figures that are computed from it. The unit comes last in the
/// name. Counters with the same role are added up, unless they have labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Fsyncs of all files; only for engines that count all of them.
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
    /// The database's size, as the engine reports it.
    DatabaseBytes,
    /// Bytes of a table with all of its indexes; labeled by table.
    TableBytes,
    /// Bytes of an index, labeled by table and index; or of a table without its indexes, labeled by
    /// table.
    PartBytes,
    /// `PartBytes` as the engine determined them before the table's last changes.
    OldPartBytes,
    /// Bytes in the files of a table that hold nothing; labeled by table.
    FreeBytes,
    /// The share of the leaf pages of an index that holds entries; labeled by table and index.
    LeafDensityPercent,
    /// The share of an index's leaf pages whose successor in key order comes earlier in the file;
    /// labeled by table and index.
    LeafFragmentationPercent,
    /// Rows that are deleted or replaced but not yet removed; labeled by table.
    DeadRows,
    /// Transactions whose old versions are not yet purged.
    HistoryListLength,
    /// Changed pages that are not yet written to data files.
    DirtyBytes,
    /// The number of these pages.
    DirtyPageCount,
    /// Log since the last checkpoint.
    CheckpointAgeBytes,
    /// The size of the log's file, which grows until a checkpoint empties it.
    LogFileBytes,
    /// Bytes that compactions have yet to rewrite, by the engine's estimate.
    PendingCompactionBytes,
    /// Bytes in live files of a log-structured merge tree, without blob files.
    TreeBytes,
    /// Bytes in live blob files.
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
    /// Bytes of keys and values that clients wrote.
    IngestedBytes,
    /// Time in which writes were slowed down or stopped.
    StallSeconds,
    /// Time in which threads waited for something else, as the engine measured it; labeled by what
    /// they waited for.
    WaitSeconds,
    /// The number of times that writes were slowed down or stopped; labeled by reason,
    /// `total-delays` and `total-stops` among them.
    WriteStallCount,
    /// Files of a level of the tree; labeled by the level's number.
    LevelFileCount,
    /// Bytes of a level of the tree; labeled by the level's number.
    LevelBytes,
    /// The urgency with which a level needs compaction; labeled by the level's number.
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
    /// Memory that memtables use.
    MemtableBytes,
    /// Memory that the block cache uses.
    BlockCacheBytes,
    /// Data blocks that were found in the cache.
    DataBlockHitCount,
    /// Data blocks that were not found in the cache.
    DataBlockMissCount,
    /// Time since the engine started.
    UptimeSeconds,
    /// The share of that time in which writes were slowed down or stopped.
    StallPercent,
    /// The number of times that a session waited for a lock of another one on data.
    LockWaitCount,
    /// The time of these waits, in the unit of the counter's name: nanoseconds or milliseconds.
    LockWaitTime,
    /// Deadlocks, each of which ended a transaction.
    DeadlockCount,
    /// Other work. More work for the same load means that the engine does something differently.
    Work,
    /// A role that a newer version of the format added.
    #[serde(other)]
    Unknown,
}

/// The roles of pending work that format 1.0 recorded without them.
const UNMARKED: [(&str, Role); 3] = [
    ("wal_since_checkpoint_bytes", Role::CheckpointAgeBytes),
    ("wal_file_bytes", Role::LogFileBytes),
    ("dirty_page_count", Role::DirtyPageCount),
];

impl Role {
    /// Returns the role of a counter of pending work by its name, for records that lack it.
    pub fn of_pending(name: &str) -> Option<Self> {
        let (_, role) = UNMARKED.iter().find(|(unmarked, _)| *unmarked == name)?;
        Some(*role)
    }

    /// Returns whether the role is work: more of it for the same load means that the engine does
    /// something differently. Conflicts of transactions have metrics of their own.
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
    /// The counter's name, with the unit last: `wal_bytes`, `checkpoint_count`. A label follows a
    /// dot: `dead_rows.pi1`.
    pub name: String,
    /// The counter's value.
    pub value: f64,
    /// The counter only grows, so that differences are meaningful.
    pub cumulative: bool,
    /// The counter's meaning, for figures that are computed from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The largest rounding error of the value; 0 if it is exact.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rounding: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
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

    /// Returns a counter that rises and falls.
    pub fn gauge(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, CounterKind::Gauge)
    }

    /// Sets the counter's role.
    #[must_use]
    pub fn with_role(self, role: impl Into<Option<Role>>) -> Self {
        Self { role: role.into(), ..self }
    }

    /// Returns the counter's label: the text after the first dot of its name.
    pub fn label(&self) -> Option<&str> {
        Some(self.name.split_once('.')?.1)
    }
}

/// A view of what an engine does or waits for, from samples at random moments. Views overlap in
/// time, so they are never added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitView {
    /// The load's sessions, as the engine reports them. Their states have the engine's names:
    /// `IO:WALSync`.
    #[default]
    Engine,
    /// The threads that serve the load's connections, as the kernel reports them:
    /// `fsync:jbd2_log_wait_commit`.
    Kernel,
    /// The engine's other threads, as the kernel reports them, without those that sleep:
    /// `checkpointer fsync`.
    Background,
}

impl WaitView {
    /// All views, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Engine, Self::Kernel, Self::Background];

    /// Returns the view's name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Kernel => "kernel",
            Self::Background => "background",
        }
    }

    /// Returns the prefix of gauges of the sessions or threads in a state, summed over the samples
    /// of a second: `wait.IO:WALSync`.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Engine => "wait.",
            Self::Kernel => "kernel.",
            Self::Background => "background.",
        }
    }

    /// Returns the name of the gauge of the number of samples of all sessions or threads in a
    /// second. It may be a fraction, where a sample covers only some of them.
    pub fn samples(self) -> &'static str {
        match self {
            Self::Engine => "wait_samples",
            Self::Kernel => "kernel_samples",
            Self::Background => "background_samples",
        }
    }

    /// Returns the view and the state that a gauge counts; `None` for other counters.
    pub fn of_gauge(name: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|view| Some((view, name.strip_prefix(view.prefix())?)))
    }
}

/// Returns the unit in a counter's name: `bytes`, `us`, `ms` or `seconds`; empty for counts.
pub fn unit_of(name: &str) -> &'static str {
    let without_label = name.split('.').next().unwrap_or(name);
    ["bytes", "us", "ms", "seconds"]
        .into_iter()
        .find(|unit| without_label.strip_suffix(unit).is_some_and(|stem| stem.ends_with('_')))
        .unwrap_or("")
}
