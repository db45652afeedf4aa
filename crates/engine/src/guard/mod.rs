//! Keeps a promise about programs that assay starts: they do not outlive it, however it ends.
//!
//! Between assay and a server stands a guard: assay's own program, started again with a hidden subcommand, which runs
//! [`main`]. The guard starts the server as its child and holds the read end of a pipe whose only write end is
//! assay's. When assay ends, also by SIGKILL, the kernel closes that end; the guard then ends the server and every
//! descendant of it, and goes. It is in a process group of its own, so that Ctrl-C in the terminal does not reach it or
//! the server, and it is the subreaper of all that descends from it, so that processes whose parent died are found.
//!
//! When the guard itself is killed by SIGKILL, the kernel kills the server or has it end itself and its own processes (`PR_SET_PDEATHSIG`).
//! That has to be asked for in the server's own process, so the guard starts this program once more, which asks for it and
//! then becomes the server.
//!
//! A program that is to be confined is started by a guard that has confined itself for that moment: what is forked
//! inherits it.
//!
//! The guard's words, one per line: to it a signal's name, as `SIGTERM`; from it `pid N`, `exited TEXT`, `failed TEXT`.

mod confinement;
mod deadline;
mod descendants;
mod supervisor;

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

pub use confinement::{Confinement, ControlGroup};
pub(crate) use confinement::{cpu_set, remove_group};
pub(crate) use deadline::Deadline;
pub(crate) use descendants::descendants;
pub use descendants::is_alive;
pub use supervisor::main;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::SetupError;

/// The hidden subcommand of assay that runs [`main`].
pub const SUBCOMMAND: &str = "guard";

/// What a guard is to start. The guard is told in JSON what can't be said in a command line.
#[derive(Clone, Debug, Serialize)]
pub struct Spawn<'a> {
    /// The program that calls [`main`] when its first argument is [`SUBCOMMAND`]: assay itself.
    #[serde(skip)]
    pub guard_exe: &'a Path,
    /// The program to be guarded.
    #[serde(skip)]
    pub program: &'a Path,
    /// Its arguments.
    #[serde(skip)]
    pub args: Vec<OsString>,
    /// Variables that are set in its environment.
    #[serde(skip)]
    pub env: Vec<(OsString, OsString)>,
    /// Variables that are removed from its environment.
    #[serde(skip)]
    pub env_remove: Vec<OsString>,
    /// The file that it reads as its standard input; `None`: nothing.
    pub input: Option<&'a Path>,
    /// Its working directory; `None`: the root.
    #[serde(skip)]
    pub directory: Option<&'a Path>,
    /// The user and group that it runs as; `None`: assay's own.
    pub user: Option<(u32, u32)>,
    /// Where its standard output and error go, after what is there already; `None`: to assay's standard error.
    pub log: Option<&'a Path>,
    /// The signal that the kernel sends to it when the guard is killed. Its own processes get none: a program that ends
    /// them when it gets SIGQUIT is sent that.
    pub orphaned: Ending,
    /// A directory that the guard removes, with all that is in it, when the program has ended: for sockets.
    pub remove_directory: Option<&'a Path>,
    /// What it is confined to from its first instruction on, and with it all that it starts.
    pub confinement: Option<&'a Confinement>,
}

words::named_enum! {
    /// How a guarded program is asked to end: by a signal.
    #[derive(Serialize, Deserialize)]
    pub enum Ending {
        /// Asks it to end.
        Terminate = "SIGTERM",
        /// Asks it to end as the terminal does.
        Interrupt = "SIGINT",
        /// Asks it to end at once.
        Quit = "SIGQUIT",
        /// Ends it, and all its descendants.
        Kill = "SIGKILL",
    }
}

impl Ending {
    fn signal(self) -> Signal {
        match self {
            Self::Terminate => Signal::TERM,
            Self::Interrupt => Signal::INT,
            Self::Quit => Signal::QUIT,
            Self::Kill => Signal::KILL,
        }
    }

    /// Returns the way whose signal has this `name`.
    fn named(name: &str) -> Option<Self> {
        let mut all = Self::NAMES.iter();
        all.find(|(known, _)| *known == name).map(|(_, it)| *it)
    }
}

/// A program under guard. Dropping it ends the program, and waits until it and its descendants are gone.
#[derive(Debug)]
pub struct Guarded {
    guard: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pid: u32,
    command: String,
    log: Option<PathBuf>,
    exited: Option<String>,
}

impl Guarded {
    /// Starts a program under guard.
    ///
    /// # Errors
    /// [`SetupError::Command`] when the guard or the program can't be started, or not be confined.
    pub fn spawn(spawn: &Spawn<'_>) -> Result<Self, SetupError> {
        let command = command_line(spawn.program, &spawn.args);
        let failed = |status: String, log: Option<PathBuf>| SetupError::Command {
            command: command.clone(),
            status,
            tail: Vec::new(),
            log,
        };
        let request = serde_json::to_string(spawn)
            .map_err(|error| failed(format!("cannot be told to its guard: {error}"), None))?;
        let mut guard = Command::new(spawn.guard_exe);
        guard.arg(SUBCOMMAND).arg(request);
        guard.arg(spawn.program).args(&spawn.args);
        for name in &spawn.env_remove {
            guard.env_remove(name);
        }
        guard.envs(spawn.env.iter().map(|(name, value)| (name, value)));
        guard.current_dir(spawn.directory.unwrap_or(Path::new("/")));
        guard
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(match spawn.log {
                Some(_) => Stdio::null(),
                None => Stdio::inherit(),
            })
            .process_group(0);
        let mut guard = guard.spawn().map_err(|error| {
            let exe = spawn.guard_exe.display();
            failed(format!("cannot start its guard `{exe}`: {error}"), None)
        })?;
        let stdin = guard.stdin.take();
        let Some(stdout) = guard.stdout.take() else {
            return Err(failed("its guard has no output".into(), None));
        };
        let mut stdout = BufReader::new(stdout);
        let mut first = String::new();
        let read = stdout.read_line(&mut first);
        let first = first.trim_end();
        let pid = first.strip_prefix("pid ");
        let Some(pid) = pid.and_then(|pid| pid.parse().ok()) else {
            drop(stdin);
            let ended = guard.wait();
            let status = match (first.strip_prefix("failed "), read, ended) {
                (Some(reason), _, _) => reason.to_string(),
                (None, Err(error), _) | (None, _, Err(error)) => {
                    format!("cannot talk to its guard: {error}")
                }
                (None, Ok(_), Ok(status)) => format!("its guard ended at once: {status}"),
            };
            return Err(failed(status, spawn.log.map(Path::to_path_buf)));
        };
        Ok(Self {
            guard,
            stdin,
            stdout,
            pid,
            command,
            log: spawn.log.map(Path::to_path_buf),
            exited: None,
        })
    }

    /// The program's process id. It is the root of the program's process tree; the guard is its parent.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How the program ended; `None` while it or a descendant of it lives.
    pub fn exit_status(&mut self) -> Option<&str> {
        if self.exited.is_none() && !matches!(self.guard.try_wait(), Ok(None)) {
            let mut rest = String::new();
            // The guard has ended, so this does not block.
            let _ = self.stdout.read_to_string(&mut rest);
            let said = rest.lines().find_map(|line| line.strip_prefix("exited "));
            if said.is_none() && is_alive(self.pid) {
                // The kernel is about to kill it.
                return None;
            }
            self.exited = Some(said.unwrap_or("unknown: its guard was killed").to_string());
        }
        self.exited.as_deref()
    }

    /// Whether the program, or a descendant of it, lives.
    pub fn is_alive(&mut self) -> bool {
        self.exit_status().is_none()
    }

    /// Asks the program to end, without waiting for it.
    pub fn signal(&mut self, ending: Ending) {
        if let Some(stdin) = &mut self.stdin {
            // A guard that is gone has no program to end.
            let _ = writeln!(stdin, "{}", ending.name());
        }
    }

    /// Waits until the program has ended by itself or `at_most` has passed; says how it ended.
    pub fn wait(&mut self, at_most: Duration) -> Option<&str> {
        let deadline = Deadline::after(at_most);
        while self.is_alive() && !deadline.has_passed() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.exit_status()
    }

    /// Asks the program to end in each of these ways in turn, giving each its time. Returns the way that worked and
    /// how the program ended; at the end of the list, or with an empty one, it is killed.
    ///
    /// # Errors
    /// [`SetupError::Command`] when it lives on after SIGKILL.
    pub fn stop(&mut self, endings: &[(Ending, Duration)]) -> Result<(Ending, String), SetupError> {
        for &(ending, at_most) in endings
            .iter()
            .chain(&[(Ending::Kill, Duration::from_secs(10))])
        {
            self.signal(ending);
            if let Some(status) = self.wait(at_most) {
                return Ok((ending, status.to_string()));
            }
        }
        Err(SetupError::Command {
            command: self.command.clone(),
            status: format!("process {} does not end, not even by SIGKILL", self.pid),
            tail: Vec::new(),
            log: self.log.clone(),
        })
    }

    /// The command line, for messages.
    pub fn command(&self) -> &str {
        &self.command
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // The end of its input is the guard's order to end everything.
        self.stdin = None;
        if self.exited.is_none() {
            self.wait(Duration::from_secs(15));
        }
    }
}

/// A command line for messages: arguments with blanks in quotes.
pub(crate) fn command_line<'a>(
    program: &Path,
    args: impl IntoIterator<Item = &'a (impl AsRef<OsStr> + 'a)>,
) -> String {
    let mut line = program.display().to_string();
    for arg in args {
        let arg = arg.as_ref().to_string_lossy();
        let is_quoted = arg.is_empty() || arg.contains(char::is_whitespace);
        let quote = if is_quoted { "'" } else { "" };
        line.push_str(&format!(" {quote}{arg}{quote}"));
    }
    line
}
