//! Computes the costs of upkeep from the engine's counters: durable commits, write amplification,
//! and deferred work.

use record::{HostSeries, OpRole, Role, Step, StepKind};

use super::system_calls::syncs;
use super::{MIB, growth_per_second, over, seconds};
use crate::figures::counters::Counters;
use crate::figures::operation::writing;

/// Returns the commits of the load: one for each insert, put and delete that succeeded, and each
/// transaction that was not rolled back, and as many for an event as its test has. In an index step most durable work has other causes.
fn commits(step: &Step) -> Option<f64> {
    if !matches!(step.kind, StepKind::Load | StepKind::Query) {
        return None;
    }

    let commits = step.ops.iter().map(|(kind, ops)| match step.role_of(kind) {
        role if role.writes() => ops.ok as f64,
        OpRole::Transaction => ops.ok.saturating_sub(ops.rolled_back) as f64,
        OpRole::Event => ops.ok as f64 * step.commits_per_event.unwrap_or(0.0),
        _ => 0.0,
    });

    Some(commits.sum())
}

/// Returns the figures of this module: names as in [`words::METRICS`].
pub(super) fn upkeep(step: &Step, host: &HostSeries) -> [(&'static str, Option<f64>); 11] {
    let counters = Counters::new(step);
    let growth = |role| counters.growth(role);

    // A log that was neither written nor synced was off.
    let is_on = |syncs: &f64| *syncs > 0.0 || growth(Role::LogBytes) != Some(0.0);
    let log = growth(Role::LogFsyncCount).filter(is_on);

    let commits = commits(step);
    let per_commit = |count: Option<f64>| over(count?, commits?);
    let fsyncs = |role| per_commit(growth(role));

    // Flushes of the disks, by whatever process.
    let rate_and_time = growth_per_second(host, "disk_flush_count").zip(seconds(step));
    let flushes = rate_and_time.map(|(per_second, seconds)| per_second * seconds);

    let mb = |role| counters.gauge(role).map(|bytes| bytes / MIB);
    [
        ("fsyncs_per_commit", fsyncs(Role::FsyncCount).or_else(|| per_commit(syncs(step)))),
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

/// Returns bytes written to the data's devices over bytes of values in the inserted rows, or of
/// keys and values put. The kernel's count for the server's processes is no measure: for each
/// written byte it counts a whole folio of the page cache, which may be megabytes.
fn write_amplification(step: &Step, host: &HostSeries) -> Option<f64> {
    if !matches!(step.kind, StepKind::Load | StepKind::Query) {
        return None;
    }
    let written = growth_per_second(host, "disk_write_bytes")?;
    let inserted = step.ops.get(writing(step)?)?.rows as f64 * step.row_bytes_mean?;
    over(written * seconds(step)?, inserted)
}
