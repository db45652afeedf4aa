//! Replicas of a cell's server: how far they lag, how they catch up, and what data they have.
//!
//! ```text
//!   primary ◄── heart: a row with the time, every 100 ms
//!      │
//!      └─ replication ─► replica ◄── heartbeats: the newest row that it shows
//!                                ◄── behind: how much of the primary's log it lacks
//! ```
//!
//! The lag of a replica is the age of the oldest heartbeat that it does not show, which is the same
//! for physical and logical replication, and for servers that assay did not start.
//!
//! * [`Replication`] is what a cell sees of replicas, and [`Replicas`] watches them.
//! * [`heartbeats`] computes the lag, [`watch`] has the threads, and [`link`] their sessions.
//! * [`indexes`] creates what a logical replica does not receive, and [`foreign`] removes it again.

mod foreign;
mod heartbeats;
mod indexes;
mod link;
mod seconds;
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::bail;
use engine::{
    Action, Column, ColumnType, HEARTBEAT_TABLE, Replicated, SettleLimits, Settled, Table,
    TableFacts,
};
use load::{Clock as _, SystemClock};
use probe::{Sampler, Targets};

use crate::ground::failure::{AndCleanUp as _, LOG_LINES, LoggedError};
use crate::ground::threads::spawn;
use crate::ground::time::unix_now_ns;
use crate::targets::tables;
use heartbeats::{Heartbeats, INTERVAL};
use indexes::Indexes;
use link::Link;
pub use seconds::largest_by_second;
use watch::{ReplicaReading, Watch};

const SECOND_NS: u64 = 1_000_000_000;
/// The time for which the inspection of a table on a replica is tried again.
const INSPECT_NS_MAX: u64 = 120 * SECOND_NS;
/// The time after which the operator learns what a run is waiting for.
const SILENT: Duration = Duration::from_secs(5);
/// The time between checks of a condition that is waited for.
const POLL: Duration = Duration::from_millis(5);

/// The replicas of a server.
pub trait Replication: Sync {
    /// Notes the end of a step, and returns the readings since the last call.
    fn end_step(&self, end_ns: u64) -> Vec<ReplicaReading>;

    /// Returns how far the replica that lags most is behind now, of those that have followed.
    fn lag(&self) -> Duration;

    /// Checks that all replicas follow their primary; a short interruption is allowed.
    ///
    /// # Errors
    /// A replica has not followed for ten seconds, or has ended; or the primary takes no
    /// heartbeats.
    fn check_following(&self) -> anyhow::Result<()>;

    /// Creates new and empty tables on replicas that don't receive DDL.
    ///
    /// # Errors
    /// A replica refuses them.
    fn create_tables(&self, tables: &[Table]) -> anyhow::Result<()>;

    /// Waits until all replicas show what was committed before the end of the step, and have the
    /// indexes of these tables. Returns the longer of two times: from the end of the step until
    /// they showed it, and from this call until they had the indexes. Returns `None` if
    /// `at_most` has passed since this call, or `stop` is set.
    ///
    /// # Errors
    /// A replica no longer follows.
    fn catch_up(
        &self,
        tables: &[Table],
        at_most: Duration,
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<Duration>>;

    /// Settles replicas whose tables do not get the maintenance of their primary. Returns what was
    /// done, and what is unfinished.
    ///
    /// # Errors
    /// An error of the engine.
    fn settle(
        &self,
        tables: &[Table],
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> anyhow::Result<Settled>;

    /// Returns the contents of a table on each replica, with its name. The digest is of the rows
    /// whose keys are multiples of `every`.
    ///
    /// # Errors
    /// An error of the engine.
    fn inspect(
        &self,
        table: &Table,
        indexes: bool,
        every: u64,
    ) -> anyhow::Result<Vec<(String, TableContents)>>;

    /// Drops what assay created in servers that it did not start, with `keeps_tables` only the
    /// heartbeats, and stops replicas that it started.
    fn stop(self: Box<Self>, keeps_tables: bool) -> StoppedReplicas;
}

/// Replicas that were stopped.
pub struct StoppedReplicas {
    /// The outcome of removing what assay created: tables stay on a replica that has not caught
    /// up.
    pub cleaned: anyhow::Result<()>,
    /// The outcome of stopping the replicas that assay started.
    pub stopped: anyhow::Result<()>,
}

/// The contents of a table on one server.
#[derive(Debug, PartialEq)]
pub struct TableContents {
    pub facts: TableFacts,
    /// See [`engine::SqlEngine::digest`].
    pub digest: Option<String>,
}

/// Returns the content of a lock, also after a panic of another thread.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Running replicas, with threads that write heartbeats on the primary and read them on each
/// replica.
pub struct Replicas<E: Replicated + 'static> {
    replicas: Vec<(String, E)>,
    /// The URL of the primary.
    primary: String,
    /// Assay did not start the servers, and has not cleaned up yet.
    is_foreign: bool,
    /// The thread that writes heartbeats.
    writing: Option<JoinHandle<()>>,
    /// The tables that assay created on replicas that don't receive DDL, with their numbers: first
    /// that of the heartbeats.
    created: Mutex<Vec<(usize, Table)>>,
    indexes: Indexes<E>,
    watch: Arc<Watch>,
}

/// Returns the table of the heartbeats.
fn heartbeat_table() -> Table {
    Table {
        name: HEARTBEAT_TABLE.into(),
        columns: vec![Column { name: "at_ns", kind: ColumnType::AutoKey }],
        indexes: Vec::new(),
        partitions: None,
    }
}

impl<E: Replicated + 'static> Replicas<E> {
    /// Begins to watch replicas, and waits until they follow. If that takes long, calls `say` with
    /// what it is waiting for. Calls `made` as soon as the table of the heartbeats exists.
    ///
    /// # Errors
    /// The table of the heartbeats exists, an error of the engine, or the replicas don't show a
    /// heartbeat in time.
    pub fn watch(
        primary: &E,
        replicas: Vec<(String, E)>,
        clock: &SystemClock,
        timeout: Duration,
        stop: &AtomicBool,
        say: &dyn Fn(&str),
        made: impl FnMut(&Table) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let table = heartbeat_table();
        let table = std::slice::from_ref(&table);
        tables::make(primary, &mut primary.connect_watcher()?, table, made)?;

        let watch = Arc::new(Watch {
            clock: clock.clone(),
            epoch_ns: unix_now_ns().saturating_sub(clock.now()),
            heartbeats: Mutex::new(Heartbeats::new(replicas.len())),
            primary: Mutex::default(),
            readings: Mutex::default(),
            done: AtomicBool::new(false),
        });
        // The threads begin only now: an error before leaves none behind.
        let mut watched = Self {
            replicas,
            primary: primary.url(),
            is_foreign: primary.server().is_none(),
            writing: None,
            created: Mutex::default(),
            indexes: Indexes::default(),
            watch,
        };

        let begun = watched
            .start_threads(primary, table)
            .and_then(|()| watched.wait_until_all_follow(timeout, stop, say));
        let Err(error) = begun else {
            return Ok(watched);
        };
        // What is left in servers of others is told with the error.
        match watched.end(false) {
            Ok(()) => Err(error),
            Err(left) => Err(error.context(format!("{left:#}"))),
        }
    }

    /// Creates the table of the heartbeats where the primary's does not arrive, and starts the
    /// threads that watch.
    fn start_threads(&mut self, primary: &E, table: &[Table]) -> anyhow::Result<()> {
        // The threads are not joined: one that waits for a server would delay the end of that
        // server.
        let mut writer = Link::open(primary)?;
        let mut sampled = Vec::new();
        for (number, (name, replica)) in self.replicas.iter().enumerate() {
            let mut sampler =
                Sampler::new(Targets { server_pid: replica.process_id(), ..Targets::default() });
            // Readings are differences: this one is the first to compare with.
            let _ = sampler.sample();
            sampled.push((name.clone(), sampler));
            self.start_threads_of(number, primary, &mut writer, table)?;
        }

        let watch = Arc::clone(&self.watch);
        self.writing = Some(spawn("heart", move || watch.write_heartbeats::<E>(writer))?);
        let watch = Arc::clone(&self.watch);
        spawn("replicas", move || watch.read(&mut sampled))?;

        Ok(())
    }

    /// Creates the table of the heartbeats on a replica that lacks it, and starts the threads that
    /// watch the replica.
    fn start_threads_of(
        &self,
        number: usize,
        primary: &E,
        writer: &mut Link<E>,
        table: &[Table],
    ) -> anyhow::Result<()> {
        let (name, replica) = &self.replicas[number];

        let failed = |error| self.failure(number, "does not answer", error);
        let poller = Link::open(replica).map_err(failed)?;
        let mut of_replica = Link::open(replica).map_err(failed)?;
        let of_primary = Link::open(primary)?;

        let created = of_replica.ask(|session| {
            // What a killed run left behind.
            E::drop_tables(session, table)?;
            writer.ask(|primary| replica.create_tables(primary, session, table))
        });
        if created.map_err(|error| self.lacks_tables(number, error))? {
            locked(&self.created).extend(table.iter().map(|table| (number, table.clone())));
        }

        let watch = Arc::clone(&self.watch);
        spawn("heartbeats", move || watch.poll_heartbeats::<E>(number, poller))?;
        let (watch, name) = (Arc::clone(&self.watch), name.clone());
        spawn("behind", move || watch.read_behind::<E>(&name, of_primary, of_replica))?;

        Ok(())
    }

    /// Waits until all replicas show a heartbeat.
    fn wait_until_all_follow(
        &self,
        timeout: Duration,
        stop: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<()> {
        self.end_step(self.watch.clock.now());
        // Most replicas follow at once: only a wait that takes longer is worth a line.
        let silent = timeout.min(SILENT);

        let mut follows = self.catch_up(&[], silent, stop)?.is_some();
        if !follows && !stop.load(Ordering::Relaxed) {
            say(&self.awaited(timeout));
            follows = self.catch_up(&[], timeout - silent, stop)?.is_some();
        }
        if follows || stop.load(Ordering::Relaxed) {
            return Ok(());
        }

        let late = locked(&self.watch.heartbeats).late();
        let hint = if self.is_foreign {
            "; check that it follows the server of `url` and receives all tables of this database"
        } else {
            ""
        };

        let error = self.last_error(late);
        let why = format!("timed out after {} s{hint}{error}", timeout.as_secs());
        Err(self.failure(late, "did not catch up with its primary", anyhow::Error::msg(why)))
    }

    /// Returns the last error of a replica as a further clause; empty without one.
    fn last_error(&self, number: usize) -> String {
        let heartbeats = locked(&self.watch.heartbeats);
        match &heartbeats.replicas[number].refusal {
            Some(refusal) => format!("; its last error: {}", refusal.error),
            None => String::new(),
        }
    }

    /// Returns a text that says which replica is awaited, and for what.
    fn awaited(&self, timeout: Duration) -> String {
        let late = locked(&self.watch.heartbeats).late();
        format!(
            "waiting for {} to show a heartbeat of its primary, up to {} s{}",
            self.replicas[late].0,
            timeout.as_secs(),
            self.last_error(late)
        )
    }
}

impl<E: Replicated + 'static> Drop for Replicas<E> {
    fn drop(&mut self) {
        // An earlier error takes precedence.
        let _ = self.end(false);
    }
}

impl<E: Replicated + 'static> Replicas<E> {
    /// Returns the numbers of the replicas that don't receive DDL.
    fn logical(&self) -> Vec<usize> {
        let created = locked(&self.created);
        let heartbeats = created.iter().filter(|(_, table)| table.name == HEARTBEAT_TABLE);
        heartbeats.map(|(number, _)| *number).collect()
    }

    /// Returns the tables that assay created on a replica.
    fn created_on(&self, number: usize) -> Vec<Table> {
        let created = locked(&self.created);
        let own = created.iter().filter(|(on, _)| *on == number);
        own.map(|(_, table)| table.clone()).collect()
    }

    /// Returns the error of a replica that refuses tables of its primary.
    fn lacks_tables(&self, number: usize, error: engine::Error) -> anyhow::Error {
        self.failure(number, "cannot get the tables of its primary", error)
    }

    /// Returns an error about a replica, with its log.
    fn failure(&self, number: usize, what: &str, error: impl Into<anyhow::Error>) -> anyhow::Error {
        let (name, replica) = &self.replicas[number];
        // A limit of memory explains more than what the connection noticed.
        let what = match replica.killed_for_memory() {
            Some(why) => format!("{name} {what}: {why}"),
            None => format!("{name} {what}"),
        };

        LoggedError { what, log_tail: replica.log_tail(LOG_LINES), source: error.into() }.into()
    }

    /// Asks a replica about a table. Replay of what the primary still cleans up may cancel the
    /// queries: they are tried again.
    fn ask_again<T>(&self, ask: impl Fn() -> Result<T, engine::Error>) -> Result<T, engine::Error> {
        let began = self.watch.clock.now();
        loop {
            match ask() {
                Err(error)
                    if error.class.is_transient()
                        && self.watch.clock.now() - began < INSPECT_NS_MAX =>
                {
                    std::thread::sleep(INTERVAL);
                }
                result => return result,
            }
        }
    }

    /// Checks that a replica lives and follows its primary.
    fn check_replica(&self, number: usize, now: u64) -> anyhow::Result<()> {
        let no_longer_follows = "no longer follows its primary";
        let (_, replica) = &self.replicas[number];
        if !replica.process_id().is_none_or(engine::guard::is_alive) {
            let error = anyhow::Error::msg("its server has ended");
            return Err(self.failure(number, no_longer_follows, error));
        }

        let refusal = locked(&self.watch.heartbeats).replicas[number].refusal.clone();
        if let Some(refusal) = refusal.filter(|refusal| refusal.is_permanent(now)) {
            let error = anyhow::Error::msg(refusal.explained());
            return Err(self.failure(number, "cannot show the heartbeats of its primary", error));
        }

        let outage = locked(&self.watch.heartbeats).replicas[number].outage.clone();
        if let Some(outage) = outage.filter(|outage| outage.lasts(now)) {
            let error = anyhow::Error::msg(outage.reason);
            return Err(self.failure(number, no_longer_follows, error));
        }

        Ok(())
    }

    /// Returns whether all replicas have the indexes that have begun.
    fn have_indexes(&self) -> anyhow::Result<bool> {
        let there = self.indexes.are_there();
        let what = "cannot get the indexes of its primary";
        there.map_err(|(number, error)| self.failure(number, what, error))
    }
}

impl<E: Replicated + 'static> Replication for Replicas<E> {
    fn end_step(&self, end_ns: u64) -> Vec<ReplicaReading> {
        locked(&self.watch.heartbeats).end_step(end_ns);
        std::mem::take(&mut locked(&self.watch.readings))
    }

    fn lag(&self) -> Duration {
        let (now, heartbeats) = (self.watch.clock.now(), locked(&self.watch.heartbeats));
        let follow = (0..self.replicas.len()).filter(|number| heartbeats.has_shown_any(*number));
        let lags = follow.map(|number| heartbeats.lag_ns(number, now));
        Duration::from_nanos(lags.max().unwrap_or(0))
    }

    fn check_following(&self) -> anyhow::Result<()> {
        let now = self.watch.clock.now();
        for number in 0..self.replicas.len() {
            self.check_replica(number, now)?;
        }

        match &*locked(&self.watch.primary) {
            Some(outage) if outage.lasts(now) => {
                bail!("cannot write heartbeats to the primary: {}", outage.reason)
            }
            _ => Ok(()),
        }
    }

    fn create_tables(&self, tables: &[Table]) -> anyhow::Result<()> {
        let mut primary = Link::<E>::to(&self.primary);
        for number in self.logical() {
            let replica = &self.replicas[number].1;
            let mut link = Link::<E>::to(&replica.url());

            let created = primary
                .ask(|primary| link.ask(|session| replica.create_tables(primary, session, tables)));
            created.map_err(|error| self.lacks_tables(number, error))?;
            locked(&self.created).extend(tables.iter().map(|table| (number, table.clone())));
        }

        Ok(())
    }

    fn catch_up(
        &self,
        tables: &[Table],
        at_most: Duration,
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<Duration>> {
        // The indexes are created while the replica catches up: both take long.
        let began = self.watch.clock.now();
        for number in self.logical() {
            let mut created = self.created_on(number);
            // Others are the operator's.
            created.retain(|known| tables.iter().any(|table| table.name == known.name));
            let replica = self.replicas[number].1.url();
            if !created.is_empty() {
                self.indexes.begin(number, [&self.primary, &replica], created);
            }
        }

        let mut indexed_after = None;
        loop {
            let waited = Duration::from_nanos(self.watch.clock.now() - began);
            if indexed_after.is_none() && self.have_indexes()? {
                indexed_after = Some(waited);
            }

            let took = locked(&self.watch.heartbeats).caught_up_after();
            if let Some((took, indexed_after)) = took.zip(indexed_after) {
                return Ok(Some(took.max(indexed_after)));
            }

            self.check_following()?;
            if waited >= at_most || stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
    }

    fn settle(
        &self,
        tables: &[Table],
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> anyhow::Result<Settled> {
        let mut all = Settled::default();
        let began = self.watch.clock.now();
        for number in self.logical() {
            let (name, replica) = &self.replicas[number];
            // The primary has had the minimum; the maximum is for all of them.
            let passed = Duration::from_nanos(self.watch.clock.now() - began);
            let limits = SettleLimits {
                at_least: Duration::ZERO,
                at_most: limits.at_most.saturating_sub(passed),
            };
            let settled = replica
                .settle(tables, limits, stop)
                .map_err(|error| self.failure(number, "cannot be settled", error))?;

            for action in settled.actions {
                let what = format!("{} on {name}", action.what);
                all.actions.push(Action { what, ..action });
            }
            for what in settled.unfinished {
                all.unfinished.push(format!("{what} on {name}"));
            }
        }

        Ok(all)
    }

    fn inspect(
        &self,
        table: &Table,
        indexes: bool,
        every: u64,
    ) -> anyhow::Result<Vec<(String, TableContents)>> {
        let mut found = Vec::new();
        for (number, (name, replica)) in self.replicas.iter().enumerate() {
            let failed = |error| self.failure(number, "cannot be compared", error);
            let facts = self.ask_again(|| replica.inspect(table, indexes)).map_err(failed)?;
            let digest = self.ask_again(|| replica.digest(table, every)).map_err(failed)?;
            found.push((name.clone(), TableContents { facts, digest }));
        }

        Ok(found)
    }

    fn stop(mut self: Box<Self>, keeps_tables: bool) -> StoppedReplicas {
        let cleaned = self.end(keeps_tables);
        let mut stopped = Ok(());
        // All of them, even if one does not stop.
        for (name, replica) in std::mem::take(&mut self.replicas) {
            stopped = stopped.and_clean_up(stop_replica(&name, replica));
        }

        StoppedReplicas { cleaned, stopped }
    }
}

/// Stops a replica that assay started.
fn stop_replica<E: Replicated>(name: &str, replica: E) -> anyhow::Result<()> {
    // The value is gone once it is stopped, and its log may be needed then.
    let log = replica.log_path();

    replica.stop().map_err(|error| {
        let tail = log.map(|log| engine::log_tail(&log, LOG_LINES));
        let what = format!("{name} did not stop");
        LoggedError { what, log_tail: tail.unwrap_or_default(), source: error.into() }.into()
    })
}
