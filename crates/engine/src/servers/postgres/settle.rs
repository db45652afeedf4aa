//! Settles a server: vacuums all tables, writes a checkpoint, and waits for autovacuum to finish.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use words::{Counter, Role};

use super::observer::{names, relations, wait_for_closing, wait_for_collector};
use super::session::PostgresSession;
use super::{Address, Postgres};
use crate::contract::{Engine as _, Session, SettleLimits, Settled, Table};
use crate::error::Error;
use crate::safety::guard::Deadline;
use crate::support::quiet::wait_until_quiet;
use crate::support::waiting::{Pending, Work, no_thread, rest};

/// The number of tables that are vacuumed at the same time.
const CONNECTIONS_MAX: usize = 4;

/// The time that the load's sessions may take to exit. Statistics that they report later would look
/// like new work.
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// The error codes for missing privileges.
const DENIED: [&str; 1] = ["42501"];
/// The error codes of a statement that a table's access method does not have: a feature that is not
/// supported, and an object of the wrong kind.
const UNSUPPORTED: [&str; 2] = ["0A000", "42809"];

/// The table format whose background work the server reports.
const HEAP: &str = "heap";

pub(super) fn settle(
    postgres: &Postgres,
    tables: &[Table],
    limits: SettleLimits,
    stop: &AtomicBool,
) -> Result<Settled, Error> {
    let began = Deadline::after(limits.at_least);
    let work = Work {
        deadline: Deadline::after(limits.at_most),
        stop,
        denied_codes: &DENIED,
        unsupported_codes: &UNSUPPORTED,
    };

    let mut session = connect(postgres)?;
    wait_for_closing(
        &mut session,
        &postgres.address().application_name,
        CLOSING_MAX.min(limits.at_most / 4),
    )?;
    let mut settled =
        Settled { pending_before: pending(postgres, &mut session, tables)?, ..Settled::default() };

    let relations = existing(&mut session, tables)?;
    vacuum(postgres, relations, &work, &mut settled)?;

    // CHECKPOINT needs a superuser, or since 15, a member of pg_checkpoint. Otherwise, it is
    // skipped.
    settled.append(work.run(&mut connect(postgres)?, "CHECKPOINT")?);

    settled.append(work.wait("wait for autovacuum", || {
        Ok(match autovacuum_workers(&mut session, tables)? {
            0.0 => Pending::Nothing,
            workers => Pending::Some(format!("workers on the tables: {workers}")),
        })
    })?);

    if postgres.kind.format != HEAP {
        settled.append(wait_until_quiet(&work, postgres.process_id())?);
    }

    settled.actions.extend(rest(&began, limits.at_least, stop));
    settled.pending_after = pending(postgres, &mut session, tables)?;
    Ok(settled)
}

fn connect(postgres: &Postgres) -> Result<PostgresSession, Error> {
    let mut session = PostgresSession::connect(&Address {
        application_name: "assay settle".into(),
        ..postgres.address().clone()
    })?;
    // The timeouts of a config must not cancel the maintenance of assay.
    session.query("set statement_timeout = 0")?;
    session.query("set lock_timeout = 0")?;
    Ok(session)
}

/// Returns the names of the tables that exist, and of their partitions.
fn existing(session: &mut PostgresSession, tables: &[Table]) -> Result<VecDeque<String>, Error> {
    if tables.is_empty() {
        return Ok(VecDeque::new());
    }
    let sql =
        format!("select r.oid::regclass from {} order by t.n, r.oid", relations(&names(tables)));
    Ok(session.query_column(&sql)?.into())
}

/// Vacuums `relations`, several at a time. When the work is over, cancels running vacuums and skips
/// the others.
fn vacuum(
    postgres: &Postgres,
    relations: VecDeque<String>,
    work: &Work<'_>,
    settled: &mut Settled,
) -> Result<(), Error> {
    let connections = relations.len().min(CONNECTIONS_MAX);
    let queue = VacuumQueue {
        postgres,
        work,
        relations: Mutex::new(relations),
        settled: Mutex::new(settled),
    };

    // All threads are joined before an error is returned.
    let results: Vec<Result<(), Error>> = std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, || queue.vacuum());
        let workers: Vec<_> = (0..connections).map(spawn).collect();
        let panicked = |_| Err(Error::other("a vacuum thread panicked; this is a bug in assay"));
        workers
            .into_iter()
            .map(|worker| {
                let worker = worker.map_err(|error| no_thread(&error))?;
                worker.join().unwrap_or_else(panicked)
            })
            .collect()
    });
    results.into_iter().collect::<Result<(), Error>>()?;

    let left = Vec::from(queue.relations.into_inner().unwrap_or_default());
    if let Ok(settled) = queue.settled.into_inner()
        && !left.is_empty()
    {
        settled.unfinished.push(format!("not vacuumed: {}", left.join(", ")));
    }
    Ok(())
}

/// The relations that several threads vacuum.
struct VacuumQueue<'a> {
    postgres: &'a Postgres,
    work: &'a Work<'a>,
    relations: Mutex<VecDeque<String>>,
    settled: Mutex<&'a mut Settled>,
}

impl VacuumQueue<'_> {
    /// Vacuums one relation after the other until none is left or the work is over.
    fn vacuum(&self) -> Result<(), Error> {
        let mut session = connect(self.postgres)?;
        while !self.work.is_over()
            && let Some(relation) = self.next()
        {
            // Cleans indexes even if few rows are dead, so that no work is left for the next step.
            let sql = format!("VACUUM (ANALYZE, INDEX_CLEANUP ON) {relation}");

            let ran = self.work.run(&mut session, &sql)?;

            if let Ok(mut settled) = self.settled.lock() {
                settled.append(ran);
            }
        }
        Ok(())
    }

    fn next(&self) -> Option<String> {
        self.relations.lock().ok()?.pop_front()
    }
}

/// Returns the number of autovacuum workers that lock one of the tables. Recognizes them by having
/// no user, because only privileged roles see their type.
fn autovacuum_workers(session: &mut PostgresSession, tables: &[Table]) -> Result<f64, Error> {
    if tables.is_empty() {
        return Ok(0.0);
    }

    let sql = format!(
        "select count(distinct a.pid) from pg_stat_activity a join pg_locks l on l.pid = a.pid \
         where a.usesysid is null and l.mode = 'ShareUpdateExclusiveLock' and l.granted \
         and l.relation in (select r.oid from {})",
        relations(&names(tables))
    );

    Ok(session.query_i64(&sql)?.unwrap_or(0) as f64)
}

/// Returns the pending work that the server reports.
fn pending(
    postgres: &Postgres,
    session: &mut PostgresSession,
    tables: &[Table],
) -> Result<Vec<Counter>, Error> {
    wait_for_collector(session, postgres.kind.major)?;

    let mut counters = Vec::new();

    if !tables.is_empty() {
        let sql = format!(
            "select t.name, sum(pg_stat_get_dead_tuples(r.oid)) from {} group by t.name order by min(t.n)",
            relations(&names(tables))
        );
        for row in session.query(&sql)? {
            if let [Some(name), Some(rows)] = row.as_slice()
                && let Ok(rows) = rows.parse()
            {
                counters.push(Counter::gauge(format!("dead_rows.{name}"), rows));
            }
        }
    }
    counters.push(Counter::gauge("autovacuum_worker_count", autovacuum_workers(session, tables)?));

    // The WAL since the start of the last checkpoint limits the work of the next one.
    let sql =
        "select (pg_current_wal_insert_lsn() - redo_lsn)::bigint from pg_control_checkpoint()";
    match session.query_i64(sql) {
        Ok(Some(bytes)) => {
            let age = Counter::gauge("wal_since_checkpoint_bytes", bytes as f64);
            counters.push(age.with_role(Role::CheckpointAgeBytes));
        }
        Ok(None) => {}
        Err(error) if error.code.as_deref() == Some("42501") => {}
        Err(error) => return Err(error),
    }
    Ok(counters)
}
