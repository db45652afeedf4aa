use record::StepKind;

use super::{FIXTURES, fixture, read_text};
use crate::formats::{Format, StepResult};

fn outcomes(text: &str, format: Format) -> Vec<StepResult> {
    read_text(text, Some(format)).unwrap().reading.results
}

fn codes(text: &str, format: Format) -> Vec<&'static str> {
    let doubts = read_text(text, Some(format)).unwrap().reading.doubts;
    doubts.iter().map(|doubt| doubt.code).collect()
}

#[test]
fn the_content_tells_each_format() {
    for (format, text) in FIXTURES {
        if format == Format::ValueTable {
            // A target and a number may be anything.
            assert!(read_text(text, None).is_err());
        } else {
            assert_eq!(read_text(text, None).unwrap().format, format);
        }
        let read = read_text(text, Some(format)).unwrap();
        assert_eq!(read.lines as usize, text.lines().count());
    }
}

#[test]
fn a_file_of_another_format_is_refused() {
    for (format, text) in FIXTURES {
        for (other, _) in FIXTURES {
            let is_same_reader =
                |format| matches!(format, Format::MetTable | Format::DbBenchReport);
            // Pairs of a name and a number are rates, too.
            let is_of_pairs = format == Format::ValueTable && other == Format::QpsTable;
            if other != format && !is_of_pairs && !(is_same_reader(other) && is_same_reader(format))
            {
                let result = read_text(text, Some(other));
                assert!(result.is_err(), "{} as {}", format.name(), other.name());
            }
        }
        assert!(read_text("", Some(format)).is_err());
        assert!(read_text("hello\nworld\n", Some(format)).is_err(), "{}", format.name());
    }
}

#[test]
fn sysbench_has_events_queries_and_times() {
    let outcome = &outcomes(fixture(Format::Sysbench), Format::Sysbench)[0];
    assert_eq!(outcome.ops["event"].ok, 10_223_613);
    assert_eq!(outcome.elapsed_ns, 330_008_300_000);
    let queries = outcome.queries_per_event.unwrap() * 10_223_613.0;
    assert_eq!(queries.round(), 163_577_375.0);
    let times = &outcome.times_us["event"];
    assert_eq!((times["mean"], times["p95"], times["max"]), (1290.0, 1340.0, 25_440.0));

    let facts = read_text(fixture(Format::Sysbench), None).unwrap().reading.facts;
    assert_eq!((facts.cpus, facts.clients, facts.rows), (Some(48), Some(40), Some(80_000_000)));
    assert_eq!(facts.warm_up_ns, 5_000_000_000);
}

#[test]
fn units_that_were_converted_twice_and_swapped_columns_are_named() {
    let text = fixture(Format::Sysbench);
    let in_thousands = text.replace("(495676.70 per sec.)", "(495.68 per sec.)");
    assert_eq!(codes(&in_thousands, Format::Sysbench), ["import::unit"]);
    let wrong = text.replace("(495676.70 per sec.)", "(395676.70 per sec.)");
    assert_eq!(codes(&wrong, Format::Sysbench), ["import::rate"]);

    let swapped = text.replace("25.44", "1.20").replace("1.34", "25.44");
    assert!(codes(&swapped, Format::Sysbench).contains(&"import::swapped"));
    let outcome = &outcomes(&swapped, Format::Sysbench)[0];
    assert!(!outcome.times_us["event"].contains_key("p95"));
}

#[test]
fn a_summary_that_is_missing_or_twice_is_found() {
    let text = fixture(Format::Sysbench);
    let head = text.split("SQL statistics").next().unwrap();
    assert_eq!(codes(head, Format::Sysbench), ["import::truncated"]);
    assert!(outcomes(head, Format::Sysbench)[0].failure.is_some());

    let refusal = read_text(&format!("{text}{text}"), Some(Format::Sysbench)).unwrap_err();
    assert!(refusal.to_string().contains("second"), "{refusal}");
}

#[test]
fn a_histogram_of_sysbench_is_a_distribution_and_its_intervals_are_seconds() {
    let text = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\
        [ 1s ] thds: 4 tps: 400.00 qps: 400.00 (r/w/o: 400.00/0.00/0.00) lat (ms,95%): 8.13 err/s: 0.00 reconn/s: 0.00\n\
        [ 2s ] thds: 4 tps: 600.00 qps: 600.00 (r/w/o: 600.00/0.00/0.00) lat (ms,95%): 8.13 err/s: 1.00 reconn/s: 0.00\n\
        Latency histogram (values are in milliseconds)\n\
               value  ------------- distribution ------------- count\n\
               0.500 |****************************************  900\n\
              10.000 |****                                      100\n \n\
        SQL statistics:\n\
            transactions:                        1000   (500.00 per sec.)\n\
            queries:                             1000   (500.00 per sec.)\n\
        General statistics:\n\
            total time:                          2.0001s\n\
            total number of events:              1000\n";
    let outcome = &outcomes(text, Format::Sysbench)[0];
    let times = &outcome.distributions["event.service"];
    assert_eq!((times[&500_000], times[&10_000_000]), (900, 100));
    let seconds: Vec<u64> = outcome.seconds.iter().map(|second| second.ok).collect();
    assert_eq!(seconds, [400, 600]);
}

#[test]
fn vmstat_leaves_out_the_mean_since_boot_and_header_rows() {
    let read = read_text(fixture(Format::Vmstat), None).unwrap();
    let host = read.reading.host.unwrap();
    assert_eq!(host.samples[0].switches, Some(318_450.0));
    assert_eq!(host.samples.len(), 53);
    assert_eq!(host.published.count, 56);
    let codes: Vec<&str> = read.reading.doubts.iter().map(|doubt| doubt.code).collect();
    assert_eq!(codes, ["import::since-boot", "import::header-rows"]);
}

#[test]
fn iostat_reads_the_named_device_and_counts_threads_that_are_off() {
    let read = read_text(fixture(Format::Iostat), None).unwrap();
    let host = read.reading.host.unwrap();
    let disk = host.samples[0].disk.unwrap();
    assert_eq!((disk.writes, disk.written_kb, disk.busy), (38.0, 164.0, Some(0.8)));
    assert_eq!(read.reading.facts.sampled_cpus, Some(96));
    assert_eq!(read.reading.facts.date.as_deref(), Some("2025-03-17"));

    let renamed = fixture(Format::Iostat).replace("md2 ", "md20");
    let doubts = read_text(&renamed, None).unwrap().reading.doubts;
    assert_eq!(doubts[0].code, "import::device");
}

#[test]
fn iibench_adds_what_32_bits_lost() {
    let outcome = &outcomes(fixture(Format::Iibench), Format::Iibench)[0];
    assert_eq!(outcome.ops["insert"].rows, 2_000_000);
    assert_eq!(outcome.buckets["insert"][2], 19_970);
    assert_eq!(outcome.seconds[0].rows, 67_100);

    let wrapping = "i_sec\tt_sec\ti_ips\tt_ips\ti_qps\tt_qps\tmax_i\tmax_q\tt_ins\tt_query\tretry_i\tretry_q\n\
        1.0\t1.0\t0\t0\t0\t0\t10\t0\t900000000\t0\t0\t0\n\
        1.0\t2.0\t0\t0\t0\t0\t10\t0\t1800000000\t0\t0\t0\n\
        1.0\t3.0\t0\t0\t0\t0\t10\t0\t-1994967296\t0\t0\t0\n\
        Totals: 3.0 secs, 766666666.7 rows/sec, 2300000000 rows, 0 insert retry, 0 query retry\n";
    assert_eq!(codes(wrapping, Format::Iibench), ["import::wrap"]);
    let falling = wrapping.replace("-1994967296", "5");
    assert_eq!(read_text(&falling, None).unwrap_err().line, Some(4));
}

#[test]
fn times_of_index_creation_are_steps() {
    let outcomes = outcomes(fixture(Format::Iibench), Format::Iibench);
    let steps: Vec<(&str, u64)> = outcomes[1..]
        .iter()
        .map(|outcome| (outcome.step.as_deref().unwrap(), outcome.elapsed_ns / 1_000_000_000))
        .collect();
    let expected = [
        ("create-all-with-explicit-inplace", 14),
        ("create-one-at-a-time-with-explicit-inplace", 17),
    ];
    assert_eq!(steps, expected);
    assert_eq!((outcomes[1].kind, outcomes[1].rows_before), (StepKind::Index, 2_000_000));
}

#[test]
fn pgbench_has_transactions_and_its_log_each_of_them() {
    let outcome = &outcomes(fixture(Format::Pgbench), Format::Pgbench)[0];
    assert_eq!(outcome.ops["transaction"].ok, 15_604);
    assert_eq!(outcome.seconds.len(), 3);
    assert_eq!(outcome.times_us["transaction"]["mean"], 1536.0);

    let log = &outcomes(fixture(Format::PgbenchLog), Format::PgbenchLog)[0];
    assert_eq!(log.ops["transaction"].ok, 120);
    assert_eq!(log.seconds.iter().map(|second| second.ok).sum::<u64>(), 120);
    assert_eq!(log.distributions["transaction.service"].values().sum::<u64>(), 120);

    let aggregate = &outcomes(fixture(Format::PgbenchAggregate), Format::PgbenchAggregate)[0];
    assert_eq!(aggregate.seconds.len(), 12);
    assert_eq!(aggregate.times_us["transaction"]["max"], 8011.0);
}

#[test]
fn the_lag_of_a_schedule_is_part_of_the_response_time() {
    let text = "0 1 5000 0 1700000000 100 4000\n0 2 skipped 0 1700000000 200 9000\n1 1 1000 0 1700000001 5 0\n";
    let log = &outcomes(text, Format::PgbenchLog)[0];
    assert_eq!(log.seconds[0].service_ns_max, 1_000_000);
    assert_eq!(log.seconds[0].response_ns_max, 5_000_000);
    assert_eq!((log.ops["transaction"].skipped, log.ops["transaction"].offered), (1, 3));
}

#[test]
fn db_bench_has_a_step_for_each_result() {
    let outcomes = outcomes(fixture(Format::DbBench), Format::DbBench);
    assert_eq!(outcomes[0].step.as_deref(), Some("overwrite"));
    assert_eq!((outcomes[0].kind, outcomes[0].metrics["ips"]), (StepKind::Load, 350_946.0));
    // The columns of the table of levels are found by their names.
    assert_eq!(outcomes[0].metrics["c_wsecs"], 0.14);
    assert_eq!(outcomes[0].metrics["c_csecs"], 0.10);
}

#[test]
fn hammerdb_has_orders_per_minute_and_times() {
    let outcome = &outcomes(fixture(Format::Hammerdb), Format::Hammerdb)[0];
    assert_eq!(outcome.metrics["qps"], 33_781.0 / 60.0);
    assert_eq!(outcome.times_us["new_order"]["p95"], 2456.0);
    assert_eq!(outcome.ops["new_order"].ok, 67_562);
}

#[test]
fn tables_have_values_of_targets_and_steps() {
    let rates = outcomes(fixture(Format::QpsTable), Format::QpsTable);
    let first = &rates[0];
    assert_eq!(first.target.as_deref(), Some("pg1023_o2nofp.x10a_wm4_c32r128"));
    assert_eq!(first.step.as_deref(), Some("hot-points.range100"));
    assert_eq!(first.metrics["qps"], 113_076.0);
    assert!(first.ops.is_empty());

    let metrics = outcomes(fixture(Format::MetTable), Format::MetTable);
    assert_eq!((metrics[0].kind, metrics[0].metrics["ips"]), (StepKind::Load, 139_860.0));
    let grouped = format!("{}-\n-\t-\n", fixture(Format::MetTable));
    assert_eq!(outcomes(&grouped, Format::MetTable).len(), metrics.len());
    let report = outcomes(fixture(Format::DbBenchReport), Format::DbBenchReport);
    assert_eq!(report[0].metrics["lsm_sz"], 20.0);
    assert!(!report[0].metrics.contains_key("rss"), "NA is no value");
}

#[test]
fn perf_stat_counts_events() {
    let events = read_text(fixture(Format::PerfStat), None).unwrap().reading.events;
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    let expected =
        ["perf.context-switches", "perf.cycles", "perf.instructions", "perf.task-clock_msec"];
    assert_eq!(names, expected);
}
