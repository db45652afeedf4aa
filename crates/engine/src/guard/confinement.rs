//! What a guarded program may not leave.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use fs_err as fs;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::Deadline;

/// How long the kernel may take until a group whose processes have ended is empty.
const EMPTYING: Duration = Duration::from_secs(2);

/// A control group for a guarded program, which is there already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// Its directory. The guard removes it when assay is gone before the program; else that is left to its maker.
    pub directory: PathBuf,
    /// The directory of the group that the guard itself stays in: assay's own.
    pub home: PathBuf,
}

/// What a guarded program is confined to, with all that it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// A control group; `None`: assay's own.
    pub group: Option<ControlGroup>,
    /// Processors, by the kernel's numbers; `None`: assay's own.
    pub cpus: Option<Vec<u32>>,
}

impl Confinement {
    /// Starts a program inside; this process is outside again afterwards.
    pub(super) fn spawn(&self, command: &mut Command) -> Result<Child, String> {
        let wrong = |what: &str, error: &dyn std::fmt::Display| format!("cannot {what}: {error}");
        let join = |directory: &PathBuf| {
            // 0 is the process that writes.
            fs::write(directory.join("cgroup.procs"), "0")
                .map_err(|error| wrong("change its control group", &error))
        };
        let outside = sched_getaffinity(None).map_err(|error| wrong("see its CPUs", &error))?;
        if let Some(cpus) = &self.cpus {
            sched_setaffinity(None, &cpu_set(cpus)).map_err(|error| {
                wrong(&format!("use CPUs {}", words::format_cpus(cpus)), &error)
            })?;
        }
        if let Some(group) = &self.group {
            join(&group.directory)?;
        }
        let child = command.spawn().map_err(|error| wrong("start it", &error));
        let leave = || {
            if let Some(group) = &self.group {
                join(&group.home)?;
            }
            if self.cpus.is_some() {
                sched_setaffinity(None, &outside)
                    .map_err(|error| wrong("go back to its own CPUs", &error))?;
            }
            Ok(())
        };
        let left = leave();
        let mut child = child?;
        if let Err(reason) = left {
            let _ = child.kill();
            let _ = child.wait();
            return Err(reason);
        }
        Ok(child)
    }

    /// Removes the group, which is empty, unless assay is there to do so.
    pub(super) fn clean_up(&self) {
        let stdin = std::io::stdin();
        let mut orders = [PollFd::new(&stdin, PollFlags::IN)];
        let is_gone = poll(&mut orders, Some(&rustix::event::Timespec::default())).is_err()
            || orders[0].revents().contains(PollFlags::HUP);
        if let Some(group) = self.group.as_ref().filter(|_| is_gone) {
            remove_group(&group.directory);
        }
    }
}

/// Returns the set of these processors.
pub(crate) fn cpu_set(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if (cpu as usize) < CpuSet::MAX_CPU {
            set.set(cpu as usize);
        }
    }
    set
}

/// Removes a group once its processes have gone. One that can't be removed is left to the next run.
pub(crate) fn remove_group(directory: &Path) {
    let limit = Deadline::after(EMPTYING);
    while let Err(error) = fs::remove_dir(directory) {
        if error.kind() != ErrorKind::ResourceBusy || limit.has_passed() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
