//! Causes that are named, and figures that look like causes and are not.

use super::*;
use crate::{ConcurrentChange, Lsm, Quality, Shift, Stall};

/// A query of 133 us at 30,000 per second.
const CACHED: &[(&str, f64)] = &[
    ("op_client_cpu_us", 20.0),
    ("op_server_cpu_us", 75.0),
    ("op_handover_us", 35.0),
];

/// A query of 160 us at 25,000 per second: 19 us more in the server, 1 us more in the client.
const DEAR: &[(&str, f64)] = &[
    ("op_client_cpu_us", 21.0),
    ("op_server_cpu_us", 94.0),
    ("op_handover_us", 40.0),
];

fn reads(base: &[(&'static str, f64)], other: (f64, &[(&'static str, f64)])) -> Figures {
    repeated(&[
        cost("a.c", "q100", 30_000.0, base),
        cost("b.c", "q100", other.0, other.1),
    ])
}

#[test]
fn equal_targets_give_no_finding() {
    let costs = [
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 30_000.0, CACHED),
    ];
    assert_eq!(found(&single(&costs)), []);
    assert_eq!(found(&repeated(&costs)), []);
}

#[test]
fn cpu_is_named_with_its_side_the_interval_and_at_most_three_sentences() {
    let figures = reads(CACHED, (25_000.0, DEAR));
    let finding = only(&with_setting(figures, "jit", "on", "off"), FindingKind::Cpu);
    assert_eq!(
        finding.title,
        "b.c: 1.20x slower in q100: 1.21x more CPU per query"
    );
    says(
        &finding,
        &[
            "b.c is 1.20x slower than a.c in q100: 29,994 -> 25,010 queries/s, 1.192x to 1.207x over 5 repeats.",
            "CPU per query rose from 95 to 115 us (server +18.9, client +0.988), 75% of the change in its time (from 133 to 160 us).",
            "The two differ in jit (on -> off) alone, which makes the difference.",
        ],
    );
    assert_eq!(finding.text.matches(". ").count(), 2, "{}", finding.text);
    let evidence = |name: &str| finding.evidence.iter().any(|it| it.name == name);
    assert!(evidence("throughput") && evidence("server CPU"));
}

#[test]
fn an_embedded_engine_works_on_the_client_threads() {
    let (base, other) = ([("op_client_cpu_us", 100.0)], [("op_client_cpu_us", 200.0)]);
    let finding = only(&reads(&base, (15_000.0, &other)), FindingKind::Cpu);
    says(
        &finding,
        &["(on the client threads, where the engine runs)"],
    );
}

/// PostgreSQL, `synchronous_commit` off -> on: bytes written and context switches grow with the commits that wait.
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
    let finding = only(&figures, FindingKind::Fsyncs);
    assert_eq!(
        finding.title,
        "b.c: 7.14x slower in update-index: one fsync of the log per commit instead of none"
    );
    says(
        &finding,
        &[
            "per commit went from 0.008",
            "to 0.99",
            "as expected from synchronous_commit (off -> on)",
        ],
    );
    // Without such a setting the accounting names what clients wait for.
    let figures = with_setting(figures, "jit", "off", "on");
    assert_eq!(kinds(&found(&figures)), [FindingKind::Locks]);
    // Turned round it is what makes it faster.
    let mut figures = with_setting(figures, "synchronous_commit", "off", "on");
    figures.rows.reverse();
    let finding = only(&figures, FindingKind::Fsyncs);
    assert_eq!(
        finding.title,
        "a.c: 7.14x faster in update-index: no fsync of the log per commit instead of one"
    );
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
    let figures = repeated(&[
        cost("a.c", "l.i1", 300_000.0, &off),
        cost("b.c", "l.i1", 65_000.0, &full),
    ]);
    let figures = with_setting(figures, "synchronous", "off", "full");
    let finding = only(&figures, FindingKind::Fsyncs);
    says(
        &finding,
        &[
            "b.c: 4.61x slower in l.i1: fsyncs take 40 us per row instead of 0.5",
            "Commits wait longer for fsyncs, as expected from synchronous (off -> full)",
        ],
    );
}

/// Beside neighbours each microsecond of CPU brings some of waiting: the more CPU, the more of it.
#[test]
fn waiting_that_more_cpu_brings_with_it_is_of_the_cpu() {
    let of = |cpu: f64, wait: f64| [("op_server_cpu_us", cpu), ("op_cpu_wait_us", wait)];
    let with = |wait: f64| {
        let rate = 4e6 / (300.0 + wait);
        let figures = repeated(&[
            cost("a.c", "qr100", 20_000.0, &of(60.0, 140.0)),
            cost("b.c", "qr100", rate, &of(300.0, wait)),
        ]);
        found(&figures)
    };
    let findings = with(700.0);
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    says(
        &findings[0],
        &[
            "all of the change in its time, including +560 us of waiting for a processor that it brings",
        ],
    );
    // Where processors are fewer the wait is what that costs, though CPU grows as well.
    let figures = repeated(&[
        cost("a.c", "qr100", 20_000.0, &of(60.0, 140.0)),
        cost("b.c", "qr100", 9_000.0, &of(90.0, 354.0)),
    ]);
    assert_eq!(kinds(&found(&figures)), [FindingKind::HostBusy]);
    let figures = with_setting(figures, "limit.cpus", "2", "1");
    assert_eq!(kinds(&found(&figures)), [FindingKind::ProcessorWait]);
    // Longer waits for each microsecond are not the target's doing.
    assert_eq!(kinds(&with(2_300.0)), [FindingKind::HostBusy]);
}

/// Reads from storage take CPU as well, here more of it than waiting.
#[test]
fn a_smaller_cache_says_reads() {
    let of = |read: f64, cpu: f64, kb: f64| {
        [
            ("op_server_cpu_us", cpu),
            ("op_read_us", read),
            ("own_read_kb_per_op", kb),
        ]
    };
    let figures = repeated(&[
        cost("a.c", "qp100", 64_500.0, &of(0.0, 60.0, 0.0)),
        cost("b.c", "qp100", 21_400.0, &of(50.0, 130.0, 16.0)),
    ]);
    assert_eq!(kinds(&found(&figures)), [FindingKind::Cpu]);
    // A larger cache does not read more.
    let contrary = with_setting(
        figures.clone(),
        "innodb_buffer_pool_size",
        "16777216",
        "838860800",
    );
    assert_eq!(kinds(&found(&contrary)), [FindingKind::Cpu]);
    let figures = with_setting(figures, "innodb_buffer_pool_size", "8G", "16M");
    let finding = only(&figures, FindingKind::Reads);
    says(
        &finding,
        &[
            "The engine read 0 -> 16 KB per query from storage, as expected from innodb_buffer_pool_size (8G -> 16M)",
        ],
    );
}

/// Commits that are grouped wait for the one that syncs the log for all of them.
#[test]
fn waiting_for_those_who_sync_is_waiting_for_fsyncs() {
    let of = |lock: f64, fsyncs: f64| {
        [
            ("op_server_cpu_us", 20.0),
            ("op_lock_us", lock),
            ("log_fsyncs_per_commit", fsyncs),
        ]
    };
    let figures = |fsyncs: f64| {
        repeated(&[
            cost("a.c", "l.i0", 180_000.0, &of(1.0, 0.25)),
            cost("b.c", "l.i0", 120_000.0, &of(12.0, fsyncs)),
        ])
    };
    assert_eq!(kinds(&found(&figures(0.7))), [FindingKind::Locks]);
    let setting = |fsyncs: f64| with_setting(figures(fsyncs), "synchronous_commit", "off", "on");
    says(
        &only(&setting(0.7), FindingKind::Fsyncs),
        &[
            "Waiting for other threads",
            "fsyncs per commit: 0.25 -> 0.7",
        ],
    );
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
        let costs = [
            cost("a.c", "readrandom", 7500.0, &slow),
            cost("b.c", "readrandom", 24_600.0, fast),
        ];
        with_setting(repeated(&costs), "sync", "1", "0")
    };
    // Reads are 26 % of the change: that is not enough.
    let finding = only(&figures(&fast), FindingKind::Unexplained);
    says_not(&finding, &["write", "fsync"]);
    let fast = of(0.5, 100.0, 50.0, 3.0);
    let mut slow_reads = figures(&fast);
    for row in &mut slow_reads.rows {
        let is_base = row.cell.target == "a.c";
        row.metrics
            .insert("op_read_us", Some(if is_base { 400.0 } else { 0.5 }));
        row.metrics
            .insert("op_time_us", Some(if is_base { 533.0 } else { 162.0 }));
    }
    let finding = only(&slow_reads, FindingKind::Reads);
    says(
        &finding,
        &[
            "fewer reads from storage",
            "the engine's own: 16 -> 3 KB/get",
        ],
    );
    says_not(&finding, &["fsync"]);
}

#[test]
fn reads_of_the_same_bytes_that_take_longer_are_said_to() {
    let of = |us: f64| [("op_read_us", us), ("own_read_kb_per_op", 16.0)];
    let figures = reads(&of(80.0), (15_000.0, &of(200.0)));
    let finding = only(&figures, FindingKind::Reads);
    says(
        &finding,
        &[
            "reads from storage take longer",
            "the engine's own bytes do not explain it: 16 -> 16",
        ],
    );
}

#[test]
fn figures_of_the_host_are_never_a_cause() {
    // All processors are busy: CPU per query of the host is the time of a query by identity. So are context switches and
    // bytes, which neighbours make.
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
    let finding = only(
        &with_setting(figures.clone(), "jit", "on", "off"),
        FindingKind::HostBusy,
    );
    says(
        &finding,
        &[
            "too much competition for processors to name a cause",
            "Waiting for a processor per query rose from 120 to 320 us, all of the change in its time",
            "no setting says why processors were short, so no cause is named",
            "the host was busy: other processes used up to 80% of the CPU and operations waited for a processor for up to 80%",
        ],
    );
    says_not(&finding, &["more CPU", "which makes the difference"]);
    // Where a limit on processors differs, waiting for them is what it does.
    let limited = with_setting(figures, "limit.cpus", "4", "1");
    says(
        &only(&limited, FindingKind::ProcessorWait),
        &[
            "more waiting for a processor",
            "limit.cpus (4 -> 1) alone, which makes the difference",
        ],
    );
}

#[test]
fn time_in_no_part_is_unexplained_and_never_lent_to_one() {
    let figures = reads(CACHED, (10_000.0, CACHED));
    let finding = only(&figures, FindingKind::Unexplained);
    says(
        &finding,
        &["unexplained: +267 us per query are in no measured part"],
    );
    // Without an accounting there is no cause, whatever other figures say.
    let of = |cpu: f64| [("cpupq", cpu), ("server_cpu_us_per_op", cpu)];
    let finding = only(
        &reads(&of(100.0), (15_000.0, &of(200.0))),
        FindingKind::Unexplained,
    );
    says(
        &finding,
        &["Some parts of the time of a query were not measured in every repeat"],
    );
}

#[test]
fn a_part_that_varies_as_much_as_it_changed_is_no_cause() {
    let mut figures = reads(CACHED, (25_000.0, CACHED));
    let lock = [2.0, 30.0, 1.0, 80.0, 3.0];
    for row in &mut figures.rows {
        let is_base = row.cell.target == "a.c";
        let us = if is_base {
            2.0
        } else {
            lock[row.cell.repeat as usize - 1]
        };
        row.metrics.insert("op_lock_us", Some(us));
        row.metrics.insert("op_rest_us", Some(0.0));
    }
    let finding = only(&figures, FindingKind::Unexplained);
    says(
        &finding,
        &["no measured part of it surely makes up 40% of that"],
    );
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
            figures
                .rows
                .push(row(&cost(target, "q100", rate, CACHED), repeat));
        }
    }
    assert_eq!(found(&figures), []);
    let costs = [
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 3000.0, DEAR),
    ];
    assert_eq!(found(&single(&costs)), []);
}

#[test]
fn measured_once_fsyncs_and_settings_are_facts() {
    let of = |syncs: f64| [("op_fsync_us", 100.0 * syncs), ("fsyncs_per_commit", syncs)];
    let (base, other) = (of(1.01), of(0.01));
    let costs = [
        cost("a.c", "l.i1", 1000.0, &base),
        cost("b.c", "l.i1", 9000.0, &other),
    ];
    let figures = with_setting(single(&costs), "synchronous", "2", "1");
    let finding = only(&figures, FindingKind::Facts);
    assert_eq!(
        finding.title,
        "Measured once, so no causes are named; known differences"
    );
    assert_eq!(
        finding.text,
        "b.c: fsyncs per commit 1.01 -> 0.01, 101x less in l.i1; settings that differ: synchronous (2 -> 1)."
    );
}

#[test]
fn an_invalid_row_explains_nothing() {
    let costs = [
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 25_000.0, DEAR),
    ];
    let mut figures = repeated(&costs);
    let last = figures.rows.len() - 1;
    figures.rows[last].valid = false;
    figures.rows[last]
        .metrics
        .insert("op_server_cpu_us", Some(1e9));
    says(
        &only(&figures, FindingKind::Cpu),
        &["1.21x more CPU per query"],
    );
    for row in figures
        .rows
        .iter_mut()
        .filter(|row| row.cell.target == "a.c")
    {
        row.valid = false;
    }
    assert_eq!(found(&figures), []);
}

#[test]
fn writes_and_waits_for_other_threads_are_named() {
    let of = |write: f64, kb: f64, lock: f64| {
        [
            ("op_write_us", write),
            ("own_write_kb_per_op", kb),
            ("op_lock_us", lock),
        ]
    };
    let load = |other: &[(&'static str, f64)]| {
        repeated(&[
            cost("a.c", "l.i1", 100_000.0, &of(10.0, 4.0, 2.0)),
            cost("b.c", "l.i1", 50_000.0, other),
        ])
    };
    let finding = only(&load(&of(45.0, 8.0, 4.0)), FindingKind::Writes);
    says(
        &finding,
        &[
            "more writes to storage",
            "the engine's own: 4 -> 8 KB/row, 2.00x",
        ],
    );
    let finding = only(&load(&of(27.0, 8.0, 22.0)), FindingKind::Locks);
    says(
        &finding,
        &[
            "Waiting for other threads per row rose from 2 to 22 us, 50% of the change in its time",
            "also changed: waiting for writes to storage +17 us",
        ],
    );
}

#[test]
fn own_cpu_that_grows_where_throughput_is_held_or_too_noisy_is_a_finding() {
    let of = |cpu: f64| {
        [
            ("own_cpu_us_per_op", cpu),
            ("background_cpu_us_per_op", 3.0),
        ]
    };
    let (base, other) = (of(100.0), of(150.0));
    let costs = [
        cost("a.c", "q100", 5000.0, &base),
        cost("b.c", "q100", 5000.0, &other),
    ];
    let mut figures = repeated(&costs);
    let finding = only(&figures, FindingKind::HiddenCost);
    assert_eq!(
        finding.title,
        "b.c: 1.50x more own CPU per query in q100, no change of throughput shown"
    );
    says(
        &finding,
        &[
            "over 5 repeats: q100 100 -> 150 us, 1.50x (1.4",
            "Throughput shows no change.",
        ],
    );
    // Each repeat has another share of the machine, and base and target not the same.
    let share = [0.4, 0.9, 0.3, 0.8, 0.5, 0.7, 0.2, 0.6, 0.95, 0.45];
    for (row, share) in figures.rows.iter_mut().zip(share) {
        row.metrics.insert("qps", Some(5000.0 * share));
    }
    says(
        &only(&figures, FindingKind::HiddenCost),
        &["1.50x more own CPU per query in q100, throughput too noisy to say"],
    );
    // The host's CPU is nobody's own.
    for row in &mut figures.rows {
        let own = row.metrics.remove("own_cpu_us_per_op").flatten();
        row.metrics.insert("cpupq", own);
    }
    assert_eq!(found(&figures), []);
}

/// Each row with the seconds in which it stood still, of 100.
fn stalled(figures: &mut Figures, seconds: impl Fn(&Row) -> usize) {
    for row in &mut figures.rows {
        let stalled = seconds(row);
        let stall = Stall {
            from_second: 31,
            seconds: stalled,
            beside: vec![ConcurrentChange {
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
    stalled(
        &mut figures,
        |row| if row.cell.target == "b.c" { 20 } else { 0 },
    );
    let finding = only(&figures, FindingKind::Stall);
    says(
        &finding,
        &[
            "There was no progress in 20% of the seconds instead of 0%, all of the change; the longest stall is 20 seconds \
             from second 31 on, with disk_write_bytes 900,000,000 (otherwise 100,000,000 bytes/s).",
        ],
    );
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
                    beside: Vec::new(),
                };
                usize::from(is_shifted)
            ];
        }
    };
    shift(&mut figures, 3);
    says(
        &only(&figures, FindingKind::LevelShift),
        &[
            "Until second 50, b.c ran as fast as a.c (30,100 against 30,000 queries/s), then at 18,000.",
        ],
    );
    shift(&mut figures, 2);
    assert_eq!(kinds(&found(&figures)), [FindingKind::Unexplained]);
}

/// "Speedb vs RocksDB on a large server": 9.9.3 stalled 25.9 % of the time, 8.5 9 %, and why.
#[test]
fn write_stalls_come_with_what_makes_them() {
    let of = |percent: f64| [("stall%", percent), ("op_lock_us", 100.0)];
    let mut figures = repeated(&[
        cost("a.c", "overwrite", 277_795.0, &of(9.0)),
        cost("b.c", "overwrite", 227_068.0, &of(25.9)),
    ]);
    says_not(&only(&figures, FindingKind::WriteStalls), &["because"]);
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
    says(
        &only(&figures, FindingKind::WriteStalls),
        &[
            "b.c: 1.22x slower in overwrite: writes stalled 25.9% of the time instead of 9",
            "of the change; most of it because of pending-compaction-bytes (1,207 -> 12,585 delays, 10.4x).",
        ],
    );
}

#[test]
fn many_targets_and_steps_with_one_cause_are_one_paragraph() {
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
    says(
        &finding,
        &[
            "4 targets: up to 1.20x slower in 16 of 16 comparisons: more CPU per operation",
            "and 11 more.",
        ],
    );
    assert!(finding.text.len() < 700, "{}", finding.text);
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
        finding
            .evidence
            .iter()
            .any(|it| it.name == "row_read_count")
    };
    assert!(named(&figures));
    for row in figures
        .rows
        .iter_mut()
        .filter(|row| row.cell.target == "b.c")
    {
        row.engine = "postgres".to_owned();
    }
    assert!(!named(&figures));
}

#[test]
fn figures_that_make_no_sense_make_no_nonsense() {
    const NAMES: [&str; 12] = [
        "op_time_us",
        "op_client_cpu_us",
        "op_server_cpu_us",
        "op_cpu_wait_us",
        "op_read_us",
        "op_fsync_us",
        "op_rest_us",
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
                    says_not(finding, &["NaN", "inf", "-0 ", "()", " ,"]);
                }
                count += findings.len();
            }
        }
    }
    // The throughput is a third each time: that is always a finding.
    assert!(count >= NAMES.len() * ODD.len() * ODD.len());
}
