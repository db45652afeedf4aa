//! Running a build's programs under guard: to their end, or until they answer.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fs_err as fs;

use super::log::{size, tail, tail_since, whole_tail_since};
use super::server::Place;
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
    let failed = |status: String, output: &[u8]| {
        let output = String::from_utf8_lossy(output);
        let tail = output.lines().map(str::to_string).collect();
        failure(&command_line(program, args), status, tail, None)
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

/// A server's way of telling that it is up.
pub(crate) struct Readiness<'a> {
    /// What it is called in messages.
    pub(crate) server: &'a str,
    /// Asks it something.
    pub(crate) ask: &'a dyn Fn() -> Result<(), Error>,
    /// What in the log of one that ended is about its configuration, as an error.
    pub(crate) complaint: &'a dyn Fn(&[String]) -> Option<SetupError>,
}

impl Place {
    /// Starts a program. `input` is its standard input, `remove` a directory that goes with it.
    fn spawn(
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
            .open(&self.log)?;
        let spawn = Spawn {
            guard_exe: &self.guard_exe,
            program,
            args,
            env: vec![("LC_ALL".into(), "C".into())],
            env_remove: self.kind.environment.iter().map(OsString::from).collect(),
            input,
            directory: None,
            user: self.user.as_ref().map(|user| (user.uid, user.gid)),
            log: Some(&self.log),
            orphaned: self.kind.orphaned,
            remove_directory: remove,
            confinement: Some(self.enforced.confinement()),
        };
        Guarded::spawn(&spawn)
    }

    /// Waits until the program ends, in small pieces, so that a stop is seen.
    fn is_over(
        guarded: &mut Guarded,
        began: &Deadline,
        stop: &AtomicBool,
    ) -> Result<bool, SetupError> {
        if stop.load(Ordering::Relaxed) {
            let status = "it was stopped on request".into();
            return Err(failure(guarded.command(), status, Vec::new(), None));
        }
        Ok(guarded.wait(Duration::from_millis(20)).is_some() || began.has_passed())
    }

    /// Runs a program to its end, which has to be a good one.
    pub(crate) fn run(
        &self,
        program: &Path,
        args: Vec<OsString>,
        input: Option<&Path>,
        stop: &AtomicBool,
    ) -> Result<(), SetupError> {
        let log_start = size(&self.log);
        let mut guarded = self.spawn(program, args, input, None)?;
        let began = Deadline::after(self.timeout);
        while !Self::is_over(&mut guarded, &began, stop)? {}
        let status = match guarded.exit_status() {
            Some("exit status: 0") => return Ok(()),
            Some(status) => with_reason(status, &self.enforced),
            None => format!("it did not end within {} s", self.timeout.as_secs()),
        };
        let tail = tail_since(&self.log, log_start, TAIL_LINES);
        Err(failure(guarded.command(), status, tail, Some(&self.log)))
    }

    /// Starts a server and waits until it answers. The directory of its socket goes with it.
    pub(crate) fn serve(
        &self,
        program: &Path,
        args: Vec<OsString>,
        ready: Readiness<'_>,
        stop: &AtomicBool,
    ) -> Result<Guarded, SetupError> {
        let log_start = size(&self.log);
        let mut guarded = self.spawn(program, args, None, Some(self.socket_dir.path()))?;
        let began = Deadline::after(self.timeout);
        let mut last = Error::new(ErrorClass::ConnectionLost, "it has not begun to listen");
        loop {
            if self.socket().exists() {
                match (ready.ask)() {
                    Ok(()) => return Ok(guarded),
                    // Still starting, or recovering.
                    Err(error) if error.class == ErrorClass::ConnectionLost => last = error,
                    Err(source) => {
                        return Err(SetupError::Server {
                            server: ready.server.to_string(),
                            source,
                            help: None,
                        });
                    }
                }
            }
            if !Self::is_over(&mut guarded, &began, stop)? {
                continue;
            }
            let log = tail_since(&self.log, log_start, TAIL_LINES);
            let Some(status) = guarded.exit_status().map(str::to_string) else {
                return Err(SetupError::NotReady {
                    server: ready.server.to_string(),
                    seconds: self.timeout.as_secs(),
                    last: last.to_string(),
                    tail: log,
                });
            };
            let whole = whole_tail_since(&self.log, log_start, COMPLAINT_LINES);
            return Err((ready.complaint)(&whole).unwrap_or_else(|| {
                let status = with_reason(&status, &self.enforced);
                failure(guarded.command(), status, log, Some(&self.log))
            }));
        }
    }

    /// Stops a server: in good order, then, with an error, by force.
    pub(super) fn stop(&self, mut guarded: Guarded) -> Result<(), SetupError> {
        let gently = self.kind.ending;
        let command = guarded.command().to_string();
        let not_clean = |status| {
            Err(failure(
                &command,
                status,
                tail(&self.log, TAIL_LINES),
                Some(&self.log),
            ))
        };
        if let Some(status) = guarded.exit_status() {
            let status = with_reason(status, &self.enforced);
            return not_clean(format!("it had ended before it was stopped: {status}"));
        }
        let endings = [
            (gently, self.timeout),
            (Ending::Quit, Duration::from_secs(10)),
        ];
        let (ending, status) = guarded.stop(&endings)?;
        match ending == gently {
            true if status == "exit status: 0" => Ok(()),
            true => not_clean(format!(
                "it did not stop cleanly: {}",
                with_reason(&status, &self.enforced)
            )),
            false => not_clean(format!(
                "it did not stop within {} s and was ended by {}",
                self.timeout.as_secs(),
                ending.name()
            )),
        }
    }
}

fn failure(command: &str, status: String, tail: Vec<String>, log: Option<&Path>) -> SetupError {
    SetupError::Command {
        command: command.to_string(),
        status,
        tail,
        log: log.map(Path::to_path_buf),
    }
}

/// How a program ended, and why, where that was its limit of memory.
fn with_reason(status: &str, limits: &Enforced) -> String {
    match limits.killed_for_memory("it") {
        Some(reason) => format!("{status}: {reason}"),
        None => status.to_string(),
    }
}
