//! Response times that changed at a requested rate, where throughput is the same whatever they are.

use super::*;
use crate::explain::statement::{ResponseChange, WhyUnexplained};
use crate::figures::Percentiles;

/// A transaction without waits.
const QUICK: &[(&str, f64)] = &[
    ("op_client_cpu_us", 50.0),
    ("op_server_cpu_us", 300.0),
    ("op_fsync_us", 5.0),
    ("op_lock_us", 5.0),
    ("fsyncs_per_commit", 0.02),
];

/// Returns figures of targets that kept a rate of 200 per second. Clients pause between transactions, so
/// the time of one is what its parts add up to, and so is the response time.
fn at_rate(base: &[(&'static str, f64)], target: &[(&'static str, f64)]) -> Figures {
    let mut figures = repeated(&[
        cost("a.c", "update-index", 200.0, base),
        cost("b.c", "update-index", 200.0, target),
    ]);
    for row in &mut figures.rows {
        // The generator keeps the rate.
        row.metrics.insert("qps", Some(200.0));

        let parts = row.metrics.iter().filter(|(name, _)| name.starts_with("op_"));
        let is_part = |name: &str| name != "op_time_us" && name != "op_unexplained_us";
        let us: f64 = parts.filter(|(name, _)| is_part(name)).filter_map(|(_, us)| *us).sum();
        row.metrics.insert("op_time_us", Some(us));
        row.metrics.insert("op_unexplained_us", Some(0.0));

        let operations = row.ops.get_mut("event").unwrap();
        operations.scheduled = true;
        operations.response_us = Percentiles { mean: us, p99: 3.0 * us, ..Percentiles::default() };
    }
    figures
}

fn with(changed: &[(&'static str, f64)]) -> Vec<(&'static str, f64)> {
    let mut metrics = QUICK.to_vec();
    metrics.retain(|(name, _)| changed.iter().all(|(other, _)| other != name));
    metrics.extend(changed);
    metrics
}

/// Returns the changes of response times.
fn response_changes(figures: &Figures) -> Vec<ResponseChange> {
    explained(figures, |explanation| match &explanation.statement {
        Statement::Response(response) => Some(response.clone()),
        _ => None,
    })
}

#[test]
fn fsyncs_that_begin_are_the_cause_of_longer_responses_at_the_same_rate() {
    let target = with(&[("op_fsync_us", 1500.0), ("fsyncs_per_commit", 1.0)]);
    let figures = with_setting(at_rate(QUICK, &target), "synchronous_commit", "off", "on");
    let finding = only(&figures, FindingKind::Response);
    let named = finding.evidence.iter().filter(|figure| figure.is_cause);
    let named: Vec<&str> = named.map(|figure| figure.name.as_str()).collect();
    assert_eq!(named, ["response time, mean", "response time, p99", "fsyncs"]);

    let [ResponseChange { times, is_noisy, speed }] = &response_changes(&figures)[..] else {
        panic!("{finding:#?}");
    };
    assert!(is_about(times[0].ratio, 1855.0 / 360.0) && times.len() == 2, "{times:?}");
    assert!(matches!(speed.cause, Cause::FsyncsPerCommit { .. }), "{:?}", speed.cause);
    assert!(speed.cases[0].is_slower() && speed.is_sure && !is_noisy);
}

#[test]
fn locks_and_retries_are_causes_of_longer_responses_as_of_lower_throughput() {
    let cause_of = |changed: &[(&'static str, f64)]| {
        let base = with(&[
            ("lock_wait_us_per_op", 2.0),
            ("retries_per_op", 0.02),
            ("retried_us_per_op", 8.0),
        ]);
        let mut target = base.clone();
        target.retain(|(name, _)| changed.iter().all(|(other, _)| other != name));
        target.extend(changed);
        response_changes(&at_rate(&base, &target)).remove(0).speed.cause
    };
    let locks = cause_of(&[("op_lock_us", 900.0), ("lock_wait_us_per_op", 850.0)]);
    let Cause::Part(PartOfTime { part: FindingKind::Locks, detail, .. }) = locks else {
        panic!("{locks:?}");
    };
    assert_eq!(detail, Some(Detail::LocksOnData));

    let retries = cause_of(&[
        ("op_server_cpu_us", 600.0),
        ("retries_per_op", 1.0),
        ("retried_us_per_op", 310.0),
    ]);
    assert!(matches!(retries, Cause::Retries(_)), "{retries:?}");
}

#[test]
fn steps_whose_responses_take_longer_for_other_reasons_are_findings_of_their_own() {
    let fsyncs = with(&[("op_fsync_us", 1500.0), ("fsyncs_per_commit", 1.0)]);
    let mut figures = at_rate(QUICK, &fsyncs);
    let mut of_cpu = at_rate(QUICK, &with(&[("op_server_cpu_us", 900.0)]));
    for row in &mut of_cpu.rows {
        row.step = "update-zipf".to_owned();
    }
    figures.rows.extend(of_cpu.rows);

    let changes = response_changes(&figures);
    let mut kinds: Vec<FindingKind> =
        changes.iter().map(|change| change.speed.cause.kind()).collect();
    kinds.sort_by_key(|kind| *kind == FindingKind::Cpu);
    assert_eq!(kinds, [FindingKind::Fsyncs, FindingKind::Cpu]);
}

/// Rare stalls move the 99th percentile, and hardly the mean.
#[test]
fn a_percentile_that_changed_alone_is_told_and_has_no_cause() {
    let mut figures = at_rate(QUICK, QUICK);
    for row in figures.rows.iter_mut().filter(|row| row.cell.target == "b.c") {
        row.ops.get_mut("event").unwrap().response_us.p99 *= 4.0;
    }
    let ResponseChange { times, speed, .. } = response_changes(&figures).remove(0);
    assert_eq!(times.len(), 1);
    assert_eq!(
        (times[0].metric, &speed.cause),
        ("response_p99", &Cause::Unexplained(WhyUnexplained::NotShown))
    );
}

#[test]
fn a_setting_is_without_effect_at_a_rate_only_if_responses_are_equal_too() {
    let figures = with_setting(at_rate(QUICK, QUICK), "jit", "on", "off");
    only(&figures, FindingKind::NoEffect);

    let mut noisy = figures;
    let factors = [0.3, 3.0, 0.5, 2.0, 1.0];
    for row in noisy.rows.iter_mut().filter(|row| row.cell.target == "b.c") {
        let times = &mut row.ops.get_mut("event").unwrap().response_us;
        times.mean *= factors[row.cell.repeat as usize - 1];
    }
    assert_eq!(kinds(&found(&noisy)), []);
}

/// Without a schedule, response times follow from throughput.
#[test]
fn response_times_of_a_closed_loop_are_no_finding() {
    let target = with(&[("op_fsync_us", 1500.0), ("fsyncs_per_commit", 1.0)]);
    let mut figures = at_rate(QUICK, &target);
    for row in &mut figures.rows {
        row.ops.get_mut("event").unwrap().scheduled = false;
    }
    assert_eq!(response_changes(&figures), []);
}
