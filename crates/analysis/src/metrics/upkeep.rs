//! What an engine does beside answering: making commits durable, writing more than it was given, and work that it puts
//! off. From its own counters, by the names that `engine` gives them.

use record::{Counter, HostSeries, Step, StepKind};

use super::{DELETE, INSERT, MIB, growth_per_second, over, seconds};

/// What each cumulative counter did in a step, and what each gauge was at its end.
struct Counters<'a>(&'a Step);

impl Counters<'_> {
    fn find<'c>(counters: &'c [Counter], name: &str) -> Option<&'c Counter> {
        counters.iter().find(|counter| counter.name == name)
    }

    /// Growth in the step; `None` if it was not there at both ends, or began anew.
    fn growth(&self, name: &str) -> Option<f64> {
        let after = Self::find(&self.0.counters_after, name).filter(|after| after.cumulative)?;
        let before = Self::find(&self.0.counters_before, name)?;
        Some(after.value - before.value).filter(|&growth| growth >= 0.0)
    }

    /// The same of a counter that a server may do without: then it did nothing.
    fn growth_if_counted(&self, name: &str) -> Option<f64> {
        let counted = Self::find(&self.0.counters_after, name).is_some();
        if counted {
            self.growth(name)
        } else {
            Some(0.0)
        }
    }

    fn gauge(&self, name: &str) -> Option<f64> {
        Self::find(&self.0.counters_after, name).map(|counter| counter.value)
    }

    /// A gauge that each table has, over all tables: `dead_rows.pi1`.
    fn gauge_of_tables(&self, name: &str) -> Option<f64> {
        let of_table = |counter: &&Counter| {
            counter
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        let mut tables = self.0.counters_after.iter().filter(of_table).peekable();
        tables.peek()?;
        Some(tables.map(|counter| counter.value).sum())
    }
}

/// Commits of the load: each insert and each delete that succeeded is one. In an index step nearly all that is made
/// durable is not theirs.
fn commits(step: &Step) -> Option<f64> {
    if !matches!(step.kind, StepKind::Load | StepKind::Query) {
        return None;
    }
    let ok = |kind: &str| step.ops.get(kind).map_or(0, |ops| ops.ok);
    Some((ok(INSERT) + ok(DELETE)) as f64)
}

/// The figures of this module: names as in [`super::METRICS`].
pub(super) fn upkeep(step: &Step, host: &HostSeries) -> [(&'static str, Option<f64>); 10] {
    let counters = Counters(step);
    let growth = |name: &str| counters.growth(name);
    let binlog = growth("binlog_sync_count");
    let (log, data, all);
    if let Some(innodb) = growth("innodb_fsync_count") {
        let rocksdb = growth("rocksdb_wal_sync_count");
        all = counters
            .growth_if_counted("rocksdb_wal_sync_count")
            .zip(counters.growth_if_counted("binlog_sync_count"))
            .map(|(rocksdb, binlog)| innodb + rocksdb + binlog);
        // InnoDB's files are not those that a step on MyRocks writes.
        let is_rocksdb = growth("rocksdb_row_inserted_count").is_some_and(|rows| rows > 0.0);
        (log, data) = if is_rocksdb {
            (rocksdb, None)
        } else {
            (
                growth("innodb_log_fsync_count"),
                growth("innodb_data_fsync_count"),
            )
        };
    } else {
        // PostgreSQL; versions that don't count those of one sort have no sum.
        (log, data) = (growth("wal_sync_count"), growth("relation_sync_count"));
        all = log.zip(data).map(|(log, data)| log + data);
    }
    let commits = commits(step);
    let per_commit = |count: Option<f64>| over(count?, commits?);
    let mb = |bytes: Option<f64>| bytes.map(|bytes| bytes / MIB);
    [
        ("fsyncs_per_commit", per_commit(all)),
        ("log_fsyncs_per_commit", per_commit(log)),
        ("data_fsyncs_per_commit", per_commit(data)),
        ("binlog_syncs_per_commit", per_commit(binlog)),
        ("write_amplification", write_amplification(step, host)),
        ("debt_dead_rows", counters.gauge_of_tables("dead_rows")),
        ("debt_history_list", counters.gauge("history_list_length")),
        ("debt_dirty_mb", mb(counters.gauge("dirty_bytes"))),
        ("debt_redo_mb", mb(counters.gauge("checkpoint_age_bytes"))),
        (
            "debt_compaction_mb",
            mb(counters.gauge("rocksdb_pending_compaction_bytes")),
        ),
    ]
}

/// Bytes that were written to the devices of the data over bytes of values in the rows inserted. What the kernel says of
/// the server's processes is no measure: it charges a page cache's whole folio, which may be megabytes, for each of its
/// bytes that is written.
fn write_amplification(step: &Step, host: &HostSeries) -> Option<f64> {
    if !matches!(step.kind, StepKind::Load | StepKind::Query) {
        return None;
    }
    let written = growth_per_second(host, "disk_write_bytes")?;
    let inserted = step.ops.get(INSERT)?.rows as f64 * step.row_bytes_mean?;
    over(written * seconds(step)?, inserted)
}
