use record::{Connection, Cpu, HostColumnSeries, OpKind, Ops, StorageSize};

use super::*;
use crate::figures::counters::tests::counter;

const S: i64 = 1_000_000_000;

const NO_COUNTERS: BTreeMap<String, CounterSeries> = BTreeMap::new();

type Metrics = BTreeMap<&'static str, Option<f64>>;

/// Returns the metrics of a step with a server.
fn of_seconds(step: &Step, host: &HostSeries, ops: &BTreeMap<String, OpSeries>) -> Metrics {
    metrics(step, host, ops, &NO_COUNTERS, false)
}

/// Returns those of one whose operations were not counted second by second.
fn of_host(step: &Step, host: &HostSeries) -> Metrics {
    of_seconds(step, host, &BTreeMap::new())
}

/// Returns samples at 0, 1, ... seconds; each column begins at some offset, as counters since boot
/// do.
fn host(columns: &[(&str, bool, &[Option<i64>])]) -> HostSeries {
    let length = columns.first().map_or(0, |column| column.2.len());
    HostSeries {
        seconds: (0..length as u32).collect(),
        at_ns: (0..length as i64).map(|second| second * S).collect(),
        columns: columns
            .iter()
            .map(|&(name, cumulative, values)| HostColumnSeries {
                name: name.to_owned(),
                cumulative,
                values: values.to_vec(),
            })
            .collect(),
    }
}

/// Ten seconds on two processors: 6 s user, 1 s nice, 2 s system, 0.5 s irq, 0.5 s softirq, 8 s
/// idle, 1.5 s iowait, 0.5 s steal; 1000 switches, 200 reads of 8 KiB, 400 writes of 16 KiB; 50 MiB
/// received and 5 MiB sent, 3 segments of which again.
fn busy_host() -> HostSeries {
    let grows = |total: i64| vec![Some(7 * S), None, Some(7 * S + total / 2), Some(7 * S + total)];
    let tenths = |tenths: i64| grows(tenths * S / 10);
    let columns: Vec<(&str, bool, Vec<Option<i64>>)> = vec![
        ("cpu_user_ns", true, tenths(60)),
        ("cpu_nice_ns", true, tenths(10)),
        ("cpu_system_ns", true, tenths(20)),
        ("cpu_irq_ns", true, tenths(5)),
        ("cpu_softirq_ns", true, tenths(5)),
        ("cpu_idle_ns", true, tenths(80)),
        ("cpu_iowait_ns", true, tenths(15)),
        ("cpu_steal_ns", true, tenths(5)),
        ("context_switch_count", true, grows(1000)),
        ("disk_read_count", true, grows(200)),
        ("disk_read_bytes", true, grows(200 * 8192)),
        ("disk_write_count", true, grows(400)),
        ("disk_write_bytes", true, grows(400 * 16384)),
        ("network_received_bytes", true, grows(50 << 20)),
        ("network_sent_bytes", true, grows(5 << 20)),
        ("network_received_packet_count", true, grows(6000)),
        ("network_sent_packet_count", true, grows(4000)),
        ("tcp_retransmit_count", true, grows(3)),
        ("disk_read_ns", true, tenths(1)),
        ("disk_write_ns", true, tenths(8)),
        ("disk_queue_ns", true, tenths(10)),
        ("disk_io_ns", true, tenths(5)),
        ("server_rss_bytes", false, vec![Some(1 << 30), Some(3 << 30), None, Some(2 << 30)]),
    ];
    let borrowed: Vec<_> =
        columns.iter().map(|(name, grows, values)| (*name, *grows, values.as_slice())).collect();
    HostSeries { at_ns: vec![0, 2 * S, 5 * S, 10 * S], ..host(&borrowed) }
}

fn step(kind: StepKind, ops: &[(&str, u64, u64)]) -> Step {
    let ops = ops.iter().map(|&(name, ok, rows)| {
        (name.to_owned(), Ops { offered: ok, ok, rows, ..Ops::default() })
    });
    Step { kind, elapsed_ns: 10 * S as u64, ops: ops.collect(), ..Step::default() }
}

/// Returns the seconds of a kind of operation of which only the longest response time is known.
fn longest(kind: &str, us: f64) -> BTreeMap<String, OpSeries> {
    let series = OpSeries { response_us_max: vec![us], ..OpSeries::default() };
    BTreeMap::from([(kind.to_owned(), series)])
}

fn get(metrics: &Metrics, name: &str) -> Option<f64> {
    // Rounded: what is tested is the formula, not the last bit.
    metrics[name].map(|value| (value * 1e9).round() / 1e9)
}

/// Metrics as tests state them: `ips 500, qps none`.
pub(super) fn stated(metrics: &str) -> impl Iterator<Item = (&str, Option<f64>)> {
    metrics.split(", ").map(|metric| {
        let (name, value) = metric.split_once(' ').unwrap();
        (name, (value != "none").then(|| value.parse().unwrap()))
    })
}

#[track_caller]
fn check(metrics: &Metrics, expected: &str) {
    for (name, value) in stated(expected) {
        assert_eq!(get(metrics, name), value, "{name}");
    }
}

#[test]
fn a_load_step_divides_by_rows_inserted() {
    let step = step(StepKind::Load, &[("insert", 100, 5000), ("delete", 100, 4000)]);
    let metrics = of_seconds(&step, &busy_host(), &longest("insert", 2_500_000.0));
    check(
        &metrics,
        "ips 500, dps 400, qps none, rps 20, rmbps 0.15625, wps 40, wmbps 0.625, rpq 0.04, \
         rkbpq 0.32, wpi 0.08, wkbpi 1.28, csps 100",
    );
    // 10 of 20 CPU seconds.
    check(&metrics, "cpups 50, cspq 0.2");
    check(&metrics, "us% 35, sy% 15, id% 40, wa% 7.5, steal% 2.5");
    check(&metrics, "rawait 0.5, rareqsz 8, wawait 2, wareqsz 16, aqu-sz 0.1, util% 5");
    check(
        &metrics,
        "net_received_mb_per_s 5, net_sent_mb_per_s 0.5, net_packets_per_s 1000, net_received_kb_per_op 10.24, \
         net_sent_kb_per_op 1.024, net_packets_per_op 2, tcp_retransmits_per_s 0.3",
    );
    // 10 CPU seconds for 5000 rows.
    check(
        &metrics,
        "cpupq 2000, rss 3, maxop 2.5, cpu/o 0.1, cs/o 0.2, r/o 0.04, rKB/o 0.32, wKB/o 1.28, \
         o/s 500",
    );
}

#[test]
fn figures_follow_from_the_roles_of_operations_and_not_from_their_names() {
    let connection = |role: &str| Connection {
        role: role.to_owned(),
        cpu_user_ns: 1_000_000,
        ok: 100,
        ..Connection::default()
    };
    let mut named = step(StepKind::Load, &[("insert", 100, 5000), ("delete", 50, 4000)]);
    named.connections = vec![connection("insert"), connection("delete")];

    let mut renamed = named.clone();
    for (name, new_name, role) in
        [("insert", "new_order", OpRole::Insert), ("delete", "delivery", OpRole::Delete)]
    {
        let ops = renamed.ops.remove(name).unwrap();
        renamed.ops.insert(new_name.to_owned(), Ops { role: Some(role), ..ops });
    }
    renamed.set_main_operation(OpKind::new("new_order", OpRole::Insert));

    let seconds = |kind| longest(kind, 2_500_000.0);
    let expected = of_seconds(&named, &busy_host(), &seconds("insert"));
    assert!(expected["client_cpu_us_per_row_deleted"].is_some());
    assert_eq!(of_seconds(&renamed, &busy_host(), &seconds("new_order")), expected);
}

#[test]
fn a_query_step_divides_reads_by_queries_and_writes_by_rows_inserted() {
    let step = step(StepKind::Query, &[("insert", 20, 1000), ("query", 2000, 20_000)]);
    let metrics = of_seconds(&step, &busy_host(), &longest("query", 30_000.0));
    check(
        &metrics,
        "ips 100, qps 200, dps none, rpq 0.1, wpi 0.4, wkbpi 6.4, cpupq 5000, maxop 0.03",
    );
}

#[test]
fn an_index_step_divides_by_rows_indexed() {
    let mut step = step(StepKind::Index, &[("insert", 1, 100), ("create_index", 3, 0)]);
    step.rows_before = 9900;
    let metrics = of_seconds(&step, &busy_host(), &longest("insert", 1_000.0));
    check(&metrics, "ips 1000, o/s 1000, cpupq 1000, wpi 0.04, maxop 0.001, p50 none");
}

#[test]
fn a_step_divides_by_what_it_is_about() {
    let put = ("put", 5000, 5000);
    let mut load = step(StepKind::Load, &[put]);
    load.main_op = Some("put".into());
    let rates = OpSeries {
        rows: vec![500; 10],
        ok: vec![500; 10],
        response_us_max: vec![2e6; 10],
        ..OpSeries::default()
    };
    let ops = BTreeMap::from([("put".to_owned(), rates)]);
    let loaded = of_seconds(&load, &busy_host(), &ops);
    check(&loaded, "ips 500, o/s 500, qps none, cpupq 2000, wpi 0.08, maxop 2, p50 500");
    // Operations count, not the keys that each of them reads; the writer beside it has a figure of
    // its own.
    let multiget = ("multiget", 2000, 20_000);
    let mut read = step(StepKind::Query, &[put, multiget]);
    read.main_op = Some("multiget".into());
    let rates = OpSeries {
        rows: vec![2000; 10],
        ok: vec![200; 10],
        response_us_max: vec![30_000.0; 10],
        ..OpSeries::default()
    };
    let ops = BTreeMap::from([("multiget".to_owned(), rates)]);
    let metrics = of_seconds(&read, &busy_host(), &ops);
    check(
        &metrics,
        "ips 500, qps 200, o/s 200, cpupq 5000, wpi 0.08, maxop 0.03, p50 200, p99 200",
    );
}

/// 200 events/s of 18 queries are 3600 queries/s: rates and costs are of queries, response times of
/// events.
#[test]
fn where_an_event_has_queries_these_are_counted() {
    let mut events = step(StepKind::Query, &[("event", 2000, 90_000)]);
    events.main_op = Some("event".into());
    events.connections = vec![Connection {
        role: "event".into(),
        ended_ns: 10 * S as u64,
        ok: 2000,
        ..Connection::default()
    }];
    events.cpu.client_user_ns = 36_000_000;
    let rates =
        OpSeries { ok: vec![200; 10], response_us_max: vec![30_000.0; 10], ..OpSeries::default() };
    let ops = BTreeMap::from([("event".to_owned(), rates)]);
    let of = |step: &Step| of_seconds(step, &busy_host(), &ops);
    let per_event = of(&events);
    events.queries_per_event = Some(18.0);
    let per_query = of(&events);
    for name in ["qps", "o/s", "p50", "p99"] {
        assert_eq!(per_event[name], Some(200.0), "{name}");
        assert_eq!(per_query[name], Some(3600.0), "{name}");
    }
    for name in [
        "cpu/o",
        "cpupq",
        "cs/o",
        "cspq",
        "r/o",
        "rpq",
        "rkbpq",
        "rKB/o",
        "wKB/o",
        "client_cpu_us_per_op",
        "usec_op",
    ] {
        let ratio = per_event[name].unwrap() / per_query[name].unwrap();
        assert!((ratio - 18.0).abs() < 1e-9, "{name}: {ratio}");
    }
    check(&per_query, "client_cpu_us_per_op 1, maxop 0.03, ips none, log_fsyncs_per_commit none");
}

#[test]
fn settling_has_rates_of_the_host_and_nothing_per_operation() {
    let metrics = of_host(&step(StepKind::Settle, &[]), &busy_host());
    check(
        &metrics,
        "wps 40, cpups 50, ips none, qps none, wpi none, cpupq none, maxop none, \
         client_cpu_us_per_op none",
    );
}

#[test]
fn a_missing_sample_is_none_and_never_zero() {
    let step = step(StepKind::Load, &[("insert", 100, 5000)]);
    let metrics = of_host(&step, &HostSeries::default());
    for name in [
        "rps", "wmbps", "rpq", "wpi", "csps", "cpups", "cpupq", "dbgb1", "dbgb2", "rss", "cpu/o",
        "p99",
    ] {
        assert_eq!(metrics[name], None, "{name}");
    }
    assert_eq!(metrics.keys().copied().collect::<Vec<_>>().len(), METRICS.len());
}

#[test]
fn one_sample_or_a_counter_that_fell_is_no_rate() {
    let at = |values: &[Option<i64>]| {
        growth_per_second(&host(&[("disk_read_count", true, values)]), "disk_read_count")
    };
    assert_eq!(at(&[Some(5), Some(7)]), Some(2.0));
    assert_eq!(at(&[Some(5), Some(5)]), Some(0.0));
    assert_eq!(at(&[Some(5)]), None);
    assert_eq!(at(&[None, Some(5), None]), None);
    assert_eq!(at(&[Some(5), Some(4)]), None);
    // The time between the samples that are there, not the length of the step.
    assert_eq!(at(&[None, Some(5), Some(7), Some(9), None]), Some(2.0));
}

#[test]
fn no_operations_are_no_cost_per_operation() {
    let metrics = of_host(&step(StepKind::Query, &[("query", 0, 0)]), &busy_host());
    check(&metrics, "qps 0, cpupq none, rpq none, maxop none");
}

/// Returns the same host with what assay and a server used: 2 s, and 1 s in user mode with half a
/// second in the kernel.
fn shared_host() -> HostSeries {
    let mut host = busy_host();
    for (name, tenths) in
        [("assay_cpu_ns", 20), ("server_cpu_user_ns", 10), ("server_cpu_system_ns", 5)]
    {
        host.columns.push(HostColumnSeries {
            name: name.to_owned(),
            cumulative: true,
            values: vec![Some(S), None, None, Some(S + tenths * S / 10)],
        });
    }
    host
}

#[test]
fn cpu_of_others_is_neither_assays_nor_the_servers() {
    let mut step = step(StepKind::Query, &[("query", 2000, 1)]);
    let of = |step: &Step, embedded| {
        let metrics = metrics(step, &shared_host(), &BTreeMap::new(), &NO_COUNTERS, embedded);
        get(&metrics, "others%")
    };
    // Of 20 s 9 s in user mode and in the kernel; interrupts are nobody's.
    assert_eq!(of(&step, true), Some(35.0));
    // A server that is not seen may be on this host.
    assert_eq!(of(&step, false), None);
    step.cpu.server_ns = Some(1_500_000_000);
    assert_eq!(of(&step, false), Some(27.5));
    // A library's process is measured as that of assay and of the server.
    assert_eq!(of(&step, true), Some(35.0));
    // Load ranks on the server's host are assay too; those on other hosts don't use its processors.
    step.ranks = [(true, 1_000_000_000), (false, 7_000_000_000)]
        .map(|(is_server_host, cpu_ns)| record::RankLoad {
            is_server_host,
            cpu_ns,
            ..Default::default()
        })
        .into();
    assert_eq!(of(&step, false), Some(22.5));
}

#[test]
fn the_frequency_is_the_mean_of_the_sampled_seconds() {
    let step = step(StepKind::Query, &[("query", 2000, 1)]);
    let of = |host: &HostSeries| {
        let metrics = of_host(&step, host);
        get(&metrics, "cpu_mhz")
    };
    let khz = [Some(3_400_000), None, Some(2_600_000)];
    let told = host(&[("cpu_frequency_khz", false, &khz)]);
    assert_eq!(of(&told), Some(3000.0));
    assert_eq!(of(&busy_host()), None);
}

#[test]
fn scans_tell_rows_per_second_and_deletes_those_that_they_found() {
    let mut step = step(StepKind::Query, &[("event", 5, 2)]);
    step.main_op = Some("event".into());
    let of = |step: &Step| of_host(step, &busy_host());
    check(&of(&step), "krows_sec none, rows/event none");
    step.scanned_rows_per_event = Some(30_000_000);
    step.deletes_per_event = Some(1.0);
    check(&of(&step), "krows_sec 15000, rows/event 0.4");
}

#[test]
fn client_and_server_cpu_are_kept_apart() {
    let mut step =
        step(StepKind::Query, &[("insert", 20, 1000), ("delete", 20, 500), ("query", 2000, 1)]);
    let thread = |role: &str, cpu_user_ns, cpu_system_ns| Connection {
        role: role.to_owned(),
        cpu_user_ns,
        cpu_system_ns,
        ..Connection::default()
    };
    step.connections = vec![
        thread("query", 5_000_000, 3_000_000),
        thread("query", 1_000_000, 1_000_000),
        thread("insert", 400_000, 100_000),
        thread("delete", 100_000, 0),
    ];
    step.cpu = Cpu {
        client_user_ns: 6_500_000,
        client_system_ns: 4_100_000,
        server_ns: Some(50_000_000),
        ..step.cpu
    };
    let of = |embedded| metrics(&step, &busy_host(), &BTreeMap::new(), &NO_COUNTERS, embedded);
    check(
        &of(false),
        "client_cpu_us_per_op 5.3, server_cpu_us_per_op 25, client_cpu_us_per_query 5, \
         client_cpu_us_per_row_inserted 0.5, client_cpu_us_per_row_deleted 0.2",
    );
    check(&of(true), "client_cpu_us_per_op 5.3, server_cpu_us_per_op none");
    // It was sampled: the engine has a process to itself, but for the load.
    check(&of(true), "rss 3");
}

#[test]
fn sizes_are_what_the_engine_states_and_what_the_files_take() {
    let mut step = step(StepKind::Load, &[]);
    let sampled = host(&[
        ("data_bytes", false, &[Some(1 << 30), Some(4 << 30), None]),
        ("log_bytes", false, &[Some(1 << 30), Some(1 << 30), None]),
    ]);
    check(&of_host(&step, &sampled), "dbgb1 4, dbgb2 5");
    step.storage = Some(StorageSize { data_bytes: 6 << 30, log_bytes: 1 << 29 });
    check(&of_host(&step, &sampled), "dbgb1 6, dbgb2 6.5");
    step.counters_after = vec![counter("database_bytes", 5.5 * GIB, false)];
    check(&of_host(&step, &sampled), "dbgb1 5.5, dbgb2 6.5");
}

#[test]
fn percentiles_of_rates_are_of_all_clients() {
    let series = |rows: Vec<u64>, ok: Vec<u64>| OpSeries { rows, ok, ..OpSeries::default() };
    let ops = BTreeMap::from([
        ("insert".to_owned(), series(vec![500; 10], vec![10; 10])),
        ("query".to_owned(), series(vec![0; 10], vec![9, 8, 7, 6, 5, 4, 3, 2, 1, 0])),
    ]);
    let of = |kind| of_seconds(&step(kind, &[]), &HostSeries::default(), &ops);
    check(&of(StepKind::Load), "p50 500, p99 500");
    check(&of(StepKind::Query), "p50 5, p99 0");
}

/// Returns a step with counters: name, value before it, value after it.
fn with_counters(mut step: Step, counters: &[(&str, Option<f64>, Option<f64>)]) -> Step {
    for &(name, before, after) in counters {
        let grows = name.ends_with("_count");
        let before = before.map(|value| counter(name, value, grows));
        step.counters_before.extend(before);
        let after = after.map(|value| counter(name, value, grows));
        step.counters_after.extend(after);
    }
    step
}

/// 100 inserts and 100 deletes: 200 commits.
fn writes() -> Step {
    step(StepKind::Load, &[("insert", 100, 5000), ("delete", 100, 5000)])
}

fn upkeep_of(step: &Step) -> Metrics {
    of_host(step, &HostSeries::default())
}

#[test]
fn flushes_of_the_disks_are_over_the_commits_of_the_load() {
    let of = |kind, ops: &[(&str, u64, u64)], host: &HostSeries| {
        let step = step(kind, ops);
        let metrics = metrics(&step, host, &BTreeMap::new(), &NO_COUNTERS, true);
        get(&metrics, "flushes_per_commit")
    };
    let count: Vec<Option<i64>> = (0..=10).map(|second| Some(700 + 50 * second)).collect();
    let flushing = host(&[("disk_flush_count", true, &count)]);
    let inserts = [("insert", 250, 50)];
    assert_eq!(of(StepKind::Load, &inserts, &flushing), Some(2.0));
    assert_eq!(of(StepKind::Load, &inserts, &busy_host()), None);
    // Without commits they are somebody else's.
    let queries = [("query", 2000, 1)];
    assert_eq!(of(StepKind::Query, &queries, &flushing), None);
}

#[test]
fn an_event_is_as_many_commits_as_its_test_has() {
    let counters = [("fsync_count", Some(1000.0), Some(1400.0))];
    for (commits, expected) in
        [(Some(1.0), Some(2.0)), (Some(2.0), Some(1.0)), (Some(0.0), None), (None, None)]
    {
        let mut step = with_counters(Step::default(), &counters);
        step.kind = StepKind::Query;
        step.commits_per_event = commits;
        let ops = step.ops.entry("event".into()).or_default();
        ops.ok = 200;
        assert_eq!(get(&upkeep_of(&step), "fsyncs_per_commit"), expected);
    }
}

#[test]
fn fsyncs_are_over_the_commits_of_the_load() {
    let counters = [
        ("fsync_count", Some(1050.0), Some(1450.0)),
        ("log_fsync_count", Some(400.0), Some(640.0)),
        ("data_fsync_count", Some(600.0), Some(660.0)),
        ("binlog_fsync_count", Some(50.0), Some(150.0)),
    ];
    check(
        &upkeep_of(&with_counters(writes(), &counters)),
        "fsyncs_per_commit 2, log_fsyncs_per_commit 1.2, data_fsyncs_per_commit 0.3, \
         binlog_syncs_per_commit 0.5",
    );
    // What is not counted has no figure.
    check(
        &upkeep_of(&with_counters(writes(), &counters[1..2])),
        "fsyncs_per_commit none, log_fsyncs_per_commit 1.2, data_fsyncs_per_commit none, \
         binlog_syncs_per_commit none",
    );
}

#[test]
fn counters_that_say_nothing_and_steps_without_commits_have_no_fsyncs_per_commit() {
    let grown = ("log_fsync_count", Some(0.0), Some(10.0));
    let name = "log_fsyncs_per_commit";
    let of = |step: Step, counter| upkeep_of(&with_counters(step, &[counter]))[name];
    assert_eq!(of(writes(), grown), Some(0.05));
    // It began anew; it was not there before; it did not move.
    assert_eq!(of(writes(), (grown.0, Some(9.0), Some(1.0))), None);
    assert_eq!(of(writes(), (grown.0, None, Some(1.0))), None);
    assert_eq!(of(writes(), (grown.0, Some(9.0), Some(9.0))), Some(0.0));
    let index = step(StepKind::Index, &[("insert", 1, 100)]);
    assert_eq!(of(index, grown), None);
    assert_eq!(of(step(StepKind::Query, &[("query", 9, 9)]), grown), None);
}

#[test]
fn write_amplification_is_of_the_devices_whatever_the_kernel_charges_the_server() {
    let mut step = writes();
    let device = ("disk_write_bytes", true, &[Some(0), Some(94_000)][..]);
    let server = ("server_write_bytes", true, &[Some(7), Some(9_000_000)][..]);
    let of = |step: &Step, columns: &[(&str, bool, &[Option<i64>])]| {
        let metrics = of_host(step, &host(columns));
        get(&metrics, "write_amplification")
    };
    // Records that don't say how large a row is.
    assert_eq!(of(&step, &[device, server]), None);
    // 5000 rows of 47 bytes; 94 kB each second, for ten seconds.
    step.row_bytes_mean = Some(47.0);
    assert_eq!(of(&step, &[device, server]), Some(4.0));
    assert_eq!(of(&step, &[device]), Some(4.0));
    assert_eq!(of(&step, &[server]), None);
    step.kind = StepKind::Index;
    assert_eq!(of(&step, &[device]), None);
}

#[test]
fn debt_is_what_gauges_say_at_the_end_of_a_step() {
    let counters = [
        ("dead_rows.pi1", Some(9.0), Some(400.0)),
        ("dead_rows.pi2", None, Some(200.0)),
        ("dead_rows_of_old", None, Some(7000.0)),
        ("history_list_length", Some(0.0), Some(1234.0)),
        ("dirty_bytes", Some(0.0), Some(3.0 * MIB)),
        ("checkpoint_age_bytes", Some(0.0), Some(0.5 * MIB)),
        ("pending_compaction_bytes", None, Some(0.0)),
    ];
    let step = step(StepKind::Settle, &[]);
    check(
        &upkeep_of(&with_counters(step.clone(), &counters)),
        "debt_dead_rows 600, debt_history_list 1234, debt_dirty_mb 3, debt_redo_mb 0.5, \
         debt_compaction_mb 0",
    );
    let nothing = upkeep_of(&step);
    assert!(METRICS.iter().all(|it| nothing[it.name].is_none()));
}
