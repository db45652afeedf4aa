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
    // The resolution of the lag is 0.1 s.
    assert!(lag_ms >= 4_800.0, "{row}");
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
fn a_replica_that_does_not_start_leaves_its_log_and_nothing_else() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    // A replica needs as many as its primary.
    let too_few = "replica.set.max_worker_processes = 0\n";
    place
        .run(&plan("rows = 1000", too_few), &[])
        .expect_code(1)
        .expect_in_stderr(&[
            "replica_1 can't be started",
            "insufficient parameter settings",
        ]);
    place.assert_nothing_is_left();
    assert!(!place.join("data/pg.base").exists());
    let cell = place.only_run().join("cells/pg.base/c1/r1");
    for kept in [
        "server.log",
        "server.conf",
        "replica_1.log",
        "replica_1.conf",
    ] {
        let text = fs_err::read_to_string(cell.join(kept)).unwrap();
        assert!(!text.is_empty(), "{kept}");
    }
}

#[test]
fn reads_of_a_replica_burden_it_instead_of_its_primary_and_find_what_they_should() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\", \"qp100\"]";
    let text = workload(5_000, 1_000, "2s", steps)
        + POSTGRES
        + "replicas = 2\n[config.postgres.far]\nextends = \"base\"\nreads = \"replica\"\n";
    let run = place.run(&text, &[]).expect_code(0).run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    for step in ["qr100", "qp100"] {
        let cpu = |target, metric: &str| number(&shown.row(target, step)["metrics"][metric]);
        let [near, far] = ["pg.base", "pg.far"];
        let (server, replica) = ("server_cpu_us_per_op", "replica_cpu_us_per_op");
        assert!(cpu(near, server) > 2.0 * cpu(far, server), "{step}");
        assert!(cpu(far, replica) > 2.0 * cpu(near, replica), "{step}");
        for metric in [
            "replica_write_kb_per_op",
            "replica_switches_per_op",
            "server_switches_per_op",
        ] {
            assert!(cpu(far, metric) > 0.0, "{metric}");
        }
    }
    let cell = fs_err::read_to_string(run.join("cells/pg.far/c1/r1/cell.json")).unwrap();
    assert!(cell.contains("\"reads\""), "{cell}");
    let refused = place.run(&text.replace("replicas = 2", "replicas = 0"), &[]);
    refused
        .expect_code(2)
        .expect_in_stderr(&["its reads go to a replica, but it has none"]);
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
    running.wait().expect_code(1).expect_in_stderr(&[
        "replica_1 no longer follows its primary",
        "entering standby mode",
    ]);
    place.assert_nothing_is_left();
    let mut running = place.spawn_run(&plan("time = '20s'", ""), &["--results", "killed"]);
    place.wait_for_step_in(&place.join("killed"), &mut running, "03-l.i1");
    running.signal(Signal::KILL);
    running.wait();
    crate::place::eventually("no process is left", || place.processes().is_empty());
}
