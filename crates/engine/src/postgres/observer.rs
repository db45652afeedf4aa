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

use std::time::Duration;

use super::session::PostgresSession;
use super::{Address, Postgres};
use crate::guard::Deadline;
use crate::{Counter, CounterKind, Error, Observer, Session, Table};

/// Tables and partitions beyond which those of each table are not read every second.
const SAMPLED_TABLES_MAX: usize = 256;

/// How long [`Observer::counters`] waits for sessions of the load that have been closed: their backends need
/// milliseconds, and those of sessions that are still open are not waited for any longer.
const CLOSING_MAX: Duration = Duration::from_millis(200);

/// How long the collector of versions before 15 may take to write down what it knows: it does so on demand, when what
/// it last wrote is half a second old.
const COLLECTING_MAX: Duration = Duration::from_secs(3);

/// One figure: its name, the SQL for it, and how it behaves.
struct Figure {
    name: &'static str,
    sql: String,
    kind: CounterKind,
    /// Read each second too.
    is_sampled: bool,
}

/// Figures that one row of one view gives.
struct Source {
    figures: Vec<Figure>,
    from: &'static str,
}

/// Where a version has its counters. What it lacks is left out.
fn sources(version_num: u32) -> Vec<Source> {
    let major = version_num / 10_000;
    let figure = |name, sql: &str, is_sampled| Figure {
        name,
        sql: sql.into(),
        kind: CounterKind::Cumulative,
        is_sampled,
    };
    let each_second = |name, sql: &str| figure(name, sql, true);
    let at_ends = |name, sql: &str| figure(name, sql, false);
    // A time is 0 where the config does not have it taken; then there is none.
    let if_timed = |name, sql: &str, option: &str| {
        let sql = format!("case when current_setting('{option}')::bool then {sql} end");
        each_second(name, &sql)
    };
    let mut sources = vec![
        Source {
            figures: vec![
                each_second("commit_count", "d.xact_commit"),
                each_second("rollback_count", "d.xact_rollback"),
                each_second("block_read_count", "d.blks_read"),
                each_second("block_hit_count", "d.blks_hit"),
                each_second("row_inserted_count", "d.tup_inserted"),
                each_second("row_updated_count", "d.tup_updated"),
                each_second("row_deleted_count", "d.tup_deleted"),
                each_second("temp_bytes", "d.temp_bytes"),
                each_second("deadlock_count", "d.deadlocks"),
                if_timed("block_read_ms", "d.blk_read_time", "track_io_timing"),
                if_timed("block_write_ms", "d.blk_write_time", "track_io_timing"),
            ],
            from: "pg_stat_database d where d.datname = current_database()",
        },
        Source {
            figures: vec![Figure {
                kind: CounterKind::Gauge,
                ..at_ends("database_bytes", "pg_database_size(current_database())")
            }],
            from: "(values (1)) one",
        },
    ];
    let mut position = vec![each_second(
        "wal_position_bytes",
        "pg_current_wal_insert_lsn() - '0/0'::pg_lsn",
    )];
    if major < 14 {
        // The view came with 14: before it the position tells the bytes, page headers included.
        position.push(each_second(
            "wal_bytes",
            "pg_current_wal_insert_lsn() - '0/0'::pg_lsn",
        ));
    }
    sources.push(Source {
        figures: position,
        from: "(values (1)) one",
    });
    if major >= 14 {
        let mut wal = vec![
            each_second("wal_record_count", "w.wal_records"),
            each_second("wal_fpi_count", "w.wal_fpi"),
            each_second("wal_bytes", "w.wal_bytes"),
            each_second("wal_buffers_full_count", "w.wal_buffers_full"),
        ];
        if major < 18 {
            wal.extend([
                each_second("wal_write_count", "w.wal_write"),
                each_second("wal_sync_count", "w.wal_sync"),
                if_timed("wal_write_ms", "w.wal_write_time", "track_wal_io_timing"),
                if_timed("wal_sync_ms", "w.wal_sync_time", "track_wal_io_timing"),
            ]);
        }
        sources.push(Source {
            figures: wal,
            from: "pg_stat_wal w",
        });
    }
    if major >= 18 {
        sources.push(Source {
            figures: vec![
                each_second("wal_write_count", "sum(i.writes)"),
                each_second("wal_sync_count", "sum(i.fsyncs)"),
                if_timed("wal_write_ms", "sum(i.write_time)", "track_wal_io_timing"),
                if_timed("wal_sync_ms", "sum(i.fsync_time)", "track_wal_io_timing"),
            ],
            // The making of new files, context `init`, is not in what earlier versions count.
            from: "pg_stat_io i where i.object = 'wal' and i.context = 'normal'",
        });
    }
    let mut writer = vec![
        each_second("buffer_bgwriter_write_count", "b.buffers_clean"),
        each_second("bgwriter_stop_count", "b.maxwritten_clean"),
        each_second("buffer_alloc_count", "b.buffers_alloc"),
    ];
    let bytes = |buffers: &str| format!("{buffers} * current_setting('block_size')::bigint");
    if major >= 17 {
        let mut checkpointer = vec![
            each_second("checkpoint_timed_count", "c.num_timed"),
            each_second("checkpoint_requested_count", "c.num_requested"),
            each_second("buffer_checkpoint_write_count", "c.buffers_written"),
            each_second("buffer_checkpoint_write_bytes", &bytes("c.buffers_written")),
            each_second("checkpoint_write_ms", "c.write_time"),
            each_second("checkpoint_sync_ms", "c.sync_time"),
        ];
        if major >= 18 {
            // The others count checkpoints that were skipped too, since nothing had been written.
            checkpointer.push(each_second("checkpoint_done_count", "c.num_done"));
            checkpointer.push(each_second("slru_checkpoint_write_count", "c.slru_written"));
        }
        sources.push(Source {
            figures: checkpointer,
            from: "pg_stat_checkpointer c",
        });
    } else {
        writer.extend([
            each_second("checkpoint_timed_count", "b.checkpoints_timed"),
            each_second("checkpoint_requested_count", "b.checkpoints_req"),
            each_second("buffer_checkpoint_write_count", "b.buffers_checkpoint"),
            each_second(
                "buffer_checkpoint_write_bytes",
                &bytes("b.buffers_checkpoint"),
            ),
            each_second("checkpoint_write_ms", "b.checkpoint_write_time"),
            each_second("checkpoint_sync_ms", "b.checkpoint_sync_time"),
        ]);
    }
    if major < 16 {
        // The checkpointer adds these up when it wakes, which may be once in `checkpoint_timeout`: what a step's own
        // backends wrote is not in them until then, and a name of their own says so.
        writer.extend([
            at_ends(
                "buffer_backend_write_at_checkpoint_count",
                "b.buffers_backend",
            ),
            at_ends(
                "buffer_backend_sync_at_checkpoint_count",
                "b.buffers_backend_fsync",
            ),
        ]);
    }
    sources.push(Source {
        figures: writer,
        from: "pg_stat_bgwriter b",
    });
    if major >= 16 {
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
        let files = vec![
            each_second("block_extend_count", &blocks("extend")),
            each_second("buffer_evict_count", "sum(i.evictions)"),
            each_second("relation_sync_count", "sum(i.fsyncs)"),
            each_second("block_vacuum_read_count", &in_vacuum(&blocks("read"))),
            each_second("block_vacuum_write_count", &in_vacuum(&blocks("write"))),
            each_second("buffer_backend_write_count", &written.join(" + ")),
            each_second("buffer_backend_sync_count", &of_backends("sum(i.fsyncs)")),
        ];
        sources.push(Source {
            figures: files,
            from: "pg_stat_io i where i.object = 'relation'",
        });
    }
    sources
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
        name: &'static str,
        function: &'static str,
        kind: CounterKind,
        since: u32,
        is_sampled: bool,
    ) -> TableFigure {
        TableFigure {
            name,
            function,
            kind,
            since,
            is_sampled,
        }
    }
    [
        figure("dead_rows", "pg_stat_get_dead_tuples", Gauge, 12, true),
        figure("live_rows", "pg_stat_get_live_tuples", Gauge, 12, true),
        figure(
            "autovacuum_count",
            "pg_stat_get_autovacuum_count",
            Cumulative,
            12,
            true,
        ),
        figure(
            "autoanalyze_count",
            "pg_stat_get_autoanalyze_count",
            Cumulative,
            12,
            true,
        ),
        figure(
            "vacuum_count",
            "pg_stat_get_vacuum_count",
            Cumulative,
            12,
            false,
        ),
        figure(
            "analyze_count",
            "pg_stat_get_analyze_count",
            Cumulative,
            12,
            false,
        ),
        figure(
            "rows_changed_since_analyze",
            "pg_stat_get_mod_since_analyze",
            Gauge,
            12,
            false,
        ),
        figure(
            "rows_inserted_since_vacuum",
            "pg_stat_get_ins_since_vacuum",
            Gauge,
            13,
            false,
        ),
        figure(
            "autovacuum_ms",
            "pg_stat_get_total_autovacuum_time",
            Cumulative,
            18,
            false,
        ),
        figure(
            "autoanalyze_ms",
            "pg_stat_get_total_autoanalyze_time",
            Cumulative,
            18,
            false,
        ),
        figure(
            "vacuum_ms",
            "pg_stat_get_total_vacuum_time",
            Cumulative,
            18,
            false,
        ),
        figure(
            "analyze_ms",
            "pg_stat_get_total_analyze_time",
            Cumulative,
            18,
            false,
        ),
        figure("table_bytes", "pg_table_size", Gauge, 12, false),
        figure("index_bytes", "pg_indexes_size", Gauge, 12, false),
    ]
};

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
fn server_sql(
    sources: &[Source],
    sampled_only: bool,
) -> (String, Vec<(&'static str, CounterKind)>) {
    let (mut parts, mut columns) = (Vec::new(), Vec::new());
    for source in sources {
        let figures: Vec<&Figure> = source
            .figures
            .iter()
            .filter(|figure| figure.is_sampled || !sampled_only)
            .collect();
        if figures.is_empty() {
            continue;
        }
        let selected: Vec<&str> = figures.iter().map(|figure| figure.sql.as_str()).collect();
        let number = parts.len();
        // Columns are named by position, because two of one expression have the same name.
        let names: Vec<String> = (0..figures.len())
            .map(|column| format!("c{column}"))
            .collect();
        parts.push(format!(
            "(select {} from {}) s{number}({})",
            selected.join(", "),
            source.from,
            names.join(", ")
        ));
        columns.extend(figures.iter().map(|figure| (figure.name, figure.kind)));
    }
    (format!("select * from {}", parts.join(", ")), columns)
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
    all: (String, Vec<(&'static str, CounterKind)>),
    sampled: (String, Vec<(&'static str, CounterKind)>),
    are_tables_sampled: bool,
}

/// Opens an observer's connection.
pub(super) fn open(postgres: &Postgres, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
    let address = Address {
        application_name: "assay observer".into(),
        ..postgres.address().clone()
    };
    let sources = sources(postgres.version_num);
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
        all: server_sql(&sources, false),
        sampled: server_sql(&sources, true),
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
        let counter = |(value, &(name, kind)): (Option<String>, &(&'static str, CounterKind))| {
            Some(Counter {
                name: name.into(),
                value: value?.parse().ok()?,
                kind,
            })
        };
        Ok(values
            .into_iter()
            .zip(columns)
            .filter_map(counter)
            .collect())
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
                    counters.push(Counter {
                        name: format!("{}.{}", figure.name, table.name),
                        value,
                        kind: figure.kind,
                    });
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
            let (_, columns) = server_sql(&sources(major * 10_000), false);
            let mut names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{major}: {names:?}");
        }
    }

    #[test]
    fn a_sample_is_without_what_is_dear() {
        let (sql, _) = server_sql(&sources(150_000), true);
        assert!(!sql.contains("pg_database_size"), "{sql}");
        let sql = table_sql(&[], &table_figures(180_000, true));
        assert!(
            sql.contains("dead_tuples") && !sql.contains("_size"),
            "{sql}"
        );
    }
}
