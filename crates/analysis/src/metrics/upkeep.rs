//! What an engine does beside answering: making commits durable, writing more than it was given, and work that it puts
//! off. From its own counters.

use record::{HostSeries, Role, Step, StepKind};

use super::counters::Counters;
use super::{MIB, growth_per_second, over, seconds};
use crate::operation::{DELETE, EVENT, INSERT, PUT, writing};

/// Commits of the load: each insert, each put and each delete that succeeded is one, and an event as many as its test has.
/// In an index step nearly all that is made durable is not theirs.
fn commits(step: &Step) -> Option<f64> {
    if !matches!(step.kind, StepKind::Load | StepKind::Query) {
        return None;
    }
    let ok = |kind: &str| step.ops.get(kind).map_or(0, |ops| ops.ok);
    let writes = (ok(INSERT) + ok(PUT) + ok(DELETE)) as f64;
    Some(writes + ok(EVENT) as f64 * step.commits_per_event.unwrap_or(0.0))
}

/// The figures of this module: names as in [`words::METRICS`].
pub(super) fn upkeep(step: &Step, host: &HostSeries) -> [(&'static str, Option<f64>); 11] {
    let counters = Counters::of(step);
    let growth = |role| counters.growth(role);
    // A log that was neither written nor synced was off: there was nothing to make durable.
    let is_on = |syncs: &f64| *syncs > 0.0 || growth(Role::LogBytes) != Some(0.0);
    let log = growth(Role::LogFsyncCount).filter(is_on);
    let commits = commits(step);
    let per_commit = |count: Option<f64>| over(count?, commits?);
    let fsyncs = |role| per_commit(growth(role));
    // Of the disks themselves, whoever made them flush.
    let flushes = growth_per_second(host, "disk_flush_count").zip(seconds(step));
    let flushes = flushes.map(|(per_second, seconds)| per_second * seconds);
    let mb = |role| counters.gauge(role).map(|bytes| bytes / MIB);
    [
        ("fsyncs_per_commit", fsyncs(Role::FsyncCount)),
        ("log_fsyncs_per_commit", per_commit(log)),
        ("data_fsyncs_per_commit", fsyncs(Role::DataFsyncCount)),
        ("binlog_syncs_per_commit", fsyncs(Role::BinlogFsyncCount)),
        ("flushes_per_commit", per_commit(flushes)),
        ("write_amplification", write_amplification(step, host)),
        ("debt_dead_rows", counters.gauge(Role::DeadRows)),
        ("debt_history_list", counters.gauge(Role::HistoryListLength)),
        ("debt_dirty_mb", mb(Role::DirtyBytes)),
        ("debt_redo_mb", mb(Role::CheckpointAgeBytes)),
        ("debt_compaction_mb", mb(Role::PendingCompactionBytes)),
    ]
}

/// Bytes that were written to the devices of the data over bytes of values in the rows inserted, or of keys
/// and values put. What the kernel says of
/// the server's processes is no measure: it charges a page cache's whole folio, which may be megabytes, for each of its
/// bytes that is written.
fn write_amplification(step: &Step, host: &HostSeries) -> Option<f64> {
    if !matches!(step.kind, StepKind::Load | StepKind::Query) {
        return None;
    }
    let written = growth_per_second(host, "disk_write_bytes")?;
    let inserted = step.ops.get(writing(step)?)?.rows as f64 * step.row_bytes_mean?;
    over(written * seconds(step)?, inserted)
}
