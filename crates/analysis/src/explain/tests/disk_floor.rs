//! Steps that the disk limits.

use super::*;
use crate::explain::statement::{AtFloor, FloorRequests};
use crate::figures::{FloorRate, StepFloor};

/// Gives each row the floor of a disk with 10,000 reads and 500 syncs per second.
fn on_disk(mut figures: Figures, drift: f64) -> Figures {
    let rate = |per_s| Some(FloorRate { per_s, drift });
    for row in &mut figures.rows {
        row.floor = Some(StepFloor { reads: rate(10_000.0), syncs: rate(500.0) });
    }
    figures
}

/// Returns the requests at the floor, with the names of targets and their percentages.
fn at_floor(figures: &Figures) -> Vec<(FloorRequests, Vec<(String, f64)>)> {
    explained(figures, |explanation| match &explanation.statement {
        Statement::AtFloor(AtFloor { requests, steps }) => {
            let steps = steps.iter().map(|step| (step.who.clone(), step.percent));
            Some((*requests, steps.collect()))
        }
        _ => None,
    })
}

const SYNCED: &[(&str, f64)] = &[("fsync_efficiency", 96.0), ("log_fsyncs_per_commit", 1.0)];

#[test]
fn commits_that_come_close_to_the_floor_are_a_finding_of_one_repeat() {
    let figures = on_disk(single(&[cost("a.c", "l.i1", 24_000.0, SYNCED)]), 1.0);
    let finding = only(&figures, FindingKind::DiskFloor);
    assert_eq!((finding.base, finding.step.as_deref()), (None, Some("l.i1")));
    let figure = |name: &str| {
        let mut evidence = finding.evidence.iter();
        evidence.find(|evidence| evidence.name == name).and_then(|evidence| evidence.value)
    };
    assert_eq!(figure("fsyncs of the log of a.c in l.i1"), Some(480.0));
    assert_eq!(figure("`fdatasync` calls of the disk alone"), Some(500.0));
}

#[test]
fn commits_far_from_the_floor_or_of_a_disk_that_changed_are_none() {
    let far: &[(&str, f64)] = &[("fsync_efficiency", 60.0), ("log_fsyncs_per_commit", 1.0)];
    let above: &[(&str, f64)] = &[("fsync_efficiency", 130.0), ("log_fsyncs_per_commit", 1.0)];
    // A log that a background thread syncs as fast as it can, while commits don't wait.
    let waitless: &[(&str, f64)] = &[("fsync_efficiency", 96.0), ("log_fsyncs_per_commit", 0.001)];
    for metrics in [far, above, waitless] {
        let figures = on_disk(single(&[cost("a.c", "l.i1", 24_000.0, metrics)]), 1.0);
        assert_eq!(at_floor(&figures), [], "{metrics:?}");
    }
    let changed = on_disk(single(&[cost("a.c", "l.i1", 24_000.0, SYNCED)]), 1.6);
    assert_eq!(at_floor(&changed), []);
    let unknown = single(&[cost("a.c", "l.i1", 24_000.0, SYNCED)]);
    assert_eq!(at_floor(&unknown), []);
}

#[test]
fn reads_at_the_floor_limit_only_operations_that_wait_for_them() {
    // 4 clients at 4,000 per second take 1,000 us for an operation.
    let read = |wait_us| {
        let metrics = [("io_efficiency", 90.0), ("op_read_us", wait_us)];
        on_disk(single(&[cost("a.c", "q100", 4000.0, &metrics)]), 1.0)
    };
    assert_eq!(at_floor(&read(700.0)), [(FloorRequests::Reads, vec![("a.c".to_owned(), 90.0)])]);
    assert_eq!(at_floor(&read(50.0)), []);
}

#[test]
fn the_typical_repeat_of_each_target_counts() {
    let costs =
        [95.0, 85.0].map(|percent| [("fsync_efficiency", percent), ("log_fsyncs_per_commit", 1.0)]);
    let mut figures = on_disk(
        repeated(&[
            cost("a.c", "l.i1", 24_000.0, &costs[0]),
            cost("b.c", "l.i1", 24_100.0, &costs[1]),
        ]),
        1.0,
    );
    // Two of five repeats of the first were far from the floor.
    let mut of_first = figures.rows.iter_mut().filter(|row| row.cell.target == "a.c");
    for row in of_first.by_ref().take(2) {
        row.metrics.insert("fsync_efficiency", Some(20.0));
    }
    let found = at_floor(&figures);
    let (requests, steps) = &found[0];
    assert_eq!((found.len(), *requests), (1, FloorRequests::Commits));
    let names: Vec<&str> = steps.iter().map(|(who, _)| who.as_str()).collect();
    assert_eq!(names, ["a.c", "b.c"]);

    // A third one is more than half.
    of_first_is_far(&mut figures);
    let found = at_floor(&figures);
    assert_eq!(found[0].1.len(), 1);
    assert_eq!(found[0].1[0].0, "b.c");
}

/// Moves one more repeat of the first target away from the floor.
fn of_first_is_far(figures: &mut Figures) {
    let mut near = figures.rows.iter_mut().filter(|row| {
        row.cell.target == "a.c"
            && row.metric("fsync_efficiency").is_some_and(|percent| percent > 50.0)
    });
    near.next().unwrap().metrics.insert("fsync_efficiency", Some(20.0));
}
