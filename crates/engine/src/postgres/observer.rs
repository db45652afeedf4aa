//! Counters, by the views of each version.
//!
//! A backend hands its statistics on when a transaction ends, but not more often than once a second, and for good when
//! it ends itself. Counters read right after a step are therefore complete only when the sessions of the load have
//! been closed; those that are still open may hold back what they did in their last second. Backends end a moment after
//! their sessions are closed, and are waited for. Before PostgreSQL 15 statistics also pass through a collector, whose
//! figures may be half a second old: [`Observer::counters`] waits for younger ones, [`Observer::sample`] takes what is
//! there. WAL by position (`wal_position_bytes`) and sizes are exact at all times.
//!
//! What a version does not have is left out. A name means the same on every version: where a view moved or was split,
//! the figure is put together from what took its place.

use std::ops::Range;
use std::time::Duration;

use super::session::PostgresSession;
use super::{Address, Postgres};
use crate::figures::{Figure, figures, quoted, table_counters};
use crate::guard::Deadline;
use crate::{Counter, Error, Observer, Role, Session, Table};

/// Tables and partitions beyond which those of each table are not read every second.
const SAMPLED_TABLES_MAX: usize = 256;

/// How long [`Observer::counters`] waits for sessions of the load that have been closed: their backends need
/// milliseconds, and those of sessions that are still open are not waited for any longer.
const CLOSING_MAX: Duration = Duration::from_millis(200);

/// How long the collector of versions before 15 may take to write down what it knows: it does so on demand, when what
/// it last wrote is half a second old.
const COLLECTING_MAX: Duration = Duration::from_secs(3);

/// Figures that one row of one view gives. What an engine calls them is the SQL for each.
struct Source {
    /// The major versions that have them.
    versions: Range<u32>,
    /// Read each second too.
    is_sampled: bool,
    from: &'static str,
    figures: &'static [Figure],
}

const EVER: Range<u32> = 0..u32::MAX;
const EACH_SECOND: bool = true;
const AT_ENDS: bool = false;

/// A table of sources: the versions, whether they are read each second too, what they are read from, and the figures.
macro_rules! sources {
    ($($versions:expr, $is_sampled:expr, $from:literal { $($figures:tt)* })*) => {
        &[$(Source {
            versions: $versions,
            is_sampled: $is_sampled,
            from: $from,
            figures: figures! { $($figures)* },
        }),*]
    };
}

/// Where versions have their counters. What a version lacks is left out. Times are 0 where the config does not have them
/// taken: then there is none.
const SOURCES: &[Source] = sources! {
    EVER, EACH_SECOND, "pg_stat_database d where d.datname = current_database()" {
        Cumulative "d.xact_commit" => "commit_count";
        Cumulative "d.xact_rollback" => "rollback_count";
        Cumulative "d.blks_read" => "block_read_count" Work;
        Cumulative "d.blks_hit" => "block_hit_count" Work;
        Cumulative "d.tup_inserted" => "row_inserted_count";
        Cumulative "d.tup_updated" => "row_updated_count";
        Cumulative "d.tup_deleted" => "row_deleted_count";
        Cumulative "d.temp_bytes" => "temp_bytes" Work;
        Cumulative "d.deadlocks" => "deadlock_count" Work;
        Cumulative "case when current_setting('track_io_timing')::bool then d.blk_read_time end" => "block_read_ms";
        Cumulative "case when current_setting('track_io_timing')::bool then d.blk_write_time end" => "block_write_ms";
    }
    EVER, AT_ENDS, "(values (1)) one" {
        Gauge "pg_database_size(current_database())" => "database_bytes" DatabaseBytes;
    }
    EVER, EACH_SECOND, "(values (1)) one" {
        Cumulative "pg_current_wal_insert_lsn() - '0/0'::pg_lsn" => "wal_position_bytes";
    }
    // The view came with 14: before it the position tells the bytes, page headers included.
    0..14, EACH_SECOND, "(values (1)) one" {
        Cumulative "pg_current_wal_insert_lsn() - '0/0'::pg_lsn" => "wal_bytes" LogBytes;
    }
    14..u32::MAX, EACH_SECOND, "pg_stat_wal w" {
        Cumulative "w.wal_records" => "wal_record_count" Work;
        Cumulative "w.wal_fpi" => "wal_fpi_count" Work;
        Cumulative "w.wal_bytes" => "wal_bytes" LogBytes;
        Cumulative "w.wal_buffers_full" => "wal_buffers_full_count" Work;
    }
    14..18, EACH_SECOND, "pg_stat_wal w" {
        Cumulative "w.wal_write" => "wal_write_count";
        Cumulative "w.wal_sync" => "wal_sync_count" LogFsyncCount;
        Cumulative "case when current_setting('track_wal_io_timing')::bool then w.wal_write_time end" => "wal_write_ms";
        Cumulative "case when current_setting('track_wal_io_timing')::bool then w.wal_sync_time end" => "wal_sync_ms";
    }
    // The making of new files, context `init`, is not in what earlier versions count.
    18..u32::MAX, EACH_SECOND, "pg_stat_io i where i.object = 'wal' and i.context = 'normal'" {
        Cumulative "sum(i.writes)" => "wal_write_count";
        Cumulative "sum(i.fsyncs)" => "wal_sync_count" LogFsyncCount;
        Cumulative "case when current_setting('track_wal_io_timing')::bool then sum(i.write_time) end" => "wal_write_ms";
        Cumulative "case when current_setting('track_wal_io_timing')::bool then sum(i.fsync_time) end" => "wal_sync_ms";
    }
    EVER, EACH_SECOND, "pg_stat_bgwriter b" {
        Cumulative "b.buffers_clean" => "buffer_bgwriter_write_count";
        Cumulative "b.maxwritten_clean" => "bgwriter_stop_count";
        Cumulative "b.buffers_alloc" => "buffer_alloc_count";
    }
    0..17, EACH_SECOND, "pg_stat_bgwriter b" {
        Cumulative "b.checkpoints_timed" => "checkpoint_timed_count";
        Cumulative "b.checkpoints_req" => "checkpoint_requested_count";
        Cumulative "b.buffers_checkpoint" => "buffer_checkpoint_write_count" Work;
        Cumulative "b.buffers_checkpoint * current_setting('block_size')::bigint" => "buffer_checkpoint_write_bytes" CheckpointBytes;
        Cumulative "b.checkpoint_write_time" => "checkpoint_write_ms";
        Cumulative "b.checkpoint_sync_time" => "checkpoint_sync_ms";
    }
    // The checkpointer adds these up when it wakes, which may be once in `checkpoint_timeout`: what a step's own
    // backends wrote is not in them until then, and a name of their own says so.
    0..16, AT_ENDS, "pg_stat_bgwriter b" {
        Cumulative "b.buffers_backend" => "buffer_backend_write_at_checkpoint_count";
        Cumulative "b.buffers_backend_fsync" => "buffer_backend_sync_at_checkpoint_count";
    }
    17..u32::MAX, EACH_SECOND, "pg_stat_checkpointer c" {
        Cumulative "c.num_timed" => "checkpoint_timed_count";
        Cumulative "c.num_requested" => "checkpoint_requested_count";
        Cumulative "c.buffers_written" => "buffer_checkpoint_write_count" Work;
        Cumulative "c.buffers_written * current_setting('block_size')::bigint" => "buffer_checkpoint_write_bytes" CheckpointBytes;
        Cumulative "c.write_time" => "checkpoint_write_ms";
        Cumulative "c.sync_time" => "checkpoint_sync_ms";
    }
    // The others count checkpoints that were skipped too, since nothing had been written.
    18..u32::MAX, EACH_SECOND, "pg_stat_checkpointer c" {
        Cumulative "c.num_done" => "checkpoint_done_count";
        Cumulative "c.slru_written" => "slru_checkpoint_write_count";
    }
};

/// Where versions have the counters of `pg_stat_io`, which are of the same names.
const RELATIONS: [Source; 2] = [
    Source {
        versions: 16..18,
        is_sampled: EACH_SECOND,
        from: "(select context, backend_type, fsyncs, evictions, reads, writes, extends \
               from pg_stat_io where object = 'relation') i",
        figures: RELATION_IO,
    },
    // From 18 on one read or write may be of several blocks.
    Source {
        versions: 18..u32::MAX,
        is_sampled: EACH_SECOND,
        from: "(select context, backend_type, fsyncs, evictions, read_bytes / block as reads, \
               write_bytes / block as writes, extend_bytes / block as extends \
               from pg_stat_io, (select current_setting('block_size')::bigint as block) b \
               where object = 'relation') i",
        figures: RELATION_IO,
    },
];

/// What `pg_stat_io` tells of relations, in blocks.
const RELATION_IO: &[Figure] = figures! {
    Cumulative "sum(i.extends)" => "block_extend_count" Work;
    Cumulative "sum(i.evictions)" => "buffer_evict_count" Work;
    Cumulative "sum(i.fsyncs)" => "relation_sync_count" DataFsyncCount;
    Cumulative "sum(i.reads) filter (where i.context = 'vacuum')" => "block_vacuum_read_count";
    Cumulative "sum(i.writes) filter (where i.context = 'vacuum')" => "block_vacuum_write_count";
    // What `buffers_backend` was meant to be: writes of buffers, and blocks by which files were extended.
    Cumulative "sum(i.writes) filter (where i.backend_type not in ('checkpointer', 'background writer')) \
                + sum(i.extends) filter (where i.backend_type not in ('checkpointer', 'background writer'))"
        => "buffer_backend_write_count" Work;
    Cumulative "sum(i.fsyncs) filter (where i.backend_type not in ('checkpointer', 'background writer'))"
        => "buffer_backend_sync_count";
};

/// Figures of one table, summed over its partitions: what the engine calls them is a function of the table's oid.
const TABLE_FIGURES: &[Source] = sources! {
    EVER, EACH_SECOND, "" {
        Gauge "pg_stat_get_dead_tuples" => "dead_rows" DeadRows;
        Gauge "pg_stat_get_live_tuples" => "live_rows";
        Cumulative "pg_stat_get_autovacuum_count" => "autovacuum_count";
        Cumulative "pg_stat_get_autoanalyze_count" => "autoanalyze_count";
    }
    EVER, AT_ENDS, "" {
        Cumulative "pg_stat_get_vacuum_count" => "vacuum_count";
        Cumulative "pg_stat_get_analyze_count" => "analyze_count";
        Gauge "pg_stat_get_mod_since_analyze" => "rows_changed_since_analyze";
    }
    13..u32::MAX, AT_ENDS, "" {
        Gauge "pg_stat_get_ins_since_vacuum" => "rows_inserted_since_vacuum";
    }
    18..u32::MAX, AT_ENDS, "" {
        Cumulative "pg_stat_get_total_autovacuum_time" => "autovacuum_ms";
        Cumulative "pg_stat_get_total_autoanalyze_time" => "autoanalyze_ms";
        Cumulative "pg_stat_get_total_vacuum_time" => "vacuum_ms";
        Cumulative "pg_stat_get_total_analyze_time" => "analyze_ms";
    }
    EVER, AT_ENDS, "" {
        Gauge "pg_table_size" => "table_bytes";
        Gauge "pg_indexes_size" => "index_bytes";
    }
};

/// What figures of tables are of: each table in `names`, by its ordinal number `n` from 1, with its partitions. Tables that
/// don't exist have no row.
pub(super) fn relations(names: &str) -> String {
    format!(
        "unnest({names}) with ordinality t(name, n) \
         cross join lateral (select c.oid from pg_class c where c.oid = to_regclass(t.name) and c.relkind = 'r' \
         union select p.relid from pg_partition_tree(to_regclass(t.name)) p where p.isleaf) r"
    )
}

/// An SQL array of the tables' names.
pub(super) fn names(tables: &[Table]) -> String {
    format!(
        "array[{}]::text[]",
        quoted(tables.iter().map(|table| table.name.as_str()))
    )
}

/// Waits until the backends of `application` have ended, and with that have handed on their statistics, or `at_most` has
/// passed.
pub(super) fn wait_for_closing(
    session: &mut PostgresSession,
    application: &str,
    at_most: Duration,
) -> Result<(), Error> {
    let application = application.replace('\'', "''");
    let sql =
        format!("select count(*) from pg_stat_activity where application_name = '{application}'");
    let limit = Deadline::after(at_most);
    while session.query_i64(&sql)?.unwrap_or(0) > 0 && !limit.has_passed() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Waits, where a collector keeps the statistics, until it has written down what it knew when this was called. From 15
/// on there is none.
pub(super) fn wait_for_collector(session: &mut PostgresSession, major: u32) -> Result<(), Error> {
    if major >= 15 {
        return Ok(());
    }
    let now = session.query_column("select clock_timestamp()")?;
    let now = now.concat();
    let sql = format!("select (pg_stat_get_snapshot_timestamp() > '{now}')::int");
    let limit = Deadline::after(COLLECTING_MAX);
    while session.query_i64(&sql)? != Some(1) && !limit.has_passed() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

impl Source {
    fn is_read(&self, major: u32, sampled_only: bool) -> bool {
        self.versions.contains(&major) && (self.is_sampled || !sampled_only)
    }
}

/// A statement, and the figures in its columns.
struct Reading {
    sql: String,
    figures: Vec<&'static Figure>,
}

impl Reading {
    /// Reads figures of the whole server.
    fn of_server(major: u32, sampled_only: bool) -> Self {
        let sources = SOURCES.iter().chain(&RELATIONS);
        let sources = sources.filter(|source| source.is_read(major, sampled_only));
        let (mut parts, mut figures) = (Vec::new(), Vec::new());
        for (
            number,
            Source {
                from,
                figures: of_source,
                ..
            },
        ) in sources.enumerate()
        {
            let selected: Vec<&str> = of_source.iter().map(|figure| figure.source).collect();
            // Columns are named by position, because two of one expression have the same name.
            let names: Vec<String> = (0..selected.len())
                .map(|column| format!("c{column}"))
                .collect();
            let (selected, names) = (selected.join(", "), names.join(", "));
            parts.push(format!(
                "(select {selected} from {from}) s{number}({names})"
            ));
            figures.extend(*of_source);
        }
        Self {
            sql: format!("select * from {}", parts.join(", ")),
            figures,
        }
    }

    /// Reads figures of `tables`: a row for each, with its name before them.
    fn of_tables(tables: &[Table], major: u32, sampled_only: bool) -> Self {
        let sources = TABLE_FIGURES.iter();
        let read = sources.filter(|source| source.is_read(major, sampled_only));
        let figures: Vec<&Figure> = read.flat_map(|source| source.figures).collect();
        let sums: Vec<String> = figures
            .iter()
            .map(|figure| format!("sum({}(r.oid))", figure.source))
            .collect();
        let sql = format!(
            "select t.name, {} from {} group by t.n, t.name order by t.n",
            sums.join(", "),
            relations(&names(tables))
        );
        Self { sql, figures }
    }
}

struct PostgresObserver {
    session: PostgresSession,
    tables: Vec<Table>,
    major: u32,
    /// The application name of the load's sessions.
    application: String,
    are_tables_sampled: bool,
}

/// Opens an observer's connection.
pub(super) fn open(postgres: &Postgres, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
    let address = Address {
        application_name: "assay observer".into(),
        ..postgres.address().clone()
    };
    let parts: usize = tables
        .iter()
        .map(|table| table.partitions.map_or(1, |p| p.count as usize))
        .sum();
    let major = postgres.kind.major;
    let mut session = PostgresSession::connect(&address)?;
    // What is observed must not be changed by observing it more than need be.
    session.query("set jit = off")?;
    // It is idle for as long as a step lasts, which may be more than a role's idle sessions are left.
    if major >= 14 {
        session.query("set idle_session_timeout = 0")?;
    }
    Ok(Box::new(PostgresObserver {
        session,
        tables: tables.to_vec(),
        major,
        application: postgres.address().application_name.clone(),
        are_tables_sampled: parts <= SAMPLED_TABLES_MAX,
    }))
}

impl PostgresObserver {
    fn of_server(&mut self, sampled_only: bool) -> Result<Vec<Counter>, Error> {
        let reading = Reading::of_server(self.major, sampled_only);
        let rows = self.session.query(&reading.sql)?;
        let values = rows.into_iter().next().unwrap_or_default();
        let figures = values.into_iter().zip(reading.figures);
        let mut counters: Vec<Counter> = figures
            .filter_map(|(value, figure)| Some(figure.counter(value?.parse().ok()?)))
            .collect();
        let fsyncs = |role| {
            let mut counters = counters.iter();
            counters.find(|it| it.role == Some(role)).map(|it| it.value)
        };
        if let (Some(log), Some(data)) = (fsyncs(Role::LogFsyncCount), fsyncs(Role::DataFsyncCount))
        {
            let all = Counter::cumulative("fsync_count", log + data);
            counters.push(all.with_role(Role::FsyncCount));
        }
        Ok(counters)
    }

    fn of_tables(&mut self, sampled_only: bool) -> Result<Vec<Counter>, Error> {
        if self.tables.is_empty() {
            return Ok(Vec::new());
        }
        let reading = Reading::of_tables(&self.tables, self.major, sampled_only);
        let rows = self.session.query(&reading.sql)?;
        Ok(table_counters(rows, &reading.figures))
    }
}

impl Observer for PostgresObserver {
    fn counters(&mut self) -> Result<Vec<Counter>, Error> {
        wait_for_closing(&mut self.session, &self.application, CLOSING_MAX)?;
        wait_for_collector(&mut self.session, self.major)?;
        if self.major >= 15 {
            // What this very session holds back; that of others can't be had so.
            self.session.query("select pg_stat_force_next_flush()")?;
        }
        let mut counters = self.of_server(false)?;
        counters.extend(self.of_tables(false)?);
        Ok(counters)
    }

    fn sample(&mut self) -> Result<Vec<Counter>, Error> {
        let mut counters = self.of_server(true)?;
        if self.are_tables_sampled {
            counters.extend(self.of_tables(true)?);
        }
        Ok(counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_version_has_a_counter_twice() {
        for major in 12..=18 {
            let figures = Reading::of_server(major, false).figures;
            let mut names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{major}: {names:?}");
        }
    }

    #[test]
    fn a_sample_is_without_what_is_dear() {
        let sql = Reading::of_server(15, true).sql;
        assert!(!sql.contains("pg_database_size"), "{sql}");
        let sql = Reading::of_tables(&[], 18, true).sql;
        assert!(
            sql.contains("dead_tuples") && !sql.contains("_size"),
            "{sql}"
        );
    }
}
