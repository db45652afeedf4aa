//! Logical replicas of PostgreSQL: they have what replication brings them, and what assay defines.

use engine::postgres::Postgres;
use engine::{Session, SqlEngine};
use rustix::process::Signal;

use crate::place::{POSTGRES, Place, send, workload};
use crate::replication::at_a_low_rate;
use crate::show_json::{Shown, number};
use crate::{other_postgres_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

const REPLICA: &str = "replicas = 1\nreplication = \"logical\"\nreads = \"replica\"\n";

/// Returns a plan whose step `l.i1` ends then.
fn plan(end: &str) -> String {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\"]";
    let more = format!("partitions = 3\n{steps}\nstep.\"l.i1\".{end}");
    // Costs are the difference of two samples, and a busy machine may take one in two seconds.
    workload(5_000, 1_000, "4s", &more) + POSTGRES + REPLICA
}

/// Runs the Insert Benchmark and sysbench on a build.
fn replicates(build: &str) {
    let place = Place::new();
    let on_build = |plan: String| plan.replace("\"distribution\"", &format!("'{build}'"));
    let run = place.run(&on_build(plan("rows = 5000")), &[]);
    let run = run.expect_code(0).run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let metric = |step: &str, metric: &str| {
        let row = shown.row("pg.base", step);
        number(&row["metrics"][metric])
    };

    for name in ["lag_ms_max", "lag_bytes_max", "catch_up_s"] {
        assert!(metric("qr100", name) >= 0.0, "{name}");
    }

    let [primary, replica] = ["server", "replica"].map(|it| format!("{it}_cpu_us_per_op"));
    assert!(metric("qr100", &replica) > metric("qr100", &primary));
    for name in ["l.x", "l.i1", "qr100"] {
        let step = crate::stall::step(&run, name);
        let mut checks = step.step().checks.iter();
        let check = checks.find(|check| check.what == "contents of pi1 on replica_1");
        let check = check.unwrap();
        assert!(check.holds && check.found.contains("pdc"), "{check:?}");
    }

    let cell = fs_err::read_to_string(run.join("cells/pg.base/c1/r1/cell.json")).unwrap();
    assert!(cell.contains("\"replication\""), "{cell}");

    // Rows of tables without a primary key are found, too.
    let sysbench = "name = \"test\"\nclients = [2]\n[workload.sysbench]\ntables = 2\nrows = 2000\nwarmup = \"0s\"\n\
                    read-time = \"300ms\"\nwrite-time = \"300ms\"\nprimary-key = false\n\
                    steps = [\"load\", \"index\", \"update-index\", \"write-only\", \"point-query\"]\n";
    let text = on_build(sysbench.to_owned() + POSTGRES + REPLICA);
    let run = place.run(&text, &[]).expect_code(0).run_directory();
    Shown::read(&place, &run).assert_all_valid();
    let step = crate::stall::step(&run, "write-only");
    let mut checks = step.step().checks.iter();
    let check = checks.find(|check| check.what == "contents of sbtest2 on replica_1");
    assert!(check.is_some_and(|check| check.holds && check.found.contains("in k")));
}

#[test]
fn a_logical_replica_has_the_rows_and_indexes_of_its_primary() {
    if postgres_is_here_or_test_is_skipped() {
        replicates("distribution");
    }
}

#[test]
#[ignore = "another version"]
fn a_logical_replica_has_the_rows_and_indexes_of_its_primary_in_other_versions() {
    if let Some(other) = other_postgres_or_test_is_skipped() {
        replicates(&other);
    }
}

/// Starts a run, and waits for a step that writes this many rows, a fourth of them each second at
/// most.
fn in_l_i1(place: &Place, rows: u32) -> crate::place::Running {
    let end = format!("rows = {rows}\nstep.\"l.i1\".rate = {}", rows / 4);
    let mut running = place.spawn_run(&plan(&end), &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    running
}

/// Returns a session of the administrator on the replica.
fn session_on_replica(place: &Place) -> impl Session + use<> {
    let note = place.join("data/pg.base/replica_1/postgres/socket-directory");
    let directory = fs_err::read_to_string(note).unwrap();
    let url = format!("postgresql://assay@/ib?host={directory}");
    Postgres::attach(&url).unwrap().connect().unwrap()
}

#[test]
fn a_row_that_was_changed_on_a_logical_replica_makes_the_step_invalid() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();

    // Else the row would be deleted before it is looked at. The step outlasts the change.
    let plan = plan(&at_a_low_rate("6s")).replace("partitions = 3", "delete-per-insert = false");
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    let mut session = session_on_replica(&place);
    session.query("set session_replication_role = replica").unwrap();
    session.query("update pi1 set data = 'other' where transactionid = 10").unwrap();
    drop(session);
    running.wait().expect_code(4);
    let shown = Shown::read(&place, &place.only_run());
    let reasons = shown.row("pg.base", "l.i1")["reasons"].to_string();
    assert!(reasons.contains("wrong data: contents of pi1 on replica_1 is "), "{reasons}");
    assert!(reasons.contains("of all columns"), "{reasons}");
    place.assert_nothing_is_left();
}

#[test]
fn a_conflict_on_a_logical_replica_fails_the_step_with_the_servers_error() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let running = in_l_i1(&place, 40_000);
    let mut session = session_on_replica(&place);

    // The step has not come as far as that.
    session.query("insert into pi1 values (40000, now(), 0, 0, 0, 0, '')").unwrap();
    drop(session);
    let ended = running.wait().expect_code(1);
    ended.expect_in_stderr(&[
        "replica_1 no longer follows its primary",
        "its subscription does not apply changes",
        "duplicate key value violates unique constraint \"pi1_p2_pkey\"",
    ]);

    place.assert_nothing_is_left();
}

#[test]
#[ignore = "the fault is that of a physical replica"]
fn a_lost_logical_replica_fails_the_step() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let running = in_l_i1(&place, 10_000);
    send(place.server("pg.base/replica_1"), Signal::KILL);
    let ended = running.wait().expect_code(1);
    ended.expect_in_stderr(&[
        "replica_1 no longer follows its primary",
        "its server has ended",
        "logical replication apply worker",
    ]);

    place.assert_nothing_is_left();
}

#[test]
fn a_config_that_rules_logical_replication_out_is_refused_before_the_run() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    place.write("plan.toml", &plan("rows = 1000"));
    let base = "config.postgres.base";
    for (set, reads, says) in [
        (
            "set.wal_level=replica",
            "reads=primary",
            "logical replication needs `wal_level = logical`, but the config sets `replica`",
        ),
        (
            "replicas=0",
            "reads=primary",
            "logical replication is configured, but there is no replica",
        ),
        (
            "tls=true",
            "reads=replica",
            "reads go to a replica by its private socket, not by TCP or TLS",
        ),
    ] {
        let [set, reads] = [set, reads].map(|it| format!("{base}.{it}"));
        let ended = place.assay(&["check", "plan.toml", "--set", &set, "--set", &reads]);
        ended.expect_code(2).expect_in_stderr(&[says, "help: "]);
    }
}
