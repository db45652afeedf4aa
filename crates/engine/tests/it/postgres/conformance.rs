//! What a session does, and how it fails.

use std::sync::Barrier;

use engine::ParamType::{Int4, Int8, Text, Timestamp};
use engine::{ErrorClass, Outcome, Partitions, Session, SqlEngine};

use super::shared;
use crate::guard::eventually;
use crate::statements::{
    a_server_thread_does_the_work, dialect_does_what_it_says, first_value_is_returned,
    indexes_are_known_by_their_columns, interrupt_ends_a_statement,
    keys_are_assigned_above_those_given, text_is_run_as_it_is,
};
use crate::tables::{class_of, fill, run, table};

#[test]
fn text_is_run() {
    let Some(server) = shared() else { return };
    text_is_run_as_it_is(&server.postgres);
}

#[test]
fn keys_that_are_given_come_before_those_that_are_assigned() {
    let Some(server) = shared() else { return };
    keys_are_assigned_above_those_given(&server.postgres);
}

#[test]
fn what_was_written_is_read_back_in_every_type() {
    let Some(server) = shared() else { return };
    let mut session = server.postgres.connect().unwrap();
    session
        .query("create temp table t (a int, b bigint, c timestamp, d text)")
        .unwrap();
    let insert = session
        .prepare(
            "insert into t values ($1, $2, $3, $4), ($1, $2, $3, $4)",
            &[Int4, Int8, Timestamp, Text],
        )
        .unwrap();
    session.start(insert);
    session.int4(i32::MIN);
    session.int8(i64::MAX);
    session.timestamp(1_700_000_000_123_456);
    session.text("naïve \u{1f600} 'quoted'");
    assert_eq!(session.execute().unwrap().rows, 2);
    let rows = session.query("select * from t limit 1").unwrap();
    let texts: Vec<&str> = rows[0]
        .iter()
        .map(|value| value.as_deref().unwrap())
        .collect();
    assert_eq!(
        texts,
        [
            "-2147483648",
            "9223372036854775807",
            "2023-11-14 22:13:20.123456",
            "naïve \u{1f600} 'quoted'"
        ]
    );
    first_value_is_returned(server.postgres.dialect(), &mut session);
}

#[test]
fn executing_again_sends_the_same_again() {
    let Some(server) = shared() else { return };
    let mut session = server.postgres.connect().unwrap();
    session.query("create temp table t (a int)").unwrap();
    let insert = session
        .prepare("insert into t values ($1)", &[Int4])
        .unwrap();
    session.start(insert);
    session.int4(41);
    for _ in 0..3 {
        assert_eq!(session.execute().unwrap().rows, 1);
    }
    assert_eq!(
        session.query_i64("select sum(a) from t").unwrap(),
        Some(123)
    );
}

#[test]
fn messages_larger_than_any_buffer_go_both_ways() {
    let Some(server) = shared() else { return };
    let mut session = server.postgres.connect().unwrap();
    let large = "x".repeat(3_000_000);
    let echo = session
        .prepare("select length($1), $1 from generate_series(1, 3)", &[Text])
        .unwrap();
    session.start(echo);
    session.text(&large);
    assert_eq!(
        session.execute().unwrap(),
        Outcome {
            rows: 3,
            value: Some(3_000_000)
        }
    );
    // And after it small ones as before.
    assert_eq!(session.query_i64("select 7").unwrap(), Some(7));
}

#[test]
fn a_refused_statement_leaves_the_session_of_use() {
    let Some(server) = shared() else { return };
    let mut session = server.postgres.connect().unwrap();
    let error = session.query("selekt 1").unwrap_err();
    assert_eq!(
        (error.class, error.code.as_deref()),
        (ErrorClass::Other, Some("42601"))
    );
    assert!(error.message.contains("selekt"), "{error}");
    assert_eq!(
        class_of(session.prepare("select nothing from nowhere", &[])),
        ErrorClass::Other
    );
    assert_eq!(
        class_of(session.prepare("select $1::int", &[])),
        ErrorClass::Other
    );
    session
        .query("create temp table t (a int primary key)")
        .unwrap();
    let insert = session
        .prepare("insert into t values ($1)", &[Int4])
        .unwrap();
    session.start(insert);
    session.int4(1);
    session.execute().unwrap();
    let error = session.execute().unwrap_err();
    assert_eq!(error.class, ErrorClass::DuplicateKey);
    assert!(error.message.contains("(a)=(1)"), "{error}");
    session.start(insert);
    session.int4(2);
    assert_eq!(session.execute().unwrap().rows, 1);
}

#[test]
fn conflicts_have_their_classes() {
    let Some(server) = shared() else { return };
    let (mut one, mut two) = (
        server.postgres.connect().unwrap(),
        server.postgres.connect().unwrap(),
    );
    one.query("create table conflicts (a int primary key, b int)")
        .unwrap();
    one.query("insert into conflicts values (1, 0), (2, 0)")
        .unwrap();
    // A row lock that is not had in time.
    one.query("begin; update conflicts set b = 1 where a = 1")
        .unwrap();
    two.query("set lock_timeout = '10ms'").unwrap();
    assert_eq!(
        class_of(two.query("update conflicts set b = 2 where a = 1")),
        ErrorClass::LockTimeout
    );
    two.query("set lock_timeout = 0").unwrap();
    // A snapshot that is too old for what it wants to change.
    two.query("begin isolation level repeatable read; select * from conflicts")
        .unwrap();
    one.query("commit").unwrap();
    assert_eq!(
        class_of(two.query("update conflicts set b = 2 where a = 1")),
        ErrorClass::Serialization
    );
    two.query("rollback").unwrap();
    // A statement that takes too long; the limit goes with its transaction, as another statement would fall under it.
    assert_eq!(
        class_of(two.query("set local statement_timeout = '10ms'; select pg_sleep(100)")),
        ErrorClass::Interrupted
    );
    // Each holds what the other wants.
    let barrier = Barrier::new(2);
    let deadlocked = |session: &mut engine::postgres::PostgresSession, first: i32, second: i32| {
        session.query("set deadlock_timeout = '20ms'").unwrap();
        session
            .query(&format!(
                "begin; update conflicts set b = 3 where a = {first}"
            ))
            .unwrap();
        barrier.wait();
        let result = session.query(&format!("update conflicts set b = 3 where a = {second}"));
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

#[test]
fn an_interrupt_ends_what_is_waited_for_and_the_servers_work_on_it() {
    let Some(server) = shared() else { return };
    interrupt_ends_a_statement(
        &server.postgres,
        "select 1 from pg_sleep(1000) /* to be interrupted */",
        "select count(*) from pg_stat_activity where wait_event = 'PgSleep' \
         and query like '%to be interrupted%'",
    );
}

#[test]
fn a_session_tells_the_process_that_serves_it() {
    let Some(server) = shared() else { return };
    let work = "select count(md5(i::text)) from generate_series(1, 100000) i";
    a_server_thread_does_the_work(&server.postgres, work);
}

#[test]
fn a_session_that_the_server_ends_says_why() {
    let Some(server) = shared() else { return };
    let (mut victim, mut other) = (
        server.postgres.connect().unwrap(),
        server.postgres.connect().unwrap(),
    );
    let pid = victim
        .query_i64("select pg_backend_pid()")
        .unwrap()
        .unwrap();
    other
        .query(&format!("select pg_terminate_backend({pid})"))
        .unwrap();
    eventually("its backend is gone", || {
        !crate::guard::is_running(pid as u32)
    });
    let error = victim.query("select 1").unwrap_err();
    assert_eq!(error.class, ErrorClass::ConnectionLost);
    assert!(error.message.contains("terminating connection"), "{error}");
    assert_eq!(
        class_of(victim.query("select 1")),
        ErrorClass::ConnectionLost
    );
}

#[test]
fn keys_ascend_and_the_last_is_known() {
    let Some(server) = shared() else { return };
    let keys = table("keys1", None);
    let dialect = server.postgres.dialect();
    let mut session = fill(&server.postgres, &keys, 5);
    assert_eq!(session.last_key(&keys).unwrap(), Some(5));
    // Another session draws from its own thousand, once it inserts.
    let mut other = server.postgres.connect().unwrap();
    assert_eq!(other.last_key(&keys).unwrap(), None);
    other
        .query("insert into keys1 (dateandtime, price, data) values (now(), 1, '')")
        .unwrap();
    assert_eq!(other.last_key(&keys).unwrap(), Some(1001));
    assert_eq!(session.query_i64(&dialect.min_key(&keys)).unwrap(), Some(1));
    assert_eq!(
        session.query_i64(&dialect.max_key(&keys)).unwrap(),
        Some(1001)
    );
    run(&mut session, &dialect.drop_table(&keys));
}

#[test]
fn statements_of_the_dialect_do_what_they_say() {
    let Some(server) = shared() else { return };
    dialect_does_what_it_says(&server.postgres, |_, _| {});
}

#[test]
fn an_index_is_known_by_its_columns_whatever_its_name() {
    let Some(server) = shared() else { return };
    indexes_are_known_by_their_columns(&server.postgres);
}

#[test]
fn deleters_that_share_a_table_do_not_wait_for_each_other() {
    let Some(server) = shared() else { return };
    let by_three = Partitions {
        count: 3,
        rows_each: 3,
    };
    let dialect = server.postgres.dialect();
    for (name, partitions) in [("queue1", None), ("queue2", Some(by_three))] {
        let queue = table(name, partitions);
        let mut one = fill(&server.postgres, &queue, 20);
        let mut two = server.postgres.connect().unwrap();
        two.query("set lock_timeout = '5s'").unwrap();
        let sql = dialect.delete_oldest(&queue, 5, true);
        let (delete_one, delete_two) = (
            one.prepare(&sql, &[Int8]).unwrap(),
            two.prepare(&sql, &[Int8]).unwrap(),
        );
        one.query("begin").unwrap();
        one.start(delete_one);
        one.int8(0);
        assert_eq!(one.execute().unwrap().rows, 5, "{name}");
        two.start(delete_two);
        two.int8(0);
        assert_eq!(two.execute().unwrap().rows, 5, "{name}");
        one.query("commit").unwrap();
        assert_eq!(one.query_i64(&dialect.min_key(&queue)).unwrap(), Some(11));
        // Rows are chosen once, and not for each partition.
        let plan = one.query(&format!("explain {}", sql.replace("$1", "0")));
        let plan = format!("{:?}", plan.unwrap());
        assert!(plan.contains("InitPlan 1"), "{plan}");
        assert_eq!(plan.matches("LockRows").count(), 1, "{plan}");
        run(&mut one, &dialect.drop_table(&queue));
    }
}
