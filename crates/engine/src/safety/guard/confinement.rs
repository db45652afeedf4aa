//! The confinement of a guarded program to a control group and processors.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use fs_err as fs;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::Deadline;

/// The maximum time that the kernel needs to empty a group whose processes have ended.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(2);

/// An existing control group for a guarded program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// The group's directory. Assay removes it; if assay ends before the program, the guard does.
    pub directory: PathBuf,
    /// The directory of assay's own group, in which the guard stays.
    pub home: PathBuf,
}

/// The confinement of a guarded program and all processes that it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The control groups, one in each hierarchy with a limit; empty means assay's own.
    pub groups: Vec<ControlGroup>,
    /// The processors, by the kernel's numbers; `None` means assay's own.
    pub cpus: Option<Vec<u32>>,
    /// The largest amount of private memory of each process; `None` for assay's own limit.
    pub memory_bytes_max: Option<u64>,
}

impl Confinement {
    /// Starts a program in the confinement. Afterward, this process is outside again.
    pub(super) fn spawn(&self, command: &mut Command) -> Result<Child, String> {
        let own_cpus = sched_getaffinity(None)
            .map_err(|error| format!("cannot read its CPU affinity: {error}"))?;

        self.enter()?;
        let started = command.spawn().map_err(|error| format!("cannot start it: {error}"));
        let left = self.leave(&own_cpus);

        // A guard that cannot leave would share the program's limits.
        let mut child = started?;
        if let Err(reason) = left {
            let _ = child.kill();
            let _ = child.wait();
            return Err(reason);
        }
        Ok(child)
    }

    fn enter(&self) -> Result<(), String> {
        if let Some(cpus) = &self.cpus {
            sched_setaffinity(None, &cpu_set(cpus)).map_err(|error| {
                format!("cannot use CPUs {}: {error}", words::format_cpus(cpus))
            })?;
        }

        for group in &self.groups {
            join_group(&group.directory)?;
        }
        Ok(())
    }

    fn leave(&self, own_cpus: &CpuSet) -> Result<(), String> {
        for group in &self.groups {
            join_group(&group.home)?;
        }
        if self.cpus.is_some() {
            sched_setaffinity(None, own_cpus)
                .map_err(|error| format!("cannot go back to its own CPUs: {error}"))?;
        }
        Ok(())
    }

    /// Limits the private memory of this process, which becomes the program.
    pub(super) fn limit_memory(&self) -> Result<(), String> {
        let Some(bytes) = self.memory_bytes_max else {
            return Ok(());
        };
        limit_own_memory(bytes).map_err(|error| format!("cannot limit its memory: {error}"))
    }

    /// Removes the empty groups if assay is gone.
    pub(super) fn clean_up(&self) {
        let stdin = std::io::stdin();
        let mut orders = [PollFd::new(&stdin, PollFlags::IN)];
        let is_gone = poll(&mut orders, Some(&rustix::event::Timespec::default())).is_err()
            || orders[0].revents().contains(PollFlags::HUP);

        if is_gone {
            for group in &self.groups {
                remove_group(&group.directory);
            }
        }
    }
}

/// Moves this process to a control group.
fn join_group(directory: &Path) -> Result<(), String> {
    // 0 means the writing process.
    fs::write(directory.join("cgroup.procs"), "0")
        .map_err(|error| format!("cannot change its control group: {error}"))
}

/// Limits the private memory of this process, for good. An allocation beyond the limit fails.
///
/// # Errors
/// The kernel's.
pub(crate) fn limit_own_memory(bytes: u64) -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let inherited = getrlimit(Resource::Data).maximum.unwrap_or(u64::MAX);
    let limit = Some(bytes.min(inherited));
    Ok(setrlimit(Resource::Data, Rlimit { current: limit, maximum: limit })?)
}

/// Returns a kernel set of these processors.
pub(crate) fn cpu_set(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if (cpu as usize) < CpuSet::MAX_CPU {
            set.set(cpu as usize);
        }
    }
    set
}

/// Returns the processors in a kernel set, in ascending order.
pub(crate) fn cpus_in(set: &CpuSet) -> Vec<u32> {
    (0..CpuSet::MAX_CPU as u32).filter(|cpu| set.is_set(*cpu as usize)).collect()
}

/// Removes a group once its processes are gone. If that fails, the next run removes it.
pub(crate) fn remove_group(directory: &Path) {
    let deadline = Deadline::after(EMPTY_TIMEOUT);
    while let Err(error) = fs::remove_dir(directory) {
        if error.kind() != ErrorKind::ResourceBusy || deadline.has_passed() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
