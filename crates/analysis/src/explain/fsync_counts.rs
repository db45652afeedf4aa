//! The fsyncs per commit that an engine, or the devices of one that counts none, counted; and the rules
//! by which their number changed.

use record::SettingRole;

use super::case::{Case, Pair};
use super::cause::{changed_by, only_reads};
use super::thresholds::{BEGINS_FACTOR, EXPLAINS, FSYNCS_PER_COMMIT_MIN, SAVED_FSYNCS_FACTOR};

/// Metrics of fsyncs that engines count themselves; the sum comes first.
pub(super) const FSYNCS: [&str; 4] = [
    "fsyncs_per_commit",
    "log_fsyncs_per_commit",
    "binlog_syncs_per_commit",
    "data_fsyncs_per_commit",
];

/// A kind of fsyncs per commit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FsyncCount {
    /// The metric.
    pub metric: &'static str,
    /// The number per commit.
    pub count: Pair,
}

/// The metric of flushes that devices count, for an engine that counts no fsyncs.
const FLUSHES: &str = "flushes_per_commit";

/// Returns the fsyncs, or else the flushes of devices, per commit that start, where `grows`, or stop.
pub(super) fn syncs_that_begin_or_cease(case: &Case<'_>, grows: bool) -> Option<FsyncCount> {
    let counts_none = FSYNCS.iter().all(|metric| case.metric(metric).is_none());
    if !counts_none || only_reads(case) {
        return fsyncs_that_begin_or_cease(case, grows);
    }
    let count = changed_by(BEGINS_FACTOR, case, FLUSHES, grows)?;
    (count.max() >= FSYNCS_PER_COMMIT_MIN).then_some(FsyncCount { metric: FLUSHES, count })
}

/// Returns the fsyncs per commit that changed where throughput shows no change: those that start, where
/// `grows`, or stop, or those that a setting about durability adds or saves.
pub(super) fn changed_fsyncs(case: &Case<'_>, grows: bool) -> Option<FsyncCount> {
    syncs_that_begin_or_cease(case, grows).or_else(|| fsyncs_of_setting(case, grows))
}

/// Returns the fsyncs per commit that a setting about durability adds, where `grows`, or saves.
pub(super) fn fsyncs_of_setting(case: &Case<'_>, grows: bool) -> Option<FsyncCount> {
    if only_reads(case) || case.difference.of_role(SettingRole::Durability).is_empty() {
        return None;
    }

    // The figure stands in a table below, with its verdict.
    let metric = FSYNCS[0];
    if case.verdict_on(metric) == Some(false) {
        return None;
    }
    let count = changed_by(SAVED_FSYNCS_FACTOR, case, metric, grows)?;
    (count.max() >= FSYNCS_PER_COMMIT_MIN).then_some(FsyncCount { metric, count })
}

/// Returns the fsyncs per commit that start, where `grows`, or stop.
pub(super) fn fsyncs_that_begin_or_cease(case: &Case<'_>, grows: bool) -> Option<FsyncCount> {
    if only_reads(case) {
        return None;
    }

    // Commits do not wait for a rare kind of fsync, such as those of data files.
    let sum = case.metric(FSYNCS[0]).map_or(0.0, Pair::max);
    FSYNCS.iter().find_map(|metric| {
        let count = changed_by(BEGINS_FACTOR, case, metric, grows)?;
        let is_large =
            count.max() >= FSYNCS_PER_COMMIT_MIN && count.growth().abs() >= EXPLAINS * sum;
        is_large.then_some(FsyncCount { metric, count })
    })
}
