//! What a session does, and how it fails, on every storage engine that the build has.

use std::sync::Barrier;

use engine::ParamType::{Int4, Int8, Text, Timestamp};
use engine::mysql::MysqlSession;
use engine::{ErrorClass, Outcome, Session, SqlEngine};

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
    for server in shared() {
        text_is_run_as_it_is(&server.mysql);
    }
}

#[test]
fn keys_that_are_given_come_before_those_that_are_assigned() {
    for server in shared() {
        keys_are_assigned_above_those_given(&server.mysql);
    }
}

#[test]
fn what_was_written_is_read_back_in_every_type() {
    for server in shared() {
        let mut session = server.mysql.connect().unwrap();
        session
            .query("create temporary table t (a int, b bigint, c datetime(6), d varchar(99) character set utf8mb4) engine=memory")
            .unwrap();
        let insert = session
            .prepare(
                "insert into t values (?, ?, ?, ?)",
                &[Int4, Int8, Timestamp, Text],
            )
            .unwrap();
        for micros in [0, 123_456] {
            session.start(insert);
            session.int4(i32::MIN);
            session.int8(i64::MAX);
            session.timestamp(1_700_000_000_000_000 + micros);
            session.text("naïve \u{1f600} 'quoted'");
            assert_eq!(session.execute().unwrap().rows, 1);
        }
        let rows = session.query("select * from t").unwrap();
        for (row, time) in rows
            .iter()
            .zip(["2023-11-14 22:13:20.000000", "2023-11-14 22:13:20.123456"])
        {
            let texts: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap()).collect();
            assert_eq!(
                texts,
                [
                    "-2147483648",
                    "9223372036854775807",
                    time,
                    "naïve \u{1f600} 'quoted'"
                ]
            );
        }
        first_value_is_returned(server.mysql.dialect(), &mut session);
    }
}

#[test]
fn executing_again_sends_the_same_again() {
    for server in shared() {
        let mut session = server.mysql.connect().unwrap();
        session
            .query("create temporary table t (a int) engine=memory")
            .unwrap();
        let insert = session
            .prepare("insert into t values (?)", &[Int4])
            .unwrap();
        for _ in 0..2 {
            session.start(insert);
            session.int4(41);
            for _ in 0..3 {
                assert_eq!(session.execute().unwrap().rows, 1);
            }
        }
        assert_eq!(
            session.query_i64("select sum(a) from t").unwrap(),
            Some(246)
        );
    }
}

#[test]
fn a_column_whose_type_changes_is_read_by_the_new_one() {
    for server in shared() {
        let mut session = server.mysql.connect().unwrap();
        session
            .query("create temporary table t (a int unsigned) engine=memory")
            .unwrap();
        session.query("insert into t values (4000000000)").unwrap();
        let select = session.prepare("select a from t", &[]).unwrap();
        let read = |session: &mut MysqlSession| {
            session.start(select);
            session.execute().unwrap().value
        };
        for _ in 0..3 {
            assert_eq!(read(&mut session), Some(4_000_000_000));
        }
        session.query("alter table t modify a bigint").unwrap();
        session.query("update t set a = -a").unwrap();
        for _ in 0..3 {
            assert_eq!(read(&mut session), Some(-4_000_000_000));
        }
    }
}

#[test]
fn messages_larger_than_any_buffer_or_packet_go_both_ways() {
    for server in shared() {
        let mut root = server.mysql.connect().unwrap();
        root.query("set global max_allowed_packet = 64 * 1024 * 1024")
            .unwrap();
        let mut session = server.mysql.connect().unwrap();
        // More than a packet holds, exactly as much, and a little.
        for length in [20_000_000, 0xff_ff_ff, 0xff_ff_ff - 30, 3_000_000, 5] {
            let large = "x".repeat(length);
            let echo = session
                .prepare("select length(?), ? union all select 2, ?", &[Text; 3])
                .unwrap();
            session.start(echo);
            (0..2).for_each(|_| session.text(&large));
            session.text("y");
            assert_eq!(
                session.execute().unwrap(),
                Outcome {
                    rows: 2,
                    value: Some(length as i64)
                }
            );
        }
        let long = "z".repeat(0xff_ff_ff - 4);
        let rows = session.query(&format!("select '{long}', 7")).unwrap();
        assert_eq!(rows[0][0].as_ref().map(String::len), Some(long.len()));
        assert_eq!(rows[0][1].as_deref(), Some("7"));
        // And after it small ones as before.
        assert_eq!(session.query_i64("select 7").unwrap(), Some(7));
    }
}

#[test]
fn a_refused_statement_leaves_the_session_of_use() {
    for server in shared() {
        let mut session = server.mysql.connect().unwrap();
        let error = session.query("selekt 1").unwrap_err();
        assert_eq!(
            (error.class, error.code.as_deref()),
            (ErrorClass::Other, Some("1064"))
        );
        assert!(error.message.contains("selekt"), "{error}");
        assert_eq!(
            class_of(session.prepare("select nothing from nowhere", &[])),
            ErrorClass::Other
        );
        assert_eq!(
            class_of(session.prepare("select ?", &[])),
            ErrorClass::Other
        );
        session.query("drop table if exists refused").unwrap();
        session
            .query("create table refused (a int primary key)")
            .unwrap();
        let insert = session
            .prepare("insert into refused values (?)", &[Int4])
            .unwrap();
        session.start(insert);
        session.int4(1);
        session.execute().unwrap();
        let error = session.execute().unwrap_err();
        assert_eq!(error.class, ErrorClass::DuplicateKey);
        assert!(error.message.contains("'1'"), "{error}");
        session.start(insert);
        session.int4(2);
        assert_eq!(session.execute().unwrap().rows, 1);
        session.query("drop table refused").unwrap();
    }
}

#[test]
fn conflicts_have_their_classes() {
    for server in shared() {
        let (mut one, mut two) = (
            server.mysql.connect().unwrap(),
            server.mysql.connect().unwrap(),
        );
        one.query("create table conflicts (a int primary key, b int)")
            .unwrap();
        one.query("insert into conflicts values (1, 0), (2, 0)")
            .unwrap();
        // A row lock that is not had in time.
        one.query("begin").unwrap();
        one.query("update conflicts set b = 1 where a = 1").unwrap();
        for variable in ["innodb_lock_wait_timeout", "rocksdb_lock_wait_timeout"] {
            // The other's is not there without it.
            let _ = two.query(&format!("set session {variable} = 1"));
        }
        assert_eq!(
            class_of(two.query("update conflicts set b = 2 where a = 1")),
            ErrorClass::LockTimeout
        );
        one.query("commit").unwrap();
        // Each holds what the other wants.
        let barrier = Barrier::new(2);
        let deadlocked = |session: &mut MysqlSession, first: i32, second: i32| {
            let _ = session.query("set session rocksdb_deadlock_detect = 1");
            for variable in ["innodb_lock_wait_timeout", "rocksdb_lock_wait_timeout"] {
                let _ = session.query(&format!("set session {variable} = 20"));
            }
            session.query("begin").unwrap();
            session
                .query(&format!("update conflicts set b = 3 where a = {first}"))
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
        assert!(
            failed.contains(&Some(ErrorClass::Deadlock)),
            "{}: {failed:?}",
            server.storage_engine
        );
        two.query("drop table conflicts").unwrap();
    }
}

#[test]
fn an_interrupt_ends_what_is_waited_for_and_the_servers_work_on_it() {
    for server in shared() {
        interrupt_ends_a_statement(
            &server.mysql,
            "select sleep(1000) /* to be interrupted */",
            "select count(*) from information_schema.processlist \
             where state = 'User sleep' and info like '%to be interrupted%'",
        );
    }
}

#[test]
fn a_session_tells_the_thread_that_serves_it() {
    for server in shared() {
        a_server_thread_does_the_work(&server.mysql, "select benchmark(300000, md5('a'))");
    }
}

#[test]
fn a_session_that_the_server_ends_is_lost() {
    for server in shared() {
        let (mut victim, mut other) = (
            server.mysql.connect().unwrap(),
            server.mysql.connect().unwrap(),
        );
        let id = victim.query_i64("select connection_id()").unwrap().unwrap();
        other.query(&format!("kill {id}")).unwrap();
        let count = format!("select count(*) from information_schema.processlist where id = {id}");
        eventually("its thread is gone", || {
            other.query_i64(&count).unwrap() == Some(0)
        });
        for _ in 0..2 {
            assert_eq!(
                class_of(victim.query("select 1")),
                ErrorClass::ConnectionLost
            );
        }
    }
}

#[test]
fn keys_ascend_and_the_last_is_known() {
    for server in shared() {
        let keys = table("keys1", None);
        let dialect = server.mysql.dialect();
        let mut session = fill(&server.mysql, &keys, 5);
        assert_eq!(session.last_key(&keys).unwrap(), Some(5));
        let several = session
            .prepare(
                &dialect.insert(&keys, 3),
                &[
                    Timestamp, Int4, Text, Timestamp, Int4, Text, Timestamp, Int4, Text,
                ],
            )
            .unwrap();
        session.start(several);
        for price in 0..3 {
            session.timestamp(0);
            session.int4(price);
            session.text("");
        }
        assert_eq!(session.execute().unwrap().rows, 3);
        assert_eq!(session.last_key(&keys).unwrap(), Some(8));
        let mut other = server.mysql.connect().unwrap();
        assert_eq!(other.last_key(&keys).unwrap(), None);
        other
            .query("insert into keys1 (dateandtime, price, data) values (now(), 1, '')")
            .unwrap();
        assert_eq!(other.last_key(&keys).unwrap(), Some(9));
        assert_eq!(session.query_i64(&dialect.min_key(&keys)).unwrap(), Some(1));
        assert_eq!(session.query_i64(&dialect.max_key(&keys)).unwrap(), Some(9));
        run(&mut session, &dialect.drop_table(&keys));
    }
}

#[test]
fn statements_of_the_dialect_do_what_they_say() {
    for server in shared() {
        dialect_does_what_it_says(&server.mysql, |session, table| {
            let engine = session.query(&format!(
                "select engine from information_schema.tables where table_schema = database() and table_name = '{table}'"
            ));
            let engine = engine.unwrap()[0][0].clone().unwrap();
            assert!(
                engine.eq_ignore_ascii_case(server.storage_engine),
                "{engine}"
            );
        });
    }
}

#[test]
fn an_index_is_known_by_its_columns_whatever_its_name() {
    for server in shared() {
        indexes_are_known_by_their_columns(&server.mysql);
    }
}
