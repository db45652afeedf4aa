//! Features of sessions that only PostgreSQL has.

use engine::ParamType::Int8;
use engine::{ErrorClass, Partitions, Session, SqlEngine};

use super::shared;
use crate::tables::{class_of, fill, run, table};

#[test]
fn what_a_snapshot_and_a_limit_of_time_forbid_has_its_class() {
    let Some(shared) = shared() else { return };
    let [mut one, mut two] = [(); 2].map(|()| shared.server.connect().unwrap());
    one.query("create table snapshots (a int primary key, b int)").unwrap();
    one.query("insert into snapshots values (1, 0)").unwrap();
    // A snapshot that is too old for the change.
    two.query("begin isolation level repeatable read; select * from snapshots").unwrap();
    one.query("update snapshots set b = 1").unwrap();
    assert_eq!(class_of(two.query("update snapshots set b = 2")), ErrorClass::Serialization);
    two.query("rollback").unwrap();
    // A statement that takes too long; the limit goes with its transaction, as another statement
    // would fall under it.
    assert_eq!(
        class_of(two.query("set local statement_timeout = '10ms'; select pg_sleep(100)")),
        ErrorClass::Interrupted
    );
    two.query("drop table snapshots").unwrap();
}

#[test]
fn deleters_that_share_a_table_do_not_wait_for_each_other() {
    let Some(shared) = shared() else { return };
    let by_three = Partitions { count: 3, rows_each: 3 };
    let dialect = shared.server.dialect();
    for (name, partitions) in [("queue1", None), ("queue2", Some(by_three))] {
        let queue = table(name, partitions);
        let mut one = fill(&shared.server, &queue, 20);
        let mut two = shared.server.connect().unwrap();
        two.query("set lock_timeout = '5s'").unwrap();
        let sql = dialect.delete_oldest(&queue, 5, true);
        let (delete_one, delete_two) =
            (one.prepare(&sql, &[Int8]).unwrap(), two.prepare(&sql, &[Int8]).unwrap());
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
