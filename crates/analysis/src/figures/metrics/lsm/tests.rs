use record::{Connection, Counter, Ops, Role, StepKind};

use super::*;
use crate::figures::Level;
use crate::figures::counters::tests::counter;
use crate::figures::metrics::metrics;
use crate::figures::metrics::tests::stated;

const GB: f64 = 1024.0 * 1024.0 * 1024.0;

/// The counters that the library's observer gives: name, value before the step, value after it.
type Reported<'a> = &'a [(&'a str, f64, f64)];

/// Names of gauges; the others only grow.
const GAUGES: [&str; 9] = [
    "tree_bytes",
    "blob_bytes",
    "pending_compaction_bytes",
    "memtable_bytes",
    "block_cache_bytes",
    "file_count",
    "level_file_count.",
    "level_bytes.",
    "level_score.",
];

fn counters<'a>(reported: impl Iterator<Item = (&'a str, f64)>) -> Vec<Counter> {
    reported
        .map(|(name, value)| {
            let grows = !GAUGES.iter().any(|gauge| name.starts_with(gauge));
            counter(name, value, grows)
        })
        .collect()
}

/// Returns a load of ten seconds in which some thousand keys of 400 bytes were put.
fn load(puts: u64, reported: Reported<'_>) -> Step {
    let put = Ops { offered: puts, ok: puts, rows: puts, ..Ops::default() };
    Step {
        kind: StepKind::Load,
        main_op: Some("put".into()),
        elapsed_ns: 10_000_000_000,
        row_bytes_mean: Some(400.0),
        ops: BTreeMap::from([("put".to_owned(), put)]),
        counters_before: counters(reported.iter().map(|&(name, before, _)| (name, before))),
        counters_after: counters(reported.iter().map(|&(name, _, after)| (name, after))),
        ..Step::default()
    }
}

fn of(step: &Step) -> BTreeMap<&'static str, Option<f64>> {
    metrics(step, &HostSeries::default(), &BTreeMap::new(), &BTreeMap::new(), true)
}

#[track_caller]
fn check(step: &Step, expected: &str) {
    let found = of(step);
    for (name, value) in stated(expected) {
        let found = found[name].map(|value| (value * 1e6).round() / 1e6);
        assert_eq!(found, value, "{name}");
    }
}

/// A load that was flushed and not compacted writes its data once. The scripts of db_bench say
/// twice: what they add to the flushes already includes these.
#[test]
fn a_load_that_was_only_flushed_has_a_write_amplification_of_one() {
    let keys = 1 << 23;
    let given = 10.0 * GB;
    let flushed: Reported<'_> = &[
        ("tree_bytes", 0.0, given),
        ("flush_written_bytes", 0.0, given),
        ("compaction_and_flush_written_bytes", 0.0, given),
        ("compaction_read_bytes", 0.0, 0.0),
        // The library's own count has a few bytes more for each key.
        ("ingested_bytes", 0.0, 1.05 * given),
        ("log_bytes", 0.0, 0.0),
    ];
    let step = Step { row_bytes_mean: Some(1280.0), ..load(keys, flushed) };
    check(
        &step,
        "w_amp 1, c_wgb 10, c_mbps 1024, flush_gb 10, compaction_write_gb 0, \
         compaction_read_gb 0",
    );
    // The log was off: it has a size, and nothing that amplifies.
    check(&step, "wal_gb 0, wal_amp none");
    // Without the size of an entry the library's count has to do.
    let unsized_rows = Step { row_bytes_mean: None, ..step };
    check(&unsized_rows, "w_amp 0.952381, mb_sec none");
}

#[test]
fn exact_counts_of_flushes_and_compactions_are_added_and_the_text_is_not() {
    // As 6.29.5 reported it after one load, with its statistics on.
    let step = load(
        30_000,
        &[
            ("tree_bytes", 0.0, 7.78 * 1024.0 * 1024.0),
            ("flush_written_bytes", 0.0, 12_674_181.0),
            ("compaction_written_bytes", 0.0, 82_057_301.0),
            ("compaction_read_bytes", 0.0, 86_153_238.0),
            ("compaction_and_flush_written_bytes", 0.0, 94_680_000.0),
            ("log_bytes", 0.0, 13_080_000.0),
        ],
    );
    let given = 30_000.0 * 400.0;
    let found = of(&step);
    let near = |name: &str, expected: f64| {
        let value = found[name].unwrap();
        assert!((value / expected - 1.0).abs() < 1e-9, "{name}: {value}");
    };
    near("w_amp", (12_674_181.0 + 82_057_301.0) / given);
    near("wal_amp", 13_080_000.0 / given);
    near("flush_gb", 12_674_181.0 / GB);
    near("compaction_write_gb", 82_057_301.0 / GB);
    near("compaction_read_gb", 86_153_238.0 / GB);
}

#[test]
fn where_nothing_was_written_there_is_no_write_amplification() {
    let compacting: Reported<'_> = &[
        ("tree_bytes", GB, GB),
        ("compaction_and_flush_written_bytes", 0.0, GB),
        // Rounding lets it grow.
        ("ingested_bytes", GB, GB + 5000.0),
    ];
    let mut reads = load(0, compacting);
    reads.kind = StepKind::Query;
    reads.main_op = Some("get".into());
    let get = reads.ops.remove("put").unwrap();
    reads.ops.insert("get".to_owned(), Ops { ok: 9, rows: 9, ..get });
    check(&reads, "w_amp none, wal_amp none, c_wgb 1");
}

/// A few rows are inserted while gigabytes of indexes are built, and the library's count of
/// ingested bytes grows by its rounding while a step settles.
#[test]
fn an_index_step_and_settling_have_no_write_amplification() {
    let reported: Reported<'_> = &[
        ("tree_bytes", GB, 2.0 * GB),
        ("compaction_and_flush_written_bytes", 0.0, GB),
        ("log_bytes", 0.0, GB),
        ("ingested_bytes", 599_538_008.0, 599_759_257.0),
    ];
    let mut index = load(200, reported);
    index.kind = StepKind::Index;
    index.main_op = Some("insert".into());
    let put = index.ops.remove("put").unwrap();
    index.ops.insert("insert".to_owned(), put);
    let settle = Step {
        kind: StepKind::Settle,
        main_op: None,
        row_bytes_mean: None,
        ops: BTreeMap::new(),
        ..index.clone()
    };
    for mut step in [index, settle] {
        step.counters_end = step.counters_after.clone();
        check(&step, "w_amp none, w_amp_settled none, wal_amp none");
        // What was written is reported all the same.
        check(&step, "c_wgb 1, wal_gb 1");
    }
}

/// A step of 4 GB whose debt of 2 GB more is paid after its end.
#[test]
fn pending_compaction_has_a_figure() {
    let mut step = load(
        1 << 20,
        &[
            ("tree_bytes", 0.0, GB),
            ("compaction_and_flush_written_bytes", 10.0 * GB, 14.0 * GB),
            ("compaction_and_flush_seconds", 100.0, 109.0),
            ("compaction_and_flush_cpu_seconds", 50.0, 54.0),
        ],
    );
    step.row_bytes_mean = Some(1024.0);
    // Nothing was read when what followed was over.
    check(
        &step,
        "c_wgb_settled none, w_amp_settled none, c_wsecs_settled none, c_csecs_settled none",
    );
    assert!(!lsm(&step, &BTreeMap::new()).unwrap().settled);
    step.settle = Some(record::Settle::default());
    let end = [
        ("tree_bytes", GB),
        ("compaction_and_flush_written_bytes", 16.0 * GB),
        ("compaction_and_flush_seconds", 112.5),
        ("compaction_and_flush_cpu_seconds", 56.0),
    ];
    step.counters_end = counters(end.into_iter());
    check(&step, "c_wgb_settled 6, w_amp_settled 6, c_wsecs_settled 12.5, c_csecs_settled 6");
    // The step itself is what it was.
    check(&step, "c_wgb 4, w_amp 4, c_wsecs 9");
    assert!(lsm(&step, &BTreeMap::new()).unwrap().settled);
    // A count that began anew meanwhile has no figure.
    step.counters_end[1].value = 1.0;
    check(&step, "c_wgb_settled none, w_amp_settled none");
}

#[test]
fn a_figure_with_a_rounding_error_of_a_twentieth_is_coarse() {
    let mb = 1024.0 * 1024.0;
    let rounded = |mut step: Step, role: Role, rounding: f64| {
        for counters in
            [&mut step.counters_before, &mut step.counters_after, &mut step.counters_end]
        {
            for counter in counters.iter_mut().filter(|it| it.role == Some(role)) {
                counter.rounding = rounding;
            }
        }
        step
    };
    // Hundredths of a GB: 10.24 MB over a step.
    let of_written = |step| rounded(step, Role::CompactionAndFlushWrittenBytes, 5.12 * mb);
    let of = |mb_written: f64, more: Reported<'_>| {
        let mut reported = vec![
            ("tree_bytes", 0.0, GB),
            ("compaction_and_flush_written_bytes", GB, GB + mb_written * mb),
        ];
        reported.extend(more);
        let step = of_written(load(1000, &reported));
        lsm(&rounded(step, Role::LogBytes, 5.12 * mb), &BTreeMap::new()).unwrap().coarse
    };
    let written = BTreeSet::from(["c_wgb", "w_amp", "c_mbps"]);
    assert_eq!(of(204.0, &[]), written);
    assert!(of(206.0, &[]).is_empty());
    // Nothing is said of nothing, and where each is counted exactly that is taken.
    assert!(of(0.0, &[]).is_empty());
    let exact: Reported<'_> =
        &[("compaction_written_bytes", 0.0, mb), ("flush_written_bytes", 0.0, mb)];
    assert!(of(2.0, exact).is_empty());
    let log: Reported<'_> = &[("log_bytes", 0.0, 10.0 * mb)];
    assert_eq!(of(206.0, log), BTreeSet::from(["wal_gb", "wal_amp"]));
    // What was given is rounded too where the record doesn't say how large a row is; the shares of
    // both add up.
    let over_given = |mb_given: f64, rows: &str| {
        let reported: Reported<'_> = &[
            ("tree_bytes", 0.0, GB),
            ("compaction_and_flush_written_bytes", GB, 1.4 * GB),
            ("ingested_bytes", GB, GB + mb_given * mb),
        ];
        let mut step = of_written(rounded(load(1000, reported), Role::IngestedBytes, 5.12 * mb));
        step.row_bytes_mean = (rows == "sized").then_some(400.0);
        lsm(&step, &BTreeMap::new()).unwrap().coarse
    };
    assert_eq!(over_given(400.0, "unsized"), BTreeSet::from(["w_amp"]));
    assert!(over_given(420.0, "unsized").is_empty());
    assert!(over_given(400.0, "sized").is_empty());
    // Until its debt was paid a step may have written enough.
    let reported: Reported<'_> =
        &[("tree_bytes", 0.0, GB), ("compaction_and_flush_written_bytes", GB, GB + 20.0 * mb)];
    let mut step = load(1000, reported);
    step.counters_end = step.counters_after.clone();
    let mut step = of_written(step);
    assert!(lsm(&step, &BTreeMap::new()).unwrap().coarse.contains("w_amp_settled"));
    step.counters_end[1].value = 2.0 * GB;
    assert!(!lsm(&step, &BTreeMap::new()).unwrap().coarse.contains("w_amp_settled"));
}

#[test]
fn a_log_that_was_off_is_not_one_that_was_never_synced() {
    let of = |bytes: f64, syncs: f64| {
        let reported: Reported<'_> = &[
            ("tree_bytes", 0.0, 0.0),
            ("log_bytes", GB, GB + bytes),
            ("log_fsync_count", 7.0, 7.0 + syncs),
        ];
        let found = of(&load(1000, reported));
        (found["wal_amp"], found["log_fsyncs_per_commit"])
    };
    assert_eq!(of(0.0, 0.0), (None, None));
    assert_eq!(of(800_000.0, 0.0), (Some(2.0), Some(0.0)));
    // What was logged is less than what is reported: it was on.
    assert_eq!(of(0.0, 500.0), (None, Some(0.5)));
}

#[test]
fn stalls_are_seconds_and_a_share_of_the_step() {
    let reported: Reported<'_> = &[
        ("tree_bytes", 0.0, 0.0),
        // Of both formats of the library's text, and after eight minutes of other steps.
        ("stall_seconds", 480.25, 482.75),
        ("stall_percent", 90.0, 80.0),
        ("write_stall_count.memtable-limit-delays", 0.0, 0.0),
        ("write_stall_count.total-delays", 100.0, 340.0),
        ("write_stall_count.total-stops", 10.0, 255.0),
        ("compaction_and_flush_seconds", 5.0, 18.5),
        ("compaction_and_flush_cpu_seconds", 1.0, 2.25),
        ("uptime_seconds", 480.0, 490.1),
    ];
    check(
        &load(1, reported),
        "stall_s 2.5, stall% 25, Nstall 485, c_wsecs 13.5, c_csecs 1.25, uptime 10.1",
    );
}

#[test]
fn times_by_the_clock_of_a_library_that_was_frozen_are_not_those_of_the_step() {
    let reported: Reported<'_> = &[
        ("tree_bytes", 0.0, 0.0),
        ("level_file_count.0", 0.0, 2.0),
        ("level_compaction_seconds.0", 0.0, 9.0),
        ("compaction_and_flush_seconds", 5.0, 18.5),
        ("compaction_and_flush_cpu_seconds", 1.0, 2.25),
        ("uptime_seconds", 480.0, 520.0),
    ];
    let mut step = load(1, reported);
    step.counters_end = step.counters_after.clone();
    check(&step, "c_wsecs 13.5, c_wsecs_settled 13.5, uptime 40");
    step.turns = Some(8);
    check(&step, "c_wsecs none, c_wsecs_settled none, c_csecs 1.25, uptime none");
    assert_eq!(lsm(&step, &BTreeMap::new()).unwrap().levels[0].compaction_seconds, None);
}

#[test]
fn the_shape_of_the_tree_is_known_at_both_ends() {
    let reported: Reported<'_> = &[
        ("tree_bytes", GB, 3.0 * GB),
        ("blob_bytes", 0.0, GB),
        ("level_file_count.0", 0.0, 7.0),
        ("level_file_count.4", 0.0, 0.0),
        ("level_file_count.5", 20.0, 31.0),
        ("level_file_count.6", 80.0, 81.0),
        ("level_bytes.0", 0.0, 100.0),
        ("level_bytes.6", 900.0, 1000.0),
        ("level_score.6", 0.5, 1.25),
        ("level_read_bytes.6", 5.0, 7.0),
        ("level_written_bytes.6", 4.0, 5.0),
        ("level_compaction_seconds.6", 1.0, 2.5),
        ("level_compaction_count.6", 10.0, 13.0),
        ("pending_compaction_bytes", 0.0, 0.25 * GB),
        ("memtable_bytes", 0.0, 0.5 * GB),
        ("block_cache_bytes", 0.0, 0.125 * GB),
    ];
    let mut step = load(1, reported);
    step.data_bytes = Some(2 << 30);
    check(
        &step,
        "lsm_sz 3, blob_sz 1, s_amp 2, l0_files_begin 0, l0_files 7, levels_begin 2, levels \
             3, lsm_files 119, debt_compaction_mb 256, memtable_mb 512, cache_mb 128",
    );
    // No second was sampled: what was the most is not known.
    check(&step, "pending_max_mb none, l0_files_max none");
    let level =
        |number, files, bytes| Level { number, files: Some(files), bytes, ..Level::default() };
    let last = Level {
        score: Some(1.25),
        read_bytes: Some(2.0),
        written_bytes: Some(1.0),
        compaction_seconds: Some(1.5),
        compaction_count: Some(3.0),
        ..level(6, 81.0, Some(1000.0))
    };
    assert_eq!(
        lsm(&step, &BTreeMap::new()).unwrap().levels,
        [level(0, 7.0, Some(100.0)), level(4, 0.0, None), level(5, 31.0, None), last,]
    );
}

#[test]
fn the_time_of_each_stalled_second_is_given_to_the_reasons_that_counted_in_it() {
    let step = load(1, &[("tree_bytes", 0.0, 0.0), ("stall_seconds", 1.0, 7.0)]);
    let series = |(name, values): (&str, [f64; 4])| {
        let series = CounterSeries {
            cumulative: true,
            values: values.map(Some).to_vec(),
            role: counter(name, 0.0, true).role,
        };
        (name.to_owned(), series)
    };
    let engine = [
        // Of six seconds samples show three.
        ("stall_seconds", [1.0, 1.0, 0.0, 1.0]),
        ("write_stall_count.l0-file-count-limit-delays", [3.0, 0.0, 5.0, 0.0]),
        ("write_stall_count.l0-file-count-limit-stops", [0.0, 0.0, 0.0, 0.0]),
        ("write_stall_count.pending-compaction-bytes-delays", [1.0, 2.0, 0.0, 0.0]),
        ("write_stall_count.total-delays", [4.0, 2.0, 5.0, 0.0]),
        (
            "write_stall_count.cf-l0-file-count-limit-delays-with-ongoing-compaction",
            [3.0, 0.0, 5.0, 0.0],
        ),
    ];
    let seconds = lsm(&step, &engine.into_iter().map(series).collect()).unwrap();
    let expected =
        [("l0-file-count-limit", 1.5), ("pending-compaction-bytes", 2.5), ("unknown", 2.0)];
    let expected = expected.map(|(reason, seconds)| (reason.to_owned(), seconds));
    assert_eq!(seconds.stall_seconds, BTreeMap::from(expected));
    // Nothing was sampled.
    let unknown = lsm(&step, &BTreeMap::new()).unwrap().stall_seconds;
    assert_eq!(unknown, BTreeMap::from([("unknown".to_owned(), 6.0)]));
}

#[test]
fn the_most_of_a_gauge_is_of_all_seconds_and_the_end() {
    let step = load(
        1,
        &[
            ("tree_bytes", 0.0, 0.0),
            ("pending_compaction_bytes", 0.0, 3.0 * MIB),
            ("memtable_bytes", 0.0, MIB),
        ],
    );
    let series = |role, values: &[Option<f64>]| CounterSeries {
        cumulative: false,
        role: Some(role),
        values: values.iter().map(|value| value.map(|mb| mb * MIB)).collect(),
    };
    let engine = BTreeMap::from([
        (
            "pending_compaction_bytes".to_owned(),
            series(Role::PendingCompactionBytes, &[Some(1.0), None, Some(9.0), Some(2.0)]),
        ),
        ("memtable_bytes".to_owned(), series(Role::MemtableBytes, &[None, Some(0.5)])),
    ]);
    let found = metrics(&step, &HostSeries::default(), &BTreeMap::new(), &engine, true);
    assert_eq!(found["pending_max_mb"], Some(9.0));
    assert_eq!(found["debt_compaction_mb"], Some(3.0));
    assert_eq!(found["memtable_max_mb"], Some(1.0));
}

#[test]
fn an_empty_tree_has_no_files_and_an_unknown_tree_has_no_figure() {
    let empty = load(1, &[("tree_bytes", 0.0, 0.0), ("file_count", 0.0, 0.0)]);
    check(
        &empty,
        "l0_files 0, levels 0, levels_begin 0, stall_s none, Nstall none, w_amp none, r_amp \
             none, s_amp none",
    );
    // Another engine: nothing of this applies.
    let other = load(1, &[("wal_bytes", 0.0, 9.0)]);
    assert_eq!(lsm(&other, &BTreeMap::new()), None);
    let found = of(&other);
    for name in ["lsm_sz", "w_amp", "stall%", "l0_files", "uptime", "r_amp"] {
        assert_eq!(found[name], None, "{name}");
    }
}

#[test]
fn a_count_that_began_anew_has_no_figure_and_no_total() {
    let step = load(
        1,
        &[
            ("tree_bytes", 0.0, 0.0),
            ("write_stall_count.l0-file-count-limit-stops", 9.0, 1.0),
            ("write_stall_count.memtable-limit-stops", 0.0, 2.0),
            ("write_stall_count.pending-compaction-bytes-stops", 0.0, 3.0),
            ("write_stall_count.total-stops", 9.0, 6.0),
            ("stall_seconds", 5.0, 1.0),
        ],
    );
    let stalls = lsm(&step, &BTreeMap::new()).unwrap().stalls;
    assert_eq!(
        stalls.keys().map(String::as_str).collect::<Vec<_>>(),
        ["memtable-limit-stops", "pending-compaction-bytes-stops"]
    );
    check(&step, "stall_s none, stall% none, Nstall none");
}

/// Reads of one of two clients at the rate of a library with statistics, beside a writer.
fn reads(kind: &str, ok: u64, rows: u64, reported: Reported<'_>) -> Step {
    let mut step = load(1000, reported);
    step.kind = StepKind::Query;
    step.main_op = Some(kind.to_owned());
    let ops = Ops { ok, rows, ..Ops::default() };
    step.ops.insert(kind.to_owned(), ops);
    let connection = |client, role: &str, ok, ended_ns, cpu_user_ns| Connection {
        client,
        role: role.to_owned(),
        ok,
        ended_ns,
        cpu_user_ns,
        ..Connection::default()
    };
    step.connections = vec![
        connection(0, "read", ok / 2, 10_000_000_000, 4_000_000_000),
        connection(1, "read", ok - ok / 2, 10_000_000_000, 5_000_000_000),
        connection(0, "write", 1000, 10_000_000_000, 2_000_000),
    ];
    step
}

#[test]
fn reads_are_counted_by_operation_and_their_blocks_by_key() {
    let blocks: Reported<'_> = &[
        ("tree_bytes", 0.0, 0.0),
        ("data_block_hit_count", 100.0, 700_100.0),
        ("data_block_miss_count", 0.0, 100_000.0),
    ];
    let multiget = reads("multiget", 10_000, 100_000, blocks);
    check(&multiget, "qps 1000, o/s 1000");
    // The writer's, which is not what the step is about.
    check(
        &multiget,
        "ips 100, mb_sec 3.814697, usec_op 2000, r_amp 8, cache_hit% 87.5, \
         client_cpu_us_per_read 900, client_cpu_us_per_write 2, client_cpu_us_per_query none",
    );
    // Without statistics nobody counts them.
    check(&reads("get", 9, 9, &blocks[..1]), "r_amp none, cache_hit% none");
}

/// Returns the counters of a library before and after ten seconds of overwriting keys of 420 bytes
/// at random, as fast as possible.
fn overwritten(text: &str, elapsed_ns: u64, puts: u64) -> Step {
    let mut step = load(puts, &[]);
    step.elapsed_ns = elapsed_ns;
    step.row_bytes_mean = Some(420.0);
    step.data_bytes = Some(200_000 * 420);
    for line in text.lines() {
        let [name, kind, before, after] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("four parts in `{line}`");
        };
        let counter = |value: &str| counter(name, value.parse().unwrap(), kind == "grows");
        if !before.is_empty() {
            step.counters_before.push(counter(before));
        }
        step.counters_after.push(counter(after));
    }
    step
}

#[test]
fn real_libraries_come_to_their_figures() {
    let old = overwritten(
        include_str!("../../../../tests/fixtures/lsm/rocksdb-6.0.1.tsv"),
        11_004_195_402,
        283_694,
    );
    check(
        &old,
        "w_amp 5.648468, flush_gb 0.11, stall_s 4.462, stall% 40.548171, Nstall 111, c_wsecs \
             12.38, c_csecs 3.51, l0_files_begin 3, l0_files 3, levels 4",
    );
    // It has no blobs, and its statistics are off.
    check(&old, "blob_sz none, b_wgb none, r_amp none");
    let speedb = overwritten(
        include_str!("../../../../tests/fixtures/lsm/speedb-2.8.0.tsv"),
        11_000_007_667,
        255_690,
    );
    check(&speedb, "stall_s 0.286, Nstall 29, c_wsecs 24.81, c_csecs 2.53, b_wgb 0");
    // With statistics, a library reports exact values that its texts round. Both agree.
    let mut new = overwritten(
        include_str!("../../../../tests/fixtures/lsm/rocksdb-10.10.1-statistics.tsv"),
        11_003_152_486,
        250_795,
    );
    check(&new, "c_wsecs 12.29, c_csecs 2.02, Nstall 85");
    let exact = of(&new);
    for counters in [&mut new.counters_before, &mut new.counters_after] {
        counters.retain(|counter| counter.role != Some(Role::CompactionWrittenBytes));
    }
    let reported = of(&new);
    for name in ["w_amp", "c_wgb", "compaction_write_gb"] {
        let (exact, reported) = (exact[name].unwrap(), reported[name].unwrap());
        assert!((reported / exact - 1.0).abs() < 0.02, "{name}: {reported}, {exact}");
    }
    // The log has a few bytes more for each key, and each file of the tree for its index and its
    // filter.
    let between = |name: &str, least: f64, most: f64| {
        let value = exact[name].unwrap();
        assert!((least..most).contains(&value), "{name}: {value}");
    };
    between("wal_amp", 1.0, 1.1);
    between("s_amp", 1.0, 2.0);
}
