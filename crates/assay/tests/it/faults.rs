//! Faults of servers and of assay itself in the midst of a step.

use rustix::process::Signal;

use crate::place::{
    LONG_AND_SHORT, POSTGRES, Place, QUICK, SQLITE, entries, eventually, mysql, parent_of, send,
    with_children, workload,
};
use crate::show_json::Shown;
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

const STEPS: &str = "steps = [\"l.i0\", \"l.x\", \"qr100\"]";
const BOTH_DONE: [(&str, &str, bool); 2] = [("l.i0", "complete", true), ("l.x", "complete", true)];

/// Returns a plan whose query step is long enough to meet with an accident.
fn plan(time: &str, engine: &str) -> String {
    workload(2_000, 1_000, time, STEPS) + engine
}

/// The server of `build.base`, or the process that `victim` finds from it, is killed in mid-step;
/// `build.next` is the next cell.
fn a_killed_server_fails_its_step_alone(
    engine: &str,
    (build, victim): (&str, fn(u32) -> u32),
    last_words: &str,
) {
    let place = Place::new();
    let plan = workload(2_000, 1_000, QUICK, STEPS) + LONG_AND_SHORT + engine;
    let (base, next) = (format!("{build}.base"), format!("{build}.next"));
    let only = [format!("{base}/long/*/*"), format!("{next}/short/*/*")];
    // Longer than a test waits: a failed step gives its server much less time to stop.
    let timeout = ["--set", "server-timeout=30m"];
    let filters = ["--only", &only[0], "--only", &only[1]];
    let mut running = place.spawn_run(&plan, &[&timeout[..], &filters].concat());
    place.wait_for_step(&mut running, "03-qr100");

    // Assay may see that a connection is lost before a busy machine lets the server log why.
    running.signal(Signal::STOP);
    send(victim(place.server(&base)), Signal::KILL);
    let log = place.only_run().join(format!("cells/{base}/long/c1/r1/server.log"));
    eventually("the server has logged its last words", || {
        fs_err::read_to_string(&log).is_ok_and(|text| text.contains(last_words))
    });
    running.signal(Signal::CONT);
    let ended = running.wait().expect_code(1).expect_in_stderr(&[
        &format!("error: step `qr100` of `{base}` failed"),
        "the last lines of the log",
        last_words,
        &next,
    ]);
    assert!(ended.stdout.contains("Problems and warnings"), "{ended}");
    place.assert_nothing_is_left();

    let shown = Shown::read(&place, &place.only_run());
    assert_eq!(shown.status(), "failed");

    let mut expected = BOTH_DONE.to_vec();
    expected.push(("qr100", "failed", false));
    assert_eq!(shown.steps(&base), expected);
    expected[2] = ("qr100", "complete", true);
    assert_eq!(shown.steps(&next), expected);
    assert_eq!(shown.json["unfinished"].as_array().unwrap().len(), 1);
}

#[test]
fn a_killed_postgres_fails_its_step_and_the_next_cell_is_run() {
    if postgres_is_here_or_test_is_skipped() {
        let engine = format!("{POSTGRES}[config.postgres.next]\nextends = \"base\"\n");
        a_killed_server_fails_its_step_alone(
            &engine,
            ("pg", |server| server),
            "database system is ready to accept connections",
        );
    }
}

/// Returns a process of a server of PostgreSQL that serves a connection.
fn backend_of(server: u32) -> u32 {
    let is_backend = |pid: &u32| {
        let title = fs_err::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        title.contains("[local]")
    };
    with_children(server).into_iter().find(is_backend).expect("a backend")
}

#[test]
fn a_postgres_that_lost_a_backend_does_not_hold_the_run_up() {
    if postgres_is_here_or_test_is_skipped() {
        // It begins to recover. A request to stop that comes meanwhile may be answered never.
        let engine = format!("{POSTGRES}[config.postgres.next]\nextends = \"base\"\n");
        a_killed_server_fails_its_step_alone(
            &engine,
            ("pg", backend_of),
            "was terminated by signal 9",
        );
    }
}

#[test]
#[ignore = "the fault is that of PostgreSQL"]
fn a_killed_mysql_or_guard_of_it_fails_its_step_and_the_next_cell_is_run() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        let base = mysql(&build, "innodb");
        let engine = format!("{base}[config.mysql.next]\nextends = \"base\"\n");
        let victims: [fn(u32) -> u32; 2] = [|server| server, parent_of];
        for victim in victims {
            a_killed_server_fails_its_step_alone(&engine, ("my", victim), "ready for connections");
        }
    }
}

/// Signals end a run in good order: with this name of the engine's target.
fn interrupted_in_good_order(signals: &[Signal], target: &str, engine: &str) {
    let place = Place::new();
    let mut running = place.spawn_run(&plan("60s", engine), &[]);
    place.wait_for_step(&mut running, "03-qr100");

    for &signal in signals {
        running.signal(signal);
    }

    let ended = running.wait().expect_code(130);
    assert_eq!(
        ended.stdout.lines().last().map(|line| place.join(line)),
        Some(place.only_run()),
        "{ended}"
    );
    place.assert_nothing_is_left();

    let shown = Shown::read(&place, &place.only_run());
    assert_eq!(shown.status(), "interrupted");
    assert!(shown.json["run"]["ended_unix_ns"].is_u64());

    let mut expected = BOTH_DONE.to_vec();
    expected.push(("qr100", "interrupted", false));
    assert_eq!(shown.steps(target), expected);
}

#[test]
fn sigint_stops_the_server_and_closes_the_record() {
    if postgres_is_here_or_test_is_skipped() {
        interrupted_in_good_order(&[Signal::INT], "pg.base", POSTGRES);
    }
}

#[test]
#[ignore = "the signal is that of PostgreSQL"]
fn sigint_stops_myrocks_and_closes_the_record() {
    if let Some(build) = mysql_or_test_is_skipped("rocksdb") {
        interrupted_in_good_order(&[Signal::INT], "my.base", &mysql(&build, "rocksdb"));
    }
}

#[test]
#[ignore = "the request is that of SIGINT"]
fn sigterm_stops_the_server_and_closes_the_record() {
    if postgres_is_here_or_test_is_skipped() {
        interrupted_in_good_order(&[Signal::TERM], "pg.base", POSTGRES);
    }
}

#[test]
fn sigint_closes_the_record_of_sqlite() {
    interrupted_in_good_order(&[Signal::INT], "lite.base", SQLITE);
}

#[test]
fn several_signals_at_once_are_one_request() {
    // The signals that `timeout` and a closing terminal send; all are pending when the process
    // continues.
    let signals = [Signal::STOP, Signal::INT, Signal::TERM, Signal::HUP, Signal::CONT];
    interrupted_in_good_order(&signals, "lite.base", SQLITE);
}

#[test]
fn sigterm_while_the_server_starts_leaves_nothing_either() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let running = place.spawn_run(&plan("60s", POSTGRES), &[]);
    let cluster = place.join("data/pg.base/postgres/cluster");
    eventually("the cluster is being made", || cluster.exists());
    running.signal(Signal::TERM);

    running.wait().expect_code(130);
    assert!(place.processes().is_empty());
    assert_eq!(entries(&place.join("tmp")).len(), 0);
    assert_eq!(Shown::read(&place, &place.only_run()).status(), "interrupted");
}

#[test]
fn no_postgres_survives_a_killed_assay_and_what_was_finished_reads() {
    if postgres_is_here_or_test_is_skipped() {
        no_server_survives_a_killed_assay("pg.base", POSTGRES);
    }
}

#[test]
#[ignore = "the fault is that of PostgreSQL"]
fn no_mysql_survives_a_killed_assay_and_what_was_finished_reads() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        no_server_survives_a_killed_assay("my.base", &mysql(&build, "innodb"));
    }
}

fn no_server_survives_a_killed_assay(target: &str, engine: &str) {
    let place = Place::new();
    let mut running = place.spawn_run(&plan("60s", engine), &[]);
    place.wait_for_step(&mut running, "03-qr100");

    // Assay, the guard and the server at least.
    assert!(place.processes().len() >= 3, "{:?}", place.processes());
    running.signal(Signal::KILL);
    assert_eq!(running.wait().signal, Some(9));
    eventually("the server and its guard are gone", || place.processes().is_empty());
    assert_eq!(entries(&place.join("tmp")).len(), 0);

    let run = place.only_run();
    let shown = Shown::read(&place, &run);
    assert_eq!(shown.status(), "incomplete");

    let mut expected = BOTH_DONE.to_vec();
    expected.push(("qr100", "incomplete", false));
    assert_eq!(shown.steps(target), expected);

    // A report can be made of it too, and the next run takes the place over.
    place.assay(&["report", run.to_str().unwrap()]).expect_code(0);
    place.run(&plan(QUICK, engine), &[]).expect_code(0);
}

#[test]
fn two_runs_do_not_share_a_data_directory() {
    let place = Place::new();
    let mut first = place.spawn_run(&plan("60s", SQLITE), &[]);
    place.wait_for_step(&mut first, "03-qr100");
    place
        .spawn_run(&plan("60s", SQLITE), &[])
        .wait()
        .expect_code(2)
        .expect_in_stderr(&["another run of assay uses the data directory", "help: "]);

    first.must_run("it was interrupted");
    first.signal(Signal::INT);
    first.wait().expect_code(130);
    place.assert_nothing_is_left();
}

#[test]
fn a_second_simultaneous_run_has_its_own_directory() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    // Longer than the second takes, however slow the machine is.
    let mut first = place.spawn_run(&plan("600s", POSTGRES), &[]);
    place.wait_for_step(&mut first, "03-qr100");
    let second =
        place.spawn_run(&plan(QUICK, POSTGRES), &["--data", "other", "--results", "others"]).wait();
    second.expect_code(0);

    first.must_run("it was interrupted");
    first.signal(Signal::INT);
    first.wait().expect_code(130);
    place.assert_nothing_is_left();
}
