//! What a log-structured merge tree does beside answering: RocksDB and what is made from it, and MyRocks, as far as it
//! tells the same. Each formula is explained in `docs/metrics.md`.

mod tree;

use std::collections::{BTreeMap, BTreeSet};

use record::{HostSeries, Step, StepKind};

use super::counters::Counters;
use super::{GIB, MIB, growth_per_second, over, seconds};
use crate::{CounterSeries, Lsm, operation};
use tree::Tree;

/// The reasons of write stalls and the levels of the tree; `None` where the engine has no such tree.
pub(crate) fn lsm(step: &Step) -> Option<Lsm> {
    let tree = Tree::of(step)?;
    Some(Lsm {
        stalls: tree.stalls(),
        levels: tree.levels(),
        settled: step.settle.is_some(),
        coarse: coarse(step, &tree),
    })
}

/// The share of a figure beyond which its rounding should be told.
const COARSE_SHARE: f64 = 0.05;

/// The figures of which more than that may be rounding. Nothing is said of those that are zero.
fn coarse(step: &Step, tree: &Tree<'_>) -> BTreeSet<&'static str> {
    let share = |grown: Option<f64>, rounding: Option<f64>| {
        Some(rounding.unwrap_or(0.0) / grown.filter(|&grown| grown > 0.0)?)
    };
    // Of what is divided by what was given the shares of both add up.
    let over_given = |tree: &Tree<'_>, of_bytes: Option<f64>| {
        let of_given = share(ingested_bytes(step, tree), ingested_rounding(step, tree));
        Some(of_bytes? + of_given?)
    };
    let of_written = |tree: &Tree<'_>| share(tree.written(), tree.written_rounding());
    let compacted_rounding = tree
        .growth("compaction_written_bytes")
        .is_none()
        .then(|| tree.rounding("compaction_and_flush_written_bytes"))
        .flatten();
    let compacted = share(tree.compacted(), compacted_rounding);
    let read = share(
        tree.compaction_read(),
        tree.rounding("compaction_read_bytes"),
    );
    let written = of_written(tree);
    let logged = share(tree.logged(), tree.rounding("wal_written_bytes"));
    let mut figures = vec![
        ("c_wgb", written),
        ("c_mbps", written),
        ("w_amp", over_given(tree, written)),
        ("compaction_write_gb", compacted),
        ("compaction_read_gb", read),
        ("wal_gb", logged),
        ("wal_amp", over_given(tree, logged)),
    ];
    if let Some(end) = Tree::to_end(step) {
        let written = of_written(&end);
        figures.push(("c_wgb_settled", written));
        figures.push(("w_amp_settled", over_given(&end, written)));
    }
    figures
        .into_iter()
        .filter(|(_, share)| share.is_some_and(|share| share > COARSE_SHARE))
        .map(|(name, _)| name)
        .collect()
}

/// The figures of this module: names as in [`words::METRICS`].
pub(super) fn figures(
    step: &Step,
    host: &HostSeries,
    engine: &BTreeMap<String, CounterSeries>,
) -> Vec<(&'static str, Option<f64>)> {
    let mut figures = of_operations(step);
    if let Some(tree) = Tree::of(step) {
        figures.extend(of_tree(step, &tree, engine));
        figures.extend(of_processes(step, host));
        figures.extend(settled(step));
    }
    figures
}

/// What flushes and compactions did until what followed the step was over too: the debt that it left is paid then, as
/// far as they came.
fn settled(step: &Step) -> Vec<(&'static str, Option<f64>)> {
    let Some(tree) = Tree::to_end(step) else {
        return Vec::new();
    };
    let written = tree.written();
    let ingested = ingested_bytes(step, &tree);
    vec![
        ("c_wgb_settled", written.map(|bytes| bytes / GIB)),
        (
            "w_amp_settled",
            written
                .zip(ingested)
                .and_then(|(written, ingested)| over(written, ingested)),
        ),
        (
            "c_wsecs_settled",
            tree.growth("compaction_and_flush_seconds"),
        ),
        (
            "c_csecs_settled",
            tree.growth("compaction_and_flush_cpu_seconds"),
        ),
    ]
}

/// What the load itself did, in the words of db_bench.
fn of_operations(step: &Step) -> Vec<(&'static str, Option<f64>)> {
    vec![
        (
            "mb_sec",
            key_value_bytes_per_second(step).map(|bytes| bytes / MIB),
        ),
        ("usec_op", thread_us_per_op(step)),
    ]
}

/// Bytes of keys and values that the step's main operation wrote, or was given to read. Sizes are those of whole
/// entries, which a query in SQL doesn't read.
fn key_value_bytes_per_second(step: &Step) -> Option<f64> {
    let kind = step
        .main_operation()
        .filter(|kind| operation::is_key_value(kind))?;
    let rows = step.ops.get(kind)?.rows as f64;
    over(rows * step.row_bytes_mean?, seconds(step)?)
}

/// Time that the threads of the step's main operation were at work, over operations.
fn thread_us_per_op(step: &Step) -> Option<f64> {
    let kind = step.main_operation()?;
    let role = operation::role_of(kind);
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

fn of_tree(
    step: &Step,
    tree: &Tree<'_>,
    engine: &BTreeMap<String, CounterSeries>,
) -> Vec<(&'static str, Option<f64>)> {
    let gb = |bytes: Option<f64>| bytes.map(|bytes| bytes / GIB);
    let mb = |bytes: Option<f64>| bytes.map(|bytes| bytes / MIB);
    let per_second = |figure: Option<f64>| over(figure?, seconds(step)?);
    // Over samples and the step's end: what happened between two samples nobody saw.
    let largest = |name: &str, end: Option<f64>| {
        let samples = engine.get(name)?.values.iter().flatten().copied();
        samples
            .reduce(f64::max)
            .map(|most| end.map_or(most, |end| most.max(end)))
    };
    let written = tree.written();
    let ingested = ingested_bytes(step, tree);
    let per_ingested = |bytes: Option<f64>| over(bytes?, ingested?);
    let stall_seconds = tree.stall_seconds();
    let (live, blobs) = (tree.table_bytes(), tree.gauge("live_blob_bytes"));
    let (memtables, cache) = (tree.memtable_bytes(), tree.gauge("block_cache_bytes"));
    let (pending, first_level) = (tree.pending_bytes(), tree.first_level_files());
    vec![
        ("lsm_sz", gb(live)),
        ("blob_sz", gb(blobs)),
        ("c_wgb", gb(written)),
        ("w_amp", per_ingested(written)),
        ("c_mbps", per_second(mb(written))),
        ("c_wsecs", tree.growth("compaction_and_flush_seconds")),
        ("c_csecs", tree.growth("compaction_and_flush_cpu_seconds")),
        ("b_rgb", gb(tree.growth("blob_read_bytes"))),
        ("b_wgb", gb(tree.growth("blob_written_bytes"))),
        ("uptime", tree.growth("uptime_seconds")),
        ("stall_s", stall_seconds),
        (
            "stall%",
            per_second(stall_seconds.map(|seconds| 100.0 * seconds)),
        ),
        ("Nstall", tree.stall_count()),
        ("flush_gb", gb(tree.flushed())),
        ("compaction_write_gb", gb(tree.compacted())),
        ("compaction_read_gb", gb(tree.compaction_read())),
        ("wal_gb", gb(tree.logged())),
        // Where writes were not logged there is nothing that amplifies.
        (
            "wal_amp",
            per_ingested(tree.logged().filter(|&bytes| bytes > 0.0)),
        ),
        ("r_amp", blocks_per_key(step, &Counters::of(step))),
        ("cache_hit%", cache_hit_percent(step, &Counters::of(step))),
        (
            "s_amp",
            over_data(step, live.map(|live| live + blobs.unwrap_or(0.0))),
        ),
        (
            "pending_max_mb",
            mb(largest("pending_compaction_bytes", pending)),
        ),
        ("l0_files_begin", tree.first_level_files_before()),
        ("l0_files", first_level),
        ("l0_files_max", largest("level_file_count.0", first_level)),
        ("levels_begin", tree.level_count_before()),
        ("levels", tree.level_count()),
        ("lsm_files", tree.file_count()),
        ("memtable_max_mb", mb(largest("memtable_bytes", memtables))),
        ("memtable_mb", mb(memtables)),
        ("cache_mb", mb(cache)),
    ]
}

/// Bytes that the user gave the engine: rows that were written, at the size that the record says; else what the engine
/// itself counted, which it rounds, and to which it adds a few bytes for each row. An index is made of rows that were
/// there, and settling is given nothing: what these write is no multiple of anything.
fn ingested_bytes(step: &Step, tree: &Tree<'_>) -> Option<f64> {
    if matches!(step.kind, StepKind::Index | StepKind::Settle) {
        return None;
    }
    match step.row_bytes_mean {
        Some(row_bytes) => Some(step.ops.get(operation::writing(step)?)?.rows as f64 * row_bytes),
        None => tree.growth("ingested_bytes"),
    }
}

/// How much of these may be rounding: `None` where rows were counted.
fn ingested_rounding(step: &Step, tree: &Tree<'_>) -> Option<f64> {
    match step.row_bytes_mean {
        Some(_) => None,
        None => tree.rounding("ingested_bytes"),
    }
}

fn over_data(step: &Step, bytes: Option<f64>) -> Option<f64> {
    over(bytes?, step.data_bytes? as f64)
}

/// Blocks that were looked up in the cache: of data alone, where they are told apart.
fn block_lookups(counters: &Counters<'_>) -> Option<(f64, f64)> {
    let both = |hits: &str, misses: &str| counters.growth(hits).zip(counters.growth(misses));
    both(
        "ticker.rocksdb.block.cache.data.hit",
        "ticker.rocksdb.block.cache.data.miss",
    )
    .or_else(|| both("block_cache_hit_count", "block_cache_miss_count"))
}

fn blocks_per_key(step: &Step, counters: &Counters<'_>) -> Option<f64> {
    let (hits, misses) = block_lookups(counters)?;
    let keys: u64 = step
        .ops
        .iter()
        .filter(|(kind, _)| operation::reads(kind))
        .map(|(_, ops)| ops.rows)
        .sum();
    over(hits + misses, keys as f64)
}

/// In steps that read: elsewhere compaction alone looks blocks up.
fn cache_hit_percent(step: &Step, counters: &Counters<'_>) -> Option<f64> {
    if step.kind != StepKind::Query {
        return None;
    }
    let (hits, misses) = block_lookups(counters)?;
    over(100.0 * hits, hits + misses)
}

/// CPU seconds of the server, as `u_cpu` and `s_cpu` have them.
fn of_processes(step: &Step, host: &HostSeries) -> Vec<(&'static str, Option<f64>)> {
    let cpu = |column: &str| Some(growth_per_second(host, column)? / 1e9 * seconds(step)?);
    vec![
        ("u_cpu", cpu("server_cpu_user_ns")),
        ("s_cpu", cpu("server_cpu_system_ns")),
    ]
}

#[cfg(test)]
mod tests;
