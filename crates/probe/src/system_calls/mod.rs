//! Counts the system calls of an engine by kind, with the kernel's tracepoints
//! (`syscalls:sys_enter_NAME`) and `perf_event_open`.
//!
//! - [`SystemCallEvents`] knows the tracepoints of this machine, and keeps them registered.
//! - [`CountedThreads`] says which threads are the engine's.
//! - [`SystemCallCounting`] counts, from its beginning to its end.
//!
//! Each thread that exists has one counter for each kind. The kernel gives a new thread or process
//! the counters of the thread that started it, and adds their counts to those of that thread's
//! counters. So nothing is lost when threads begin or end, and nothing is counted twice. A thread
//! that began while counters were attached to others may have only some of them. Then all are
//! attached again.
//!
//! Registering a tracepoint makes each system call of each process on the machine slower, and
//! unregistering it takes the kernel tens of milliseconds. So they stay registered as long as
//! [`SystemCallEvents`] lives. The kernel unregisters them when the process ends, however it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use words::SystemCallCounts;

use crate::processes::{process_tree, threads_of};
use crate::source::Proc;

/// The directories in which tracefs may be mounted.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The number of open files that counters need at most; the soft limit is raised to it if the hard
/// limit allows that.
const FILES_WANTED: u64 = 65_536;

/// The number of times that counters are attached, if threads begin meanwhile.
const ATTEMPTS: usize = 10;

/// The remedy if the kernel refuses to count.
const PERMISSION_HELP: &str =
    "run as root, or with the capability PERFMON and a tracefs that this user can read";

/// The reason why system calls cannot be counted, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum SystemCallError {
    /// The kernel's tracepoints are nowhere to be found.
    #[error(
        "tracefs is not mounted; run as root, or let root mount it: `mount -t tracefs tracefs \
         /sys/kernel/tracing`; a kernel without `CONFIG_FTRACE_SYSCALLS` has no tracepoints of \
         system calls"
    )]
    NoTracefs,
    /// This user cannot read the tracepoints.
    #[error("`{}` cannot be read ({source}); {PERMISSION_HELP}", .path.display())]
    Unreadable {
        /// The file of a tracepoint, or the directory of all.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The kernel refused a counter.
    #[error("the kernel does not count them ({source}); {}", help_for(.source))]
    Refused {
        /// The operating system's error.
        source: io::Error,
    },
    /// A counter cannot be read.
    #[error("a counter cannot be read ({source})")]
    NotCounted {
        /// The operating system's error.
        source: io::Error,
    },
    /// The engine has too many threads for the limit on open files.
    #[error(
        "{threads} threads need more counters than open files are allowed ({files_max}); raise \
         `ulimit -Hn`"
    )]
    TooManyThreads {
        /// The number of threads.
        threads: usize,
        /// The files that counters may open.
        files_max: u64,
    },
    /// The engine kept starting threads, so that some would have been counted in part.
    #[error("the engine started threads all the time while counting should begin")]
    Restless,
    /// None of the engine's threads is there.
    #[error("the engine has no thread on this host that can be counted")]
    NoThreads,
}

/// Returns what to do after an error of the kernel.
fn help_for(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => "raise `ulimit -Hn`",
        Some(Errno::ACCESS | Errno::PERM) => PERMISSION_HELP,
        _ => "the kernel may lack `CONFIG_FTRACE_SYSCALLS`",
    }
}

/// A kind of system call that this machine can count.
#[derive(Clone, Copy, Debug)]
struct CountedKind {
    name: &'static str,
    tracepoint: Tracepoint,
}

/// The tracepoints of some kinds of system calls, which stay registered.
pub struct SystemCallEvents {
    kinds: Vec<CountedKind>,
    /// The kinds that this machine does not have.
    unknown: Vec<String>,
    /// Counters of this thread that count nothing: as long as one is there, its tracepoint is
    /// registered.
    _registered: Vec<Counter>,
    /// The number of files that counters may open at once.
    files_max: u64,
}

impl SystemCallEvents {
    /// Registers the tracepoints of these system calls. Raises this process's limit on open files,
    /// because counting takes one for each kind and thread.
    ///
    /// # Errors
    /// This user may not count system calls, or the kernel cannot.
    pub fn open(names: &[&'static str]) -> Result<Self, SystemCallError> {
        let events = |root: &Path| root.join("events/syscalls");
        let mut roots = TRACEFS.map(Path::new).into_iter();
        if let Some(root) = roots.find(|root| !matches!(is_there(&events(root)), Ok(false))) {
            return Self::open_in(&events(root), names);
        }

        let Ok(own_mount) = unseen_tracefs() else {
            return Err(SystemCallError::NoTracefs);
        };
        let root = PathBuf::from(format!("/proc/self/fd/{}", own_mount.as_raw_fd()));
        Self::open_in(&events(&root), names)
    }

    /// Does so with the tracepoints in a directory.
    fn open_in(directory: &Path, names: &[&'static str]) -> Result<Self, SystemCallError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            |source| SystemCallError::Unreadable { path, source }
        };
        is_there(directory).map_err(unreadable(directory))?;

        let mut kinds = Vec::new();
        let mut unknown = Vec::new();
        for &name in names {
            let path = directory.join(format!("sys_enter_{}/id", tracepoint_of(name)));
            if !is_there(&path).map_err(unreadable(&path))? {
                unknown.push(name.to_owned());
                continue;
            }
            let text = fs_err::read_to_string(&path).map_err(unreadable(&path))?;
            match text.trim().parse() {
                Ok(id) => kinds.push(CountedKind { name, tracepoint: Tracepoint::with_id(id) }),
                Err(_) => unknown.push(name.to_owned()),
            }
        }
        if kinds.is_empty() {
            return Err(SystemCallError::NoTracefs);
        }

        raise_files_limit();
        let mut registered = Vec::new();
        for kind in &kinds {
            // New counters don't count before they are enabled.
            let counter = Builder::new(kind.tracepoint).build();
            registered.push(counter.map_err(|source| SystemCallError::Refused { source })?);
        }
        // The other half is for connections, databases and the record.
        let files_max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
        Ok(Self { kinds, unknown, _registered: registered, files_max })
    }

    /// Begins to count the system calls of some threads.
    ///
    /// # Errors
    /// Not all threads can be counted.
    pub fn begin(&self, counted: &CountedThreads) -> Result<SystemCallCounting, SystemCallError> {
        for _ in 0..ATTEMPTS {
            let threads = counted.now();
            let counting = self.attach(&threads)?;
            // A thread that began meanwhile may have inherited only some of the counters.
            if counted.now().is_subset(&threads) {
                return counting.begin();
            }
        }
        Err(SystemCallError::Restless)
    }

    /// Attaches counters to threads, of all kinds that the limit on open files allows.
    fn attach(&self, threads: &BTreeSet<u32>) -> Result<SystemCallCounting, SystemCallError> {
        if threads.is_empty() {
            return Err(SystemCallError::NoThreads);
        }
        let kinds_max = self.files_max / threads.len() as u64;
        if kinds_max == 0 {
            let (threads, files_max) = (threads.len(), self.files_max);
            return Err(SystemCallError::TooManyThreads { threads, files_max });
        }
        let kinds_max = usize::try_from(kinds_max).unwrap_or(usize::MAX).min(self.kinds.len());
        let (counted, others) = self.kinds.split_at(kinds_max);

        let mut counters = Vec::with_capacity(counted.len() * threads.len());
        for &tid in threads {
            for (kind, CountedKind { tracepoint, .. }) in counted.iter().enumerate() {
                let mut builder = Builder::new(*tracepoint);
                builder.observe_pid(tid.cast_signed()).any_cpu().inherit(true).enabled(true);
                match builder.build() {
                    Ok(counter) => counters.push(KindCounter { kind, counter, before: 0 }),
                    // A thread that has ended makes no more calls.
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => break,
                    Err(source) => return Err(SystemCallError::Refused { source }),
                }
            }
        }

        let mut left_out = self.unknown.clone();
        left_out.extend(others.iter().map(|kind| kind.name.to_owned()));
        Ok(SystemCallCounting {
            names: counted.iter().map(|kind| kind.name).collect(),
            counters,
            threads: threads.len() as u64,
            left_out,
        })
    }
}

/// Returns whether a file is there; an error if that cannot be told.
fn is_there(path: &Path) -> io::Result<bool> {
    path.try_exists()
}

/// Mounts tracefs where nobody else sees it: the mount ends with the returned file. Only root may.
fn unseen_tracefs() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;

    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Returns the kernel's name of a system call in tracepoints.
fn tracepoint_of(name: &str) -> &str {
    match name {
        "fstat" => "newfstat",
        _ => name,
    }
}

/// Raises the soft limit on open files, at most to the hard one. If that fails, fewer kinds are
/// counted.
fn raise_files_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(FILES_WANTED).min(FILES_WANTED);
    if limit.current.is_some_and(|current| current < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

/// The threads of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CountedThreads {
    /// All threads of a server's processes.
    Server {
        /// The first process of the server.
        pid: u32,
        /// A thread that is left out, because it serves Assay's own observer.
        except: Option<u32>,
    },
    /// The threads of the load's clients, on which the engine works.
    Clients(Vec<u32>),
    /// The threads of clients, and all threads of this process that have a name of their own: those
    /// without one are Assay's.
    Library(Vec<u32>),
}

impl CountedThreads {
    /// Returns the thread IDs as they are now.
    fn now(&self) -> BTreeSet<u32> {
        match self {
            Self::Server { pid, except } => {
                let processes = process_tree(*pid).into_iter();
                let mut threads: BTreeSet<u32> = processes.flat_map(threads_of).collect();
                if let Some(except) = except {
                    threads.remove(except);
                }
                threads
            }
            Self::Clients(clients) => clients.iter().copied().collect(),
            Self::Library(clients) => {
                let proc = Proc::live();
                let own = std::process::id();
                let program = proc.text(format!("proc/{own}/comm"));
                let mut threads: BTreeSet<u32> = threads_of(own).into_iter().collect();
                threads.retain(|tid| proc.text(format!("proc/{tid}/comm")) != program);
                threads.extend(clients);
                threads
            }
        }
    }
}

/// The counter of one kind for one thread and what that thread starts.
struct KindCounter {
    /// The index of the kind.
    kind: usize,
    counter: Counter,
    /// The count when counting began.
    before: u64,
}

/// Counts system calls until [`end`](Self::end).
pub struct SystemCallCounting {
    names: Vec<&'static str>,
    counters: Vec<KindCounter>,
    threads: u64,
    left_out: Vec<String>,
}

impl SystemCallCounting {
    /// Takes the counts so far as zero.
    fn begin(mut self) -> Result<Self, SystemCallError> {
        for KindCounter { counter, before, .. } in &mut self.counters {
            *before = read(counter)?;
        }
        Ok(self)
    }

    /// Returns the system calls since the beginning.
    ///
    /// # Errors
    /// A counter cannot be read.
    pub fn end(mut self) -> Result<SystemCallCounts, SystemCallError> {
        let mut totals = vec![0; self.names.len()];
        for KindCounter { kind, counter, before } in &mut self.counters {
            totals[*kind] += read(counter)?.saturating_sub(*before);
        }

        let mut calls = BTreeMap::new();
        for (name, total) in self.names.iter().zip(totals) {
            calls.insert((*name).to_owned(), total);
        }
        Ok(SystemCallCounts {
            missing: None,
            threads: self.threads,
            calls,
            left_out: self.left_out,
        })
    }
}

fn read(counter: &mut Counter) -> Result<u64, SystemCallError> {
    counter.read().map_err(|source| SystemCallError::NotCounted { source })
}

#[cfg(test)]
mod tests;
