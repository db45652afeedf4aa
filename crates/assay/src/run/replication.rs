//! Replicas of a cell's server: how far they lag, how they catch up, and what data they have.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, bail};
use engine::{Counter, REPLICA_PREFIX, Replicated, Session, SqlEngine, Table, TableFacts};
use load::{Clock as _, SystemClock};
use probe::{Sampler, Targets};

/// The table of the heartbeat's row.
const TABLE: &str = "assay_heartbeat";
/// The time between heartbeats, and between looks at a replica.
const INTERVAL: Duration = Duration::from_millis(100);
const SECOND_NS: u64 = 1_000_000_000;

/// A reading of a replica: its time by the clock, and gauges and counters of which the largest of a second is kept.
type Reading = (u64, Vec<Counter>);

/// The replicas of a server.
pub trait Replication {
    /// Returns the readings since the last call.
    fn readings(&self) -> Vec<Reading>;

    /// Waits until all replicas show what was committed before this call. Returns false if `at_most` has passed or `stop` is
    /// set.
    ///
    /// # Errors
    /// A replica no longer follows.
    fn catch_up(&self, at_most: Duration, stop: &AtomicBool) -> anyhow::Result<bool>;

    /// Returns the contents of a table on each replica, with its name.
    ///
    /// # Errors
    /// An error of the engine.
    fn inspect(
        &self,
        table: &Table,
        indexes: bool,
    ) -> Result<Vec<(String, TableFacts)>, engine::Error>;

    /// Stops the replicas.
    ///
    /// # Errors
    /// One of them did not stop cleanly.
    fn stop(self: Rc<Self>) -> anyhow::Result<()>;
}

/// Running replicas, with threads that write a heartbeat on the primary and look for it on each replica.
pub struct Replicas<E> {
    replicas: Vec<(String, E)>,
    clock: SystemClock,
    readings: Mutex<Receiver<Reading>>,
    /// The newest heartbeat seen on each replica.
    seen: Vec<Arc<AtomicU64>>,
    failure: Arc<Mutex<Option<String>>>,
    done: Arc<AtomicBool>,
}

impl<E: Replicated + 'static> Replicas<E> {
    /// Begins to watch replicas, and waits until they follow.
    ///
    /// # Errors
    /// An error of the engine, or the replicas don't show a heartbeat in time.
    pub fn watch(
        primary: &E,
        replicas: Vec<(String, E)>,
        clock: &SystemClock,
        timeout: Duration,
        stop: &AtomicBool,
    ) -> anyhow::Result<Self> {
        let mut writer = primary.connect()?;
        for sql in [
            format!("drop table if exists {TABLE}"),
            format!("create table {TABLE} (id int primary key, at_ns bigint not null)"),
            format!("insert into {TABLE} values (1, 0)"),
        ] {
            writer.query(&sql)?;
        }
        let (sender, readings) = channel();
        let done = Arc::new(AtomicBool::new(false));
        let failure = Arc::new(Mutex::new(None));
        let mut seen = Vec::new();
        for (name, replica) in &replicas {
            let newest = Arc::new(AtomicU64::new(0));
            seen.push(Arc::clone(&newest));
            let mut sampler = Sampler::new(Targets {
                server_pid: replica.process_id(),
                ..Targets::default()
            });
            let _ = sampler.sample();
            let mut reader = Reader::<E> {
                name: name.clone(),
                replica: replica.connect()?,
                primary: primary.connect()?,
                sampler,
                clock: clock.clone(),
                seen: newest,
                sender: sender.clone(),
            };
            let (done, failure) = (Arc::clone(&done), Arc::clone(&failure));
            // Not joined: a replica that does not answer would delay its own end.
            std::thread::spawn(move || {
                if let Err(error) = reader.read(&done) {
                    note_failure(&failure, &done, format!("{}: {error}", reader.name));
                }
            });
        }
        let (clock_of_writer, done_too, failure_too) =
            (clock.clone(), Arc::clone(&done), Arc::clone(&failure));
        std::thread::spawn(move || {
            while !done_too.load(Ordering::Acquire) {
                let now = clock_of_writer.now();
                if let Err(error) = writer.query(&format!("update {TABLE} set at_ns = {now}")) {
                    let text = format!("the heartbeat can't be written: {error}");
                    return note_failure(&failure_too, &done_too, text);
                }
                std::thread::sleep(INTERVAL);
            }
        });
        let watched = Self {
            replicas,
            clock: clock.clone(),
            readings: Mutex::new(readings),
            seen,
            failure,
            done,
        };
        if !watched.catch_up(timeout, stop)? && !stop.load(Ordering::Relaxed) {
            bail!(
                "the replicas do not show what is on the primary within {} s; see their logs in the record",
                timeout.as_secs()
            );
        }
        Ok(watched)
    }
}

impl<E> Drop for Replicas<E> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
    }
}

fn note_failure(failure: &Mutex<Option<String>>, done: &AtomicBool, text: String) {
    // Connections end with the cell.
    if !done.load(Ordering::Acquire)
        && let Ok(mut failure) = failure.lock()
    {
        failure.get_or_insert(text);
    }
}

impl<E: Replicated> Replication for Replicas<E> {
    fn readings(&self) -> Vec<Reading> {
        let readings = self.readings.lock();
        readings.map_or_else(|_| Vec::new(), |readings| readings.try_iter().collect())
    }

    fn catch_up(&self, at_most: Duration, stop: &AtomicBool) -> anyhow::Result<bool> {
        let began = self.clock.now();
        let mut next_look = began + SECOND_NS;
        loop {
            if self
                .seen
                .iter()
                .all(|seen| seen.load(Ordering::Acquire) >= began)
            {
                return Ok(true);
            }
            let failure = self.failure.lock().ok().and_then(|failure| failure.clone());
            let now = self.clock.now();
            if failure.is_some() || now >= next_look {
                next_look = now + SECOND_NS;
                for (name, replica) in &self.replicas {
                    let broken = replica.broken();
                    let broken = broken.with_context(|| format!("{name} does not answer"));
                    if let Some(reason) = broken? {
                        bail!("{name} no longer follows its primary: {reason}");
                    }
                }
            }
            if let Some(failure) = failure {
                bail!("replication can't be watched: {failure}");
            }
            if now - began >= at_most.as_nanos() as u64 || stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn inspect(
        &self,
        table: &Table,
        indexes: bool,
    ) -> Result<Vec<(String, TableFacts)>, engine::Error> {
        let replicas = self.replicas.iter();
        replicas
            .map(|(name, replica)| Ok((name.clone(), replica.inspect(table, indexes)?)))
            .collect()
    }

    fn stop(self: Rc<Self>) -> anyhow::Result<()> {
        let Some(mut this) = Rc::into_inner(self) else {
            return Ok(());
        };
        this.done.store(true, Ordering::Release);
        let stop = |(name, replica): (String, E)| {
            let stopped = replica.stop();
            stopped.with_context(|| format!("{name} did not stop"))
        };
        // All of them, even if one does not stop.
        let replicas = std::mem::take(&mut this.replicas).into_iter();
        replicas.map(stop).fold(Ok(()), Result::and)
    }
}

/// Looks at one replica.
struct Reader<E: SqlEngine> {
    name: String,
    replica: E::Session,
    primary: E::Session,
    sampler: Sampler,
    clock: SystemClock,
    seen: Arc<AtomicU64>,
    sender: Sender<Reading>,
}

/// The replica's process counters that are recorded, without their prefix.
const COSTS: [&str; 4] = [
    "server_cpu_user_ns",
    "server_cpu_system_ns",
    "server_read_bytes",
    "server_write_bytes",
];

impl<E: Replicated> Reader<E> {
    fn read(&mut self, done: &AtomicBool) -> Result<(), engine::Error> {
        let sql = format!("select at_ns from {TABLE}");
        let mut second = 0;
        while !done.load(Ordering::Acquire) {
            let asked_at = self.clock.now();
            let newest = match self.replica.query_i64(&sql) {
                Ok(newest) => newest.unwrap_or(0) as u64,
                Err(error) if error.class == engine::ErrorClass::ConnectionLost => {
                    return Err(error);
                }
                // The table is not there yet, or replay canceled the query.
                Err(_) => self.seen.load(Ordering::Acquire),
            };
            let now = self.clock.now();
            let before = self.seen.swap(newest, Ordering::AcqRel);
            // Until a late reply, the replica showed what it had shown before.
            let shown = match now - asked_at > INTERVAL.as_nanos() as u64 {
                true => before,
                false => newest,
            };
            let mut counters = Vec::new();
            if shown > 0 {
                let lag_ms = now.saturating_sub(shown) as f64 / 1e6;
                counters.push(Counter::gauge(format!("{REPLICA_PREFIX}lag_ms"), lag_ms));
            }
            if now / SECOND_NS != second {
                second = now / SECOND_NS;
                counters.extend(E::behind(&mut self.primary, &self.name)?);
                counters.extend(self.costs());
            }
            let _ = self.sender.send((now, counters));
            std::thread::sleep(INTERVAL.saturating_sub(Duration::from_nanos(now - asked_at)));
        }
        Ok(())
    }

    fn costs(&mut self) -> Vec<Counter> {
        let Ok(sample) = self.sampler.sample() else {
            return Vec::new();
        };
        let counter = |name: &&str| {
            let value = sample.get(name)? as f64;
            let name = format!("{REPLICA_PREFIX}{}", name.trim_start_matches("server_"));
            Some(Counter::cumulative(name, value))
        };
        COSTS.iter().filter_map(counter).collect()
    }
}

/// Merges the readings of a step that began at `start_ns` by the clock into one row for each of its `elapsed_ns`, with the largest
/// value of each gauge and counter in that second.
pub fn by_second(
    readings: Vec<Reading>,
    start_ns: u64,
    elapsed_ns: u64,
) -> Vec<(u32, u64, Vec<Counter>)> {
    let mut rows: Vec<(u32, u64, Vec<Counter>)> = Vec::new();
    let within = |(at, counters): Reading| {
        let at = at.checked_sub(start_ns).filter(|at| *at < elapsed_ns)?;
        Some((at, counters))
    };
    let mut readings: Vec<Reading> = readings.into_iter().filter_map(within).collect();
    readings.sort_by_key(|(at, _)| *at);
    for (at, counters) in readings {
        let second = (at / SECOND_NS) as u32;
        if rows.last().is_none_or(|(last, ..)| *last != second) {
            rows.push((second, at, Vec::new()));
        }
        let Some((_, last_at, row)) = rows.last_mut() else {
            continue;
        };
        *last_at = at;
        for counter in counters {
            match row.iter_mut().find(|it| it.name == counter.name) {
                Some(known) => known.value = known.value.max(counter.value),
                None => row.push(counter),
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_the_largest_lag_of_its_looks() {
        let lag = |at_ms: u64, lag_ms: f64| {
            let gauge = Counter::gauge("replica.lag_ms", lag_ms);
            (at_ms * 1_000_000, vec![gauge])
        };
        let readings = vec![
            lag(900, 7.0),
            lag(1_100, 20.0),
            lag(1_800, 90.0),
            lag(3_500, 40.0),
            lag(4_100, 5.0),
        ];
        let rows = by_second(readings, SECOND_NS, 3 * SECOND_NS);
        let found: Vec<(u32, u64, f64)> = rows
            .iter()
            .map(|(second, at, row)| (*second, at / 1_000_000, row[0].value))
            .collect();
        assert_eq!(found, [(0, 800, 90.0), (2, 2_500, 40.0)]);
    }
}
