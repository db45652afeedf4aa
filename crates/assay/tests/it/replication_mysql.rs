//! Replicas of MySQL and MariaDB: they have the data of their primary, and break with the server's
//! own error.

use engine::mysql::{Flavor, Mysql, locate};
use engine::{Session, SqlEngine};
use rustix::process::Signal;

use crate::mysql_or_test_is_skipped;
use crate::place::{Place, mysql, send, workload};
use crate::replication::{at_a_low_rate, lag_agrees_with_the_log, run_with_a_stopped_replica};
use crate::show_json::{Shown, number};

/// Returns a plan with a replica whose step `l.i1` ends then. Commits wait for it if the build can
/// do that.
fn plan(build: &str, storage_engine: &str, end: &str) -> String {
    let steps = format!("steps = [\"l.i0\", \"l.x\", \"l.i1\"]\nstep.\"l.i1\".{end}");
    let version = locate(build).unwrap().version;
    let is_mariadb = version.flavor == Flavor::MariaDb;
    let threads = match is_mariadb {
        true => "slave_parallel_threads",
        false if version.number < (8, 0, 26) => "slave_parallel_workers",
        false => "replica_parallel_workers",
    };

    let waits = if is_mariadb { "rpl_semi_sync_master_enabled = 1, " } else { "" };
    let config = mysql(build, storage_engine).replace("set = { ", &format!("set = {{ {waits}"));
    let replica = format!("replicas = 1\nreplica.set.{threads} = 3\n");
    workload(5_000, 1_000, "1s", &steps) + &config + &replica
}

fn has_the_data_of_its_primary(storage_engine: &str) {
    let Some(build) = mysql_or_test_is_skipped(storage_engine) else {
        return;
    };

    let place = Place::new();
    let ended = place.run(&plan(&build, storage_engine, "time = '3s'"), &[]);
    let run = ended.expect_code(0).run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let metrics = &shown.row("my.base", "l.i1")["metrics"];
    assert!(number(&metrics["lag_ms_max"]) >= 0.0, "{metrics}");
    for metric in ["lag_bytes_max", "replica_cpu_us_per_op"] {
        assert!(number(&metrics[metric]) > 0.0, "{metrics}");
    }

    let run_name = run.display().to_string();
    place.assay(&["show", &run_name, "--table", "replication"]).expect_code(0).expect_in_stdout(&[
        "catch_up",
        "lag_bytes",
        "replica_cpu",
    ]);

    let step = crate::stall::step(&run, "l.i1");
    let mut checks = step.step().checks.iter();
    let check = checks.find(|check| check.what == "contents of pi1 on replica_1");
    assert!(check.is_some_and(|check| check.holds && check.found.contains("pdc")));
    if build_is_mariadb(&build) {
        let of = |name: &str| {
            let counters = [&step.step().counters_before, &step.step().counters_after];
            let [before, after] = counters.map(|it| {
                let mut counters = it.iter();
                counters.find(|it| it.name == name).unwrap().value
            });
            after - before
        };
        assert!(of("semi_sync_waited_commit_count") > 10.0);
        assert_eq!(of("semi_sync_not_waited_commit_count"), 0.0);
    }
}

/// Compares the lag of a replica with the positions in the binary log.
pub(crate) fn mysql_lag_agrees_with_the_log(place: &Place, build: &str) {
    let plan = plan(build, "innodb", "time = '12s'\nstep.\"l.i1\".rate = '15k'");
    let plan = plan.replace("rpl_semi_sync_master_enabled = 1, ", "") + "replica.cpu-quota = 0.2\n";
    lag_agrees_with_the_log(place, &plan, "my.base", "binlog_bytes");
}

fn build_is_mariadb(build: &str) -> bool {
    locate(build).unwrap().version.flavor == Flavor::MariaDb
}

#[test]
fn a_replica_has_the_data_of_its_primary() {
    has_the_data_of_its_primary("innodb");
}

#[test]
#[ignore = "another engine of the same server"]
fn a_replica_has_the_data_of_its_primary_with_myrocks() {
    has_the_data_of_its_primary("rocksdb");
}

/// Returns a session of the administrator on the replica, which may write and does not log that.
fn writing_session_on_replica(place: &Place, build: &str) -> impl Session + use<> {
    let note = place.join("data/my.base/replica_1/mysql/socket-directory");
    let directory = fs_err::read_to_string(note).unwrap();
    let url = format!("mysql://root@localhost/ib?socket={directory}/mysqld.sock");
    let mut session = Mysql::attach(&url).unwrap().connect().unwrap();
    if !build_is_mariadb(build) {
        session.query("set global super_read_only = off").unwrap();
    }
    session.query("set session sql_log_bin = 0").unwrap();
    session
}

#[test]
fn a_row_that_was_changed_on_a_replica_makes_the_step_invalid() {
    let Some(build) = mysql_or_test_is_skipped("innodb") else {
        return;
    };

    let place = Place::new();

    // Else the row would be deleted before it is looked at.
    let plan = plan(&build, "innodb", &at_a_low_rate("6s"));
    let plan = plan.replace("read-write-time", "delete-per-insert = false\nread-write-time");
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    let mut session = writing_session_on_replica(&place, &build);
    session.query("update pi1 set data = 'other' where transactionid = 10").unwrap();
    drop(session);
    running.wait().expect_code(4);
    let shown = Shown::read(&place, &place.only_run());
    let reasons = shown.row("my.base", "l.i1")["reasons"].to_string();
    assert!(reasons.contains("wrong data: contents of pi1 on replica_1 is "), "{reasons}");
    assert!(reasons.contains("of all columns"), "{reasons}");
    place.assert_nothing_is_left();
}

#[test]
fn a_replica_that_commits_wait_for_lags_while_it_is_stopped() {
    let Some(build) = mysql_or_test_is_skipped("innodb") else {
        return;
    };

    if !build_is_mariadb(&build) {
        return;
    }

    let place = Place::new();
    let run = run_with_a_stopped_replica(
        &place,
        &plan(&build, "innodb", &at_a_low_rate("9s")),
        "my.base",
    );
    let shown = Shown::read(&place, &run);
    let row = shown.row("my.base", "l.i1");
    assert!(number(&row["metrics"]["lag_ms_max"]) >= 4_500.0, "{row}");
}

#[test]
fn a_replica_that_somebody_writes_to_fails_the_step_with_the_servers_error() {
    let Some(build) = mysql_or_test_is_skipped("innodb") else {
        return;
    };

    let place = Place::new();
    let mut running = place.spawn_run(&plan(&build, "innodb", &at_a_low_rate("6s")), &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    let mut session = writing_session_on_replica(&place, &build);
    let word = if build_is_mariadb(&build) || locate(&build).unwrap().version.number < (8, 0, 26) {
        "slave"
    } else {
        "replica"
    };

    // The replica's threads hold no locks meanwhile, in which the deletion of all rows could be
    // caught.
    for sql in
        [&format!("stop {word} sql_thread"), "delete from pi1", &format!("start {word} sql_thread")]
    {
        session.query(sql).unwrap();
    }

    let ended = running.wait().expect_code(1);
    ended.expect_in_stderr(&["replica_1", "no longer follows", "Can't find record in 'pi1'"]);
    place.assert_nothing_is_left();
}

#[test]
#[ignore = "the fault is that of PostgreSQL"]
fn a_lost_replica_fails_the_step() {
    let Some(build) = mysql_or_test_is_skipped("innodb") else {
        return;
    };
    let place = Place::new();
    let mut running = place.spawn_run(&plan(&build, "innodb", "time = '2s'"), &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    send(place.server("my.base/replica_1"), Signal::KILL);
    let ended = running.wait().expect_code(1);
    ended.expect_in_stderr(&["replica_1 no longer follows its primary"]);
    place.assert_nothing_is_left();
}
