//! Transactions on tables of a script: `tpcb`, `ycsb` and a script of its own on each engine with
//! SQL, what is counted of them, and what is said where they fail.

use crate::place::{POSTGRES, Place, QUICK, SQLITE, mysql};
use crate::show_json::Shown;
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

/// A script whose transactions use values of rows, loops, conditions and rollbacks.
const SCRIPT: &str = r#"
script = '''
table account (
    id int = row,
    balance bigint = 100,
    name varchar(40) = lastname(row),
    since timestamp = now,
    rate decimal(5, 2) = 125
) key (id) index by_name (name, id) rows 20 * scale;
table entry (account int, amount int, note varchar(30)) rows 0;

transaction transfer {
    let first = uniform(1, 20 * scale);
    let count = uniform(1, 3);
    let others = list(count, zipf(1, 20 * scale, 0.9));
    let amounts = list(count, uniform(1, 30));
    let note = letters(3, 9);

    let before, name: text = select balance, name from account where id = {first} {for update};
    for other, amount in others, amounts {
        update account set balance = balance - {amount} where id = {first};
        update account set balance = balance + {amount} where id = {other};
        insert into entry (account, amount, note) values ({other}, {amount}, {note});
    }
    let found, total = select id, (select sum(balance) from account) from account where id = {first} and name = {name};
    if found != first or total != 2000 * scale {
        update account set balance = 1 / 0 where id = 0;
    }
    if before % 5 = 0 and count > 1 {
        abort;
    }
}
transaction look {
    let first = uniform(1, 20 * scale);
    expect 1: select balance from account where id = {first};
}
test mixed = transfer 9, look;
check "sum of balances" = 2000 * scale: select sum(balance) from account;
'''
"#;

/// Returns the text of a plan that runs these steps after the load.
fn plan(keys: &str, steps: &str, engine: &str) -> String {
    format!(
        "name = \"test\"\nclients = [2]\n[workload.transactions]\n{keys}\nwarmup = \"0s\"\ntime = \"{QUICK}\"\n\
         steps = [\"load\", {steps}]\n{engine}\n"
    )
}

/// Runs `tpcb`, `ycsb` and the script on an engine, and holds the run to what was counted.
fn run_on(engine: &str, target: &str) {
    let place = Place::new();
    let tpcb = plan("use = \"tpcb\"", "\"settle\", \"tpcb\", \"tpcb.2\"", engine);
    let ended = place.run(&tpcb, &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    shown.assert_all_valid();
    let row = shown.row(target, "tpcb.2");
    let tpcb = &row["ops"]["tpcb"];
    assert!(tpcb["count"].as_u64().unwrap() > 0 && tpcb["failed"] == 0, "{row}");
    assert_eq!(tpcb["rows"].as_u64(), tpcb["count"].as_u64().map(|count| 5 * count), "{row}");
    assert_eq!(tpcb.get("rolled_back"), None, "{row}");

    run_ycsb(&place, engine, target);

    // Deadlocks take a second each, so a test that ends with its time may run few transactions.
    let engine = format!("[workload.transactions.step.mixed]\ntransactions = 40\n{engine}");
    let own = plan(SCRIPT, "\"index\", \"settle\", \"mixed\"", &engine);
    let ended = place.run(&own, &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let row = shown.row(target, "mixed");
    let [transfer, look] = ["transfer", "look"].map(|kind| &row["ops"][kind]);
    let rolled_back = transfer["rolled_back"].as_u64().unwrap_or(0);
    assert!(rolled_back > 0 && rolled_back < transfer["count"].as_u64().unwrap(), "{row}");
    assert!(look["count"].as_u64().unwrap() > 0 && look["failed"] == 0, "{row}");

    // The checks of the script are in the record, and hold.
    let run = record::RunDir::open(run).unwrap();
    let steps = run.started_cells().unwrap()[0].read_steps().unwrap();
    let checks = &steps[3].step().checks;
    assert!(
        checks.iter().any(|check| check.what == "sum of balances" && check.holds),
        "{checks:?}"
    );
}

/// Returns the plan with tests that end after so many transactions, instead of after a time in which a
/// busy machine may run few.
fn ending_after(transactions: u32, plan: &str) -> String {
    plan.replace(&format!("time = \"{QUICK}\""), &format!("transactions = {transactions}"))
}

/// Runs the tests of YCSB that have all of its transactions between them.
fn run_ycsb(place: &Place, engine: &str, target: &str) {
    let steps = "\"settle\", \"a\", \"f\", \"d\", \"e\", \"d.2\"";
    // One in twenty is of the rarer kind.
    let ycsb = ending_after(400, &plan("use = \"ycsb\"", steps, engine));
    let ended = place.run(&ycsb, &[]).expect_code(0);
    let shown = Shown::read(place, &ended.run_directory());
    shown.assert_all_valid();

    for (step, main, other) in [
        ("a", "read", "update"),
        ("f", "read", "read_modify_write"),
        ("d", "read_latest", "insert"),
        ("e", "scan", "insert"),
        ("d.2", "read_latest", "insert"),
    ] {
        let row = shown.row(target, step);
        for kind in [main, other] {
            let operations = &row["ops"][kind];
            assert!(operations["count"].as_u64().unwrap() > 0, "{row}");
            assert_eq!(operations["failed"], 0, "{row}");
        }
    }
}

#[test]
fn order_entry_runs_with_and_without_a_rate() {
    let place = Place::new();
    let rate = "[workload.transactions.step.\"orders.slow\"]\nrate = 20\ntime = \"5s\"";
    let think = "[workload.transactions.step.\"orders.terminals\"]\nthink = \"20ms\"\n\
                 keying = { new_order = \"30ms\" }\ntransactions = 60";
    let keys = "use = \"orders\"\nload-batch = 5000";
    let steps = "\"index\", \"orders\", \"orders.slow\", \"orders.terminals\"";
    let orders = plan(keys, steps, &format!("{rate}\n{think}\n{SQLITE}"));
    let ended = place.run(&orders, &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    shown.assert_all_valid();

    let kinds = ["new_order", "payment", "order_status", "delivery", "stock_level"];
    let row = shown.row("lite.base", "orders");
    for kind in kinds {
        assert!(row["ops"][kind]["failed"] == 0, "{row}");
    }

    // Two clients begin 40 transactions per second, of which 45% are new orders.
    let row = shown.row("lite.base", "orders.slow");
    let offered: u64 = kinds.map(|kind| row["ops"][kind]["offered"].as_u64().unwrap()).iter().sum();
    assert!((190..=201).contains(&offered), "{row}");
    assert!((row["sla"]["target"].as_f64().unwrap() - 40.0).abs() < 1e-9, "{row}");
    let done: u64 = kinds.map(|kind| row["ops"][kind]["count"].as_u64().unwrap()).iter().sum();
    let achieved = row["sla"]["achieved"].as_f64().unwrap();
    // Later replies are after the time that was given.
    assert!(done > 0 && (0.8..1.001).contains(&(5.0 * achieved / done as f64)), "{row}");
    assert_eq!(row["ops"]["delivery"]["scheduled"], true, "{row}");

    // Two clients work for the only warehouse. The script names the rate of new orders.
    let metrics = &row["metrics"];
    let [per_second, per_minute] =
        ["o/s", "per_minute"].map(|name| metrics[name].as_f64().unwrap());
    assert!((per_minute / per_second - 60.0).abs() < 1e-9, "{row}");
    assert_eq!(row["per_minute"], "new orders per minute", "{row}");
    let homes = &row["homes"][0];
    assert_eq!((&homes["table"], homes["rows"].as_u64()), (&"warehouse".into(), Some(1)), "{row}");
    let mut remarks = row["remarks"].as_array().unwrap().iter();
    assert!(remarks.any(|remark| remark["code"] == "step::shared-homes"), "{row}");

    // Terminals wait before each transaction, so that it has a time at which it is due.
    let row = shown.row("lite.base", "orders.terminals");
    let counts = kinds.map(|kind| row["ops"][kind]["count"].as_u64().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 60, "{row}");
    assert_eq!(row["ops"]["new_order"]["scheduled"], true, "{row}");
    assert_eq!(row["sla"], serde_json::Value::Null, "{row}");
    let least_seconds = counts[0] as f64 * 0.03 / 2.0;
    assert!(row["seconds"].as_f64().unwrap() > least_seconds, "{row}");
    assert_eq!(row["pauses"]["new_order"]["keying_ns"], 30_000_000, "{row}");

    let run = ended.run_directory();
    let show = ["show", run.to_str().unwrap(), "--table", "pauses"];
    place.assay(&show).expect_code(0).expect_in_stdout(&[
        "the keying time before each operation",
        "new_order      0.030       0.020",
    ]);
}

#[test]
fn targets_in_turns_run_the_same_transactions() {
    let place = Place::new();
    let keys = "use = \"tpcb\"\ntransactions = 301";
    let engine = "[build.lite]\nsqlite = \"bundled\"\n[config.sqlite.a]\n[config.sqlite.b]\nset = { synchronous = \"off\" }";
    let text = format!(
        "name = \"test\"\nclients = [2]\nturns = \"20ms\"\n[workload.transactions]\n{keys}\n\
         steps = [\"load\", \"tpcb\"]\n{engine}\n"
    );
    let ended = place.run(&text, &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    shown.assert_all_valid();
    for target in ["lite.a", "lite.b"] {
        let row = shown.row(target, "tpcb");
        assert_eq!(row["ops"]["tpcb"]["count"].as_u64(), Some(301), "{row}");
        assert_eq!(row["fairness"]["clients"].as_array().map(Vec::len), Some(2), "{row}");
    }
}

#[test]
fn transactions_run_on_sqlite() {
    run_on(SQLITE, "lite.base");
}

#[test]
fn transactions_run_on_postgres() {
    if postgres_is_here_or_test_is_skipped() {
        run_on(POSTGRES, "pg.base");
    }
}

#[test]
fn transactions_run_on_mysql() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        run_on(&mysql(&build, "innodb"), "my.base");
    }
}

#[test]
fn serialization_failures_are_retried_and_counted() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let script = r#"
isolation = "serializable"
script = '''
table counter (id int = row, n int = 0) key (id) rows 1;
transaction add {
    let n = select n from counter where id = 1;
    update counter set n = {n} + 1 where id = 1;
}
check "commits" = committed(add): select n from counter;
'''
"#;
    let place = Place::new();
    // So many that both clients are at work at the same time.
    let adding = ending_after(400, &plan(script, "\"add\"", POSTGRES));
    let ended = place.run(&adding, &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let add = &shown.row("pg.base", "add")["ops"]["add"];
    assert!(add["retried"].as_u64().unwrap() > 0 && add["failed"] == 0, "{add}");
}

#[test]
fn a_lost_row_fails_the_step_and_is_named() {
    let script = "
script = '''
table t (id int = row, v int = 0) key (id) rows 3;
transaction lost { update t set v = 1 where id = 9; }
'''
";
    let place = Place::new();
    let ended = place.run(&plan(script, "\"lost\"", SQLITE), &[]).expect_code(1);
    ended.expect_in_stderr(&["transaction `lost`: a statement has 0 rows instead of 1"]);
}

#[test]
fn a_statement_that_the_engine_refuses_is_named() {
    let script = "
script = '''
table t (id int = row) key (id) rows 3;
transaction wrong { select no_such_column from t; }
'''
";
    let place = Place::new();
    let ended = place.run(&plan(script, "\"wrong\"", SQLITE), &[]).expect_code(1);
    ended.expect_in_stderr(&["transaction `wrong`: `select no_such_column from t`"]);
}
