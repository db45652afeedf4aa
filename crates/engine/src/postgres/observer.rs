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
use crate::guard::Deadline;
use crate::{Counter, CounterKind, Error, Observer, Role, Session, Table};

/// Tables and partitions beyond which those of each table are not read every second.
const SAMPLED_TABLES_MAX: usize = 256;

/// How long [`Observer::counters`] waits for sessions of the load that have been closed: their backends need
/// milliseconds, and those of sessions that are still open are not waited for any longer.
const CLOSING_MAX: Duration = Duration::from_millis(200);

/// How long the collector of versions before 15 may take to write down what it knows: it does so on demand, when what
/// it last wrote is half a second old.
const COLLECTING_MAX: Duration = Duration::from_secs(3);

/// Figures that one row of one view gives: names, and the SQL for each.
struct Source<'a> {
    /// The major versions that have them.
    versions: Range<u32>,
    /// Read each second too.
    is_sampled: bool,
    from: &'static str,
    figures: &'a [(&'static str, &'a str)],
}

/// Where versions have their counters, but for `pg_stat_io` of relations. What a version lacks is left out.
const SOURCES: &[Source<'static>] = &[
    each_second(
        EVER,
        "pg_stat_database d where d.datname = current_database()",
        &[
            ("commit_count", "d.xact_commit"),
            ("rollback_count", "d.xact_rollback"),
            ("block_read_count", "d.blks_read"),
            ("block_hit_count", "d.blks_hit"),
            ("row_inserted_count", "d.tup_inserted"),
            ("row_updated_count", "d.tup_updated"),
            ("row_deleted_count", "d.tup_deleted"),
            ("temp_bytes", "d.temp_bytes"),
            ("deadlock_count", "d.deadlocks"),
            ("block_read_ms", "d.blk_read_time"),
            ("block_write_ms", "d.blk_write_time"),
        ],
    ),
    at_ends(
        EVER,
        "(values (1)) one",
        &[(DATABASE_BYTES, "pg_database_size(current_database())")],
    ),
    each_second(
        EVER,
        "(values (1)) one",
        &[("wal_position_bytes", POSITION)],
    ),
    // The view came with 14: before it the position tells the bytes, page headers included.
    each_second(0..14, "(values (1)) one", &[("wal_bytes", POSITION)]),
    each_second(
        14..u32::MAX,
        "pg_stat_wal w",
        &[
            ("wal_record_count", "w.wal_records"),
            ("wal_fpi_count", "w.wal_fpi"),
            ("wal_bytes", "w.wal_bytes"),
            ("wal_buffers_full_count", "w.wal_buffers_full"),
        ],
    ),
    each_second(
        14..18,
        "pg_stat_wal w",
        &[
            ("wal_write_count", "w.wal_write"),
            ("wal_sync_count", "w.wal_sync"),
            ("wal_write_ms", "w.wal_write_time"),
            ("wal_sync_ms", "w.wal_sync_time"),
        ],
    ),
    each_second(
        18..u32::MAX,
        // The making of new files, context `init`, is not in what earlier versions count.
        "pg_stat_io i where i.object = 'wal' and i.context = 'normal'",
        &[
            ("wal_write_count", "sum(i.writes)"),
            ("wal_sync_count", "sum(i.fsyncs)"),
            ("wal_write_ms", "sum(i.write_time)"),
            ("wal_sync_ms", "sum(i.fsync_time)"),
        ],
    ),
    each_second(
        EVER,
        "pg_stat_bgwriter b",
        &[
            ("buffer_bgwriter_write_count", "b.buffers_clean"),
            ("bgwriter_stop_count", "b.maxwritten_clean"),
            ("buffer_alloc_count", "b.buffers_alloc"),
        ],
    ),
    each_second(
        0..17,
        "pg_stat_bgwriter b",
        &[
            ("checkpoint_timed_count", "b.checkpoints_timed"),
            ("checkpoint_requested_count", "b.checkpoints_req"),
            ("buffer_checkpoint_write_count", "b.buffers_checkpoint"),
            (
                "buffer_checkpoint_write_bytes",
                "b.buffers_checkpoint * current_setting('block_size')::bigint",
            ),
            ("checkpoint_write_ms", "b.checkpoint_write_time"),
            ("checkpoint_sync_ms", "b.checkpoint_sync_time"),
        ],
    ),
    // The checkpointer adds these up when it wakes, which may be once in `checkpoint_timeout`: what a step's own
    // backends wrote is not in them until then, and a name of their own says so.
    at_ends(
        0..16,
        "pg_stat_bgwriter b",
        &[
            (
                "buffer_backend_write_at_checkpoint_count",
                "b.buffers_backend",
            ),
            (
                "buffer_backend_sync_at_checkpoint_count",
                "b.buffers_backend_fsync",
            ),
        ],
    ),
    each_second(
        17..u32::MAX,
        "pg_stat_checkpointer c",
        &[
            ("checkpoint_timed_count", "c.num_timed"),
            ("checkpoint_requested_count", "c.num_requested"),
            ("buffer_checkpoint_write_count", "c.buffers_written"),
            (
                "buffer_checkpoint_write_bytes",
                "c.buffers_written * current_setting('block_size')::bigint",
            ),
            ("checkpoint_write_ms", "c.write_time"),
            ("checkpoint_sync_ms", "c.sync_time"),
        ],
    ),
    // The others count checkpoints that were skipped too, since nothing had been written.
    each_second(
        18..u32::MAX,
        "pg_stat_checkpointer c",
        &[
            ("checkpoint_done_count", "c.num_done"),
            ("slru_checkpoint_write_count", "c.slru_written"),
        ],
    ),
];

const EVER: Range<u32> = 0..u32::MAX;
const POSITION: &str = "pg_current_wal_insert_lsn() - '0/0'::pg_lsn";
const DATABASE_BYTES: &str = "database_bytes";

/// Times that are 0 where the config does not have them taken: then there is none.
const TIMED: [(&str, &str); 4] = [
    ("block_read_ms", "track_io_timing"),
    ("block_write_ms", "track_io_timing"),
    ("wal_write_ms", "track_wal_io_timing"),
    ("wal_sync_ms", "track_wal_io_timing"),
];

/// What figures mean, where that is of use.
const ROLES: [(&str, Role); 16] = [
    (DATABASE_BYTES, Role::DatabaseBytes),
    ("wal_bytes", Role::LogBytes),
    ("wal_sync_count", Role::LogFsyncCount),
    ("relation_sync_count", Role::DataFsyncCount),
    ("buffer_checkpoint_write_bytes", Role::CheckpointBytes),
    ("block_read_count", Role::Work),
    ("block_hit_count", Role::Work),
    ("block_extend_count", Role::Work),
    ("buffer_evict_count", Role::Work),
    ("buffer_backend_write_count", Role::Work),
    ("buffer_checkpoint_write_count", Role::Work),
    ("wal_record_count", Role::Work),
    ("wal_fpi_count", Role::Work),
    ("wal_buffers_full_count", Role::Work),
    ("temp_bytes", Role::Work),
    ("deadlock_count", Role::Work),
];

const fn each_second(
    versions: Range<u32>,
    from: &'static str,
    figures: &'static [(&'static str, &'static str)],
) -> Source<'static> {
    Source {
        versions,
        is_sampled: true,
        from,
        figures,
    }
}

const fn at_ends(
    versions: Range<u32>,
    from: &'static str,
    figures: &'static [(&'static str, &'static str)],
) -> Source<'static> {
    Source {
        is_sampled: false,
        ..each_second(versions, from, figures)
    }
}

/// Returns what `pg_stat_io` tells of relations, from 16 on.
fn relation_io(major: u32) -> [(&'static str, String); 7] {
    // From 18 on one read or write may be of several blocks.
    let blocks = |what: &str| match what {
        _ if major < 18 => format!("sum(i.{what}s)"),
        what => format!("sum(i.{what}_bytes) / current_setting('block_size')::bigint"),
    };
    let in_vacuum = |sql: &str| sql.replacen(')', ") filter (where i.context = 'vacuum')", 1);
    let of_backends = |sql: &str| {
        let backends =
            ") filter (where i.backend_type not in ('checkpointer', 'background writer'))";
        sql.replacen(')', backends, 1)
    };
    // What `buffers_backend` was meant to be: writes of buffers, and blocks by which files were extended.
    let written = [blocks("write"), blocks("extend")].map(|sql| of_backends(&sql));
    [
        ("block_extend_count", blocks("extend")),
        ("buffer_evict_count", "sum(i.evictions)".into()),
        ("relation_sync_count", "sum(i.fsyncs)".into()),
        ("block_vacuum_read_count", in_vacuum(&blocks("read"))),
        ("block_vacuum_write_count", in_vacuum(&blocks("write"))),
        ("buffer_backend_write_count", written.join(" + ")),
        ("buffer_backend_sync_count", of_backends("sum(i.fsyncs)")),
    ]
}

/// A figure of one table, summed over its partitions.
struct TableFigure {
    name: &'static str,
    /// A function of the table's oid.
    function: &'static str,
    kind: CounterKind,
    /// The major version that it came with.
    since: u32,
    /// Read each second too.
    is_sampled: bool,
}

const TABLE_FIGURES: [TableFigure; 14] = {
    use CounterKind::{Cumulative, Gauge};
    const fn figure(
        since: u32,
        kind: CounterKind,
        name: &'static str,
        function: &'static str,
    ) -> TableFigure {
        TableFigure {
            name,
            function,
            kind,
            since,
            is_sampled: false,
        }
    }
    const fn sampled(kind: CounterKind, name: &'static str, function: &'static str) -> TableFigure {
        TableFigure {
            is_sampled: true,
            ..figure(12, kind, name, function)
        }
    }
    [
        sampled(Gauge, DEAD_ROWS, "pg_stat_get_dead_tuples"),
        sampled(Gauge, "live_rows", "pg_stat_get_live_tuples"),
        sampled(
            Cumulative,
            "autovacuum_count",
            "pg_stat_get_autovacuum_count",
        ),
        sampled(
            Cumulative,
            "autoanalyze_count",
            "pg_stat_get_autoanalyze_count",
        ),
        figure(12, Cumulative, "vacuum_count", "pg_stat_get_vacuum_count"),
        figure(12, Cumulative, "analyze_count", "pg_stat_get_analyze_count"),
        figure(
            12,
            Gauge,
            "rows_changed_since_analyze",
            "pg_stat_get_mod_since_analyze",
        ),
        figure(
            13,
            Gauge,
            "rows_inserted_since_vacuum",
            "pg_stat_get_ins_since_vacuum",
        ),
        figure(
            18,
            Cumulative,
            "autovacuum_ms",
            "pg_stat_get_total_autovacuum_time",
        ),
        figure(
            18,
            Cumulative,
            "autoanalyze_ms",
            "pg_stat_get_total_autoanalyze_time",
        ),
        figure(18, Cumulative, "vacuum_ms", "pg_stat_get_total_vacuum_time"),
        figure(
            18,
            Cumulative,
            "analyze_ms",
            "pg_stat_get_total_analyze_time",
        ),
        figure(12, Gauge, "table_bytes", "pg_table_size"),
        figure(12, Gauge, "index_bytes", "pg_indexes_size"),
    ]
};

const DEAD_ROWS: &str = "dead_rows";

/// The figures of a table that a version has.
fn table_figures(version_num: u32, sampled_only: bool) -> Vec<&'static TableFigure> {
    TABLE_FIGURES
        .iter()
        .filter(|figure| figure.since * 10_000 <= version_num)
        .filter(|figure| figure.is_sampled || !sampled_only)
        .collect()
}

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
    let quoted: Vec<String> = tables
        .iter()
        .map(|table| format!("'{}'", table.name))
        .collect();
    format!("array[{}]::text[]", quoted.join(", "))
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
pub(super) fn wait_for_collector(
    session: &mut PostgresSession,
    version_num: u32,
) -> Result<(), Error> {
    if version_num >= 150_000 {
        return Ok(());
    }
    let rows = session.query("select clock_timestamp()")?;
    let Some(now) = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().next()?)
    else {
        return Ok(());
    };
    let sql = format!("select (pg_stat_get_snapshot_timestamp() > '{now}')::int");
    let limit = Deadline::after(COLLECTING_MAX);
    while session.query_i64(&sql)? != Some(1) && !limit.has_passed() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// One statement for figures of the whole server, and the names of its columns.
fn server_sql(version_num: u32, sampled_only: bool) -> (String, Vec<&'static str>) {
    let major = version_num / 10_000;
    let io = relation_io(major);
    let io = io.each_ref().map(|(name, sql)| (*name, sql.as_str()));
    let of_relations = Source {
        versions: 16..u32::MAX,
        is_sampled: true,
        from: "pg_stat_io i where i.object = 'relation'",
        figures: &io,
    };
    let sources = SOURCES
        .iter()
        .chain([&of_relations])
        .filter(|source| source.versions.contains(&major) && (source.is_sampled || !sampled_only));
    let (mut parts, mut columns) = (Vec::new(), Vec::new());
    for (number, source) in sources.enumerate() {
        let select = |&(name, sql): &(&str, &str)| {
            let timed = TIMED.iter().find(|(timed, _)| *timed == name);
            timed.map_or(sql.to_owned(), |(_, option)| {
                format!("case when current_setting('{option}')::bool then {sql} end")
            })
        };
        let selected: Vec<String> = source.figures.iter().map(select).collect();
        // Columns are named by position, because two of one expression have the same name.
        let names: Vec<String> = (0..selected.len())
            .map(|column| format!("c{column}"))
            .collect();
        parts.push(format!(
            "(select {} from {}) s{number}({})",
            selected.join(", "),
            source.from,
            names.join(", ")
        ));
        columns.extend(source.figures.iter().map(|(name, _)| *name));
    }
    (format!("select * from {}", parts.join(", ")), columns)
}

fn server_counter(name: &str, value: f64) -> Counter {
    let counter = match name {
        DATABASE_BYTES => Counter::gauge(name, value),
        name => Counter::cumulative(name, value),
    };
    let role = ROLES.iter().find(|(known, _)| *known == name);
    counter.with_role(role.map(|(_, role)| *role))
}

fn table_sql(tables: &[Table], figures: &[&TableFigure]) -> String {
    let sums: Vec<String> = figures
        .iter()
        .map(|figure| format!("sum({}(r.oid))", figure.function))
        .collect();
    format!(
        "select t.n, {} from {} group by t.n order by t.n",
        sums.join(", "),
        relations(&names(tables))
    )
}

struct PostgresObserver {
    session: PostgresSession,
    tables: Vec<Table>,
    version_num: u32,
    /// The application name of the load's sessions.
    application: String,
    all: (String, Vec<&'static str>),
    sampled: (String, Vec<&'static str>),
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
    let mut session = PostgresSession::connect(&address)?;
    // What is observed must not be changed by observing it more than need be.
    session.query("set jit = off")?;
    // It is idle for as long as a step lasts, which may be more than a role's idle sessions are left.
    if postgres.version_num >= 140_000 {
        session.query("set idle_session_timeout = 0")?;
    }
    Ok(Box::new(PostgresObserver {
        session,
        tables: tables.to_vec(),
        version_num: postgres.version_num,
        application: postgres.address().application_name.clone(),
        all: server_sql(postgres.version_num, false),
        sampled: server_sql(postgres.version_num, true),
        are_tables_sampled: parts <= SAMPLED_TABLES_MAX,
    }))
}

impl PostgresObserver {
    fn of_server(&mut self, sampled_only: bool) -> Result<Vec<Counter>, Error> {
        let (sql, columns) = if sampled_only {
            &self.sampled
        } else {
            &self.all
        };
        let rows = self.session.query(sql)?;
        let values = rows.into_iter().next().unwrap_or_default();
        let mut counters: Vec<Counter> = values
            .into_iter()
            .zip(columns)
            .filter_map(|(value, name)| Some(server_counter(name, value?.parse().ok()?)))
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
        let figures = table_figures(self.version_num, sampled_only);
        let rows = self.session.query(&table_sql(&self.tables, &figures))?;
        let mut counters = Vec::new();
        for row in rows {
            let mut values = row.into_iter();
            let number = values
                .next()
                .flatten()
                .and_then(|number| number.parse::<usize>().ok());
            let Some(table) = number.and_then(|number| self.tables.get(number.checked_sub(1)?))
            else {
                continue;
            };
            for (value, figure) in values.zip(&figures) {
                if let Some(value) = value.and_then(|value| value.parse().ok()) {
                    let name = format!("{}.{}", figure.name, table.name);
                    let role = (figure.name == DEAD_ROWS).then_some(Role::DeadRows);
                    counters.push(Counter::new(name, value, figure.kind).with_role(role));
                }
            }
        }
        Ok(counters)
    }
}

impl Observer for PostgresObserver {
    fn counters(&mut self) -> Result<Vec<Counter>, Error> {
        wait_for_closing(&mut self.session, &self.application, CLOSING_MAX)?;
        wait_for_collector(&mut self.session, self.version_num)?;
        if self.version_num >= 150_000 {
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
            let (_, columns) = server_sql(major * 10_000, false);
            let mut names = columns;
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{major}: {names:?}");
        }
    }

    #[test]
    fn a_sample_is_without_what_is_dear() {
        let (sql, _) = server_sql(150_000, true);
        assert!(!sql.contains("pg_database_size"), "{sql}");
        let sql = table_sql(&[], &table_figures(180_000, true));
        assert!(
            sql.contains("dead_tuples") && !sql.contains("_size"),
            "{sql}"
        );
    }
}
