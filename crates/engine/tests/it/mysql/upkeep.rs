//! Counters, settings and settling.

use std::time::Duration;

use engine::mysql::MysqlSession;
use engine::{Counter, Engine, Observer, Partitions, Role, Session, SettleLimits, SqlEngine};

use super::{ServerDir, installed, is_mariadb, shared, storage_engines};
use crate::server::GO_ON;
use crate::tables::{fill, insert, none_is_there_twice, run, table, value};

fn check_rocksdb(before: &[Counter], after: &[Counter]) {
    let grown = |name: &str| value(after, name) - value(before, name);
    assert!(grown("rocksdb_wal_bytes") > 1000.0);
    assert!(grown("rocksdb_row_inserted_count") >= 200.0);
    assert!(grown("rocksdb_row_deleted_count") >= 50.0);
    for name in [
        "rocksdb_stall_seconds",
        "rocksdb_write_stall_count.total-delays",
        "rocksdb_write_stall_count.total-stops",
        "rocksdb_flush_write_bytes",
        "rocksdb_compaction_write_bytes",
        "rocksdb_block_cache_hit_count",
        "rocksdb_memtable_bytes",
        "rocksdb_level_bytes.0",
        "rocksdb_compaction_pending_count",
    ] {
        assert!(value(after, name) >= 0.0);
    }
}

fn check_innodb(before: &[Counter], after: &[Counter]) {
    let grown = |name: &str| value(after, name) - value(before, name);
    assert!(grown("redo_bytes") > 10_000.0);
    assert!(grown("innodb_fsync_count") > 0.0);
    assert!(grown("innodb_page_create_count") > 0.0);

    assert!(value(after, "history_list_length") >= 0.0);
    // A server that has had a moment of rest has written them back.
    assert!(value(after, "dirty_page_count") >= 0.0);
    assert!(value(after, "table_bytes.count1") >= 16384.0);
    assert!(value(after, "index_bytes.count1") >= 2.0 * 16384.0);
    assert!(value(after, "each_index_bytes.count1.PRIMARY") >= 16384.0);
    assert!(value(after, "each_index_leaf_bytes.count1.PRIMARY") >= 16384.0);
    let file = value(after, "file_bytes.count1");
    let parts = ["table_bytes.count1", "index_bytes.count1"].map(|name| value(after, name));
    assert!(file > parts.iter().sum(), "the file has more than the indexes");

    for name in [
        "innodb_page_read_count",
        "innodb_page_write_count",
        "innodb_doublewrite_page_count",
        "row_lock_wait_count",
        "row_lock_wait_ms",
        "redo_position_bytes",
    ] {
        assert!(value(after, name) >= 0.0);
    }
}

/// Checks that a size from before the last change of its table is marked as old.
fn check_age_of_sizes(session: &mut MysqlSession, observer: &mut dyn Observer) {
    let mut role = || {
        let counters = observer.counters().unwrap();
        let name = "each_index_bytes.count1.PRIMARY";
        counters.into_iter().find(|counter| counter.name == name).unwrap().role
    };

    // The statistics and the last change have times in whole seconds.
    session.query("select sleep(1.1)").unwrap();
    session.query("analyze table count1").unwrap();
    assert_eq!(role(), Some(Role::PartBytes));
    session.query("select sleep(1.1)").unwrap();
    session.query("delete from count1 where transactionid = 51").unwrap();
    assert_eq!(role(), Some(Role::OldPartBytes));
}

#[test]
fn counters_grow_with_the_work() {
    for shared in shared() {
        let counted = table("count1", None);
        let mut observer = shared.server.observer(std::slice::from_ref(&counted)).unwrap();
        let before = observer.counters().unwrap();
        assert!(
            !before.iter().any(|counter| counter.name.ends_with("count1")),
            "no table, no counters"
        );
        let mut session = fill(&shared.server, &counted, 200);
        run(
            &mut session,
            &shared.server.dialect().create_indexes(&counted, engine::IndexStatements::Usual),
        );
        session.query("delete from count1 where transactionid <= 50").unwrap();
        // Sizes are as old as the statistics.
        session.query("analyze table count1").unwrap();
        if shared.variant == "rocksdb" {
            // A level that never had a file is none.
            session.query("set global rocksdb_force_flush_memtable_now = 1").unwrap();
        }

        let after = observer.counters().unwrap();
        let grown = |name: &str| value(&after, name) - value(&before, name);
        assert!(grown("handler_commit_count") >= 200.0);
        assert!(grown("com_delete_count") >= 1.0);
        if shared.variant == "rocksdb" {
            check_rocksdb(&before, &after);
        } else {
            check_innodb(&before, &after);
            check_age_of_sizes(&mut session, &mut *observer);
        }

        let status = observer.status().unwrap().unwrap();
        assert!(status.contains("\nROW OPERATIONS\n"), "{status}");
        let has_levels = status.contains("** Compaction Stats [default] **");
        assert_eq!(has_levels, shared.variant == "rocksdb", "{status}");

        let sample = observer.sample().unwrap();
        assert!(value(&sample, "handler_commit_count") >= value(&after, "handler_commit_count"));
        assert!(sample.len() < after.len());
        none_is_there_twice(&after);
        run(&mut session, &shared.server.dialect().drop_table(&counted));
    }
}

#[test]
fn what_a_commit_makes_durable_is_counted() {
    const COMMITS: i32 = 60;
    if installed().is_none() {
        return;
    }

    let place = ServerDir::on_disk();
    let mysql = place
        .start(&[
            ("default_storage_engine", "innodb"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("log_bin", "binlog"),
            ("server_id", "1"),
            ("sync_binlog", "1"),
        ])
        .unwrap();

    let committed = table("durable1", None);
    fill(&mysql, &committed, 0);
    let mut observer = mysql.observer(&[]).unwrap();
    let before = observer.sample().unwrap();
    insert(&mysql, &committed, COMMITS);
    let after = observer.sample().unwrap();

    let grown = |name: &str| value(&after, name) - value(&before, name);
    let commits = f64::from(COMMITS);
    assert!(grown("innodb_fsync_count") >= commits);
    assert!((commits..1.5 * commits).contains(&grown("binlog_sync_count")));
    assert!(grown("binlog_bytes") >= 100.0 * commits);

    if is_mariadb() {
        // It tells the log's apart no more.
        assert!(!after.iter().any(|it| it.name == "innodb_log_fsync_count"));
        assert!(!after.iter().any(|it| it.name == "innodb_data_fsync_count"));
    } else {
        assert!(grown("innodb_log_fsync_count") >= commits);
        let parts = grown("innodb_log_fsync_count") + grown("innodb_data_fsync_count");
        assert_eq!(parts, grown("innodb_fsync_count"));
    }
}

#[test]
fn without_a_binary_log_it_is_not_mentioned() {
    if installed().is_none() {
        return;
    }
    let place = ServerDir::new();
    let mysql = place.start(&[("skip_log_bin", "")]).unwrap();
    let counters = mysql.observer(&[]).unwrap().counters().unwrap();
    assert!(!counters.iter().any(|it| it.name.starts_with("binlog_")));
}

#[test]
fn an_observer_outlives_the_time_that_sessions_may_be_idle() {
    if installed().is_none() {
        return;
    }
    // Only then, since a slow machine may take longer between two statements of a start.
    let place = ServerDir::new();
    let mysql = place.start(&[]).unwrap();
    mysql.connect().unwrap().query("set global wait_timeout = 1").unwrap();
    let mut observer = mysql.observer(&[]).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    assert!(!observer.counters().unwrap().is_empty());
}

#[test]
fn settling_leaves_nothing_to_do_and_every_setting_as_it_was() {
    for storage_engine in storage_engines() {
        // A server of its own: the work of another test would not let it come to rest.
        let place = ServerDir::new();
        let mysql = place
            .start(&[
                ("default_storage_engine", storage_engine),
                ("innodb_max_dirty_pages_pct", "77"),
                ("innodb_io_capacity", "333"),
            ])
            .unwrap();

        let tables = [
            table("settle1", None),
            table("settle2", Some(Partitions { count: 3, rows_each: 100 })),
            table("absent", None),
        ];
        for table in &tables[..2] {
            let mut session = fill(&mysql, table, 300);
            session
                .query(&format!("delete from {} where transactionid <= 250", table.name))
                .unwrap();
        }

        let before = mysql.settings().unwrap();
        let limits = SettleLimits {
            at_least: Duration::from_millis(300),
            at_most: Duration::from_secs(300),
        };
        let settled = mysql.settle(&tables, limits, &GO_ON).unwrap();

        let done: Vec<&str> = settled.actions.iter().map(|action| action.what.as_str()).collect();
        let analyzed = done.iter().filter(|what| what.starts_with("ANALYZE"));
        assert_eq!(analyzed.count(), 2, "{done:?}");
        assert_eq!(settled.unfinished, [""; 0]);

        if storage_engine == "rocksdb" {
            assert!(value(&settled.pending_before, "rocksdb_memtable_bytes") > 0.0);
            assert_eq!(value(&settled.pending_after, "rocksdb_flush_pending_count"), 0.0);
            assert!(done.iter().any(|what| what.contains("force_flush_memtable")), "{done:?}");
            // Either way something is said of it.
            let can = before.iter().any(|it| it.name == "rocksdb_compact_lzero_now");
            let l0 = done.iter().find(|what| what.contains("compact_lzero_now"));
            assert_eq!(l0.is_some_and(|it| it.starts_with("set global")), can);
            assert_eq!(l0.is_some_and(|it| it.starts_with("L0 not compacted")), !can);
        } else {
            assert!(value(&settled.pending_after, "dirty_page_count") <= 64.0, "{settled:?}");
            assert!(value(&settled.pending_after, "history_list_length") <= 100.0, "{settled:?}");
            assert!(
                done.iter().any(|what| what.starts_with("restored") && what.contains("pct = 77")),
                "{done:?}"
            );
        }

        let after = mysql.settings().unwrap();
        let differ: Vec<_> = before
            .iter()
            .zip(&after)
            .filter(|(one, other)| one != other && one.name.contains("innodb"))
            .collect();
        assert!(differ.is_empty(), "{differ:?}");
        mysql.stop().unwrap();
    }
}

#[test]
fn purge_is_over_when_nothing_is_left_to_purge() {
    if installed().is_none() {
        return;
    }
    let place = ServerDir::new();
    let mysql = place.start(&[("default_storage_engine", "innodb")]).unwrap();
    let updated = table("purged1", None);
    let mut session = fill(&mysql, &updated, 1);
    let limits = SettleLimits { at_least: Duration::ZERO, at_most: Duration::from_secs(300) };
    // More transactions than a list of history at rest may have.
    let mut update = || {
        for price in 0..500 {
            let sql = format!("update purged1 set price = {price}");
            session.query(&sql).unwrap();
        }
    };
    update();
    let settle = || mysql.settle(std::slice::from_ref(&updated), limits, &GO_ON).unwrap();
    assert_eq!(settle().unfinished, [""; 0]);
    // A snapshot needs what it sees.
    let mut holder = mysql.connect().unwrap();
    holder.query(mysql.dialect().begin()).unwrap();
    update();
    let unfinished = settle().unfinished.join("; ");
    assert!(unfinished.contains("an open transaction"), "{unfinished}");
}

#[test]
fn effective_settings_are_all_there_by_name() {
    for shared in shared() {
        let settings = shared.server.settings().unwrap();
        assert!(settings.len() > 200 && settings.is_sorted_by(|a, b| a.name <= b.name));
        let setting = |name: &str| {
            let found = settings.iter().find(|setting| setting.name == name);
            found.unwrap().value.to_lowercase()
        };
        assert_eq!(setting("innodb_buffer_pool_size"), "33554432");
        assert_eq!(setting("default_storage_engine"), shared.variant);
        assert_eq!(setting("skip_networking"), "on");
    }
}

#[test]
fn a_transaction_held_open_sees_what_was() {
    for shared in shared() {
        let held = table("held1", None);
        let mut writer = fill(&shared.server, &held, 10);
        let dialect = shared.server.dialect();
        let mut holder = shared.server.connect().unwrap();
        holder.query(dialect.begin()).unwrap();
        writer.query("delete from held1").unwrap();
        assert_eq!(holder.query_i64("select count(*) from held1").unwrap(), Some(10));
        holder.query(dialect.commit()).unwrap();
        assert_eq!(holder.query_i64("select count(*) from held1").unwrap(), Some(0));
        run(&mut writer, &dialect.drop_table(&held));
    }
}
