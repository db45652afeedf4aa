//! The Insert Benchmark, small, from the plan to the report.

use std::collections::BTreeMap;
use std::path::Path;

use engine::{Session, SqlEngine};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::Value;

use crate::place::{NULL, POSTGRES, Place, SQLITE, any_below, entries, mysql, workload};
use crate::show_json::{Shown, number};
use crate::{
    have_the_machine_alone, mysql_or_test_is_skipped, other_postgres_or_test_is_skipped,
    postgres_is_here_or_test_is_skipped, share_the_machine,
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
    for outside in [
        "src=\"http",
        "href=\"http",
        "url(http",
        "@import",
        "src=\"//",
    ] {
        assert!(!report.contains(outside), "the report needs `{outside}`");
    }
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    assert_eq!(shown.status(), "complete");
    assert!(shown.json["unfinished"].as_array().unwrap().is_empty());
    (place, shown)
}

/// So often a plan is measured at most, for each of its query steps to keep its rate in one of them: the machine may stand
/// still just when a step ends, and what was due then comes too late to be sent. A fault spoils the step each time.
const ATTEMPTS: usize = 4;

/// A schedule offers what the rate asks for in the given time of a step, exactly, and it was done: of the rate at least
/// `share` was had, and never more.
fn assert_rates(plan: &str, more: &[&str], first: &Shown, seconds: u32, share: f64) {
    let mut late = late_steps(first, seconds, share);
    for _ in 1..ATTEMPTS {
        if late.is_empty() {
            return;
        }
        let (_, again) = run_well(plan, more);
        let still = late_steps(&again, seconds, share);
        late.retain(|step, _| still.contains_key(step));
    }
    assert!(late.is_empty(), "{ATTEMPTS} times: {late:#?}");
}

/// The query steps that did not have their rate, and what they had.
fn late_steps(shown: &Shown, seconds: u32, share: f64) -> BTreeMap<String, String> {
    let mut late = BTreeMap::new();
    for row in shown.rows().iter().filter(|row| row["kind"] == "query") {
        let sla = &row["sla"];
        let asked = number(&sla["target"]) * f64::from(seconds);
        let mut done = true;
        for kind in ["insert", "delete"] {
            let ops = &row["ops"][kind];
            let [rows, count, offered] = ["rows", "count", "offered"].map(|key| number(&ops[key]));
            // As many commits as the rate asks for, each with as many rows.
            assert_eq!(rows * offered, asked * count, "{ops}");
            done &= rows >= 0.96 * asked;
        }
        // The last replies come when time is up: the step is hardly longer for them.
        let had = number(&sla["achieved"]) / number(&sla["target"]);
        assert!(had <= 1.001, "{sla}");
        if !done || had < share || sla["met"] != true {
            let step = format!("{} of {}", row["step"], row["target"]);
            late.insert(step, format!("{sla} {}", row["ops"]));
        }
    }
    late
}

#[test]
fn all_steps_on_sqlite_with_two_clients() {
    let _machine = have_the_machine_alone();
    let plan = workload(20_000, 10_000, 2, "") + SQLITE;
    let (_, shown) = run_well(&plan, &["--set", "clients=[2]"]);
    assert_eq!(
        shown.steps("lite.base"),
        ALL_STEPS.map(|step| (step, "complete", true))
    );
    assert_rates(&plan, &["--set", "clients=[2]"], &shown, 2, 0.95);
    time_is_accounted_for(shown.row("lite.base", "qr100"), false);
    let load = shown.row("lite.base", "l.i0");
    assert_eq!(load["ops"]["insert"]["rows"], 40_000);
    let write = shown.row("lite.base", "l.i1");
    assert_eq!(write["ops"]["insert"]["rows"], 16_000);
    assert_eq!(write["ops"]["delete"]["rows"], 16_000);
}

/// All steps, with two clients, on a server that is the target.
fn all_steps_on(target: &str, engine: &str) {
    let plan = workload(20_000, 10_000, 2, "") + engine;
    let (place, shown) = run_well(&plan, &["--set", "clients=[2]"]);
    assert_eq!(
        shown.steps(target),
        ALL_STEPS.map(|step| (step, "complete", true))
    );
    assert_rates(&plan, &["--set", "clients=[2]"], &shown, 2, 0.95);
    let write = shown.row(target, "l.i1");
    assert_eq!(write["ops"]["delete"]["rows"], 16_000);
    // A server apart has a CPU time of its own, and a log and a configuration that are kept.
    assert!(number(&write["metrics"]["server_cpu_us_per_op"]) > 0.0);
    let run = place.only_run();
    assert!(any_below(&run, "server.log") && any_below(&run, "server.conf"));
    time_is_accounted_for(shown.row(target, "qr100"), true);
}

/// The parts of a query's time are all there, and come to about as much as it is: the rest is found as a difference, and
/// is small only where the parts are right.
fn time_is_accounted_for(row: &Value, has_server: bool) {
    let metrics = &row["metrics"];
    let us = |name: &str| number(&metrics[name]);
    assert!(us("op_client_cpu_us") > 0.0, "{metrics}");
    if has_server {
        // The queries' threads are a part of the server's; its CPU is counted in ticks.
        let (threads, server) = (us("op_server_cpu_us"), us("server_cpu_us_per_op"));
        assert!((0.1 * server..1.1 * server).contains(&threads), "{metrics}");
    }
    let share = us("op_rest_us").abs() / us("op_time_us");
    assert!(share < 0.3, "{metrics}");
}

#[test]
fn all_steps_on_postgres_with_two_clients() {
    let _machine = have_the_machine_alone();
    if postgres_is_here_or_test_is_skipped() {
        all_steps_on("pg.base", POSTGRES);
    }
}

#[test]
fn all_steps_on_another_postgres_with_two_clients() {
    let _machine = have_the_machine_alone();
    if let Some(build) = other_postgres_or_test_is_skipped() {
        let engine = POSTGRES.replace("distribution", &build);
        all_steps_on("pg.base", &engine);
    }
}

#[test]
fn all_steps_on_innodb_with_two_clients() {
    let _machine = have_the_machine_alone();
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        all_steps_on("my.base", &mysql(&build, "innodb"));
    }
}

#[test]
fn all_steps_on_myrocks_with_two_clients() {
    let _machine = have_the_machine_alone();
    if let Some(build) = mysql_or_test_is_skipped("rocksdb") {
        all_steps_on("my.base", &mysql(&build, "rocksdb"));
    }
}

#[test]
fn a_bulk_load_of_myrocks_ends_with_all_rows_in_place() {
    let _machine = share_the_machine();
    let Some(build) = mysql_or_test_is_skipped("rocksdb") else {
        return;
    };
    let variants = "steps = [\"l.i0\", \"l.x\", \"l.i1\"]\n\
                    [workload.insert.variant.rows]\n\
                    [workload.insert.variant.bulk]\nbulk-load = true\nindex-statements = \"one\"\n";
    let plan = workload(5_000, 2_000, 1, variants) + &mysql(&build, "rocksdb");
    let (_, shown) = run_well(&plan, &["--set", "clients=[2]"]);
    let of = |variant: &str, step: &str| {
        let rows = shown.rows();
        let mut rows = rows.iter();
        rows.find(|row| row["variant"] == variant && row["step"] == step)
            .unwrap()["ops"]
            .clone()
    };
    assert_eq!(of("bulk", "l.i0")["bulk_load_end"]["count"], 2);
    assert!(of("rows", "l.i0")["bulk_load_end"].is_null());
    assert_eq!(of("bulk", "l.x")["create_index"]["count"], 2);
    assert_eq!(of("rows", "l.x")["create_index"]["count"], 2 * 3);
}

#[test]
fn limits_of_a_server_are_kept_and_recorded_and_invalid_where_they_are_not() {
    let _machine = share_the_machine();
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
    let plan = workload(2_000, 1_000, 1, "steps = [\"l.i0\", \"l.x\"]") + POSTGRES + &limits;
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
        ended
            .expect_code(4)
            .expect_in_stderr(&["warning[server::limits]"]);
        assert!(shown.rows().iter().all(|row| row["valid"] == false));
    }
}

#[test]
fn a_rate_that_can_be_had_is_had_exactly() {
    const SECONDS: u32 = 4;
    let _machine = have_the_machine_alone();
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr500\", \"qp1000\"]";
    let plan = workload(20_000, 1_000, SECONDS, steps) + SQLITE;
    let (_, shown) = run_well(&plan, &[]);
    assert_rates(&plan, &[], &shown, SECONDS, 0.99);
}

#[test]
fn a_shared_table_on_all_engines() {
    let _machine = share_the_machine();
    let steps = "tables = \"shared\"\nsteps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\", \"qr100\", \"qp500\"]";
    let mut plan = workload(20_000, 5_000, 1, steps) + SQLITE;
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
        assert_eq!(row["ops"]["insert"]["rows"], 20_000);
    }
}

#[test]
fn partitions_and_a_long_transaction_on_postgres() {
    let _machine = share_the_machine();
    if postgres_is_here_or_test_is_skipped() {
        partitions_and_a_long_transaction("pg.base", POSTGRES);
    }
}

#[test]
fn partitions_and_a_long_transaction_on_innodb() {
    let _machine = share_the_machine();
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        partitions_and_a_long_transaction("my.base", &mysql(&build, "innodb"));
    }
}

fn partitions_and_a_long_transaction(target: &str, engine: &str) {
    let more = "partitions = 4\nlong-transaction = \"300ms\"\n\
                steps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\", \"qr100\", \"qp100\"]";
    let plan = workload(20_000, 10_000, 1, more) + engine;
    let (_, shown) = run_well(&plan, &[]);
    // A machine that stands still takes its time from one step alone.
    let held = ["qr100", "qp100"].map(|step| &shown.row(target, step)["ops"]["long_transaction"]);
    let most = held.map(|held| number(&held["count"]));
    assert!(most[0].max(most[1]) >= 2.0, "{held:?}");
}

#[test]
fn a_long_transaction_and_small_transactions_without_deletes_on_sqlite() {
    let _machine = share_the_machine();
    let more = "transactions = \"small\"\nlong-transaction = \"300ms\"\ndelete-per-insert = false\n\
                steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"settle\", \"qr100\", \"qp100\"]";
    let plan = workload(5_000, 5_000, 1, more) + SQLITE;
    let (_, shown) = run_well(&plan, &["--set", "clients=[2]"]);
    let write = shown.row("lite.base", "l.i1");
    assert_eq!(write["ops"]["insert"]["count"], 2 * 4_000 / 5);
    assert!(write["ops"]["delete"].is_null());
}

#[test]
fn small_transactions_without_deletes_on_postgres() {
    let _machine = share_the_machine();
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let more = "transactions = \"small\"\ndelete-per-insert = false\n\
                steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\", \"qp100\"]";
    let plan = workload(5_000, 5_000, 1, more) + POSTGRES;
    let (_, shown) = run_well(&plan, &["--set", "clients=[1, 2]"]);
    assert_eq!(shown.rows().len(), 12);
}

#[test]
fn the_null_engine_has_no_rows_to_check() {
    let _machine = share_the_machine();
    let (_, shown) = run_well(
        &(workload(5_000, 5_000, 1, "") + NULL),
        &["--set", "clients=[2]"],
    );
    assert_eq!(shown.rows().len(), ALL_STEPS.len());
}

/// All columns of all rows but the key, sorted.
fn rows_of(place: &Place) -> Vec<Vec<Option<String>>> {
    let directory = place.join("data/lite.base/sqlite");
    let sqlite = engine::sqlite::Sqlite::start(&directory, &[]).unwrap();
    let mut session = sqlite.connect().unwrap();
    let tables = session
        .query("select name from sqlite_master where type = 'table' and name like 'pi%'")
        .unwrap();
    assert_eq!(tables.len(), 1);
    let table = tables[0][0].as_deref().unwrap();
    let columns = session
        .query(&format!(
            "select group_concat(name) from pragma_table_info('{table}') where pk = 0"
        ))
        .unwrap();
    let columns = columns[0][0].as_deref().unwrap();
    assert!(columns.split(',').count() >= 6, "{columns}");
    let mut rows = session
        .query(&format!("select {columns} from {table}"))
        .unwrap();
    rows.sort();
    rows
}

#[test]
fn the_same_seed_makes_the_same_rows_whatever_the_number_of_clients() {
    let _machine = share_the_machine();
    let more =
        "tables = \"shared\"\ndelete-per-insert = false\nsteps = [\"l.i0\", \"l.x\", \"l.i1\"]";
    let plan = format!(
        "keep-data = true\n{}{SQLITE}",
        workload(4_000, 2_000, 1, more)
    );
    let rows = |clients: &str, seed: &str| {
        let place = Place::new();
        let clients = format!("clients=[{clients}]");
        let seed = format!("seed={seed}");
        let ended = place
            .spawn_run(&plan, &["--set", &clients, "--set", &seed])
            .wait();
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
    let _machine = share_the_machine();
    let plan = workload(2_000, 1_000, 1, "steps = [\"l.i0\", \"l.x\", \"qr100\"]") + SQLITE;
    let (place, _) = run_well(&plan, &[]);
    let elsewhere = Place::new();
    let moved = elsewhere.join("moved");
    fs_err::rename(place.only_run(), &moved).unwrap();
    drop(place);
    elsewhere
        .assay(&["report", "moved", "-o", "again.html"])
        .expect_code(0);
    assert!(
        fs_err::read_to_string(elsewhere.join("again.html")).unwrap()
            == fs_err::read_to_string(moved.join("report.html")).unwrap(),
        "another report was made"
    );
    let tables = elsewhere.assay(&["show", "moved"]).expect_code(0);
    for word in ["l.i0", "qr100", "lite.base"] {
        assert!(tables.stdout.contains(word), "{tables}");
    }
    let csv = elsewhere
        .assay(&["show", "moved", "--format", "csv"])
        .expect_code(0);
    assert_eq!(csv.stdout.lines().count(), 1 + 3, "{csv}");
}

#[test]
fn a_run_that_was_killed_leaves_a_database_that_the_next_one_takes_over() {
    let _machine = share_the_machine();
    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\"]";
    let plan = workload(2_000, 1_000, 30, steps) + SQLITE;
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "03-qr100");
    running.signal(Signal::KILL);
    assert_eq!(running.wait().signal, Some(9));
    let database = place.join("data/lite.base/sqlite");
    assert!(entries(&database).len() > 1, "there is no database");
    let neighbour = place.write("data/lite.base/notes", "precious");
    assert_eq!(
        Shown::read(&place, &place.only_run()).steps("lite.base"),
        [
            ("l.i0", "complete", true),
            ("l.x", "complete", true),
            ("qr100", "incomplete", false)
        ]
    );
    let plan = workload(2_000, 1_000, 1, steps) + SQLITE;
    place.run(&plan, &[]).expect_code(0);
    assert!(!Path::exists(&database) && neighbour.exists());
}
