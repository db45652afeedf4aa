//! What statements do on every server.

use engine::ParamType::{Int4, Int8};
use engine::{
    Column, ColumnType, Comparison, Dialect, ErrorClass, IndexRows, IndexStatements, Outcome,
    Partitions, RangeScan, Session, SqlEngine,
};

use crate::guard::eventually;
use crate::tables::{class_of, fill, run, table};

/// Reads a table `t` of two rows, each the least `a` that there is, the largest `b`, and text in `d`: what a statement
/// returns is the first column of the first row, where that is an integer.
pub(crate) fn first_value_is_returned(dialect: &dyn Dialect, session: &mut impl Session) {
    for (column, value) in [
        ("a", Some(i64::from(i32::MIN))),
        ("b", Some(i64::MAX)),
        ("d", None),
    ] {
        let select = session
            .prepare(&format!("select {column} from t"), &[])
            .unwrap();
        session.start(select);
        assert_eq!(
            session.execute().unwrap(),
            Outcome { rows: 2, value },
            "{column}"
        );
    }
    let nothing = format!("select max(b) from t where a = {}", dialect.parameter(1));
    let nothing = session.prepare(&nothing, &[Int4]).unwrap();
    session.start(nothing);
    session.int4(5);
    assert_eq!(
        session.execute().unwrap(),
        Outcome {
            rows: 1,
            value: None
        }
    );
}

/// Runs text between prepared statements: it is sent again when it is executed again, and a mistake in it ends nothing.
pub(crate) fn text_is_run_as_it_is<E: SqlEngine>(engine: &E) {
    let table = table("texts", None);
    let mut session = fill(engine, &table, 3);
    let below = format!(
        "select price, data from texts where price < {}",
        engine.dialect().parameter(1)
    );
    let below = session.prepare(&below, &[Int4]).unwrap();
    let rows = |session: &mut E::Session| session.execute().unwrap().rows;
    for _ in 0..2 {
        // A row that is found counts, also where it has the value already.
        session.start_text("update texts set data = 'same'");
        assert_eq!(rows(&mut session), 3);
        session.start_text("update texts set price = price + 1");
        assert_eq!(rows(&mut session), 3);
        session.start_text("select data, price from texts");
        assert_eq!(rows(&mut session), 3);
        assert_eq!(rows(&mut session), 3, "executed again");
        session.start_text("select price from texts where price < 0");
        assert_eq!(rows(&mut session), 0);
        session.start_text("selec 1");
        assert_eq!(class_of(session.execute()), ErrorClass::Other);
        session.start(below);
        session.int4(100);
        assert_eq!(rows(&mut session), 3);
    }
    assert_eq!(
        session.query_i64("select min(price) from texts").unwrap(),
        Some(2)
    );
    run(&mut session, &engine.dialect().drop_table(&table));
}

/// Makes tables as sysbench does, with a primary key and without, gives rows their keys, and inserts one without.
pub(crate) fn keys_are_assigned_above_those_given<E: SqlEngine>(engine: &E) {
    let dialect = engine.dialect();
    let mut session = engine.connect().unwrap();
    for primary in [true, false] {
        let column = |name, kind| Column { name, kind };
        let table = engine::Table {
            name: format!("keyed_{primary}"),
            columns: vec![
                column("id", ColumnType::AutoInt4 { primary }),
                column("k", ColumnType::Int4OrZero),
                column("c", ColumnType::Char(20)),
            ],
            indexes: Vec::new(),
            partitions: None,
        };
        run(&mut session, &dialect.drop_table(&table));
        run(&mut session, &dialect.create_table(&table));
        run(&mut session, &dialect.assign_keys_above(&table, 0));
        run(&mut session, &dialect.assign_keys_above(&table, 50));
        let types = [Int4, Int4, engine::ParamType::Text];
        let insert = dialect.insert_with_keys(&table, 2);
        let insert = session.prepare(&insert, &types.repeat(2)).unwrap();
        session.start(insert);
        for key in [7, 50] {
            session.int4(key);
            session.int4(key);
            session.text("given");
        }
        assert_eq!(session.execute().unwrap().rows, 2);
        let begin = dialect.begin_transaction(true);
        for end in [dialect.rollback(), dialect.commit()] {
            session.query(begin).unwrap();
            session
                .query(&format!(
                    "insert into {} (c) values ('assigned')",
                    table.name
                ))
                .unwrap();
            session.query(end).unwrap();
        }
        let facts = engine.inspect(&table, false).unwrap();
        assert_eq!((facts.rows, facts.key_min), (3, Some(7)), "{primary}");
        // The one that was rolled back had a key too.
        assert!(matches!(facts.key_max, Some(51 | 52)), "{facts:?}");
        let assigned = format!("select k from {} where c = 'assigned'", table.name);
        assert_eq!(session.query_i64(&assigned).unwrap(), Some(0));
        run(&mut session, &dialect.drop_table(&table));
    }
}

/// Interrupts `sleep`; `sleepers` counts the other sessions that sleep: of one that has only begun its statement a server
/// may miss the interrupt.
pub(crate) fn interrupt_ends_a_statement<E: SqlEngine>(engine: &E, sleep: &str, sleepers: &str) {
    let (mut session, mut other) = (engine.connect().unwrap(), engine.connect().unwrap());
    let interrupt = session.interrupt().unwrap();
    let sleep = session.prepare(sleep, &[]).unwrap();
    let mut sleepers = || other.query_i64(sleepers).unwrap().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            session.start(sleep);
            session.execute()
        });
        eventually("the statement runs", || sleepers() == 1);
        interrupt();
        assert_eq!(class_of(waiting.join().unwrap()), ErrorClass::Interrupted);
    });
    eventually("the server has ended it", || sleepers() == 0);
    assert!(class_of(session.query("select 1")).ends_session());
}

/// Has a session do `work`, which takes tens of milliseconds, and looks for them in the CPU time of its thread.
pub(crate) fn a_server_thread_does_the_work<E: SqlEngine>(engine: &E, work: &str) {
    let (mut session, mut idle) = (engine.connect().unwrap(), engine.connect().unwrap());
    let cpu_ns = |tid: u32| -> u64 {
        let schedstat = fs_err::read_to_string(format!("/proc/{tid}/schedstat")).unwrap();
        let first = schedstat.split_ascii_whitespace().next();
        first.unwrap().parse().unwrap()
    };
    let threads = [&mut session, &mut idle].map(|it| it.server_thread().unwrap());
    let before = threads.map(cpu_ns);
    session.query(work).unwrap();
    let [worked, idled] = [0, 1].map(|at| cpu_ns(threads[at]) - before[at]);
    assert!(worked > 10_000_000, "{worked} ns");
    assert!(idled < worked / 2, "{idled} of {worked} ns");
}

/// Runs what the dialect writes, on a table with partitions and one without; `look` is given each before it goes.
pub(crate) fn dialect_does_what_it_says<E: SqlEngine>(
    engine: &E,
    look: impl Fn(&mut E::Session, &str),
) {
    let dialect = engine.dialect();
    for (name, partitions) in [
        ("work1", None),
        (
            "work2",
            Some(Partitions {
                count: 3,
                rows_each: 40,
            }),
        ),
    ] {
        let work = table(name, partitions);
        let mut session = fill(engine, &work, 100);
        run(
            &mut session,
            &dialect.create_indexes(&work, IndexStatements::Usual),
        );
        for (comparison, expected) in [(Comparison::AtLeast, 3), (Comparison::Above, 2)] {
            let scan = RangeScan {
                index: &work.indexes[0],
                comparison,
                limit: 10,
            };
            let scan = session
                .prepare(&dialect.range_scan(&work, scan), &[Int4])
                .unwrap();
            session.start(scan);
            session.int4(97);
            let first = Some(100 - expected as i64);
            assert_eq!(
                session.execute().unwrap(),
                Outcome {
                    rows: expected,
                    value: first
                }
            );
        }
        let lookup = session
            .prepare(
                &dialect.point_lookup(&work, &["price", "data"], 3),
                &[Int8; 3],
            )
            .unwrap();
        session.start(lookup);
        [7, 8, 5000].into_iter().for_each(|key| session.int8(key));
        assert_eq!(
            session.execute().unwrap(),
            Outcome {
                rows: 2,
                value: Some(7)
            }
        );
        for (shared, minimum) in [(false, 11), (true, 21)] {
            let delete = session
                .prepare(&dialect.delete_oldest(&work, 10, shared), &[Int8])
                .unwrap();
            session.start(delete);
            session.int8(0);
            assert_eq!(session.execute().unwrap().rows, 10);
            assert_eq!(
                session.query_i64(&dialect.min_key(&work)).unwrap(),
                Some(minimum)
            );
        }
        let facts = engine.inspect(&work, true).unwrap();
        assert_eq!(
            (facts.rows, facts.key_min, facts.key_max),
            (80, Some(21), Some(100))
        );
        assert_eq!(
            facts.index_rows,
            ["pdc", "byprice"].map(|name| (name.to_string(), IndexRows::Counted(80)))
        );
        look(&mut session, name);
        run(&mut session, &dialect.drop_table(&work));
    }
}

/// Counts by way of indexes that somebody else made, with names of their own, and where there are none.
pub(crate) fn indexes_are_known_by_their_columns(engine: &impl SqlEngine) {
    let bare = table("bare1", None);
    let mut session = fill(engine, &bare, 3);
    let facts = |engine: &_| SqlEngine::inspect(engine, &bare, true).unwrap();
    let none = ["pdc", "byprice"].map(|name| (name.to_string(), IndexRows::NoIndex));
    assert_eq!(
        (facts(engine).rows, facts(engine).index_rows),
        (3, none.into())
    );
    session
        .query("create index price_1 on bare1 (price)")
        .unwrap();
    let on = |session: &mut _, columns: &[&str]| {
        engine::index_on(session, engine.dialect(), &bare, columns).unwrap()
    };
    assert_eq!(on(&mut session, &["price"]).as_deref(), Some("price_1"));
    assert_eq!(on(&mut session, &["dateandtime"]), None);
    assert_eq!(on(&mut session, &["price", "dateandtime"]), None);
    assert!(on(&mut session, &["transactionid"]).is_some());
    let expected = [
        ("pdc".to_string(), IndexRows::NoIndex),
        ("byprice".to_string(), IndexRows::Counted(3)),
    ];
    assert_eq!(facts(engine).index_rows, expected);
    run(&mut session, &engine.dialect().drop_table(&bare));
}
