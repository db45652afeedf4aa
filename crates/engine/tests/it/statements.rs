//! Sessions and their failures, on every kind of server.

use std::sync::Barrier;

use engine::ParamType::{Int4, Int8, Text, Timestamp};
use engine::{
    Column, ColumnType, Comparison, Dialect, ErrorClass, IndexRows, IndexStatements, Outcome,
    Partitions, RangeScan, Session, SqlEngine,
};

use crate::guard::eventually;
use crate::server::{TestServer, on_each_server};
use crate::tables::{class_of, fill, run, table};

on_each_server!(
    text_is_run,
    keys_that_are_given_come_before_those_that_are_assigned,
    what_was_written_is_read_back_in_every_type,
    executing_again_sends_the_same_again,
    messages_larger_than_any_buffer_or_packet_go_both_ways,
    a_refused_statement_leaves_the_session_of_use,
    conflicts_have_their_classes,
    an_interrupt_ends_what_is_waited_for_and_the_servers_work_on_it,
    a_session_tells_the_thread_that_serves_it,
    a_session_that_the_server_ends_says_why,
    keys_ascend_and_the_last_is_known,
    statements_of_the_dialect_do_what_they_say,
    an_index_is_known_by_its_columns_whatever_its_name,
);

fn text_is_run<S: TestServer>() {
    for shared in S::shared() {
        text_is_run_as_it_is(&shared.server);
    }
}

fn keys_that_are_given_come_before_those_that_are_assigned<S: TestServer>() {
    for shared in S::shared() {
        keys_are_assigned_above_those_given(&shared.server);
    }
}

fn an_index_is_known_by_its_columns_whatever_its_name<S: TestServer>() {
    for shared in S::shared() {
        indexes_are_known_by_their_columns(&shared.server);
    }
}

fn what_was_written_is_read_back_in_every_type<S: TestServer>() {
    for shared in S::shared() {
        let dialect = shared.server.dialect();
        let mut session = shared.server.connect().unwrap();
        let [int4, int8, timestamp, text] = S::SQL.types;
        let columns = format!("a {int4}, b {int8}, c {timestamp}, d {text}");
        session.query(&(S::SQL.temporary)(&columns)).unwrap();
        let parameters: Vec<_> = (1..=4).map(|number| dialect.parameter(number)).collect();
        let insert = format!("insert into t values ({})", parameters.join(", "));
        let insert = session.prepare(&insert, &[Int4, Int8, Timestamp, Text]).unwrap();
        for micros in [0, 123_456] {
            session.start(insert);
            session.int4(i32::MIN);
            session.int8(i64::MAX);
            session.timestamp(1_700_000_000_000_000 + micros);
            session.text("naïve \u{1f600} 'quoted'");
            assert_eq!(session.execute().unwrap().rows, 1);
        }
        let rows = session.query("select * from t order by c").unwrap();
        for (row, end) in rows.iter().zip([S::SQL.whole_second, ".123456"]) {
            let texts: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap()).collect();
            let time = format!("2023-11-14 22:13:20{end}");
            assert_eq!(
                texts,
                ["-2147483648", "9223372036854775807", time.as_str(), "naïve \u{1f600} 'quoted'"]
            );
        }
        first_value_is_returned(dialect, &mut session);
    }
}

fn executing_again_sends_the_same_again<S: TestServer>() {
    for shared in S::shared() {
        let mut session = shared.server.connect().unwrap();
        session.query(&(S::SQL.temporary)("a int")).unwrap();
        let parameter = shared.server.dialect().parameter(1);
        let insert = format!("insert into t values ({parameter})");
        let insert = session.prepare(&insert, &[Int4]).unwrap();
        for _ in 0..2 {
            session.start(insert);
            session.int4(41);
            for _ in 0..3 {
                assert_eq!(session.execute().unwrap().rows, 1);
            }
        }
        let sum = session.query_i64("select sum(a) from t").unwrap();
        assert_eq!(sum, Some(246));
    }
}

fn messages_larger_than_any_buffer_or_packet_go_both_ways<S: TestServer>() {
    for shared in S::shared() {
        let mut session = shared.server.connect().unwrap();
        let [one, two, three] = [1, 2, 3].map(|number| shared.server.dialect().parameter(number));
        let echo = format!("select length({one}), {two} union all select 2, {three}");
        let echo = session.prepare(&echo, &[Text; 3]).unwrap();
        for &length in S::SQL.large {
            let large = "x".repeat(length);
            session.start(echo);
            (0..2).for_each(|_| session.text(&large));
            session.text("y");
            let expected = Outcome { rows: 2, value: Some(length as i64) };
            assert_eq!(session.execute().unwrap(), expected);
        }
        // And after them small ones as before.
        assert_eq!(session.query_i64("select 7").unwrap(), Some(7));
    }
}

fn a_refused_statement_leaves_the_session_of_use<S: TestServer>() {
    for shared in S::shared() {
        let parameter = shared.server.dialect().parameter(1);
        let mut session = shared.server.connect().unwrap();
        let error = session.query("selekt 1").unwrap_err();
        assert_eq!(
            (error.class, error.code.as_deref()),
            (ErrorClass::Other, Some(S::SQL.codes[0]))
        );
        assert!(error.message.contains("selekt"), "{error}");
        for sql in ["select nothing from nowhere", &format!("select {parameter} + 1")] {
            assert_eq!(class_of(session.prepare(sql, &[])), ErrorClass::Other);
        }
        session.query("drop table if exists refused").unwrap();
        session.query("create table refused (a int primary key)").unwrap();
        let insert = format!("insert into refused values ({parameter})");
        let insert = session.prepare(&insert, &[Int4]).unwrap();
        session.start(insert);
        session.int4(1);
        session.execute().unwrap();
        let error = session.execute().unwrap_err();
        assert_eq!(error.class, ErrorClass::DuplicateKey);
        assert!(error.message.contains(S::SQL.duplicate), "{error}");
        session.start(insert);
        session.int4(2);
        assert_eq!(session.execute().unwrap().rows, 1);
        session.query("drop table refused").unwrap();
    }
}

fn conflicts_have_their_classes<S: TestServer>() {
    for shared in S::shared() {
        let [mut one, mut two] = [(); 2].map(|()| shared.server.connect().unwrap());
        one.query("create table conflicts (a int primary key, b int)").unwrap();
        one.query("insert into conflicts values (1, 0), (2, 0)").unwrap();

        // A row lock that takes too long.
        one.query("begin").unwrap();
        one.query("update conflicts set b = 1 where a = 1").unwrap();
        S::wait_for_locks(&mut two, true);
        assert_eq!(
            class_of(two.query("update conflicts set b = 2 where a = 1")),
            ErrorClass::LockTimeout
        );
        one.query("commit").unwrap();

        // Each holds the lock that the other needs.
        let barrier = Barrier::new(2);
        let deadlocked = |session: &mut S::Session, first: i32, second: i32| {
            S::wait_for_locks(session, false);
            session.query("begin").unwrap();
            let update = |a: i32| format!("update conflicts set b = 3 where a = {a}");
            session.query(&update(first)).unwrap();
            barrier.wait();
            let result = session.query(&update(second));
            session.query("rollback").unwrap();
            result.err().map(|error| error.class)
        };

        let failed = std::thread::scope(|scope| {
            let other = scope.spawn(|| deadlocked(&mut one, 1, 2));
            [deadlocked(&mut two, 2, 1), other.join().unwrap()]
        });
        assert!(failed.contains(&Some(ErrorClass::Deadlock)), "{failed:?}");
        two.query("drop table conflicts").unwrap();
    }
}

/// Of a session that has only begun its statement a server may miss the interrupt: it has to be
/// seen asleep.
fn an_interrupt_ends_what_is_waited_for_and_the_servers_work_on_it<S: TestServer>() {
    let [sleep, sleepers] = S::SQL.sleep;
    for shared in S::shared() {
        let [mut session, mut other] = [(); 2].map(|()| shared.server.connect().unwrap());
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
}

fn a_session_tells_the_thread_that_serves_it<S: TestServer>() {
    for shared in S::shared() {
        let [mut session, mut idle] = [(); 2].map(|()| shared.server.connect().unwrap());
        let cpu_ns = |tid: u32| -> u64 {
            let schedstat = fs_err::read_to_string(format!("/proc/{tid}/schedstat")).unwrap();
            let first = schedstat.split_ascii_whitespace().next();
            first.unwrap().parse().unwrap()
        };
        let threads = [&mut session, &mut idle].map(|it| it.server_thread().unwrap());
        let before = threads.map(cpu_ns);
        session.query(S::SQL.work[0]).unwrap();
        let [worked, idled] = [0, 1].map(|at| cpu_ns(threads[at]) - before[at]);
        assert!(worked > 10_000_000, "{worked} ns");
        assert!(idled < worked / 2, "{idled} of {worked} ns");
    }
}

fn a_session_that_the_server_ends_says_why<S: TestServer>() {
    let [name, end, count] = S::SQL.session;
    for shared in S::shared() {
        let [mut victim, mut other] = [(); 2].map(|()| shared.server.connect().unwrap());
        let name = victim.query_i64(name).unwrap().unwrap().to_string();
        other.query(&end.replace('?', &name)).unwrap();
        let count = count.replace('?', &name);
        eventually("it is gone", || other.query_i64(&count).unwrap() == Some(0));
        let error = victim.query("select 1").unwrap_err();
        assert_eq!(error.class, ErrorClass::ConnectionLost);
        assert!(error.message.contains(S::SQL.ended), "{error}");
        assert_eq!(class_of(victim.query("select 1")), ErrorClass::ConnectionLost);
    }
}

fn keys_ascend_and_the_last_is_known<S: TestServer>() {
    for shared in S::shared() {
        let keys = table("keys1", None);
        let dialect = shared.server.dialect();
        let mut session = fill(&shared.server, &keys, 5);
        assert_eq!(session.last_key(&keys).unwrap(), Some(5));
        let types = [Timestamp, Int4, Text].repeat(3);
        let several = session.prepare(&dialect.insert(&keys, 3), &types).unwrap();
        session.start(several);
        for price in 0..3 {
            session.timestamp(0);
            session.int4(price);
            session.text("");
        }
        assert_eq!(session.execute().unwrap().rows, 3);
        assert_eq!(session.last_key(&keys).unwrap(), Some(8));
        let mut other = shared.server.connect().unwrap();
        assert_eq!(other.last_key(&keys).unwrap(), None);
        other.query("insert into keys1 (dateandtime, price, data) values (now(), 1, '')").unwrap();
        let next = Some(S::SQL.next_key);
        assert_eq!(other.last_key(&keys).unwrap(), next);
        assert_eq!(session.query_i64(&dialect.min_key(&keys)).unwrap(), Some(1));
        assert_eq!(session.query_i64(&dialect.max_key(&keys)).unwrap(), next);
        run(&mut session, &dialect.drop_table(&keys));
    }
}

fn statements_of_the_dialect_do_what_they_say<S: TestServer>() {
    for shared in S::shared() {
        dialect_does_what_it_says(&shared.server, |session, table| {
            S::look_at_table(session, table, shared.variant);
        });
    }
}

/// Reads a table `t` of two rows, each the least `a` that there is, the largest `b`, and text in
/// `d`: what a statement returns is the first column of the first row, where that is an integer.
fn first_value_is_returned(dialect: &dyn Dialect, session: &mut impl Session) {
    for (column, value) in [("a", Some(i64::from(i32::MIN))), ("b", Some(i64::MAX)), ("d", None)] {
        let select = session.prepare(&format!("select {column} from t"), &[]).unwrap();
        session.start(select);
        assert_eq!(session.execute().unwrap(), Outcome { rows: 2, value }, "{column}");
    }
    let nothing = format!("select max(b) from t where a = {}", dialect.parameter(1));
    let nothing = session.prepare(&nothing, &[Int4]).unwrap();
    session.start(nothing);
    session.int4(5);
    assert_eq!(session.execute().unwrap(), Outcome { rows: 1, value: None });
}

/// Runs text between prepared statements: it is sent again when it is executed again, and a mistake
/// in it ends nothing.
fn text_is_run_as_it_is<E: SqlEngine>(engine: &E) {
    let table = table("texts", None);
    let mut session = fill(engine, &table, 3);
    let below =
        format!("select price, data from texts where price < {}", engine.dialect().parameter(1));
    let below = session.prepare(&below, &[Int4]).unwrap();
    let rows = |session: &mut E::Session| session.execute().unwrap().rows;
    for _ in 0..2 {
        // A row that matches counts, even if it already has the value.
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
    assert_eq!(session.query_i64("select min(price) from texts").unwrap(), Some(2));
    run(&mut session, &engine.dialect().drop_table(&table));
}

/// Makes tables as sysbench does, with a primary key and without, gives rows their keys, and
/// inserts one without.
fn keys_are_assigned_above_those_given<E: SqlEngine>(engine: &E) {
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
            session.query(&format!("insert into {} (c) values ('assigned')", table.name)).unwrap();
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

/// Runs what the dialect writes, on a table with partitions and one without; `look` is given each
/// before it goes.
fn dialect_does_what_it_says<E: SqlEngine>(engine: &E, look: impl Fn(&mut E::Session, &str)) {
    let dialect = engine.dialect();
    for (name, partitions) in
        [("work1", None), ("work2", Some(Partitions { count: 3, rows_each: 40 }))]
    {
        let work = table(name, partitions);
        let mut session = fill(engine, &work, 100);
        run(&mut session, &dialect.create_indexes(&work, IndexStatements::Usual));

        for (comparison, expected) in [(Comparison::AtLeast, 3), (Comparison::Above, 2)] {
            let scan = RangeScan { index: &work.indexes[0], comparison, limit: 10 };
            let scan = session.prepare(&dialect.range_scan(&work, scan), &[Int4]).unwrap();
            session.start(scan);
            session.int4(97);
            let first = Some(100 - expected as i64);
            assert_eq!(session.execute().unwrap(), Outcome { rows: expected, value: first });
        }

        let lookup = session
            .prepare(&dialect.point_lookup(&work, &["price", "data"], 3), &[Int8; 3])
            .unwrap();
        session.start(lookup);
        [7, 8, 5000].into_iter().for_each(|key| session.int8(key));
        assert_eq!(session.execute().unwrap(), Outcome { rows: 2, value: Some(7) });

        for (shared, minimum) in [(false, 11), (true, 21)] {
            let delete =
                session.prepare(&dialect.delete_oldest(&work, 10, shared), &[Int8]).unwrap();
            session.start(delete);
            session.int8(0);
            assert_eq!(session.execute().unwrap().rows, 10);
            assert_eq!(session.query_i64(&dialect.min_key(&work)).unwrap(), Some(minimum));
        }

        let facts = engine.inspect(&work, true).unwrap();
        assert_eq!((facts.rows, facts.key_min, facts.key_max), (80, Some(21), Some(100)));
        assert_eq!(
            facts.index_rows,
            ["pdc", "byprice"].map(|name| (name.to_string(), IndexRows::Counted(80)))
        );

        look(&mut session, name);
        run(&mut session, &dialect.drop_table(&work));
    }
}

/// Counts by way of indexes that somebody else made, with names of their own, and where there are
/// none.
fn indexes_are_known_by_their_columns(engine: &impl SqlEngine) {
    let bare = table("bare1", None);
    let mut session = fill(engine, &bare, 3);
    let facts = |engine: &_| SqlEngine::inspect(engine, &bare, true).unwrap();
    let none = ["pdc", "byprice"].map(|name| (name.to_string(), IndexRows::NoIndex));
    assert_eq!((facts(engine).rows, facts(engine).index_rows), (3, none.into()));
    session.query("create index price_1 on bare1 (price)").unwrap();
    let on = |session: &mut _, columns: &[&str]| {
        engine::index_on(session, engine.dialect(), &bare, columns).unwrap()
    };
    assert_eq!(on(&mut session, &["price"]).as_deref(), Some("price_1"));
    assert_eq!(on(&mut session, &["dateandtime"]), None);
    assert_eq!(on(&mut session, &["price", "dateandtime"]), None);
    assert!(on(&mut session, &["transactionid"]).is_some());
    let expected =
        [("pdc".to_string(), IndexRows::NoIndex), ("byprice".to_string(), IndexRows::Counted(3))];
    assert_eq!(facts(engine).index_rows, expected);
    run(&mut session, &engine.dialect().drop_table(&bare));
}
