//! Puts threads on processors: clients of the load, and those of a server.

use std::collections::HashSet;
use std::io;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};

use super::guard::{cpu_set, cpus_in};

/// Returns the processors on which the current thread may run, in ascending order. Others may
/// differ once they have been placed.
///
/// # Errors
/// The kernel's.
pub fn own_cpus() -> io::Result<Vec<u32>> {
    Ok(cpus_in(&sched_getaffinity(None)?))
}

/// Lets a thread run only on these processors. Threads and processes that it starts inherit this.
/// The thread may be another process's, and have another user if assay is root.
///
/// # Errors
/// There is no such thread, or it may not use any of these processors.
pub fn set_thread_cpus(thread: u32, cpus: &[u32]) -> io::Result<()> {
    let raw = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let thread = raw.ok_or(Errno::SRCH)?;
    Ok(sched_setaffinity(Some(thread), &cpu_set(cpus))?)
}

/// Lets all threads of a process and of its descendants run only on these processors. Those that
/// start meanwhile are found too.
///
/// # Errors
/// The threads may not use any of these processors.
pub fn set_tree_cpus(root: u32, cpus: &[u32]) -> io::Result<()> {
    let mut placed = HashSet::new();
    loop {
        let before = placed.len();

        for process in probe::process_tree(root) {
            for thread in probe::threads_of(process) {
                if !placed.insert(thread) {
                    continue;
                }
                match set_thread_cpus(thread, cpus) {
                    // The thread has ended.
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => {}
                    result => result?,
                }
            }
        }

        // Only a look without any new thread shows that none was missed.
        if placed.len() == before {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_tree_and_one_of_its_threads_are_placed_and_assay_is_not() {
        let own = own_cpus().unwrap();
        let (first, last) = (own[0], own[own.len() - 1]);
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 1000 & echo; read line; kill $!"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let cpus_of = |pid: u32| {
            let pid = Pid::from_raw(pid.cast_signed());
            cpus_in(&sched_getaffinity(pid).unwrap())
        };

        set_tree_cpus(shell.id(), &[last]).unwrap();
        let tree = probe::process_tree(shell.id());
        assert!(tree.len() > 1 && tree.iter().all(|&pid| cpus_of(pid) == [last]), "{tree:?}");
        set_thread_cpus(tree[1], &[first]).unwrap();
        assert_eq!((cpus_of(tree[0]), cpus_of(tree[1])), (vec![last], vec![first]));
        assert_eq!(own_cpus().unwrap(), own);

        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(set_thread_cpus(tree[0], &[first]).is_err());
        set_tree_cpus(tree[0], &[first]).unwrap();
    }
}
