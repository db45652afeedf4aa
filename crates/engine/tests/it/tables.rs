//! A small table like the Insert Benchmark's, and its rows, for the tests of every server.

use engine::ParamType::{Int4, Text, Timestamp};
use engine::{
    Column, ColumnType, Counter, ErrorClass, Index, Outcome, Partitions, Session, SqlEngine, Table,
};

/// Describes the table.
pub(crate) fn table(name: &str, partitions: Option<Partitions>) -> Table {
    let column = |name, kind| Column { name, kind };
    Table {
        name: name.into(),
        columns: vec![
            column("transactionid", ColumnType::AutoKey),
            column("dateandtime", ColumnType::Timestamp),
            column("price", ColumnType::Int4),
            column("data", ColumnType::Text(4000)),
        ],
        indexes: vec![
            Index { name: "pdc", columns: vec!["price", "dateandtime"] },
            Index { name: "byprice", columns: vec!["price"] },
        ],
        partitions,
    }
}

pub(crate) fn run(session: &mut impl Session, statements: &[String]) {
    for sql in statements {
        session.query(sql).unwrap();
    }
}

/// Creates the table again, and inserts `rows` rows with prices from 0.
pub(crate) fn fill<E: SqlEngine>(engine: &E, table: &Table, rows: i32) -> E::Session {
    let dialect = engine.dialect();
    let mut session = engine.connect().unwrap();
    run(&mut session, &dialect.drop_table(table));
    run(&mut session, &dialect.create_table(table));
    drop(session);
    insert(engine, table, rows)
}

/// Inserts `rows` rows with prices from 0, one at a time.
pub(crate) fn insert<E: SqlEngine>(engine: &E, table: &Table, rows: i32) -> E::Session {
    let dialect = engine.dialect();
    let mut session = engine.connect().unwrap();
    let insert = session.prepare(&dialect.insert(table, 1), &[Timestamp, Int4, Text]).unwrap();
    for price in 0..rows {
        session.start(insert);
        session.timestamp(1_700_000_000_000_000 + i64::from(price));
        session.int4(price);
        session.text("déjà vu");
        assert_eq!(session.execute().unwrap(), Outcome { rows: 1, value: None });
    }
    session
}

pub(crate) fn class_of<T>(result: Result<T, engine::Error>) -> ErrorClass {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error.class,
    }
}

/// Returns the value of a counter that must exist.
pub(crate) fn value(counters: &[Counter], name: &str) -> f64 {
    counters
        .iter()
        .find(|counter| counter.name == name)
        .unwrap_or_else(|| panic!("no `{name}`"))
        .value
}

pub(crate) fn none_is_there_twice(counters: &[Counter]) {
    let mut names: Vec<&str> = counters.iter().map(|counter| counter.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None);
}
