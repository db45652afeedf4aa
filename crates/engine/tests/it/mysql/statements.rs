//! Features of sessions that only MySQL and MariaDB have.

use engine::mysql::MysqlSession;
use engine::{Session, SqlEngine};

use super::shared;

#[test]
fn a_column_whose_type_changes_is_read_by_the_new_one() {
    for shared in shared() {
        let mut session = shared.server.connect().unwrap();
        session.query("create temporary table t (a int unsigned) engine=memory").unwrap();
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
fn a_statement_may_be_as_long_as_a_packet() {
    for shared in shared() {
        let mut session = shared.server.connect().unwrap();
        let long = "z".repeat(0xff_ff_ff - 4);
        let rows = session.query(&format!("select '{long}', 7")).unwrap();
        assert_eq!(rows[0][0].as_ref().map(String::len), Some(long.len()));
        assert_eq!(rows[0][1].as_deref(), Some("7"));
        assert_eq!(session.query_i64("select 7").unwrap(), Some(7));
    }
}
