//! Causes that are named, and figures that look like causes and are not.

use record::StepProfile;
use words::Stacks;

use super::*;
use crate::explain::gap::Cost;
use crate::explain::statement::{CostGap, FsyncCount, StallReason, WhyUnexplained};
use crate::figures::ProfiledStep;
use crate::figures::{ConcurrentChange, Lsm, Quality, SessionState, Shift, Sla, Stall, Waits};

/// A query of 133 us at 30,000 per second.
const CACHED: &[(&str, f64)] =
    &[("op_client_cpu_us", 20.0), ("op_server_cpu_us", 75.0), ("op_handover_us", 35.0)];

/// A query of 160 us at 25,000 per second: 19 us more in the server, 1 us more in the client.
const DEAR: &[(&str, f64)] =
    &[("op_client_cpu_us", 21.0), ("op_server_cpu_us", 94.0), ("op_handover_us", 40.0)];

fn reads(base: &[(&'static str, f64)], other: (f64, &[(&'static str, f64)])) -> Figures {
    repeated(&[cost("a.c", "q100", 30_000.0, base), cost("b.c", "q100", other.0, other.1)])
}

#[test]
fn equal_targets_give_no_finding() {
    let costs = [cost("a.c", "q100", 30_000.0, CACHED), cost("b.c", "q100", 30_000.0, CACHED)];
    assert_eq!(found(&single(&costs)), []);
    assert_eq!(found(&repeated(&costs)), []);
}

#[test]
fn cpu_is_a_cause_with_its_side_and_its_share() {
    let figures = with_setting(reads(CACHED, (25_000.0, DEAR)), "jit", "on", "off");
    let changed = part(&figures);
    assert_eq!(changed.part, FindingKind::Cpu);
    assert_eq!(changed.detail, Some(Detail::Server));
    assert!(is_about(changed.share, 0.75), "{changed:?}");
    assert!(is_about(changed.us.base, 95.0) && is_about(changed.us.value, 115.0));
    assert!(differences(&figures)[0].1, "the setting makes the difference");
    let finding = only(&figures, FindingKind::Cpu);
    let names: Vec<&str> = finding.evidence.iter().map(|it| it.name.as_str()).collect();
    assert!(
        names.starts_with(&["throughput"]) && names.contains(&"server CPU of the connections"),
        "{names:?}"
    );
}

#[test]
fn the_function_that_a_profile_blames_is_named() {
    let mut figures = reads(CACHED, (25_000.0, DEAR));
    for row in &mut figures.rows {
        let cpu = row.metric("op_server_cpu_us");
        row.metrics.insert("server_cpu_us_per_op", cpu);
    }
    for (target, range) in [("a.c", 10), ("b.c", 900)] {
        let mut row = figures.rows.iter().find(|row| row.cell.target == target).cloned().unwrap();
        row.cell.kind = words::CellKind::Profiled;
        let mut stacks = Stacks::default();
        stacks.add(["db", "plan", "range"], range);
        stacks.add(["db", "plan"], 500);
        stacks.add(["db", "scan"], 4_000);
        figures.profiled.push(ProfiledStep {
            profile: StepProfile { samples: stacks.total(), ..StepProfile::default() },
            row,
            stacks,
        });
    }
    let function = changed_case(&figures).function.unwrap();
    assert_eq!((function.name.as_str(), function.caller.as_deref()), ("range", Some("plan")));
    assert!(function.difference_us > 0.0, "{function:?}");
}

#[test]
fn the_wait_that_changed_most_is_named_unless_others_work_at_a_rate() {
    let of = |fsync_us: f64| {
        [("op_client_cpu_us", 20.0), ("op_server_cpu_us", 60.0), ("op_fsync_us", fsync_us)]
    };
    let mut figures = repeated(&[
        cost("a.c", "update-index", 40_000.0, &of(2.0)),
        cost("b.c", "update-index", 15_000.0, &of(150.0)),
    ]);
    for row in &mut figures.rows {
        let fsync_us = row.metric("op_fsync_us").unwrap();
        let qps = row.metric("qps").unwrap();
        let mut waits = Waits { samples: 1000.0, ..Waits::default() };
        for (name, us) in [("running", 60.0), ("IO:WALSync", fsync_us), ("Lock:tuple", 1.0)] {
            waits.states.push(SessionState {
                name: name.to_owned(),
                sightings: Some(waits.samples * us * qps / 1e6),
                percent: us,
                us_per_op: Some(us),
            });
        }
        row.waits.push(waits);
    }
    let finding = only(&figures, FindingKind::Fsyncs);
    let wait = changed_case(&figures).wait.unwrap();
    assert_eq!(wait.name, "IO:WALSync");
    assert!(is_about(wait.time.difference_us, 148.0), "{wait:?}");
    let mut evidence = finding.evidence.iter();
    assert!(evidence.any(|it| it.name == "sessions in `IO:WALSync`"));

    let mut of_library = figures.clone();
    for row in &mut of_library.rows {
        "rocksdb".clone_into(&mut row.engine);
    }
    let finding_of_library = only(&of_library, FindingKind::Fsyncs);
    let mut evidence_of_library = finding_of_library.evidence.iter();
    assert!(evidence_of_library.any(|it| it.name == "clients in `IO:WALSync`"));

    for row in &mut figures.rows {
        row.sla = Some(Sla { kind: "insert".to_owned(), met: true, ..Sla::default() });
    }
    assert_eq!(changed_case(&figures).wait, None);
}

#[test]
fn an_embedded_engine_works_on_the_client_threads() {
    let (base, other) = ([("op_client_cpu_us", 100.0)], [("op_client_cpu_us", 200.0)]);
    let changed = part(&reads(&base, (15_000.0, &other)));
    assert_eq!(changed.detail, Some(Detail::ClientThreads));
}

/// PostgreSQL, `synchronous_commit` off -> on: bytes written and context switches grow with the
/// commits that wait.
#[test]
fn synchronous_commit_says_fsync() {
    let of = |syncs: f64, fsync: f64, kb: f64, switches: f64| {
        [
            ("op_client_cpu_us", 20.0),
            ("op_server_cpu_us", 60.0 + switches),
            ("op_fsync_us", fsync),
            ("op_write_us", kb),
            ("log_fsyncs_per_commit", syncs),
            ("wKB/o", kb),
            ("own_write_kb_per_op", kb),
            ("cspq", switches),
            ("cpupq", 400.0 * switches),
        ]
    };
    // The fsyncs are those of one thread for all: the other clients wait for it by a semaphore.
    let (off, on) = (of(0.008, 2.0, 2.0, 1.5), of(0.99, 150.0, 20.2, 9.0));
    let off: Vec<_> = off.into_iter().chain([("op_lock_us", 5.0)]).collect();
    let on: Vec<_> = on.into_iter().chain([("op_lock_us", 420.0)]).collect();
    let figures = repeated(&[
        cost("a.c", "update-index", 40_000.0, &off),
        cost("b.c", "update-index", 5600.0, &on),
    ]);
    let figures = with_setting(figures, "synchronous_commit", "off", "on");
    let is_of_log = |cause: &Cause, from: f64, to: f64| match cause {
        Cause::FsyncsPerCommit { metric, count, settings, waiting, .. } => {
            *metric == "log_fsyncs_per_commit"
                && is_about(count.base, from)
                && is_about(count.value, to)
                && settings[0].name == "synchronous_commit"
                && waiting.is_some()
        }
        _ => false,
    };
    let found_cause = cause(&figures);
    assert!(is_of_log(&found_cause, 0.008, 0.99), "{found_cause:?}");
    // Without such a setting the accounting names what clients wait for.
    let figures = with_setting(figures, "jit", "off", "on");
    assert_eq!(kinds(&found(&figures)), [FindingKind::Locks]);
    // The other way round it is faster.
    let mut figures = with_setting(figures, "synchronous_commit", "off", "on");
    figures.rows.reverse();
    let found_cause = cause(&figures);
    assert!(is_of_log(&found_cause, 0.99, 0.008), "{found_cause:?}");
}

/// MySQL without its binlog: a commit needs one fsync instead of two. It also needs less CPU, which
/// saves more time than the fsync.
#[test]
fn half_of_the_fsyncs_say_fsync_if_a_setting_saves_them() {
    let of = |fsyncs: f64, fsync_us: f64, cpu_us: f64| {
        [
            ("op_client_cpu_us", 10.0),
            ("op_server_cpu_us", cpu_us),
            ("op_fsync_us", fsync_us),
            ("fsyncs_per_commit", fsyncs),
        ]
    };
    let figures = |fsyncs: f64, fsync_us: f64| {
        repeated(&[
            cost("a.c", "update-index", 12_000.0, &of(2.0, 98.0, 161.0)),
            cost("b.c", "update-index", 24_000.0, &of(fsyncs, fsync_us, 74.0)),
        ])
    };
    // After each fsync, and while it uses CPU, a thread waits for a processor.
    let on_busy_host = |fsync_us: f64| -> Figures {
        let waits = [2_000.0, 700.0].map(|us| [("op_cpu_wait_us", us)]);
        let base = [&of(2.0, 98.0, 161.0)[..], &waits[0]].concat();
        let target = [&of(1.0, fsync_us, 74.0)[..], &waits[1]].concat();
        let figures = repeated(&[
            cost("a.c", "update-index", 4e6 / 2_300.0, &base),
            cost("b.c", "update-index", 4e6 / 840.0, &target),
        ]);
        with_setting(figures, "log_bin", "ON", "OFF")
    };

    let saved = with_setting(figures(1.0, 38.0), "log_bin", "ON", "OFF");
    only(&saved, FindingKind::Fsyncs);
    only(&on_busy_host(38.0), FindingKind::Fsyncs);
    only(&on_busy_host(95.0), FindingKind::Cpu);
    let beside_cpu = explained(&on_busy_host(95.0), |explanation| match &explanation.statement {
        Statement::Change(change) => change.fsyncs,
        _ => None,
    });
    let [FsyncCount { count, .. }] = beside_cpu.as_slice() else {
        panic!("{beside_cpu:?}");
    };
    assert!(is_about(count.base, 2.0) && is_about(count.value, 1.0), "{count:?}");

    // A limit of processors is the cause of a wait for them.
    let mut limited = on_busy_host(38.0);
    let settings = [("log_bin", "ON", "OFF"), ("limit.cpus", "1", "2")];
    limited.settings.differences = vec![differing(("a.c", "8"), ("b.c", "8"), &settings)];
    only(&limited, FindingKind::ProcessorWait);

    // Without a setting, with as many fsyncs, or with little waiting for them, CPU is the cause.
    only(&figures(1.0, 38.0), FindingKind::Cpu);
    only(&with_setting(figures(1.9, 38.0), "log_bin", "ON", "OFF"), FindingKind::Cpu);
    only(&with_setting(figures(1.0, 90.0), "log_bin", "ON", "OFF"), FindingKind::Cpu);
}

/// SQLite counts no fsyncs: what they take of an operation's time is measured.
#[test]
fn synchronous_of_sqlite_says_fsync() {
    let of = |fsync: f64, cpu: f64| {
        [
            ("op_client_cpu_us", cpu),
            ("op_fsync_us", fsync),
            ("op_write_us", 2.0),
            ("cpupq", 3.0 * cpu),
            ("flushes_per_commit", fsync / 20.0),
        ]
    };
    let (off, full) = (of(0.5, 8.0), of(40.0, 16.0));
    let figures =
        repeated(&[cost("a.c", "l.i1", 300_000.0, &off), cost("b.c", "l.i1", 65_000.0, &full)]);
    let figures = with_setting(figures, "synchronous", "off", "full");
    let changed = part(&figures);
    assert_eq!(changed.part, FindingKind::Fsyncs);
    assert!(is_about(changed.us.base, 0.5) && is_about(changed.us.value, 40.0));
    assert_eq!(changed.settings[0].name, "synchronous");
}

/// With neighbors on the host, each microsecond of CPU brings some waiting with it.
#[test]
fn waiting_that_more_cpu_brings_with_it_is_of_the_cpu() {
    let of = |cpu: f64, wait: f64| [("op_server_cpu_us", cpu), ("op_cpu_wait_us", wait)];
    let with = |wait: f64| {
        let rate = 4e6 / (300.0 + wait);
        let figures = repeated(&[
            cost("a.c", "qr100", 20_000.0, &of(60.0, 140.0)),
            cost("b.c", "qr100", rate, &of(300.0, wait)),
        ]);
        all_causes(&figures)
    };
    let kinds_with =
        |wait: f64| -> Vec<FindingKind> { with(wait).iter().map(Cause::kind).collect() };
    let causes = with(700.0);
    let [Cause::Part(changed)] = causes.as_slice() else {
        panic!("{causes:?}");
    };
    assert_eq!(changed.part, FindingKind::Cpu);
    assert!(changed.has_wait && is_about(changed.share, 1.0), "{changed:?}");
    // Where processors are fewer the wait is what that costs, though CPU grows as well.
    let figures = repeated(&[
        cost("a.c", "qr100", 20_000.0, &of(60.0, 140.0)),
        cost("b.c", "qr100", 9_000.0, &of(90.0, 354.0)),
    ]);
    assert_eq!(kinds(&found(&figures)), [FindingKind::HostBusy]);
    let figures = with_setting(figures, "limit.cpus", "2", "1");
    assert_eq!(kinds(&found(&figures)), [FindingKind::ProcessorWait]);
    // Longer waits for each microsecond are not the target's doing.
    assert_eq!(kinds_with(2_300.0), [FindingKind::HostBusy]);
}

/// Reads from storage take CPU as well, here more of it than waiting.
#[test]
fn a_smaller_cache_says_reads() {
    let of = |read: f64, cpu: f64, kb: f64| {
        [("op_server_cpu_us", cpu), ("op_read_us", read), ("own_read_kb_per_op", kb)]
    };
    let figures = repeated(&[
        cost("a.c", "qp100", 64_500.0, &of(0.0, 60.0, 0.0)),
        cost("b.c", "qp100", 21_400.0, &of(50.0, 130.0, 16.0)),
    ]);
    assert_eq!(kinds(&found(&figures)), [FindingKind::Cpu]);
    // A larger cache does not read more.
    let contrary =
        with_setting(figures.clone(), "innodb_buffer_pool_size", "16777216", "838860800");
    assert_eq!(kinds(&found(&contrary)), [FindingKind::Cpu]);
    let figures = with_setting(figures, "innodb_buffer_pool_size", "8G", "16M");
    let changed = part(&figures);
    assert_eq!(changed.part, FindingKind::Reads);
    assert_eq!(changed.settings[0].name, "innodb_buffer_pool_size");
}

/// Commits that are grouped wait for the one that syncs the log for all of them.
#[test]
fn waiting_for_those_who_sync_is_waiting_for_fsyncs() {
    let of = |lock: f64, fsyncs: f64| {
        [("op_server_cpu_us", 20.0), ("op_lock_us", lock), ("log_fsyncs_per_commit", fsyncs)]
    };
    let figures = |fsyncs: f64| {
        repeated(&[
            cost("a.c", "l.i0", 180_000.0, &of(1.0, 0.25)),
            cost("b.c", "l.i0", 120_000.0, &of(12.0, fsyncs)),
        ])
    };
    assert_eq!(kinds(&found(&figures(0.7))), [FindingKind::Locks]);
    let setting = |fsyncs: f64| with_setting(figures(fsyncs), "synchronous_commit", "off", "on");
    let changed = part(&setting(0.7));
    assert_eq!(changed.part, FindingKind::Locks);
    assert_eq!(changed.detail, Some(Detail::SharedFsyncs));
    only(&setting(0.7), FindingKind::Fsyncs);
    assert_eq!(kinds(&found(&setting(0.25))), [FindingKind::Locks]);
}

#[test]
fn a_durability_setting_without_other_fsyncs_is_not_the_cause() {
    let of = |cpu: f64| [("op_server_cpu_us", cpu), ("fsyncs_per_commit", 0.5)];
    let figures = repeated(&[
        cost("a.c", "l.i1", 40_000.0, &of(60.0)),
        cost("b.c", "l.i1", 25_000.0, &of(120.0)),
    ]);
    let figures = with_setting(figures, "synchronous_commit", "off", "on");
    assert_eq!(kinds(&found(&figures)), [FindingKind::Cpu]);
}

/// RocksDB `readrandom`: what the devices write is write-back of earlier steps, or of others.
#[test]
fn a_step_that_only_reads_is_not_explained_by_writes_or_fsyncs() {
    let of = |read: f64, write: f64, fsync: f64, read_kb: f64| {
        [
            ("op_client_cpu_us", 10.0),
            ("op_read_us", read),
            ("op_write_us", write),
            ("op_fsync_us", fsync),
            ("own_read_kb_per_op", read_kb),
            ("wKB/o", 10.0 * write),
            ("fsyncs_per_commit", fsync),
        ]
    };
    let (slow, fast) = (of(120.0, 200.0, 190.0, 16.0), of(20.0, 2.0, 0.01, 3.0));
    let figures = |fast: &[(&'static str, f64)]| {
        let costs =
            [cost("a.c", "readrandom", 7500.0, &slow), cost("b.c", "readrandom", 24_600.0, fast)];
        with_setting(repeated(&costs), "sync", "1", "0")
    };
    // Reads are 26% of the change: that is not enough.
    assert_eq!(cause(&figures(&fast)), Cause::Unexplained(WhyUnexplained::NoLargePart));
    let fast = of(0.5, 100.0, 50.0, 3.0);
    let mut slow_reads = figures(&fast);
    for row in &mut slow_reads.rows {
        let is_base = row.cell.target == "a.c";
        row.metrics.insert("op_read_us", Some(if is_base { 400.0 } else { 0.5 }));
        row.metrics.insert("op_time_us", Some(if is_base { 533.0 } else { 162.0 }));
    }
    let changed = part(&slow_reads);
    assert_eq!(changed.part, FindingKind::Reads);
    assert_eq!(changed.detail, Some(Detail::BytesChanged));
    assert_eq!(changed.others, []);
}

#[test]
fn longer_reads_of_the_same_bytes_differ_from_more_reads() {
    let of = |us: f64| [("op_read_us", us), ("own_read_kb_per_op", 16.0)];
    let changed = part(&reads(&of(80.0), (15_000.0, &of(200.0))));
    assert_eq!(changed.part, FindingKind::Reads);
    assert_eq!(changed.detail, Some(Detail::BytesUnchanged));
}

/// The same rows, in indexes that grew by other steps before.
#[test]
fn larger_indexes_are_told_with_the_work_that_they_make() {
    let of = |us: f64, kb: f64, gb: f64| {
        [("op_read_us", us), ("own_read_kb_per_op", kb), ("index_gb", gb)]
    };
    let index_gb = |gb: f64| {
        let figures = reads(&of(80.0, 16.0, 1.2), (15_000.0, &of(200.0, 40.0, gb)));
        assert_eq!(part(&figures).detail, Some(Detail::BytesChanged));
        changed_case(&figures).index_gb
    };
    assert!(
        index_gb(2.6).is_some_and(|size| is_about(size.base, 1.2) && is_about(size.value, 2.6))
    );
    // Smaller indexes don't need more reads, and another order of insertion makes a small difference.
    assert_eq!(index_gb(0.6), None);
    assert_eq!(index_gb(1.3), None);
}

#[test]
fn figures_of_the_host_are_never_a_cause() {
    // All processors are busy, so that the host's CPU per query is the time of a query. The same
    // holds for context switches and bytes, which neighbors cause.
    let of = |rate: f64| {
        [
            ("op_client_cpu_us", 20.0),
            ("op_server_cpu_us", 60.0),
            ("op_cpu_wait_us", 4e6 / rate - 80.0),
            ("own_cpu_us_per_op", 80.0),
            ("cpupq", 2e6 / rate),
            ("cpu/o", 2e6 / rate),
            ("cspq", 1e5 / rate),
            ("rpq", 1e4 / rate),
            ("rkbpq", 1e5 / rate),
            ("wKB/o", 1e5 / rate),
            ("wpi", 1e5 / rate),
            ("wkbpi", 1e5 / rate),
            ("others%", 80.0),
        ]
    };
    let figures = repeated(&[
        cost("a.c", "q100", 20_000.0, &of(20_000.0)),
        cost("b.c", "q100", 10_000.0, &of(10_000.0)),
    ]);
    let with_jit = with_setting(figures.clone(), "jit", "on", "off");
    only(&with_jit, FindingKind::HostBusy);
    let changed = part(&with_jit);
    assert_eq!(changed.part, FindingKind::ProcessorWait);
    assert_eq!(changed.detail, Some(Detail::NoLimit));
    assert!(is_about(changed.us.base, 120.0) && is_about(changed.us.value, 320.0));
    let [Caveat::BusyHost { others, waiting }] = caveats(&with_jit)[..] else {
        panic!("{:?}", caveats(&with_jit));
    };
    assert!(is_about(others.unwrap(), 80.0) && is_about(waiting.unwrap(), 80.0));
    assert!(!differences(&with_jit)[0].1, "the host may make the difference");
    // Where a limit on processors differs, waiting for them is what it does.
    let limited = with_setting(figures, "limit.cpus", "4", "1");
    only(&limited, FindingKind::ProcessorWait);
    assert!(differences(&limited)[0].1);
}

#[test]
fn time_in_no_part_is_unexplained_and_never_lent_to_one() {
    let changed = part(&reads(CACHED, (10_000.0, CACHED)));
    assert_eq!(changed.part, FindingKind::Unexplained);
    assert!(is_about(changed.us.growth(), 267.0), "{changed:?}");
    // Without an accounting there is no cause, whatever other figures say.
    let of = |cpu: f64| [("cpupq", cpu), ("server_cpu_us_per_op", cpu)];
    let unmeasured = cause(&reads(&of(100.0), (15_000.0, &of(200.0))));
    assert_eq!(unmeasured, Cause::Unexplained(WhyUnexplained::NotMeasured));
}

#[test]
fn a_part_that_varies_as_much_as_it_changed_is_no_cause() {
    let mut figures = reads(CACHED, (25_000.0, CACHED));
    let lock = [2.0, 30.0, 1.0, 80.0, 3.0];
    for row in &mut figures.rows {
        let is_base = row.cell.target == "a.c";
        let us = if is_base { 2.0 } else { lock[row.cell.repeat as usize - 1] };
        row.metrics.insert("op_lock_us", Some(us));
        row.metrics.insert("op_unexplained_us", Some(0.0));
    }
    assert_eq!(cause(&figures), Cause::Unexplained(WhyUnexplained::NoLargePart));
}

#[test]
fn too_noisy_and_single_steps_have_no_cause() {
    let rates = [
        [30_000.0, 27_000.0],
        [26_000.0, 31_000.0],
        [31_000.0, 29_500.0],
        [28_000.0, 30_500.0],
        [30_500.0, 28_000.0],
    ];
    let mut figures = Figures::default();
    for (repeat, rates) in (1..).zip(rates) {
        for (target, rate) in ["a.c", "b.c"].into_iter().zip(rates) {
            figures.rows.push(row(&cost(target, "q100", rate, CACHED), repeat));
        }
    }
    assert_eq!(found(&figures), []);
    let costs = [cost("a.c", "q100", 30_000.0, CACHED), cost("b.c", "q100", 3000.0, DEAR)];
    assert_eq!(found(&single(&costs)), []);
}

#[test]
fn measured_once_fsyncs_and_settings_are_facts() {
    let of = |syncs: f64| [("op_fsync_us", 1000.0 * syncs), ("fsyncs_per_commit", syncs)];
    let (base, other) = (of(1.01), of(0.01));
    let costs = [cost("a.c", "l.i1", 1000.0, &base), cost("b.c", "l.i1", 9000.0, &other)];
    let figures = with_setting(single(&costs), "synchronous", "2", "1");
    only(&figures, FindingKind::Facts);
    let facts = explained(&figures, |it| match &it.statement {
        Statement::Facts(known) => {
            let fact = &known.facts[0];
            Some((fact.fsyncs.clone(), fact.settings.len()))
        }
        _ => None,
    });
    assert_eq!(facts, [(vec!["l.i1".to_owned()], 1)]);
}

#[test]
fn differences_of_single_runs_stand_in_the_order_of_the_time_that_they_cost() {
    // The base reads nothing; both are asynchronous, and their few fsyncs cost no time.
    let base = [
        ("own_cpu_us_per_op", 80.0),
        ("op_read_us", 0.4),
        ("rpq", 0.028),
        ("op_fsync_us", 0.1),
        ("fsyncs_per_commit", 0.001),
    ];
    let reader = [
        ("own_cpu_us_per_op", 90.0),
        ("op_read_us", 1200.0),
        ("rpq", 8.12),
        ("op_fsync_us", 0.4),
        ("fsyncs_per_commit", 0.019),
    ];
    let dear = [("own_cpu_us_per_op", 392.0), ("op_read_us", 0.4), ("rpq", 0.03)];
    let costs = [
        cost("a.c", "q100", 40_000.0, &base),
        cost("b.c", "q100", 3000.0, &reader),
        cost("c.c", "q100", 10_000.0, &dear),
        // What it costs to index a row is not what an operation costs.
        cost("a.c", "l.x", 400_000.0, &[("own_cpu_us_per_op", 2.0)]),
        cost("c.c", "l.x", 40_000.0, &[("own_cpu_us_per_op", 90.0)]),
    ];
    let figures = single(&costs);
    let answer =
        Answer::new(&figures, &compared(&figures), &crate::compare::Effects::default(), &[]);
    let largest: Vec<&CostGap> = answer.gaps.iter().map(|of_cost| &of_cost.gaps[0]).collect();
    let [reads, cpu] = &largest[..] else {
        panic!("{largest:?}");
    };
    assert_eq!((reads.cost, reads.case.target.as_str(), reads.metric), (Cost::Reads, "b.c", "rpq"));
    assert_eq!(reads.figures, Pair { base: 0.028, value: 8.12 });
    assert_eq!((cpu.cost, cpu.case.target.as_str()), (Cost::Cpu, "c.c"));
    assert_eq!(cpu.figures, Pair { base: 80.0, value: 392.0 });
    let Statement::Facts(known) = &found(&figures)[0].statement else {
        panic!("{:?}", found(&figures));
    };
    assert_eq!(known.gaps, answer.gaps);
    assert!(known.facts.iter().all(|fact| fact.fsyncs.is_empty()), "{:?}", known.facts);

    // With repeats there are verdicts, and causes.
    let figures = repeated(&costs);
    let answer =
        Answer::new(&figures, &compared(&figures), &crate::compare::Effects::default(), &[]);
    assert_eq!(answer.gaps, []);
}

#[test]
fn an_invalid_row_explains_nothing() {
    let costs = [cost("a.c", "q100", 30_000.0, CACHED), cost("b.c", "q100", 25_000.0, DEAR)];
    let mut figures = repeated(&costs);
    let last = figures.rows.len() - 1;
    figures.rows[last].valid = false;
    figures.rows[last].metrics.insert("op_server_cpu_us", Some(1e9));
    assert!(is_about(part(&figures).us.value, 115.0));
    for row in figures.rows.iter_mut().filter(|row| row.cell.target == "a.c") {
        row.valid = false;
    }
    assert_eq!(found(&figures), []);
}

#[test]
fn writes_and_waits_for_other_threads_are_named() {
    let of = |write: f64, kb: f64, lock: f64| {
        [("op_write_us", write), ("own_write_kb_per_op", kb), ("op_lock_us", lock)]
    };
    let load = |other: &[(&'static str, f64)]| {
        repeated(&[
            cost("a.c", "l.i1", 100_000.0, &of(10.0, 4.0, 2.0)),
            cost("b.c", "l.i1", 50_000.0, other),
        ])
    };
    let changed = part(&load(&of(45.0, 8.0, 4.0)));
    assert_eq!(changed.part, FindingKind::Writes);
    assert_eq!(changed.detail, Some(Detail::BytesChanged));
    let changed = part(&load(&of(27.0, 8.0, 22.0)));
    assert_eq!(changed.part, FindingKind::Locks);
    assert!(is_about(changed.share, 0.5), "{changed:?}");
    assert_eq!(changed.others, [FindingKind::Writes]);
}

#[test]
fn device_reads_of_another_size_are_named_beside_own_cpu() {
    // Each side has reads per operation, and KB per operation.
    let read_kb = |base: [f64; 2], target: [f64; 2]| -> Option<Pair> {
        let of = |cpu: f64, [reads, kb]: [f64; 2]| {
            [("own_cpu_us_per_op", cpu), ("rpq", reads), ("rkbpq", kb)]
        };
        let (base, target) = (of(100.0, base), of(150.0, target));
        let figures =
            repeated(&[cost("a.c", "q100", 5000.0, &base), cost("b.c", "q100", 5000.0, &target)]);
        only(&figures, FindingKind::HiddenCost);

        let findings = found(&figures);
        let mut of_size = findings[0].evidence.iter();
        let marked =
            of_size.any(|figure| figure.is_cause && figure.name == "mean size of device reads");
        let named = explained(&figures, |explanation| match &explanation.statement {
            Statement::HiddenCost(hidden) => Some(hidden.read_kb),
            _ => None,
        });
        assert_eq!(marked, named[0].is_some());
        named[0]
    };

    let smaller = read_kb([0.003, 1.04], [0.016, 0.8]).expect("reads of 50 KB instead of 347 KB");
    assert!(is_about(smaller.value, 50.0) && is_about(smaller.base, 346.7), "{smaller:?}");

    let as_large = read_kb([0.003, 1.04], [0.006, 1.9]);
    let rare = read_kb([0.000_1, 0.03], [0.000_6, 0.03]);
    assert_eq!((as_large, rare), (None, None));
}

#[test]
fn own_cpu_that_grows_without_a_change_of_throughput_is_a_finding() {
    let of = |cpu: f64| [("own_cpu_us_per_op", cpu), ("background_cpu_us_per_op", 3.0)];
    let (base, other) = (of(100.0), of(150.0));
    let costs = [cost("a.c", "q100", 5000.0, &base), cost("b.c", "q100", 5000.0, &other)];
    let mut figures = repeated(&costs);
    let is_noisy = |figures: &Figures| {
        only(figures, FindingKind::HiddenCost);
        explained(figures, |it| match &it.statement {
            Statement::HiddenCost(hidden) => Some(hidden.is_noisy),
            _ => None,
        })
    };
    assert_eq!(is_noisy(&figures), [false]);
    let evidence = &found(&figures)[0].evidence;
    assert!(evidence[0].name == "throughput" && evidence[0].is_noise, "{evidence:?}");
    // Each repeat has another share of the machine, and base and target not the same.
    let share = [0.4, 0.9, 0.3, 0.8, 0.5, 0.7, 0.2, 0.6, 0.95, 0.45];
    for (row, share) in figures.rows.iter_mut().zip(share) {
        row.metrics.insert("qps", Some(5000.0 * share));
    }
    assert_eq!(is_noisy(&figures), [true]);
    // The host's CPU is nobody's own.
    for row in &mut figures.rows {
        let own = row.metrics.remove("own_cpu_us_per_op").flatten();
        row.metrics.insert("cpupq", own);
    }
    assert_eq!(found(&figures), []);
}

/// Gives each row the seconds in which it stood still, of 100.
fn stalled(figures: &mut Figures, seconds: impl Fn(&Row) -> usize) {
    for row in &mut figures.rows {
        let stalled = seconds(row);
        let stall = Stall {
            from_second: 31,
            seconds: stalled,
            concurrent_changes: vec![ConcurrentChange {
                name: "disk_write_bytes".to_owned(),
                unit: "bytes/s".to_owned(),
                during: 9e8,
                otherwise: 1e8,
                ..ConcurrentChange::default()
            }],
            ..Stall::default()
        };
        row.quality = Some(Quality {
            kind: "query".to_owned(),
            seconds: 100,
            stalled_seconds: Some(stalled),
            median: 30_000.0,
            usual: 30_000.0,
            stalls: if stalled > 0 { vec![stall] } else { Vec::new() },
            ..Quality::default()
        });
    }
}

#[test]
fn seconds_without_progress_explain_a_mean_where_most_repeats_have_them() {
    let mut figures = reads(CACHED, (24_000.0, CACHED));
    stalled(&mut figures, |row| if row.cell.target == "b.c" { 20 } else { 0 });
    let found_cause = cause(&figures);
    let Cause::Standstill { percent, share, longest: Some(stall) } = &found_cause else {
        panic!("{found_cause:?}");
    };
    assert_eq!((percent.base, percent.value), (0.0, 20.0));
    assert!(is_about(*share, 1.0), "{share}");
    assert_eq!((stall.from_second, stall.seconds), (31, 20));
    // Two repeats of five are not what the verdict is of.
    stalled(&mut figures, |row| match row.cell.target.as_str() {
        "b.c" if row.cell.repeat <= 2 => 50,
        _ => 0,
    });
    assert_eq!(causes(&found(&figures)), []);
}

#[test]
fn a_level_that_changed_in_most_repeats_explains_a_mean() {
    let mut figures = reads(&[], (24_000.0, &[]));
    stalled(&mut figures, |_| 0);
    let shift = |figures: &mut Figures, repeats: u32| {
        for row in &mut figures.rows {
            let is_shifted = row.cell.target == "b.c" && row.cell.repeat <= repeats;
            let quality = row.quality.as_mut().unwrap();
            quality.shift_count = usize::from(is_shifted);
            quality.shifts = vec![
                Shift {
                    second: 50,
                    before: 30_100.0,
                    after: 18_000.0,
                    concurrent_changes: Vec::new(),
                };
                usize::from(is_shifted)
            ];
        }
    };
    shift(&mut figures, 3);
    let found_cause = cause(&figures);
    let Cause::LevelShift(level) = &found_cause else {
        panic!("{found_cause:?}");
    };
    assert!(!level.is_of_base && level.matches_before, "{level:?}");
    assert_eq!((level.other_rate, level.shift.after), (30_000.0, 18_000.0));
    shift(&mut figures, 2);
    assert_eq!(kinds(&found(&figures)), [FindingKind::Unexplained]);
}

/// "Speedb vs RocksDB on a large server": 9.9.3 stalled 25.9% of the time, 8.5 9%, and why.
#[test]
fn write_stalls_come_with_what_makes_them() {
    let of = |percent: f64| [("stall%", percent), ("op_lock_us", 100.0)];
    let mut figures = repeated(&[
        cost("a.c", "overwrite", 277_795.0, &of(9.0)),
        cost("b.c", "overwrite", 227_068.0, &of(25.9)),
    ]);
    let reason = |figures: &Figures| match cause(figures) {
        Cause::WriteStalls { percent, reason, .. } => {
            assert!(is_about(percent.base, 9.0) && is_about(percent.value, 25.9));
            reason
        }
        cause => panic!("{cause:?}"),
    };
    assert_eq!(reason(&figures), None);
    for row in &mut figures.rows {
        let (l0, pending) = match row.cell.target.as_str() {
            "a.c" => (1089.0, 1207.0),
            _ => (285.0, 12_585.0),
        };
        row.lsm = Some(Lsm {
            stalls: BTreeMap::from([
                ("l0-file-count-limit-delays".to_owned(), l0),
                ("memtable-limit-delays".to_owned(), 0.0),
                ("pending-compaction-bytes-delays".to_owned(), pending),
                ("total-delays".to_owned(), l0 + pending),
            ]),
            ..Lsm::default()
        });
    }
    let count = Pair { base: 1207.0, value: 12_585.0 };
    let of_most = StallReason { limit: "pending-compaction-bytes", kind: "delays", count };
    assert_eq!(reason(&figures), Some(of_most));
}

#[test]
fn many_targets_and_steps_with_one_cause_share_a_finding() {
    let names: Vec<String> = (0..9).map(|number| format!("t{number}.c")).collect();
    let steps: Vec<String> = (0..4).map(|number| format!("q{number}")).collect();
    let mut costs = Vec::new();
    for (number, name) in names.iter().enumerate() {
        for step in &steps {
            let (rate, metrics) = match number % 2 {
                1 => (25_000.0, DEAR),
                _ => (30_000.0, CACHED),
            };
            costs.push(cost(name, step, rate, metrics));
        }
    }
    let finding = only(&repeated(&costs), FindingKind::Cpu);
    assert_eq!((finding.targets.len(), finding.steps.len()), (4, 4));
    let comparisons = explained(&repeated(&costs), |it| match &it.statement {
        Statement::Change(change) => Some((change.cases.len(), change.comparison_count)),
        _ => None,
    });
    assert_eq!(comparisons, [(16, 16)]);
}

#[test]
fn the_counter_that_moved_most_is_evidence_and_zero_does_not_make_it() {
    let mut figures = reads(CACHED, (25_000.0, DEAR));
    // Per query: 1 -> 6 rows read, 0 -> one deadlock in all, and a counter that is of no use.
    for row in &mut figures.rows {
        let (read, deadlocks) = match row.cell.target.as_str() {
            "a.c" => (3e6, 0.0),
            _ => (15e6, 1.0),
        };
        row.counters = BTreeMap::from([
            ("row_read_count".to_owned(), read),
            ("deadlock_count".to_owned(), deadlocks),
            ("table_bytes.pi1".to_owned(), read * read),
        ]);
        row.work_counters = vec!["row_read_count".to_owned(), "deadlock_count".to_owned()];
    }
    let named = |figures: &Figures| {
        let finding = only(figures, FindingKind::Cpu);
        finding.evidence.iter().any(|it| it.name == "row_read_count")
    };
    assert!(named(&figures));
    for row in figures.rows.iter_mut().filter(|row| row.cell.target == "b.c") {
        row.engine = "postgres".to_owned();
    }
    assert!(!named(&figures));
}

#[test]
fn figures_that_make_no_sense_have_findings_with_a_weight() {
    const NAMES: [&str; 12] = [
        "op_time_us",
        "op_client_cpu_us",
        "op_server_cpu_us",
        "op_cpu_wait_us",
        "op_read_us",
        "op_fsync_us",
        "op_unexplained_us",
        "own_cpu_us_per_op",
        "own_read_kb_per_op",
        "stall%",
        "fsyncs_per_commit",
        "cpu_mhz",
    ];
    const ODD: [f64; 5] = [0.0, 1e-12, 1.0, 100.0, 1e12];
    let mut count = 0;
    for name in NAMES {
        for base in ODD {
            for value in ODD {
                let with = |odd: f64| -> Vec<(&'static str, f64)> {
                    NAMES
                        .iter()
                        .map(|other| (*other, if *other == name { odd } else { 10.0 }))
                        .collect()
                };
                let (of_base, of_target) = (with(base), with(value));
                let figures = repeated(&[
                    cost("a.c", "l.i1", 30_000.0, &of_base),
                    cost("b.c", "l.i1", 10_000.0, &of_target),
                ]);
                let findings = found(&with_setting(figures, "sync_binlog", "0", "1"));
                for finding in &findings {
                    assert!(finding.weight.is_finite(), "{finding:?}");
                }
                count += findings.len();
            }
        }
    }
    // The throughput is a third each time: that is always a finding.
    assert!(count >= NAMES.len() * ODD.len() * ODD.len());
}
