//! Counters, by what each server offers: what it lacks is left out.
//!
//! `innodb_fsync_count` is of all that InnoDB makes durable, its redo log included; where the server tells the log's
//! apart, `innodb_data_fsync_count` is the rest. `handler_commit_count` counts once for each storage engine that takes
//! part in a transaction, and the binary log is one; statements that only read count too. Without a binary log nothing
//! is said of it. `binlog_sync_count` has a few more: MySQL adds the opening and closing of the log's files, MariaDB the
//! syncs of statements that define tables. Sizes of tables are the server's own estimates.

use std::collections::HashMap;

use super::session::MysqlSession;
use super::{Mysql, StorageEngine};
use crate::figures::{Figure, figures, quoted, table_counters};
use crate::rocksdb::{add_stall_totals, levels};
use crate::{Counter, Error, Observer, Role, Session, Table};

/// Status variables, in lower case.
const STATUS: &[Figure] = figures! {
    Cumulative "handler_commit" => "handler_commit_count";
    Cumulative "handler_rollback" => "handler_rollback_count";
    Cumulative "com_commit" => "com_commit_count";
    Cumulative "com_insert" => "com_insert_count";
    Cumulative "com_delete" => "com_delete_count";
    Cumulative "com_update" => "com_update_count";
    Cumulative "com_select" => "com_select_count";
    Cumulative "questions" => "statement_count";
    Cumulative "created_tmp_disk_tables" => "temp_disk_table_count" Work;
    Cumulative "sort_merge_passes" => "sort_merge_pass_count" Work;
    Cumulative "innodb_data_fsyncs" => "innodb_fsync_count" Work;
    Cumulative "innodb_os_log_fsyncs" => "innodb_log_fsync_count" LogFsyncCount;
    Cumulative "innodb_data_reads" => "innodb_read_count";
    Cumulative "innodb_data_writes" => "innodb_write_count";
    Cumulative "innodb_data_read" => "innodb_read_bytes";
    Cumulative "innodb_data_written" => "innodb_written_bytes" WrittenBytes;
    Cumulative "innodb_pages_read" => "innodb_page_read_count" Work;
    Cumulative "innodb_pages_written" => "innodb_page_write_count" Work;
    Cumulative "innodb_pages_created" => "innodb_page_create_count" Work;
    Cumulative "innodb_dblwr_pages_written" => "innodb_doublewrite_page_count" Work;
    Cumulative "innodb_dblwr_writes" => "innodb_doublewrite_count";
    Cumulative "innodb_os_log_written" => "redo_bytes" LogBytes;
    Cumulative "innodb_log_write_requests" => "redo_write_request_count";
    Cumulative "innodb_log_writes" => "redo_write_count" Work;
    Cumulative "innodb_log_waits" => "redo_wait_count" Work;
    Cumulative "innodb_lsn_current" => "redo_position_bytes";
    Gauge "innodb_checkpoint_age" => "checkpoint_age_bytes" CheckpointAgeBytes;
    Gauge "innodb_history_list_length" => "history_list_length" HistoryListLength;
    Gauge "innodb_buffer_pool_pages_dirty" => "dirty_page_count";
    Gauge "innodb_buffer_pool_pages_free" => "free_page_count";
    Cumulative "innodb_buffer_pool_read_requests" => "innodb_buffer_read_request_count" Work;
    Cumulative "innodb_buffer_pool_reads" => "innodb_buffer_miss_count" Work;
    Cumulative "innodb_buffer_pool_wait_free" => "innodb_buffer_wait_free_count" Work;
    Cumulative "innodb_ibuf_merges" => "change_buffer_merge_count" Work;
    Cumulative "innodb_row_lock_waits" => "row_lock_wait_count" Work;
    Cumulative "innodb_row_lock_time" => "row_lock_wait_ms" Work;
    Cumulative "innodb_deadlocks" => "deadlock_count" Work;
    Cumulative "innodb_rows_inserted" => "row_inserted_count";
    Cumulative "innodb_rows_updated" => "row_updated_count";
    Cumulative "innodb_rows_deleted" => "row_deleted_count";
    Cumulative "innodb_rows_read" => "row_read_count" Work;
    Cumulative "binlog_bytes_written" => "binlog_bytes" Work;
    Cumulative "syncs" => "binlog_sync_count" BinlogFsyncCount;
    Cumulative "binlog_commits" => "binlog_commit_count";
    Cumulative "binlog_group_commits" => "binlog_group_commit_count";
    Cumulative "binlog_cache_disk_use" => "binlog_cache_disk_use_count" Work;
    Cumulative "rocksdb_rows_inserted" => "rocksdb_row_inserted_count";
    Cumulative "rocksdb_rows_deleted" => "rocksdb_row_deleted_count";
    Cumulative "rocksdb_rows_read" => "rocksdb_row_read_count";
    Cumulative "rocksdb_flush_write_bytes" => "rocksdb_flush_write_bytes" FlushWrittenBytes;
    Cumulative "rocksdb_compact_read_bytes" => "rocksdb_compaction_read_bytes" CompactionReadBytes;
    Cumulative "rocksdb_compact_write_bytes" => "rocksdb_compaction_write_bytes" CompactionWrittenBytes;
    Cumulative "rocksdb_wal_bytes" => "rocksdb_wal_bytes" LogBytes;
    Cumulative "rocksdb_wal_synced" => "rocksdb_wal_sync_count" LogFsyncCount;
    Cumulative "rocksdb_wal_group_syncs" => "rocksdb_wal_group_sync_count";
    Cumulative "rocksdb_block_cache_hit" => "rocksdb_block_cache_hit_count";
    Cumulative "rocksdb_block_cache_miss" => "rocksdb_block_cache_miss_count" Work;
    Cumulative "rocksdb_block_cache_data_hit" => "rocksdb_block_cache_data_hit_count";
    Cumulative "rocksdb_block_cache_data_miss" => "rocksdb_block_cache_data_miss_count";
    Cumulative "rocksdb_bloom_filter_useful" => "rocksdb_bloom_filter_useful_count";
    Cumulative "rocksdb_bytes_read" => "rocksdb_read_bytes";
    Cumulative "rocksdb_bytes_written" => "rocksdb_written_bytes";
};

/// Status variables of stalls: `rocksdb_stall_` a reason, and whether writes were slowed down or stopped.
const STALL: &str = "rocksdb_stall_";
const STALL_MICROS: &str = "rocksdb_stall_micros";
/// The reasons and sorts of stalls as MyRocks calls them, and as the library does.
const STALL_REASONS: [(&str, &str); 3] = [
    ("l0_file_count_limit", "l0-file-count-limit"),
    ("memtable_limit", "memtable-limit"),
    ("pending_compaction_limit", "pending-compaction-bytes"),
];
const STALL_SORTS: [(&str, &str); 2] = [("slowdowns", "delays"), ("stops", "stops")];

/// Where MySQL and MariaDB count what is no status variable.
const METRICS: &[Figure] = figures! {
    Gauge "trx_rseg_history_len" => "history_list_length" HistoryListLength;
    Cumulative "ibuf_merges" => "change_buffer_merge_count" Work;
    Cumulative "lock_deadlocks" => "deadlock_count" Work;
    Gauge "log_lsn_checkpoint_age" => "checkpoint_age_bytes" CheckpointAgeBytes;
    Gauge "buffer_pool_bytes_dirty" => "dirty_bytes" DirtyBytes;
};

/// What InnoDB writes of its redo log where there are no status variables of it: MySQL before 8.0.30.
const REDO_POSITION: &str = "Log sequence number";
const REDO_CHECKPOINT: &str = "Last checkpoint at";
const REDO_BYTES: &str = "redo_position_bytes";

/// What MySQL counts of the binary log's files; it has no status variables for that. What is neither read nor written is
/// counted as `misc`: syncs, and a few for each file that is opened.
const BINLOG_FILES: &str = "select sum_number_of_bytes_write, count_misc \
     from performance_schema.file_summary_by_event_name where event_name = 'wait/io/file/sql/binlog'";

/// What all counters of the binary log begin with.
const BINLOG: &str = "binlog_";

/// Errors that mean that this server, or this user, has no such table: unknown table, unknown column, access denied,
/// plugin not there.
const ABSENT: [&str; 8] = [
    "1044", "1054", "1109", "1142", "1146", "1227", "1235", "1286",
];

/// The rows of `sql`; none where the server, or this user, can't have them.
pub(super) fn if_present(
    session: &mut MysqlSession,
    sql: &str,
) -> Result<Vec<Vec<Option<String>>>, Error> {
    match session.query(sql) {
        Err(error)
            if error
                .code
                .as_deref()
                .is_some_and(|code| ABSENT.contains(&code)) =>
        {
            Ok(Vec::new())
        }
        result => result,
    }
}

/// Names, in lower case, and values.
pub(super) fn pairs(rows: Vec<Vec<Option<String>>>) -> HashMap<String, String> {
    rows.into_iter()
        .filter_map(|row| {
            let mut values = row.into_iter();
            Some((values.next()??.to_ascii_lowercase(), values.next()??))
        })
        .collect()
}

/// Returns those of `figures` that are among `values`.
fn of_figures(figures: &[Figure], values: &HashMap<String, String>) -> Vec<Counter> {
    let counter = |figure: &Figure| Some(figure.counter(values.get(figure.source)?.parse().ok()?));
    figures.iter().filter_map(counter).collect()
}

/// Counters in the status variables; `is_rocksdb`: tables are kept by MyRocks, and by InnoDB otherwise.
fn of_status(status: &HashMap<String, String>, is_rocksdb: bool) -> Vec<Counter> {
    let number = |name: &str| status.get(name)?.parse::<f64>().ok();
    let mut counters = of_figures(STATUS, status);
    if let (Some(all), Some(log)) = (number("innodb_data_fsyncs"), number("innodb_os_log_fsyncs")) {
        // Each is read at a moment of its own.
        let data = Counter::cumulative("innodb_data_fsync_count", (all - log).max(0.0));
        counters.push(data.with_role(Role::DataFsyncCount));
    }
    if let (Some(now), Some(checkpoint)) = (
        number("innodb_redo_log_current_lsn"),
        number("innodb_redo_log_checkpoint_lsn"),
    ) {
        counters.extend(of_redo(now, Some(checkpoint)));
    }
    counters.extend(of_stalls(status));
    for counter in &mut counters {
        // The files and the log of one of the two are not those of the tables that are measured.
        let is_of_files = matches!(
            counter.role,
            Some(Role::LogFsyncCount | Role::DataFsyncCount | Role::LogBytes)
        );
        let is_of_rocksdb = counter.name.starts_with("rocksdb_");
        if (is_of_files || is_of_rocksdb) && is_of_rocksdb != is_rocksdb {
            counter.role = counter.role.map(|_| Role::Work);
        }
    }
    counters
}

/// Time and number of stalls of MyRocks, by reason in the library's words.
fn of_stalls(status: &HashMap<String, String>) -> Vec<Counter> {
    let number = |name: &str| status.get(name)?.parse::<f64>().ok();
    let time = number(STALL_MICROS).map(|us| {
        let counter = Counter::cumulative("rocksdb_stall_seconds", us / 1e6);
        counter.with_role(Role::StallSeconds)
    });
    let mut counters = Vec::from_iter(time);
    for (theirs, reason) in STALL_REASONS {
        for (sort_there, sort) in STALL_SORTS {
            let count = number(&format!("{STALL}{theirs}_{sort_there}"));
            counters.extend(count.map(|count| {
                let name = format!("rocksdb_write_stall_count.{reason}-{sort}");
                Counter::cumulative(name, count).with_role(Role::WriteStallCount)
            }));
        }
    }
    add_stall_totals(&mut counters);
    counters
}

/// Adds how often all that makes commits durable was synced: each engine's files, and the binary log where there is one.
fn add_fsyncs(counters: &mut Vec<Counter>) {
    let of = |name: &str| {
        let mut counters = counters.iter();
        counters
            .find(|counter| counter.name == name)
            .map(|it| it.value)
    };
    if let Some(innodb) = of("innodb_fsync_count") {
        let others =
            ["rocksdb_wal_sync_count", "binlog_sync_count"].map(|name| of(name).unwrap_or(0.0));
        let all = Counter::cumulative("fsync_count", innodb + others.iter().sum::<f64>());
        counters.push(all.with_role(Role::FsyncCount));
    }
}

/// Reads the text of `show engine innodb status`; nothing where this user may not.
pub(super) fn innodb_status(session: &mut MysqlSession) -> Result<String, Error> {
    // One row: its kind, its name, its text.
    let rows = if_present(session, "show engine innodb status")?;
    let text = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().nth(2));
    Ok(text.flatten().unwrap_or_default())
}

/// The number that follows `name` at the beginning of a line.
pub(super) fn number_after(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// What `show engine innodb status` tells of the redo log: `Log sequence number 1625987`, `Last checkpoint at  1625000`.
fn of_redo_text(text: &str) -> Vec<Counter> {
    let now = number_after(text, REDO_POSITION);
    now.map_or_else(Vec::new, |now| {
        of_redo(now, number_after(text, REDO_CHECKPOINT))
    })
}

fn of_redo(now: f64, checkpoint: Option<f64>) -> Vec<Counter> {
    let age = checkpoint.map(|checkpoint| {
        let age = Counter::gauge("checkpoint_age_bytes", now - checkpoint);
        age.with_role(Role::CheckpointAgeBytes)
    });
    let position = Counter::cumulative(REDO_BYTES, now);
    std::iter::once(position).chain(age).collect()
}

/// What `show engine rocksdb status` tells of the levels of the tree, summed over column families: the lines
/// `  L1      2/0    64.31 MB   0.5 ...` of the tables by level, and `Estimated pending compaction bytes: N`.
fn of_levels(text: &str) -> Vec<Counter> {
    let mut counters = Vec::new();
    levels(text, &mut counters);
    let is_size = |it: &Counter| it.role == Some(Role::LevelBytes);
    counters.retain(|it| is_size(it) || it.role == Some(Role::LevelFileCount));
    for counter in &mut counters {
        counter.name.insert_str(0, "rocksdb_");
    }
    if !counters.is_empty() {
        let bytes = counters
            .iter()
            .filter(|it| is_size(it))
            .map(|it| it.value)
            .sum();
        counters.push(Counter::gauge("rocksdb_live_sst_bytes", bytes).with_role(Role::TreeBytes));
    }
    counters.extend(
        number_after(text, "Estimated pending compaction bytes:").map(|bytes| {
            let pending = Counter::gauge("rocksdb_pending_compaction_bytes", bytes);
            pending.with_role(Role::PendingCompactionBytes)
        }),
    );
    counters
}

/// Counters of InnoDB that have to be as_boolean on, and of them those that are.
fn of_metrics(session: &mut MysqlSession, is_mariadb: bool) -> Result<Vec<Counter>, Error> {
    let is_on = if is_mariadb {
        "enabled = 1"
    } else {
        "status = 'enabled'"
    };
    let sql = format!(
        "select name, count from information_schema.innodb_metrics where name in ({}) and {is_on}",
        quoted(METRICS.iter().map(|figure| figure.source))
    );
    Ok(of_figures(METRICS, &pairs(if_present(session, &sql)?)))
}

/// Counters of the binary log of a MySQL; none where its performance schema is off.
fn of_binlog(session: &mut MysqlSession) -> Result<Vec<Counter>, Error> {
    let rows = if_present(session, BINLOG_FILES)?;
    let values = rows.into_iter().flatten();
    let counters = [
        ("binlog_bytes", Role::Work),
        ("binlog_sync_count", Role::BinlogFsyncCount),
    ]
    .into_iter()
    .zip(values)
    .filter_map(|((name, role), value)| {
        Some(Counter::cumulative(name, value?.parse().ok()?).with_role(role))
    });
    Ok(counters.collect())
}

/// What MyRocks says of its memory and its tree.
pub(super) fn of_rocksdb(session: &mut MysqlSession) -> Result<Vec<Counter>, Error> {
    const MEMORY: &[Figure] = figures! {
        Gauge "cur_size_all_mem_tables" => "rocksdb_memtable_bytes" MemtableBytes;
        Gauge "num_immutable_mem_table" => "rocksdb_immutable_memtable_count";
        Gauge "mem_table_flush_pending" => "rocksdb_flush_pending_count";
        Gauge "compaction_pending" => "rocksdb_compaction_pending_count";
    };
    let sql =
        "select stat_type, sum(value) from information_schema.rocksdb_cfstats group by stat_type";
    let stats = pairs(if_present(session, sql)?);
    let mut counters = of_figures(MEMORY, &stats);
    for row in if_present(session, "show engine rocksdb status")? {
        if let [Some(kind), _, Some(text)] = row.as_slice()
            && kind == "CF_COMPACTION"
        {
            merge(&mut counters, of_levels(text));
        }
    }
    Ok(counters)
}

/// Adds counters, to those of the same name where there are such: column families have a text each.
fn merge(counters: &mut Vec<Counter>, more: Vec<Counter>) {
    for counter in more {
        match counters.iter_mut().find(|known| known.name == counter.name) {
            Some(known) => known.value += counter.value,
            None => counters.push(counter),
        }
    }
}

struct MysqlObserver {
    session: MysqlSession,
    tables: Vec<Table>,
    is_mariadb: bool,
    is_rocksdb: bool,
    has_binlog: bool,
}

/// Opens an observer's connection.
pub(super) fn open(mysql: &Mysql, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
    let mut session = MysqlSession::connect(&mysql.address)?;
    if mysql.kind.version.is_mysql_from(8, 0, 0) {
        // Sizes of tables are otherwise a day old.
        session.query("set session information_schema_stats_expiry = 0")?;
    }
    // It is idle for as long as a step lasts, which may be more than sessions are left: the longest that can be set.
    session.query("set session wait_timeout = 31536000")?;
    let has_binlog = session.variable("log_bin")?.as_deref() == Some("ON");
    Ok(Box::new(MysqlObserver {
        has_binlog,
        session,
        tables: tables.to_vec(),
        is_mariadb: mysql.kind.version.is_mariadb(),
        is_rocksdb: mysql.kind.dialect.storage_engine == StorageEngine::RocksDb,
    }))
}

impl MysqlObserver {
    fn of_tables(&mut self) -> Result<Vec<Counter>, Error> {
        if self.tables.is_empty() {
            return Ok(Vec::new());
        }
        const FIGURES: &[Figure] = figures! {
            Gauge "data_length" => "table_bytes";
            Gauge "index_length" => "index_bytes";
            Gauge "data_free" => "free_bytes";
        };
        let figures = Vec::from_iter(FIGURES);
        let columns: Vec<&str> = figures.iter().map(|figure| figure.source).collect();
        let sql = format!(
            "select table_name, {} from information_schema.tables \
             where table_schema = database() and table_name in ({})",
            columns.join(", "),
            quoted(self.tables.iter().map(|table| table.name.as_str()))
        );
        Ok(table_counters(self.session.query(&sql)?, &figures))
    }

    fn of_server(&mut self) -> Result<Vec<Counter>, Error> {
        let status = pairs(self.session.query("show global status")?);
        let mut counters = of_status(&status, self.is_rocksdb);
        let is_redo = |counter: &Counter| counter.name == REDO_BYTES;
        if !counters.iter().any(is_redo) {
            counters.extend(of_redo_text(&innodb_status(&mut self.session)?));
        }
        // What is a status variable as well is taken from there.
        for counter in of_metrics(&mut self.session, self.is_mariadb)? {
            if !counters.iter().any(|known| known.name == counter.name) {
                counters.push(counter);
            }
        }
        if !self.has_binlog {
            counters.retain(|counter| !counter.name.starts_with(BINLOG));
        } else if !self.is_mariadb {
            counters.extend(of_binlog(&mut self.session)?);
        }
        add_fsyncs(&mut counters);
        Ok(counters)
    }
}

impl Observer for MysqlObserver {
    fn counters(&mut self) -> Result<Vec<Counter>, Error> {
        let mut counters = self.of_server()?;
        if self.is_rocksdb {
            counters.extend(of_rocksdb(&mut self.session)?);
        }
        counters.extend(self.of_tables()?);
        Ok(counters)
    }

    fn sample(&mut self) -> Result<Vec<Counter>, Error> {
        self.of_server()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(counters: &[Counter], name: &str) -> Option<f64> {
        let mut found = counters.iter().filter(|counter| counter.name == name);
        let value = found.next().map(|counter| counter.value);
        assert!(found.next().is_none(), "`{name}` twice");
        value
    }

    #[test]
    fn what_a_server_lacks_is_absent() {
        let status = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()));
            of_status(&pairs.collect(), false)
        };
        let mariadb = status(&[("innodb_data_fsyncs", "12"), ("innodb_lsn_current", "900")]);
        assert_eq!(value(&mariadb, "innodb_fsync_count"), Some(12.0));
        assert_eq!(value(&mariadb, "innodb_data_fsync_count"), None);
        assert_eq!(value(&mariadb, "redo_position_bytes"), Some(900.0));
        let mysql = status(&[
            ("innodb_data_fsyncs", "12"),
            ("innodb_os_log_fsyncs", "5"),
            ("innodb_redo_log_current_lsn", "900"),
            ("innodb_redo_log_checkpoint_lsn", "300"),
        ]);
        assert_eq!(value(&mysql, "innodb_data_fsync_count"), Some(7.0));
        assert_eq!(value(&mysql, "checkpoint_age_bytes"), Some(600.0));
        assert_eq!(value(&mysql, "binlog_bytes"), None);
    }

    #[test]
    fn the_redo_log_is_read_from_the_engines_text() {
        let text = "---\nLOG\n---\nLog sequence number 1625987\nLog flushed up to   1625900\n\
            Pages flushed up to 1625000\nLast checkpoint at  1625000\n0 pending log writes\n";
        let counters = of_redo_text(text);
        assert_eq!(value(&counters, "redo_position_bytes"), Some(1_625_987.0));
        assert_eq!(value(&counters, "checkpoint_age_bytes"), Some(987.0));
        assert!(of_redo_text("END OF INNODB MONITOR OUTPUT").is_empty());
    }

    #[test]
    fn stalls_have_the_librarys_reasons_and_totals() {
        let mut status = HashMap::from([(STALL_MICROS.to_owned(), "1500000".to_owned())]);
        let mut add =
            |name: &str, count: u32| status.insert(format!("{STALL}{name}"), count.to_string());
        add("l0_file_count_limit_slowdowns", 3);
        add("memtable_limit_slowdowns", 4);
        add("pending_compaction_limit_slowdowns", 5);
        add("l0_file_count_limit_stops", 2);
        let counters = of_status(&status, true);
        assert!(counters.iter().all(|counter| counter.role.is_some()));
        let expected = [
            ("rocksdb_stall_seconds", 1.5),
            ("rocksdb_write_stall_count.l0-file-count-limit-delays", 3.0),
            ("rocksdb_write_stall_count.memtable-limit-delays", 4.0),
            (
                "rocksdb_write_stall_count.pending-compaction-bytes-delays",
                5.0,
            ),
            ("rocksdb_write_stall_count.l0-file-count-limit-stops", 2.0),
            ("rocksdb_write_stall_count.total-delays", 12.0),
        ];
        assert_eq!(counters.len(), expected.len());
        for (name, number) in expected {
            assert_eq!(value(&counters, name), Some(number), "{name}");
        }
    }

    #[test]
    fn fsyncs_are_of_the_engine_that_keeps_the_tables_and_all_add_up() {
        let status = [
            ("innodb_data_fsyncs", "300"),
            ("innodb_os_log_fsyncs", "240"),
            ("rocksdb_wal_synced", "50"),
            ("syncs", "100"),
        ];
        let status: HashMap<_, _> = status
            .map(|(name, count)| (name.into(), count.into()))
            .into();
        let of = |is_rocksdb| {
            let mut counters = of_status(&status, is_rocksdb);
            add_fsyncs(&mut counters);
            let role = |role| {
                let mut counters = counters.iter();
                counters.find(|it| it.role == Some(role)).map(|it| it.value)
            };
            [
                Role::FsyncCount,
                Role::LogFsyncCount,
                Role::DataFsyncCount,
                Role::BinlogFsyncCount,
            ]
            .map(role)
        };
        assert_eq!(of(false), [450.0, 240.0, 60.0, 100.0].map(Some));
        assert_eq!(of(true), [Some(450.0), Some(50.0), None, Some(100.0)]);
    }

    #[test]
    fn levels_are_read_from_the_engines_text() {
        let text = "\n** Compaction Stats [default] **\n\
            Level    Files   Size     Score Read(GB)\n\
            -----------------------------\n\
            \x20 L0      2/0    1.50 KB   0.5      0.0\n\
            \x20 L6     10/1    2.00 GB   0.0      0.0\n\
            \x20Sum     12/1    2.00 GB   0.0      0.0\n\n\
            Priority    Files   Size     Score\n\
            \x20Low      0/0    0.00 KB   0.0\n\
            Estimated pending compaction bytes: 77\n";
        let mut counters = of_levels(text);
        assert_eq!(value(&counters, "rocksdb_level_bytes.0"), Some(1536.0));
        assert_eq!(value(&counters, "rocksdb_level_file_count.6"), Some(10.0));
        assert_eq!(
            value(&counters, "rocksdb_pending_compaction_bytes"),
            Some(77.0)
        );
        merge(&mut counters, of_levels(text));
        assert_eq!(value(&counters, "rocksdb_level_bytes.0"), Some(3072.0));
        assert_eq!(of_levels("nonsense L0 x").len(), 0);
    }
}
