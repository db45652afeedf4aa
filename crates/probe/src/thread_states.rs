//! Samples the states of connections: runnable, or waiting for a device, for another thread, or for
//! each other.
//!
//! `/proc/TID/syscall` names the system call that blocks a thread, or says that the thread runs.
//! Reading the file takes no kernel setting and no privileges for assay's own children, and does
//! not interrupt the thread. A connection to a server has two threads, a client's and a server's,
//! which work in turn: while the client waits for a reply, the connection's state is the server's.
//!
//! Samples are taken at random moments, so a state's share of the samples estimates its share of
//! the time, independent of the load's rhythm. The standard error of a share `p` of `n` samples is
//! `sqrt(p (1 - p) / n)`.
//!
//! The same samples tell what the engine's threads do, apart from their clients, with the kernel
//! function in which they wait: [`ThreadStates::with_engine`].

mod background;
mod thread;

use std::collections::{BTreeMap, BTreeSet};

use words::{ConnectionState, WaitView};

use crate::Proc;
use background::Background;
use thread::{Activity, Thread};

/// The highest number of files read in one sample. With more connections, they take turns.
const READS_PER_SAMPLE_MAX: usize = 32;

/// The threads of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedConnection {
    /// The thread ID of the client.
    pub client: u32,
    /// The thread ID of the server; `None` if it is unknown, or the engine runs in the client's
    /// thread.
    pub server: Option<u32>,
}

/// The number of samples of one connection in each state, in the order of [`ConnectionState::ALL`].
pub type StateCounts = [u64; ConnectionState::ALL.len()];

/// The highest number of files kept open. With more connections, each sample opens the files again,
/// which leaves descriptors for connections.
const OPEN_FILES_MAX: usize = 128;

/// Counts the states of connections over one step.
pub struct ThreadStates {
    proc: Proc,
    buffer: Vec<u8>,
    threads: Vec<Threads>,
    counts: Vec<StateCounts>,
    /// The connection with which the next sample begins.
    next: usize,
    /// The connection with which the next sample that also covers the engine's threads begins.
    /// Such samples have a turn of their own, so that they reach all connections.
    next_of_engine: usize,
    is_server_first: bool,
    /// The state of a connection if the only thread that is watched waits for a message.
    message: ConnectionState,
    /// The states of the engine's threads, if they are watched.
    engine: Option<EngineThreads>,
}

/// The states of the engine's threads.
struct EngineThreads {
    /// The threads that serve connections; `None` if they are unknown.
    served: Option<StateSamples>,
    functions: Functions,
    background: Background,
    /// The number of samples until one that also covers the engine's threads.
    until_engine: u32,
}

impl EngineThreads {
    /// Returns whether the current sample also covers the engine's threads.
    fn is_due(&self) -> bool {
        self.until_engine == 0
    }

    /// Counts the state of a thread that serves connections. A thread that waits for a message is
    /// idle, and is not counted.
    fn add_served(
        &mut self,
        thread: &Thread,
        activity: Activity,
        proc: &Proc,
        buffer: &mut Vec<u8>,
    ) {
        if let Activity::State(state) = activity
            && let Some(samples) = &mut self.served
        {
            samples.add(thread.described(state, &mut self.functions, proc, buffer));
        }
    }
}

/// The kernel function in which a thread was last seen waiting, in each state. The function also
/// stands for that of a thread that woke up before its own was read.
type Functions = BTreeMap<ConnectionState, String>;

/// The number of samples of connections for each sample that also covers the engine's threads.
/// Opening the files that only the latter needs costs four times as much as a sample.
const SAMPLES_PER_ENGINE_SAMPLE: u32 = 10;

/// The number of threads that were seen in each state, over some samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateSamples {
    /// The number of samples of all threads. A sample of some of them is a part of one.
    pub samples: f64,
    /// The number of threads in each state: `fsync:jbd2_log_wait_commit`.
    pub states: BTreeMap<String, u64>,
}

impl StateSamples {
    fn add(&mut self, state: String) {
        *self.states.entry(state).or_default() += 1;
    }
}

impl ThreadStates {
    /// Watches connections; [`counts`](Self::counts) has the same order.
    pub fn new(connections: &[WatchedConnection]) -> Self {
        Self::at(Proc::live(), connections)
    }

    /// Watches one thread of each connection, because the other is on another host. Its wait for a
    /// message counts as [`ConnectionState::Handover`]. A connection without a known thread has
    /// no samples.
    pub fn of_one_side(threads: &[Option<u32>]) -> Self {
        Self::of_one_side_at(Proc::live(), threads)
    }

    fn at(proc: Proc, connections: &[WatchedConnection]) -> Self {
        let keep_open = 2 * connections.len() <= OPEN_FILES_MAX;
        let mut buffer = Vec::new();
        let mut threads = Vec::new();
        for WatchedConnection { client, server } in connections {
            threads.push(Threads {
                client: Thread::new(*client, keep_open),
                server: server.map(|tid| Thread::idle(tid, keep_open, &proc, &mut buffer)),
            });
        }
        // Without the thread that the message comes from, the state is unknown.
        Self::of(proc, buffer, threads, ConnectionState::Other)
    }

    fn of_one_side_at(proc: Proc, tids: &[Option<u32>]) -> Self {
        let keep_open = tids.len() <= OPEN_FILES_MAX;
        let mut buffer = Vec::new();
        let mut threads = Vec::new();
        for tid in tids {
            let client = match tid {
                Some(tid) => Thread::idle(*tid, keep_open, &proc, &mut buffer),
                None => Thread::unknown(),
            };
            threads.push(Threads { client, server: None });
        }
        Self::of(proc, buffer, threads, ConnectionState::Handover)
    }

    fn of(proc: Proc, buffer: Vec<u8>, threads: Vec<Threads>, message: ConnectionState) -> Self {
        Self {
            proc,
            buffer,
            counts: vec![StateCounts::default(); threads.len()],
            threads,
            next: 0,
            next_of_engine: 0,
            is_server_first: false,
            message,
            engine: None,
        }
    }

    /// Watches the engine's threads, too: those that serve the connections, and the others of its
    /// processes. The first of `processes` is the root of their tree. `own` is the server's thread
    /// for assay's observer, which is excluded. An embedded engine works on the clients' threads.
    #[must_use]
    pub fn with_engine(mut self, is_embedded: bool, processes: Vec<u32>, own: Option<u32>) -> Self {
        // The only thread that is watched is the server's, if the client's is elsewhere.
        let client_is_engine = is_embedded || self.message == ConnectionState::Handover;
        let all_are_known = self
            .threads
            .iter()
            .all(|threads| threads.server.is_some() || client_is_engine && threads.client.tid > 0);
        let served = (!self.threads.is_empty() && all_are_known).then(StateSamples::default);

        let mut not_background: BTreeSet<u32> = own.into_iter().collect();
        for Threads { client, server } in &self.threads {
            not_background.insert(client.tid);
            not_background.extend(server.as_ref().map(|server| server.tid));
        }

        self.engine = Some(EngineThreads {
            served,
            functions: Functions::new(),
            background: Background::new(processes, not_background, &self.proc),
            until_engine: 0,
        });
        self
    }

    /// Looks for new threads of the engine's processes.
    pub fn set_processes(&mut self, processes: Vec<u32>) {
        if let Some(engine) = &mut self.engine {
            engine.background.set_processes(processes, &self.proc);
        }
    }

    /// Returns the samples of the engine's threads since the last call, without views that had
    /// none.
    pub fn take_state_samples(&mut self) -> Vec<(WaitView, StateSamples)> {
        let Some(engine) = &mut self.engine else {
            return Vec::new();
        };
        let served = engine.served.as_mut().map(std::mem::take);
        let background = std::mem::take(&mut engine.background.samples);
        let mut views = vec![
            (WaitView::Kernel, served.unwrap_or_default()),
            (WaitView::Background, background),
        ];
        views.retain(|(_, samples)| samples.samples > 0.0);
        views
    }

    /// Takes one sample of each connection, or of the next ones if there are many. Skips
    /// connections that have ended or whose threads cannot be read.
    pub fn sample(&mut self) {
        // The second thread is read some microseconds after the first, so the order alternates. A
        // sample of the engine keeps the order of the sample before it. Otherwise all of them would
        // have the same order, since every tenth sample is one.
        let is_of_engine = self.engine.as_ref().is_some_and(EngineThreads::is_due);
        self.is_server_first ^= !is_of_engine;

        let count = self.threads.len().min(READS_PER_SAMPLE_MAX / 2);
        let next = if is_of_engine { &mut self.next_of_engine } else { &mut self.next };
        let first = *next;
        *next = (first + count).checked_rem(self.threads.len()).unwrap_or(0);

        let mut is_read = false;
        for offset in 0..count {
            let index = (first + offset) % self.threads.len();
            if let Some(state) = self.state(index) {
                self.counts[index][state as usize] += 1;
                is_read = true;
            }
        }

        if let Some(engine) = &mut self.engine {
            if is_of_engine {
                engine.until_engine = SAMPLES_PER_ENGINE_SAMPLE;
                engine.background.sample(&self.proc, &mut self.buffer);
                if let Some(served) = &mut engine.served
                    && is_read
                {
                    served.samples += count as f64 / self.threads.len() as f64;
                }
            }
            engine.until_engine -= 1;
        }
    }

    /// Returns the counts of each connection since the beginning.
    pub fn counts(&self) -> &[StateCounts] {
        &self.counts
    }

    /// Returns the state of a connection; `None` if one of its threads cannot be read.
    fn state(&mut self, index: usize) -> Option<ConnectionState> {
        let (proc, buffer) = (&self.proc, &mut self.buffer);
        let mut engine = self.engine.as_mut().filter(|engine| engine.is_due());
        let Threads { client, server } = &mut self.threads[index];

        let Some(server) = server else {
            let activity = client.activity(proc, buffer)?;
            if let Some(engine) = &mut engine {
                engine.add_served(client, activity, proc, buffer);
            }
            return Some(match activity {
                Activity::State(state) => state,
                Activity::Message => self.message,
            });
        };

        // The client is read before the server or after it, in turn: see `sample`.
        let early_client =
            if self.is_server_first { None } else { Some(client.activity(proc, buffer)?) };
        let server_activity = server.activity(proc, buffer)?;
        if let Some(engine) = &mut engine {
            engine.add_served(server, server_activity, proc, buffer);
        }
        let client_activity = match early_client {
            Some(activity) => activity,
            None => client.activity(proc, buffer)?,
        };

        Some(match (client_activity, server_activity) {
            (Activity::Message, Activity::Message) => ConnectionState::Handover,
            // While the client waits for a reply, the connection's state is the server's.
            (Activity::Message, Activity::State(server_state)) => server_state,
            (
                Activity::State(ConnectionState::Runnable),
                Activity::State(ConnectionState::Runnable),
            ) => ConnectionState::Overlap,
            (Activity::State(client_state), _) => client_state,
        })
    }
}

/// A server's thread, or process, that serves one connection.
pub struct ServingThread {
    thread: Thread,
    proc: Proc,
    buffer: Vec<u8>,
}

impl ServingThread {
    /// Returns the thread with this ID, on this host.
    pub fn new(tid: u32) -> Self {
        Self { thread: Thread::new(tid, true), proc: Proc::live(), buffer: Vec::new() }
    }

    /// Returns whether the thread waits for a message; `None` if the kernel does not say.
    pub fn waits_for_message(&mut self) -> Option<bool> {
        let activity = self.thread.activity(&self.proc, &mut self.buffer)?;
        Some(activity == Activity::Message)
    }
}

struct Threads {
    client: Thread,
    server: Option<Thread>,
}

#[cfg(test)]
mod tests;
