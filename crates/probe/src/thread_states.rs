//! Samples the states of connections: runnable, or waiting for a device, for another thread, or for
//! each other.
//!
//! `/proc/TID/syscall` names the system call that blocks a thread, or says that the thread runs. To
//! read it takes no kernel setting and no privileges for assay's own children, and does not
//! interrupt the thread. A connection to a server has two threads, a client's and a server's, which
//! work in turn: while the client waits for a reply, the connection's state is the server's.
//! Samples are taken at random moments, so a state's share of the samples estimates its share of
//! the time, independent of the load's rhythm. The standard error of a share `p` of `n` samples is
//! `sqrt(p (1 - p) / n)`.
//!
//! The same samples tell what the engine's threads do, apart from their clients, with the kernel
//! function in which they wait: [`ThreadStates::with_engine`].

mod background;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use words::{ConnectionState, WaitView};

use background::Background;

use crate::Proc;

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
    /// The connection with which the next sample begins, and the next one that covers the engine's
    /// threads, too: both take turns.
    next: [usize; 2],
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

/// The kernel function in which a thread was last seen waiting, in each state. It also stands for
/// that of a thread that woke up before its function was read.
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
        let threads = connections.iter().map(|connection| Threads {
            client: Thread::new(connection.client, keep_open),
            server: connection.server.map(|tid| Thread::idle(tid, keep_open, &proc, &mut buffer)),
        });
        let threads = threads.collect();
        // Without the thread that the message comes from, the state is unknown.
        Self::of(proc, buffer, threads, ConnectionState::Other)
    }

    fn of_one_side_at(proc: Proc, threads: &[Option<u32>]) -> Self {
        let keep_open = threads.len() <= OPEN_FILES_MAX;
        let mut buffer = Vec::new();
        let threads = threads.iter().map(|tid| Threads {
            client: tid.map_or_else(Thread::unknown, |tid| {
                Thread::idle(tid, keep_open, &proc, &mut buffer)
            }),
            server: None,
        });
        let threads = threads.collect();
        Self::of(proc, buffer, threads, ConnectionState::Handover)
    }

    fn of(proc: Proc, buffer: Vec<u8>, threads: Vec<Threads>, message: ConnectionState) -> Self {
        Self {
            proc,
            buffer,
            counts: vec![StateCounts::default(); threads.len()],
            threads,
            next: [0; 2],
            is_server_first: false,
            message,
            engine: None,
        }
    }

    /// Watches the engine's threads, too: those that serve the connections, and the others of its
    /// processes, of which the first is the root of their tree, without assay's `own`. An
    /// embedded engine works on the clients' threads.
    #[must_use]
    pub fn with_engine(mut self, is_embedded: bool, processes: Vec<u32>, own: Option<u32>) -> Self {
        // The only thread that is watched is the server's, if the client's is elsewhere.
        let client_is_engine = is_embedded || self.message == ConnectionState::Handover;
        let all = self.threads.iter();
        let is_known = |it: &Threads| it.server.is_some() || client_is_engine && it.client.tid > 0;
        let served =
            (!self.threads.is_empty() && all.clone().all(is_known)).then(StateSamples::default);
        let tids: BTreeSet<u32> = all
            .flat_map(|it| [Some(&it.client), it.server.as_ref()])
            .flatten()
            .map(|thread| thread.tid)
            .chain(own)
            .collect();
        self.engine = Some(EngineThreads {
            served,
            functions: Functions::new(),
            background: Background::new(processes, tids, &self.proc),
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
        let all =
            [(WaitView::Kernel, served.unwrap_or_default()), (WaitView::Background, background)];
        all.into_iter().filter(|(_, it)| it.samples > 0.0).collect()
    }

    /// Takes one sample of each connection, or of the next ones if there are many. Skips
    /// connections that have ended or whose threads can't be read.
    pub fn sample(&mut self) {
        // The second thread is read some microseconds after the first, so the order alternates:
        // also that of every tenth sample, which covers the engine's threads.
        let is_of_engine = self.engine.as_ref().is_some_and(|it| it.until_engine == 0);
        self.is_server_first ^= !is_of_engine;
        let count = self.threads.len().min(READS_PER_SAMPLE_MAX / 2);
        let next = &mut self.next[usize::from(is_of_engine)];
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
                if let (Some(served), true) = (&mut engine.served, is_read) {
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

    fn state(&mut self, index: usize) -> Option<ConnectionState> {
        let message = self.message;
        let own_state = |activity| match activity {
            Activity::State(state) => state,
            Activity::Message => message,
        };
        let Threads { client, server } = &mut self.threads[index];
        let (proc, buffer) = (&self.proc, &mut self.buffer);
        let mut engine = self.engine.as_mut().filter(|it| it.until_engine == 0);
        let mut seen = |thread: &Thread, activity, buffer: &mut Vec<u8>| {
            // A thread that waits for a message is idle.
            if let (Some(engine), Activity::State(state)) = (&mut engine, activity)
                && let Some(samples) = &mut engine.served
            {
                samples.add(thread.described(state, &mut engine.functions, proc, buffer));
            }
        };
        let Some(server) = server else {
            let activity = client.activity(proc, buffer)?;
            seen(client, activity, buffer);
            return Some(own_state(activity));
        };
        let (client, server) = if self.is_server_first {
            let activity = server.activity(proc, buffer)?;
            seen(server, activity, buffer);
            (client.activity(proc, buffer)?, activity)
        } else {
            let client = client.activity(proc, buffer)?;
            let activity = server.activity(proc, buffer)?;
            seen(server, activity, buffer);
            (client, activity)
        };
        let runnable = Activity::State(ConnectionState::Runnable);
        Some(match (client, server) {
            (Activity::Message, Activity::Message) => ConnectionState::Handover,
            (Activity::Message, server) => own_state(server),
            both if both == (runnable, runnable) => ConnectionState::Overlap,
            (client, _) => own_state(client),
        })
    }
}

struct Threads {
    client: Thread,
    server: Option<Thread>,
}

/// A thread and its file in `/proc`.
#[derive(Default)]
struct Thread {
    tid: u32,
    file: Option<OwnedFd>,
    keep_open: bool,
    /// True once the file could not be read: the thread has ended, and its ID may belong to
    /// another thread.
    has_ended: bool,
    /// The system call in which the thread waits for a message, and its first argument.
    idle_call: Option<(i64, String)>,
}

impl Thread {
    fn new(tid: u32, keep_open: bool) -> Self {
        Self { tid, keep_open, ..Self::default() }
    }

    /// Returns a thread that now waits for its first message. A different wait later is for
    /// something else.
    fn idle(tid: u32, keep_open: bool, proc: &Proc, buffer: &mut Vec<u8>) -> Self {
        let mut thread = Self::new(tid, keep_open);
        thread.idle_call = thread.read(proc, buffer).and_then(|text| call(&text));
        thread
    }

    /// Returns a thread that can't be read.
    fn unknown() -> Self {
        Self { has_ended: true, ..Self::default() }
    }

    fn read(&mut self, proc: &Proc, buffer: &mut Vec<u8>) -> Option<String> {
        if self.has_ended {
            return None;
        }
        let name = format!("proc/{}/syscall", self.tid);
        let text = proc.read_at_once(&name, &mut self.file, self.keep_open, buffer);
        self.has_ended = text.is_err();
        text.ok().map(|text| text.into_owned())
    }

    /// Returns a state with the kernel function in which the thread waits, if the kernel says so:
    /// `fsync:jbd2_log_wait_commit`.
    fn described(
        &self,
        state: ConnectionState,
        functions: &mut Functions,
        proc: &Proc,
        buffer: &mut Vec<u8>,
    ) -> String {
        let name = state.name();
        if state == ConnectionState::Runnable {
            return name.to_owned();
        }
        let file = format!("proc/{}/wchan", self.tid);
        if let Ok(function) = proc.read(&file, buffer).as_deref().map(str::trim)
            && !matches!(function, "" | "0")
        {
            functions.insert(state, function.to_owned());
        }
        match functions.get(&state) {
            Some(function) => format!("{name}:{function}"),
            None => name.to_owned(),
        }
    }

    fn activity(&mut self, proc: &Proc, buffer: &mut Vec<u8>) -> Option<Activity> {
        let text = self.read(proc, buffer)?;
        let activity = parse(&text)?;
        // PostgreSQL waits for its client with one event set, and for locks and other processes
        // with another.
        let uses_event_set = |call: &(i64, String)| EVENT_SET_CALLS.contains(&call.0);
        let current = call(&text).filter(uses_event_set);
        let idle = self.idle_call.as_ref().filter(|call| uses_event_set(call));
        Some(match (activity, current, idle) {
            (Activity::Message, Some(current), Some(idle)) if current != *idle => {
                Activity::State(ConnectionState::Lock)
            }
            (activity, ..) => activity,
        })
    }
}

/// System calls whose first argument is an event set.
const EVENT_SET_CALLS: &[i64] = &[
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

/// Parses the number of a system call and its first argument.
fn call(text: &str) -> Option<(i64, String)> {
    let mut words = text.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.to_owned()))
}

/// The activity of a thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    State(ConnectionState),
    /// Waits for a message.
    Message,
}

/// Parses `/proc/TID/syscall`: `running`, or the number of a system call in decimal and its
/// arguments, or `-1` for a thread that is blocked outside of system calls, such as by a page
/// fault.
fn parse(text: &str) -> Option<Activity> {
    use ConnectionState::{Fsync, Lock, Other, Read, Runnable, Sleep, Write};
    let first = text.split_ascii_whitespace().next()?;
    if first == "running" {
        return Some(Activity::State(Runnable));
    }
    let number: i64 = first.parse().ok()?;
    let state = match number {
        -1 => Read,
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_io_getevents
        | libc::SYS_io_uring_enter
        | libc::SYS_readahead => Read,
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_sync_file_range
        | libc::SYS_fallocate
        | libc::SYS_ftruncate => Write,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_msync | libc::SYS_syncfs => Fsync,
        libc::SYS_futex
        | libc::SYS_semop
        | libc::SYS_semtimedop
        | libc::SYS_fcntl
        | libc::SYS_flock => Lock,
        libc::SYS_clock_nanosleep | libc::SYS_nanosleep => Sleep,
        libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_ppoll
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_pwait2
        | libc::SYS_pselect6 => return Some(Activity::Message),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll | libc::SYS_epoll_wait | libc::SYS_select => return Some(Activity::Message),
        _ => Other,
    };
    Some(Activity::State(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_files_are_parsed() {
        let state = |state| Some(Activity::State(state));
        assert_eq!(parse("running\n"), state(ConnectionState::Runnable));
        assert_eq!(parse("-1 0x7ffd470a0bd8 0x7ff4c094a2ad\n"), state(ConnectionState::Read));
        let call = |number: i64| parse(&format!("{number} 0x3 0x7ff4c07ce000 0x20000 0x0\n"));
        assert_eq!(call(libc::SYS_fdatasync), state(ConnectionState::Fsync));
        assert_eq!(call(libc::SYS_pread64), state(ConnectionState::Read));
        assert_eq!(call(libc::SYS_futex), state(ConnectionState::Lock));
        assert_eq!(call(libc::SYS_recvfrom), Some(Activity::Message));
        assert_eq!(call(libc::SYS_getpid), state(ConnectionState::Other));
        assert_eq!(parse(""), None);
    }

    /// Creates a copy of `/proc` with the call of each thread.
    fn proc_with(calls: &[(u32, String)]) -> (tempfile::TempDir, Proc) {
        let root = tempfile::tempdir().unwrap();
        for (tid, call) in calls {
            let folder = root.path().join(format!("proc/{tid}"));
            fs_err::create_dir_all(&folder).unwrap();
            fs_err::write(folder.join("syscall"), call).unwrap();
        }
        let proc = Proc::at(root.path());
        (root, proc)
    }

    #[test]
    fn the_state_of_a_connection_is_that_of_the_working_thread() {
        let reply = format!("{} 0x3", libc::SYS_recvfrom);
        let fsync = format!("{} 0x5", libc::SYS_fdatasync);
        let (_root, proc) = proc_with(&[
            (1, reply.clone()),
            (2, fsync),
            (3, "running".to_owned()),
            (4, reply.clone()),
            (5, reply.clone()),
            (6, reply),
            (8, "running".to_owned()),
        ]);
        let watched = |client, server| WatchedConnection { client, server };
        let connections = [
            watched(1, Some(2)),
            watched(3, Some(4)),
            watched(5, Some(6)),
            watched(3, None),
            watched(3, Some(8)),
            watched(3, Some(2)),
            // There is no such thread.
            watched(7, None),
        ];
        let mut states = ThreadStates::at(proc, &connections);
        states.sample();
        states.sample();
        let count = |index: usize, state: ConnectionState| states.counts()[index][state as usize];
        assert_eq!(count(0, ConnectionState::Fsync), 2);
        assert_eq!(count(1, ConnectionState::Runnable), 2);
        assert_eq!(count(2, ConnectionState::Handover), 2);
        assert_eq!(count(3, ConnectionState::Runnable), 2);
        assert_eq!(count(4, ConnectionState::Overlap), 2);
        assert_eq!(count(5, ConnectionState::Runnable), 2);
        assert_eq!(states.counts()[6], StateCounts::default());
    }

    #[test]
    fn a_thread_whose_peer_is_elsewhere_waits_for_messages() {
        let (_root, proc) = proc_with(&[
            (1, format!("{} 0x3", libc::SYS_recvfrom)),
            (2, format!("{} 0x5", libc::SYS_fdatasync)),
        ]);
        let mut states = ThreadStates::of_one_side_at(proc, &[Some(1), None, Some(2)]);
        states.sample();
        let count = |index: usize, state: ConnectionState| states.counts()[index][state as usize];
        assert_eq!(count(0, ConnectionState::Handover), 1);
        assert_eq!(states.counts()[1], StateCounts::default());
        assert_eq!(count(2, ConnectionState::Fsync), 1);
    }

    #[test]
    fn a_server_that_waits_with_another_event_set_waits_for_a_lock() {
        let wait = |set: &str| format!("{} {set} 0x7ff4 0x1 0xffffffff", libc::SYS_epoll_pwait);
        let reply = format!("{} 0x3", libc::SYS_recvfrom);
        let (root, proc) = proc_with(&[(1, reply), (2, wait("0x5"))]);
        let watched = WatchedConnection { client: 1, server: Some(2) };
        let mut states = ThreadStates::at(proc, &[watched]);
        states.sample();
        fs_err::write(root.path().join("proc/2/syscall"), wait("0x8")).unwrap();
        states.sample();
        let count = |state: ConnectionState| states.counts()[0][state as usize];
        assert_eq!(count(ConnectionState::Handover), 1);
        assert_eq!(count(ConnectionState::Lock), 1);
    }

    #[test]
    fn a_blocked_thread_of_this_process_is_waiting() {
        let (send, tid) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            send.send(own.cast_unsigned()).unwrap();
            let _ = wait.recv();
        });
        let client = tid.recv().unwrap();
        let server = None;
        let mut states = ThreadStates::new(&[WatchedConnection { client, server }]);
        let waits = |states: &ThreadStates| states.counts()[0][ConnectionState::Lock as usize];
        while waits(&states) == 0 {
            states.sample();
            std::thread::yield_now();
        }
        drop(go);
        thread.join().unwrap();
        let before = states.counts()[0];
        states.sample();
        assert_eq!(states.counts()[0], before, "the thread has ended");
    }

    #[test]
    fn the_engines_threads_are_seen_with_what_the_kernel_waits_for() {
        let reply = format!("{} 0x3", libc::SYS_recvfrom);
        let fsync = format!("{} 0x5", libc::SYS_fdatasync);
        let futex = format!("{} 0x5", libc::SYS_futex);
        let calls = [
            (1, reply.clone()),
            (2, fsync.clone()),
            (3, reply),
            (4, futex),
            (10, "running".to_owned()),
            (11, fsync.clone()),
            (12, fsync),
            (13, "running".to_owned()),
        ];
        let (root, proc) = proc_with(&calls);
        let write = |path: &str, text: &str| {
            let path = root.path().join("proc").join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        for tid in [2, 4, 10, 11, 12, 13] {
            write(&format!("9/task/{tid}/comm"), "");
            write(&format!("{tid}/comm"), &format!("rocksdb:low{tid}"));
        }
        write("9/comm", "server");
        write("2/wchan", "jbd2_log_wait_commit");
        write("11/wchan", "0");
        let stat = |state: char| format!("1 (a) {state} 1 {}", "0 ".repeat(48));
        write("11/stat", &stat('D'));
        // A thread that does not wait for storage has no work.
        write("12/stat", &stat('S'));
        let watched = |client, server| WatchedConnection { client, server };
        let connections = [watched(1, Some(2)), watched(3, Some(4))];
        let mut states = ThreadStates::at(proc, &connections).with_engine(false, vec![9], Some(13));
        for _ in 0..=SAMPLES_PER_ENGINE_SAMPLE {
            states.sample();
        }
        let samples = |states: &[(&str, u64)], samples| {
            let states = states.iter().map(|(name, count)| ((*name).to_owned(), *count));
            let states = states.collect();
            StateSamples { samples, states }
        };
        let served = samples(&[("fsync:jbd2_log_wait_commit", 2), ("lock", 2)], 2.0);
        let background = samples(&[("rocksdb:low fsync", 2), ("rocksdb:low running", 2)], 2.0);
        let expected = [(WaitView::Kernel, served), (WaitView::Background, background)];
        assert_eq!(states.take_state_samples(), expected);
        assert_eq!(states.take_state_samples(), []);
    }

    #[test]
    fn all_connections_take_turns_in_samples_of_the_engine() {
        let idle = format!("{} 0x3", libc::SYS_recvfrom);
        let calls = (1..=32).map(|tid| match tid {
            20 => (tid, "running".to_owned()),
            _ => (tid, idle.clone()),
        });
        let (_root, proc) = proc_with(&calls.collect::<Vec<_>>());
        let watched = |client| WatchedConnection { client, server: None };
        let connections: Vec<_> = (1..=32).map(watched).collect();
        let states = ThreadStates::at(proc, &connections);
        let mut states = states.with_engine(true, Vec::new(), None);
        for _ in 0..4 * SAMPLES_PER_ENGINE_SAMPLE {
            states.sample();
        }
        // Four samples of a half each.
        let [(WaitView::Kernel, samples)] = &states.take_state_samples()[..] else {
            panic!("only this view applies");
        };
        assert_eq!(samples.samples, 2.0);
        assert_eq!(samples.states, [("running".to_owned(), 2)].into());
        // The others have turns of their own.
        let busy = |index: usize| states.counts()[index][ConnectionState::Runnable as usize];
        assert_eq!(busy(19), 20);
    }

    #[test]
    fn threads_that_can_not_be_read_are_not_idle() {
        // As of another user's server.
        let (root, proc) = proc_with(&[]);
        fs_err::create_dir_all(root.path().join("proc/9/task/10")).unwrap();
        let watched = WatchedConnection { client: 1, server: Some(2) };
        let states = ThreadStates::at(proc, &[watched]);
        let mut states = states.with_engine(false, vec![9], None);
        states.sample();
        assert_eq!(states.take_state_samples(), []);
    }

    #[test]
    fn an_unknown_thread_of_the_engine_makes_its_view_not_applicable() {
        let (_root, proc) = proc_with(&[(1, "running".to_owned())]);
        let watched = |client| WatchedConnection { client, server: None };
        let states = |is_embedded| {
            let states = ThreadStates::at(proc.clone(), &[watched(1)]);
            let mut states = states.with_engine(is_embedded, Vec::new(), None);
            states.sample();
            states.take_state_samples()
        };
        assert_eq!(states(false), []);
        assert_eq!(states(true)[0].1.states, [("running".to_owned(), 1)].into());
    }
}
