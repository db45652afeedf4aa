//! The resources that a server's processes use, in nanoseconds and single events, for spans as
//! short as a turn.
//!
//! [`Sampler`](crate::Sampler) reads CPU time in ticks of 10 ms, which is enough for a second but
//! not for a turn of 100 ms. The sources here are finer:
//!
//! - *The server's control group*, if it has one to itself in version 2: `usage_usec` of
//!   `cpu.stat`. It includes processes that have ended.
//! - *The CPU clock of each process* otherwise (`clock_getcpuclockid`). It includes threads that
//!   have ended. The time of a process that has ended is lost since it was last read.
//! - *`/proc/PID/stat`* for page faults, with the threads that have ended.
//! - *`/proc/PID/task/TID/status`* for context switches, without those of ended threads since they
//!   were last read.
//!
//! `schedstat` is not used for a tree: it takes a file for each thread, lacks ended threads, and
//! lags by up to a tick while the thread runs. It is the only source for one thread of another
//! process ([`ThreadTime`]).

use std::ops::{AddAssign, Sub};
use std::os::fd::OwnedFd;

use nix::time::ClockId;
use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::group::Group;
use crate::parse::{parse_context_switches, parse_faults, required_value};
use crate::processes::{process_tree, quick_process_tree, threads_of};
use crate::{ProbeError, Proc};

/// The use of resources since an unknown moment: only differences have a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeReading {
    /// CPU time.
    pub cpu_ns: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Context switches of threads that began to wait.
    pub voluntary_switches: u64,
    /// Context switches of threads that had to make way for others.
    pub involuntary_switches: u64,
}

impl AddAssign for TreeReading {
    fn add_assign(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

impl Sub for TreeReading {
    type Output = Self;

    /// Returns what was used since an earlier reading.
    fn sub(self, earlier: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}

/// Reads what a process and its descendants use.
#[derive(Debug)]
pub struct TreeUse {
    root: u32,
    /// `cpu.stat` of the control group that has only these processes.
    group_file: Option<GroupFile>,
    processes: Vec<Process>,
    /// The use by processes and threads that have ended.
    ended: TreeReading,
    files: Files,
}

/// The file with the CPU time of a control group.
#[derive(Debug)]
struct GroupFile {
    name: String,
    file: Option<OwnedFd>,
}

#[derive(Debug)]
struct Process {
    pid: u32,
    clock: ClockId,
    stat_file: Option<OwnedFd>,
    /// The CPU time and faults when the process was last read.
    last: TreeReading,
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    tid: u32,
    status_file: Option<OwnedFd>,
    /// The context switches when the thread was last read.
    last: TreeReading,
}

/// Reads files that are kept open, as far as their number allows.
#[derive(Debug)]
struct Files {
    proc: Proc,
    buffer: Vec<u8>,
    open_max: usize,
    /// The number of files of the current reading.
    read_count: usize,
}

impl Files {
    fn new() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // The rest is for connections.
        Self {
            proc: Proc::live(),
            buffer: Vec::new(),
            open_max: (limit / 8).min(4096) as usize,
            read_count: 0,
        }
    }

    /// Reads and parses a file. Returns `None` if its process or thread has ended.
    fn read<T>(
        &mut self,
        name: &str,
        file: &mut Option<OwnedFd>,
        parse: impl FnOnce(&str) -> Result<T, crate::Malformed>,
    ) -> Result<Option<T>, ProbeError> {
        self.read_count += 1;
        let keep_open = self.read_count <= self.open_max;
        match self.proc.read_at_once(name, file, keep_open, &mut self.buffer) {
            Ok(text) => self.proc.parsed(name, parse(&text)).map(Some),
            Err(Errno::NOENT | Errno::SRCH | Errno::NODEV) => Ok(None),
            Err(error) => {
                Err(ProbeError::Read { path: self.proc.path(name), source: error.into() })
            }
        }
    }
}

impl TreeUse {
    /// Finds a process and its descendants. A server's control group, if it gets one, must exist
    /// before this call.
    ///
    /// # Errors
    /// Files of `/proc` cannot be read.
    pub fn open(root: u32) -> Result<Self, ProbeError> {
        let mut tree = Self {
            root,
            group_file: group_file(root),
            processes: Vec::new(),
            ended: TreeReading::default(),
            files: Files::new(),
        };
        tree.rescan()?;
        Ok(tree)
    }

    /// Returns true when the CPU time includes that of processes which end between two readings.
    pub fn includes_ended_processes(&self) -> bool {
        self.group_file.is_some()
    }

    /// Finds the processes and threads that have started since the last call. What they have used
    /// since their start adds to the next reading. So a turn's reading is complete if this is
    /// called before the reading at its begin and before that at its end.
    ///
    /// # Errors
    /// Files of `/proc` cannot be read.
    pub fn rescan(&mut self) -> Result<(), ProbeError> {
        // Forgets those that have ended, so that others can have their IDs.
        self.read_processes()?;

        for pid in quick_process_tree(self.root) {
            if self.processes.iter().all(|process| process.pid != pid)
                && let Ok(clock) = ClockId::pid_cpu_clock_id(Pid::from_raw(pid.cast_signed()))
            {
                let (last, threads) = (TreeReading::default(), Vec::new());
                self.processes.push(Process { pid, clock, stat_file: None, last, threads });
            }
        }
        for process in &mut self.processes {
            for tid in threads_of(process.pid) {
                if process.threads.iter().all(|thread| thread.tid != tid) {
                    let last = TreeReading::default();
                    process.threads.push(Thread { tid, status_file: None, last });
                }
            }
        }
        Ok(())
    }

    /// Reads what the known processes and threads have used.
    ///
    /// # Errors
    /// Files of `/proc` cannot be read.
    pub fn read(&mut self) -> Result<TreeReading, ProbeError> {
        self.read_processes()?;
        let mut total = self.ended;
        for process in &self.processes {
            total += process.last;
            for thread in &process.threads {
                total += thread.last;
            }
        }

        if let Some(group) = &mut self.group_file {
            let micros = self
                .files
                .read(&group.name, &mut group.file, |text| required_value(text, "usage_usec"))?;
            // The group goes with the server.
            total.cpu_ns = micros.unwrap_or_default() * 1000;
        }
        Ok(total)
    }

    /// Reads all processes and threads, and forgets those that have ended.
    fn read_processes(&mut self) -> Result<(), ProbeError> {
        self.files.read_count = 0;
        for mut process in std::mem::take(&mut self.processes) {
            let is_alive = process.read(&mut self.files)?;
            let mut ended = std::mem::take(&mut process.threads);
            for mut thread in ended.extract_if(.., |_| is_alive) {
                if thread.read(process.pid, &mut self.files)? {
                    process.threads.push(thread);
                } else {
                    self.ended += thread.last;
                }
            }
            for thread in ended {
                self.ended += thread.last;
            }

            if is_alive {
                self.processes.push(process);
            } else {
                self.ended += process.last;
            }
        }
        Ok(())
    }
}

impl Process {
    /// Reads the CPU time and the faults. Returns false if the process has ended.
    fn read(&mut self, files: &mut Files) -> Result<bool, ProbeError> {
        // The file, which is opened once, belongs to this process. So if it can be read, the clock
        // does too.
        let time = self.clock.now();
        let name = format!("proc/{}/stat", self.pid);
        let faults = files.read(&name, &mut self.stat_file, parse_faults)?;
        let (Ok(time), Some(faults)) = (time, faults) else {
            return Ok(false);
        };

        let (seconds, nanos) = (time.tv_sec().cast_unsigned(), time.tv_nsec().cast_unsigned());
        self.last = TreeReading {
            cpu_ns: seconds * 1_000_000_000 + nanos,
            minor_faults: faults.minor,
            major_faults: faults.major,
            ..TreeReading::default()
        };
        Ok(true)
    }
}

impl Thread {
    /// Reads the context switches. Returns false if the thread has ended.
    fn read(&mut self, process: u32, files: &mut Files) -> Result<bool, ProbeError> {
        let name = format!("proc/{process}/task/{}/status", self.tid);
        let Some(switches) = files.read(&name, &mut self.status_file, parse_context_switches)?
        else {
            return Ok(false);
        };
        self.last = TreeReading {
            voluntary_switches: switches.voluntary,
            involuntary_switches: switches.involuntary,
            ..TreeReading::default()
        };
        Ok(true)
    }
}

/// Returns the file of the group of a process in version 2, if the group has no processes outside
/// of the process's tree.
fn group_file(root: u32) -> Option<GroupFile> {
    let proc = Proc::live();
    let group = Group::in_version_two(&proc, &root.to_string()).ok()?;
    let list = group.directory.join("cgroup.procs");
    let members = proc.text(&list)?;
    let tree = process_tree(root);
    let members_after = proc.text(&list)?;
    if has_others(&members, &tree, &members_after) {
        return None;
    }

    let name = group.directory.join("cpu.stat").to_str()?.to_owned();
    Some(GroupFile { name, file: None })
}

/// Returns true if a control group has processes outside of a tree. The group's list was read before
/// and after the tree: a process that ended meanwhile may be in neither the tree nor the second list.
fn has_others(before: &str, tree: &[u32], after: &str) -> bool {
    let is_in_tree = |pid: &str| pid.parse().is_ok_and(|pid| tree.contains(&pid));
    before.lines().any(|pid| !is_in_tree(pid) && after.lines().any(|other| other == pid))
}

/// Reads the CPU time of one thread of any process.
#[derive(Debug)]
pub struct ThreadTime {
    name: String,
    file: Option<OwnedFd>,
    proc: Proc,
    buffer: Vec<u8>,
}

impl ThreadTime {
    /// Returns a reader of the thread with this ID.
    pub fn of(thread: u32) -> Self {
        Self {
            name: format!("proc/{thread}/schedstat"),
            file: None,
            proc: Proc::live(),
            buffer: Vec::new(),
        }
    }

    /// Returns the thread's CPU time in nanoseconds; `None` if it has ended, or the kernel does not
    /// count it. While the thread runs, the time lags by up to a tick of the kernel, 1 to 10 ms.
    pub fn read_ns(&mut self) -> Option<u64> {
        let text =
            self.proc.read_at_once(&self.name, &mut self.file, true, &mut self.buffer).ok()?;
        // A thread that exists has run.
        text.split_ascii_whitespace().next()?.parse().ok().filter(|&time_ns| time_ns > 0)
    }
}

#[cfg(test)]
mod tests;
