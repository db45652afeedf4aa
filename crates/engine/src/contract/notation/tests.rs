//! With what real servers reported: PostgreSQL 17 and 18, MariaDB 10.11, MySQL 9.7.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::servers::mysql::MysqlNotation;
use crate::servers::postgres::PostgresNotation;

/// The config files with which the dumps were made.
const POSTGRES_FILE: &str = "\
huge_pages = try
shared_buffers = 1GB   # comment
synchronous_commit = off
wal_compression='off'
max_wal_size = 4GB
autovacuum_naptime = 10
autovacuum_vacuum_cost_delay = 1ms
log_min_duration_statement = 100
bgwriter_delay = 100ms
include_if_exists 'nothing.conf'
work_mem = 8192
";
const MARIADB_FILE: &str = "\
[mysqld]
innodb-buffer-pool-size = 10M
innodb_log_file_size=48M
innodb_io_capacity=2k
skip-log-bin
sync_binlog=0
innodb_flush_log_at_trx_commit=2
innodb_doublewrite=1
loose-innodb_log_writer_threads=OFF
max_connections = 500000
innodb_max_dirty_pages_pct = 90
skip_name_resolve
innodb_flush_method=O_DIRECT
table_open_cache=100k
innodb_lru_scan_depth=100k
optimizer_switch='mrr=on'
sql_mode=STRICT_TRANS_TABLES
slow_query_log
key_buffer_size=5
innodb_adaptive_hash_index
transaction-isolation=READ-COMMITTED
innodb_file_per_table
max_allowed_packet=12345
thread_handling=one-thread-per-connection
rocksdb_block_size=16k
plugin_load_add=ha_rocksdb
default_storage_engine=rocksdb
wait_timeout=3600
innodb_purge_threads=99
";
const MYSQL_FILE: &str = "\
[mysqld]
innodb_buffer_pool_size=64M
innodb_flush_method=O_DIRECT
loose-innodb_log_writer_threads=OFF
innodb_redo_log_capacity=10M
skip-log-bin
sync-binlog=0
";

const A1: [(&str, &str); 13] = [
    ("wal_compression", "on"),
    ("shared_buffers", "65536"),
    ("autovacuum_vacuum_scale_factor", "0.05"),
    ("full_page_writes", "off"),
    ("max_connections", "77"),
    ("wal_buffers", "-1"),
    ("shared_preload_libraries", "auto_explain,pg_prewarm"),
    ("auto_explain.log_min_duration", "5s"),
    ("foo.bar", "1"),
    ("autovacuum_naptime", "1min"),
    ("checkpoint_timeout", "1800s"),
    ("temp_buffers", "1001kB"),
    ("effective_cache_size", "1.5GB"),
];

fn dump(name: &str) -> Vec<Setting> {
    let path = format!("tests/fixtures/settings/{name}.tsv");
    let setting = |line: &str| {
        let mut parts = line.split('\t');
        let name = parts.next().unwrap();
        Setting {
            source: parts.clone().nth(1).map(str::to_owned),
            ..Setting::new(name, parts.next().unwrap())
        }
    };
    let text = fs_err::read_to_string(path).unwrap();
    text.lines().map(setting).collect()
}

/// Returns the report of a target that declares a file and options, and those of these that it does
/// not have.
fn described(
    notation: &dyn Notation,
    file: &str,
    set: &[(&str, &str)],
    name: &str,
) -> (Vec<Setting>, Vec<String>) {
    let set: Vec<_> =
        set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let declared = declared(notation, [file], &set);
    let mut settings = dump(name);
    let unmet = describe(notation, &mut settings, &declared);
    let line = |it: &UnmetOption| {
        let effective = it.effective.as_deref().unwrap_or("()");
        format!("{} = {}: {effective} {:?}", it.name, it.declared, it.status)
    };
    (settings, unmet.iter().map(line).collect())
}

/// The keys of settings that two targets have and that differ, not by nature.
fn differing(a: &[Setting], b: &[Setting]) -> BTreeSet<String> {
    let by_key: BTreeMap<&str, &Setting> = b.iter().rev().map(|it| (it.key(), it)).collect();
    let differs = |a: &&Setting| {
        let of_b = by_key.get(a.key());
        of_b.is_some_and(|b| a.canonical() != b.canonical() && !(a.volatile && b.volatile))
    };
    a.iter().filter(differs).map(|it| it.key().to_owned()).collect()
}

#[test]
fn postgresql_has_what_its_files_declare_however_it_is_written() {
    let (base, of_base) = described(&PostgresNotation, POSTGRES_FILE, &[], "postgres-17.base");
    let (a1, of_a1) = described(&PostgresNotation, POSTGRES_FILE, &A1, "postgres-17.a1");
    assert_eq!(of_base, [] as [&str; 0]);
    // 1001 kB is not a whole number of pages. The server does not report an unknown name with a
    // dot.
    assert_eq!(
        of_a1,
        ["temp_buffers = 1001kB: 1000kB Changed", "foo.bar = 1: () Unreported",]
            .iter()
            .rev()
            .copied()
            .collect::<Vec<_>>()
    );
    let expected = [
        "autovacuum_naptime",
        "autovacuum_vacuum_scale_factor",
        "checkpoint_timeout",
        "commit_timestamp_buffers",
        "effective_cache_size",
        "full_page_writes",
        "max_connections",
        "shared_buffers",
        "shared_memory_size",
        "shared_memory_size_in_huge_pages",
        "shared_preload_libraries",
        "subtransaction_buffers",
        "temp_buffers",
        "transaction_buffers",
        "wal_compression",
    ];
    assert_eq!(differing(&base, &a1), expected.map(str::to_owned).into());
    let (newer, _) = described(&PostgresNotation, POSTGRES_FILE, &[], "postgres-18.base");
    let expected = [
        "effective_io_concurrency",
        "log_connections",
        "maintenance_io_concurrency",
        "shared_memory_size",
        "shared_memory_size_in_huge_pages",
    ];
    assert_eq!(differing(&base, &newer), expected.map(str::to_owned).into());
    let durable = base.iter().find(|it| it.name == "synchronous_commit").unwrap();
    assert_eq!(durable.role, Some(SettingRole::Durability));
}

#[test]
fn mariadb_changes_and_ignores_what_it_does_not_like() {
    let file = "innodb_buffer_pool_size=64M";
    let (base, of_base) = described(&MysqlNotation, file, &[], "mariadb-10.11.base");
    let (tuned, of_tuned) = described(&MysqlNotation, MARIADB_FILE, &[], "mariadb-10.11.tuned");
    assert_eq!(of_base, [] as [&str; 0]);
    assert_eq!(
        of_tuned,
        [
            "loose-innodb_log_writer_threads = OFF: () Unknown",
            "max_connections = 500000: 16770 Changed",
            "table_open_cache = 100k: 200 Changed",
            "key_buffer_size = 5: 0 Changed",
            "max_allowed_packet = 12345: 12288 Changed",
            "plugin_load_add = ha_rocksdb: () Unreported",
            "innodb_purge_threads = 99: 32 Changed",
        ]
    );
    // Directories, the version and second names are left out.
    let differing = differing(&base, &tuned);
    for name in ["default_storage_engine", "transaction_isolation", "slow_query_log", "sql_mode"] {
        assert!(differing.contains(name), "{name} in {differing:?}");
    }
    for name in ["log_bin", "innodb_doublewrite", "datadir", "socket", "version"] {
        assert!(!differing.contains(name), "{name} in {differing:?}");
    }
}

#[test]
fn mysql_has_what_its_file_declares() {
    let file = "innodb_buffer_pool_size=70M";
    let (base, of_base) = described(&MysqlNotation, file, &[], "mysql-9.7.base");
    let (tuned, of_tuned) = described(&MysqlNotation, MYSQL_FILE, &[], "mysql-9.7.tuned");
    assert_eq!((of_base, of_tuned), (Vec::new(), Vec::new()));
    let expected = [
        "innodb_buffer_pool_chunk_size",
        "innodb_buffer_pool_size",
        "innodb_redo_log_capacity",
        "log_bin",
        "log_replica_updates",
        "sync_binlog",
    ];
    assert_eq!(differing(&base, &tuned), expected.map(str::to_owned).into());
}

#[test]
fn limits_are_settings_too() {
    let declared = [declared_limit("memory", "1073741824")];
    let of = |value| {
        let mut settings = vec![limit_setting("cpus", None), limit_setting("memory", value)];
        let unmet = describe(&PostgresNotation, &mut settings, &declared);
        // Less memory is a smaller cache.
        let roles: Vec<_> = settings.iter().map(|it| it.role).collect();
        assert_eq!(roles, [Some(SettingRole::Processors), Some(SettingRole::CacheSize)]);
        unmet
    };
    assert_eq!(of(Some("1073741824")), []);
    let unmet = of(None);
    assert_eq!(unmet[0].effective.as_deref(), Some("none"));
    assert_eq!(unmet[0].status, OptionStatus::Changed);
}

#[test]
fn a_path_that_nobody_declares_is_volatile() {
    let mut settings = vec![Setting::new("ssl_dir", "/a/"), Setting::new("log_dir", "/b")];
    let set = [("log_dir".to_owned(), "/b".to_owned())];
    let declared = declared(&PostgresNotation, [], &set);
    describe(&PostgresNotation, &mut settings, &declared);
    assert!(settings[0].volatile && !settings[1].volatile);
}

#[test]
fn what_decides_on_processors_is_known_by_its_words() {
    let role = |key| role(&PostgresNotation, key);
    assert_eq!(role("max_worker_processes"), Some(SettingRole::Processors));
    assert_eq!(role("parallel_setup_cost"), None);
    assert_eq!(role("thread_cache_size"), None);
    assert_eq!(role("shared_buffers"), Some(SettingRole::CacheSize));
}
