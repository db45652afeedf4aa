//! Causes between versions: the CPU of servers whose threads cannot be told apart, defaults that
//! changed, and steps that are too short.

use super::*;
use crate::compare::OWN_CPU;
use crate::explain::accounting::WhyUnexplained;

const CHEAP: &[(&str, f64)] = &[("op_client_cpu_us", 20.0), ("op_server_cpu_us", 75.0)];
const DEAR: &[(&str, f64)] = &[("op_client_cpu_us", 21.0), ("op_server_cpu_us", 110.0)];

/// MySQL 5.6 does not tell which of its threads serves a connection: only its process is known.
fn without_threads(mut figures: Figures, target: &str) -> Figures {
    for row in figures.rows.iter_mut().filter(|row| row.cell.target == target) {
        for name in ["op_server_cpu_us", "op_handover_us", "op_unexplained_us", OWN_CPU] {
            row.metrics.insert(name, None);
        }
    }
    figures
}

/// MySQL 5.6.14 against 8.0.33, `l.i0`: an operation takes 1.87 times as long, with 1.97 times the
/// CPU of the server.
fn of_releases(other_server_us: f64) -> Figures {
    let of = |server: f64, process: f64| {
        [
            ("op_client_cpu_us", 1.2),
            ("op_server_cpu_us", server),
            ("op_handover_us", 0.5),
            ("server_cpu_us_per_op", process),
        ]
    };
    repeated(&[
        cost("a.c", "l.i0", 4e6 / 9.6, &of(7.0, 8.0)),
        cost("b.c", "l.i0", 4e6 / 18.0, &of(other_server_us - 1.0, other_server_us)),
    ])
}

#[test]
fn the_servers_whole_process_is_a_cause_where_its_threads_cannot_be_told_apart() {
    for unknown in [["a.c"].as_slice(), &["b.c"], &["a.c", "b.c"]] {
        let mut figures = of_releases(15.8);
        for target in unknown {
            figures = without_threads(figures, target);
        }
        let changed = part(&figures);
        assert_eq!(changed.part, FindingKind::Cpu);
        assert_eq!(changed.detail, Some(Detail::WholeProcess));
        assert!(is_about(changed.us.base, 9.2) && is_about(changed.us.value, 17.0));
        assert!(is_about(changed.share, 7.8 / 8.4), "{changed:?}");

        let finding = only(&figures, FindingKind::Cpu);
        let case = changed_case(&figures);
        assert_eq!(case.without_threads, unknown);
        let server_us = case.server_cpu_us.unwrap();
        assert!(is_about(server_us.base, 8.0) && is_about(server_us.value, 15.8), "{server_us:?}");
        let mut evidence = finding.evidence.iter();
        assert!(evidence.any(|figure| figure.name == "CPU of the server's process"));
    }
}

#[test]
fn the_servers_whole_process_is_no_cause_unless_its_cpu_explains_the_time() {
    // 2.5 of 8.4 us.
    let figures = without_threads(of_releases(10.5), "a.c");
    assert_eq!(cause(&figures), Cause::Unexplained(WhyUnexplained::NotMeasured));
    // Where all threads are known, the process says nothing about an operation, and own CPU does.
    let mut figures = of_releases(15.8);
    for row in &mut figures.rows {
        row.metrics.insert("op_unexplained_us", None);
    }
    assert_ne!(part(&figures).detail, Some(Detail::WholeProcess));
}

#[test]
fn the_servers_whole_process_is_a_hidden_cost_where_throughput_shows_no_change() {
    let mut figures = without_threads(of_releases(15.8), "a.c");
    for row in &mut figures.rows {
        row.metrics.insert("ips", Some(400_000.0));
    }
    let finding = only(&figures, FindingKind::HiddenCost);
    let Statement::HiddenCost(hidden) = &finding.statement else {
        panic!("{finding:?}");
    };
    assert!(is_about(hidden.costs[0].ratio, 1.85), "{hidden:?}");
    assert_eq!(hidden.costs[0].case.without_threads, ["a.c"]);
}

/// MySQL 5.7.22 against 8.0.15, untouched: since 8.0, the binary log is on.
#[test]
fn a_default_that_changed_counts_like_a_declared_setting() {
    let of = |syncs: f64, fsync: f64| {
        [
            ("op_client_cpu_us", 20.0),
            ("op_server_cpu_us", 60.0),
            ("op_fsync_us", fsync),
            ("fsyncs_per_commit", syncs),
        ]
    };
    let mut figures = repeated(&[
        cost("a.c", "update-index", 40_000.0, &of(0.025, 5.0)),
        cost("b.c", "update-index", 8000.0, &of(1.05, 380.0)),
    ]);
    let mut comparison = differing(
        ("a.c", "5.7.22"),
        ("b.c", "8.0.15"),
        &[
            ("binlog_format", "ROW", "MIXED"),
            ("log_bin", "OFF", "ON"),
            ("sync_binlog", "0", "1"),
            ("tmp_table_size", "16777216", "33554432"),
        ],
    );
    for setting in &mut comparison.settings {
        setting.mark = DifferenceKind::Undeclared;
    }
    figures.settings.differences = vec![comparison];
    let Cause::FsyncsPerCommit { settings, .. } = cause(&figures) else {
        panic!("{:?}", cause(&figures));
    };
    let names: Vec<&str> = settings.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(names, ["log_bin", "sync_binlog"]);
    only(&figures, FindingKind::Fsyncs);
    let [(differences, _)] = &differences(&figures)[..] else {
        panic!("one change");
    };
    let [TargetDifference::Known { build: Some(build), implicit, undeclared, .. }] =
        &differences[..]
    else {
        panic!("{differences:?}");
    };
    assert_eq!((build.base.as_str(), build.target.as_str()), ("5.7.22", "8.0.15"));
    assert_eq!((implicit, *undeclared), (&settings, 2));
}

#[test]
fn a_cache_whose_default_changed_says_reads() {
    let of = |read: f64, kb: f64| {
        [("op_server_cpu_us", 60.0), ("op_read_us", read), ("own_read_kb_per_op", kb)]
    };
    let figures = repeated(&[
        cost("a.c", "qp100", 64_500.0, &of(0.0, 0.0)),
        cost("b.c", "qp100", 21_400.0, &of(125.0, 16.0)),
    ]);
    let mut figures = with_setting(figures, "innodb_buffer_pool_size", "8G", "16M");
    figures.settings.differences[0].settings[0].mark = DifferenceKind::Undeclared;
    let changed = part(&figures);
    assert_eq!(changed.part, FindingKind::Reads);
    assert_eq!(changed.settings[0].name, "innodb_buffer_pool_size");
}

#[test]
fn a_step_too_short_for_samples_stands_last_and_says_what_would_explain_it() {
    let mut figures = repeated(&[
        cost("a.c", "l.i0", 900_000.0, &[("op_client_cpu_us", 4.0)]),
        cost("b.c", "l.i0", 200_000.0, &[("op_client_cpu_us", 5.0)]),
        cost("a.c", "q100", 30_000.0, CHEAP),
        cost("b.c", "q100", 25_000.0, DEAR),
    ]);
    let remove_samples = |figures: &mut Figures, seconds: f64| {
        for row in figures.rows.iter_mut().filter(|row| row.step == "l.i0") {
            row.seconds = seconds;
            row.metrics.insert("op_unexplained_us", None);
        }
    };
    remove_samples(&mut figures, 0.2);
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Cpu, FindingKind::Unexplained]);
    assert!(findings[1].cause.unwrap().is_too_short);
    // A longer step lacks the parts for another reason.
    remove_samples(&mut figures, 20.0);
    assert_eq!(kinds(&found(&figures)), [FindingKind::Unexplained, FindingKind::Cpu]);
}
