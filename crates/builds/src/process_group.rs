//! Programs that end with this process, however it ends, as does whatever they start in their group.
//!
//! The first process of a group is a shell that reads a pipe. This process alone has the other end,
//! which the kernel closes even after SIGKILL. The shell then kills the group, itself included.
//!
//! A process that begins a session of its own (`setsid`) leaves the group, and nothing here ends it.
//! The guard of servers, in `engine`, would, since it is the subreaper of all that they start. This
//! crate uses no other, and a guard needs the program `assay`. This process cannot be the subreaper:
//! it has other children, from which the orphans could not be told. Nor need it hold such a process:
//! a recipe is trusted as `make` is, and the daemon of a compiler's cache should stay.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};

/// The shell that watches. It has a path, since PATH is for the programs that are watched.
const SHELL: &str = "/bin/sh";

/// Kills the process group when the standard input ends.
const WATCH: &str = "read -r _; kill -KILL 0";

/// A process group. It is killed when this is dropped, and when this process ends.
#[derive(Debug)]
pub struct ProcessGroup {
    watcher: Child,
}

impl ProcessGroup {
    /// Begins a group, which has no program yet.
    ///
    /// # Errors
    /// There is no shell.
    pub fn begin() -> anyhow::Result<Self> {
        let watcher = Command::new(SHELL)
            .args(["-c", WATCH])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start `{SHELL}`, which ends what Assay starts"))?;

        Ok(Self { watcher })
    }

    /// Lets a command start its program in the group. Ctrl-C in the terminal reaches only this
    /// process, which then ends the group.
    pub fn add<'command>(&self, command: &'command mut Command) -> &'command mut Command {
        command.process_group(self.pid().as_raw_nonzero().get())
    }

    /// Kills all programs of the group. Nobody else gets its number before it is dropped.
    pub fn kill(&self) {
        // Fails only if nothing is left.
        let _ = kill_process_group(self.pid(), Signal::KILL);
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.watcher)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        let _ = self.watcher.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_program_ends_with_the_process_that_began_its_group() {
        let mut group = ProcessGroup::begin().unwrap();
        let mut endless = Command::new("tail");
        let mut program = group.add(endless.args(["-f", "/dev/null"])).spawn().unwrap();
        // The kernel does the same when this process ends.
        drop(group.watcher.stdin.take());
        assert_eq!(program.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn a_group_that_is_dropped_leaves_no_program() {
        let group = ProcessGroup::begin().unwrap();
        let mut endless = Command::new("tail");
        let mut program = group.add(endless.args(["-f", "/dev/null"])).spawn().unwrap();
        drop(group);
        assert_eq!(program.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    }
}
