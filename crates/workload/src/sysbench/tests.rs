//! Tests of the whole workload, on SQLite, and with a session that records its statements.

use engine::mysql::{MysqlDialect, StorageEngine};
use engine::null::Null;
use engine::postgres::PostgresDialect;
use engine::sqlite::Sqlite;
use engine::{Interrupt, Outcome};
use plan::sysbench::Effect;

use super::connection::TransactionStatement;
use super::*;
use crate::{Executed, Next, Program};

mod mixes;
mod takeover;

/// Looks up one row.
const LOOKUP: &str =
    r#"{ sql = "SELECT c FROM {table} WHERE id = {id}", rows = 1, parameters = { id = "id" } }"#;
/// Changes one row.
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

/// Returns the test that a step runs.
fn test_of(plan: &plan::Sysbench, name: &str) -> Test {
    let step = plan.steps.iter().find(|step| step.name == name).unwrap();
    match &step.kind {
        SysbenchStepKind::Run { test, .. } => test.clone(),
        _ => panic!("`{name}` is no test"),
    }
}

/// Returns a built-in test.
fn builtin(name: &str) -> Test {
    test_of(&plan("", &[name], ""), name)
}

/// Returns a test that the plan defines.
fn own_test(keys: &str, statements: &[&str]) -> Test {
    test_of(&mine("", keys, statements), "mine")
}

const OPTIONS: Options =
    Options { seed: 11, nonce: 1, clients: 2, share: ClientShare::ALL, writers_max: 2 };

fn sqlite() -> (tempfile::TempDir, Sqlite) {
    let directory = tempfile::tempdir().unwrap();
    let set = [("journal_mode", "wal"), ("synchronous", "off")];
    let set = set.map(|(name, value)| (name.to_string(), value.to_string()));
    let sqlite = Sqlite::start(directory.path(), &set).unwrap();
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

// Tests with a session that records what is sent.

/// A statement that a session executed, with its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SentStatement {
    sql: String,
    parameters: Vec<String>,
}

#[derive(Default)]
struct Notes {
    statements: Vec<(String, Vec<ParamType>)>,
    started: SentStatement,
    sent: Vec<SentStatement>,
    /// The next answers, in reverse order; afterwards every statement has one row.
    answers: Vec<Result<u64, ErrorClass>>,
    /// Statements that it can't prepare.
    unprepared: Option<&'static str>,
}

impl Notes {
    fn answer(&mut self) -> Result<u64, Error> {
        let answer = self.answers.pop().unwrap_or(Ok(1));
        answer.map_err(|class| Error::new(class, "as the test wants it"))
    }

    fn give(&mut self, kind: ParamType, value: String) {
        let number = self.started.parameters.len();
        let (sql, types) =
            self.statements.iter().find(|(sql, _)| *sql == self.started.sql).unwrap();
        assert_eq!(types[number], kind, "parameter {number} of {sql}");
        self.started.parameters.push(value);
    }

    fn sql(&self) -> Vec<&str> {
        self.sent.iter().map(|sent| sent.sql.as_str()).collect()
    }
}

thread_local! {
    /// SQLite assigns the numbers of statements here, in order, because only an engine can create them.
    static NUMBERS: (tempfile::TempDir, Vec<Statement>) = {
        let (directory, engine) = sqlite();
        let mut session = engine.connect().unwrap();
        let numbers = (0..100).map(|_| session.prepare("select 1", &[]).unwrap()).collect();
        (directory, numbers)
    };
}

impl Session for Notes {
    fn prepare(&mut self, sql: &str, types: &[ParamType]) -> Result<Statement, Error> {
        if self.unprepared == Some(sql) {
            return Err(Error::new(ErrorClass::Other, "not this one"));
        }
        self.statements.push((sql.into(), types.into()));
        Ok(NUMBERS.with(|(_, numbers)| numbers[self.statements.len() - 1]))
    }
    fn start(&mut self, statement: Statement) {
        let number =
            NUMBERS.with(|(_, numbers)| numbers.iter().position(|known| *known == statement));
        self.started = SentStatement {
            sql: self.statements[number.unwrap()].0.clone(),
            parameters: Vec::new(),
        };
    }
    fn start_text(&mut self, sql: &str) {
        self.started = SentStatement { sql: format!("text: {sql}"), parameters: Vec::new() };
    }
    fn int4(&mut self, value: i32) {
        self.give(ParamType::Int4, value.to_string());
    }
    fn int8(&mut self, value: i64) {
        self.give(ParamType::Int8, value.to_string());
    }
    fn timestamp(&mut self, _: i64) {
        unreachable!("sysbench has none")
    }
    fn text(&mut self, value: &str) {
        self.give(ParamType::Text, value.into());
    }
    fn execute(&mut self) -> Result<Outcome, Error> {
        self.sent.push(self.started.clone());
        let rows = self.answer()?;
        Ok(Outcome { rows, value: None })
    }
    fn query(&mut self, sql: &str) -> Result<engine::Rows, Error> {
        self.sent.push(SentStatement { sql: format!("text: {sql}"), parameters: Vec::new() });
        self.answer().map(|_| Vec::new())
    }
    fn last_key(&mut self, _: &Table) -> Result<Option<i64>, Error> {
        Ok(None)
    }
    fn interrupt(&self) -> Result<Interrupt, Error> {
        Ok(Box::new(|| {}))
    }
}

/// Returns a runner on two tables, with a session that records.
fn connection(test: &Test, seed: u64, mut session: Notes) -> Runner<Notes> {
    let dialect = &PostgresDialect;
    let event = event(test);
    let of_table = |(number, name): (u32, &str)| RunnerTable {
        number,
        name: name.into(),
        statements: prepare(&mut session, &event, name, dialect).unwrap(),
    };
    let tables = [(0, "sbtest1"), (1, "sbtest2")].map(of_table).into();
    let mut control = |sql| TransactionStatement::new(&mut session, sql, event.is_plain()).unwrap();
    let transactions = test.transaction.then(|| Transactions {
        begin: control("begin"),
        begin_reading: event.writes_sometimes().then(|| control("begin reading")),
        commit: control("commit"),
        rollback: control("rollback"),
    });
    let streams = Streams { choices: Random::stream(seed, &[]), texts: Random::stream(seed, &[1]) };
    Runner::new(session, event, streams, tables, transactions)
}

fn event(test: &Test) -> Event {
    let options = EventOptions {
        keys: Sampler::new(Distribution::Uniform, 1, 1501),
        thread: 1,
        dialect: &PostgresDialect,
        may_miss: false,
        has_unique_ids: true,
        is_shared: false,
    };
    Event::new(test, &options)
}

#[test]
fn ids_that_are_not_unique_may_be_found_more_than_once_but_inserts_stay_exact() {
    let write_only = builtin("write-only");
    let is_right = |has_unique_ids, effect, rows| {
        let options = EventOptions {
            keys: Sampler::new(Distribution::Uniform, 1, 1501),
            thread: 1,
            dialect: &PostgresDialect,
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

/// Returns the statements of a number of events of a connection.
fn events(test: &Test, seed: u64, count: usize) -> Vec<SentStatement> {
    let mut connection = connection(test, seed, Notes::default());
    for _ in 0..count {
        assert_eq!(connection.prepare(), Next::Ready(0));
        connection.execute().unwrap();
    }
    connection.session.sent
}

#[test]
fn the_same_seed_gives_the_same_statements() {
    for name in SHAPES {
        let test = builtin(name);
        let first = events(&test, 5, 4);
        assert_eq!(first.len() as f64, 4.0 * test.queries_per_event(), "{name}");
        assert_eq!(first, events(&test, 5, 4), "{name}");
        if !matches!(name, "scan" | "hot-points") {
            assert_ne!(first, events(&test, 6, 4), "{name}");
        }
    }
}

#[test]
fn the_first_event_of_a_stream_never_changes() {
    let sent = events(&builtin("read-write.range10"), 5, 1);
    let [.., insert, commit] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!(commit.sql, "commit");
    let integers: Vec<&str> = sent
        .iter()
        .flat_map(|sent| &sent.parameters)
        .filter(|text| text.len() < 10)
        .map(String::as_str)
        .collect();
    assert_eq!(
        (integers.join(" ").as_str(), &insert.parameters[2][..23]),
        (
            "1297 1168 337 1498 1293 1032 856 1156 556 155 846 855 828 837 1021 1030 720 729 1199 1233 159 159 1169",
            "55044702401-78444805510"
        ),
        "changed choices change every result: it must be a decision"
    );
}

#[test]
fn statements_are_sent_as_the_test_says() {
    let sent = events(&builtin("read-write"), 5, 1);
    let table = sent[1].sql.split(' ').nth(3).unwrap();
    let (select, range) = (
        format!("SELECT c FROM {table} WHERE id = $1"),
        format!("FROM {table} WHERE id BETWEEN $1 AND $2"),
    );
    let mut expected = vec!["begin".to_string()];
    expected.extend(vec![select; 10]);
    expected.extend([
        format!("SELECT c {range}"),
        format!("SELECT sum(k) {range}"),
        format!("SELECT c {range} ORDER BY c"),
        format!("SELECT DISTINCT c {range} ORDER BY c"),
        format!("UPDATE {table} SET k = k + 1 WHERE id = $1"),
        format!("UPDATE {table} SET c = $1 WHERE id = $2"),
        format!("DELETE FROM {table} WHERE id = $1"),
        format!("INSERT INTO {table} (id, k, c, pad) VALUES ($1, $2, $3, $4)"),
        "commit".into(),
    ]);
    let sql: Vec<&str> = sent.iter().map(|sent| sent.sql.as_str()).collect();
    assert_eq!(sql, expected);
    let values = |index: usize| sent[index].parameters.as_slice();
    let number = |text: &String| text.parse::<i64>().unwrap();
    assert!((11..=14).all(|at| number(&values(at)[1]) == number(&values(at)[0]) + 99));
    let ids: std::collections::BTreeSet<&String> = (1..=10).map(|at| &values(at)[0]).collect();
    assert!(ids.len() > 8, "each execution draws anew: {ids:?}");
    assert_eq!(values(17)[0], values(18)[0], "what was deleted is inserted");
    let lengths = (values(18)[2].len(), values(18)[3].len());
    assert_eq!(lengths, (119, 59), "{:?}", values(18));
}

#[test]
fn the_text_of_a_statement_has_lists_and_tables() {
    let sent = events(&builtin("random-points.range3"), 5, 100);
    let first = &sent[0];
    assert!(first.sql.ends_with("WHERE id IN ($1, $2, $3)"), "{first:?}");
    assert_eq!(first.parameters.len(), 3);
    let of_first = sent.iter().filter(|sent| sent.sql.contains("sbtest1"));
    let count = of_first.count();
    assert!((30..70).contains(&count), "{count} of 100 events on one of two tables");
}

#[test]
fn each_row_of_values_has_its_own_parameters_and_shares_those_of_the_event() {
    let insert = |prepared: bool| {
        let text = r#"{ sql = "INSERT INTO {table} (id, k, c) VALUES {values}", values = "({id}, {k} + {t}, {c})", count = 3, repeat = 2, parameters = { k = "k", c = "c" }"#;
        let keys = r#"parameters = { id = "id", t = "thread * 10" }"#;
        own_test(keys, &[&format!("{text}, prepared = {prepared} }}")])
    };
    let [first, second] = &events(&insert(true), 5, 1)[..] else {
        panic!("not two statements");
    };
    let values = "($1, $2 + $3, $4), ($5, $6 + $7, $8), ($9, $10 + $11, $12)";
    assert!(first.sql.ends_with(values), "{first:?}");
    assert_eq!(first.sql, second.sql);
    let all: Vec<&[String]> =
        [first, second].iter().flat_map(|sent| sent.parameters.chunks(4)).collect();
    assert!(all.iter().all(|row| row[0] == all[0][0] && row[2] == "10"));
    let keys: std::collections::BTreeSet<&String> = all.iter().map(|row| &row[1]).collect();
    assert_eq!((all.len(), keys.len()), (6, 6));
    let rows = all.chunks(3).map(|rows| {
        let row = |row: &&[String]| format!("({}, {} + {}, '{}')", row[0], row[1], row[2], row[3]);
        rows.iter().map(row).collect::<Vec<_>>().join(", ")
    });
    let texts = events(&insert(false), 5, 1);
    assert!(rows.zip(&texts).all(|(rows, sent)| sent.sql.ends_with(&rows)), "{texts:?}");
}

#[test]
fn tables_are_chosen_as_the_test_says() {
    let count = |choice: &str| {
        let plan = mine("", &format!("table = \"{choice}\""), &[LOOKUP]);
        let sysbench = Sysbench::new(&plan, OPTIONS);
        let mut tasks = sysbench.connections(step(&sysbench, "mine"), &Null).unwrap();
        let tables = |task: &mut Task| {
            let Summary::RowChanges(changes) = task.program.summary(0).unwrap() else {
                panic!("it is the summary of another workload");
            };
            changes.iter().map(|(table, _)| *table).collect::<Vec<_>>()
        };
        tasks.iter_mut().map(tables).collect::<Vec<_>>()
    };
    assert_eq!(count("random"), [[0, 1, 2], [0, 1, 2]]);
    assert_eq!(count("thread"), [[0], [1]]);
    assert_eq!(count("first"), [[0], [0]]);
}

#[test]
fn a_failed_transaction_is_retried_from_its_start() {
    for (class, at) in [(ErrorClass::Deadlock, 3), (ErrorClass::DuplicateKey, 4)] {
        let mut answers: Vec<Result<u64, ErrorClass>> = vec![Ok(1); at];
        answers.push(Err(class));
        answers.reverse();
        let session = Notes { answers, ..Notes::default() };
        let mut connection = connection(&builtin("write-only"), 5, session);
        connection.prepare();
        let error = connection.execute().unwrap_err();
        assert!(connection.may_retry(error.class), "{class:?}");
        assert_eq!(connection.execute().unwrap(), Executed::new(4, (4, 4)));
        let session = &connection.session;
        let (sent, sql) = (&session.sent, session.sql());
        assert_eq!((sql[0], sql[at + 1], sql[at + 2]), ("begin", "rollback", "begin"));
        assert_eq!(sent[..=at], sent[at + 2..][..=at], "with the same values");
        assert_eq!(sql.last(), Some(&"commit"));
        let changes = &connection.changes;
        let put_back = changes.iter().all(|(_, it)| *it == RowChanges::default());
        assert!(put_back, "{changes:?}");
    }
}

#[test]
fn without_a_transaction_only_the_failed_statement_is_retried() {
    let session = Notes { answers: vec![Err(ErrorClass::LockTimeout), Ok(1)], ..Notes::default() };
    let mut connection = connection(&own_test("", &[INSERT, INSERT]), 5, session);
    connection.prepare();
    assert!(!connection.may_retry(ErrorClass::DuplicateKey));
    connection.execute().unwrap_err();
    assert_eq!(connection.execute().unwrap().rows, 2);
    let sent = &connection.session.sent;
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[1], sent[2]);
    assert_ne!(sent[0], sent[1]);
    let inserted: u64 = connection.changes.iter().map(|(_, changes)| changes.inserted).sum();
    assert_eq!(inserted, 2);
}

#[test]
fn an_unknown_outcome_of_a_write_makes_the_rows_unknown() {
    let call = own_test("", &[r#"{ sql = "call mine()" }"#]);
    let lost = Err(ErrorClass::ConnectionLost);
    for (test, answer, is_uncertain) in [
        (builtin("insert"), lost, true),
        (builtin("scan"), lost, false),
        // The statement reports no rows.
        (call, Ok(0), true),
    ] {
        let session = Notes { answers: vec![answer], ..Notes::default() };
        let mut connection = connection(&test, 5, session);
        connection.prepare();
        let _ = connection.execute();
        let is = connection.changes.iter().any(|(_, changes)| changes.is_uncertain);
        assert_eq!(is, is_uncertain, "{}", test.name);
    }
    let mut sysbench = Sysbench::new(&plan("", &[], ""), OPTIONS);
    sysbench.ledgers[0] = Ledger::found(1501, Some((1, 1501)), true, true);
    sysbench.ledgers[0].apply(RowChanges { is_uncertain: true, ..RowChanges::default() });
    let facts = TableFacts {
        rows: 1500,
        key_min: Some(1),
        key_max: Some(1500),
        index_rows: vec![("k".into(), engine::IndexRows::Counted(1499))],
    };
    let mut checks = sysbench.check_table(0, &facts);
    checks.retain(|check| check.left_out.is_none());
    let [check] = &checks[..] else {
        panic!("{checks:?}");
    };
    assert_eq!((check.what.as_str(), check.holds), ("rows in index k of sbtest1", false));
}

#[test]
fn a_connection_may_delete_what_another_inserted() {
    let plan = plan("tables=2 rows=10", &["insert"], "");
    let mut sysbench = Sysbench::new(&plan, OPTIONS);
    for ledger in &mut sysbench.ledgers {
        *ledger = Ledger::found(10, Some((1, 10)), true, false);
    }
    let mut programs: [Box<dyn Program>; 2] = ["delete", "insert"]
        .map(|name| Box::new(connection(&builtin(name), 5, Notes::default())) as _);
    for program in &mut programs {
        for _ in 0..50 {
            program.prepare();
            program.execute().unwrap();
        }
    }
    let step = step(&sysbench, "insert");
    sysbench.apply(step.number, &summaries(&mut programs));
    assert_eq!(sysbench.rows(), 20);
}

#[test]
fn control_statements_are_text_if_they_can_not_be_prepared_or_all_are() {
    let run = |test: &Test, unprepared| {
        let session = Notes { unprepared, ..Notes::default() };
        let mut connection = connection(test, 5, session);
        connection.prepare();
        connection.execute().unwrap();
        connection.session
    };
    let session = run(&builtin("write-only"), Some("begin"));
    let sql = session.sql();
    assert_eq!((sql[0], sql.last()), ("text: begin", Some(&"commit")));
    let as_text = plan("prepared=false", &["write-only"], "");
    let session = run(&test_of(&as_text, "write-only"), None);
    assert_eq!(session.statements, []);
    let sql = session.sql();
    assert_eq!((sql[0], sql.last()), ("text: begin", Some(&"text: commit")));
}

#[test]
fn a_warm_up_makes_other_choices_than_its_step() {
    let plan = plan("", &["point-query"], "");
    let (_directory, engine, sysbench) = loaded(&plan, OPTIONS);
    let test = builtin("point-query");
    let values = |is_warm_up| {
        let step = Step { is_warm_up, ..step(&sysbench, "point-query") };
        let mut runner = sysbench.runner(step, &test, Distribution::Uniform, 0, &engine).unwrap();
        runner.next_random()
    };
    assert_eq!(values(false), values(false));
    assert_ne!(values(false), values(true));
}

#[test]
fn another_attempt_writes_other_texts_to_the_same_rows() {
    let plan = plan("", &["update-nonindex"], "");
    let (_directory, engine, _) = loaded(&plan, OPTIONS);
    let mut session = engine.connect().unwrap();
    session.query("create table written (id integer, before text, after text)").unwrap();
    for number in 1..=3 {
        session
            .query(&format!(
                "create trigger note{number} after update on sbtest{number} begin \
                 insert into written values (new.id, old.c, new.c); end"
            ))
            .unwrap();
    }
    let mut attempt = |nonce| {
        let mut sysbench = Sysbench::new(&plan, Options { nonce, ..OPTIONS });
        sysbench.adopt_tables(&engine).unwrap();
        assert_eq!(on(&mut sysbench, "update-nonindex", &engine, 50), (100, 0));
        let same = session.query_i64("select count(*) from written where before = after");
        let ids = session.query("select id from written").unwrap();
        session.query("delete from written").unwrap();
        (ids, same.unwrap())
    };
    let (first, second, repeated) = (attempt(1), attempt(2), attempt(2));
    assert_eq!((first.1, second.1), (Some(0), Some(0)));
    assert_eq!(first.0, second.0, "other rows");
    // With the same nonce the texts exist already, except in rows that were drawn twice.
    assert!(repeated.1 > Some(90), "{repeated:?}");
}

#[test]
fn numbers_are_as_wide_as_necessary() {
    let select = r#"{ sql = "SELECT {id} + {far} + {list}", parameters = { id = "id", far = "id * 2000000", list = "consecutive(far, 2)" } }"#;
    let (sql, types) = event(&own_test("", &[select])).sql(0, "t", &PostgresDialect).unwrap();
    assert_eq!(sql, "SELECT $1 + $2 + $3, $4");
    let wide = ParamType::Int8;
    assert_eq!(types, [ParamType::Int4, wide, wide, wide]);
}

#[test]
fn the_error_names_a_statement_that_the_engine_refuses() {
    let plan = mine("", "", &[LOOKUP, r#"{ sql = "SELEC c FROM {table}" }"#]);
    let (_directory, engine, sysbench) = loaded(&plan, OPTIONS);
    let Err(error) = sysbench.connections(step(&sysbench, "mine"), &engine) else {
        panic!("it was taken");
    };
    let message = error.to_string();
    assert!(message.starts_with("test `mine`, statement 2: `SELEC c FROM sbtest1`: "), "{message}");
}

#[test]
fn tables_are_created_as_by_sysbench() {
    let create = |dialect: &dyn Dialect, primary_key: bool| {
        let plan = plan(&format!("tables=1 primary-key={primary_key}"), &[], "");
        dialect.create_table(&Sysbench::new(&plan, OPTIONS).tables()[0])
    };
    let columns = "k int not null default 0, c char(120) not null default '', pad char(60) not null default ''";
    let mysql = MysqlDialect { storage_engine: StorageEngine::InnoDb };
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
        create(&PostgresDialect, true),
        [format!("create table sbtest1 (id serial not null, {columns}, primary key (id))")]
    );
    assert_eq!(
        create(&PostgresDialect, false),
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
    let dialect: &dyn Dialect = &PostgresDialect;
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
