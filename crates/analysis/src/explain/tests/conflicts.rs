//! Retries, waits for locks on data and deadlocks: when they are a cause, and when only a fact.

use super::*;
use crate::explain::statement::{Conflict, ConflictCount, HiddenCost, RetryCause};
use crate::figures::{SessionState, Waits};

/// A transaction of 100 us without conflicts, at 40,000 per second.
const ALONE: &[(&str, f64)] = &[
    ("op_client_cpu_us", 10.0),
    ("op_server_cpu_us", 50.0),
    ("op_handover_us", 20.0),
    ("op_lock_us", 20.0),
    ("retries_per_op", 0.02),
    ("retried_us_per_op", 1.5),
];

fn transfers(rate: f64, metrics: &[(&'static str, f64)]) -> Figures {
    let mut figures = repeated(&[
        cost("a.c", "transfer", 40_000.0, ALONE),
        cost("b.c", "transfer", rate, metrics),
    ]);
    for row in &mut figures.rows {
        row.main_op = Some("transfer".to_owned());
    }
    figures
}

/// Half of the attempts fail, and each repeats 70 us of work. No part of the time grows by as much as
/// 40% of the change but CPU, which follows from the attempts.
#[test]
fn attempts_that_fail_are_the_cause_of_what_their_repetition_costs() {
    let metrics = [
        ("op_client_cpu_us", 17.0),
        ("op_server_cpu_us", 80.0),
        ("op_handover_us", 35.0),
        ("op_lock_us", 45.0),
        ("retries_per_op", 1.0),
        ("retried_us_per_op", 70.0),
    ];
    let figures = transfers(4e6 / 177.0, &metrics);
    let Cause::Retries(RetryCause { count, share }) = cause(&figures) else {
        panic!("{:?}", cause(&figures));
    };
    assert!(is_about(count.base, 0.02) && is_about(count.value, 1.0), "{count:?}");
    // 0.98 more attempts, of 72.5 us on average, of 77 us.
    assert!((share - 0.98 * 72.5 / 77.0).abs() < 0.05, "{share}");

    let finding = only(&figures, FindingKind::Retries);
    let causes: Vec<&str> = finding
        .evidence
        .iter()
        .filter(|figure| figure.is_cause)
        .map(|figure| figure.name.as_str())
        .collect();
    assert_eq!(causes, ["retries"]);
    let conflicts = changed_case(&figures).conflicts;
    assert!(matches!(conflicts[..], [ConflictCount { conflict: Conflict::Retries, .. }]));
}

/// The same attempts fail on a target whose work takes longer.
#[test]
fn attempts_that_fail_as_often_and_take_longer_are_not_the_cause() {
    let base = [
        ("op_client_cpu_us", 10.0),
        ("op_server_cpu_us", 90.0),
        ("retries_per_op", 0.9),
        ("retried_us_per_op", 47.0),
    ];
    let target = [
        ("op_client_cpu_us", 10.0),
        ("op_server_cpu_us", 190.0),
        // A little more often, which the repeats show.
        ("retries_per_op", 1.05),
        ("retried_us_per_op", 100.0),
    ];
    let figures = repeated(&[
        cost("a.c", "transfer", 40_000.0, &base),
        cost("b.c", "transfer", 20_000.0, &target),
    ]);
    assert_eq!(part(&figures).part, FindingKind::Cpu);
    let conflicts = changed_case(&figures).conflicts;
    assert!(matches!(conflicts[..], [ConflictCount { conflict: Conflict::Retries, .. }]));
}

#[test]
fn retries_that_vary_from_repeat_to_repeat_are_neither_cause_nor_fact() {
    let metrics = [
        ("op_client_cpu_us", 17.0),
        ("op_server_cpu_us", 123.0),
        ("op_handover_us", 20.0),
        ("op_lock_us", 20.0),
        ("retries_per_op", 0.02),
        ("retried_us_per_op", 1.5),
    ];
    let mut figures = transfers(4e6 / 180.0, &metrics);
    let retries = [0.01, 0.6, 0.02, 1.4, 0.03];
    for row in figures.rows.iter_mut().filter(|row| row.cell.target == "b.c") {
        let count = retries[row.cell.repeat as usize - 1];
        row.metrics.insert("retries_per_op", Some(count));
        row.metrics.insert("retried_us_per_op", Some(70.0 * count));
    }
    assert_eq!(part(&figures).part, FindingKind::Cpu);
    assert_eq!(changed_case(&figures).conflicts, []);
}

/// Records of before format 1.13 have no time of failed attempts.
#[test]
fn retries_whose_time_was_not_measured_are_a_fact() {
    let metrics = [
        ("op_client_cpu_us", 17.0),
        ("op_server_cpu_us", 120.0),
        ("op_handover_us", 35.0),
        ("op_lock_us", 45.0),
        ("retries_per_op", 1.0),
    ];
    let mut figures = transfers(4e6 / 217.0, &metrics);
    for row in &mut figures.rows {
        row.metrics.insert("retried_us_per_op", None);
    }
    assert_eq!(part(&figures).part, FindingKind::Cpu);
    assert_eq!(changed_case(&figures).conflicts.len(), 1);
}

#[test]
fn waits_for_locks_on_data_are_told_from_other_waits_by_their_time() {
    let metrics = |waits: f64, us: f64| {
        [
            ("op_client_cpu_us", 10.0),
            ("op_server_cpu_us", 50.0),
            ("op_lock_us", 140.0),
            ("lock_waits_per_op", waits),
            ("lock_wait_us_per_op", us),
        ]
    };
    let found_detail = |us: f64| {
        let (base, target) = (metrics(0.01, 2.0), metrics(0.4, us));
        let mut base = base.to_vec();
        base[2] = ("op_lock_us", 20.0);
        let figures = repeated(&[
            cost("a.c", "transfer", 50_000.0, &base),
            cost("b.c", "transfer", 20_000.0, &target),
        ]);
        let conflicts = changed_case(&figures).conflicts;
        assert!(matches!(conflicts[..], [ConflictCount { conflict: Conflict::LockWaits, .. }]));
        part(&figures).detail
    };
    assert_eq!(found_detail(118.0), Some(Detail::LocksOnData));
    // The others wait for a log, say.
    assert_eq!(found_detail(20.0), None);
}

/// PostgreSQL counts no waits for locks, but names them.
#[test]
fn waits_for_locks_on_data_are_told_from_other_waits_by_their_name() {
    let of =
        |lock: f64| [("op_client_cpu_us", 10.0), ("op_server_cpu_us", 50.0), ("op_lock_us", lock)];
    let found_detail = |name: &str| {
        let (base, target) = (of(20.0), of(140.0));
        let mut figures = repeated(&[
            cost("a.c", "update-index", 50_000.0, &base),
            cost("b.c", "update-index", 20_000.0, &target),
        ]);
        for row in &mut figures.rows {
            let us = row.metric("op_lock_us").unwrap();
            let rate = row.metric("qps").unwrap();
            let state = SessionState {
                name: name.to_owned(),
                sightings: Some(1000.0 * us * rate / 1e6),
                percent: us,
                us_per_op: Some(us),
            };
            row.waits.push(Waits { samples: 1000.0, states: vec![state], ..Waits::default() });
        }
        part(&figures).detail
    };
    assert_eq!(found_detail("Lock:transactionid"), Some(Detail::LocksOnData));
    assert_eq!(found_detail("LWLock:WALWrite"), None);
}

#[test]
fn own_cpu_that_retries_repeat_is_named_by_their_number() {
    let hidden = |retries: f64| -> HiddenCost {
        let of = |cpu: f64, retries: f64| [("own_cpu_us_per_op", cpu), ("retries_per_op", retries)];
        let (base, target) = (of(100.0, 0.02), of(150.0, retries));
        let figures = repeated(&[
            cost("a.c", "transfer", 5000.0, &base),
            cost("b.c", "transfer", 5000.0, &target),
        ]);
        only(&figures, FindingKind::HiddenCost);
        let mut hidden = explained(&figures, |explanation| match &explanation.statement {
            Statement::HiddenCost(hidden) => Some(hidden.clone()),
            _ => None,
        });
        hidden.remove(0)
    };
    let repeated_work = hidden(0.5);
    assert!(repeated_work.retries.is_some_and(|count| is_about(count.value, 0.5)));
    // Too few for half as much CPU again.
    let other_work = hidden(0.1);
    assert_eq!((other_work.retries, other_work.conflicts.len()), (None, 1));
}
