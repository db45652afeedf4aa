//! Reads the counters that a server has, and omits those that it lacks.
//!
//! `innodb_fsync_count` counts all fsyncs of InnoDB, including its redo log. If the server counts
//! the log's separately, `innodb_data_fsync_count` counts the others. `handler_commit_count` counts
//! once for each storage engine in a transaction, including the binary log, and also counts
//! read-only statements. Counters of the binary log exist only with one. `binlog_sync_count` is a
//! little too high: MySQL adds opening and closing the log's files, and MariaDB the syncs of DDL
//! statements. Sizes of tables are the server's estimates.

use std::collections::HashMap;

use words::{Counter, Role};

use super::session::MysqlSession;
use super::status::{engine_status, innodb_status};
use super::{Mysql, StorageEngine, sizes};
use crate::contract::{HEARTBEAT_TABLE, Observer, Session, Table};
use crate::error::Error;
use crate::libraries::rocksdb::{add_stall_totals, levels};
use crate::support::figures::{Figure, figures, quoted, session_states};

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
    Gauge "innodb_buffer_pool_pages_dirty" => "dirty_page_count" DirtyPageCount;
    Gauge "innodb_buffer_pool_pages_free" => "free_page_count";
    Cumulative "innodb_buffer_pool_read_requests" => "innodb_buffer_read_request_count" Work;
    Cumulative "innodb_buffer_pool_reads" => "innodb_buffer_miss_count" Work;
    Cumulative "innodb_buffer_pool_wait_free" => "innodb_buffer_wait_free_count" Work;
    Cumulative "innodb_ibuf_merges" => "change_buffer_merge_count" Work;
    Cumulative "innodb_row_lock_waits" => "row_lock_wait_count" LockWaitCount;
    Cumulative "innodb_row_lock_time" => "row_lock_wait_ms" LockWaitTime;
    Cumulative "innodb_deadlocks" => "deadlock_count" DeadlockCount;
    Cumulative "innodb_rows_inserted" => "row_inserted_count";
    Cumulative "innodb_rows_updated" => "row_updated_count";
    Cumulative "innodb_rows_deleted" => "row_deleted_count";
    Cumulative "innodb_rows_read" => "row_read_count" Work;
    Cumulative "binlog_bytes_written" => "binlog_bytes" Work;
    Cumulative "syncs" => "binlog_sync_count" BinlogFsyncCount;
    Cumulative "binlog_commits" => "binlog_commit_count";
    Cumulative "binlog_group_commits" => "binlog_group_commit_count";
    Cumulative "binlog_cache_disk_use" => "binlog_cache_disk_use_count" Work;
    Cumulative "rpl_semi_sync_master_yes_tx" => "semi_sync_waited_commit_count";
    Cumulative "rpl_semi_sync_source_yes_tx" => "semi_sync_waited_commit_count";
    Cumulative "rpl_semi_sync_master_no_tx" => "semi_sync_not_waited_commit_count";
    Cumulative "rpl_semi_sync_source_no_tx" => "semi_sync_not_waited_commit_count";
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

/// The prefix of status variables of stalls. A reason follows, and whether writes were slowed down
/// or stopped.
const STALL: &str = "rocksdb_stall_";
const STALL_MICROS: &str = "rocksdb_stall_micros";
/// The names of reasons and kinds of stalls in MyRocks, and in RocksDB's library.
const STALL_REASONS: [(&str, &str); 3] = [
    ("l0_file_count_limit", "l0-file-count-limit"),
    ("memtable_limit", "memtable-limit"),
    ("pending_compaction_limit", "pending-compaction-bytes"),
];
const STALL_KINDS: [(&str, &str); 2] = [("slowdowns", "delays"), ("stops", "stops")];

/// Counters of `innodb_metrics`, which are not status variables.
const METRICS: &[Figure] = figures! {
    Gauge "trx_rseg_history_len" => "history_list_length" HistoryListLength;
    Cumulative "ibuf_merges" => "change_buffer_merge_count" Work;
    Cumulative "lock_deadlocks" => "deadlock_count" DeadlockCount;
    Gauge "log_lsn_checkpoint_age" => "checkpoint_age_bytes" CheckpointAgeBytes;
    Gauge "buffer_pool_bytes_dirty" => "dirty_bytes" DirtyBytes;
};

/// The texts about the redo log in InnoDB's status, for MySQL before 8.0.30, which has no status
/// variables of it.
const REDO_POSITION: &str = "Log sequence number";
const REDO_CHECKPOINT: &str = "Last checkpoint at";
const REDO_BYTES: &str = "redo_position_bytes";

/// The query for MySQL's counters of the binary log's files, for which there are no status
/// variables. `misc` operations are syncs, and a few for each file that is opened.
const BINLOG_FILES: &str = "select sum_number_of_bytes_write, count_misc \
     from performance_schema.file_summary_by_event_name where event_name = 'wait/io/file/sql/binlog'";

/// The prefixes of the counters of the binary log, and of commits that wait for replicas.
const BINLOG: &str = "binlog_";
const SEMI_SYNC: &str = "semi_sync_";

/// The variables that say whether commits wait for replicas.
const SEMI_SYNC_ENABLED: [&str; 2] =
    ["rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"];

/// The error codes for a missing table, column, privilege or plugin.
const ABSENT: [&str; 8] = ["1044", "1054", "1109", "1142", "1146", "1227", "1235", "1286"];

/// Returns the rows of `sql`; none if the server lacks the table, or the user the privilege.
pub(super) fn if_present(
    session: &mut MysqlSession,
    sql: &str,
) -> Result<Vec<Vec<Option<String>>>, Error> {
    match session.query(sql) {
        Err(error) if error.code.as_deref().is_some_and(|code| ABSENT.contains(&code)) => {
            Ok(Vec::new())
        }
        result => result,
    }
}

/// Converts rows to a map from lower-case names to values.
pub(super) fn pairs(rows: Vec<Vec<Option<String>>>) -> HashMap<String, String> {
    rows.into_iter()
        .filter_map(|row| {
            let mut values = row.into_iter();
            Some((values.next()??.to_ascii_lowercase(), values.next()??))
        })
        .collect()
}

/// Returns the counters of the `figures` that have a value.
fn figure_counters(figures: &[Figure], values: &HashMap<String, String>) -> Vec<Counter> {
    let counter = |figure: &Figure| Some(figure.counter(values.get(figure.source)?.parse().ok()?));
    figures.iter().filter_map(counter).collect()
}

/// Returns the counters in the status variables.
fn status_counters(status: &HashMap<String, String>) -> Vec<Counter> {
    let number = |name: &str| status.get(name)?.parse::<f64>().ok();
    let mut counters = figure_counters(STATUS, status);
    if let (Some(all), Some(log)) = (number("innodb_data_fsyncs"), number("innodb_os_log_fsyncs")) {
        // The server reads the two at different moments.
        let data = Counter::cumulative("innodb_data_fsync_count", (all - log).max(0.0));
        counters.push(data.with_role(Role::DataFsyncCount));
    }

    if let (Some(now), Some(checkpoint)) =
        (number("innodb_redo_log_current_lsn"), number("innodb_redo_log_checkpoint_lsn"))
    {
        counters.extend(redo_counters(now, Some(checkpoint)));
    }
    counters.extend(stall_counters(status));
    counters
}

/// Leaves the roles of files and logs only to counters of the storage engine that has the measured
/// tables. What the others do is other work.
fn keep_roles_of(counters: &mut [Counter], storage_engine: &StorageEngine) {
    for counter in counters {
        let is_rocksdb_counter = counter.name.starts_with("rocksdb_");
        let is_of_others = match storage_engine {
            StorageEngine::InnoDb => is_rocksdb_counter,
            StorageEngine::RocksDb => !is_rocksdb_counter && is_about_files(counter.role),
            StorageEngine::Other(_) => {
                is_rocksdb_counter
                    || is_about_files(counter.role)
                    || is_about_pending_work(counter.role)
            }
        };

        if is_of_others {
            counter.role = counter.role.map(|_| Role::Work);
        }
    }
}

fn is_about_files(role: Option<Role>) -> bool {
    matches!(role, Some(Role::LogFsyncCount | Role::DataFsyncCount | Role::LogBytes))
}

fn is_about_pending_work(role: Option<Role>) -> bool {
    matches!(
        role,
        Some(
            Role::WrittenBytes
                | Role::CheckpointAgeBytes
                | Role::HistoryListLength
                | Role::DirtyBytes
                | Role::DirtyPageCount
        )
    )
}

/// Returns the time and number of MyRocks's stalls, by reason.
fn stall_counters(status: &HashMap<String, String>) -> Vec<Counter> {
    let number = |name: &str| status.get(name)?.parse::<f64>().ok();
    let time = number(STALL_MICROS).map(|us| {
        let counter = Counter::cumulative("rocksdb_stall_seconds", us / 1e6);
        counter.with_role(Role::StallSeconds)
    });

    let mut counters = Vec::from_iter(time);
    for (myrocks_reason, reason) in STALL_REASONS {
        for (myrocks_kind, kind) in STALL_KINDS {
            let count = number(&format!("{STALL}{myrocks_reason}_{myrocks_kind}"));
            counters.extend(count.map(|count| {
                let name = format!("rocksdb_write_stall_count.{reason}-{kind}");
                Counter::cumulative(name, count).with_role(Role::WriteStallCount)
            }));
        }
    }
    add_stall_totals(&mut counters);
    counters
}

/// Adds the number of all fsyncs: of each engine's files, and of the binary log.
fn add_fsyncs(counters: &mut Vec<Counter>) {
    let value = |name: &str| {
        let counter = counters.iter().find(|counter| counter.name == name);
        counter.map(|counter| counter.value)
    };

    if let Some(innodb) = value("innodb_fsync_count") {
        let others =
            ["rocksdb_wal_sync_count", "binlog_sync_count"].map(|name| value(name).unwrap_or(0.0));
        let all = Counter::cumulative("fsync_count", innodb + others.iter().sum::<f64>());
        counters.push(all.with_role(Role::FsyncCount));
    }
}

/// Returns the number after `name` at the beginning of a line.
pub(super) fn number_after(text: &str, name: &str) -> Option<f64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

/// Parses the redo log's counters in `show engine innodb status`: `Log sequence number 1625987`,
/// `Last checkpoint at  1625000`.
fn parse_redo(text: &str) -> Vec<Counter> {
    let now = number_after(text, REDO_POSITION);
    now.map_or_else(Vec::new, |now| redo_counters(now, number_after(text, REDO_CHECKPOINT)))
}

fn redo_counters(now: f64, checkpoint: Option<f64>) -> Vec<Counter> {
    let age = checkpoint.map(|checkpoint| {
        let age = Counter::gauge("checkpoint_age_bytes", now - checkpoint);
        age.with_role(Role::CheckpointAgeBytes)
    });
    let position = Counter::cumulative(REDO_BYTES, now);
    std::iter::once(position).chain(age).collect()
}

/// Parses a column family's levels in `show engine rocksdb status`: lines such as `  L1      2/0
/// 64.31 MB   0.5 ...`, and `Estimated pending compaction bytes: N`.
fn level_counters(text: &str) -> Vec<Counter> {
    let mut counters = Vec::new();
    levels(text, &mut counters);
    counters
        .retain(|counter| matches!(counter.role, Some(Role::LevelBytes | Role::LevelFileCount)));

    for counter in &mut counters {
        counter.name.insert_str(0, "rocksdb_");
    }

    if !counters.is_empty() {
        let sizes = counters.iter().filter(|counter| counter.role == Some(Role::LevelBytes));
        let bytes = sizes.map(|counter| counter.value).sum();
        counters.push(Counter::gauge("rocksdb_live_sst_bytes", bytes).with_role(Role::TreeBytes));
    }

    counters.extend(number_after(text, "Estimated pending compaction bytes:").map(|bytes| {
        let pending = Counter::gauge("rocksdb_pending_compaction_bytes", bytes);
        pending.with_role(Role::PendingCompactionBytes)
    }));
    counters
}

/// Reads the counters of `innodb_metrics` that are enabled.
fn metrics_counters(session: &mut MysqlSession, is_mariadb: bool) -> Result<Vec<Counter>, Error> {
    let is_on = if is_mariadb { "enabled = 1" } else { "status = 'enabled'" };
    let sql = format!(
        "select name, count from information_schema.innodb_metrics where name in ({}) and {is_on}",
        quoted(METRICS.iter().map(|figure| figure.source))
    );
    Ok(figure_counters(METRICS, &pairs(if_present(session, &sql)?)))
}

/// Reads MySQL's counters of the binary log; none if its performance schema is off.
fn binlog_counters(session: &mut MysqlSession) -> Result<Vec<Counter>, Error> {
    let rows = if_present(session, BINLOG_FILES)?;
    let values = rows.into_iter().flatten();

    let counters = [("binlog_bytes", Role::Work), ("binlog_sync_count", Role::BinlogFsyncCount)]
        .into_iter()
        .zip(values)
        .filter_map(|((name, role), value)| {
            Some(Counter::cumulative(name, value?.parse().ok()?).with_role(role))
        });

    Ok(counters.collect())
}

/// Reads MyRocks's counters of its memory and its tree.
pub(super) fn rocksdb_counters(session: &mut MysqlSession) -> Result<Vec<Counter>, Error> {
    const MEMORY: &[Figure] = figures! {
        Gauge "cur_size_all_mem_tables" => "rocksdb_memtable_bytes" MemtableBytes;
        Gauge "num_immutable_mem_table" => "rocksdb_immutable_memtable_count";
        Gauge "mem_table_flush_pending" => "rocksdb_flush_pending_count";
        Gauge "compaction_pending" => "rocksdb_compaction_pending_count";
    };
    let sql =
        "select stat_type, sum(value) from information_schema.rocksdb_cfstats group by stat_type";
    let stats = pairs(if_present(session, sql)?);
    let mut counters = figure_counters(MEMORY, &stats);

    for row in if_present(session, "show engine rocksdb status")? {
        if let [Some(kind), _, Some(text)] = row.as_slice()
            && kind == "CF_COMPACTION"
        {
            merge(&mut counters, level_counters(text));
        }
    }
    Ok(counters)
}

/// Adds counters to those with the same names, because each column family has its own text.
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
    storage_engine: StorageEngine,
    /// The prefix of InnoDB's views in `information_schema`.
    innodb_views: &'static str,
    has_binlog: bool,
    has_semi_sync: bool,
}

/// Opens an observer's connection.
pub(super) fn open(mysql: &Mysql, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
    let mut session = MysqlSession::connect(&mysql.address)?;
    if mysql.kind.version.is_mysql_from(8, 0, 0) {
        // By default, sizes of tables may be a day old.
        session.query("set session information_schema_stats_expiry = 0")?;
    }
    // The session is idle during a step, so it gets the longest timeout.
    session.query("set session wait_timeout = 31536000")?;

    let has_binlog = session.variable("log_bin")?.as_deref() == Some("ON");
    let waits = session.query(&format!(
        "show global variables where variable_name in ({}) and value = 'ON'",
        quoted(SEMI_SYNC_ENABLED.into_iter())
    ))?;

    Ok(Box::new(MysqlObserver {
        has_binlog,
        has_semi_sync: !waits.is_empty(),
        session,
        tables: tables.to_vec(),
        is_mariadb: mysql.kind.version.is_mariadb(),
        innodb_views: if mysql.kind.version.is_mysql_from(8, 0, 0) {
            "innodb_"
        } else {
            "innodb_sys_"
        },
        storage_engine: mysql.kind.dialect.storage_engine.clone(),
    }))
}

impl MysqlObserver {
    fn server_counters(&mut self) -> Result<Vec<Counter>, Error> {
        let status = pairs(self.session.query("show global status")?);
        let mut counters = status_counters(&status);

        if !counters.iter().any(|counter| counter.name == REDO_BYTES) {
            counters.extend(parse_redo(&innodb_status(&mut self.session)?));
        }

        // Status variables take precedence.
        for counter in metrics_counters(&mut self.session, self.is_mariadb)? {
            if !counters.iter().any(|known| known.name == counter.name) {
                counters.push(counter);
            }
        }

        if !self.has_semi_sync {
            counters.retain(|counter| !counter.name.starts_with(SEMI_SYNC));
        }
        if !self.has_binlog {
            counters.retain(|counter| !counter.name.starts_with(BINLOG));
        } else if !self.is_mariadb {
            counters.extend(binlog_counters(&mut self.session)?);
        }

        keep_roles_of(&mut counters, &self.storage_engine);
        if !matches!(self.storage_engine, StorageEngine::Other(_)) {
            add_fsyncs(&mut counters);
        }
        Ok(counters)
    }
}

impl Observer for MysqlObserver {
    fn counters(&mut self) -> Result<Vec<Counter>, Error> {
        let mut counters = self.server_counters()?;
        let session = &mut self.session;

        counters.extend(match self.storage_engine {
            StorageEngine::RocksDb => rocksdb_counters(session)?,
            StorageEngine::InnoDb => sizes::of_innodb(session, &self.tables, self.innodb_views)?,
            StorageEngine::Other(_) => sizes::of_others(session, &self.tables)?,
        });

        counters.extend(sizes::of_tables(session, &self.tables)?);
        Ok(counters)
    }

    fn sample(&mut self) -> Result<Vec<Counter>, Error> {
        self.server_counters()
    }

    fn status(&mut self) -> Result<Option<String>, Error> {
        engine_status(&mut self.session, &self.storage_engine).map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }

    fn session_states(&mut self) -> Result<Option<Vec<(String, u64)>>, Error> {
        let sql = format!(
            "select case when state is null or state = '' then 'running' else lower(state) end, count(*) \
             from information_schema.processlist \
             where db = database() and command not in ('Sleep', 'Daemon') and id <> connection_id() \
             and coalesce(info, '') not like '%{HEARTBEAT_TABLE}%' group by 1"
        );
        Ok(Some(session_states(self.session.query(&sql)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(counters: &[Counter], name: &str) -> Option<f64> {
        let mut counters = counters.iter().filter(|counter| counter.name == name);
        let value = counters.next().map(|counter| counter.value);
        assert!(counters.next().is_none(), "duplicate counter `{name}`");
        value
    }

    #[test]
    fn a_counter_that_a_server_lacks_is_absent() {
        let status = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            status_counters(&pairs.collect())
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
    fn the_redo_log_is_parsed_from_the_engines_text() {
        let text = "---\nLOG\n---\nLog sequence number 1625987\nLog flushed up to   1625900\n\
            Pages flushed up to 1625000\nLast checkpoint at  1625000\n0 pending log writes\n";
        let counters = parse_redo(text);
        assert_eq!(value(&counters, "redo_position_bytes"), Some(1_625_987.0));
        assert_eq!(value(&counters, "checkpoint_age_bytes"), Some(987.0));
        assert!(parse_redo("END OF INNODB MONITOR OUTPUT").is_empty());
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
        let counters = status_counters(&status);
        assert!(counters.iter().all(|counter| counter.role.is_some()));
        let expected = [
            ("rocksdb_stall_seconds", 1.5),
            ("rocksdb_write_stall_count.l0-file-count-limit-delays", 3.0),
            ("rocksdb_write_stall_count.memtable-limit-delays", 4.0),
            ("rocksdb_write_stall_count.pending-compaction-bytes-delays", 5.0),
            ("rocksdb_write_stall_count.l0-file-count-limit-stops", 2.0),
            ("rocksdb_write_stall_count.total-delays", 12.0),
        ];
        assert_eq!(counters.len(), expected.len());
        for (name, number) in expected {
            assert_eq!(value(&counters, name), Some(number), "{name}");
        }
    }

    #[test]
    fn fsync_roles_belong_to_the_engine_of_the_tables() {
        let status = [
            ("innodb_data_fsyncs", "300"),
            ("innodb_os_log_fsyncs", "240"),
            ("rocksdb_wal_synced", "50"),
            ("syncs", "100"),
        ];
        let status: HashMap<_, _> = status.map(|(name, count)| (name.into(), count.into())).into();
        let of = |storage_engine: &str| {
            let mut counters = status_counters(&status);
            keep_roles_of(&mut counters, &StorageEngine::by_name(storage_engine));
            add_fsyncs(&mut counters);
            let role = |role| {
                let mut counters = counters.iter();
                counters.find(|it| it.role == Some(role)).map(|it| it.value)
            };
            [Role::FsyncCount, Role::LogFsyncCount, Role::DataFsyncCount, Role::BinlogFsyncCount]
                .map(role)
        };
        assert_eq!(of("innodb"), [450.0, 240.0, 60.0, 100.0].map(Some));
        assert_eq!(of("rocksdb"), [Some(450.0), Some(50.0), None, Some(100.0)]);
        assert_eq!(of("aria")[1..], [None, None, Some(100.0)]);
    }

    #[test]
    fn levels_are_parsed_from_the_engines_text() {
        let text = "\n** Compaction Stats [default] **\n\
            Level    Files   Size     Score Read(GB)\n\
            -----------------------------\n\
            \x20 L0      2/0    1.50 KB   0.5      0.0\n\
            \x20 L6     10/1    2.00 GB   0.0      0.0\n\
            \x20Sum     12/1    2.00 GB   0.0      0.0\n\n\
            Priority    Files   Size     Score\n\
            \x20Low      0/0    0.00 KB   0.0\n\
            Estimated pending compaction bytes: 77\n";
        let mut counters = level_counters(text);
        assert_eq!(value(&counters, "rocksdb_level_bytes.0"), Some(1536.0));
        assert_eq!(value(&counters, "rocksdb_level_file_count.6"), Some(10.0));
        assert_eq!(value(&counters, "rocksdb_pending_compaction_bytes"), Some(77.0));
        merge(&mut counters, level_counters(text));
        assert_eq!(value(&counters, "rocksdb_level_bytes.0"), Some(3072.0));
        assert_eq!(level_counters("nonsense L0 x").len(), 0);
    }
}
