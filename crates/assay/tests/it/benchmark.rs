//! The Insert Benchmark, small, from the plan to the report.

use std::path::Path;

use engine::{Session, SqlEngine};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::Value;

use crate::place::{NULL, POSTGRES, Place, QUICK, SQLITE, any_below, entries, mysql, workload};
use crate::show_json::{Shown, number};
use crate::{
    mysql_or_test_is_skipped, other_postgres_or_test_is_skipped,
    postgres_is_here_or_test_is_skipped,
};

const ALL_STEPS: [&str; 11] = [
    "l.i0", "l.x", "l.i1", "l.i2", "settle", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
];

/// Runs a plan that must succeed in all, and looks at everything that it leaves.
fn run_well(plan: &str, more: &[&str]) -> (Place, Shown) {
    let place = Place::new();
    let ended = place.run(plan, more).expect_code(0);

    let run = ended.run_directory();
    let report = fs_err::read_to_string(run.join("report.html")).unwrap();
    for outside in ["src=\"http", "href=\"http", "url(http", "@import", "src=\"//"] {
        assert!(!report.contains(outside), "the report needs `{outside}`");
    }

    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    assert_eq!(shown.status(), "complete");
    assert!(shown.json["unfinished"].as_array().unwrap().is_empty());

    (place, shown)
}

/// The duration of query steps in which a schedule is checked: each has a few commits, and samples
/// enough of what queries wait for, even if a busy machine takes few.
const SCHEDULED: &str = "2s";

/// The durations of the steps of [`ALL_STEPS`] whose rates are higher: half a second is longer than a
/// busy machine lets a connection wait for a processor.
const SCHEDULED_OFTEN: &str = "step.qr500.time = \"500ms\"\nstep.qp500.time = \"500ms\"\n\
    step.qr1000.time = \"500ms\"\nstep.qp1000.time = \"500ms\"";

/// Returns the seconds for which a query step of [`ALL_STEPS`] has a schedule.
fn scheduled_seconds(step: &str) -> f64 {
    if ["qr100", "qp100"].contains(&step) { 2.0 } else { 0.5 }
}

/// A schedule offers exactly what the rate asks for, and no more than that is done. The machine
/// decides whether all of it is done.
fn assert_rates(shown: &Shown) {
    let queries = shown.rows().iter().filter(|row| row["kind"] == "query");

    for row in queries {
        let seconds = scheduled_seconds(row["step"].as_str().unwrap());
        let sla = &row["sla"];
        let asked = number(&sla["target"]);
        for kind in ["insert", "delete"] {
            let ops = &row["ops"][kind];
            let [rows, count, offered] = ["rows", "count", "offered"].map(|key| number(&ops[key]));
            // The requested number of commits, each with the same number of rows.
            assert_eq!(rows * offered, asked * seconds * count, "{ops}");
            assert!(count > 0.0, "{ops}");
        }

        let had = number(&sla["achieved"]) / asked;
        assert!(had <= 1.001, "{sla}");
        assert_eq!(sla["met"], had >= 0.95, "{sla}");
    }
}

#[test]
fn all_steps_on_sqlite_with_two_clients() {
    let plan = workload(20_000, 10_000, SCHEDULED, SCHEDULED_OFTEN) + SQLITE;
    let (_, shown) = run_well(&plan, &["--set", "clients=[2]"]);
    assert_eq!(shown.steps("lite.base"), ALL_STEPS.map(|step| (step, "complete", true)));
    assert_rates(&shown);
    time_is_accounted_for(shown.row("lite.base", "qr100"), false);
    let load = shown.row("lite.base", "l.i0");
    assert_eq!(load["ops"]["insert"]["rows"], 40_000);
    let write = shown.row("lite.base", "l.i1");
    assert_eq!(write["ops"]["insert"]["rows"], 16_000);
    assert_eq!(write["ops"]["delete"]["rows"], 16_000);
}

/// All steps, with two clients, on a server that is the target.
fn all_steps_on(target: &str, engine: &str) {
    let plan = workload(20_000, 10_000, SCHEDULED, SCHEDULED_OFTEN) + engine;
    let (place, shown) = run_well(&plan, &["--set", "clients=[2]"]);
    assert_eq!(shown.steps(target), ALL_STEPS.map(|step| (step, "complete", true)));
    assert_rates(&shown);
    let write = shown.row(target, "l.i1");
    assert_eq!(write["ops"]["delete"]["rows"], 16_000);
    // A server apart has a CPU time of its own, and a log and a configuration that are kept.
    assert!(number(&write["metrics"]["server_cpu_us_per_op"]) > 0.0);
    let run = place.only_run();
    assert!(any_below(&run, "server.log") && any_below(&run, "server.conf"));
    time_is_accounted_for(shown.row(target, "qr100"), true);
}

/// The parts of a query's time are all there, and come to about as much as it is: the rest is found
/// as a difference, and is small only where the parts are right.
fn time_is_accounted_for(row: &Value, has_server: bool) {
    let metrics = &row["metrics"];
    let us = |name: &str| number(&metrics[name]);
    assert!(us("op_client_cpu_us") > 0.0, "{metrics}");
    if has_server {
        // The queries' threads are a part of the server's, whose CPU is counted in ticks.
        let (threads, server) = (us("op_server_cpu_us"), us("server_cpu_us_per_op"));
        let ticks = 20_000.0 / number(&row["ops"]["query"]["count"]);
        assert!(threads > 0.1 * server, "{metrics}");
        assert!(threads < 1.1 * server + ticks, "{metrics}");
    }
    let share = us("op_unexplained_us").abs() / us("op_time_us");
    assert!(share < 0.3, "{metrics}");
}

#[test]
fn all_steps_on_postgres_with_two_clients() {
    if postgres_is_here_or_test_is_skipped() {
        all_steps_on("pg.base", POSTGRES);
    }
}

#[test]
#[ignore = "another version of an engine"]
fn all_steps_on_another_postgres_with_two_clients() {
    if let Some(build) = other_postgres_or_test_is_skipped() {
        let engine = POSTGRES.replace("distribution", &build);
        all_steps_on("pg.base", &engine);
    }
}

#[test]
fn all_steps_on_innodb_with_two_clients() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        all_steps_on("my.base", &mysql(&build, "innodb"));
    }
}

#[test]
fn all_steps_on_myrocks_with_two_clients() {
    if let Some(build) = mysql_or_test_is_skipped("rocksdb") {
        all_steps_on("my.base", &mysql(&build, "rocksdb"));
    }
}

#[test]
fn a_bulk_load_of_myrocks_ends_with_all_rows_in_place() {
    let Some(build) = mysql_or_test_is_skipped("rocksdb") else {
        return;
    };
    let variants = "steps = [\"l.i0\", \"l.x\", \"l.i1\"]\n\
                    [workload.insert.variant.rows]\n\
                    [workload.insert.variant.bulk]\nbulk-load = true\nindex-statements = \"one\"\n";
    let plan = workload(5_000, 2_000, QUICK, variants) + &mysql(&build, "rocksdb");

    let (_, shown) = run_well(&plan, &["--set", "clients=[2]"]);

    let of = |variant: &str, step: &str| {
        let rows = shown.rows();
        let mut rows = rows.iter();
        rows.find(|row| row["variant"] == variant && row["step"] == step).unwrap()["ops"].clone()
    };

    assert_eq!(of("bulk", "l.i0")["bulk_load_end"]["count"], 2);
    assert!(of("rows", "l.i0")["bulk_load_end"].is_null());
    assert_eq!(of("bulk", "l.x")["create_index"]["count"], 2);
    assert_eq!(of("rows", "l.x")["create_index"]["count"], 2 * 3);
}

#[test]
fn limits_of_a_server_are_kept_and_recorded_and_invalid_where_they_are_not() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    // The first that these tests may use, which need not be the machine's first.
    let allowed = sched_getaffinity(None).unwrap();
    let mut cpus = 0..CpuSet::MAX_CPU;
    let cpu = cpus.find(|&cpu| allowed.is_set(cpu)).unwrap().to_string();
    let limits = format!(
        "[config.postgres.small]\nextends = \"base\"\nmemory = \"256MiB\"\ncpus = \"{cpu}\"\n\
         [[target]]\nbuilds = [\"pg\"]\nconfigs = [\"small\"]\n"
    );

    let plan = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\", \"l.x\"]") + POSTGRES + &limits;
    let place = Place::new();
    let ended = place.run(&plan, &[]);
    let run = ended.run_directory();

    let cell = fs_err::read_to_string(run.join("cells/pg.small/c1/r1/cell.json")).unwrap();
    let cell: serde_json::Value = serde_json::from_str(&cell).unwrap();
    let limits = cell["limits"].as_array().unwrap();
    assert_eq!(limits.len(), 2, "{limits:?}");
    let limit = |what: &str| limits.iter().find(|it| it["what"] == what).unwrap();
    assert_eq!(limit("cpus")["effective"], *cpu, "{limits:?}");

    let shown = Shown::read(&place, &run);
    if limit("memory")["effective"].is_string() {
        ended.expect_code(0);
        shown.assert_all_valid();
    } else {
        // Without the right to make a control group the server ran without it.
        assert!(limit("memory")["reason"].is_string(), "{limits:?}");
        ended.expect_code(4).expect_in_stderr(&["warning[server::limits]"]);
        assert!(shown.rows().iter().all(|row| row["valid"] == false));
    }
}

#[test]
fn a_shared_table_on_all_engines() {
    let steps = "tables = \"shared\"\nsteps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\", \"qr100\", \"qp500\"]";
    let mut plan = workload(5_000, 2_000, QUICK, steps) + SQLITE;
    let with_postgres = postgres_is_here_or_test_is_skipped();
    if with_postgres {
        plan += POSTGRES;
    }
    let mysql_build = mysql_or_test_is_skipped("innodb");
    if let Some(build) = &mysql_build {
        plan += &mysql(build, "innodb");
    }

    let (_, shown) = run_well(&plan, &["--set", "clients=[2]"]);

    let engines = 1 + usize::from(with_postgres) + usize::from(mysql_build.is_some());
    assert_eq!(shown.rows().len(), engines * 6);
    for row in shown.rows().iter().filter(|row| row["step"] == "l.i0") {
        assert_eq!(row["ops"]["insert"]["rows"], 5_000);
    }
}

#[test]
fn partitions_and_a_long_transaction_on_postgres() {
    if postgres_is_here_or_test_is_skipped() {
        partitions_and_a_long_transaction("pg.base", POSTGRES);
    }
}

#[test]
#[ignore = "the workload is that of PostgreSQL"]
fn partitions_and_a_long_transaction_on_innodb() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        partitions_and_a_long_transaction("my.base", &mysql(&build, "innodb"));
    }
}

fn partitions_and_a_long_transaction(target: &str, engine: &str) {
    let more = "partitions = 4\nlong-transaction = \"300ms\"\n\
                steps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\", \"qr100\", \"qp100\"]";
    let plan = workload(20_000, 10_000, SCHEDULED, more) + engine;
    let (_, shown) = run_well(&plan, &[]);
    // A machine that pauses affects only one step.
    let held = ["qr100", "qp100"].map(|step| &shown.row(target, step)["ops"]["long_transaction"]);
    let most = held.map(|held| number(&held["count"]));
    assert!(most[0].max(most[1]) >= 2.0, "{held:?}");
}

#[test]
fn a_long_transaction_and_small_transactions_without_deletes_on_sqlite() {
    let more = "transactions = \"small\"\nlong-transaction = \"50ms\"\ndelete-per-insert = false\n\
                steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"settle\", \"qr100\", \"qp100\"]";
    let plan = workload(5_000, 5_000, QUICK, more) + SQLITE;
    let (_, shown) = run_well(&plan, &["--set", "clients=[2]"]);
    let write = shown.row("lite.base", "l.i1");
    assert_eq!(write["ops"]["insert"]["count"], 2 * 4_000 / 5);
    assert!(write["ops"]["delete"].is_null());
}

#[test]
#[ignore = "the workload is that of SQLite"]
fn small_transactions_without_deletes_on_postgres() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let more = "transactions = \"small\"\ndelete-per-insert = false\n\
                steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\", \"qp100\"]";
    let plan = workload(5_000, 5_000, QUICK, more) + POSTGRES;
    let (_, shown) = run_well(&plan, &["--set", "clients=[1, 2]"]);
    assert_eq!(shown.rows().len(), 12);
}

#[test]
fn the_null_engine_has_no_rows_to_check() {
    let (_, shown) =
        run_well(&(workload(5_000, 5_000, QUICK, "") + NULL), &["--set", "clients=[2]"]);
    assert_eq!(shown.rows().len(), ALL_STEPS.len());
}

/// Loads with two indexes, writes for a fixed time, and reads without concurrent writes.
const VARIATIONS: &str = "secondary-indexes = 2\nstep.\"l.i1\".time = \"1s\"\n\
    steps = [\"l.x\", \"l.i0\", \"l.i1\", \"settle\", \"qr0\", \"qp0\", \"qr100\"]";

fn variations_on(targets: &[&str], engines: &str) {
    let plan = workload(20_000, 10_000, QUICK, VARIATIONS) + engines;
    let (_, shown) = run_well(&plan, &["--set", "clients=[2]"]);

    for target in targets {
        let steps = ["l.x", "l.i0", "l.i1", "settle", "qr0", "qp0", "qr100"];
        assert_eq!(shown.steps(target), steps.map(|step| (step, "complete", true)));
        let load = shown.row(target, "l.i0");
        assert_eq!(load["ops"]["insert"]["rows"], 40_000);

        let write = shown.row(target, "l.i1");
        let seconds = number(&write["seconds"]);
        assert!((1.0..5.0).contains(&seconds), "{seconds}");
        assert!(write["fairness"].is_null());
        let rows = |kind: &str| number(&write["ops"][kind]["rows"]);
        // Of two clients neither connection is more than eight commits ahead of the other.
        let apart = (rows("insert") - rows("delete")).abs();
        assert!(rows("insert") > 0.0 && apart <= 2.0 * 8.0 * 50.0, "{apart}");

        for step in ["qr0", "qp0"] {
            let row = shown.row(target, step);
            assert!(number(&row["ops"]["query"]["count"]) > 0.0);
            for kind in ["insert", "delete", "get_min"] {
                assert!(row["ops"][kind].is_null(), "{kind}");
            }
            assert!(row["sla"].is_null());
        }
    }
}

#[test]
fn indexes_first_and_fewer_and_steps_that_last_a_time_or_only_read_on_sqlite_and_null() {
    variations_on(&["lite.base", "null.default"], &(SQLITE.to_owned() + NULL));
}

#[test]
fn indexes_first_and_fewer_and_steps_that_last_a_time_or_only_read_on_postgres() {
    if postgres_is_here_or_test_is_skipped() {
        variations_on(&["pg.base"], POSTGRES);
    }
}

#[test]
#[ignore = "the workload is that of PostgreSQL"]
fn indexes_first_and_fewer_and_steps_that_last_a_time_or_only_read_on_innodb() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        variations_on(&["my.base"], &mysql(&build, "innodb"));
    }
}

#[test]
#[ignore = "the workload is that of PostgreSQL"]
fn indexes_first_and_fewer_and_steps_that_last_a_time_or_only_read_on_myrocks() {
    if let Some(build) = mysql_or_test_is_skipped("rocksdb") {
        variations_on(&["my.base"], &mysql(&build, "rocksdb"));
    }
}

#[test]
fn tables_without_secondary_indexes_are_neither_indexed_nor_scanned() {
    let (_, shown) =
        run_well(&(workload(5_000, 5_000, QUICK, "secondary-indexes = 0") + SQLITE), &[]);
    let steps = ["l.i0", "l.i1", "l.i2", "settle", "qp100", "qp500", "qp1000"];
    assert_eq!(shown.steps("lite.base"), steps.map(|step| (step, "complete", true)));
}

/// Returns all columns of all rows but the key, sorted.
fn rows_of(place: &Place) -> Vec<Vec<Option<String>>> {
    let directory = place.join("data/lite.base/sqlite");
    let bundled = engine::sqlite::Library::bundled();
    let sqlite = engine::sqlite::Sqlite::start(bundled, &directory, &[]).unwrap();

    let mut session = sqlite.connect().unwrap();
    let tables = session
        .query("select name from sqlite_master where type = 'table' and name like 'pi%'")
        .unwrap();

    assert_eq!(tables.len(), 1);
    let table = tables[0][0].as_deref().unwrap();

    let columns = session
        .query(&format!("select group_concat(name) from pragma_table_info('{table}') where pk = 0"))
        .unwrap();
    let columns = columns[0][0].as_deref().unwrap();
    assert!(columns.split(',').count() >= 6, "{columns}");

    let mut rows = session.query(&format!("select {columns} from {table}")).unwrap();
    rows.sort();
    rows
}

#[test]
fn the_same_seed_makes_the_same_rows_whatever_the_number_of_clients() {
    let more =
        "tables = \"shared\"\ndelete-per-insert = false\nsteps = [\"l.i0\", \"l.x\", \"l.i1\"]";
    let plan = format!("keep-data = true\n{}{SQLITE}", workload(4_000, 2_000, QUICK, more));

    let rows = |clients: &str, seed: &str| {
        let place = Place::new();
        let clients = format!("clients=[{clients}]");
        let seed = format!("seed={seed}");
        let ended = place.spawn_run(&plan, &["--set", &clients, "--set", &seed]).wait();
        ended.expect_code(0);
        rows_of(&place)
    };

    let one = rows("1", "7");
    assert_eq!(one.len(), 4_000 + 100 + 1_600);
    assert!(one == rows("2", "7"), "two clients made other rows");
    assert!(one != rows("1", "8"), "another seed made the same rows");
}

#[test]
fn a_report_and_tables_are_made_again_from_the_run_directory_alone() {
    let plan = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\", \"l.x\", \"qr100\"]") + SQLITE;
    let (place, _) = run_well(&plan, &[]);

    let elsewhere = Place::new();
    let moved = elsewhere.join("moved");
    fs_err::rename(place.only_run(), &moved).unwrap();
    drop(place);

    elsewhere.assay(&["report", "moved", "-o", "again.html"]).expect_code(0);
    assert!(
        fs_err::read_to_string(elsewhere.join("again.html")).unwrap()
            == fs_err::read_to_string(moved.join("report.html")).unwrap(),
        "another report was made"
    );

    let tables = elsewhere.assay(&["show", "moved", "--all"]).expect_code(0);
    for word in ["l.i0", "qr100", "lite.base"] {
        assert!(tables.stdout.contains(word), "{tables}");
    }

    let csv = elsewhere.assay(&["show", "moved", "--format", "csv"]).expect_code(0);
    assert_eq!(csv.stdout.lines().count(), 1 + 3, "{csv}");
}

#[test]
fn a_run_that_was_killed_leaves_a_database_that_the_next_one_takes_over() {
    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\"]";
    let plan = workload(2_000, 1_000, "30s", steps) + SQLITE;

    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "03-qr100");
    running.signal(Signal::KILL);
    assert_eq!(running.wait().signal, Some(9));

    let database = place.join("data/lite.base/sqlite");
    assert!(entries(&database).len() > 1, "there is no database");
    let neighbor = place.write("data/lite.base/notes", "precious");
    assert_eq!(
        Shown::read(&place, &place.only_run()).steps("lite.base"),
        [("l.i0", "complete", true), ("l.x", "complete", true), ("qr100", "incomplete", false)]
    );

    let plan = workload(2_000, 1_000, QUICK, steps) + SQLITE;
    place.run(&plan, &[]).expect_code(0);
    assert!(!Path::exists(&database) && neighbor.exists());
}
