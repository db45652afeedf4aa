//! Replication of the binary log between two real servers.

use std::net::Ipv4Addr;

use engine::mysql::{Flavor, Mysql, MysqlSession};
use engine::{Engine, ForReplicas, Port, Replicated, Session, SetupError, SqlEngine, StartOptions};
use rustix::process::Signal;

use super::{ServerDir, build, installed, storage_engines};
use crate::guard::{eventually, is_running, signal};

/// Starts a server that can have replicas.
fn start(place: &ServerDir, port: &Port, set: &[(&str, &str)]) -> Result<Mysql, SetupError> {
    place.with_options(&place.path().join("data"), &build(), set, |options| {
        Mysql::start(&StartOptions {
            replicas: Some(ForReplicas { port, logical: false }),
            ..options
        })
    })
}

fn start_replica(
    place: &ServerDir,
    primary: &Mysql,
    set: &[(&str, &str)],
) -> Result<Mysql, SetupError> {
    place.with_options(&place.path().join("data"), &build(), set, |options| {
        primary.start_replica("replica_1", &options)
    })
}

fn port() -> Port {
    Port::reserve(Ipv4Addr::LOCALHOST.into()).unwrap()
}

fn behind(primary: &mut MysqlSession, replica: &mut MysqlSession) -> impl Fn(&str) -> f64 {
    let gauges = Mysql::replication_gauges(primary, replica, "replica_1").unwrap();
    move |name| {
        let mut gauges = gauges.iter();
        let gauge = gauges.find(|it| it.name == format!("replica_1.{name}"));
        gauge.unwrap_or_else(|| panic!("no {name}")).value
    }
}

fn value(session: &mut MysqlSession, sql: &str) -> String {
    let rows = session.query(sql).unwrap();
    rows[0].last().unwrap().clone().unwrap()
}

/// Checks the lag of a replica while it follows, and while it does not apply what it receives.
fn check_lag(
    session: &mut MysqlSession,
    reader: &mut MysqlSession,
    poller: &mut MysqlSession,
    follower: &str,
) {
    assert_eq!(Mysql::replication_error(poller).unwrap(), None);
    eventually("it has everything", || {
        let behind = behind(session, poller);
        ["written_bytes", "replayed_bytes", "transactions_behind"]
            .iter()
            .all(|name| behind(name) == 0.0)
    });

    // The replica applies no more, but still receives.
    reader.query(&format!("stop {follower} sql_thread")).unwrap();
    for row in 2..12 {
        session.query(&format!("insert into t values ({row})")).unwrap();
    }
    eventually("it lacks what it has not applied", || {
        let behind = behind(session, poller);
        let received = behind("written_bytes") == 0.0 && behind("relay_log_bytes") > 100.0;
        received && behind("transactions_behind") == 10.0
    });

    reader.query(&format!("start {follower} sql_thread")).unwrap();
    eventually("it follows again", || {
        Mysql::replication_error(poller).unwrap().is_none()
            && reader.query_i64("select count(*) from t").unwrap() == Some(11)
    });
}

#[test]
fn a_replica_follows_reports_its_lag_and_says_why_it_stopped() {
    let Some(installation) = installed().filter(|it| it.version.number >= (5, 7, 0)) else {
        return;
    };
    let is_mariadb = installation.version.flavor == Flavor::MariaDb;
    let is_new = !is_mariadb && installation.version.number >= (8, 0, 26);
    let [source, follower] = if is_new { ["source", "replica"] } else { ["master", "slave"] };
    // MariaDB needs no plugin.
    let plugins = installation.program.ancestors().nth(2).unwrap();
    let plugin = plugins.join(format!("lib/mysql/plugin/semisync_{source}.so"));
    let is_semi_sync = is_mariadb || plugin.is_file();
    let unit = if is_mariadb { "threads" } else { "workers" };
    let threads = format!("{follower}_parallel_{unit}");

    for storage_engine in storage_engines() {
        let semi_sync =
            ["enabled", "timeout"].map(|option| format!("rpl_semi_sync_{source}_{option}"));
        let mut set = vec![("default_storage_engine", storage_engine)];
        if is_semi_sync {
            // Nobody waits before there is a replica.
            set.extend(semi_sync.iter().map(|name| (name.as_str(), "1")));
        }
        let (place, other, port) = (ServerDir::new(), ServerDir::new(), port());
        let primary = start(&place, &port, &set).unwrap();
        let mut session = primary.connect().unwrap();
        session.query("create table t (a int primary key)").unwrap();
        set.push((&threads, "3"));
        let replica = start_replica(&other, &primary, &set).unwrap();
        let mut reader = replica.connect().unwrap();
        eventually("the table is there", || reader.query_i64("select count(*) from t").is_ok());

        let status = |name: &str| format!("show status like 'rpl_semi_sync_{source}_{name}'");
        let mut not_waited = String::new();
        if is_semi_sync {
            eventually("it waits for the replica", || {
                value(&mut session, &status("status")) == "ON"
            });
            let patience = format!("set global {} = 60000", semi_sync[1]);
            session.query(&patience).unwrap();
            not_waited = value(&mut session, &status("no_tx"));
        }

        session.query("insert into t values (1)").unwrap();
        let rows = "select count(*) from t";
        eventually("the row is there", || reader.query_i64(rows).unwrap() == Some(1));
        let engine = "select engine from information_schema.tables where table_name = 't'";
        assert!(value(&mut reader, engine).eq_ignore_ascii_case(storage_engine));
        let setting = format!("show global variables like '{threads}'");
        assert_eq!(value(&mut reader, &setting), "3");
        assert_eq!(value(&mut reader, "select @@read_only"), "1");
        if is_semi_sync {
            assert_ne!(value(&mut session, &status("yes_tx")), "0");
            assert_eq!(value(&mut session, &status("no_tx")), not_waited);
            let waits = format!("show global variables like '{}'", semi_sync[0]);
            assert_eq!(value(&mut reader, &waits), "OFF");
        }

        let mut poller = replica.connect().unwrap();
        check_lag(&mut session, &mut reader, &mut poller, follower);
        // Somebody else writes on the replica.
        if !is_mariadb {
            reader.query("set global super_read_only = off").unwrap();
        }
        reader.query("set session sql_log_bin = 0").unwrap();
        reader.query("insert into t values (99)").unwrap();
        session.query("insert into t values (99)").unwrap();
        eventually("it says so", || {
            let found = Mysql::replication_error(&mut poller).unwrap();
            found.is_some_and(|error| error.contains("Duplicate entry"))
        });

        let pids = [&primary, &replica].map(|server| server.process_id().unwrap());
        signal(pids[0], Signal::KILL);
        drop((reader, poller, replica));
        eventually("nothing runs", || !pids.into_iter().any(is_running));
    }
}

#[test]
fn options_that_contradict_replicas_are_refused() {
    let Some(installation) = installed() else {
        return;
    };
    let place = ServerDir::new();
    let refused = |set: &[(&str, &str)]| match start(&place, &port(), set) {
        Err(SetupError::Config { what, .. }) => what,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it started with {set:?}"),
    };
    if installation.version.number < (5, 7, 0) {
        assert!(refused(&[]).contains("no replicas"));
        return;
    }
    assert!(refused(&[("skip_log_bin", "")]).contains("log_bin"));
    if installation.version.flavor == Flavor::MySql {
        assert!(refused(&[("gtid_mode", "off_permissive")]).contains("gtid_mode"));
    }
    let path = place.path().join("log").display().to_string();
    let elsewhere = [("innodb_log_group_home_dir", path.as_str())];
    let primary = start(&place, &port(), &[]).unwrap();
    let other = ServerDir::new();
    match start_replica(&other, &primary, &elsewhere) {
        Err(SetupError::Config { what, .. }) => assert!(what.contains(&path), "{what}"),
        _ => panic!("two servers write to {path}"),
    }
}
