//! Counters, settings and settling.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::{Counter, Engine, Partitions, Session, SettleLimits};

use super::{GO_ON, Place, fill, is_installed, run, shared, table};

fn value(counters: &[Counter], name: &str) -> f64 {
    counters
        .iter()
        .find(|counter| counter.name == name)
        .unwrap_or_else(|| panic!("no `{name}`"))
        .value
}

#[test]
fn counters_grow_with_the_work() {
    let Some(server) = shared() else { return };
    for (name, partitions) in [
        ("count1", None),
        (
            "count2",
            Some(Partitions {
                count: 2,
                rows_each: 100,
            }),
        ),
    ] {
        let counted = table(name, partitions);
        let mut observer = server
            .postgres
            .observer(std::slice::from_ref(&counted))
            .unwrap();
        let before = observer.counters().unwrap();
        assert!(
            !before.iter().any(|counter| counter.name.ends_with(name)),
            "no table, no counters"
        );
        let mut session = fill(&server.postgres, &counted, 200);
        run(
            &mut session,
            &server.postgres.dialect().create_indexes(&counted),
        );
        session
            .query(&format!("delete from {name} where transactionid <= 50"))
            .unwrap();
        // A session that has ended keeps nothing back.
        drop(session);
        let after = std::iter::repeat_with(|| observer.counters().unwrap())
            .take(2000)
            .inspect(|_| std::thread::sleep(Duration::from_millis(5)))
            .find(|after| {
                after.iter().any(|counter| {
                    counter.name == format!("dead_rows.{name}") && counter.value == 50.0
                })
            })
            .unwrap();
        let grown = |name: &str| value(&after, name) - value(&before, name);
        assert!(grown("wal_bytes") > 10_000.0 && grown("wal_position_bytes") > 10_000.0);
        assert!(grown("row_inserted_count") >= 200.0 && grown("row_deleted_count") >= 50.0);
        assert!(grown("commit_count") >= 200.0);
        assert_eq!(value(&after, &format!("live_rows.{name}")), 150.0);
        assert!(value(&after, &format!("table_bytes.{name}")) >= 8192.0);
        assert!(value(&after, &format!("index_bytes.{name}")) >= 2.0 * 8192.0);
        assert!(value(&after, "database_bytes") > 1e6);
        let sample = observer.sample().unwrap();
        assert_eq!(value(&sample, &format!("dead_rows.{name}")), 50.0);
        assert!(sample.len() < after.len());
        let mut names: Vec<&str> = after.iter().map(|counter| counter.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), after.len(), "a counter appears twice");
        let mut session = server.postgres.connect().unwrap();
        run(
            &mut session,
            &server.postgres.dialect().drop_table(&counted),
        );
    }
}

#[test]
fn settling_removes_dead_rows_and_says_what_it_did() {
    if !is_installed() {
        return;
    }
    // A server of its own: a transaction of another test would hold back dead rows.
    let place = Place::new();
    let postgres = place.start(&[]).unwrap();
    let tables = [
        table("settle1", None),
        table(
            "settle2",
            Some(Partitions {
                count: 3,
                rows_each: 100,
            }),
        ),
    ];
    for table in &tables {
        let mut session = fill(&postgres, table, 300);
        session
            .query(&format!(
                "delete from {} where transactionid <= 250",
                table.name
            ))
            .unwrap();
    }
    let at_least = Duration::from_millis(300);
    let limits = SettleLimits {
        at_least,
        at_most: Duration::from_secs(60),
    };
    let settled = postgres.settle(&tables, limits, &GO_ON).unwrap();
    assert_eq!(value(&settled.pending_after, "dead_rows.settle1"), 0.0);
    assert_eq!(value(&settled.pending_after, "dead_rows.settle2"), 0.0);
    assert_eq!(
        value(&settled.pending_after, "autovacuum_worker_count"),
        0.0
    );
    assert!(
        value(&settled.pending_after, "wal_since_checkpoint_bytes")
            < value(&settled.pending_before, "wal_since_checkpoint_bytes")
    );
    let done: Vec<&str> = settled
        .actions
        .iter()
        .map(|action| action.what.as_str())
        .collect();
    let vacuums: Vec<&&str> = done
        .iter()
        .filter(|what| what.starts_with("VACUUM"))
        .collect();
    assert_eq!(vacuums.len(), 4, "one table and three partitions: {done:?}");
    assert!(
        done.contains(&"CHECKPOINT") && done.contains(&"wait for autovacuum"),
        "{done:?}"
    );
    let mut session = postgres.connect().unwrap();
    for table in &tables {
        run(&mut session, &postgres.dialect().drop_table(table));
    }
}

#[test]
fn settling_ends_at_a_stop_and_at_its_limit() {
    let Some(server) = shared() else { return };
    let locked = table("settle3", None);
    let mut session = fill(&server.postgres, &locked, 10);
    // The vacuum would wait for this lock.
    session
        .query("begin; lock table settle3 in access exclusive mode")
        .unwrap();
    let at_most = Duration::from_secs(1);
    let limits = SettleLimits {
        at_least: Duration::ZERO,
        at_most,
    };
    let settled = server
        .postgres
        .settle(std::slice::from_ref(&locked), limits, &GO_ON)
        .unwrap();
    assert!(
        settled.actions[0].what.ends_with("settle3: cancelled"),
        "{:?}",
        settled.actions
    );
    let stop = AtomicBool::new(true);
    let limits = SettleLimits {
        at_least: Duration::from_secs(600),
        at_most: Duration::from_secs(600),
    };
    let settled = server
        .postgres
        .settle(std::slice::from_ref(&locked), limits, &stop)
        .unwrap();
    assert_eq!(settled.actions, []);
    session.query("rollback; drop table settle3").unwrap();
}

#[test]
fn effective_settings_come_with_units_and_sources() {
    let Some(server) = shared() else { return };
    let settings = server.postgres.settings().unwrap();
    assert!(settings.len() > 200 && settings.is_sorted_by(|a, b| a.name <= b.name));
    let setting = |name: &str| {
        settings
            .iter()
            .find(|setting| setting.name == name)
            .unwrap()
    };
    assert_eq!(setting("shared_buffers").value, "16MB");
    assert_eq!(
        setting("shared_buffers").source.as_deref(),
        Some("configuration file")
    );
    assert_eq!(setting("data_checksums").value, "on");
    assert_eq!(setting("listen_addresses").value, "");
}

#[test]
fn a_transaction_held_open_holds_back_old_rows() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let postgres = place.start(&[]).unwrap();
    let held = table("held1", None);
    let mut writer = fill(&postgres, &held, 10);
    let dialect = postgres.dialect();
    let mut holder = postgres.connect().unwrap();
    holder.query(dialect.begin()).unwrap();
    holder.query(&dialect.min_key(&held)).unwrap();
    writer.query("delete from held1").unwrap();
    writer.query("vacuum held1").unwrap();
    assert_eq!(
        holder.query_i64("select count(*) from held1").unwrap(),
        Some(10)
    );
    assert_eq!(
        writer
            .query_i64("select pg_relation_size('held1') / 8192")
            .unwrap(),
        Some(1),
        "a page is kept"
    );
    holder.query(dialect.commit()).unwrap();
    writer.query("vacuum held1").unwrap();
    assert_eq!(
        writer
            .query_i64("select pg_relation_size('held1')")
            .unwrap(),
        Some(0)
    );
}
