//! Counters, settings and settling.

use std::time::Duration;

use engine::postgres::{Postgres, PostgresSession};
use engine::{Counter, Engine, Partitions, Session, SettleLimits, Settled, SqlEngine};

use super::{ServerDir, end, is_installed, major, shared};
use crate::guard::eventually;
use crate::server::GO_ON;
use crate::tables::{fill, none_is_there_twice, run, table, value};

#[test]
fn counters_grow_with_the_work() {
    let Some(shared) = shared() else { return };
    for (name, partitions) in
        [("count1", None), ("count2", Some(Partitions { count: 2, rows_each: 100 }))]
    {
        let counted = table(name, partitions);
        let mut observer = shared.server.observer(std::slice::from_ref(&counted)).unwrap();
        let before = observer.counters().unwrap();
        assert!(
            !before.iter().any(|counter| counter.name.ends_with(name)),
            "no table, no counters"
        );

        let mut session = fill(&shared.server, &counted, 200);
        run(
            &mut session,
            &shared.server.dialect().create_indexes(&counted, engine::IndexStatements::Usual),
        );
        session.query(&format!("delete from {name} where transactionid <= 50")).unwrap();
        end(session);

        let after = observer.counters().unwrap();
        assert_eq!(value(&after, &format!("dead_rows.{name}")), 50.0);

        let grown = |name: &str| value(&after, name) - value(&before, name);
        assert!(grown("wal_bytes") > 10_000.0 && grown("wal_position_bytes") > 10_000.0);
        assert!(grown("row_inserted_count") >= 200.0 && grown("row_deleted_count") >= 50.0);
        assert!(grown("commit_count") >= 200.0);
        assert_eq!(value(&after, &format!("live_rows.{name}")), 150.0);
        assert!(value(&after, &format!("table_bytes.{name}")) >= 8192.0);
        assert!(value(&after, &format!("index_bytes.{name}")) >= 2.0 * 8192.0);

        let each = format!("each_index_bytes.{name}.");
        let each = after.iter().filter(|it| it.name.starts_with(&each));
        let sum: f64 = each.map(|it| it.value).sum();
        assert_eq!(sum, value(&after, &format!("index_bytes.{name}")));
        let table = value(&after, &format!("table_bytes.{name}"));
        assert_eq!(table + sum, value(&after, &format!("total_bytes.{name}")));

        let bloat = observer.bloat().unwrap();
        let dense = format!("each_index_leaf_density_percent.{name}.");
        let dense = bloat.iter().filter(|it| it.name.starts_with(&dense));
        let dense: Vec<f64> = dense.map(|it| it.value).collect();
        assert_eq!(bloat.len(), 2 * dense.len());
        assert!(dense.len() >= 2 && dense.iter().all(|it| *it > 5.0 && *it < 100.0));

        assert!(value(&after, "database_bytes") > 1e6);
        let sample = observer.sample().unwrap();
        assert_eq!(value(&sample, &format!("dead_rows.{name}")), 50.0);
        assert!(sample.len() < after.len());
        none_is_there_twice(&after);

        let mut session = shared.server.connect().unwrap();
        run(&mut session, &shared.server.dialect().drop_table(&counted));
    }
}

/// The counters of the server that each version has, and those that grow when there is work:
/// written down once more, so that a version that loses one is seen.
fn expected(major: u32) -> Vec<(&'static str, bool)> {
    let mut names = vec![
        ("block_hit_count", true),
        ("block_read_count", true),
        ("block_read_ms", true),
        ("block_write_ms", true),
        ("bgwriter_stop_count", false),
        ("buffer_alloc_count", true),
        ("buffer_bgwriter_write_count", false),
        ("buffer_checkpoint_write_bytes", true),
        ("buffer_checkpoint_write_count", true),
        ("checkpoint_requested_count", true),
        ("checkpoint_sync_ms", false),
        ("checkpoint_timed_count", false),
        ("checkpoint_write_ms", true),
        ("commit_count", true),
        ("database_bytes", true),
        ("deadlock_count", false),
        ("rollback_count", true),
        ("row_deleted_count", true),
        ("row_inserted_count", true),
        ("row_updated_count", true),
        ("temp_bytes", true),
        ("wal_bytes", true),
        ("wal_position_bytes", true),
    ];
    if major >= 14 {
        names.extend([
            ("wal_buffers_full_count", false),
            ("wal_fpi_count", true),
            ("wal_record_count", true),
            ("wal_sync_count", true),
            ("wal_sync_ms", true),
            ("wal_write_count", true),
            ("wal_write_ms", true),
        ]);
    }
    if major < 16 {
        names.extend([
            ("buffer_backend_sync_at_checkpoint_count", false),
            ("buffer_backend_write_at_checkpoint_count", true),
        ]);
    } else {
        names.extend([
            ("block_extend_count", true),
            ("block_vacuum_read_count", true),
            ("block_vacuum_write_count", false),
            ("buffer_backend_sync_count", false),
            ("buffer_backend_write_count", true),
            ("buffer_evict_count", true),
            ("fsync_count", true),
            ("relation_sync_count", true),
        ]);
    }
    if major >= 18 {
        names.extend([("checkpoint_done_count", true), ("slru_checkpoint_write_count", true)]);
    }
    names.sort_unstable();
    names
}

/// Returns settings with which little work moves every counter.
fn settings_that_move_counters() -> Vec<(&'static str, &'static str)> {
    // Autovacuum comes at the end: what it analyses before would hold back dead rows. And a page
    // that the background writer is at when a vacuum comes by keeps its own.
    let mut set = vec![
        ("autovacuum_naptime", "1s"),
        ("autovacuum_vacuum_threshold", "10"),
        ("autovacuum_vacuum_scale_factor", "0"),
        ("autovacuum_analyze_threshold", "10"),
        ("autovacuum_analyze_scale_factor", "0"),
        ("bgwriter_lru_maxpages", "0"),
        ("fsync", "on"),
        ("shared_buffers", "1MB"),
        ("synchronous_commit", "off"),
        ("track_io_timing", "on"),
        ("work_mem", "64kB"),
    ];
    if major() >= 14 {
        set.push(("track_wal_io_timing", "on"));
    }
    set
}

/// Does work that moves all counters of the server but those of autovacuum.
fn move_all_counters(postgres: &Postgres, mut session: PostgresSession) {
    for sql in [
        // More than there are buffers.
        "insert into moves1 (dateandtime, price, data) \
         select now(), g, repeat('x', 300) from generate_series(1, 20000) g",
        "update moves1 set price = price + 1 where transactionid % 10 = 0",
        "delete from moves1 where transactionid <= 5000",
        "select * from moves1 order by data, price offset 19000",
        "begin; insert into moves1 (dateandtime, price, data) values (now(), 1, ''); rollback",
    ] {
        session.query(sql).unwrap();
    }
    // What a session holds back would be added to what its own vacuum leaves.
    end(session);

    let mut session = postgres.connect().unwrap();
    for sql in ["vacuum moves1", "delete from moves1 where transactionid <= 6000", "checkpoint"] {
        session.query(sql).unwrap();
    }
    end(session);
}

fn of_table(counters: &[Counter], name: &str) -> f64 {
    value(counters, &format!("{name}.moves1"))
}

fn check_table_counters(before: &[Counter], after: &[Counter]) {
    let grown = |name: &str| of_table(after, name) - of_table(before, name);
    assert_eq!(of_table(after, "dead_rows"), 1000.0);
    assert_eq!((grown("vacuum_count"), grown("autovacuum_count")), (1.0, 0.0));
    assert!(grown("table_bytes") > 20_000.0 * 300.0 && grown("index_bytes") > 0.0);
    assert!(grown("rows_changed_since_analyze") >= 27_000.0);

    let has = |name: &str| after.iter().any(|counter| counter.name == format!("{name}.moves1"));
    assert_eq!(has("rows_inserted_since_vacuum"), major() >= 13);
    for timed in ["vacuum_ms", "analyze_ms", "autovacuum_ms", "autoanalyze_ms"] {
        assert_eq!(has(timed), major() >= 18, "{timed}");
    }
    if major() >= 18 {
        assert!(grown("vacuum_ms") > 0.0);
    }
}

#[test]
fn every_counter_of_the_version_is_read_and_moves() {
    if !is_installed() {
        return;
    }
    let place = ServerDir::on_disk();
    let postgres = place.start(&settings_that_move_counters()).unwrap();
    let written = table("moves1", None);
    let mut session = fill(&postgres, &written, 100);
    session.query("checkpoint").unwrap();
    let mut observer = postgres.observer(std::slice::from_ref(&written)).unwrap();
    let before = observer.counters().unwrap();
    move_all_counters(&postgres, session);

    let expected = expected(major());
    let lagging = |after: &[Counter]| -> Vec<String> {
        expected
            .iter()
            .filter(|(name, moves)| *moves && value(after, name) <= value(&before, name))
            .map(|(name, _)| name.to_string())
            .collect()
    };
    // Some are handed on by processes of the server in their own time.
    let mut after = observer.counters().unwrap();
    for _ in 0..1000 {
        if lagging(&after).is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        after = observer.counters().unwrap();
    }
    assert_eq!(lagging(&after), Vec::<String>::new(), "these did not move");

    let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
    let of_server = |counters: &[Counter]| {
        let names = counters.iter().map(|counter| counter.name.clone());
        let mut names: Vec<String> = names.filter(|name| !name.contains('.')).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(of_server(&after), names, "the counters of this version");
    let sampled = of_server(&observer.sample().unwrap());
    let dear: Vec<&str> =
        names.iter().filter(|name| !sampled.contains(&name.to_string())).copied().collect();
    let late = |name: &&str| name.ends_with("_at_checkpoint_count") || *name == "database_bytes";
    assert!(dear.contains(&"database_bytes") && dear.iter().all(late), "{dear:?}");

    check_table_counters(&before, &after);
    // The rest is autovacuum's.
    let mut session = postgres.connect().unwrap();
    session.query("alter system set autovacuum = on").unwrap();
    session.query("select pg_reload_conf()").unwrap();
    drop(session);
    let is_cleaned = |counters: &[Counter]| {
        of_table(counters, "dead_rows") == 0.0
            && of_table(counters, "autovacuum_count") >= 1.0
            && of_table(counters, "autoanalyze_count") >= 1.0
    };
    let cleaned = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        is_cleaned(&observer.sample().unwrap())
    });
    assert!(cleaned, "{:?}", observer.counters().unwrap());
    postgres.stop().unwrap();
}

#[test]
fn times_that_are_not_taken_are_no_counters() {
    let Some(shared) = shared() else { return };
    let counters = shared.server.observer(&[]).unwrap().counters().unwrap();
    for name in ["block_read_ms", "block_write_ms", "wal_write_ms", "wal_sync_ms"] {
        assert!(!counters.iter().any(|counter| counter.name == name), "{name}");
    }
}

#[test]
fn settling_removes_dead_rows_and_says_what_it_did() {
    if !is_installed() {
        return;
    }
    // A server of its own: a transaction of another test would hold back dead rows, as does the
    // background writer while it is at their page.
    let place = ServerDir::new();
    let postgres = place.start(&[("bgwriter_lru_maxpages", "0")]).unwrap();
    let tables =
        [table("settle1", None), table("settle2", Some(Partitions { count: 3, rows_each: 100 }))];
    for table in &tables {
        let mut session = fill(&postgres, table, 300);
        session.query(&format!("delete from {} where transactionid <= 250", table.name)).unwrap();
        end(session);
    }
    let at_least = Duration::from_millis(300);
    let limits = SettleLimits { at_least, at_most: Duration::from_secs(300) };
    let settled = postgres.settle(&tables, limits, &GO_ON).unwrap();
    assert_eq!(value(&settled.pending_after, "dead_rows.settle1"), 0.0);
    assert_eq!(value(&settled.pending_after, "dead_rows.settle2"), 0.0);
    assert_eq!(value(&settled.pending_after, "autovacuum_worker_count"), 0.0);
    assert!(
        value(&settled.pending_after, "wal_since_checkpoint_bytes")
            < value(&settled.pending_before, "wal_since_checkpoint_bytes")
    );
    let done: Vec<&str> = settled.actions.iter().map(|action| action.what.as_str()).collect();
    let vacuums: Vec<&&str> = done.iter().filter(|what| what.starts_with("VACUUM")).collect();
    assert_eq!(vacuums.len(), 4, "one table and three partitions: {done:?}");
    assert_eq!(settled.unfinished, [""; 0]);
    assert!(done.contains(&"CHECKPOINT") && done.contains(&"wait for autovacuum"), "{done:?}");
    let mut session = postgres.connect().unwrap();
    for table in &tables {
        run(&mut session, &postgres.dialect().drop_table(table));
    }
}

#[test]
fn a_vacuum_that_takes_too_long_is_canceled() {
    let Some(shared) = shared() else { return };
    let locked = table("settle3", None);
    let mut session = fill(&shared.server, &locked, 10);
    // The vacuum would wait for this lock.
    session.query("begin; lock table settle3 in access exclusive mode").unwrap();
    let settle = |seconds| {
        let limits =
            SettleLimits { at_least: Duration::ZERO, at_most: Duration::from_secs(seconds) };
        let tables = std::slice::from_ref(&locked);
        shared.server.settle(tables, limits, &GO_ON).unwrap()
    };
    // Where the limit comes before the vacuum has begun there is nothing to cancel.
    let has_begun = |settled: &Settled| {
        settled.actions.first().is_some_and(|action| action.what.starts_with("VACUUM"))
    };
    let settled = [1, 10].into_iter().map(settle).find(has_begun);
    let settled = settled.unwrap_or_else(|| settle(100));
    assert!(settled.actions[0].what.ends_with("settle3: canceled"), "{:?}", settled.actions);
    let said = &settled.unfinished[..];
    assert!(
        matches!(said, [vacuum, checkpoint, _] if vacuum.ends_with("settle3` was canceled before its end")
            && checkpoint == "`CHECKPOINT` was not begun"),
        "{said:?}"
    );
    session.query("rollback; drop table settle3").unwrap();
}

#[test]
fn effective_settings_come_with_units_and_sources() {
    let Some(shared) = shared() else { return };
    let settings = shared.server.settings().unwrap();
    assert!(settings.len() > 200 && settings.is_sorted_by(|a, b| a.name <= b.name));
    let setting = |name: &str| settings.iter().find(|setting| setting.name == name).unwrap();
    assert_eq!(setting("shared_buffers").value, "16MB");
    assert_eq!(setting("shared_buffers").source.as_deref(), Some("configuration file"));
    assert_eq!(setting("data_checksums").value, "on");
    assert_eq!(setting("listen_addresses").value, "");
}

#[test]
fn a_transaction_held_open_holds_back_old_rows() {
    if !is_installed() {
        return;
    }
    let place = ServerDir::new();
    let postgres = place.start(&[]).unwrap();
    let held = table("held1", None);
    let mut writer = fill(&postgres, &held, 10);
    let dialect = postgres.dialect();
    let mut holder = postgres.connect().unwrap();
    holder.query(dialect.begin()).unwrap();
    holder.query(&dialect.min_key(&held)).unwrap();
    writer.query("delete from held1").unwrap();
    writer.query("vacuum held1").unwrap();
    assert_eq!(holder.query_i64("select count(*) from held1").unwrap(), Some(10));
    assert_eq!(
        writer.query_i64("select pg_relation_size('held1') / 8192").unwrap(),
        Some(1),
        "a page is kept"
    );
    holder.query(dialect.commit()).unwrap();
    // A page that is being written back when a vacuum comes by is left to the next.
    eventually("a vacuum removes the page", || {
        writer.query("vacuum held1").unwrap();
        let size = writer.query_i64("select pg_relation_size('held1')");
        size.unwrap() == Some(0)
    });
}
