//! Reads the library's counters during the load.
//!
//! Every second, it reads two short texts and a dozen numbers. That takes 0.1 to 0.15 ms of CPU
//! time, partly with the database's lock, and restarts the intervals in the library's log.
//! Histograms would double that cost, and the statistics would take ten times as much, so they are
//! read only before and after a step.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use words::{Counter, Role};

use super::ffi::Database;
use super::statistics;
use crate::contract::Observer;
use crate::error::Error;
use crate::support::figures::{Figure, figures, status_section};

/// Numeric properties.
const GAUGES: &[Figure] = figures! {
    Gauge "rocksdb.num-running-compactions" => "running_compaction_count";
    Gauge "rocksdb.num-running-flushes" => "running_flush_count";
    Gauge "rocksdb.compaction-pending" => "compaction_pending";
    Gauge "rocksdb.mem-table-flush-pending" => "memtable_flush_pending";
    Gauge "rocksdb.estimate-pending-compaction-bytes" => "pending_compaction_bytes" PendingCompactionBytes;
    Gauge "rocksdb.cur-size-all-mem-tables" => "memtable_bytes" MemtableBytes;
    Gauge "rocksdb.size-all-mem-tables" => "memtable_pinned_bytes";
    Gauge "rocksdb.num-immutable-mem-table" => "immutable_memtable_count";
    Gauge "rocksdb.block-cache-usage" => "block_cache_bytes" BlockCacheBytes;
    Gauge "rocksdb.block-cache-pinned-usage" => "block_cache_pinned_bytes";
    Gauge "rocksdb.is-write-stopped" => "write_stopped";
    Gauge "rocksdb.actual-delayed-write-rate" => "delayed_write_bytes_per_second";
    Gauge "rocksdb.live-sst-files-size" => "live_sst_bytes" TreeBytes;
    Gauge "rocksdb.live-blob-file-size" => "live_blob_bytes" BlobBytes;
    Gauge "rocksdb.background-errors" => "background_error_count";
};

/// Expensive properties, which visit every file of every live version of the tree. They are not
/// read every second.
const COSTLY_GAUGES: &[Figure] = figures! {
    Gauge "rocksdb.total-sst-files-size" => "sst_bytes";
    Gauge "rocksdb.total-blob-file-size" => "blob_bytes";
    Gauge "rocksdb.estimate-table-readers-mem" => "table_reader_bytes";
};

/// The properties that show pending work.
const PENDING: [&str; 6] = [
    "running_compaction_count",
    "running_flush_count",
    "compaction_pending",
    "memtable_flush_pending",
    "pending_compaction_bytes",
    "memtable_bytes",
];

pub(super) struct RocksObserver {
    database: Arc<Database>,
    /// The maximum of each sum, because rounding must not decrease it.
    most: HashMap<String, f64>,
}

impl RocksObserver {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database, most: HashMap::new() }
    }

    fn texts(&mut self) -> Vec<Counter> {
        let property = |name| self.database.property(name);
        let family = property("rocksdb.cfstats-no-file-histogram")
            .or_else(|| property("rocksdb.cfstats"))
            .unwrap_or_default();
        let database = property("rocksdb.dbstats").unwrap_or_default();

        let mut counters = statistics::family(&family);
        counters.extend(statistics::database(&database));
        statistics::add_stall_totals(&mut counters);

        // A rounded text may show less than the one before.
        for counter in counters.iter_mut().filter(|counter| counter.cumulative) {
            let most = self.most.entry(counter.name.clone()).or_default();
            *most = most.max(counter.value);
            counter.value = *most;
        }
        counters
    }
}

impl Observer for RocksObserver {
    fn counters(&mut self) -> Result<Vec<Counter>, Error> {
        let mut counters = self.sample()?;
        counters.extend(gauges(&self.database, COSTLY_GAUGES, |_| true));
        if let Some(text) = self.database.statistics() {
            let exact = statistics::tickers(&text);
            counters.retain(|rounded| exact.iter().all(|exact| exact.name != rounded.name));
            counters.extend(exact);
        }
        Ok(counters)
    }

    fn sample(&mut self) -> Result<Vec<Counter>, Error> {
        let mut counters = gauges(&self.database, GAUGES, |_| true);
        counters.extend(self.texts());

        // Versions without the size of live files have it rounded in a text.
        if counters.iter().all(|counter| counter.role != Some(Role::TreeBytes))
            && let Some(size) = counters.iter_mut().find(|counter| counter.name == "lsm_bytes")
        {
            size.role = Some(Role::TreeBytes);
        }

        Ok(counters)
    }

    fn status(&mut self) -> Result<Option<String>, Error> {
        let mut status = String::new();
        for name in ["rocksdb.stats", "rocksdb.levelstats"] {
            if let Some(text) = self.database.property(name) {
                status += &status_section(name, &text);
            }
        }

        if let Some(text) = self.database.statistics() {
            status += &status_section("statistics", &text);
        }

        Ok(if status.is_empty() { None } else { Some(status) })
    }
}

fn gauges(
    database: &Database,
    figures: &[Figure],
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<Counter> {
    figures
        .iter()
        .filter(|figure| is_wanted(figure.name))
        .filter_map(|figure| {
            let property = CString::new(figure.source).ok()?;
            Some(figure.counter(database.number(&property)? as f64))
        })
        .collect()
}

/// Returns the number of files in each level, from the first on.
pub(super) fn files_by_level(database: &Database) -> Vec<u64> {
    let files = |level| {
        let count = database.property(&format!("rocksdb.num-files-at-level{level}"));
        count?.trim().parse().ok()
    };
    (0..).map_while(files).collect()
}

/// Returns the pending work, and the number of files in each level.
pub(super) fn pending(database: &Database) -> Vec<Counter> {
    let mut counters = gauges(database, GAUGES, |name| PENDING.contains(&name));

    let files = files_by_level(database);
    let levels = files.iter().filter(|&&count| count > 0).count();
    counters.push(Counter::gauge("level_count", levels as f64));

    for (level, &count) in files.iter().enumerate() {
        if level == 0 || count > 0 {
            let name = format!("level_file_count.{level}");
            counters.push(Counter::gauge(name, count as f64));
        }
    }
    counters
}

/// The pending flushes and compactions that the library reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backlog {
    pub(super) running_compactions: u64,
    pub(super) running_flushes: u64,
    pub(super) is_compaction_pending: bool,
    pub(super) is_flush_pending: bool,
}

impl Backlog {
    pub(super) fn of(database: &Database) -> Self {
        let number = |property| database.number(property).unwrap_or(0);
        Self {
            running_compactions: number(c"rocksdb.num-running-compactions"),
            running_flushes: number(c"rocksdb.num-running-flushes"),
            is_compaction_pending: number(c"rocksdb.compaction-pending") != 0,
            is_flush_pending: number(c"rocksdb.mem-table-flush-pending") != 0,
        }
    }

    /// Returns true when no flush or compaction runs or is pending.
    pub(super) fn is_empty(self) -> bool {
        self.is_only_pending_compaction() && !self.is_compaction_pending
    }

    /// Returns true when nothing is left except maybe a pending compaction.
    pub(super) fn is_only_pending_compaction(self) -> bool {
        self.running_compactions == 0 && self.running_flushes == 0 && !self.is_flush_pending
    }
}

/// Returns the figures that each flush and compaction changes: the number of the tree's current
/// version, which only grows, and the number of files in each level.
pub(super) fn shape(database: &Database) -> (Option<u64>, Vec<u64>) {
    (database.number(c"rocksdb.current-super-version-number"), files_by_level(database))
}

/// Returns the number of errors in flushes and compactions since the database was opened.
pub(super) fn background_errors(database: &Database) -> u64 {
    database.number(c"rocksdb.background-errors").unwrap_or(0)
}

/// Returns the library's estimate of the bytes to compact.
pub(super) fn pending_compaction_bytes(database: &Database) -> u64 {
    database.number(c"rocksdb.estimate-pending-compaction-bytes").unwrap_or(0)
}
