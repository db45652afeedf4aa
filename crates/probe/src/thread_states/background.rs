//! Samples the threads of an engine that serve no connection: checkpoints, flushes, compaction,
//! purge.
//!
//! Such a thread sleeps until there is work, which the kernel cannot tell from a wait for a lock. So
//! only threads that run, wait for a processor, or wait uninterruptibly for storage are counted.

use std::collections::{BTreeMap, BTreeSet};

use words::ConnectionState::{self, Runnable};

use super::thread::{Activity, Thread};
use super::{Functions, OPEN_FILES_MAX, StateSamples};
use crate::Proc;
use crate::parse::parse_process_stat;

/// The highest number of threads read in one sample. More threads take turns.
const READS_MAX: usize = 64;

/// The engine's threads that serve no connection.
#[derive(Default)]
pub(super) struct Background {
    /// The process IDs of the engine.
    processes: Vec<u32>,
    /// The threads that are not sampled, because they serve connections.
    served: BTreeSet<u32>,
    threads: Vec<NamedThread>,
    functions: Functions,
    next: usize,
    pub(super) samples: StateSamples,
}

struct NamedThread {
    thread: Thread,
    /// See [`name`].
    name: String,
}

impl Background {
    pub(super) fn new(processes: Vec<u32>, served: BTreeSet<u32>, proc: &Proc) -> Self {
        let mut background = Self { served, ..Self::default() };
        background.set_processes(processes, proc);
        background
    }

    /// Looks for new threads of the processes, the first of which is the root of their tree.
    pub(super) fn set_processes(&mut self, processes: Vec<u32>, proc: &Proc) {
        self.processes = processes;
        let own = std::process::id();
        if self.processes.first() == Some(&own) {
            // Programs that this process started are not the engine.
            self.processes.truncate(1);
        }

        // The process of each thread.
        let mut present: BTreeMap<u32, u32> = BTreeMap::new();
        for &pid in &self.processes {
            for tid in proc.names(format!("proc/{pid}/task")) {
                if let Ok(tid) = tid.parse() {
                    present.insert(tid, pid);
                }
            }
        }
        self.threads
            .retain(|known| !known.thread.has_ended && present.contains_key(&known.thread.tid));

        let keep_open = present.len() <= OPEN_FILES_MAX;
        for (tid, pid) in present {
            let is_known = self.threads.iter().any(|known| known.thread.tid == tid);
            if is_known || self.served.contains(&tid) {
                continue;
            }
            let name = name(proc, tid, pid);
            // In this process, threads without a name of their own are assay's.
            if pid != own || !name.is_empty() {
                self.threads.push(NamedThread { thread: Thread::new(tid, keep_open), name });
            }
        }
    }

    /// Samples all threads, or the next ones if there are many.
    pub(super) fn sample(&mut self, proc: &Proc, buffer: &mut Vec<u8>) {
        let count = self.threads.len().min(READS_MAX);
        let share = match self.threads.len() {
            0 if self.processes.is_empty() => return,
            0 => 1.0,
            all => count as f64 / all as f64,
        };

        let mut is_read = count == 0;
        for _ in 0..count {
            let index = self.next % self.threads.len();
            self.next = index + 1;
            let NamedThread { thread, name } = &mut self.threads[index];
            let state = busy_state(thread, proc, buffer);
            is_read |= !thread.has_ended;
            if let Some(state) = state {
                let described = thread.described(state, &mut self.functions, proc, buffer);
                self.samples.add(format!("{name} {described}").trim_start().to_owned());
            }
        }

        // The server may be another user's.
        if is_read {
            self.samples.samples += share;
        }
    }
}

/// Returns the state of a thread that runs or waits for storage; `None` if it sleeps.
fn busy_state(thread: &mut Thread, proc: &Proc, buffer: &mut Vec<u8>) -> Option<ConnectionState> {
    match thread.activity(proc, buffer)? {
        Activity::State(Runnable) => Some(Runnable),
        Activity::State(ConnectionState::Lock | ConnectionState::Sleep) | Activity::Message => None,
        Activity::State(state) => {
            let name = format!("proc/{}/stat", thread.tid);
            let stat = parse_process_stat(&proc.read(&name, buffer).ok()?).ok()?;
            (stat.state == 'D').then_some(state)
        }
    }
}

/// Returns the name of a thread without the number that tells it from others with the same task:
/// the thread's own name if it differs from that of its process, or else the title that the process
/// gave itself: `rocksdb:low`, `checkpointer`. Empty if there is neither.
fn name(proc: &Proc, tid: u32, pid: u32) -> String {
    let program = proc.text(format!("proc/{pid}/comm")).unwrap_or_default();
    let thread = proc.text(format!("proc/{tid}/comm")).unwrap_or_default();
    if thread != program {
        let without_number = thread.trim_end_matches(|c: char| c.is_ascii_digit());
        return without_number.trim_end_matches(['-', '_', '/', ' ']).to_owned();
    }

    let command = proc.text(format!("proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ");
    let Some(title) = command.strip_prefix(&format!("{program}: ")) else {
        return String::new();
    };
    // The title of a session has its address.
    if title.contains(['[', '(']) {
        return "session".to_owned();
    }
    let words: Vec<&str> = title
        .split_whitespace()
        .take_while(|word| !word.chars().any(|c| c.is_ascii_digit()))
        .take(3)
        .collect();
    words.join(" ")
}
