//! Replicas that fall behind, stop for a while, and go away with assay.

use std::time::Duration;

use rustix::process::Signal;

use crate::place::{POSTGRES, Place, send, with_children, workload};
use crate::postgres_is_here_or_test_is_skipped;
use crate::show_json::{Shown, number};

/// Returns a plan with a replica, and more lines of its config, whose step `l.i1` ends then.
fn plan(end: &str, replica: &str) -> String {
    let steps = format!("steps = [\"l.i0\", \"l.x\", \"l.i1\"]\nstep.\"l.i1\".{end}");
    workload(5_000, 1_000, "1s", &steps) + POSTGRES + "replicas = 1\n" + replica
}

#[test]
#[ignore = "a replica that lags is one that was stopped"]
fn a_replica_with_too_little_cpu_falls_behind_and_catches_up() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let ended = place
        .run(&plan("rows = 60_000", "replica.cpu-quota = 0.03\n"), &[])
        .expect_code(0);
    let run = ended.run_directory();
    let cell = run.join("cells/pg.base/c1/r1");
    assert!(cell.join("replica_1.log").is_file());
    let cell = fs_err::read_to_string(cell.join("cell.json")).unwrap();
    assert!(cell.contains("replica.cpu-quota"), "{cell}");
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let metrics = &shown.row("pg.base", "l.i1")["metrics"];
    assert!(number(&metrics["lag_ms_max"]) > 300.0, "{metrics}");
    assert!(number(&metrics["catch_up_s"]) > 0.5, "{metrics}");
}

#[test]
fn a_stopped_replica_lags_by_as_much_and_leaves_the_primary_alone() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let mut running = place.spawn_run(&plan("time = '8s'", ""), &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    let replica = with_children(place.server("pg.base/replica_1"));
    assert!(replica.len() > 3, "{replica:?}");
    replica.iter().for_each(|&pid| send(pid, Signal::STOP));
    std::thread::sleep(Duration::from_secs(5));
    replica.iter().for_each(|&pid| send(pid, Signal::CONT));
    running.wait().expect_code(0);
    place.assert_nothing_is_left();
    let run = place.only_run();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let row = shown.row("pg.base", "l.i1");
    let lag_ms = number(&row["metrics"]["lag_ms_max"]);
    assert!(lag_ms >= 5_000.0, "{row}");
    for metric in ["lag_bytes_max", "replica_cpu_us_per_op"] {
        assert!(number(&row["metrics"][metric]) > 0.0, "{row}");
    }
    let catch_up_s = number(&row["metrics"]["catch_up_s"]);
    assert!(catch_up_s < lag_ms / 1e3, "{row}");
    // Rows, keys and indexes of the replica were compared.
    let step = crate::stall::step(&run, "l.i1");
    let mut checks = step.step().checks.iter();
    let check = checks.find(|check| check.what == "contents of pi1 on replica_1");
    assert!(check.is_some_and(|check| check.holds && check.found.contains("pdc")));
}

#[test]
fn a_replica_goes_with_assay_and_a_lost_one_fails_the_step() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let mut running = place.spawn_run(&plan("time = '2s'", ""), &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    send(place.server("pg.base/replica_1"), Signal::KILL);
    running
        .wait()
        .expect_code(1)
        .expect_in_stderr(&["replica_1"]);
    place.assert_nothing_is_left();
    let mut running = place.spawn_run(&plan("time = '20s'", ""), &["--results", "killed"]);
    place.wait_for_step_in(&place.join("killed"), &mut running, "03-l.i1");
    running.signal(Signal::KILL);
    running.wait();
    crate::place::eventually("no process is left", || place.processes().is_empty());
}
