//! Streaming replication between two real servers.

use engine::postgres::Postgres;
use engine::{Engine, Replicated, Session, SqlEngine};
use rustix::process::Signal;

use super::{Place, is_installed};
use crate::guard::{eventually, is_running, signal};

#[test]
fn a_replica_follows_reports_its_lag_and_says_why_it_stopped() {
    if !is_installed() {
        return;
    }
    // Commits wait for a replica that starts after the primary.
    let waits = [("synchronous_standby_names", "*")];
    let (place, other) = (Place::new(), Place::new());
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
    assert_eq!(Postgres::broken(&mut reader).unwrap(), None);
    session.query("set synchronous_commit = local").unwrap();
    let mut looker = replica.connect().unwrap();
    let mut behind = |session: &mut _| -> Vec<(String, f64)> {
        let gauges = Postgres::behind(session, &mut looker, "replica_1").unwrap();
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
    eventually("it says so", || {
        Postgres::broken(&mut reader).unwrap().is_some()
    });
    drop((reader, replica));
    eventually("nothing runs", || !pids.into_iter().any(is_running));
}
