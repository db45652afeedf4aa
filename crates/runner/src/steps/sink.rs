//! Records and shows what a step does while it runs, including what is sampled during the load.

use std::collections::BTreeMap;

use engine::Observer;
use load::{ConnectionThreads, LatencyKind, Progress, Sink};
use probe::{Sample, Sampler, StateCounts, ThreadStates, WatchedConnection};
use record::{ConnectionState, Cpu, IntervalRow, LoadPause, Step, StepWriter};

use super::sampling::{HostSampler, Sampling, SamplingResult, StepReading};
use super::system_calls::{CellCalls, StepCalls};
use crate::ground::events::Events;
use crate::ground::failure;
use crate::ground::time::unix_now_ns;
use crate::targets::replicas::Replication;
use crate::turns::{Placing, Seat, StepClock};

/// The time from the beginning of counting to the start of the load, for its threads to fall
/// asleep.
const LEAD_NS: u64 = 20_000_000;

/// Returns the number of times that a connection was seen in each state.
pub fn seen_states(counts: &StateCounts) -> BTreeMap<ConnectionState, u64> {
    let all = ConnectionState::ALL.into_iter().zip(counts.iter().copied());
    all.filter(|(_, count)| *count > 0).collect()
}

/// Estimates how often a connection was seen in each state, from the samples of its client and its
/// server, which were taken apart. While the server works, the client waits, except while they
/// overlap. So the rest of the client's wait is for messages on their way; less than nothing is an
/// overlap. Empty if either was not sampled.
pub fn both_sides(
    client: &BTreeMap<ConnectionState, u64>,
    server: &BTreeMap<ConnectionState, u64>,
) -> BTreeMap<ConnectionState, u64> {
    use ConnectionState::{Handover, Overlap, Runnable};
    let total = |side: &BTreeMap<ConnectionState, u64>| side.values().sum::<u64>() as f64;
    let server_total = total(server);
    let scale = server_total / total(client);
    let of_client = |state| seen(client, state) * scale;
    let of_server = |state| seen(server, state);

    let messages = of_client(Handover) - (server_total - of_server(Handover));
    let overlap = (-messages).max(0.0);

    let mut estimates = BTreeMap::new();
    for state in ConnectionState::ALL {
        let of_both = of_client(state) + of_server(state);
        let estimate = match state {
            Handover => messages,
            Overlap => overlap,
            Runnable => of_both - 2.0 * overlap,
            _ => of_both,
        };
        // The cast makes negative numbers and NaN zero.
        let count = estimate.round() as u64;
        if count > 0 {
            estimates.insert(state, count);
        }
    }
    estimates
}

/// Returns how often one side of a connection was seen in a state.
fn seen(side: &BTreeMap<ConnectionState, u64>, state: ConnectionState) -> f64 {
    side.get(&state).copied().unwrap_or(0) as f64
}

/// The instruments that sample during a step.
pub struct Instruments {
    pub sampler: Sampler,
    /// Reads the engine's counters; `None` where the engine must not be disturbed.
    pub observer: Option<Box<dyn Observer>>,
    /// The states of threads are sampled. In an exact cell, connections wait for each other.
    pub samples_states: bool,
    /// The engine works on the threads of clients.
    pub is_embedded: bool,
    /// The server's thread that answers the observer.
    pub own_thread: Option<u32>,
    /// Counts the engine's system calls, if the plan says so.
    pub(super) system_calls: Option<CellCalls>,
}

/// The replicas during a load, and what every load needs.
pub struct Followers<'a> {
    pub replication: Option<&'a dyn Replication>,
    /// The error of a lost replica, which ended the load.
    pub lost: Option<anyhow::Error>,
    /// Puts the connections on processors.
    pub placing: &'a Placing,
}

impl Followers<'_> {
    /// Ends the load if a replica is lost: commits that wait for it would never end.
    fn check(&mut self) -> Result<(), String> {
        let Some(replication) = self.replication else {
            return Ok(());
        };
        let Err(error) = replication.check_following() else {
            return Ok(());
        };

        let text = format!("{error:#}");
        self.lost = Some(error);
        Err(text)
    }
}

/// During a warm-up, nothing is recorded.
impl Sink for Followers<'_> {
    fn begin(&mut self, earliest: u64, connections: &[ConnectionThreads]) -> Result<u64, String> {
        self.placing.begin(connections).map_err(|error| format!("{error:#}"))?;
        Ok(earliest)
    }

    fn progress(&mut self, _: &Progress) -> Result<(), String> {
        self.check()
    }
}

/// Records what the load and the probes measure.
pub struct StepSink<'a> {
    writer: &'a mut StepWriter,
    events: &'a dyn Events,
    clock: StepClock,
    /// The target's seat among those that take turns; `None` if it is measured alone.
    seat: Option<&'a Seat>,
    /// The time at which the step began.
    started_unix_ns: u64,
    /// The same by the clock; `None` until it begins.
    started_ns: Option<u64>,
    /// The instruments that sample during the load, until it begins.
    instruments: Option<Instruments>,
    sampling: Option<Sampling>,
    /// The result of sampling, from when the connections have done their work.
    sampled: Option<SamplingResult>,
    system_calls: Option<StepCalls>,
    /// The reason why a sample could not be taken or written.
    error: Option<String>,
    pub followers: Followers<'a>,
    held_up: Vec<LoadPause>,
    first: Option<Sample>,
    last: Option<Sample>,
}

/// The contents of a sink when the load has ended.
pub struct SinkEnd {
    /// The parts that the next step reuses.
    pub sampled: SamplingResult,
    /// The reason why a sample could not be taken or written.
    pub error: Option<String>,
    /// The time by the clock at which the load began; `None` if it did not.
    pub started_ns: Option<u64>,
    /// The error of a lost replica, which ended the load.
    pub lost: Option<anyhow::Error>,
}

impl<'a> StepSink<'a> {
    /// Returns a sink that writes to `writer` and tells `events`.
    pub fn new(
        writer: &'a mut StepWriter,
        events: &'a dyn Events,
        clock: StepClock,
        seat: Option<&'a Seat>,
        instruments: Instruments,
        followers: Followers<'a>,
    ) -> Self {
        Self {
            writer,
            events,
            clock,
            seat,
            started_unix_ns: unix_now_ns(),
            started_ns: None,
            instruments: Some(instruments),
            sampling: None,
            sampled: None,
            system_calls: None,
            error: None,
            followers,
            held_up: Vec::new(),
            first: None,
            last: None,
        }
    }

    /// Takes the last readings, and records when the step began, stalls of the process, and the CPU
    /// use of assay, the server and the host.
    pub fn end(mut self, record: &mut Step) -> SinkEnd {
        // Before the engine is idle for long: its background threads continue.
        let calls = self.system_calls.take().map(StepCalls::end);
        self.end_sampling();
        let mut sampled = self.sampled.take().unwrap_or_default();
        for reading in std::mem::take(&mut sampled.readings) {
            self.take(reading);
        }

        self.events.load_ends();

        if let Some(calls) = calls {
            calls.record(record);
        }
        record.started_unix_ns = self.started_unix_ns;
        record.held_up.extend(self.held_up);
        record.cpu = cpu(self.first.as_ref(), self.last.as_ref());

        SinkEnd {
            sampled,
            error: self.error,
            started_ns: self.started_ns,
            lost: self.followers.lost,
        }
    }

    fn end_sampling(&mut self) {
        if let Some(sampling) = self.sampling.take() {
            self.sampled = Some(sampling.end());
        }
    }

    /// Begins to count system calls, if the plan says so. Returns the earliest time for the start
    /// of the load.
    fn begin_system_calls(&mut self, earliest: u64, connections: &[ConnectionThreads]) -> u64 {
        let Some(instruments) = &self.instruments else {
            return earliest;
        };
        let Some(calls) = &instruments.system_calls else {
            return earliest;
        };
        let clients = connections.iter().filter_map(|threads| threads.client).collect();
        self.system_calls = Some(calls.begin(clients, instruments.own_thread));
        earliest.max(self.clock.now() + LEAD_NS)
    }

    fn take(&mut self, reading: StepReading) {
        let result = match reading {
            StepReading::Host(at_ns, Ok(sample)) => {
                let values: Vec<Option<i64>> =
                    sample.values.iter().map(|(_, value)| *value).collect();
                self.first.get_or_insert_with(|| sample.clone());
                self.last = Some(sample);

                let second = (at_ns / 1_000_000_000) as u32;
                let written = self.writer.host(0, second, at_ns as i64, &values);
                written.map_err(error_text)
            }
            StepReading::LoadPause(held_up) => {
                self.held_up.push(held_up);
                Ok(())
            }
            StepReading::Host(_, Err(error)) => Err(format!("the host cannot be sampled: {error}")),
            StepReading::Engine(at_ns, sample) => self
                .writer
                .counters((at_ns / 1_000_000_000) as u32, at_ns as i64, &sample)
                .map_err(error_text),
        };
        // The first error says most: the others may follow from it.
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }
}

impl Sink for StepSink<'_> {
    fn begin(&mut self, earliest: u64, connections: &[ConnectionThreads]) -> Result<u64, String> {
        // Counting many threads may take longer than the load's own preparations. The threads that
        // sample begin later, so that they are not taken for the engine's.
        let earliest = self.begin_system_calls(earliest, connections);

        let start_at = self.followers.begin(earliest, connections)?;
        self.started_unix_ns = unix_now_ns() + start_at.saturating_sub(self.clock.now());
        self.started_ns = Some(start_at);
        self.writer.started(self.started_unix_ns);

        let Some(instruments) = self.instruments.take() else {
            return Ok(start_at);
        };

        let Instruments { sampler, observer, samples_states, is_embedded, own_thread, .. } =
            instruments;
        let states = samples_states.then(|| {
            let processes = sampler.server_processes();
            states_of(connections).with_engine(is_embedded, processes, own_thread)
        });

        let host = HostSampler { sampler, share: self.seat.map(Seat::host_share) };
        let sampling = Sampling::begin(&self.clock, start_at, host, observer, states);
        self.sampling = Some(sampling.map_err(|error| error.to_string())?);
        Ok(start_at)
    }

    /// The server ends its threads with the connections, and the last sample would lack their work.
    fn before_close(&mut self) {
        self.end_sampling();
    }

    fn intervals(&mut self, rows: &[IntervalRow<'static>]) -> Result<(), String> {
        self.events.intervals(rows);
        self.writer.intervals(rows).map_err(error_text)
    }

    fn latencies(
        &mut self,
        second: u32,
        kind: &str,
        time: LatencyKind,
        histogram: &hdrhistogram::Histogram<u64>,
    ) -> Result<(), String> {
        // The first latency fixes the start in the log, and by now there was a turn.
        if let Some(first_turn_unix_ns) = self.seat.and_then(Seat::first_turn_unix_ns) {
            self.writer.started(first_turn_unix_ns);
        }

        self.events.latencies(second, kind, time, histogram);
        self.writer
            .latency(second, &format!("{kind}.{}", time.name()), histogram)
            .map_err(error_text)
    }

    fn client_host(&mut self, rank: u32, at_ns: u64, values: &[Option<i64>]) -> Result<(), String> {
        let second = (at_ns / 1_000_000_000) as u32;
        let written = self.writer.host(rank, second, at_ns as i64, values);
        written.map_err(error_text)
    }

    fn progress(&mut self, progress: &Progress) -> Result<(), String> {
        let readings: Vec<StepReading> = self.sampling.iter().flat_map(Sampling::drain).collect();
        for reading in readings {
            self.take(reading);
        }

        let lag = self.followers.replication.map(Replication::lag);
        self.events.load_progress(progress, lag);

        self.error.take().map_or(Ok(()), Err)?;
        self.followers.check()
    }
}

/// Returns an error and its causes in one line.
fn error_text(error: record::RecordError) -> String {
    failure::error_text(&error.into())
}

/// Returns what samples the states of connections: both sides of each, or only the server's where
/// the clients are on other hosts.
fn states_of(connections: &[ConnectionThreads]) -> ThreadStates {
    let mut watched = Vec::new();
    for threads in connections {
        let Some(client) = threads.client else {
            let servers: Vec<_> = connections.iter().map(|threads| threads.server).collect();
            return ThreadStates::of_one_side(&servers);
        };
        watched.push(WatchedConnection { client, server: threads.server });
    }

    ThreadStates::new(&watched)
}

/// Returns the CPU time of assay, the server and the host between two samples.
pub fn cpu(first: Option<&Sample>, last: Option<&Sample>) -> Cpu {
    let difference = |names: &[&str]| -> Option<u64> {
        let (first, last) = (first?, last?);
        let mut sum = 0;
        for name in names {
            sum += last.get(name)?.saturating_sub(first.get(name)?).max(0) as u64;
        }
        Some(sum)
    };

    Cpu {
        client_user_ns: 0,
        client_system_ns: 0,
        assay_ns: difference(&["assay_cpu_ns"]).unwrap_or(0),
        server_ns: difference(&["server_cpu_user_ns", "server_cpu_system_ns"]),
        host_ns: difference(&[
            "cpu_user_ns",
            "cpu_nice_ns",
            "cpu_system_ns",
            "cpu_irq_ns",
            "cpu_softirq_ns",
        ])
        .unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use ConnectionState::{Fsync, Handover, Lock, Overlap, Runnable, Sleep};

    use super::*;

    fn estimated(
        client: &[(ConnectionState, u64)],
        server: &[(ConnectionState, u64)],
    ) -> Vec<(ConnectionState, u64)> {
        let side = |counts: &[(ConnectionState, u64)]| counts.iter().copied().collect();
        both_sides(&side(client), &side(server)).into_iter().collect()
    }

    #[test]
    fn the_samples_of_both_sides_give_the_states_of_a_connection() {
        // The client runs for 20% of the time and waits for 80%; the server works for 50%, so
        // messages take 30%.
        let client = [(Runnable, 40), (Handover, 160)];
        let server = [(Runnable, 10), (Fsync, 30), (Lock, 10), (Handover, 50)];
        let expected = [(Runnable, 30), (Fsync, 30), (Lock, 10), (Handover, 30)];
        assert_eq!(estimated(&client, &server), expected);
        // A client that sleeps until it is due does not wait for the server.
        let client = [(Runnable, 20), (Handover, 50), (Sleep, 30)];
        let expected = [(Runnable, 30), (Fsync, 30), (Lock, 10), (Sleep, 30)];
        assert_eq!(estimated(&client, &server), expected);
    }

    #[test]
    fn both_sides_at_work_overlap() {
        let client = [(Runnable, 60), (Handover, 40)];
        let server = [(Runnable, 50), (Handover, 50)];
        let expected = [(Runnable, 90), (Overlap, 10)];
        assert_eq!(estimated(&client, &server), expected);
    }

    #[test]
    fn one_side_alone_gives_no_states() {
        assert_eq!(estimated(&[(Runnable, 9)], &[]), []);
        assert_eq!(estimated(&[], &[(Fsync, 9)]), []);
    }
}
