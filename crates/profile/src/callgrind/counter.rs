//! Counting between two points in time, in all processes of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;
use words::WorkGraph;

use super::dump::{self, Dump};
use super::vgdb::{Answer, Asker, LOOK_AGAIN, User, is_running};
use super::{Callgrind, DUMPS, FORKS, LOGS, WorkError};
use crate::symbols::FunctionNames;

/// The time in which callgrind must answer. Even a server with a hundred threads needs only
/// seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest file with counts that is read. Those of a server have a few megabytes.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// The largest log that is read.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// The work of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The process.
    pub process: u32,
    /// The kernel's id of the thread; `None` if the thread has ended. Work of threads that ended
    /// before this one began may be in it, since valgrind uses their numbers again.
    pub thread: Option<u32>,
    /// The events by callgrind's names. `Ir` are the instructions; the others are simulated.
    pub events: BTreeMap<String, u64>,
    /// The instructions by function, and the calls. Recursive calls, also over other functions,
    /// have a count and no cost: their cost is part of the outermost call. So the costs of all
    /// calls of a function are what was executed while it ran.
    pub graph: WorkGraph,
}

/// The processes that run under callgrind with their files in one folder.
#[derive(Debug)]
pub struct Counter {
    vgdb: PathBuf,
    folder: PathBuf,
    user: Option<User>,
    patience: Duration,
    /// The processes in which counting began.
    begun: BTreeSet<u32>,
    /// The names of functions that were counted before.
    names: FunctionNames,
}

impl Counter {
    /// Returns a counter for the processes that [`Callgrind::command`] started for `folder`, as the
    /// user with these ids of user and group, or as assay's own user.
    pub fn new(callgrind: &Callgrind, folder: &Path, user: Option<(u32, u32)>) -> Self {
        Self {
            vgdb: callgrind.vgdb.clone(),
            folder: folder.to_path_buf(),
            user: user.map(|(uid, gid)| User { uid, gid }),
            patience: PATIENCE,
            begun: BTreeSet::new(),
            names: FunctionNames::default(),
        }
    }

    /// Begins to count in these processes, and in all that they start later. Skips those that have
    /// ended.
    ///
    /// # Errors
    /// A process does not run under callgrind or does not answer, or `stop` was set.
    pub fn begin(&mut self, processes: &[u32], stop: &AtomicBool) -> Result<(), WorkError> {
        // Of processes that have ended since the last time.
        self.remove_dumps()?;
        self.remove_old_logs()?;
        self.begun.clear();

        let answers = self.asker(stop).ask(processes, &["instrumentation on"])?;
        for (process, answer) in processes.iter().zip(answers) {
            if answer != Answer::Gone {
                self.begun.insert(*process);
            }
        }
        Ok(())
    }

    /// Ends counting in all processes, and returns the work of each of their threads since
    /// [`begin`](Self::begin): also of processes that were started or have ended since then, and
    /// of threads that have ended. Threads that did nothing are left out.
    ///
    /// # Errors
    /// A process does not answer or was killed, the counts cannot be read, or `stop` was set.
    pub fn end(&mut self, stop: &AtomicBool) -> Result<Vec<Counted>, WorkError> {
        let threads = self.dump(stop)?;
        let mut names = std::mem::take(&mut self.names);
        let counted = self.read(&threads, stop, &mut names);
        self.names = names;
        let counted = counted?;
        self.remove_dumps()?;
        self.begun.clear();
        Ok(counted)
    }

    fn asker<'a>(&'a self, stop: &'a AtomicBool) -> Asker<'a> {
        Asker {
            vgdb: &self.vgdb,
            folder: &self.folder,
            user: self.user,
            patience: self.patience,
            stop,
        }
    }

    /// Ends counting, and lets each process write its counts. Returns the kernel's ids of the
    /// threads.
    fn dump(&self, stop: &AtomicBool) -> Result<BTreeMap<Thread, u32>, WorkError> {
        // Counting ends first, so that also calls that have not yet returned have their costs.
        const REQUESTS: [&str; 3] = ["instrumentation off", "v.info scheduler", "dump"];

        let mut asked = BTreeSet::new();
        let mut ids = BTreeMap::new();
        loop {
            // Processes may start others meanwhile.
            let running = self.running()?;
            let new: Vec<u32> = running.difference(&asked).copied().collect();
            if new.is_empty() {
                return Ok(ids);
            }

            let answers = self.asker(stop).ask(&new, &REQUESTS)?;
            for (process, answer) in new.iter().zip(answers) {
                if let Answer::Printed(printed) = answer {
                    ids.extend(printed.lines().filter_map(|line| thread_id(*process, line)));
                }
            }
            asked.extend(new);
        }
    }

    /// Returns the processes that run.
    fn running(&self) -> Result<BTreeSet<u32>, WorkError> {
        let names = names(&self.folder)?;
        let processes = names.iter().filter_map(|name| process_of_log(name));
        Ok(processes.filter(|process| is_running(*process)).collect())
    }

    /// Reads the files with counts.
    fn read(
        &self,
        ids: &BTreeMap<Thread, u32>,
        stop: &AtomicBool,
        names: &mut FunctionNames,
    ) -> Result<Vec<Counted>, WorkError> {
        let dumps = self.read_dumps(stop, names)?;
        let written: BTreeSet<u32> = dumps.keys().map(|thread| thread.process).collect();
        if let Some(&process) = self.begun.difference(&written).next() {
            return Err(WorkError::Lost { process, log: self.end_of_log(process) });
        }

        let mut all = Vec::new();
        for (thread, dump) in dumps {
            if dump.graph.total() > 0 {
                all.push(Counted {
                    process: thread.process,
                    thread: ids.get(&thread).copied(),
                    events: dump.events,
                    graph: dump.graph,
                });
            }
        }
        Ok(self.without_copies(all))
    }

    /// Returns the counts of each thread: a process that starts others writes several files.
    fn read_dumps(
        &self,
        stop: &AtomicBool,
        function_names: &mut FunctionNames,
    ) -> Result<BTreeMap<Thread, Dump>, WorkError> {
        let mut sums: BTreeMap<Thread, Dump> = BTreeMap::new();
        for name in names(&self.folder)? {
            let Some(process) = process_of_dump(&name) else {
                continue;
            };
            // Without the number of a thread, it is only created at the start of the process.
            if !name.contains('-') {
                continue;
            }

            let dump =
                self.read_written(process, &self.folder.join(&name), stop, function_names)?;
            let thread = Thread { process, number: dump.thread };
            match sums.get_mut(&thread) {
                Some(sum) => sum.add(&dump),
                None => {
                    sums.insert(thread, dump);
                }
            }
        }
        Ok(sums)
    }

    /// Returns the last lines of the log of a process.
    fn end_of_log(&self, process: u32) -> String {
        let mut bytes = Vec::new();
        let log = open(&self.folder.join(format!("{LOGS}{process}")));
        let _ = log.and_then(|log| log.take(LOG_BYTES_MAX).read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(3)..].join(" ")
    }

    /// Reads a file, which a process that is just ending may still write.
    fn read_written(
        &self,
        process: u32,
        path: &Path,
        stop: &AtomicBool,
        names: &mut FunctionNames,
    ) -> Result<Dump, WorkError> {
        let asker = self.asker(stop);
        let deadline = asker.deadline();
        loop {
            match read_dump(path, names) {
                Err(WorkError::Damaged { .. })
                    if is_running(process) && !asker.is_over(deadline)? =>
                {
                    std::thread::sleep(LOOK_AGAIN);
                }
                result => return result,
            }
        }
    }

    /// Removes what a child copied from its parent: the child of a process with several threads has
    /// only the one that forked, but at first the counts of all.
    fn without_copies(&self, mut all: Vec<Counted>) -> Vec<Counted> {
        let forked: BTreeSet<u32> =
            all.iter().filter(|one| has_forked(one)).map(|one| one.process).collect();
        all.retain(|one| {
            let is_child_of_fork =
                !self.begun.contains(&one.process) && forked.contains(&one.process);
            !is_child_of_fork || has_forked(one)
        });
        all
    }

    fn remove_dumps(&self) -> Result<(), WorkError> {
        self.remove(|name| process_of_dump(name).is_some())
    }

    /// Removes the logs of processes that have ended. Their ids may be used again.
    fn remove_old_logs(&self) -> Result<(), WorkError> {
        self.remove(|name| process_of_log(name).is_some_and(|process| !is_running(process)))
    }

    fn remove(&self, is_old: impl Fn(&str) -> bool) -> Result<(), WorkError> {
        for name in names(&self.folder)? {
            if is_old(&name) {
                fs::remove_file(self.folder.join(&name))
                    .map_err(WorkError::io("cannot remove files of callgrind"))?;
            }
        }
        Ok(())
    }
}

/// Returns whether a thread was in a function that forks.
fn has_forked(counted: &Counted) -> bool {
    let mut functions = counted.graph.functions.iter();
    functions.any(|function| function.own > 0 && FORKS.contains(&function.name.as_str()))
}

/// A thread as valgrind numbers them: from 1 in each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    process: u32,
    number: u32,
}

impl Dump {
    fn add(&mut self, other: &Self) {
        self.graph.merge(&other.graph);
        for (event, count) in &other.events {
            *self.events.entry(event.clone()).or_default() += count;
        }
    }
}

/// Returns the process of a file with counts: `cg.12`, `cg.12-01` at its end, else `cg.12.1-01`.
fn process_of_dump(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(DUMPS)?;
    let end = rest.find(['.', '-']).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Returns the process of a log: `log.12`.
fn process_of_log(name: &str) -> Option<u32> {
    name.strip_prefix(LOGS)?.parse().ok()
}

/// Returns the counts in a file.
fn read_dump(path: &Path, names: &mut FunctionNames) -> Result<Dump, WorkError> {
    let mut bytes = Vec::new();
    open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes))
        .map_err(WorkError::io("cannot read counts"))?;
    dump::parse(&String::from_utf8_lossy(&bytes), names).map_err(|damage| WorkError::Damaged {
        path: path.to_path_buf(),
        line: damage.line,
        what: damage.what,
    })
}

/// Opens a file where the user of the processes may have put anything.
fn open(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)
}

/// Returns a thread and its id from a line such as `Thread 3: status = VgTs_WaitSys syscall 232
/// (lwpid 27049)`. The id of a thread that has ended is 0.
fn thread_id(process: u32, line: &str) -> Option<(Thread, u32)> {
    let (number, rest) = line.strip_prefix("Thread ")?.split_once(": ")?;
    let (_, id) = rest.rsplit_once("(lwpid ")?;
    let id = id.trim_end().strip_suffix(')')?.parse().ok()?;
    let thread = Thread { process, number: number.parse().ok()? };
    (id > 0).then_some((thread, id))
}

/// Returns the names of all files in a folder, in order.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, WorkError> {
    let cannot_list = "cannot list the files of callgrind";
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(WorkError::io(cannot_list))? {
        let entry = entry.map_err(WorkError::io(cannot_list))?;
        if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_found_in_the_state_of_the_scheduler() {
        for (line, expected) in [
            ("Thread 3: status = VgTs_WaitSys syscall 232 (lwpid 27049)", Some((3, 27049))),
            ("Thread 1: status = VgTs_Yielding (lwpid 27047)", Some((1, 27047))),
            ("Thread 2: status = VgTs_Empty (lwpid 0)", None),
            ("==27049==    at 0x493F2EC: read (read.c:26)", None),
            ("Thread 3: status", None),
            ("Thread x: (lwpid 3)", None),
            ("", None),
        ] {
            let expected = expected.map(|(number, id)| (Thread { process: 9, number }, id));
            assert_eq!(thread_id(9, line), expected, "{line}");
        }
    }

    #[test]
    fn files_with_counts_are_told_by_their_names() {
        for (name, expected) in [
            ("cg.12", Some(12)),
            ("cg.12-01", Some(12)),
            ("cg.12.3-02", Some(12)),
            ("cg.", None),
            ("cg.x", None),
            ("log.12", None),
            ("vgdb-from-vgdb-to-12-by-joe-on-db", None),
        ] {
            assert_eq!(process_of_dump(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_file_with_counts_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "totals: 1").unwrap();
        let link = folder.path().join("cg.1");
        fs::os::unix::fs::symlink(&secret, &link).unwrap();
        let mut names = FunctionNames::default();
        assert!(matches!(read_dump(&link, &mut names), Err(WorkError::Io { .. })));

        let error = read_dump(&secret, &mut names).unwrap_err();
        assert!(error.to_string().contains("secret` is damaged in line 1"), "{error}");
    }
}
