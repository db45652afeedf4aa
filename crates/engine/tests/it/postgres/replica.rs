//! Physical and logical replication between two real servers.

use std::net::Ipv4Addr;

use engine::postgres::Postgres;
use engine::{
    Column, ColumnType, Engine, ForReplicas, Index, IndexStatements, Port, Replicated, Session,
    SqlEngine, StartOptions, Table,
};
use rustix::process::Signal;

use super::{ServerDir, is_installed};
use crate::guard::{eventually, is_running, signal};

#[test]
fn a_replica_follows_reports_its_lag_and_says_why_it_stopped() {
    if !is_installed() {
        return;
    }
    // Commits wait for a replica that starts after the primary.
    let waits = [("synchronous_standby_names", "*")];
    let (place, other) = (ServerDir::new(), ServerDir::new());
    let primary = place.start(&waits).unwrap();
    let replica = other.with_options(
        &other.path().join("data"),
        &super::build(),
        &[("work_mem", "7MB")],
        |options| primary.start_replica("replica_1", &options),
    );
    let replica = replica.unwrap();

    let mut session = primary.connect().unwrap();
    session.query("create table t as select 1 as a").unwrap();
    let mut reader = replica.connect().unwrap();
    eventually("the row is there", || {
        reader.query_i64("select a from t").ok().flatten() == Some(1)
    });

    let setting = reader.query("show work_mem").unwrap();
    assert_eq!(setting, [[Some("7MB".to_owned())]]);
    assert_eq!(Postgres::replication_error(&mut reader).unwrap(), None);
    session.query("set synchronous_commit = local").unwrap();

    let mut poller = replica.connect().unwrap();
    let mut behind = |session: &mut _| -> Vec<(String, f64)> {
        let gauges = Postgres::replication_gauges(session, &mut poller, "replica_1").unwrap();
        gauges.into_iter().map(|it| (it.name, it.value)).collect()
    };
    eventually("it has everything", || {
        let behind = behind(&mut session);
        behind.len() == 4 && behind.iter().all(|(_, bytes)| *bytes == 0.0)
    });

    // The replica replays no more, but still receives.
    reader.query("select pg_wal_replay_pause()").unwrap();
    session
        .query("create table u as select repeat('x', 1000) from generate_series(1, 1000)")
        .unwrap();
    eventually("it lacks what it has not replayed", || {
        let behind = behind(&mut session);
        behind[0] == ("replica_1.sent_bytes".to_owned(), 0.0) && behind[3].1 > 1e6
    });
    reader.query("select pg_wal_replay_resume()").unwrap();

    // The primary goes away: the replica no longer receives its log.
    let pids = [&primary, &replica].map(|it| it.process_id().unwrap());
    signal(pids[0], Signal::KILL);
    eventually("it says so", || Postgres::replication_error(&mut reader).unwrap().is_some());
    drop((reader, replica));
    eventually("nothing runs", || !pids.into_iter().any(is_running));
}

#[test]
fn a_logical_replica_gets_rows_of_new_tables_and_says_why_it_stopped() {
    if !is_installed() {
        return;
    }
    // The replica, which has the same option, waits for no replica.
    let waits = [("synchronous_standby_names", "*")];
    let (place, other) = (ServerDir::new(), ServerDir::new());
    let port = Port::reserve(Ipv4Addr::LOCALHOST.into()).unwrap();
    let replicas = Some(ForReplicas { port: &port, logical: true });
    let [primary, replica] = [&place, &other].map(|place| place.path().join("data"));
    let primary = place.with_options(&primary, &super::build(), &waits, |options| {
        Postgres::start(&StartOptions { replicas, ..options })
    });
    let primary = primary.unwrap();
    let replica = other.with_options(&replica, &super::build(), &waits, |options| {
        let options = StartOptions { replicas, ..options };
        primary.start_replica("replica_1", &options)
    });
    let replica = replica.unwrap();

    let column = |name, kind| Column { name, kind };
    let table = Table {
        name: "t".into(),
        columns: vec![
            column("id", ColumnType::AutoInt4 { primary: false }),
            column("k", ColumnType::Int4),
        ],
        indexes: vec![Index { name: "byk", columns: vec!["k"] }],
        partitions: None,
    };

    let [mut session, mut reader] = [&primary, &replica].map(|server| server.connect().unwrap());
    for sql in primary.dialect().create_table(&table) {
        session.query(&sql).unwrap();
    }
    let tables = std::slice::from_ref(&table);
    assert!(replica.create_tables(&mut session, &mut reader, tables).unwrap());
    // It exists, and is left alone.
    replica.create_tables(&mut session, &mut reader, tables).unwrap_err();

    // Without a primary key, all of a row tells which one it is.
    for sql in [
        "truncate t",
        "insert into t (k) select i from generate_series(1, 100) i",
        "update t set k = -k where k > 90",
        "delete from t where k > 50",
    ] {
        session.query(sql).unwrap();
    }
    let sums = "select 1000 * count(*) + sum(k)::int from t";
    let expected = session.query_i64(sums).unwrap();
    eventually("the rows are there", || reader.query_i64(sums).unwrap() == expected);

    for sql in primary.dialect().create_indexes(&table, IndexStatements::Usual) {
        session.query(&sql).unwrap();
    }
    for _ in 0..2 {
        Postgres::create_indexes(&mut session, &mut reader, tables).unwrap();
    }
    let [of_primary, of_replica] = [&primary, &replica].map(|it| it.inspect(&table, true).unwrap());
    assert_eq!(of_primary, of_replica);
    let names = "select indexname from pg_indexes where tablename = 't' order by 1";
    assert_eq!(reader.query_column(names).unwrap(), ["t_byk", "t_xid"]);

    assert_eq!(Postgres::replication_error(&mut reader).unwrap(), None);
    eventually("it has everything", || {
        let behind = Postgres::replication_gauges(&mut session, &mut reader, "replica_1").unwrap();
        behind.len() == 4 && behind.iter().all(|it| it.value == 0.0)
    });
    session.query("set synchronous_commit = local").unwrap();
    reader.query("insert into t (id, k) select max(id) + 1, 7 from t").unwrap();
    reader.query("create unique index only_here on t (id)").unwrap();
    session.query("insert into t (k) values (8)").unwrap();
    eventually("it says that it cannot apply a row", || {
        Postgres::replication_error(&mut reader).unwrap().is_some()
    });
    let log = replica.log_tail(20).join("\n");
    assert!(log.contains("unique") && log.contains("only_here"), "{log}");
}
