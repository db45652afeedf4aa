//! Reads counters from each version's views.
//!
//! A backend reports its statistics at the end of a transaction, at most once a second, and when it
//! exits. So right after a step, counters are complete only if the load's sessions are closed; an
//! open one may hold back its last second. Backends exit a moment after their sessions are closed,
//! which the observer waits for. Before PostgreSQL 15, statistics also pass through a collector,
//! and may be half a second old: [`Observer::counters`] waits for new ones, [`Observer::sample`]
//! does not. The WAL position (`wal_position_bytes`) and sizes are always exact.
//!
//! Counters that a version lacks are omitted. A name means the same in every version: if a view was
//! moved or split, the figure is computed from its replacements.

use std::ops::Range;
use std::time::Duration;

use words::{Counter, Role};

use super::session::PostgresSession;
use super::{Address, Postgres};
use crate::contract::{Engine as _, Observer, Session, Table};
use crate::error::Error;
use crate::safety::guard::Deadline;
use crate::support::figures::{Figure, figures, quoted, session_states, table_counters};

/// The number of tables and partitions above which their counters are not read every second.
const SAMPLED_TABLES_MAX: usize = 256;

/// The time that [`Observer::counters`] waits for the backends of closed sessions to exit. They take
/// milliseconds, and longer on a busy machine; the limit is for sessions that are still open.
const CLOSING_MAX: Duration = Duration::from_millis(500);

/// The time that the collector before version 15 may take to write its statistics. It does so on
/// demand, if the last ones are half a second old.
const COLLECTING_MAX: Duration = Duration::from_secs(3);

/// Figures from one row of a view. The source of each is its SQL.
struct Source {
    /// The major versions that have these figures.
    versions: Range<u32>,
    /// The figures are also read every second.
    is_sampled: bool,
    from: &'static str,
    figures: &'static [Figure],
}

const EVER: Range<u32> = 0..u32::MAX;
const EACH_SECOND: bool = true;
const AT_ENDS: bool = false;

/// Builds a table of sources: the versions, whether they are also read every second, the view, and
/// the figures.
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

/// The sources of counters in each version. Times exist only if the config turns them on; the
/// server would report 0.
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
        Cumulative "d.deadlocks" => "deadlock_count" DeadlockCount;
        Cumulative "case when current_setting('track_io_timing')::bool then d.blk_read_time end" => "block_read_ms";
        Cumulative "case when current_setting('track_io_timing')::bool then d.blk_write_time end" => "block_write_ms";
    }
    EVER, AT_ENDS, "(values (1)) one" {
        Gauge "pg_database_size(current_database())" => "database_bytes" DatabaseBytes;
    }
    EVER, EACH_SECOND, "(values (1)) one" {
        Cumulative "pg_current_wal_insert_lsn() - '0/0'::pg_lsn" => "wal_position_bytes";
    }
    // Before version 14, which added the view, the position shows the bytes, including page headers.
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
    // Excludes the context `init`, new files, which earlier versions don't count.
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
        // The checkpointer updates these when it wakes, maybe only once per `checkpoint_timeout`. Until then, they exclude the
    // writes of a step's backends, so they have their own names.
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
    // The other counters include checkpoints that were skipped because nothing was written.
    18..u32::MAX, EACH_SECOND, "pg_stat_checkpointer c" {
        Cumulative "c.num_done" => "checkpoint_done_count";
        Cumulative "c.slru_written" => "slru_checkpoint_write_count";
    }
};

/// The SQL of the same counters of `pg_stat_io` in each version.
const RELATIONS: [Source; 2] = [
    Source {
        versions: 16..18,
        is_sampled: EACH_SECOND,
        from: "(select context, backend_type, fsyncs, evictions, reads, writes, extends \
               from pg_stat_io where object = 'relation') i",
        figures: RELATION_IO,
    },
    // Since 18, a read or write may have several blocks.
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

/// The figures of relations in `pg_stat_io`, in blocks.
const RELATION_IO: &[Figure] = figures! {
    Cumulative "sum(i.extends)" => "block_extend_count" Work;
    Cumulative "sum(i.evictions)" => "buffer_evict_count" Work;
    Cumulative "sum(i.fsyncs)" => "relation_sync_count" DataFsyncCount;
    Cumulative "sum(i.reads) filter (where i.context = 'vacuum')" => "block_vacuum_read_count";
    Cumulative "sum(i.writes) filter (where i.context = 'vacuum')" => "block_vacuum_write_count";
    // The intended meaning of `buffers_backend`: writes of buffers, and blocks that extend files.
    Cumulative "sum(i.writes) filter (where i.backend_type not in ('checkpointer', 'background writer')) \
                + sum(i.extends) filter (where i.backend_type not in ('checkpointer', 'background writer'))"
        => "buffer_backend_write_count" Work;
    Cumulative "sum(i.fsyncs) filter (where i.backend_type not in ('checkpointer', 'background writer'))"
        => "buffer_backend_sync_count";
};

/// Figures of a table, summed over its partitions. The source of each is a function of the table's
/// OID.
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
        Gauge "pg_table_size" => "table_bytes" PartBytes;
        Gauge "pg_indexes_size" => "index_bytes";
        Gauge "pg_total_relation_size" => "total_bytes" TableBytes;
    }
};

/// Figures of `pgstatindex`: means over an index's leaf pages.
const LEAVES: &[Figure] = figures! {
    Gauge "avg_leaf_density" => "each_index_leaf_density_percent" LeafDensityPercent;
    Gauge "leaf_fragmentation" => "each_index_leaf_fragmentation_percent" LeafFragmentationPercent;
};
/// The largest index of which all pages are read for these.
const LEAVES_READ_BYTES_MAX: u64 = 4 << 30;

/// Returns SQL for the tables in `names` that exist, and their partitions: the OID, the table's
/// name, and its number `n`, counted from 1.
pub(super) fn relations(names: &str) -> String {
    format!(
        "unnest({names}) with ordinality t(name, n) \
         cross join lateral (select c.oid from pg_class c where c.oid = to_regclass(t.name) and c.relkind = 'r' \
         union select p.relid from pg_partition_tree(to_regclass(t.name)) p where p.isleaf) r"
    )
}

/// Returns SQL for the indexes `i` of these tables and their partitions; `x` is the index of the
/// whole table.
fn indexes(tables: &[Table]) -> String {
    format!(
        "{} join pg_index i on i.indrelid = r.oid \
         join pg_class x on x.oid = coalesce(pg_partition_root(i.indexrelid)::oid, i.indexrelid)",
        relations(&names(tables))
    )
}

/// Returns an SQL array of the tables' names.
pub(super) fn names(tables: &[Table]) -> String {
    format!("array[{}]::text[]", quoted(tables.iter().map(|table| table.name.as_str())))
}

/// Waits until the backends of `application` have exited, and so have reported their statistics, or
/// `at_most` has passed.
pub(super) fn wait_for_closing(
    session: &mut PostgresSession,
    application: &str,
    at_most: Duration,
) -> Result<(), Error> {
    let name = application.replace('\'', "''");
    let sql = format!("select count(*) from pg_stat_activity where application_name = '{name}'");
    let limit = Deadline::after(at_most);
    while session.query_i64(&sql)?.unwrap_or(0) > 0 && !limit.has_passed() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Waits until the collector, which exists before version 15, has written its current statistics.
pub(super) fn wait_for_collector(session: &mut PostgresSession, major: u32) -> Result<(), Error> {
    if major >= 15 {
        return Ok(());
    }

    let now = session.query_column("select clock_timestamp()")?.concat();
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
struct FigureQuery {
    sql: String,
    figures: Vec<&'static Figure>,
}

impl FigureQuery {
    /// Returns the statement for figures of the whole server.
    fn for_server(major: u32, sampled_only: bool) -> Self {
        let sources =
            SOURCES.iter().chain(&RELATIONS).filter(|source| source.is_read(major, sampled_only));

        let (mut parts, mut figures) = (Vec::new(), Vec::new());
        for (number, source) in sources.enumerate() {
            let expressions: Vec<&str> =
                source.figures.iter().map(|figure| figure.source).collect();
            // Names columns by position, because equal expressions would have the same name.
            let names: Vec<String> =
                (0..expressions.len()).map(|column| format!("c{column}")).collect();
            parts.push(format!(
                "(select {} from {}) s{number}({})",
                expressions.join(", "),
                source.from,
                names.join(", ")
            ));

            figures.extend(source.figures);
        }

        Self { sql: format!("select * from {}", parts.join(", ")), figures }
    }

    /// Returns the statement for figures of `tables`, with a row for each that begins with its
    /// name.
    fn for_tables(tables: &[Table], major: u32, sampled_only: bool) -> Self {
        let figures: Vec<&Figure> = TABLE_FIGURES
            .iter()
            .filter(|source| source.is_read(major, sampled_only))
            .flat_map(|source| source.figures)
            .collect();

        let sums: Vec<String> =
            figures.iter().map(|figure| format!("sum({}(r.oid))", figure.source)).collect();

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
    /// Assay may create an extension in the database.
    is_own: bool,
}

/// Opens an observer's connection.
pub(super) fn open(postgres: &Postgres, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
    let address =
        Address { application_name: "assay observer".into(), ..postgres.address().clone() };

    let parts: usize =
        tables.iter().map(|table| table.partitions.map_or(1, |p| p.count as usize)).sum();
    let major = postgres.kind.major;

    let mut session = PostgresSession::connect(&address)?;
    // Observing must disturb the server as little as possible.
    session.query("set jit = off")?;
    // The session is idle during a step, maybe longer than the role's timeout.
    if major >= 14 {
        session.query("set idle_session_timeout = 0")?;
    }

    Ok(Box::new(PostgresObserver {
        session,
        tables: tables.to_vec(),
        major,
        application: postgres.address().application_name.clone(),
        are_tables_sampled: parts <= SAMPLED_TABLES_MAX,
        is_own: postgres.server().is_some(),
    }))
}

impl PostgresObserver {
    fn server_counters(&mut self, sampled_only: bool) -> Result<Vec<Counter>, Error> {
        let query = FigureQuery::for_server(self.major, sampled_only);
        let rows = self.session.query(&query.sql)?;
        let values = rows.into_iter().next().unwrap_or_default();

        let mut counters: Vec<Counter> = values
            .into_iter()
            .zip(query.figures)
            .filter_map(|(value, figure)| Some(figure.counter(value?.parse().ok()?)))
            .collect();

        let count_of = |role| {
            let counter = counters.iter().find(|counter| counter.role == Some(role));
            counter.map(|counter| counter.value)
        };

        let log_fsyncs = count_of(Role::LogFsyncCount);
        let data_fsyncs = count_of(Role::DataFsyncCount);
        if let (Some(log), Some(data)) = (log_fsyncs, data_fsyncs) {
            let all = Counter::cumulative("fsync_count", log + data);
            counters.push(all.with_role(Role::FsyncCount));
        }
        Ok(counters)
    }

    fn table_counters(&mut self, sampled_only: bool) -> Result<Vec<Counter>, Error> {
        if self.tables.is_empty() {
            return Ok(Vec::new());
        }
        let query = FigureQuery::for_tables(&self.tables, self.major, sampled_only);
        let rows = self.session.query(&query.sql)?;
        Ok(table_counters(rows, query.figures))
    }

    /// Returns the size of each index of the tables, summed over partitions.
    fn index_counters(&mut self) -> Result<Vec<Counter>, Error> {
        if self.tables.is_empty() {
            return Ok(Vec::new());
        }

        const FIGURES: &[Figure] = figures! {
            Gauge "sum(pg_relation_size(i.indexrelid))" => "each_index_bytes" PartBytes;
        };

        let sql = format!(
            "select t.name || '.' || x.relname, {} from {} group by t.name, x.relname order by 1",
            FIGURES[0].source,
            indexes(&self.tables)
        );

        Ok(table_counters(self.session.query(&sql)?, FIGURES))
    }

    /// Returns whether the server can read the pages of an index for this user. Assay adds the
    /// extension only to its own servers.
    fn can_read_leaves(&mut self) -> Result<bool, Error> {
        const AVAILABLE: &str =
            "select count(*) from pg_available_extensions where name = 'pgstattuple'";
        const ALLOWED: &str = "select coalesce(has_function_privilege(to_regprocedure('pgstatindex(regclass)'), 'execute'), false)::int";
        if self.is_own && self.session.query_i64(AVAILABLE)? == Some(1) {
            self.session.query("create extension if not exists pgstattuple")?;
        }
        Ok(self.session.query_i64(ALLOWED)? == Some(1))
    }
}

impl Observer for PostgresObserver {
    fn counters(&mut self) -> Result<Vec<Counter>, Error> {
        wait_for_closing(&mut self.session, &self.application, CLOSING_MAX)?;
        wait_for_collector(&mut self.session, self.major)?;

        if self.major >= 15 {
            // Reports this session's own statistics; other sessions' cannot be requested.
            self.session.query("select pg_stat_force_next_flush()")?;
        }

        let mut counters = self.server_counters(false)?;
        counters.extend(self.table_counters(false)?);
        counters.extend(self.index_counters()?);
        Ok(counters)
    }

    fn sample(&mut self) -> Result<Vec<Counter>, Error> {
        let mut counters = self.server_counters(true)?;
        if self.are_tables_sampled {
            counters.extend(self.table_counters(true)?);
        }
        Ok(counters)
    }

    fn bloat(&mut self) -> Result<Vec<Counter>, Error> {
        if self.tables.is_empty() || !self.can_read_leaves()? {
            return Ok(Vec::new());
        }

        let means = LEAVES.iter().map(|figure| {
            let name = figure.source;
            format!("sum(nullif({name}, 'NaN') * leaf_pages) / nullif(sum(leaf_pages), 0)")
        });

        let sql = format!(
            "select s.name, {} from (\
               select t.name || '.' || x.relname as name, i.indexrelid as id, \
               sum(pg_relation_size(i.indexrelid)) over (partition by t.name, x.relname) as bytes \
               from {} join pg_am a on a.oid = x.relam and a.amname = 'btree') s \
             cross join lateral pgstatindex(s.id::regclass) \
             where s.bytes <= {LEAVES_READ_BYTES_MAX} group by s.name order by 1",
            Vec::from_iter(means).join(", "),
            indexes(&self.tables)
        );

        Ok(table_counters(self.session.query(&sql)?, LEAVES))
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }

    fn session_states(&mut self) -> Result<Option<Vec<(String, u64)>>, Error> {
        let sql = format!(
            "select coalesce(wait_event_type || ':' || wait_event, 'running'), count(*) from pg_stat_activity \
             where application_name = {} and backend_type = 'client backend' and state <> 'idle' group by 1",
            quoted([self.application.as_str()].into_iter())
        );
        Ok(Some(session_states(self.session.query(&sql)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_version_has_a_duplicate_counter() {
        for major in 12..=18 {
            let figures = FigureQuery::for_server(major, false).figures;
            let mut names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{major}: {names:?}");
        }
    }

    #[test]
    fn a_sample_excludes_expensive_figures() {
        let sql = FigureQuery::for_server(15, true).sql;
        assert!(!sql.contains("pg_database_size"), "{sql}");
        let sql = FigureQuery::for_tables(&[], 18, true).sql;
        assert!(sql.contains("dead_tuples") && !sql.contains("_size"), "{sql}");
    }
}
