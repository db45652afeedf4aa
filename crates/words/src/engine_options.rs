//! Options of servers and libraries that leave no trace in a database.
//!
//! A server that has stopped leaves the same tables, indexes and statistics whatever these options
//! were: they govern its memory, its processes, the time and the durability of writes, and the plans
//! of queries. A database that was loaded with other values of them is the same database. Options
//! that are missing here count, such as those of vacuum, statistics, compression, page sizes and
//! logs whose files stay.
//!
//! Each entry is a name in lower case, or the beginning of names if it ends with `*`. Where options
//! have words between `-` or `_`, the entries have `_`.

/// Those of PostgreSQL ([its chapter on server configuration][1]). A library that is preloaded
/// changes a database only with an extension or a table access method, and both count.
///
/// [1]: https://www.postgresql.org/docs/current/runtime-config.html
pub(crate) const OF_POSTGRES: &[&str] = &[
    "backend_flush_after",
    "bgwriter_*",
    "checkpoint_*",
    "commit_delay",
    "commit_siblings",
    "constraint_exclusion",
    "cpu_*",
    "deadlock_timeout",
    "debug_parallel_query",
    "effective_cache_size",
    "effective_io_concurrency",
    "enable_*",
    "fsync",
    "from_collapse_limit",
    "geqo*",
    "hash_mem_multiplier",
    "huge_page*",
    "io_*",
    "jit*",
    "join_collapse_limit",
    "log_*",
    "logical_decoding_work_mem",
    "logging_collector",
    "maintenance_io_concurrency",
    "maintenance_work_mem",
    "max_connections",
    "max_files_per_process",
    "max_locks_per_transaction",
    "max_parallel_*",
    "max_stack_depth",
    "max_worker_processes",
    "min_parallel_*",
    "parallel_*",
    "plan_cache_mode",
    "random_page_cost",
    "seq_page_cost",
    "shared_buffers",
    "shared_memory_type",
    "shared_preload_libraries",
    "superuser_reserved_connections",
    "synchronize_seqscans",
    "synchronous_commit",
    "temp_buffers",
    "track_activities",
    "track_activity_query_size",
    "track_functions",
    "track_io_timing",
    "track_wal_io_timing",
    "update_process_title",
    "wal_buffers",
    "wal_sync_method",
    "wal_writer_*",
    "work_mem",
];

/// Those of MySQL and MariaDB with InnoDB ([its chapter on InnoDB's variables][1]).
///
/// [1]: https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html
pub(crate) const OF_MYSQL: &[&str] = &[
    "back_log",
    "flush_time",
    "innodb_adaptive_flushing*",
    "innodb_adaptive_hash_index*",
    "innodb_buffer_pool_chunk_size",
    "innodb_buffer_pool_instances",
    "innodb_buffer_pool_size",
    "innodb_concurrency_tickets",
    "innodb_deadlock_detect",
    "innodb_flush_log_at_*",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_flushing_avg_loops",
    "innodb_io_capacity*",
    "innodb_log_buffer_size",
    "innodb_log_spin_*",
    "innodb_log_wait_for_flush_spin_hwm",
    "innodb_log_writer_threads",
    "innodb_lru_scan_depth",
    "innodb_max_dirty_pages_pct*",
    "innodb_old_blocks_*",
    "innodb_open_files",
    "innodb_page_cleaners",
    "innodb_random_read_ahead",
    "innodb_read_ahead_threshold",
    "innodb_read_io_threads",
    "innodb_spin_wait_*",
    "innodb_sync_array_size",
    "innodb_sync_spin_loops",
    "innodb_thread_*",
    "innodb_use_native_aio",
    "innodb_write_io_threads",
    "join_buffer_size",
    "long_query_time",
    "max_connections",
    "max_heap_table_size",
    "max_prepared_stmt_count",
    "open_files_limit",
    "optimizer_*",
    "performance_schema*",
    "query_cache_*",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "rocksdb_block_cache_size",
    "rocksdb_use_direct_reads",
    "slow_query_log",
    "sort_buffer_size",
    "sync_binlog",
    "table_definition_cache",
    "table_open_cache*",
    "thread_*",
    "tmp_table_size",
];

/// Those of SQLite ([its pragmas][1]).
///
/// [1]: https://www.sqlite.org/pragma.html
pub(crate) const OF_SQLITE: &[&str] = &[
    "busy_timeout",
    "cache_size",
    "cache_spill",
    "mmap_size",
    "synchronous",
    "temp_store",
    "threads",
];

/// Those of RocksDB: its caches and the way of its reads. All others may shape the levels of the
/// tree.
pub(crate) const OF_ROCKSDB: &[&str] = &[
    "allow_mmap_reads",
    "block_based_table_factory.block_cache",
    "block_cache",
    "max_open_files",
    "stats_dump_period_sec",
    "stats_persist_period_sec",
    "table_cache_numshardbits",
    "transactions",
    "use_direct_reads",
];

/// Returns whether an option is one of `entries`.
pub(crate) fn is_among(entries: &[&str], option: &str) -> bool {
    let option = option.to_ascii_lowercase().replace('-', "_");
    entries.iter().any(|entry| match entry.strip_suffix('*') {
        Some(beginning) => option.starts_with(beginning),
        None => option == *entry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_beginnings_are_found_however_they_are_written() {
        assert!(is_among(OF_MYSQL, "innodb-buffer-pool-size"));
        assert!(is_among(OF_MYSQL, "Innodb_io_capacity_max"));
        assert!(!is_among(OF_MYSQL, "innodb_page_size"));
        assert!(is_among(OF_POSTGRES, "enable_seqscan"));
        assert!(!is_among(OF_POSTGRES, "autovacuum"));
        assert!(!is_among(OF_POSTGRES, "default_statistics_target"));
        assert!(!is_among(OF_SQLITE, "page_size"));
        assert!(!is_among(OF_ROCKSDB, "write_buffer_size"));
    }

    #[test]
    fn entries_are_written_as_they_are_compared() {
        for entries in [OF_POSTGRES, OF_SQLITE, OF_ROCKSDB, OF_MYSQL] {
            for entry in entries {
                assert_eq!(*entry, entry.to_ascii_lowercase().replace('-', "_"));
            }
        }
    }
}
