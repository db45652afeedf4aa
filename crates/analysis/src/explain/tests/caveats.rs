//! Reasons to doubt a finding.

use super::super::caveats::InheritedDebt;
use super::super::statement::CountedCaveat;
use super::*;
use crate::figures::{ReadLimits, Sla};

const CHEAP: &[(&str, f64)] = &[
    ("op_client_cpu_us", 20.0),
    ("op_server_cpu_us", 75.0),
    ("own_cpu_us_per_op", 95.0),
    ("client_cpu_us_per_op", 20.0),
    ("server_cpu_us_per_op", 75.0),
];

const DEAR: &[(&str, f64)] = &[
    ("op_client_cpu_us", 20.0),
    ("op_server_cpu_us", 140.0),
    ("own_cpu_us_per_op", 160.0),
    ("client_cpu_us_per_op", 20.0),
    ("server_cpu_us_per_op", 140.0),
];

fn figures() -> Figures {
    repeated(&[cost("a.c", "q100", 30_000.0, CHEAP), cost("b.c", "q100", 20_000.0, DEAR)])
}

/// Changes the rows of figures; the second argument of `set` says that a row is the base's.
fn changed(mut figures: Figures, set: impl Fn(&mut Row, bool)) -> Figures {
    for row in &mut figures.rows {
        let is_base = row.cell.target == "a.c";
        set(row, is_base);
    }
    figures
}

fn pair(base: f64, value: f64) -> Pair {
    Pair { base, value }
}

fn set_metric(name: &'static str, base: f64, other: f64) -> impl Fn(&mut Row, bool) {
    move |row, is_base| {
        row.metrics.insert(name, Some(if is_base { base } else { other }));
    }
}

#[test]
fn repeats_that_took_turns_have_no_caveat() {
    only(&figures(), FindingKind::Cpu);
    assert_eq!(caveats(&figures()), []);
}

#[test]
fn repeats_that_did_not_take_turns_or_are_of_other_runs_are_doubted() {
    let mut figures = figures();
    figures.rows.sort_by(|a, b| a.cell.target.cmp(&b.cell.target));
    assert_eq!(caveats(&figures), [Caveat::NoTurns]);
    // Each run has one repeat of one target.
    for row in &mut figures.rows {
        row.run = 2 * row.cell.repeat as usize + usize::from(row.cell.target == "b.c");
    }
    assert_eq!(caveats(&figures), [Caveat::OtherRuns]);
}

#[test]
fn neighbors_steal_swap_and_memory_are_caveats_with_both_figures() {
    let figures = changed(figures(), |row, is_base| {
        let (steal, pages, pressure) = if is_base { (0.0, 0.0, 0.0) } else { (2.0, 50.0, 2e8) };
        row.metrics.insert("others%", Some(if is_base { 5.0 } else { 49.0 }));
        row.metrics.insert("steal%", Some(steal));
        let all = |value: f64| 100.0 * value;
        row.host_sums = BTreeMap::from([
            ("swap_in_page_count".to_owned(), all(pages)),
            ("swap_out_page_count".to_owned(), all(0.0)),
            ("pressure_memory_some_ns".to_owned(), all(pressure)),
        ]);
    });
    only(&figures, FindingKind::Cpu);
    let busy = Caveat::BusyHost { others: Some(49.0), waiting: None };
    let expected = [
        busy,
        Caveat::Steal(pair(0.0, 2.0)),
        Caveat::Swap(pair(0.0, 25_000.0)),
        Caveat::MemoryPressure(pair(0.0, 20.0)),
    ];
    assert_eq!(caveats(&figures), expected);
}

#[test]
fn a_wait_is_no_share_of_an_operation_without_a_time() {
    let figures = changed(figures(), |row, is_base| {
        row.metrics.insert("op_time_us", Some(if is_base { 0.0 } else { 50.0 }));
        row.metrics.insert("op_cpu_wait_us", Some(25.0));
    });
    let is_busy = |caveat: &Caveat| matches!(caveat, Caveat::BusyHost { .. });
    assert!(!caveats(&figures).iter().any(is_busy), "{:?}", caveats(&figures));
}

/// Returns the case of CPU with writes whose rate was met or missed by the base and by the target.
fn with_write_rates(met: [bool; 2]) -> Figures {
    let mut figures = figures();
    for row in &mut figures.rows {
        let met = met[usize::from(row.cell.target != "a.c")];
        row.sla = Some(Sla {
            kind: "insert".to_owned(),
            target: 4000.0,
            achieved: if met { 4000.0 } else { 3000.0 },
            met,
            ..Sla::default()
        });
    }
    figures
}

#[test]
fn a_target_write_rate_that_one_missed_is_a_caveat() {
    for (met, is_base) in [([true, false], false), ([false, true], true)] {
        let expected = [Caveat::MissedWrites { is_base }];
        assert_eq!(caveats(&with_write_rates(met)), expected);
    }
}

#[test]
fn no_cause_is_named_where_both_missed_the_target_write_rate() {
    let figures = with_write_rates([false; 2]);
    assert_eq!(cause(&figures), Cause::BothMissedWrites);
    assert!(!differences(&figures)[0].1);
    assert_eq!(caveats(&figures), []);
}

#[test]
fn the_debt_of_the_step_before_is_a_caveat() {
    let mut figures = figures();
    let mut rows = Vec::new();
    for row in figures.rows {
        let dead = if row.cell.target == "a.c" { 200_000.0 } else { 5_000_000.0 };
        rows.push(Row {
            step: "l.i1".to_owned(),
            reported: false,
            metrics: BTreeMap::from([("debt_dead_rows", Some(dead))]),
            ..row.clone()
        });
        rows.push(row);
    }
    figures.rows = rows;
    let debt = |could_be_alone| {
        Caveat::Debt(InheritedDebt {
            step: "l.i1".to_owned(),
            what: "dead rows",
            left: pair(200_000.0, 5_000_000.0),
            could_be_alone,
        })
    };
    assert_eq!(caveats(&figures), [debt(true)]);
}

/// `update-zipf` of MySQL 8.0 took 11 times the CPU of 9.7, since it purged what `update-one` had
/// left.
#[test]
fn a_hidden_cost_names_the_step_that_left_the_work() {
    let cpu = |us| [("op_client_cpu_us", us)];
    let (cheap, dear) = (cpu(36.9), cpu(425.0));
    let mut figures = repeated(&[
        cost("a.c", "update-index", 5_000.0, &cheap),
        cost("b.c", "update-index", 5_000.0, &dear),
    ]);
    let mut rows = Vec::new();
    for (number, row) in std::mem::take(&mut figures.rows).into_iter().enumerate() {
        let left = if row.cell.target == "a.c" { 10.0 } else { 60_000.0 };
        rows.push(Row {
            step: "update-one".to_owned(),
            reported: false,
            metrics: BTreeMap::from([("debt_history_list", Some(left))]),
            ..row.clone()
        });
        // Throughput is too noisy to say.
        let rate = 5_000.0 * (1.0 + 0.2 * (number as f64).sin());
        let mut noisy = row;
        noisy.metrics.insert("qps", Some(rate));
        rows.push(noisy);
    }
    figures.rows = rows;

    let finding = only(&figures, FindingKind::HiddenCost);
    let [CountedCaveat { caveat: Caveat::Debt(debt), .. }] = finding.caveats.as_slice() else {
        panic!("{:?}", finding.caveats);
    };
    assert_eq!((debt.step.as_str(), debt.what), ("update-one", "transactions to purge"));
    assert_eq!(debt.left, pair(10.0, 60_000.0));
}

#[test]
fn different_initial_trees_are_a_caveat() {
    let with = |files: f64| {
        changed(figures(), move |row, is_base| {
            let files = if is_base { 0.0 } else { files };
            row.metrics.insert("l0_files_begin", Some(files));
            row.metrics.insert("levels_begin", Some(4.0));
        })
    };
    assert!(matches!(caveats(&with(3.0))[..], [Caveat::Trees(_)]));
    assert_eq!(caveats(&with(0.0)), []);
}

#[test]
fn a_busy_client_is_one_caveat() {
    let figures = changed(figures(), |row, is_base| {
        if !is_base {
            row.warnings = ["client::busy", "settle::not-over"]
                .map(|code| record::Warning { code: code.to_owned(), text: String::new() })
                .to_vec();
        }
    });
    let expected = [
        Caveat::BusyClient { share: None },
        Caveat::Warnings { base: Vec::new(), target: vec!["settle::not-over".to_owned()] },
    ];
    assert_eq!(caveats(&figures), expected);
}

#[test]
fn a_busy_client_host_is_a_caveat_and_clients_elsewhere_are_never_too_large() {
    let warned = |row: &mut Row, is_base: bool| {
        if !is_base {
            let codes = ["client::busy", "client::host-busy"];
            row.warnings = codes.map(|code| record::Warning::new(code, "")).into();
        }
        // Rank 0 may not see the server's CPU.
        row.metrics.remove("server_cpu_us_per_op");
    };
    assert_eq!(caveats(&changed(figures(), warned)), [Caveat::BusyClientHost]);
    let large = |row: &mut Row, is_base| {
        set_metric("client_cpu_us_per_op", 50.0, 50.0)(row, is_base);
        set_metric("server_cpu_us_per_op", 30.0, 30.0)(row, is_base);
    };
    assert_eq!(caveats(&changed(figures(), large)), [Caveat::LargeClient]);
    let elsewhere = changed(figures(), |row, is_base| {
        large(row, is_base);
        row.client_hosts = vec![crate::figures::ClientHostFigures::default()];
    });
    assert_eq!(caveats(&elsewhere), []);
}

#[test]
fn processors_that_ran_slower_speak_against_what_explains_a_loss() {
    let with =
        |base: f64, other: f64| caveats(&changed(figures(), set_metric("cpu_mhz", base, other)));
    let slower = Caveat::Frequency(pair(3400.0, 2720.0));
    assert_eq!(with(3400.0, 2720.0), [slower]);
    // By less than chance and rounding, and the other way.
    assert_eq!(with(3400.0, 3300.0), []);
    assert_eq!(with(2720.0, 3400.0), []);
    // Threads that wait are not slow because of a frequency that waiting lowers.
    let waits = changed(figures(), |row, is_base| {
        set_metric("cpu_mhz", 3400.0, 2720.0)(row, is_base);
        row.metrics.insert("own_cpu_us_per_op", Some(10.0));
    });
    assert_eq!(caveats(&waits), []);
    // A setting is then not all that makes the difference.
    let is_sure = |base: f64| {
        let figures = with_setting(figures(), "jit", "on", "off");
        differences(&changed(figures, set_metric("cpu_mhz", base, 2720.0)))[0].1
    };
    assert!(is_sure(2720.0) && !is_sure(3400.0));
}

#[test]
fn the_frequency_is_a_caveat_of_own_cpu_too() {
    let with = |base: f64| {
        changed(figures(), move |row, is_base| {
            set_metric("cpu_mhz", base, 2720.0)(row, is_base);
            row.metrics.insert("qps", Some(20_000.0 + f64::from(row.cell.repeat)));
        })
    };
    only(&with(2720.0), FindingKind::HiddenCost);
    assert_eq!(caveats(&with(2720.0)), []);
    assert_eq!(caveats(&with(3400.0)).len(), 1);
}

#[test]
fn a_disk_that_was_slower_before_the_cells_is_a_caveat_of_fsyncs() {
    let of = |fsync: f64| [("op_fsync_us", fsync), ("fsyncs_per_commit", 1.0)];
    let (base, other) = (of(100.0), of(400.0));
    let commits =
        || repeated(&[cost("a.c", "l.i1", 30_000.0, &base), cost("b.c", "l.i1", 9000.0, &other)]);
    let with = |figures: Figures, base: f64, other: f64| {
        caveats(&changed(figures, move |row, is_base| {
            row.fsync_us = Some(if is_base { base } else { other });
        }))
    };
    only(&commits(), FindingKind::Fsyncs);
    let slower = Caveat::FsyncBefore(pair(180.0, 900.0));
    assert_eq!(with(commits(), 180.0, 900.0), [slower]);
    // The fsyncs of one disk vary, a slower disk makes nothing faster, and a step without fsyncs
    // does not depend on it.
    assert_eq!(with(commits(), 180.0, 330.0), []);
    assert_eq!(with(commits(), 900.0, 180.0), []);
    assert_eq!(with(figures(), 180.0, 900.0), []);
}

#[test]
fn the_sizes_of_reads_are_a_caveat_where_reads_are_the_cause() {
    let of = |us: f64, kb: f64| {
        [("op_read_us", us), ("own_read_kb_per_op", 8.0), ("rpq", 8.0 / kb), ("rkbpq", 8.0)]
    };
    let with = |asked: Option<f64>, kb: f64| {
        let figures = repeated(&[
            cost("a.c", "q100", 30_000.0, &of(100.0, 80.0)),
            cost("b.c", "q100", 15_000.0, &of(230.0, kb)),
        ]);
        changed(figures, move |row, is_base| {
            let asked = asked.filter(|_| !is_base);
            row.read_limits = Some(ReadLimits {
                max_sectors_kb: 128.0,
                read_ahead_kb: 256.0,
                compaction: asked.map(|kb| ("readahead_size".to_owned(), kb)),
            });
        })
    };
    only(&with(None, 20.0), FindingKind::Reads);
    let large = caveats(&with(Some(2048.0), 20.0));
    let [Caveat::ReadAhead(large)] = &large[..] else {
        panic!("{large:?}");
    };
    assert!(!large.of_base && large.of_target);
    assert_eq!((large.kb, large.max_sectors_kb), (2048.0, 128.0));
    assert!(is_about(large.read_kb.unwrap().value, 20.0), "{large:?}");
    // What the disk takes, or nothing, is asked for.
    for asked in [Some(128.0), None] {
        let sizes = caveats(&with(asked, 20.0));
        let [Caveat::ReadSizes { kb, read_ahead_kb, .. }] = &sizes[..] else {
            panic!("{sizes:?}");
        };
        assert!(is_about(kb.base, 80.0) && *read_ahead_kb == 256.0, "{sizes:?}");
    }
    assert_eq!(caveats(&with(None, 79.0)), []);
    // What does not read has nothing to do with it.
    let cpu = changed(figures(), |row, _| {
        row.read_limits = Some(ReadLimits {
            max_sectors_kb: 128.0,
            compaction: Some(("readahead_size".to_owned(), 2048.0)),
            ..ReadLimits::default()
        });
    });
    assert_eq!(caveats(&cpu), []);
}
