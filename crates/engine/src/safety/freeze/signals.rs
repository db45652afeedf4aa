//! SIGSTOP for each process of a program.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::safety::guard::{descendants, open_pidfd};

/// A process of the program that has got SIGSTOP.
#[derive(Debug)]
struct Process {
    pid: u32,
    /// Signals go to the process itself, even when another has got its ID.
    pidfd: OwnedFd,
    /// True once none of its threads runs any more.
    has_stopped: bool,
}

/// The processes of a program.
///
/// PostgreSQL's processes are sessions of their own, so a signal to a process group does not reach
/// them. Instead, the descendants of the guard are found and stopped, one generation after the
/// other, until there is no new one. A stopped process starts no other.
///
/// A generation must have stopped before the next gets the signal. A process that has called
/// `vfork` cannot stop before its child runs another program, which a stopped child never does.
#[derive(Debug)]
pub(super) struct SignalMeans {
    guard: u32,
    /// The known processes, parents before their children.
    processes: Vec<Process>,
    /// True once the processes that were known before have got SIGSTOP.
    has_begun: bool,
}

impl SignalMeans {
    pub(super) fn new(guard: u32) -> Self {
        Self { guard, processes: Vec::new(), has_begun: false }
    }

    /// Stops the processes that are not stopped yet. Returns true when all have stopped, and there
    /// are no new ones.
    pub(super) fn advance(&mut self) -> std::io::Result<bool> {
        if !self.has_begun {
            self.has_begun = true;
            self.processes
                .retain(|process| pidfd_send_signal(&process.pidfd, Signal::STOP).is_ok());
        }

        for process in &mut self.processes {
            process.has_stopped = process.has_stopped || has_stopped(process.pid);
        }
        // The search takes longest, and finds all children only once their parents have stopped.
        if !self.processes.iter().all(|process| process.has_stopped) {
            return Ok(false);
        }
        Ok(!self.stop_new_processes()?)
    }

    /// Finds and stops the children of known processes that are not known yet. Returns true if
    /// there were some.
    fn stop_new_processes(&mut self) -> std::io::Result<bool> {
        let known_count = self.processes.len();
        let parents: Vec<u32> = self.processes.iter().map(|process| process.pid).collect();

        if probe::children_of(self.guard).is_some() {
            for parent in parents.into_iter().chain([self.guard]) {
                for child in probe::children_of(parent).unwrap_or_default() {
                    self.stop(child)?;
                }
            }
        } else {
            for pid in descendants(self.guard) {
                let parent = probe::state_and_parent(pid).map(|(_, parent)| parent);
                if parent.is_some_and(|pid| pid == self.guard || parents.contains(&pid)) {
                    self.stop(pid)?;
                }
            }
        }

        Ok(self.processes.len() > known_count)
    }

    /// Stops a process, unless it is known already.
    fn stop(&mut self, pid: u32) -> std::io::Result<()> {
        if self.processes.iter().any(|process| process.pid == pid) {
            return Ok(());
        }

        let pidfd = match open_pidfd(pid) {
            Ok(pidfd) => pidfd,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => return Ok(()),
            Err(error) => return Err(error),
        };

        // The process may have ended, and its ID belong to another since.
        let Some((_, parent)) = probe::state_and_parent(pid) else {
            return Ok(());
        };

        if parent != self.guard && self.processes.iter().all(|process| process.pid != parent) {
            return Ok(());
        }

        if pidfd_send_signal(&pidfd, Signal::STOP).is_ok() {
            self.processes.push(Process { pid, pidfd, has_stopped: false });
        }
        Ok(())
    }

    /// Lets all processes continue, children before their parents.
    pub(super) fn thaw(&mut self) {
        if !std::mem::take(&mut self.has_begun) {
            return;
        }
        for process in self.processes.iter_mut().rev() {
            process.has_stopped = false;
            // Fails for a process that has ended.
            let _ = pidfd_send_signal(&process.pidfd, Signal::CONT);
        }
    }
}

/// Returns true when no thread of a process runs any more.
fn has_stopped(pid: u32) -> bool {
    probe::threads_of(pid).into_iter().all(|thread| {
        let state = probe::state_of_thread(pid, thread);
        state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
    })
}
