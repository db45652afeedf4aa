//! Reasons to doubt a finding.

use super::*;
use crate::{ReadLimits, Sla};

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
    repeated(&[
        cost("a.c", "q100", 30_000.0, CHEAP),
        cost("b.c", "q100", 20_000.0, DEAR),
    ])
}

/// Explains the figures after `set` has changed the rows; its second argument says that a row is the base's.
#[track_caller]
fn changed(mut figures: Figures, set: impl Fn(&mut Row, bool)) -> Finding {
    for row in &mut figures.rows {
        let is_base = row.cell.target == "a.c";
        set(row, is_base);
    }
    let mut findings = found(&figures);
    findings.retain(|finding| finding.base.is_some() && finding.kind != FindingKind::SlaMissed);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

fn set_metric(name: &'static str, base: f64, other: f64) -> impl Fn(&mut Row, bool) {
    move |row, is_base| {
        row.metrics
            .insert(name, Some(if is_base { base } else { other }));
    }
}

#[test]
fn repeats_that_took_turns_have_no_caveat() {
    assert_eq!(only(&figures(), FindingKind::Cpu).caveats, [] as [&str; 0]);
}

#[test]
fn repeats_that_did_not_take_turns_or_are_of_other_runs_are_doubted() {
    let mut figures = figures();
    figures
        .rows
        .sort_by(|a, b| a.cell.target.cmp(&b.cell.target));
    says(
        &only(&figures, FindingKind::Cpu),
        &["base and target did not take turns"],
    );
    for row in &mut figures.rows {
        row.run = usize::from(row.cell.target == "b.c");
    }
    let finding = only(&figures, FindingKind::Cpu);
    says(
        &finding,
        &["base and target were measured in different runs"],
    );
    says_not(&finding, &["did not take turns"]);
}

#[test]
fn neighbours_steal_swap_and_memory_are_mentioned_with_both_figures() {
    let finding = changed(figures(), |row, is_base| {
        let (steal, pages, pressure) = if is_base {
            (0.0, 0.0, 0.0)
        } else {
            (1.96, 50.0, 2e8)
        };
        row.metrics
            .insert("others%", Some(if is_base { 5.0 } else { 49.0 }));
        row.metrics.insert("steal%", Some(steal));
        let all = |value: f64| 100.0 * value;
        row.host_sums = BTreeMap::from([
            ("swap_in_page_count".to_owned(), all(pages)),
            ("swap_out_page_count".to_owned(), all(0.0)),
            ("pressure_memory_some_ns".to_owned(), all(pressure)),
        ]);
    });
    assert_eq!(finding.kind, FindingKind::Cpu);
    says(
        &finding,
        &[
            "the host was busy: other processes used up to 49% of the CPU",
            "the hypervisor took CPU time (steal): 0% with the base, 1.96% with the target",
            "the host swapped: 0 -> 25,000 pages",
            "threads waited for memory in 0 -> 20% of the time",
        ],
    );
}

/// The case of CPU, with writes beside the queries whose rate was met or not by the base and by the target.
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
fn a_target_write_rate_that_one_missed_is_mentioned() {
    let findings = found(&with_write_rates([true, false]));
    let cpu = findings.iter().find(|it| it.kind == FindingKind::Cpu);
    says(
        cpu.unwrap(),
        &["b.c missed its target write rate in some repeat"],
    );
}

#[test]
fn no_cause_is_named_where_both_missed_the_target_write_rate() {
    let findings = found(&with_write_rates([false; 2]));
    let changes: Vec<&Finding> = findings.iter().filter(|it| it.cause.is_some()).collect();
    let [finding] = changes[..] else {
        panic!("{changes:?}");
    };
    assert_eq!(finding.kind, FindingKind::SlaMissed);
    assert!(
        finding
            .title
            .ends_with(": both missed the target write rate"),
        "{}",
        finding.title
    );
    assert!(
        finding.text.contains("no cause is named"),
        "{}",
        finding.text
    );
    assert!(
        !finding.text.contains("makes the difference"),
        "{}",
        finding.text
    );
    assert!(!finding.caveats.iter().any(|it| it.contains("write rate")));
}

#[test]
fn the_debt_of_the_step_before_is_mentioned() {
    let mut figures = figures();
    let mut rows = Vec::new();
    for row in figures.rows {
        let dead = if row.cell.target == "a.c" {
            200_000.0
        } else {
            5_000_000.0
        };
        rows.push(Row {
            step: "l.i1".to_owned(),
            reported: false,
            metrics: BTreeMap::from([("debt_dead_rows", Some(dead))]),
            ..row.clone()
        });
        rows.push(row);
    }
    figures.rows = rows;
    says(
        &only(&figures, FindingKind::Cpu),
        &["the step before left different amounts of work: 200,000 -> 5,000,000 dead rows, 25.0x"],
    );
}

#[test]
fn trees_that_were_not_alike_are_mentioned() {
    let with = |files: f64| {
        changed(figures(), move |row, is_base| {
            let files = if is_base { 0.0 } else { files };
            row.metrics.insert("l0_files_begin", Some(files));
            row.metrics.insert("levels_begin", Some(4.0));
        })
    };
    says(
        &with(3.0),
        &[
            "the trees were not alike when it began, 4 levels with 0 L0 files -> 4 levels with 3 L0 files",
        ],
    );
    says_not(&with(0.0), &["the trees"]);
}

#[test]
fn a_busy_client_is_mentioned_once() {
    let finding = changed(figures(), |row, is_base| {
        if !is_base {
            row.warnings = ["client::busy", "settle::not-over"]
                .map(|code| record::Warning {
                    code: code.to_owned(),
                    text: String::new(),
                })
                .to_vec();
        }
    });
    says(
        &finding,
        &[
            "at least one client thread is busy nearly all the time",
            "there are warnings: settle::not-over (b.c)",
        ],
    );
    says_not(&finding, &["client::busy"]);
}

#[test]
fn processors_that_ran_slower_speak_against_what_explains_a_loss() {
    const CLOCK: &str = "the processors ran at";
    let with = |base: f64, other: f64| changed(figures(), set_metric("cpu_mhz", base, other));
    assert_eq!(
        with(3400.0, 2720.0).caveats,
        ["the processors ran at 3,400 -> 2,720 MHz, 1.25x less, which makes CPU slower by as much"]
    );
    // By less than chance and rounding, and the other way.
    says_not(&with(3400.0, 3300.0), &[CLOCK]);
    says_not(&with(2720.0, 3400.0), &[CLOCK]);
    // Who waits is not slow for the clock that waiting lowers.
    let waits = changed(figures(), |row, is_base| {
        set_metric("cpu_mhz", 3400.0, 2720.0)(row, is_base);
        row.metrics.insert("own_cpu_us_per_op", Some(10.0));
    });
    says_not(&waits, &[CLOCK]);
    // A setting is then not all that makes the difference.
    let setting = |base: f64| {
        let figures = with_setting(figures(), "jit", "on", "off");
        changed(figures, set_metric("cpu_mhz", base, 2720.0))
    };
    says(&setting(2720.0), &["which makes the difference"]);
    says_not(&setting(3400.0), &["which makes the difference"]);
}

#[test]
fn the_clock_is_a_caveat_of_own_cpu_too() {
    let with = |base: f64| {
        changed(figures(), move |row, is_base| {
            set_metric("cpu_mhz", base, 2720.0)(row, is_base);
            row.metrics
                .insert("qps", Some(20_000.0 + f64::from(row.cell.repeat)));
        })
    };
    assert_eq!(with(2720.0).kind, FindingKind::HiddenCost);
    assert_eq!(with(2720.0).caveats, [] as [&str; 0]);
    assert_eq!(with(3400.0).caveats.len(), 1);
}

#[test]
fn a_disk_that_was_slower_before_the_cells_is_a_caveat_of_fsyncs() {
    const FSYNC: &str = "before the cells an fsync took";
    let of = |fsync: f64| [("op_fsync_us", fsync), ("fsyncs_per_commit", 1.0)];
    let (base, other) = (of(100.0), of(400.0));
    let commits = || {
        repeated(&[
            cost("a.c", "l.i1", 30_000.0, &base),
            cost("b.c", "l.i1", 9000.0, &other),
        ])
    };
    let with = |figures: Figures, base: f64, other: f64| {
        changed(figures, move |row, is_base| {
            row.fsync_us = Some(if is_base { base } else { other });
        })
    };
    let finding = with(commits(), 180.0, 900.0);
    assert_eq!(finding.kind, FindingKind::Fsyncs);
    says(
        &finding,
        &["before the cells an fsync took 180 -> 900 us, 5.00x: the difference may be the disk's"],
    );
    // What one disk takes varies, a slower one makes nothing faster, and who does not wait for it does not mind.
    says_not(&with(commits(), 180.0, 330.0), &[FSYNC]);
    says_not(&with(commits(), 900.0, 180.0), &[FSYNC]);
    says_not(&with(figures(), 180.0, 900.0), &[FSYNC]);
}

#[test]
fn the_sizes_of_reads_are_told_where_reads_are_the_cause() {
    let of = |us: f64, kb: f64| {
        [
            ("op_read_us", us),
            ("own_read_kb_per_op", 8.0),
            ("rpq", 8.0 / kb),
            ("rkbpq", 8.0),
        ]
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
    let sizes = "the devices' reads were of 80 -> 20 KB, 4.00x less";
    let finding = with(Some(2048.0), 20.0);
    assert_eq!(finding.kind, FindingKind::Reads);
    says(
        &finding,
        &[
            "with b.c readahead_size is 2,048 KB and max_sectors_kb of the disk 128",
            &format!("may read in small pieces; {sizes}"),
        ],
    );
    // What the disk takes, or nothing, is asked for.
    for asked in [Some(128.0), None] {
        let limits = format!("{sizes} (max_sectors_kb 128, read_ahead_kb 256)");
        assert_eq!(with(asked, 20.0).caveats, [limits]);
    }
    assert_eq!(with(None, 79.0).caveats, [""; 0]);
    // What does not read has nothing to do with it.
    let cpu = changed(figures(), |row, _| {
        row.read_limits = Some(ReadLimits {
            max_sectors_kb: 128.0,
            compaction: Some(("readahead_size".to_owned(), 2048.0)),
            ..ReadLimits::default()
        });
    });
    assert_eq!(cpu.caveats, [""; 0]);
}
