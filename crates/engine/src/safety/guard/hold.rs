//! The means by which a program is frozen, for those who thaw it before they end it.
//!
//! A frozen program handles no signal but SIGKILL, so the guard thaws it before every end. If the
//! guard is killed, the kernel's signal to the program has no effect either until somebody thaws
//! it. The keeper does: a process that only waits for the end of the guard.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use fs_err as fs;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

use super::confinement::remove_group;
use super::descendants::descendants;
use super::supervisor::{handle_signals, send};

/// The file of a control group of version 2 that freezes and thaws it.
pub(crate) const FREEZE_FILE: &str = "cgroup.freeze";

/// The line that a keeper writes when it is ready.
pub(crate) const KEEPER_IS_READY: &str = "ready";

/// The name of the keeper's process, which is not assay's: whoever kills all processes with that
/// name must not leave a server frozen.
const KEEPER_NAME: &std::ffi::CStr = c"thaw-keeper";

/// The means by which a program is frozen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Hold {
    /// A control group of version 2, which contains all processes of the program and no others.
    Group {
        /// The group's directory.
        directory: PathBuf,
        /// True if the group only serves to freeze the program, so that it goes with the program.
        is_temporary: bool,
    },
    /// SIGSTOP for each process.
    Signals,
}

impl Hold {
    /// Thaws all descendants of the process `ancestor`. Children go before their parents, which may
    /// wait for them.
    pub(super) fn release(&self, ancestor: u32) {
        match self {
            // A group that is gone has no processes.
            Self::Group { directory, .. } => {
                let _ = fs::write(directory.join(FREEZE_FILE), "0");
            }
            Self::Signals => {
                for pid in descendants(ancestor).into_iter().rev() {
                    send(pid, Signal::CONT);
                }
            }
        }
    }

    /// Removes a temporary group, whose processes have ended or are about to.
    pub(super) fn clean_up(&self) {
        if let Self::Group { directory, is_temporary: true } = self {
            remove_group(directory);
        }
    }
}

/// The request to a keeper, in JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeeperRequest {
    /// The process of the guard, whose end the keeper waits for.
    pub(crate) guard: u32,
    /// The process of the guarded program.
    pub(crate) program: u32,
    /// The means by which the program is frozen.
    pub(crate) hold: Hold,
}

/// Runs a keeper: waits for the end of the guard, then thaws the program.
pub(super) fn keep(request: &str) -> ExitCode {
    match serde_json::from_str(request).map_err(Into::into).and_then(wait_and_release) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Assay reads the reason in the place of the line that it expects.
            let _ = writeln!(std::io::stdout(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn wait_and_release(request: KeeperRequest) -> std::io::Result<()> {
    let KeeperRequest { guard, program, hold } = request;
    handle_signals()?;
    let _ = rustix::thread::set_name(KEEPER_NAME);
    let end_of_guard = open_pidfd(guard)?;
    writeln!(std::io::stdout(), "{KEEPER_IS_READY}")?;

    loop {
        let mut fds = [PollFd::from_borrowed_fd(end_of_guard.as_fd(), PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            _ => break,
        }
    }

    hold.release(program);
    if hold == Hold::Signals {
        send(program, Signal::CONT);
    }
    hold.clean_up();
    Ok(())
}

/// Opens a descriptor that stands for a process, even when another gets its ID.
pub(crate) fn open_pidfd(pid: u32) -> std::io::Result<std::os::fd::OwnedFd> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = raw.ok_or(rustix::io::Errno::SRCH)?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}
