//! The whole of it: on SQLite, which counts, and with a session that notes what it is asked.

use engine::mysql::{MysqlDialect, StorageEngine};
use engine::null::Null;
use engine::postgres::PostgresDialect;
use engine::sqlite::{Sqlite, SqliteDialect};
use engine::{Engine, Interrupt, Outcome};

use super::test::{Draw, Expression, Group, Parameter, TestStatement};
use super::*;
use crate::{Next, Program};

mod mixes;
mod takeover;

use takeover::UNINDEXED;

// Tests as a plan would have them.

fn integer(value: i64) -> Expression {
    Expression::Integer(value)
}

fn named(name: &str) -> Expression {
    Expression::Parameter(name.into())
}

fn sum(left: Expression, right: Expression) -> Expression {
    Expression::Sum(Box::new(left), Box::new(right))
}

fn difference(left: Expression, right: Expression) -> Expression {
    Expression::Difference(Box::new(left), Box::new(right))
}

fn quotient(left: Expression, right: Expression) -> Expression {
    Expression::Quotient(Box::new(left), Box::new(right))
}

fn parameter(name: &str, draw: Draw) -> Parameter {
    Parameter {
        name: name.into(),
        draw,
    }
}

fn statement<const N: usize>(
    sql: &str,
    rows: Option<(i64, i64)>,
    parameters: [(&str, Draw); N],
) -> TestStatement {
    TestStatement {
        sql: sql.into(),
        weight: None,
        repeat: 1,
        prepared: true,
        rows: rows.map(|(least, most)| (integer(least), integer(most))),
        parameters: parameters
            .into_iter()
            .map(|(name, draw)| parameter(name, draw))
            .collect(),
    }
}

fn test<const N: usize>(name: &str, group: Group, statements: [TestStatement; N]) -> Test {
    Test {
        name: name.into(),
        group,
        table: TableChoice::Random,
        transaction: false,
        parameters: Vec::new(),
        statements: statements.into(),
    }
}

fn in_transaction(mut test: Test) -> Test {
    test.transaction = true;
    test
}

fn lookups(repeat: u32) -> TestStatement {
    TestStatement {
        repeat,
        ..statement(
            "SELECT c FROM {table} WHERE id = {id}",
            Some((1, 1)),
            [("id", Draw::Id)],
        )
    }
}

/// Rows with keys from a random one on, so many; near the end of the table there are fewer.
fn range(select: &str, order: &str, range: i64, rows: (i64, i64)) -> TestStatement {
    let last = difference(sum(named("first"), integer(range)), integer(1));
    statement(
        &format!("SELECT {select} FROM {{table}} WHERE id BETWEEN {{first}} AND {{last}}{order}"),
        Some(rows),
        [("first", Draw::Id), ("last", Draw::Value(last))],
    )
}

fn simple(n: i64) -> TestStatement {
    range("c", "", n, (1, n))
}

fn sums(n: i64) -> TestStatement {
    range("sum(k)", "", n, (1, 1))
}

fn ordered(n: i64) -> TestStatement {
    range("c", " ORDER BY c", n, (1, n))
}

fn distinct(n: i64) -> TestStatement {
    range("DISTINCT c", " ORDER BY c", n, (1, n))
}

fn read_only(n: i64) -> Test {
    in_transaction(test(
        "read-only",
        Group::RangeTwo,
        [lookups(10), simple(n), sums(n), ordered(n), distinct(n)],
    ))
}

fn one_range(name: &str, statement: TestStatement) -> Test {
    in_transaction(test(name, Group::RangeTwo, [lookups(10), statement]))
}

fn random_points(name: &str, select: &str, column: &str, list: Draw, rows: (i64, i64)) -> Test {
    let sql = format!("SELECT {select} FROM {{table}} WHERE {column} IN ({{list}})");
    test(
        name,
        Group::Point,
        [statement(&sql, Some(rows), [("list", list)])],
    )
}

fn range_101(name: &str, select: &str, column: &str, draw: Draw) -> Test {
    let sql = format!("SELECT {select} FROM {{table}} WHERE {column} BETWEEN {{x}} AND {{y}}");
    let last = sum(named("x"), integer(100));
    test(
        name,
        Group::RangeOne,
        [statement(
            &sql,
            None,
            [("x", draw), ("y", Draw::Value(last))],
        )],
    )
}

fn update_index(id: Draw) -> TestStatement {
    statement(
        "UPDATE {table} SET k = k + 1 WHERE id = {id}",
        Some((1, 1)),
        [("id", id)],
    )
}

fn update_non_index(id: Draw) -> TestStatement {
    statement(
        "UPDATE {table} SET c = {c} WHERE id = {id}",
        Some((1, 1)),
        [("c", Draw::C), ("id", id)],
    )
}

fn writes() -> [TestStatement; 4] {
    [
        update_index(Draw::Id),
        update_non_index(Draw::Id),
        statement("DELETE FROM {table} WHERE id = {same}", Some((1, 1)), []),
        statement(
            "INSERT INTO {table} (id, k, c, pad) VALUES ({same}, {k}, {c}, {pad})",
            Some((1, 1)),
            [("k", Draw::K), ("c", Draw::C), ("pad", Draw::Pad)],
        ),
    ]
}

fn write_only() -> Test {
    Test {
        parameters: vec![parameter("same", Draw::Id)],
        ..in_transaction(test("write-only", Group::Write, writes()))
    }
}

fn read_write(n: i64) -> Test {
    let mut test = read_only(n);
    test.name = "read-write".into();
    test.group = Group::Write;
    test.parameters = write_only().parameters;
    test.statements.extend(writes());
    test
}

fn insert() -> Test {
    test(
        "insert",
        Group::Write,
        [statement(
            "INSERT INTO {table} (k, c, pad) VALUES ({k}, {c}, {pad})",
            Some((1, 1)),
            [("k", Draw::K), ("c", Draw::C), ("pad", Draw::Pad)],
        )],
    )
}

fn delete() -> Test {
    test(
        "delete",
        Group::Write,
        [statement(
            "DELETE FROM {table} WHERE id = {id}",
            Some((0, 1)),
            [("id", Draw::Id)],
        )],
    )
}

fn scan() -> Test {
    Test {
        table: TableChoice::Thread,
        ..test(
            "scan",
            Group::RangeOne,
            [statement(
                "SELECT * FROM {table} WHERE LENGTH(c) < 0",
                Some((0, 0)),
                [],
            )],
        )
    }
}

/// Every shape of the microbenchmarks, with the queries per event that sysbench counts; writes that leave fewer rows
/// come last.
fn shapes() -> Vec<(Test, u32)> {
    let ids = |n| Draw::Ids(integer(n));
    let ks = |n| Draw::Ks(integer(n));
    let middle = sum(quotient(Expression::Rows, integer(2)), integer(1));
    let hot = Draw::Consecutive(middle, integer(100));
    let zipfian = Draw::Zipfian(integer(1), Expression::Rows, 0.8);
    let write = |name: &str, of: TestStatement| test(name, Group::Write, [of]);
    let count = range("count(c)", "", 1000, (1, 1));
    let inlist = statement(
        "UPDATE {table} SET c = {c} WHERE id IN ({ids})",
        // Ids may be drawn twice.
        Some((1, 10)),
        [("c", Draw::C), ("ids", ids(10))],
    );
    vec![
        (test("point-query", Group::Point, [lookups(1)]), 1),
        (
            random_points("random-points", "c", "id", ids(10), (1, 10)),
            1,
        ),
        (
            random_points("random-points", "c", "id", ids(1000), (1, 1000)),
            1,
        ),
        (random_points("hot-points", "c", "id", hot, (100, 100)), 1),
        (
            random_points("points-covered-pk", "id", "id", ids(100), (1, 100)),
            1,
        ),
        (
            random_points("points-covered-si", "k", "k", ks(100), (0, 2000)),
            1,
        ),
        (
            random_points("points-notcovered-si", "k, c", "k", ks(100), (0, 2000)),
            1,
        ),
        (range_101("range-covered-pk", "id", "id", Draw::Id), 1),
        (range_101("range-notcovered-si", "c", "k", Draw::K), 1),
        (scan(), 1),
        (read_only(10), 16),
        (read_only(100), 16),
        (one_range("read-only-simple", simple(1000)), 13),
        (one_range("read-only-sum", sums(1000)), 13),
        (one_range("read-only-order", ordered(1000)), 13),
        (one_range("read-only-distinct", distinct(1000)), 13),
        (test("read-only-count", Group::RangeTwo, [count]), 1),
        (write("update-inlist", inlist), 1),
        (write("update-index", update_index(Draw::Id)), 1),
        (write("update-nonindex", update_non_index(Draw::Id)), 1),
        (
            write("update-one", update_non_index(Draw::Value(integer(1)))),
            1,
        ),
        (write("update-zipf", update_non_index(zipfian)), 1),
        (write_only(), 6),
        (read_write(10), 20),
        (read_write(100), 20),
        (insert(), 1),
        (delete(), 1),
    ]
}

fn options() -> Options {
    Options {
        seed: 11,
        nonce: 1,
        clients: 2,
        tables: 3,
        rows: 1501,
        load_connections: 2,
        load_batch: 100,
        primary_key: true,
    }
}

fn step(number: u32, kind: StepKind) -> Step {
    Step {
        number,
        is_warm_up: false,
        kind,
    }
}

fn run(number: u32, test: Test) -> Step {
    step(
        number,
        StepKind::Run {
            test,
            distribution: Distribution::Uniform,
            rate: None,
        },
    )
}

fn sqlite() -> (tempfile::TempDir, Sqlite) {
    let directory = tempfile::tempdir().unwrap();
    let set = [("journal_mode", "wal"), ("synchronous", "off")];
    let set = set.map(|(name, value)| (name.to_string(), value.to_string()));
    let sqlite = Sqlite::start(directory.path(), &set).unwrap();
    (directory, sqlite)
}

/// Runs a step on an engine, its connections in turn, at most `events` operations each; rows of all, and of how many
/// operations they were not right.
fn on<E: SqlEngine>(sysbench: &mut Sysbench, step: &Step, engine: &E, events: usize) -> (u64, u64) {
    let mut works = sysbench.connections(step, engine).unwrap();
    let (mut rows, mut wrong) = (0, 0);
    let mut done = vec![0; works.len()];
    while done.iter().any(|&done| done < events) {
        for (work, done) in works.iter_mut().zip(&mut done) {
            if *done >= events {
                continue;
            }
            if work.program.prepare() == Next::Done {
                *done = events;
                continue;
            }
            let outcome = work.program.execute().unwrap();
            let (least, most) = work.program.expected_rows();
            rows += outcome.rows;
            wrong += u64::from(outcome.rows < least || outcome.rows > most);
            *done += 1;
        }
    }
    sysbench.apply(
        step,
        &accounts(works.iter_mut().map(|work| &mut work.program)),
    );
    (rows, wrong)
}

fn assert_checks(sysbench: &Sysbench, engine: &Sqlite, expected: usize) {
    let mut count = 0;
    for (number, table) in sysbench.tables().iter().enumerate() {
        let facts = engine.inspect(table, sysbench.is_indexed()).unwrap();
        for check in sysbench.check(number, &facts) {
            assert!(check.holds, "{check:?}");
            count += usize::from(check.left_out.is_none());
        }
    }
    assert_eq!(count, expected);
}

fn loaded(options: Options) -> (tempfile::TempDir, Sqlite, Sysbench) {
    let (directory, engine) = sqlite();
    let mut sysbench = Sysbench::new(options);
    let mut session = engine.connect().unwrap();
    for sql in sysbench.create_statements(engine.dialect()).unwrap() {
        session.query(&sql).unwrap();
    }
    let (rows, wrong) = on(&mut sysbench, &step(0, StepKind::Load), &engine, usize::MAX);
    assert_eq!((rows, wrong), (sysbench.rows(), 0));
    (directory, engine, sysbench)
}

fn accounts<'a>(programs: impl IntoIterator<Item = &'a mut Box<dyn Program>>) -> Accounts {
    let account = |program: &mut Box<dyn Program>| (0, program.account(0).unwrap());
    programs.into_iter().map(account).collect()
}

#[test]
fn what_a_transaction_writes_is_one_commit_and_without_one_each_write_is() {
    let [a, b, c, d] = writes();
    let mut mixed = test("own", Group::Write, [a, b, c, d, lookups(3)]);
    assert_eq!(mixed.commits_per_event(), 4.0);
    mixed.transaction = true;
    assert_eq!(mixed.commits_per_event(), 1.0);
    let mut reads = test("own", Group::Point, [lookups(3)]);
    reads.transaction = true;
    assert_eq!(reads.commits_per_event(), 0.0);
}

#[test]
fn all_shapes_run_and_their_rows_are_right() {
    let (_directory, engine, mut sysbench) = loaded(options());
    on(
        &mut sysbench,
        &step(1, StepKind::Index),
        &engine,
        usize::MAX,
    );
    assert_checks(&sysbench, &engine, 3 * 4);
    for (number, (test, queries)) in shapes().into_iter().enumerate() {
        let name = test.name.clone();
        assert_eq!(test.queries_per_event(), f64::from(queries), "{name}");
        let ends = matches!(test.name.as_str(), "insert" | "delete");
        let step = run(number as u32 + 2, test);
        let (rows, wrong) = on(&mut sysbench, &step, &engine, 30);
        assert_eq!(wrong, 0, "{name}");
        assert_eq!(rows == 0, name == "scan", "{name}: {rows}");
        if !ends {
            assert_eq!(sysbench.rows(), 3 * 1501, "{name}");
            assert_checks(&sysbench, &engine, 3 * 4);
        }
    }
    // 60 rows were inserted, and up to 60 deleted: nothing is known of the largest key any more.
    assert!((3 * 1501..3 * 1501 + 60).contains(&sysbench.rows()));
    assert_checks(&sysbench, &engine, 3 * 3);
    assert_eq!(sysbench.data_bytes(), sysbench.rows() * 186);
}

#[test]
fn rows_are_loaded_as_the_seed_says_however_they_are_shared_out() {
    for (tables, rows, load_connections, load_batch) in [
        (1, 1000, 1, 100),
        (3, 101, 2, 7),
        (2, 5, 8, 3),
        (1, 2, 5, 10),
    ] {
        let (_directory, engine, sysbench) = loaded(Options {
            tables,
            rows,
            load_connections,
            load_batch,
            ..options()
        });
        assert_eq!(sysbench.rows(), u64::from(tables) * rows);
        assert_checks(&sysbench, &engine, 3 * tables as usize);
        let mut session = engine.connect().unwrap();
        for table in 0..tables as usize {
            let check = sysbench.check_loaded(table, &mut session, 50).unwrap();
            assert!(check.holds, "{check:?}");
        }
    }
}

#[test]
fn a_row_that_is_not_as_it_was_loaded_is_found() {
    let (_directory, engine, sysbench) = loaded(Options {
        tables: 1,
        rows: 3,
        ..options()
    });
    let mut session = engine.connect().unwrap();
    session
        .query("update sbtest1 set c = 'x' where id = 2")
        .unwrap();
    let check = sysbench.check_loaded(0, &mut session, 50).unwrap();
    assert!(!check.holds);
    assert!(check.found.contains("row 2: "), "{check:?}");
    session.query("delete from sbtest1 where id = 1").unwrap();
    let facts = engine.inspect(&sysbench.tables()[0], false).unwrap();
    let wrong: Vec<String> = sysbench
        .check(0, &facts)
        .into_iter()
        .filter(|check| !check.holds)
        .map(|check| check.what)
        .collect();
    assert_eq!(wrong, ["rows of sbtest1", "smallest key of sbtest1"]);
}

#[test]
fn once_rows_were_deleted_they_may_be_missing() {
    let (_directory, engine, mut sysbench) = loaded(Options {
        tables: 1,
        rows: 20,
        ..options()
    });
    let (deleted, wrong) = on(&mut sysbench, &run(1, delete()), &engine, 10);
    assert_eq!((sysbench.rows(), wrong), (20 - deleted, 0));
    assert!(deleted > 5, "{deleted}");
    let point_query = test("point-query", Group::Point, [lookups(1)]);
    let (found, wrong) = on(&mut sysbench, &run(2, point_query), &engine, 100);
    assert!(found < 190, "{found}");
    assert_eq!(wrong, 0);
}

#[test]
fn a_test_that_deletes_finds_fewer_rows_and_inserts_as_many_as_ever() {
    let (_directory, engine, mut sysbench) = loaded(Options {
        tables: 1,
        clients: 1,
        rows: 20,
        ..options()
    });
    let one = statement(
        "DELETE FROM {table} WHERE id = {id}",
        Some((1, 1)),
        [("id", Draw::Id)],
    );
    let deletes = test("deletes", Group::Write, [one, lookups(1)]);
    assert_eq!(on(&mut sysbench, &run(1, deletes), &engine, 50).1, 0);
    assert!(sysbench.rows() < 10, "{}", sysbench.rows());
    let two = statement(
        "INSERT INTO {table} (k, c, pad) VALUES ({k}, {c}, {pad})",
        Some((2, 2)),
        [("k", Draw::K), ("c", Draw::C), ("pad", Draw::Pad)],
    );
    let inserts = test("inserts", Group::Write, [two]);
    assert_eq!(on(&mut sysbench, &run(2, inserts), &engine, 5), (5, 5));
}

#[test]
fn rows_that_are_not_right_are_noticed() {
    let (_directory, engine, mut sysbench) = loaded(options());
    let two = statement(
        "SELECT c FROM {table} WHERE id IN ({id}, {id})",
        Some((2, 2)),
        [("id", Draw::Id)],
    );
    // The second statement makes up for the first, but does not make it right.
    let three = statement("SELECT c FROM {table} WHERE id < 4", Some((3, 4)), []);
    let step = run(1, test("two", Group::Point, [two, three]));
    assert_eq!(on(&mut sysbench, &step, &engine, 5), (2 * 5 * 4, 10));
}

#[test]
fn the_engine_that_does_nothing_answers_as_is_expected() {
    let mut sysbench = Sysbench::new(options());
    let (rows, wrong) = on(&mut sysbench, &step(0, StepKind::Load), &Null, usize::MAX);
    assert_eq!((rows, wrong), (3 * 1501, 0));
    for (test, _) in shapes() {
        let name = test.name.clone();
        let (_, wrong) = on(&mut sysbench, &run(1, test), &Null, 5);
        assert_eq!(wrong, 0, "{name}");
    }
}

// What is sent, noted by a session.

/// What a session was asked to execute, and with what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked {
    sql: String,
    parameters: Vec<String>,
}

#[derive(Default)]
struct Notes {
    statements: Vec<(String, Vec<ParamType>)>,
    started: Asked,
    asked: Vec<Asked>,
    /// The answers to come, the last first; then every statement has one row.
    answers: Vec<Result<u64, ErrorClass>>,
    /// What it can't prepare.
    unprepared: Option<&'static str>,
}

impl Notes {
    fn answer(&mut self) -> Result<u64, Error> {
        let answer = self.answers.pop().unwrap_or(Ok(1));
        answer.map_err(|class| Error::new(class, "as the test wants it"))
    }

    fn give(&mut self, kind: ParamType, value: String) {
        let number = self.started.parameters.len();
        let (sql, types) = self
            .statements
            .iter()
            .find(|(sql, _)| *sql == self.started.sql)
            .unwrap();
        assert_eq!(types[number], kind, "parameter {number} of {sql}");
        self.started.parameters.push(value);
    }

    fn sql(&self) -> Vec<&str> {
        self.asked.iter().map(|asked| asked.sql.as_str()).collect()
    }
}

thread_local! {
    /// Statements have numbers that only the engine can make: SQLite makes them here, in order.
    static NUMBERS: (tempfile::TempDir, Vec<Statement>) = {
        let (directory, engine) = sqlite();
        let mut session = engine.connect().unwrap();
        let numbers = (0..100).map(|_| session.prepare("select 1", &[]).unwrap());
        let numbers = numbers.collect();
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
        let number = NUMBERS.with(|(_, numbers)| numbers.iter().position(|it| *it == statement));
        self.started = Asked {
            sql: self.statements[number.unwrap()].0.clone(),
            parameters: Vec::new(),
        };
    }
    fn start_text(&mut self, sql: &str) {
        self.started = Asked {
            sql: format!("text: {sql}"),
            parameters: Vec::new(),
        };
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
        self.asked.push(self.started.clone());
        let rows = self.answer()?;
        Ok(Outcome { rows, value: None })
    }
    fn query(&mut self, sql: &str) -> Result<engine::Rows, Error> {
        self.asked.push(Asked {
            sql: format!("text: {sql}"),
            parameters: Vec::new(),
        });
        self.answer().map(|_| Vec::new())
    }
    fn last_key(&mut self, _: &Table) -> Result<Option<i64>, Error> {
        Ok(None)
    }
    fn interrupt(&self) -> Result<Interrupt, Error> {
        Ok(Box::new(|| {}))
    }
}

fn target(dialect: &dyn Dialect, rows: u64) -> Target<'_> {
    Target {
        environment: Environment {
            rows,
            tables: 2,
            thread: 1,
        },
        distribution: Distribution::Uniform,
        dialect,
        may_miss: false,
        is_shared: false,
    }
}

/// A runner on two tables, with a session that notes.
fn connection(test: &Test, seed: u64, mut session: Notes) -> Runner<Notes> {
    let dialect = &PostgresDialect;
    let event = Event::new(test, &target(dialect, 1000)).unwrap();
    let of_table = |(number, name): (u32, &str)| OfTable {
        number,
        name: name.into(),
        statements: prepare(&mut session, &event, test, name, dialect).unwrap(),
    };
    let tables = [(0, "sbtest1"), (1, "sbtest2")].map(of_table).into();
    let mut control = |sql| Control::new(&mut session, sql, event.is_plain()).unwrap();
    let transactions = test.transaction.then(|| Transactions {
        begin: control("begin"),
        begin_reading: event.writes_sometimes().then(|| control("begin reading")),
        commit: control("commit"),
        rollback: control("rollback"),
    });
    let streams = Streams {
        choices: Random::stream(seed, &[]),
        texts: Random::stream(seed, &[1]),
    };
    Runner::new(session, event, streams, tables, transactions)
}

fn events(test: &Test, seed: u64, count: usize) -> Vec<Asked> {
    let mut connection = connection(test, seed, Notes::default());
    for _ in 0..count {
        assert_eq!(connection.prepare(), Next::Ready(0));
        connection.execute().unwrap();
    }
    connection.session.asked.clone()
}

#[test]
fn the_same_seed_gives_the_same_statements() {
    for (test, queries) in shapes() {
        let first = events(&test, 5, 4);
        assert_eq!(first.len() as u32, 4 * queries, "{}", test.name);
        assert_eq!(first, events(&test, 5, 4), "{}", test.name);
        if !matches!(test.name.as_str(), "scan" | "hot-points") {
            assert_ne!(first, events(&test, 6, 4), "{}", test.name);
        }
    }
}

#[test]
fn what_is_sent_is_what_the_test_says() {
    let asked = events(&read_write(100), 5, 1);
    let table = asked[1].sql.split(' ').nth(3).unwrap();
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
    let sql: Vec<&str> = asked.iter().map(|asked| asked.sql.as_str()).collect();
    assert_eq!(sql, expected);
    let values = |index: usize| asked[index].parameters.as_slice();
    let number = |text: &String| text.parse::<i64>().unwrap();
    assert!((11..=14).all(|at| number(&values(at)[1]) == number(&values(at)[0]) + 99));
    let ids: std::collections::BTreeSet<&String> = (1..=10).map(|at| &values(at)[0]).collect();
    assert!(ids.len() > 8, "each execution draws anew: {ids:?}");
    assert_eq!(values(17)[0], values(18)[0], "what was deleted is inserted");
    assert_eq!(
        (values(18)[2].len(), values(18)[3].len()),
        (119, 59),
        "{:?}",
        values(18)
    );
}

#[test]
fn lists_and_tables_are_in_the_statements_text() {
    let [first, ..] = &events(
        &random_points("p", "c", "id", Draw::Ids(integer(3)), (1, 3)),
        5,
        1,
    )[..] else {
        panic!("nothing was asked");
    };
    assert!(first.sql.ends_with("WHERE id IN ($1, $2, $3)"), "{first:?}");
    assert_eq!(first.parameters.len(), 3);
    let asked = events(&test("point-query", Group::Point, [lookups(1)]), 5, 100);
    let of_first = asked
        .iter()
        .filter(|asked| asked.sql.contains("sbtest1"))
        .count();
    assert!(
        (30..70).contains(&of_first),
        "{of_first} of 100 events on one of two tables"
    );
}

#[test]
fn tables_are_chosen_as_the_test_says() {
    let sysbench = Sysbench::new(options());
    let count = |table: TableChoice| {
        let test = Test {
            table,
            ..test("point-query", Group::Point, [lookups(1)])
        };
        let mut tasks = sysbench.connections(&run(1, test), &Null).unwrap();
        let tables = |task: &mut Task| {
            let account = task.program.account(0).unwrap();
            let changes = account.downcast::<ByTable>().unwrap();
            changes.iter().map(|(table, _)| *table).collect::<Vec<_>>()
        };
        tasks.iter_mut().map(tables).collect::<Vec<_>>()
    };
    assert_eq!(count(TableChoice::Random), [[0, 1, 2], [0, 1, 2]]);
    assert_eq!(count(TableChoice::Thread), [[0], [1]]);
    assert_eq!(count(TableChoice::First), [[0], [0]]);
}

#[test]
fn a_transaction_that_failed_is_done_again_from_its_beginning() {
    for (class, at) in [(ErrorClass::Deadlock, 3), (ErrorClass::DuplicateKey, 4)] {
        let mut answers: Vec<Result<u64, ErrorClass>> = vec![Ok(1); at];
        answers.push(Err(class));
        answers.reverse();
        let session = Notes {
            answers,
            ..Notes::default()
        };
        let mut connection = connection(&write_only(), 5, session);
        connection.prepare();
        let error = connection.execute().unwrap_err();
        assert!(connection.may_retry(error.class), "{class:?}");
        assert_eq!(connection.execute().unwrap().rows, 4);
        assert_eq!(connection.expected_rows(), (0, u64::MAX));
        let session = &connection.session;
        let (asked, sql) = (&session.asked, session.sql());
        assert_eq!(
            (sql[0], sql[at + 1], sql[at + 2]),
            ("begin", "rollback", "begin")
        );
        assert_eq!(asked[..=at], asked[at + 2..][..=at], "with the same values");
        assert_eq!(sql.last(), Some(&"commit"));
        let put_back = connection
            .changes
            .iter()
            .all(|(_, changes)| *changes == Changes::default());
        assert!(put_back, "{:?}", connection.changes);
    }
}

#[test]
fn without_a_transaction_what_was_done_is_not_done_again() {
    let twice = Test {
        statements: [insert().statements, insert().statements].concat(),
        ..insert()
    };
    let session = Notes {
        answers: vec![Err(ErrorClass::LockTimeout), Ok(1)],
        ..Notes::default()
    };
    let mut connection = connection(&twice, 5, session);
    connection.prepare();
    assert!(!connection.may_retry(ErrorClass::DuplicateKey));
    connection.execute().unwrap_err();
    assert_eq!(connection.execute().unwrap().rows, 2);
    let asked = &connection.session.asked;
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[1], asked[2]);
    assert_ne!(asked[0], asked[1]);
    let inserted: u64 = connection.changes.iter().map(|it| it.1.inserted).sum();
    assert_eq!(inserted, 2);
}

#[test]
fn a_write_without_an_answer_leaves_doubt_and_a_read_does_not() {
    for (test, is_unsure) in [(insert(), true), (scan(), false)] {
        let session = Notes {
            answers: vec![Err(ErrorClass::ConnectionLost)],
            ..Notes::default()
        };
        let mut connection = connection(&test, 5, session);
        connection.prepare();
        connection.execute().unwrap_err();
        let changes = connection.changes;
        assert_eq!(
            changes.iter().any(|it| it.1.is_unsure),
            is_unsure,
            "{}",
            test.name
        );
    }
    let mut sysbench = Sysbench::new(options());
    sysbench.ledgers[0] = Ledger::found(1501, Some((1, 1501)), true, true);
    sysbench.ledgers[0].apply(Changes {
        is_unsure: true,
        ..Changes::default()
    });
    let facts = TableFacts {
        rows: 1500,
        key_min: Some(1),
        key_max: Some(1500),
        index_rows: vec![("k".into(), engine::IndexRows::Counted(1499))],
    };
    let mut checks = sysbench.check(0, &facts);
    checks.retain(|check| check.left_out.is_none());
    let [check] = &checks[..] else {
        panic!("{checks:?}");
    };
    assert_eq!(
        (check.what.as_str(), check.holds),
        ("rows in index k of sbtest1", false)
    );
}

#[test]
fn what_one_connection_deleted_another_may_have_inserted() {
    let mut sysbench = Sysbench::new(Options {
        tables: 2,
        rows: 10,
        ..options()
    });
    for ledger in &mut sysbench.ledgers {
        *ledger = Ledger::found(10, Some((1, 10)), true, false);
    }
    let mut programs: [Box<dyn Program>; 2] =
        [delete(), insert()].map(|it| Box::new(connection(&it, 5, Notes::default())) as _);
    for connection in &mut programs {
        for _ in 0..50 {
            connection.prepare();
            connection.execute().unwrap();
        }
    }
    sysbench.apply(&run(1, insert()), &accounts(&mut programs));
    assert_eq!(sysbench.rows(), 20);
}

#[test]
fn statements_are_known_by_what_they_do() {
    let effects = |sql: &str| {
        let test = test("mine", Group::Write, [statement(sql, None, [])]);
        let event = Event::new(&test, &target(&SqliteDialect, 1000)).unwrap();
        (event.writes(), event.has_no_effect())
    };
    for (sql, expected) in [
        ("(SELECT 1)", (false, true)),
        (
            "with last as (select max(id) m from {table}) select m from last",
            (false, true),
        ),
        (
            "with old as (delete from {table} returning id) select id from old",
            (true, false),
        ),
        ("UPDATE {table} SET k = 1", (true, true)),
        (
            "insert into {table} (c) values ('{{\"on\": 1}}')",
            (true, false),
        ),
        (
            "with no as (select 'delete') select * from no",
            (false, true),
        ),
        ("truncate {table}", (true, false)),
        ("call mine()", (true, false)),
    ] {
        assert_eq!(effects(sql), expected, "{sql}");
    }
    // It says of no row that it did something.
    let session = Notes {
        answers: vec![Ok(0)],
        ..Notes::default()
    };
    let call = test("call", Group::Write, [statement("call mine()", None, [])]);
    let mut connection = connection(&call, 5, session);
    connection.prepare();
    connection.execute().unwrap();
    assert!(connection.changes.iter().any(|it| it.1.is_unsure));
}

#[test]
fn nothing_is_prepared_for_a_test_that_is_sent_as_text() {
    let test = as_text(write_only());
    let mut connection = connection(&test, 5, Notes::default());
    connection.prepare();
    connection.execute().unwrap();
    let session = &connection.session;
    assert_eq!(session.statements, []);
    let sql = session.sql();
    assert_eq!((sql[0], sql.last()), ("text: begin", Some(&"text: commit")));
}

#[test]
fn what_a_server_does_not_prepare_is_sent_as_text() {
    let session = Notes {
        unprepared: Some("begin"),
        ..Notes::default()
    };
    let mut connection = connection(&write_only(), 5, session);
    connection.prepare();
    connection.execute().unwrap();
    let sql = connection.session.sql();
    assert_eq!((sql[0], sql.last()), ("text: begin", Some(&"commit")));
}

#[test]
fn a_warm_up_makes_other_choices_than_what_it_warms_up_for() {
    let (_directory, engine, sysbench) = loaded(options());
    let test = test("point-query", Group::Point, [lookups(1)]);
    let drawn = |is_warm_up| {
        let step = Step {
            is_warm_up,
            ..run(1, test.clone())
        };
        let mut runner = sysbench
            .runner(&step, &test, Distribution::Uniform, 0, &engine)
            .unwrap();
        runner.next_random()
    };
    assert_eq!(drawn(false), drawn(false));
    assert_ne!(drawn(false), drawn(true));
}

#[test]
fn another_attempt_writes_other_texts_to_the_same_rows() {
    let (_directory, engine, _) = loaded(options());
    let mut session = engine.connect().unwrap();
    session
        .query("create table written (id integer, before text, after text)")
        .unwrap();
    for number in 1..=options().tables {
        session
            .query(&format!(
                "create trigger note{number} after update on sbtest{number} begin \
                 insert into written values (new.id, old.c, new.c); end"
            ))
            .unwrap();
    }
    let update = run(
        1,
        test("update", Group::Write, [update_non_index(Draw::Id)]),
    );
    let mut attempt = |nonce| {
        let mut sysbench = Sysbench::new(Options { nonce, ..options() });
        sysbench.take_over(&engine, UNINDEXED).unwrap();
        assert_eq!(on(&mut sysbench, &update, &engine, 50), (100, 0));
        let same = session.query_i64("select count(*) from written where before = after");
        let ids = session.query("select id from written").unwrap();
        session.query("delete from written").unwrap();
        (ids, same.unwrap())
    };
    let (first, second, repeated) = (attempt(1), attempt(2), attempt(2));
    assert_eq!((first.1, second.1), (Some(0), Some(0)));
    assert_eq!(first.0, second.0, "other rows");
    // With one nonce the texts are there already, but for rows that were drawn twice.
    assert!(repeated.1 > Some(90), "{repeated:?}");
}

#[test]
fn numbers_are_as_wide_as_they_have_to_be() {
    let range = test("range", Group::RangeOne, [simple(100)]);
    let types = |rows| {
        let event = Event::new(&range, &target(&SqliteDialect, rows)).unwrap();
        event.statements[0].types.clone()
    };
    assert_eq!(types(1000), [ParamType::Int4; 2]);
    assert_eq!(types(i32::MAX as u64), [ParamType::Int4, ParamType::Int8]);
    assert_eq!(types(10_000_000_000), [ParamType::Int8; 2]);
}

#[test]
fn what_is_wrong_with_a_test_is_said() {
    let message = |statement: TestStatement| {
        let test = test("mine", Group::Point, [statement]);
        Event::new(&test, &target(&SqliteDialect, 1000)).unwrap_err()
    };
    let one = |sql: &str, draw: Draw| statement(sql, None, [("p", draw)]);
    for (statement, expected) in [
        (
            one("select {q}", Draw::Id),
            "statement 1: `q` is not a parameter",
        ),
        (one("select {p", Draw::Id), "`{` without `}`"),
        (
            one("select {p}", Draw::Ids(integer(0))),
            "parameter `p`: a list of 0 values",
        ),
        (
            one("select {p}", Draw::Uniform(integer(5), integer(4))),
            "nothing between 5 and 4",
        ),
        (
            one("select {p}", Draw::Value(named("p"))),
            "`p` is not a parameter that is defined before",
        ),
    ] {
        let message = message(statement);
        assert!(message.starts_with("test `mine`, "), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let twice = statement(
        "select {n}",
        None,
        [
            ("list", Draw::Ids(integer(2))),
            ("n", Draw::Value(named("list"))),
        ],
    );
    assert!(message(twice).contains("`list` is a list"));
    let text = statement(
        "select {n}",
        None,
        [("c", Draw::C), ("n", Draw::Value(named("c")))],
    );
    assert!(message(text).contains("`c` is a text"));
    let length = statement(
        "select {list}",
        None,
        [("n", Draw::Id), ("list", Draw::Ids(named("n")))],
    );
    assert!(message(length).contains("must be known before"));
}

#[test]
fn a_statement_that_the_engine_refuses_is_named() {
    let (_directory, engine, sysbench) = loaded(options());
    let step = run(
        1,
        test(
            "mine",
            Group::Point,
            [lookups(1), statement("SELEC c FROM {table}", None, [])],
        ),
    );
    let Err(error) = sysbench.connections(&step, &engine) else {
        panic!("it was taken");
    };
    let message = error.to_string();
    assert!(
        message.starts_with("test `mine`, statement 2: `SELEC c FROM sbtest1`: "),
        "{message}"
    );
}

#[test]
fn tables_are_those_of_sysbench() {
    let create = |dialect: &dyn Dialect, primary_key, rows| {
        let options = Options {
            tables: 1,
            primary_key,
            rows,
            ..options()
        };
        Sysbench::new(options).create_statements(dialect)
    };
    let columns = "k int not null default 0, c char(120) not null default '', pad char(60) not null default ''";
    let mysql = MysqlDialect {
        storage_engine: StorageEngine::InnoDb,
    };
    assert_eq!(
        create(&mysql, true, 10).unwrap(),
        [format!(
            "create table sbtest1 (id int not null auto_increment, {columns}, primary key (id)) engine=InnoDB"
        )]
    );
    assert_eq!(
        create(&mysql, false, 10).unwrap(),
        [format!(
            "create table sbtest1 (id int not null auto_increment, {columns}, key xid (id)) engine=InnoDB"
        )]
    );
    assert_eq!(
        create(&PostgresDialect, true, 10).unwrap(),
        [format!(
            "create table sbtest1 (id serial not null, {columns}, primary key (id))"
        )]
    );
    assert_eq!(
        create(&PostgresDialect, false, 10).unwrap(),
        [
            format!("create table sbtest1 (id serial not null, {columns})"),
            "create index sbtest1_xid on sbtest1 (id)".into()
        ]
    );
    let wide = create(&PostgresDialect, true, 10_000_000_000).unwrap();
    assert!(wide[0].contains("(id bigserial not null"), "{wide:?}");
    let refused = create(&SqliteDialect, false, 10).unwrap_err().to_string();
    assert!(refused.contains("not applicable"), "{refused}");
    let refused = create(&mysql, false, 10_000_000_000).unwrap_err();
    assert!(refused.to_string().contains("32 bits"), "{refused}");
}

#[test]
fn an_index_is_made_for_every_table_once() {
    let (_directory, engine, mut sysbench) = loaded(Options {
        tables: 5,
        rows: 3,
        ..options()
    });
    on(
        &mut sysbench,
        &step(1, StepKind::Index),
        &engine,
        usize::MAX,
    );
    let mut session = engine.connect().unwrap();
    let indexes = "select name from sqlite_master where type = 'index' order by name";
    let found: Vec<_> = session
        .query(indexes)
        .unwrap()
        .into_iter()
        .flatten()
        .collect();
    let expected: Vec<_> = (1..=5)
        .map(|table| Some(format!("sbtest{table}_k")))
        .collect();
    assert_eq!(found, expected);
    assert!(engine.capabilities().stores_data);
}

#[test]
fn rows_are_given_keys_below_those_that_the_server_assigns() {
    let sysbench = Sysbench::new(options());
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
    let (_directory, engine, mut sysbench) = loaded(Options {
        tables: 1,
        ..options()
    });
    on(&mut sysbench, &run(1, insert()), &engine, 5);
    let facts = engine.inspect(&sysbench.tables()[0], false).unwrap();
    assert_eq!((facts.rows, facts.key_max), (1511, Some(1511)));
}

#[test]
fn transactions_that_write_at_the_same_time_wait_for_each_other() {
    let (_directory, engine, mut sysbench) = loaded(Options {
        tables: 1,
        rows: 50,
        ..options()
    });
    let step = run(1, read_write(10));
    let works = sysbench.connections(&step, &engine).unwrap();
    let mut programs: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = works
            .into_iter()
            .map(|mut work| {
                scope.spawn(move || {
                    for _ in 0..100 {
                        work.program.prepare();
                        work.program.execute().unwrap();
                        assert_eq!(work.program.expected_rows(), (0, u64::MAX));
                    }
                    work.program
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    sysbench.apply(&step, &accounts(&mut programs));
    assert_eq!(sysbench.rows(), 50);
    assert_checks(&sysbench, &engine, 3);
}

fn as_text(mut test: Test) -> Test {
    for statement in &mut test.statements {
        statement.prepared = false;
    }
    test
}

#[test]
fn statements_that_are_not_prepared_hold_their_values() {
    let test = |is_plain| {
        let list = Draw::Ids(integer(2));
        let below = Draw::Value(difference(integer(0), named("id")));
        let statement = statement(
            "UPDATE {table} SET c = {c} WHERE id IN ({list}) OR id - {below} < {id}",
            None,
            [
                ("c", Draw::C),
                ("list", list),
                ("id", Draw::Id),
                ("below", below),
            ],
        );
        let test = test("mine", Group::Write, [statement]);
        if is_plain { as_text(test) } else { test }
    };
    let prepared = events(&test(false), 5, 20);
    let plain = events(&test(true), 5, 20);
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

#[test]
fn all_shapes_run_as_text_too() {
    let (_directory, engine, mut sysbench) = loaded(options());
    for (number, (test, _)) in shapes().into_iter().enumerate() {
        let step = run(number as u32 + 1, as_text(test));
        let (rows, wrong) = on(&mut sysbench, &step, &engine, 25);
        assert_eq!((wrong, rows == 0), (0, number == 9), "{step:?}");
        let mut nothing = Sysbench::new(options());
        assert_eq!(on(&mut nothing, &step, &Null, 5).1, 0, "{step:?}");
    }
    assert_checks(
        &sysbench,
        &engine,
        3 * 3 - usize::from(!sysbench.is_indexed()) * 3,
    );
}
