//! Computes the figures of a log-structured merge tree. Each formula is explained in
//! `docs/metrics.md`.

mod tree;

use std::collections::{BTreeMap, BTreeSet};

use record::{HostSeries, Role, Step, StepKind};
use serde::Serialize;

use super::{GIB, MIB, growth_per_second, over, per, percent, seconds};
use crate::figures::counters::Counters;
use crate::figures::{CounterSeries, operation};
use tree::{tree, tree_at_end};

/// The activity of a log-structured merge tree in a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lsm {
    /// The number of times that writes were delayed or stopped, by RocksDB's reason:
    /// `memtable-limit-stops`. `total-delays` and `total-stops` are the sums of
    /// `l0-file-count-limit`, `memtable-limit` and `pending-compaction-bytes`. The others
    /// are counted within these, or do not come from the tree.
    pub stalls: BTreeMap<String, f64>,
    /// The seconds in which writes were held up, by reason. Those of each second are divided among
    /// the reasons that counted in it, delays and stops together, in proportion to their
    /// counts; `unknown` has the seconds without a reason.
    pub stall_seconds: BTreeMap<String, f64>,
    /// The levels at the end of the step, from the first on. Levels that were never used may be
    /// missing.
    pub levels: Vec<Level>,
    /// The step settles the engine itself, which pays the debt that it left.
    pub settled: bool,
    /// Metrics more than a twentieth of which may be the library's rounding.
    pub coarse: BTreeSet<&'static str>,
}

/// One level of a tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Level {
    /// The number, from 0.
    pub number: u32,
    /// The files; `None`: not reported.
    pub files: Option<f64>,
    /// The bytes of these files.
    pub bytes: Option<f64>,
    /// The need for compaction: from 1 on, the level is compacted.
    pub score: Option<f64>,
    /// Bytes that compactions into it read in the step.
    pub read_bytes: Option<f64>,
    /// Bytes that flushes and compactions wrote to the level in the step.
    pub written_bytes: Option<f64>,
    /// The rounding error of either.
    pub rounding_bytes: f64,
    /// Time of these flushes and compactions, over all threads; `None` in turns as well.
    pub compaction_seconds: Option<f64>,
    /// The number of these flushes and compactions.
    pub compaction_count: Option<f64>,
}

/// Returns the reasons of write stalls and the levels of the tree; `None` where the engine has no
/// such tree.
pub(crate) fn lsm(step: &Step, engine: &BTreeMap<String, CounterSeries>) -> Option<Lsm> {
    let tree = tree(step)?;
    let mut levels = tree.levels();
    if is_frozen_at_times(step) {
        for level in &mut levels {
            level.compaction_seconds = None;
        }
    }

    Some(Lsm {
        stalls: tree.stalls(),
        stall_seconds: stall_seconds(tree.growth(Role::StallSeconds).unwrap_or(0.0), engine),
        levels,
        settled: step.settle.is_some(),
        coarse: coarse(step, &tree),
    })
}

/// Returns true if the target was frozen while others had their turns. The library's clock ran on
/// then, so the times of its background work are not those of the step.
fn is_frozen_at_times(step: &Step) -> bool {
    step.turns.is_some()
}

/// Returns how much a time by the library's clock grew; `None` in turns.
fn growth_by_clock(step: &Step, tree: &Counters<'_>, role: Role) -> Option<f64> {
    tree.growth(role).filter(|_| !is_frozen_at_times(step))
}

/// The reasons of stalls that add up to the totals.
const STALL_REASONS: [&str; 3] =
    ["l0-file-count-limit", "memtable-limit", "pending-compaction-bytes"];

/// The time without a reason.
const UNKNOWN: &str = "unknown";

/// Divides the time in which writes were held up among the reasons. Each second has the share of
/// the step's time that the samples around it show, and the reasons that counted in it divide that.
fn stall_seconds(all: f64, engine: &BTreeMap<String, CounterSeries>) -> BTreeMap<String, f64> {
    let mut seconds = BTreeMap::new();
    if all <= 0.0 {
        return seconds;
    }

    let counts = stall_counts(engine);

    let named_series = of_role(engine, Role::StallSeconds).next();
    let stalled = named_series.map_or(&[][..], |(_, series)| &series.values);
    let sampled: f64 = stalled.iter().flatten().sum();

    if sampled <= 0.0 {
        give(&mut seconds, UNKNOWN, all);
    }

    for (second, time) in stalled.iter().enumerate() {
        let share = all * time.unwrap_or(0.0) / sampled.max(f64::MIN_POSITIVE);
        let counted: Vec<(&str, f64)> =
            counts.iter().map(|(reason, series)| (*reason, value_at(series, second))).collect();

        let sum: f64 = counted.iter().map(|(_, count)| count).sum();
        if sum > 0.0 {
            for (reason, count) in counted {
                give(&mut seconds, reason, share * count / sum);
            }
        } else {
            give(&mut seconds, UNKNOWN, share);
        }
    }
    seconds
}

/// Returns the series of a role with their names.
fn of_role(
    engine: &BTreeMap<String, CounterSeries>,
    role: Role,
) -> impl Iterator<Item = (&String, &CounterSeries)> {
    engine.iter().filter(move |(_, series)| series.role == Some(role))
}

/// Returns the counts of [`STALL_REASONS`], delays and stops each.
fn stall_counts(engine: &BTreeMap<String, CounterSeries>) -> Vec<(&str, &CounterSeries)> {
    let counts = of_role(engine, Role::WriteStallCount).filter_map(|(name, series)| {
        let (_, label) = name.split_once('.')?;
        let (reason, _) = label.rsplit_once('-')?;
        STALL_REASONS.contains(&reason).then_some((reason, series))
    });
    counts.collect()
}

fn value_at(series: &CounterSeries, second: usize) -> f64 {
    series.values.get(second).copied().flatten().unwrap_or(0.0)
}

fn give(seconds: &mut BTreeMap<String, f64>, reason: &str, time: f64) {
    if time > 0.0 {
        *seconds.entry(reason.to_owned()).or_default() += time;
    }
}

/// The share of a figure from which on its rounding is reported.
pub const COARSE_SHARE: f64 = 0.05;

/// Returns the figures more than [`COARSE_SHARE`] of which may be rounding. Zeros are left out.
fn coarse(step: &Step, tree: &Counters<'_>) -> BTreeSet<&'static str> {
    let written = tree.written_rounding_share();
    let logged = tree.rounding_share(Role::LogBytes);

    // The flushes are subtracted from the sum of both.
    let compacted = written
        .zip(tree.written())
        .zip(tree.compacted())
        .filter(|(_, compacted)| *compacted > 0.0)
        .map(|((share, written), compacted)| share * written / compacted);

    let mut figures = vec![
        ("c_wgb", written),
        ("c_mbps", written),
        ("w_amp", rounding_share_per_ingested(step, tree, written)),
        ("compaction_write_gb", compacted),
        ("compaction_read_gb", tree.rounding_share(Role::CompactionReadBytes)),
        ("wal_gb", logged),
        ("wal_amp", rounding_share_per_ingested(step, tree, logged)),
    ];
    if let Some(end) = tree_at_end(step) {
        let written = end.written_rounding_share();
        figures.push(("c_wgb_settled", written));
        figures.push(("w_amp_settled", rounding_share_per_ingested(step, &end, written)));
    }

    figures
        .into_iter()
        .filter(|(_, share)| share.is_some_and(|share| share > COARSE_SHARE))
        .map(|(name, _)| name)
        .collect()
}

/// Returns the share of a ratio to the ingested bytes that may be rounding. The shares of both
/// numbers add up.
fn rounding_share_per_ingested(
    step: &Step,
    tree: &Counters<'_>,
    share_of_bytes: Option<f64>,
) -> Option<f64> {
    let share_of_ingested = if step.row_bytes_mean.is_some() {
        // The rows were counted exactly.
        ingested_bytes(step, tree).map(|_| 0.0)
    } else {
        tree.rounding_share(Role::IngestedBytes)
    };
    Some(share_of_bytes? + share_of_ingested?)
}

/// Returns the figures of this module: names as in [`words::METRICS`].
pub(super) fn figures(
    step: &Step,
    host: &HostSeries,
    engine: &BTreeMap<String, CounterSeries>,
) -> Vec<(&'static str, Option<f64>)> {
    let mut figures = of_operations(step);
    if let Some(tree) = tree(step) {
        figures.extend(of_tree(step, &tree, engine));
        figures.extend(of_processes(step, host));
        figures.extend(settled(step));
    }
    figures
}

/// Returns the work of flushes and compactions up to the end of what followed the step, when the
/// debt of the step is paid as far as it is known.
fn settled(step: &Step) -> Vec<(&'static str, Option<f64>)> {
    let Some(tree) = tree_at_end(step) else {
        return Vec::new();
    };

    let written = tree.written();
    let ingested = ingested_bytes(step, &tree);

    vec![
        ("c_wgb_settled", written.map(|bytes| bytes / GIB)),
        (
            "w_amp_settled",
            written.zip(ingested).and_then(|(written, ingested)| over(written, ingested)),
        ),
        ("c_wsecs_settled", growth_by_clock(step, &tree, Role::CompactionAndFlushSeconds)),
        ("c_csecs_settled", tree.growth(Role::CompactionAndFlushCpuSeconds)),
    ]
}

/// Returns the figures of the load, by the names of db_bench.
fn of_operations(step: &Step) -> Vec<(&'static str, Option<f64>)> {
    vec![
        ("mb_sec", key_value_bytes_per_second(step).map(|bytes| bytes / MIB)),
        ("usec_op", thread_us_per_op(step)),
    ]
}

/// Returns bytes of keys and values that the step's main operation wrote or read, by the sizes of
/// whole entries. SQL queries do not read whole entries.
fn key_value_bytes_per_second(step: &Step) -> Option<f64> {
    let kind = step.main_operation()?;
    if !step.role_of(kind).facts().has_whole_entries {
        return None;
    }
    let rows = step.ops.get(kind)?.rows as f64;
    over(rows * step.row_bytes_mean?, seconds(step)?)
}

/// Returns the working time of the threads of the step's main operation, over operations.
fn thread_us_per_op(step: &Step) -> Option<f64> {
    let kind = step.main_operation()?;
    let role = operation::connection_role(step, kind);

    let ns: u64 = step
        .connections
        .iter()
        .filter(|connection| connection.role == role)
        .map(|connection| connection.ended_ns.saturating_sub(connection.started_ns))
        .sum();

    over(
        Some(ns as f64 / 1e3).filter(|&us| us > 0.0)?,
        step.ops.get(kind)?.ok as f64 * operation::queries_each(step),
    )
}

/// Returns bytes in GB of 2^30 bytes.
fn gb(bytes: Option<f64>) -> Option<f64> {
    Some(bytes? / GIB)
}

/// Returns bytes in MB of 2^20 bytes.
fn mb(bytes: Option<f64>) -> Option<f64> {
    Some(bytes? / MIB)
}

/// Returns the largest value of a gauge over the samples and the step's end. What happens between
/// two samples is not seen. Of files, those of the first level count.
fn largest(engine: &BTreeMap<String, CounterSeries>, role: Role, end: Option<f64>) -> Option<f64> {
    let is_counted = |name: &str| role != Role::LevelFileCount || name.ends_with(".0");
    let (_, series) = of_role(engine, role).find(|(name, _)| is_counted(name))?;
    let largest_sample = series.values.iter().flatten().copied().reduce(f64::max)?;
    Some(end.map_or(largest_sample, |end| largest_sample.max(end)))
}

/// Returns the metrics of a tree: what a step wrote and read, and the tree at its beginning and end.
fn of_tree(
    step: &Step,
    tree: &Counters<'_>,
    engine: &BTreeMap<String, CounterSeries>,
) -> Vec<(&'static str, Option<f64>)> {
    let elapsed = seconds(step);
    let stall_seconds = tree.growth(Role::StallSeconds);

    // What was written, and how much of it for each byte that the user gave.
    let written = tree.written();
    let logged = tree.growth(Role::LogBytes);
    let ingested = ingested_bytes(step, tree);

    // What there is at the end of the step.
    let live = tree.gauge(Role::TreeBytes);
    let blobs = tree.gauge(Role::BlobBytes);
    let memtables = tree.gauge(Role::MemtableBytes);
    let pending = tree.gauge(Role::PendingCompactionBytes);
    let before = tree.files_before();
    let after = tree.files();
    let (before, after) = (before.as_ref(), after.as_ref());
    let first_level = after.map(|files| files.first_level);

    vec![
        ("lsm_sz", gb(live)),
        ("blob_sz", gb(blobs)),
        ("c_wgb", gb(written)),
        ("w_amp", per(written, ingested)),
        ("c_mbps", per(mb(written), elapsed)),
        ("c_wsecs", growth_by_clock(step, tree, Role::CompactionAndFlushSeconds)),
        ("c_csecs", tree.growth(Role::CompactionAndFlushCpuSeconds)),
        ("b_rgb", gb(tree.growth(Role::BlobReadBytes))),
        ("b_wgb", gb(tree.growth(Role::BlobWrittenBytes))),
        ("uptime", growth_by_clock(step, tree, Role::UptimeSeconds)),
        ("stall_s", stall_seconds),
        ("stall%", percent(stall_seconds, elapsed)),
        ("Nstall", tree.stall_count()),
        ("flush_gb", gb(tree.growth(Role::FlushWrittenBytes))),
        ("compaction_write_gb", gb(tree.compacted())),
        ("compaction_read_gb", gb(tree.growth(Role::CompactionReadBytes))),
        ("wal_gb", gb(logged)),
        // Without a log there is no amplification by it.
        ("wal_amp", per(logged.filter(|&bytes| bytes > 0.0), ingested)),
        ("r_amp", blocks_per_key(step, tree)),
        ("cache_hit%", cache_hit_percent(step, tree)),
        ("s_amp", over_data(step, live.map(|live| live + blobs.unwrap_or(0.0)))),
        ("pending_max_mb", mb(largest(engine, Role::PendingCompactionBytes, pending))),
        ("l0_files_begin", before.map(|files| files.first_level)),
        ("l0_files", first_level),
        ("l0_files_max", largest(engine, Role::LevelFileCount, first_level)),
        ("levels_begin", before.map(|files| files.levels)),
        ("levels", after.map(|files| files.levels)),
        ("lsm_files", after.map(|files| files.all)),
        ("memtable_max_mb", mb(largest(engine, Role::MemtableBytes, memtables))),
        ("memtable_mb", mb(memtables)),
        ("cache_mb", mb(tree.gauge(Role::BlockCacheBytes))),
    ]
}

/// Returns bytes that the user gave the engine: the written rows at their recorded size, or else
/// the engine's own count, which is rounded and has a few more bytes for each row. Index steps and
/// settling are given nothing, so their writes have no ratio.
fn ingested_bytes(step: &Step, tree: &Counters<'_>) -> Option<f64> {
    if matches!(step.kind, StepKind::Index | StepKind::Settle) {
        return None;
    }
    match step.row_bytes_mean {
        Some(row_bytes) => Some(step.ops.get(operation::writing(step)?)?.rows as f64 * row_bytes),
        None => tree.growth(Role::IngestedBytes),
    }
}

fn over_data(step: &Step, bytes: Option<f64>) -> Option<f64> {
    over(bytes?, step.data_bytes? as f64)
}

/// Returns data blocks that were found in the cache, and those that were not.
fn block_lookups(counters: &Counters<'_>) -> Option<(f64, f64)> {
    let hits = counters.growth(Role::DataBlockHitCount)?;
    Some((hits, counters.growth(Role::DataBlockMissCount)?))
}

fn blocks_per_key(step: &Step, counters: &Counters<'_>) -> Option<f64> {
    let (hits, misses) = block_lookups(counters)?;
    let reads = step.ops.iter().filter(|(kind, _)| step.role_of(kind).reads());
    let keys: u64 = reads.map(|(_, ops)| ops.rows).sum();
    over(hits + misses, keys as f64)
}

/// Returns the hit rate in steps that read: in others only compaction looks blocks up.
fn cache_hit_percent(step: &Step, counters: &Counters<'_>) -> Option<f64> {
    if step.kind != StepKind::Query {
        return None;
    }
    let (hits, misses) = block_lookups(counters)?;
    over(100.0 * hits, hits + misses)
}

/// Returns the server's CPU seconds, as in `u_cpu` and `s_cpu`.
fn of_processes(step: &Step, host: &HostSeries) -> Vec<(&'static str, Option<f64>)> {
    let cpu = |column: &str| Some(growth_per_second(host, column)? / 1e9 * seconds(step)?);
    vec![("u_cpu", cpu("server_cpu_user_ns")), ("s_cpu", cpu("server_cpu_system_ns"))]
}

#[cfg(test)]
mod tests;
