//! Starts the keeper of a frozen program: a process that thaws it when the guard is killed.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::safety::guard::{Guarded, Hold, KEEP, KEEPER_IS_READY, KeeperRequest, SUBCOMMAND};

/// A running keeper. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Keeper(Child);

impl Keeper {
    /// Starts a keeper, and waits until it watches the guard.
    pub(super) fn start(guarded: &Guarded, hold: Hold) -> io::Result<Self> {
        let request = KeeperRequest { guard: guarded.guard_pid(), program: guarded.pid(), hold };
        let mut child = Command::new(guarded.exe())
            .args([SUBCOMMAND, KEEP, &serde_json::to_string(&request)?])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C in the terminal does not reach it.
            .process_group(0)
            .spawn()?;

        let stdout = child.stdout.take();
        let keeper = Self(child);

        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        if line.trim_end() == KEEPER_IS_READY {
            return Ok(keeper);
        }

        Err(io::Error::other(format!("the guard's keeper does not start: {}", line.trim_end())))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
