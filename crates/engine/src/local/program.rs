//! Runs a build's programs under a guard: to their end, or until they answer.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::log::{size, tail, tail_since, whole_tail_since};
use super::server::{ServerPlace, Trial};
use crate::error::{Error, ErrorClass, SetupError};
use crate::safety::guard::{self, Deadline, Ending, Guarded, ProgramEnd, Spawn, command_line};
use crate::safety::limits::{Enforced, in_units};
use crate::safety::trial::TRIAL_MEMORY_BYTES_MAX;
use crate::safety::user::asking_user;

/// The number of log lines in an error.
const TAIL_LINES: usize = 20;

/// The number of log lines to search for the reason of a failed start. Some servers log much more
/// while they shut down.
const REASON_LINES: usize = 400;

/// Phrases of a program that needs more memory than it may use.
const OUT_OF_MEMORY: [&str; 4] =
    ["out of memory", "cannot allocate memory", "bad_alloc", "memory exhausted"];

/// Runs a program that prints its version, and parses the version. `server` is the product's name
/// for messages. Root runs the program as `user`, or another user that can.
pub(crate) fn version<V>(
    program: &Path,
    args: &[&str],
    (server, user): (&str, &str),
    parse: impl Fn(&str) -> Option<V>,
) -> Result<V, SetupError> {
    let failed = |status: String, output: &[u8]| {
        let output = String::from_utf8_lossy(output);
        let tail = output.lines().map(str::to_string).collect();
        failure(&command_line(program, args), status, tail, None)
    };

    let mut command = Command::new(program);
    if let Some(user) = asking_user(user, program)? {
        // The other user may not be able to enter the current directory.
        command.uid(user.uid).gid(user.gid).current_dir("/");
    }
    let output = command
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string(), &[]))?;

    if !output.status.success() {
        return Err(failed(output.status.to_string(), &output.stderr));
    }

    parse(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| failed(format!("the program prints no version of {server}"), &output.stdout))
}

/// The functions that tell whether a server is ready.
pub(crate) struct Readiness<'a> {
    /// The server's name in messages.
    pub(crate) server: &'a str,
    /// Sends a request to the server.
    pub(crate) probe: &'a dyn Fn() -> Result<(), Error>,
    /// Returns the error if the log says that the server ended because of its configuration.
    pub(crate) config_error: &'a dyn Fn(&[String]) -> Option<SetupError>,
}

impl ServerPlace {
    /// Starts a program. `input` is its standard input, and `remove` a directory to remove when it
    /// has ended.
    fn spawn(
        &self,
        program: &Path,
        args: Vec<OsString>,
        input: Option<&Path>,
        remove: Option<&Path>,
    ) -> Result<Guarded, SetupError> {
        // A missing directory of the log should fail here instead of in the guard.
        guard::open_log(&self.log)?;

        let mut env = vec![("LC_ALL".into(), "C".into())];
        if let Some(wrapped_in) = &self.wrapped_in {
            // The tool needs files, and Assay's own directory for them may be closed to the
            // server's user.
            env.push(("TMPDIR".into(), wrapped_in.folder.clone().into()));
        }

        let spawn = Spawn {
            guard_exe: &self.guard_exe,
            program,
            args,
            env,
            program_env: &self.env,
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

    /// Fails on a request to stop.
    fn check_stop(guarded: &Guarded, stop: &AtomicBool) -> Result<(), SetupError> {
        if stop.load(Ordering::Relaxed) {
            let status = "stopped on request".into();
            return Err(failure(guarded.command(), status, Vec::new(), None));
        }
        Ok(())
    }

    /// Waits a moment. Returns true when the program has ended or the deadline has passed.
    fn is_over(guarded: &mut Guarded, deadline: &Deadline) -> bool {
        guarded.wait(Duration::from_millis(20)).is_some() || deadline.has_passed()
    }

    /// Runs a program to its end. Fails unless its exit status is 0.
    pub(crate) fn run(
        &self,
        program: &Path,
        args: Vec<OsString>,
        input: Option<&Path>,
        stop: &AtomicBool,
    ) -> Result<(), SetupError> {
        let log_start = size(&self.log);
        let mut guarded = self.run_to_end(program, args, input, stop)?;

        let status = match guarded.ended() {
            Some(ended) if ended.is_success() => return Ok(()),
            Some(ended) => with_reason(ended, &self.enforced),
            None => format!("the program did not end within {} s", self.timeout.as_secs()),
        };

        let tail = tail_since(&self.log, log_start, TAIL_LINES);
        Err(failure(guarded.command(), status, tail, Some(&self.log)))
    }

    /// Runs a program until it has ended or its time has passed.
    fn run_to_end(
        &self,
        program: &Path,
        args: Vec<OsString>,
        input: Option<&Path>,
        stop: &AtomicBool,
    ) -> Result<Guarded, SetupError> {
        let mut guarded = self.spawn(program, args, input, None)?;
        let deadline = Deadline::after(self.timeout);
        loop {
            Self::check_stop(&guarded, stop)?;
            if Self::is_over(&mut guarded, &deadline) {
                return Ok(guarded);
            }
        }
    }

    /// Returns the program to start and its arguments: the server's, or the tool that runs it.
    fn wrapped(&self, program: &Path, args: Vec<OsString>) -> (PathBuf, Vec<OsString>) {
        let command = self.wrapped_in.as_ref().map(|wrapped_in| wrapped_in.command.as_slice());
        let Some([tool, before @ ..]) = command else {
            return (program.to_owned(), args);
        };
        let own = before.iter().cloned().chain([program.into()]);
        (tool.into(), own.chain(args).collect())
    }

    /// Starts a server and waits until it answers. When it ends, the guard removes the directory of
    /// its socket.
    pub(crate) fn serve(
        &self,
        program: &Path,
        args: Vec<OsString>,
        readiness: Readiness<'_>,
        stop: &AtomicBool,
    ) -> Result<Guarded, SetupError> {
        let log_start = size(&self.log);
        let (program, args) = self.wrapped(program, args);
        let mut guarded = self.spawn(&program, args, None, Some(self.socket_dir.path()))?;
        let deadline = Deadline::after(self.timeout);

        let mut last = Error::new(ErrorClass::ConnectionLost, "the server does not listen yet");

        loop {
            // Before the server may answer: on a busy machine, it may be ready at the first look.
            Self::check_stop(&guarded, stop)?;
            if self.socket().exists() {
                match (readiness.probe)() {
                    Ok(()) => return Ok(guarded),
                    // Still starting, or recovering.
                    Err(error) if error.class == ErrorClass::ConnectionLost => last = error,
                    Err(source) => {
                        return Err(SetupError::Server {
                            server: readiness.server.to_string(),
                            source,
                            help: None,
                        });
                    }
                }
            }

            if Self::is_over(&mut guarded, &deadline) {
                break;
            }
        }

        let log = tail_since(&self.log, log_start, TAIL_LINES);
        let Some(ended) = guarded.ended() else {
            return Err(SetupError::NotReady {
                server: readiness.server.to_string(),
                seconds: self.timeout.as_secs(),
                last: last.to_string(),
                tail: log,
            });
        };

        let whole = whole_tail_since(&self.log, log_start, REASON_LINES);
        Err((readiness.config_error)(&whole).unwrap_or_else(|| {
            let status = with_reason(ended, &self.enforced);
            failure(guarded.command(), status, log, Some(&self.log))
        }))
    }

    /// Stops a server cleanly within `timeout`, or by force and with an error.
    pub(super) fn stop(&self, mut guarded: Guarded, timeout: Duration) -> Result<(), SetupError> {
        let clean_ending = self.kind.ending;
        let command = guarded.command().to_string();

        let not_clean =
            |status| Err(failure(&command, status, tail(&self.log, TAIL_LINES), Some(&self.log)));

        if let Some(ended) = guarded.ended() {
            let status = with_reason(ended, &self.enforced);
            return not_clean(format!("the server had already ended: {status}"));
        }

        let endings = [(clean_ending, timeout), (Ending::Quit, Duration::from_secs(10))];
        let (ending, ended) = guarded.stop(&endings)?;
        if ending != clean_ending {
            let (seconds, signal) = (timeout.as_secs(), ending.name());
            return not_clean(format!(
                "the server did not stop within {seconds} s and was ended by {signal}"
            ));
        }
        if !ended.is_success() {
            let status = with_reason(ended, &self.enforced);
            return not_clean(format!("the server did not stop cleanly: {status}"));
        }
        Ok(())
    }
}

impl Trial {
    /// Runs a program that reads the config. `complaint` returns the message about the config in
    /// its output, if there is one. Returns what is wrong with the config.
    ///
    /// # Errors
    /// [`SetupError::Trial`] when the program was killed, or needs more time or memory than a trial
    /// may use.
    pub(crate) fn run(
        &self,
        program: &Path,
        args: Vec<OsString>,
        stop: &AtomicBool,
        complaint: impl Fn(&[String]) -> Option<String>,
    ) -> Result<Option<String>, SetupError> {
        let mut guarded = self.place.run_to_end(program, args, None, stop)?;
        let command = guarded.command().to_owned();
        let incomplete =
            |why: String| Err(SetupError::Trial { what: format!("`{command}` {why}") });

        let Some(ended) = guarded.ended() else {
            let seconds = self.place.timeout.as_secs();
            return incomplete(format!("did not end within {seconds} s"));
        };
        if ended.is_killed() {
            return incomplete("was killed by another process, or by the kernel".into());
        }

        let output = self.output();
        if let Some(message) = complaint(&output) {
            return Ok(Some(message));
        }
        if ended.is_success() {
            return Ok(None);
        }
        if output.iter().any(|line| is_about_memory(line)) {
            let limit = in_units(TRIAL_MEMORY_BYTES_MAX);
            return incomplete(format!("needs more than the {limit} that a trial may use"));
        }

        Ok(Some(format!("`{command}` failed ({ended}){}", reason_in(&output))))
    }
}

/// Returns what a program wrote before it failed, after a colon. The last line alone often says only
/// that it ends.
fn reason_in(output: &[String]) -> String {
    const LINES_MAX: usize = 30;

    let mut lines: Vec<&str> = output.iter().map(|line| line.trim()).collect();
    lines.retain(|line| !line.is_empty());
    let lines = &lines[lines.len().saturating_sub(LINES_MAX)..];

    match lines {
        [] => ": it printed no reason".to_owned(),
        [only] => format!(": {only}"),
        several => format!(":\n  {}", several.join("\n  ")),
    }
}

fn is_about_memory(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    OUT_OF_MEMORY.iter().any(|phrase| lower.contains(phrase))
}

fn failure(command: &str, status: String, tail: Vec<String>, log: Option<&Path>) -> SetupError {
    SetupError::Command {
        command: command.to_string(),
        status,
        tail,
        log: log.map(Path::to_path_buf),
    }
}

/// Returns the end of a program, with the reason if it exceeded its memory limit.
fn with_reason(ended: ProgramEnd, limits: &Enforced) -> String {
    match limits.killed_for_memory("it") {
        Some(reason) => format!("{ended}: {reason}"),
        None => ended.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_failing_program_wrote_is_its_reason() {
        let reason = |lines: &[&str]| {
            reason_in(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<String>>())
        };
        assert_eq!(reason(&["", " "]), ": it printed no reason");
        assert_eq!(reason(&["", "unknown option"]), ": unknown option");
        assert_eq!(
            reason(&["mysqld: Can't get stat of '/no/tmp'", "[ERROR] Aborting", ""]),
            ":\n  mysqld: Can't get stat of '/no/tmp'\n  [ERROR] Aborting"
        );
    }
}
