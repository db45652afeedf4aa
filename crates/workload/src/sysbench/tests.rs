//! Tests of the whole workload, on SQLite.

use engine::mysql::{MysqlDialect, StorageEngine};
use engine::null::Null;
use engine::postgres::PostgresDialect;
use engine::sqlite::{Library, Sqlite};
use engine::{Interrupt, Outcome};
use plan::sysbench::Effect;

use super::connection::TransactionStatement;
use super::*;
use crate::{Executed, Next, Program};

mod mixes;
mod recording;
mod sent;
mod takeover;

use recording::{RecordingSession, SentStatement, connection, event, events};

const LOOKUP: &str =
    r#"{ sql = "SELECT c FROM {table} WHERE id = {id}", rows = 1, parameters = { id = "id" } }"#;
const UPDATE: &str = r#"{ sql = "UPDATE {table} SET k = k + 1 WHERE id = {id}", rows = 1, parameters = { id = "id" } }"#;
const INSERT: &str = r#"{ sql = "INSERT INTO {table} (k, c, pad) VALUES ({k}, {c}, {pad})", rows = 1, parameters = { k = "k", c = "c", pad = "pad" } }"#;

/// Returns a workload with these steps after `load` and `index` and the options in `set`; `more` is
/// further text of the plan, such as tests.
fn plan(set: &str, steps: &[&str], more: &str) -> plan::Sysbench {
    let steps: Vec<String> =
        ["load", "index"].iter().chain(steps).map(|step| format!("\"{step}\"")).collect();
    let text = format!(
        "build.x.null = \"bundled\"\nclients = [2]\n[workload.sysbench]\ntables = 3\nrows = 1501\nload-connections = 2\n\
         load-batch = 100\nsteps = [{}]\n{more}",
        steps.join(", ")
    );
    let sets: Vec<String> =
        set.split_whitespace().map(|set| format!("workload.sysbench.{set}")).collect();
    let (plan, _) = plan::parse("p.toml", &text, &sets).unwrap_or_else(|errors| {
        panic!("{}", plan::render(&errors, "p.toml", &text, &sets, false))
    });
    let plan::Workload::Sysbench(sysbench) = plan.variants[0].workload.clone() else {
        panic!("another workload");
    };
    sysbench
}

/// Returns the text of a test named `mine` with these keys and statements.
fn mine(set: &str, keys: &str, statements: &[&str]) -> plan::Sysbench {
    let statements = statements.join(",\n");
    let test = format!(
        "[workload.sysbench.test.mine]\ngroup = \"write\"\n{keys}\nstatement = [\n{statements}\n]"
    );
    plan(set, &["mine"], &test)
}

fn test_of(plan: &plan::Sysbench, name: &str) -> Test {
    let step = plan.steps.iter().find(|step| step.name == name).unwrap();
    match &step.kind {
        SysbenchStepKind::Run { test, .. } => test.clone(),
        _ => panic!("`{name}` is no test"),
    }
}

fn builtin(name: &str) -> Test {
    test_of(&plan("", &[name], ""), name)
}

fn own_test(keys: &str, statements: &[&str]) -> Test {
    test_of(&mine("", keys, statements), "mine")
}

const OPTIONS: Options = Options {
    seed: 11,
    nonce: 1,
    clients: 2,
    share: ClientShare::ALL,
    writers_max: 2,
    is_unlimited: false,
};

fn sqlite() -> (tempfile::TempDir, Sqlite) {
    let directory = tempfile::tempdir().unwrap();
    let set = [("journal_mode", "wal"), ("synchronous", "off")];
    let set = set.map(|(name, value)| (name.to_string(), value.to_string()));
    let sqlite = Sqlite::start(Library::bundled(), directory.path(), &set).unwrap();
    (directory, sqlite)
}

/// Runs a step on an engine, with at most `events` operations of each connection, in turns. Returns
/// the number of rows, and of operations with a wrong number of rows.
fn on<E: SqlEngine>(sysbench: &mut Sysbench, name: &str, engine: &E, events: usize) -> (u64, u64) {
    let step = step(sysbench, name);
    let mut tasks = sysbench.connections(step, engine).unwrap();
    let (mut rows, mut wrong) = (0, 0);
    let mut done = vec![0; tasks.len()];
    while done.iter().any(|&done| done < events) {
        for (task, done) in tasks.iter_mut().zip(&mut done) {
            if *done >= events {
                continue;
            }
            if task.program.prepare() == Next::Done {
                *done = events;
                continue;
            }
            let outcome = task.program.execute().unwrap();
            rows += outcome.rows;
            wrong += u64::from(!outcome.is_expected);
            *done += 1;
        }
    }
    let programs = tasks.iter_mut().map(|task| &mut task.program);
    sysbench.apply(step.number, &summaries(programs));
    (rows, wrong)
}

fn summaries<'a>(programs: impl IntoIterator<Item = &'a mut Box<dyn Program>>) -> Summaries {
    let summary = |program: &mut Box<dyn Program>| (0, program.summary(0).unwrap());
    programs.into_iter().map(summary).collect()
}

fn step(sysbench: &Sysbench, name: &str) -> Step {
    let mut steps = sysbench.plan.steps.iter();
    Step { number: steps.position(|step| step.name == name).unwrap(), is_warm_up: false }
}

fn assert_checks(sysbench: &Sysbench, engine: &Sqlite, expected: usize) {
    let checks = sysbench.check(engine).unwrap();
    let wrong: Vec<&Check> = checks.iter().filter(|check| !check.holds).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let held = checks.iter().filter(|check| check.left_out.is_none());
    assert_eq!(held.count(), expected);
}

/// Returns a workload with loaded tables.
fn loaded(plan: &plan::Sysbench, options: Options) -> (tempfile::TempDir, Sqlite, Sysbench) {
    let (directory, engine) = sqlite();
    let mut sysbench = Sysbench::new(plan, options);
    let mut session = engine.connect().unwrap();
    let create = |table| engine.dialect().create_table(table);
    for sql in sysbench.tables().iter().flat_map(create) {
        session.query(&sql).unwrap();
    }
    let (rows, wrong) = on(&mut sysbench, "load", &engine, usize::MAX);
    assert_eq!((rows, wrong), (sysbench.rows(), 0));
    (directory, engine, sysbench)
}

/// Every microbenchmark, with the queries per event that sysbench counts; those that change the
/// rows come last.
const SHAPES: [&str; 29] = [
    "point-query",
    "random-points.range10",
    "random-points.range1000",
    "hot-points",
    "points-covered-pk",
    "points-notcovered-pk",
    "points-covered-si",
    "points-notcovered-si",
    "range-covered-pk",
    "range-notcovered-pk",
    "range-covered-si",
    "range-notcovered-si",
    "scan",
    "read-only.range10",
    "read-only.range100",
    "read-only-simple",
    "read-only-sum",
    "read-only-order",
    "read-only-distinct",
    "read-only-count",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write.range100",
    "insert",
    "delete",
];

#[test]
fn every_microbenchmark_runs_and_its_rows_are_correct() {
    let plan = plan("", &SHAPES, "");
    let (_directory, engine, mut sysbench) = loaded(&plan, OPTIONS);
    assert_checks(&sysbench, &engine, 3 * 4);
    on(&mut sysbench, "index", &engine, usize::MAX);
    assert_checks(&sysbench, &engine, 3 * 4);
    for name in SHAPES {
        let (rows, wrong) = on(&mut sysbench, name, &engine, 30);
        assert_eq!(wrong, 0, "{name}");
        assert_eq!(rows == 0, name == "scan", "{name}: {rows}");
        if !matches!(name, "insert" | "delete") {
            assert_eq!(sysbench.rows(), 3 * 1501, "{name}");
            assert_checks(&sysbench, &engine, 3 * 4);
        }
    }
    // 60 rows were inserted, and up to 60 deleted, so the largest key is unknown.
    assert!((3 * 1501..3 * 1501 + 60).contains(&sysbench.rows()));
    assert_checks(&sysbench, &engine, 3 * 3);
    assert_eq!(sysbench.data_bytes(), sysbench.rows() * 186);
}

#[test]
fn every_microbenchmark_runs_as_text() {
    let plan = plan("prepared=false", &SHAPES, "");
    let (_directory, engine, mut sysbench) = loaded(&plan, OPTIONS);
    for name in SHAPES {
        let (rows, wrong) = on(&mut sysbench, name, &engine, 25);
        assert_eq!((wrong, rows == 0), (0, name == "scan"), "{name}");
    }
    assert_checks(&sysbench, &engine, 3 * 2);
}

#[test]
fn the_null_engine_answers_with_the_expected_rows() {
    for set in ["", "prepared=false"] {
        let mut sysbench = Sysbench::new(&plan(set, &SHAPES, ""), OPTIONS);
        let (rows, wrong) = on(&mut sysbench, "load", &Null, usize::MAX);
        assert_eq!((rows, wrong), (3 * 1501, 0));
        for name in SHAPES {
            assert_eq!(on(&mut sysbench, name, &Null, 5).1, 0, "{name}");
        }
    }
}

#[test]
fn the_seed_determines_the_rows_for_any_number_of_loaders() {
    for (tables, rows, connections, batch) in
        [(1, 1000, 1, 100), (3, 101, 2, 7), (2, 5, 8, 3), (1, 2, 5, 10)]
    {
        let plan = plan(
            &format!(
                "tables={tables} rows={rows} load-connections={connections} load-batch={batch}"
            ),
            &[],
            "",
        );
        let (_directory, engine, sysbench) = loaded(&plan, OPTIONS);
        assert_eq!(sysbench.rows(), tables * rows);
        // Three checks for each table, and one of the loaded rows.
        assert_checks(&sysbench, &engine, 4 * tables as usize);
    }
}

#[test]
fn a_changed_row_is_found_after_the_load() {
    let plan = plan("tables=1 rows=3", &[], "");
    let (_directory, engine, sysbench) = loaded(&plan, OPTIONS);
    let mut session = engine.connect().unwrap();
    let wrong = || -> Vec<Check> {
        let checks = sysbench.check(&engine).unwrap().into_iter();
        checks.filter(|check| !check.holds).collect()
    };
    session.query("update sbtest1 set c = 'x' where id = 2").unwrap();
    let [check] = &wrong()[..] else {
        panic!("{:?}", wrong());
    };
    assert!(check.found.contains("row 2: "), "{check:?}");
    session.query("delete from sbtest1 where id = 1").unwrap();
    let wrong: Vec<String> = wrong().into_iter().map(|check| check.what).collect();
    let loaded = "rows of sbtest1 as they were loaded";
    assert_eq!(wrong, ["rows of sbtest1", "smallest key of sbtest1", loaded]);
}

#[test]
fn deleted_rows_may_be_missing() {
    let plan = plan("tables=1 rows=20", &["delete", "point-query"], "");
    let (_directory, engine, mut sysbench) = loaded(&plan, OPTIONS);
    let (deleted, wrong) = on(&mut sysbench, "delete", &engine, 10);
    assert_eq!((sysbench.rows(), wrong), (20 - deleted, 0));
    assert!(deleted > 5, "{deleted}");
    let (found, wrong) = on(&mut sysbench, "point-query", &engine, 100);
    assert!(found < 190, "{found}");
    assert_eq!(wrong, 0);
}

#[test]
fn after_deletes_fewer_rows_are_found_but_inserts_stay_exact() {
    let one_client = Options { clients: 1, ..OPTIONS };
    let delete =
        r#"{ sql = "DELETE FROM {table} WHERE id = {id}", rows = 1, parameters = { id = "id" } }"#;
    let small = "tables=1 rows=20";
    let (_directory, engine, mut sysbench) =
        loaded(&mine(small, "", &[delete, LOOKUP]), one_client);
    assert_eq!(on(&mut sysbench, "mine", &engine, 50).1, 0);
    assert!(sysbench.rows() < 10, "{}", sysbench.rows());
    let two = INSERT.replace("rows = 1", "rows = 2");
    let (_directory, engine, mut sysbench) = loaded(&mine(small, "", &[delete, &two]), one_client);
    let wrong = on(&mut sysbench, "mine", &engine, 5).1;
    assert_eq!(wrong, 5);
}

#[test]
fn a_wrong_number_of_rows_is_counted() {
    let two = r#"{ sql = "SELECT c FROM {table} WHERE id IN ({id}, {id})", rows = 2, parameters = { id = "id" } }"#;
    // The second statement offsets the first one's rows, but the event stays wrong.
    let three = r#"{ sql = "SELECT c FROM {table} WHERE id < 4", rows = { least = 3, most = 4 } }"#;
    let (_directory, engine, mut sysbench) = loaded(&mine("", "", &[two, three]), OPTIONS);
    assert_eq!(on(&mut sysbench, "mine", &engine, 5), (2 * 5 * 4, 10));
}

#[test]
fn ids_that_are_not_unique_may_be_found_more_than_once_but_inserts_stay_exact() {
    let write_only = builtin("write-only");
    let is_right = |has_unique_ids, effect, rows| {
        let options = EventOptions {
            keys: Sampler::new(Distribution::Uniform, 1, 1501),
            thread: 1,
            dialect: &PostgresDialect::default(),
            may_miss: false,
            has_unique_ids,
            is_shared: true,
        };
        let event = Event::new(&write_only, &options);
        let mut statements = write_only.statements.iter();
        let place = statements.position(|statement| statement.effect == effect).unwrap();
        event.is_right(place, rows, 0, &event.template())
    };
    for effect in [Effect::Changes, Effect::Deletes] {
        assert!(is_right(false, effect, 2));
        assert!(!is_right(true, effect, 2));
    }
    assert!(!is_right(false, Effect::Inserts, 2));
    assert!(!is_right(false, Effect::Inserts, 0));
}

#[test]
fn tables_are_created_as_by_sysbench() {
    let create = |dialect: &dyn Dialect, primary_key: bool| {
        let plan = plan(&format!("tables=1 primary-key={primary_key}"), &[], "");
        dialect.create_table(&Sysbench::new(&plan, OPTIONS).tables()[0])
    };
    let columns = "k int not null default 0, c char(120) not null default '', pad char(60) not null default ''";
    let mysql =
        MysqlDialect { storage_engine: StorageEngine::InnoDb, table_options: String::new() };
    assert_eq!(
        create(&mysql, true),
        [format!(
            "create table sbtest1 (id int not null auto_increment, {columns}, primary key (id)) engine=InnoDB"
        )]
    );
    assert_eq!(
        create(&mysql, false),
        [format!(
            "create table sbtest1 (id int not null auto_increment, {columns}, key xid (id)) engine=InnoDB"
        )]
    );
    assert_eq!(
        create(&PostgresDialect::default(), true),
        [format!("create table sbtest1 (id serial not null, {columns}, primary key (id))")]
    );
    assert_eq!(
        create(&PostgresDialect::default(), false),
        [
            format!("create table sbtest1 (id serial not null, {columns})"),
            "create index sbtest1_xid on sbtest1 (id)".into()
        ]
    );
}

#[test]
fn every_table_gets_its_index_once() {
    let plan = plan("tables=5 rows=3", &[], "");
    let (_directory, engine, mut sysbench) = loaded(&plan, OPTIONS);
    on(&mut sysbench, "index", &engine, usize::MAX);
    let mut session = engine.connect().unwrap();
    let indexes = "select name from sqlite_master where type = 'index' order by name";
    let found: Vec<_> = session.query(indexes).unwrap().into_iter().flatten().collect();
    let expected = (1..=5).map(|table| Some(format!("sbtest{table}_k")));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn loaded_rows_have_keys_below_those_that_the_server_assigns() {
    let plan = plan("tables=2", &["insert"], "");
    let (_directory, engine, mut sysbench) = loaded(&plan, OPTIONS);
    let table = &sysbench.tables()[1];
    let dialect: &dyn Dialect = &PostgresDialect::default();
    assert_eq!(
        dialect.insert_with_keys(table, 2),
        "insert into sbtest2 (id, k, c, pad) values ($1, $2, $3, $4), ($5, $6, $7, $8)"
    );
    assert_eq!(
        dialect.assign_keys_above(table, 1501),
        ["select setval(pg_get_serial_sequence('sbtest2', 'id'), 1501)"]
    );
    on(&mut sysbench, "insert", &engine, 10);
    let facts = sysbench.tables().iter();
    let facts = facts.map(|table| engine.inspect(table, false).unwrap());
    assert!(facts.clone().all(|table| table.key_max == Some(table.rows.cast_signed())));
    assert_eq!(facts.map(|table| table.rows).sum::<u64>(), 2 * 1501 + 20);
}

#[test]
fn transactions_that_write_at_the_same_time_wait_for_each_other() {
    let plan = plan("tables=1 rows=50", &["read-write.range10"], "");
    let (_directory, engine, mut sysbench) = loaded(&plan, OPTIONS);
    let step = step(&sysbench, "read-write.range10");
    let mut tasks = sysbench.connections(step, &engine).unwrap();
    std::thread::scope(|scope| {
        for task in &mut tasks {
            scope.spawn(|| {
                for _ in 0..100 {
                    task.program.prepare();
                    assert!(task.program.execute().unwrap().is_expected);
                }
            });
        }
    });
    let programs = tasks.iter_mut().map(|task| &mut task.program);
    sysbench.apply(step.number, &summaries(programs));
    assert_eq!(sysbench.rows(), 50);
    assert_checks(&sysbench, &engine, 3);
}

#[test]
fn statements_sent_as_text_contain_their_values() {
    let sent = |prepared| {
        let update = r#"{ sql = "UPDATE {table} SET c = {c} WHERE id IN ({list}) OR id - {below} < {id}", parameters = { c = "c", list = "ids(2)", id = "id", below = "0 - id" } }"#;
        let plan = mine(&format!("prepared={prepared}"), "", &[update]);
        events(&test_of(&plan, "mine"), 5, 20)
    };
    let (prepared, plain) = (sent(true), sent(false));
    for (prepared, plain) in prepared.iter().zip(&plain) {
        let [c, first, second, below, id] = &prepared.parameters[..] else {
            panic!("{prepared:?}");
        };
        let table = prepared.sql.split(' ').nth(1).unwrap();
        assert_eq!(
            plain.sql,
            format!(
                "text: UPDATE {table} SET c = '{c}' WHERE id IN ({first}, {second}) OR id - ({below}) < {id}"
            )
        );
        assert!(plain.parameters.is_empty());
    }
    assert_eq!(plain.len(), 20);
}
