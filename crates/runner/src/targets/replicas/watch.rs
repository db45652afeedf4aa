//! The threads that watch replicas: they write heartbeats, poll them, and read gauges and costs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{Counter, HEARTBEAT_TABLE, Replicated, Session};
use load::{Clock as _, SystemClock};
use probe::Sampler;

use super::heartbeats::{Heartbeats, INTERVAL, Outage};
use super::link::Link;
use super::{SECOND_NS, locked};

/// The time of polls within an interval, which begins with a heartbeat.
const POLL_AT: Duration = Duration::from_millis(50);
/// The time of readings within an interval: after the reply to a poll.
const READ_AT: Duration = Duration::from_millis(75);

/// A reading of the replicas: its time by the clock, and gauges and counters of which the largest
/// of a second is kept. Their names begin with those of the replicas.
pub struct ReplicaReading {
    pub at_ns: u64,
    pub counters: Vec<Counter>,
}

/// The state that all threads share.
pub struct Watch {
    pub clock: SystemClock,
    /// The Unix time at which the clock was 0, in nanoseconds: added to heartbeats, so that those
    /// of earlier runs are older.
    pub epoch_ns: u64,
    pub heartbeats: Mutex<Heartbeats>,
    /// The reason why no heartbeats are written.
    pub primary: Mutex<Option<Outage>>,
    pub readings: Mutex<Vec<ReplicaReading>>,
    pub done: AtomicBool,
}

impl Watch {
    /// Returns the statement that writes a heartbeat.
    pub fn insert_heartbeat(&self, sent_at_ns: u64) -> String {
        let value = self.epoch_ns + sent_at_ns;
        format!("insert into {HEARTBEAT_TABLE} values ({value})")
    }

    /// Reads the newest heartbeat on a replica, by the clock; `None` if there is none, or only
    /// those of an earlier run.
    pub fn newest_heartbeat<S: Session>(
        &self,
        replica: &mut S,
    ) -> Result<Option<u64>, engine::Error> {
        let newest = replica.query_i64(&format!("select max(at_ns) from {HEARTBEAT_TABLE}"))?;
        Ok(newest.and_then(|newest| newest.cast_unsigned().checked_sub(self.epoch_ns)))
    }

    /// Sleeps until the next time at `offset` in an interval. Returns false if there is nothing
    /// more to do.
    fn sleep_until(&self, offset: Duration) -> bool {
        let interval = INTERVAL.as_nanos() as u64;
        let offset = offset.as_nanos() as u64;
        let next = (self.clock.now() + interval - offset) / interval * interval + offset;
        self.clock.sleep_until(next);
        !self.done.load(Ordering::Acquire)
    }

    fn note_of_replica(&self, replica: usize, found: Option<String>) {
        let outage = &mut locked(&self.heartbeats).replicas[replica].outage;
        Outage::note(outage, found, self.clock.now());
    }

    /// Writes heartbeats on the primary.
    pub fn write_heartbeats<E: Replicated>(&self, mut primary: Link<E>) {
        while self.sleep_until(Duration::ZERO) {
            let sent_at = self.clock.now();
            // A row that is updated has old versions, whose removal would conflict with queries on
            // replicas.
            let sql = self.insert_heartbeat(sent_at);

            locked(&self.heartbeats).send(sent_at);
            let written = primary.ask(|session| session.query(&sql).map(drop));

            let now = self.clock.now();
            if written.is_ok() {
                locked(&self.heartbeats).commit(sent_at, now);
            } else {
                locked(&self.heartbeats).lose();
            }

            let outage = written.err().map(|error| error.to_string());
            Outage::note(&mut locked(&self.primary), outage, now);
        }
    }

    /// Reads once a second how much of the primary's log a replica lacks.
    pub fn read_behind<E: Replicated>(
        &self,
        name: &str,
        mut primary: Link<E>,
        mut replica: Link<E>,
    ) {
        let mut second = 0;
        while self.sleep_until(READ_AT) {
            let now = self.clock.now();
            if now / SECOND_NS == second {
                continue;
            }
            second = now / SECOND_NS;

            let behind = primary.ask(|primary| {
                replica.ask(|replica| E::replication_gauges(primary, replica, name))
            });
            // An error also stops the heartbeats, which reports it.
            locked(&self.readings)
                .push(ReplicaReading { at_ns: now, counters: behind.unwrap_or_default() });
        }
    }

    /// Reads the newest heartbeat on a replica, and once a second whether it still follows.
    pub fn poll_heartbeats<E: Replicated>(&self, number: usize, mut replica: Link<E>) {
        let mut second = 0;
        while self.sleep_until(POLL_AT) {
            let newest = replica.ask(|session| self.newest_heartbeat(session));
            let now = self.clock.now();

            // In case of an error, the table is not there yet, or replay canceled the query.
            match &newest {
                Ok(Some(newest)) => locked(&self.heartbeats).show(number, *newest, now),
                Ok(None) => {}
                Err(error) => locked(&self.heartbeats).fail(number, error.clone(), now),
            }

            if replica.session.is_none() {
                // Without a session the replica does not follow, whatever it would say of itself.
                self.note_of_replica(number, newest.err().map(|error| error.to_string()));
            } else if now / SECOND_NS != second {
                second = now / SECOND_NS;
                let found = replica.ask(|session| E::replication_error(session));
                self.note_of_replica(number, found.unwrap_or_else(|error| Some(error.to_string())));
            }
        }
    }

    /// Reads the lag and costs of replicas. Never waits for any of them.
    pub fn read(&self, replicas: &mut [(String, Sampler)]) {
        // So each second of a step has a reading of the costs, whenever the step began.
        let half_second_ns = SECOND_NS / 2;
        let mut half_second = 0;
        while self.sleep_until(READ_AT) {
            let now = self.clock.now();
            let mut counters = Vec::new();
            let heartbeats = locked(&self.heartbeats);
            for (number, (name, _)) in replicas.iter().enumerate() {
                let lag_ms = heartbeats.lag_ns(number, now) as f64 / 1e6;
                counters.push(Counter::gauge(format!("{name}.lag_ms"), lag_ms));
            }
            drop(heartbeats);

            if now / half_second_ns != half_second {
                half_second = now / half_second_ns;
                let costs =
                    replicas.iter_mut().flat_map(|replica| costs(&replica.0, &mut replica.1));
                counters.extend(costs);
            }

            locked(&self.readings).push(ReplicaReading { at_ns: now, counters });
        }
    }
}

/// The replica's process counters that are recorded.
const COSTS: [&str; 5] = [
    "server_cpu_user_ns",
    "server_cpu_system_ns",
    "server_read_bytes",
    "server_write_bytes",
    "server_context_switch_count",
];

fn costs(replica: &str, sampler: &mut Sampler) -> Vec<Counter> {
    let Ok(sample) = sampler.sample() else {
        return Vec::new();
    };

    let mut counters = Vec::new();
    for name in COSTS {
        let Some(value) = sample.get(name) else { continue };
        let name = format!("{replica}.{}", name.trim_start_matches("server_"));
        counters.push(Counter::cumulative(name, value as f64));
    }
    counters
}

#[cfg(test)]
mod tests {
    use engine::SqlEngine as _;
    use engine::sqlite::{Library, Sqlite};

    use super::*;

    #[test]
    fn heartbeats_of_an_earlier_run_are_not_those_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = Sqlite::start(Library::bundled(), folder.path(), &[]).unwrap();
        let mut session = sqlite.connect().unwrap();
        let watch = |epoch_ns| Watch {
            clock: SystemClock::begin(),
            epoch_ns,
            heartbeats: Mutex::new(Heartbeats::new(1)),
            primary: Mutex::default(),
            readings: Mutex::default(),
            done: AtomicBool::new(false),
        };
        let create = format!("create table {HEARTBEAT_TABLE} (at_ns integer primary key)");
        session.query(&create).unwrap();
        let (earlier, now) = (watch(500), watch(1_000_000));
        assert_eq!(now.newest_heartbeat(&mut session).unwrap(), None);
        session.query(&earlier.insert_heartbeat(700)).unwrap();
        assert_eq!(now.newest_heartbeat(&mut session).unwrap(), None);
        session.query(&now.insert_heartbeat(7)).unwrap();
        assert_eq!(now.newest_heartbeat(&mut session).unwrap(), Some(7));
    }
}
