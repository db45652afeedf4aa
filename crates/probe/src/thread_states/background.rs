//! Samples the threads of an engine that serve no connection: checkpoints, flushes, compaction,
//! purge.
//!
//! Such a thread sleeps until there is work, which the kernel can't tell from a wait for a lock. So
//! only threads that run, wait for a processor, or wait uninterruptibly for storage are counted.

use std::collections::BTreeSet;

use words::ConnectionState::{self, Runnable};

use super::{Activity, Functions, OPEN_FILES_MAX, StateSamples, Thread};
use crate::Proc;
use crate::parse::parse_process_stat;

/// The highest number of threads read in one sample. More threads take turns.
const READS_MAX: usize = 64;

/// The engine's threads that serve no connection.
#[derive(Default)]
pub(super) struct Background {
    /// The process IDs of the engine.
    processes: Vec<u32>,
    /// The threads of connections, which are not sampled.
    served: BTreeSet<u32>,
    threads: Vec<(Thread, String)>,
    functions: Functions,
    next: usize,
    pub(super) samples: StateSamples,
}

impl Background {
    pub(super) fn new(processes: Vec<u32>, served: BTreeSet<u32>, proc: &Proc) -> Self {
        let mut new = Self { served, ..Self::default() };
        new.set_processes(processes, proc);
        new
    }

    /// Looks for new threads of the processes, the first of which is the root of their tree.
    pub(super) fn set_processes(&mut self, processes: Vec<u32>, proc: &Proc) {
        self.processes = processes;
        let own = std::process::id();
        if self.processes.first() == Some(&own) {
            // Programs that this process started are not the engine.
            self.processes.truncate(1);
        }
        let mut present = BTreeSet::new();
        for &pid in &self.processes {
            let tids = proc.names(format!("proc/{pid}/task"));
            let tids = tids.iter().filter_map(|tid| tid.parse().ok());
            present.extend(tids.map(|tid| (tid, pid)));
        }
        self.threads.retain(|(thread, _)| {
            !thread.has_ended && present.iter().any(|(tid, _)| *tid == thread.tid)
        });
        let keep_open = present.len() <= OPEN_FILES_MAX;
        for (tid, pid) in present {
            let is_known = self.threads.iter().any(|(thread, _)| thread.tid == tid);
            if is_known || self.served.contains(&tid) {
                continue;
            }
            let name = name(proc, tid, pid);
            // In this process, threads without a name of their own are assay's.
            if pid != own || !name.is_empty() {
                self.threads.push((Thread::new(tid, keep_open), name));
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
            let (thread, name) = &mut self.threads[index];
            let state = busy_state(thread, proc, buffer);
            is_read |= !thread.has_ended;
            if let Some(state) = state {
                let state = thread.described(state, &mut self.functions, proc, buffer);
                let names = [name.as_str(), state.as_str()];
                self.samples.add(names.join(" ").trim_start().to_owned());
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
    let text = |id: u32, file: &str| proc.text(format!("proc/{id}/{file}")).unwrap_or_default();
    let (program, thread) = (text(pid, "comm"), text(tid, "comm"));
    if thread != program {
        let without_number = thread.trim_end_matches(|c: char| c.is_ascii_digit());
        return without_number.trim_end_matches(['-', '_', '/', ' ']).to_owned();
    }
    let title = text(pid, "cmdline").replace('\0', " ");
    let Some(title) = title.strip_prefix(&format!("{program}: ")) else {
        return String::new();
    };
    // The title of a session has its address.
    if title.contains(['[', '(']) {
        return "session".to_owned();
    }
    let words = title.split_whitespace();
    let words = words.take_while(|word| !word.chars().any(|c| c.is_ascii_digit()));
    words.take(3).collect::<Vec<_>>().join(" ")
}
