//! Running a build's programs under guard: to their end, or until they answer.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fs_err as fs;

use super::log::{size, tail, tail_since, whole_tail_since};
use crate::guard::{Deadline, Ending, Guarded, Spawn, command_line};
use crate::limits::Enforced;
use crate::{Error, ErrorClass, SetupError};

/// Lines of the log that an error carries.
const TAIL_LINES: usize = 20;

/// Lines of the log in which a server's complaint is looked for: some say much more while they go down again.
const COMPLAINT_LINES: usize = 400;

/// What a program that is asked for its version answers, as `parse` understands it; `server` is whose version it is.
pub(crate) fn version<V>(
    program: &Path,
    args: &[&str],
    server: &str,
    parse: impl Fn(&str) -> Option<V>,
) -> Result<V, SetupError> {
    let failed = |status: String, tail: &[u8]| {
        let tail = String::from_utf8_lossy(tail);
        SetupError::Command {
            command: command_line(program, args),
            status,
            tail: tail.lines().map(str::to_string).collect(),
            log: None,
        }
    };
    let output = Command::new(program)
        .args(args)
        .output()
        .map_err(|error| failed(error.to_string(), &[]))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string(), &output.stderr));
    }
    parse(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| failed(format!("it prints no version of {server}"), &output.stdout))
}

/// How programs of a build are run.
pub(crate) struct Programs<'a> {
    /// The program that guards them.
    pub(crate) guard_exe: &'a Path,
    /// Where their output goes.
    pub(crate) log: &'a Path,
    /// Who runs them; `None`: assay's own user.
    pub(crate) ids: Option<(u32, u32)>,
    /// Variables of the environment that change what they do.
    pub(crate) env_remove: &'a [&'a str],
    /// How the kernel ends them when their guard is killed.
    pub(crate) orphaned: Ending,
    /// What they may use.
    pub(crate) limits: &'a Enforced,
    /// How long each may take.
    pub(crate) timeout: Duration,
    /// Ends waiting for them.
    pub(crate) stop: &'a AtomicBool,
}

/// A server's way of telling that it is up.
pub(crate) struct Readiness<'a, F, G> {
    /// What it is called in messages.
    pub(crate) server: &'a dyn Fn() -> String,
    /// The socket that it makes.
    pub(crate) socket: &'a Path,
    /// Asks it something.
    pub(crate) ask: F,
    /// What in the log of one that ended is about its configuration, as an error.
    pub(crate) complaint: G,
    /// What it is reached by, for errors of asking.
    pub(crate) address: &'a str,
}

impl Programs<'_> {
    /// Starts a program. `input` is its standard input, `remove` a directory that goes with it.
    pub(crate) fn spawn(
        &self,
        program: &Path,
        args: Vec<OsString>,
        input: Option<&Path>,
        remove: Option<&Path>,
    ) -> Result<Guarded, SetupError> {
        // The log's directory is the caller's: a missing one is an error here rather than in the guard.
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log)?;
        let spawn = Spawn {
            guard_exe: self.guard_exe,
            program,
            args,
            env: vec![("LC_ALL".into(), "C".into())],
            env_remove: self.env_remove.iter().map(OsString::from).collect(),
            input,
            directory: None,
            user: self.ids,
            log: Some(self.log),
            orphaned: self.orphaned,
            remove_directory: remove,
        };
        Guarded::spawn_confined(&spawn, self.limits.confinement())
    }

    /// Waits until the program ends, in small pieces, so that a stop is seen.
    fn is_over(&self, guarded: &mut Guarded, began: &Deadline) -> Result<bool, SetupError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(SetupError::Command {
                command: guarded.command().to_string(),
                status: "it was stopped on request".into(),
                tail: Vec::new(),
                log: None,
            });
        }
        Ok(guarded.wait(Duration::from_millis(20)).is_some() || began.has_passed())
    }

    /// Runs a program to its end, which has to be a good one.
    pub(crate) fn run(
        &self,
        program: &Path,
        args: Vec<OsString>,
        input: Option<&Path>,
    ) -> Result<(), SetupError> {
        let log_start = size(self.log);
        let mut guarded = self.spawn(program, args, input, None)?;
        let began = Deadline::after(self.timeout);
        while !self.is_over(&mut guarded, &began)? {}
        let status = match guarded.exit_status() {
            Some("exit status: 0") => return Ok(()),
            Some(status) => with_reason(status, self.limits),
            None => format!("it did not end within {} s", self.timeout.as_secs()),
        };
        Err(SetupError::Command {
            command: guarded.command().to_string(),
            status,
            tail: tail_since(self.log, log_start, TAIL_LINES),
            log: Some(self.log.to_path_buf()),
        })
    }

    /// Starts a server, whose socket's directory is `remove`, and waits until it answers.
    pub(crate) fn serve<F, G>(
        &self,
        program: &Path,
        args: Vec<OsString>,
        remove: &Path,
        mut ready: Readiness<'_, F, G>,
    ) -> Result<Guarded, SetupError>
    where
        F: FnMut() -> Result<(), Error>,
        G: FnOnce(&[String]) -> Option<SetupError>,
    {
        let log_start = size(self.log);
        let mut guarded = self.spawn(program, args, None, Some(remove))?;
        let began = Deadline::after(self.timeout);
        let mut last = Error::new(ErrorClass::ConnectionLost, "it has not begun to listen");
        loop {
            if ready.socket.exists() {
                match (ready.ask)() {
                    Ok(()) => return Ok(guarded),
                    // Still starting, or recovering.
                    Err(error) if error.class == ErrorClass::ConnectionLost => last = error,
                    Err(source) => {
                        return Err(SetupError::Server {
                            server: ready.address.to_string(),
                            source,
                            help: None,
                        });
                    }
                }
            }
            if !self.is_over(&mut guarded, &began)? {
                continue;
            }
            let log = tail_since(self.log, log_start, TAIL_LINES);
            let Some(status) = guarded.exit_status().map(str::to_string) else {
                return Err(SetupError::NotReady {
                    server: (ready.server)(),
                    seconds: self.timeout.as_secs(),
                    last: last.to_string(),
                    tail: log,
                });
            };
            let whole = whole_tail_since(self.log, log_start, COMPLAINT_LINES);
            return Err(match (ready.complaint)(&whole) {
                Some(complaint) => complaint,
                None => SetupError::Command {
                    command: guarded.command().to_string(),
                    status: with_reason(&status, self.limits),
                    tail: log,
                    log: Some(self.log.to_path_buf()),
                },
            });
        }
    }
}

/// How a program ended, and why, where that was its limit of memory.
fn with_reason(status: &str, limits: &Enforced) -> String {
    match limits.killed_for_memory("it") {
        Some(reason) => format!("{status}: {reason}"),
        None => status.to_string(),
    }
}

/// Stops a server: in good order by the signal `gently`, then, with an error, by force.
pub(crate) fn stop(
    mut guarded: Guarded,
    gently: Ending,
    timeout: Duration,
    log: &Path,
    limits: &Enforced,
) -> Result<(), SetupError> {
    let command = guarded.command().to_string();
    let not_clean = |status: String| {
        Err(SetupError::Command {
            command: command.clone(),
            status,
            tail: tail(log, TAIL_LINES),
            log: Some(log.to_path_buf()),
        })
    };
    if let Some(status) = guarded.exit_status() {
        let status = with_reason(status, limits);
        return not_clean(format!("it had ended before it was stopped: {status}"));
    }
    let endings = [(gently, timeout), (Ending::Quit, Duration::from_secs(10))];
    let (ending, status) = guarded.stop(&endings)?;
    match ending == gently {
        true if status == "exit status: 0" => Ok(()),
        true => not_clean(format!(
            "it did not stop cleanly: {}",
            with_reason(&status, limits)
        )),
        false => not_clean(format!(
            "it did not stop within {} s and was ended by {}",
            timeout.as_secs(),
            ending.name()
        )),
    }
}
