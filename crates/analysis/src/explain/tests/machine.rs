//! What the machine had to give while a target ran: its clock, and its disk.

use super::*;

const FREQUENCY: &str = "the processors ran at";
const FSYNC: &str = "an fsync took";

/// A step that commits 600 and 300 times a second, each with an fsync.
fn commits() -> Figures {
    let metrics: &[(&'static str, f64)] = &[("cpupq", 20.0), ("fsyncs_per_commit", 1.0)];
    let costs = [("a.c", 30_000.0), ("b.c", 15_000.0)].map(|(target, rate)| Cost {
        target,
        step: "l.i1",
        clients: 4,
        rate,
        metrics,
    });
    repeated(&costs)
}

/// A step that reads, on the processors alone.
fn reads() -> Figures {
    super::reads([("a.c", 30_000.0, 100.0), ("b.c", 24_000.0, 125.0)])
}

/// The only finding of figures of which `set` has changed the rows of each of the two targets.
fn only(mut figures: Figures, set: impl Fn(&mut Row, bool)) -> Finding {
    for row in &mut figures.rows {
        let is_base = row.target == "a.c";
        set(row, is_base);
    }
    let mut findings = found(&figures);
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

fn at(base: f64, other: f64) -> impl Fn(&mut Row, bool) {
    move |row, is_base| {
        let mhz = if is_base { base } else { other };
        row.metrics.insert("cpu_mhz", Some(mhz));
    }
}

#[test]
fn processors_that_ran_slower_speak_against_what_explains_a_loss() {
    let finding = only(reads(), at(3400.0, 2720.0));
    assert_eq!(finding.kind, FindingKind::Cpu);
    assert_eq!(
        finding.against,
        [
            "the processors ran at 3400 -> 2720 MHz, 0.80x: CPU is slower by that much, which is the machine's doing and no \
             other work of the target's"
        ]
    );
    // By less than chance and rounding, and the other way.
    says_not(&only(reads(), at(3400.0, 3300.0)), &[FREQUENCY]);
    says_not(&only(reads(), at(2720.0, 3400.0)), &[FREQUENCY]);
    // Of one side nothing is told.
    let of_base = |row: &mut Row, is_base: bool| {
        let mhz = is_base.then_some(3400.0);
        row.metrics.insert("cpu_mhz", mhz);
    };
    says_not(&only(reads(), of_base), &[FREQUENCY]);
}

#[test]
fn a_setting_is_not_all_of_a_difference_that_the_clock_has_a_part_in() {
    const SETTING: &str = "the difference is this setting";
    let mut figures = reads();
    let jit = ("jit", "on", "off");
    figures.settings.differences = vec![apart(("a.c", "8.0"), ("b.c", "8.0"), &[jit])];
    says(&only(figures.clone(), at(3400.0, 3390.0)), &[SETTING]);
    says_not(&only(figures, at(3400.0, 2720.0)), &[SETTING]);
}

#[test]
fn who_waits_is_not_slow_for_the_clock_that_the_waiting_lowers() {
    // 20 us of CPU in 133 and 267 us: the governor slowed down since there was little to do.
    says_not(&only(commits(), at(3400.0, 2720.0)), &[FREQUENCY]);
}

#[test]
fn processors_that_ran_slower_speak_against_a_cost_at_the_same_throughput() {
    let mut figures = reads();
    for row in &mut figures.rows {
        let rate = 30_000.0 * (1.0 + f64::from(row.repeat) / 1000.0);
        row.metrics.insert("qps", Some(rate));
    }
    let options = CompareOptions {
        base: "a.c".to_owned(),
        resamples: 200,
        metrics: vec!["cpupq"],
        ..CompareOptions::default()
    };
    let told = |base, other| {
        let mut figures = figures.clone();
        for row in &mut figures.rows {
            let is_base = row.target == "a.c";
            at(base, other)(row, is_base);
        }
        let findings = explain(&figures, &compare(&figures, &options));
        assert_eq!(kinds(&findings), [FindingKind::HiddenCost]);
        findings[0].against.clone()
    };
    assert_eq!(told(3400.0, 3390.0), [] as [&str; 0]);
    let [doubt] = &told(3400.0, 2720.0)[..] else {
        panic!("there is no doubt");
    };
    assert!(doubt.starts_with("the processors ran at 3400 -> 2720 MHz"));
}

fn fsyncs(base: f64, other: f64) -> impl Fn(&mut Row, bool) {
    move |row, is_base| row.fsync_us = Some(if is_base { base } else { other })
}

#[test]
fn a_disk_that_was_slower_before_the_cells_speaks_against_commits_that_wait_for_it() {
    says(
        &only(commits(), fsyncs(180.0, 900.0)),
        &[
            "before the cells were run an fsync took 180 -> 900 us, 5.00x, and commits wait for it: the difference may be the \
             disk's and not the target's",
        ],
    );
    // What one disk is found to take varies, a slower one makes nothing faster, and half of it is not known.
    says_not(&only(commits(), fsyncs(180.0, 330.0)), &[FSYNC]);
    says_not(&only(commits(), fsyncs(900.0, 180.0)), &[FSYNC]);
    let of_base = |row: &mut Row, is_base: bool| row.fsync_us = is_base.then_some(180.0);
    says_not(&only(commits(), of_base), &[FSYNC]);
}

#[test]
fn a_slower_disk_is_nothing_to_who_does_not_wait_for_it() {
    says_not(&only(reads(), fsyncs(180.0, 900.0)), &[FSYNC]);
    // Commits that are not made durable.
    let asynchronous = |row: &mut Row, is_base: bool| {
        fsyncs(180.0, 900.0)(row, is_base);
        row.metrics.insert("fsyncs_per_commit", Some(0.001));
    };
    says_not(&only(commits(), asynchronous), &[FSYNC]);
}

/// SQLite counts nothing; the disks do. So many flushes per commit on either side.
fn flushes(base: f64, other: f64) -> impl Fn(&mut Row, bool) {
    move |row, is_base| {
        row.metrics.insert("fsyncs_per_commit", None);
        let flushes = if is_base { base } else { other };
        row.metrics.insert("flushes_per_commit", Some(flushes));
    }
}

#[test]
fn where_the_engine_counts_no_fsyncs_the_disks_tell_them() {
    let finding = only(commits(), flushes(1.0, 2.0));
    assert_eq!(finding.kind, FindingKind::Fsyncs);
    says(
        &finding,
        &[
            "2.00x the flushes of the disks per commit",
            "A commit takes more flushes of the disks: 1 -> 2 /commit, 2.00x.",
        ],
    );
    // Where it counts them, others may have made the disks flush.
    let counts = |row: &mut Row, is_base: bool| {
        flushes(1.0, 2.0)(row, is_base);
        row.metrics.insert("fsyncs_per_commit", Some(1.0));
    };
    assert_ne!(only(commits(), counts).kind, FindingKind::Fsyncs);
}

#[test]
fn where_the_engine_counts_no_fsyncs_the_disks_say_whether_commits_wait() {
    let slower = |flushed: f64| {
        move |row: &mut Row, is_base: bool| {
            fsyncs(180.0, 900.0)(row, is_base);
            flushes(flushed, flushed)(row, is_base);
        }
    };
    says(&only(commits(), slower(1.0)), &[FSYNC]);
    says_not(&only(commits(), slower(0.001)), &[FSYNC]);
}
