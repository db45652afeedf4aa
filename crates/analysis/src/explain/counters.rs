//! The engine's counter that moved the most with a change.

use super::Evidence;
use super::case::Case;
use super::thresholds::COUNTER;
use super::words::distinct;

/// Counters that only grow, of which more for the same work means that something is done otherwise. Those of single
/// tables, of statements of the load, and of what is a result and not a cause, are left out.
const COUNTERS: [&str; 46] = [
    // MySQL, MariaDB
    "innodb_fsync_count",
    "innodb_log_fsync_count",
    "innodb_data_fsync_count",
    "innodb_page_read_count",
    "innodb_page_write_count",
    "innodb_page_create_count",
    "innodb_doublewrite_page_count",
    "innodb_buffer_read_request_count",
    "innodb_buffer_miss_count",
    "innodb_buffer_wait_free_count",
    "redo_bytes",
    "redo_write_count",
    "redo_wait_count",
    "row_lock_wait_count",
    "row_lock_wait_ms",
    "deadlock_count",
    "row_read_count",
    "change_buffer_merge_count",
    "binlog_bytes",
    "binlog_sync_count",
    "binlog_cache_disk_use_count",
    "temp_disk_table_count",
    "sort_merge_pass_count",
    "rocksdb_flush_write_bytes",
    "rocksdb_compaction_read_bytes",
    "rocksdb_compaction_write_bytes",
    "rocksdb_wal_sync_count",
    "rocksdb_stall_us",
    "rocksdb_block_cache_miss_count",
    // PostgreSQL
    "block_read_count",
    "block_hit_count",
    "block_extend_count",
    "buffer_evict_count",
    "buffer_backend_write_count",
    "buffer_checkpoint_write_count",
    "wal_bytes",
    "wal_record_count",
    "wal_fpi_count",
    "wal_buffers_full_count",
    "relation_sync_count",
    "temp_bytes",
    // RocksDB, Speedb
    "compaction_read_bytes",
    "compaction_and_flush_written_bytes",
    "block_cache_hit_count",
    "block_cache_miss_count",
    // PostgreSQL, RocksDB and Speedb
    "wal_sync_count",
];

/// Returns what a counter must come to, per operation, before its ratio means something: it is added to both sides.
fn least(name: &str) -> f64 {
    match name {
        name if name.ends_with("_bytes") => 1.0,
        name if name.ends_with("_us") => 1.0,
        _ => 0.001,
    }
}

/// Returns the counter that changed the most per operation in the direction of time, if any did.
pub(super) fn moved(case: &Case<'_>) -> Option<Evidence> {
    let engines = |rows: &[&crate::Row]| distinct(rows.iter().map(|row| row.engine.as_str()));
    // Of two engines no counter means quite the same.
    if engines(&case.base.rows) != engines(&case.side.rows) {
        return None;
    }
    let (name, pair, _) = COUNTERS
        .iter()
        .filter_map(|name| {
            let pair = case.pair(|side| side.counter_per_op(name))?;
            let least = least(name);
            // More of it where an operation takes longer, less where it takes less time.
            let along = case.log_time().signum();
            let factor = along * ((pair.value + least) / (pair.base + least)).ln();
            Some((*name, pair, factor))
        })
        .max_by(|a, b| a.2.total_cmp(&b.2))
        .filter(|(.., factor)| *factor >= COUNTER.ln())?;
    let unit = match name {
        name if name.ends_with("_bytes") => "bytes",
        name if name.ends_with("_us") => "us",
        name if name.ends_with("_ms") => "ms",
        _ => "",
    };
    Some(Evidence::new(
        name,
        &format!("{unit}/{}", case.noun()),
        pair,
    ))
}
