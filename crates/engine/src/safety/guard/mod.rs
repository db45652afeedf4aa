//! Ensures that programs which assay starts never outlive it, however it ends.
//!
//! ```text
//! assay ──pipe──► guard ──► become-program ═exec═► server ──► its processes
//! ```
//!
//! A guard runs between assay and a server. It is assay's own program, started with a hidden
//! subcommand, which runs [`main`]. The guard starts the server as its child, and holds the read
//! end of a pipe whose only write end is assay's. When assay ends, even by SIGKILL, the kernel
//! closes the write end. The guard then stops the server and all its descendants, and exits. The
//! guard has its own process group, so Ctrl-C in the terminal does not reach it or the server.
//! It is the subreaper of its descendants, so it also finds processes whose parents died.
//!
//! When the guard itself is killed, the kernel sends a signal to the server (`PR_SET_PDEATHSIG`),
//! which kills it or makes it end itself and its processes. Only the server's own process can
//! request that signal. So the guard starts this program again, which requests the signal and then
//! executes the server.
//!
//! To confine a program, the guard confines itself while it starts the program, because a child
//! inherits the confinement.
//!
//! The guard's protocol has one message per line. It receives names of signals, such as `SIGTERM`,
//! and `hold JSON`, the means by which assay freezes the program ([`crate::freeze`]). It sends
//! `pid N`, `exited STATUS` and `failed TEXT`. The status is the number that `wait` returned.

mod confinement;
mod deadline;
mod descendants;
mod hold;
mod program_end;
mod supervisor;

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use confinement::{Confinement, ControlGroup};
pub(crate) use confinement::{cpu_set, cpus_in, remove_group};
pub(crate) use deadline::Deadline;
pub(crate) use descendants::descendants;
pub use descendants::is_alive;
pub(crate) use hold::{FREEZE_FILE, Hold, KEEPER_IS_READY, KeeperRequest, open_pidfd};
pub use program_end::ProgramEnd;
pub use supervisor::main;
pub(crate) use supervisor::{KEEP, open_log};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::error::SetupError;

/// The hidden subcommand of assay that runs [`main`].
pub const SUBCOMMAND: &str = "guard";

/// The beginning of the names of variables that the guard passes on without it.
const FOR_PROGRAM: &str = "ASSAY_FOR_PROGRAM_";

/// The start of the message with the means by which assay freezes the program, in JSON.
const HOLD_MESSAGE: &str = "hold ";

/// A request to start a program under guard. JSON passes the fields that are not on the guard's
/// command line.
#[derive(Clone, Debug, Serialize)]
pub struct Spawn<'a> {
    /// The program that calls [`main`] when its first argument is [`SUBCOMMAND`], which is assay
    /// itself.
    #[serde(skip)]
    pub guard_exe: &'a Path,
    /// The program to guard.
    #[serde(skip)]
    pub program: &'a Path,
    /// The program's arguments.
    #[serde(skip)]
    pub args: Vec<OsString>,
    /// Environment variables to set.
    #[serde(skip)]
    pub env: Vec<(OsString, OsString)>,
    /// Environment variables that only the program gets: the guard, which may have more rights,
    /// must not load its libraries.
    #[serde(skip)]
    pub program_env: &'a [(String, String)],
    /// Environment variables to remove.
    #[serde(skip)]
    pub env_remove: Vec<OsString>,
    /// The file for standard input; `None` means empty input.
    pub input: Option<&'a Path>,
    /// The working directory; `None` means the root.
    #[serde(skip)]
    pub directory: Option<&'a Path>,
    /// The user and group of the program; `None` means assay's own.
    pub user: Option<(u32, u32)>,
    /// The file to which standard output and error are appended; `None` means assay's standard
    /// error.
    pub log: Option<&'a Path>,
    /// The signal that the kernel sends to the program when the guard is killed. The kernel does
    /// not signal the program's own processes, so a program that stops them on SIGQUIT should
    /// get that.
    pub orphaned: Ending,
    /// A directory, for sockets, that the guard removes with its contents after the program has
    /// ended.
    pub remove_directory: Option<&'a Path>,
    /// The confinement of the program and of all processes that it starts.
    pub confinement: Option<&'a Confinement>,
}

impl Spawn<'_> {
    /// Returns the command that starts the guard.
    fn guard_command(&self, request: String) -> Command {
        let mut guard = Command::new(self.guard_exe);
        guard.arg(SUBCOMMAND).arg(request).arg(self.program).args(&self.args);

        // The program inherits the environment and the directory.
        for name in &self.env_remove {
            guard.env_remove(name);
        }
        guard.envs(self.env.iter().map(|(name, value)| (name, value)));

        // Other users can read command lines, and not environments.
        for (name, value) in self.program_env {
            guard.env(format!("{FOR_PROGRAM}{name}"), value);
        }

        guard.current_dir(self.directory.unwrap_or(Path::new("/")));

        let stderr = if self.log.is_some() { Stdio::null() } else { Stdio::inherit() };
        guard.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).process_group(0);
        guard
    }

    fn failed(&self, status: String, log: Option<PathBuf>) -> SetupError {
        let command = command_line(self.program, &self.args);
        SetupError::Command { command, status, tail: Vec::new(), log }
    }
}

words::named_enum! {
    /// A way to end a guarded program, by a signal.
    #[derive(Serialize, Deserialize)]
    pub enum Ending {
        /// Requests a normal end.
        Terminate = "SIGTERM",
        /// Requests an end as the terminal does.
        Interrupt = "SIGINT",
        /// Requests an immediate end.
        Quit = "SIGQUIT",
        /// Kills the program and all its descendants.
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

    /// Returns the way whose signal has this name.
    fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::NAMES.iter();
        all.find(|(known, _)| *known == name).map(|(_, ending)| *ending)
    }
}

/// A program under guard. Dropping it stops the program, and waits until it and its descendants are
/// gone.
#[derive(Debug)]
pub struct Guarded {
    guard: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pid: u32,
    command: String,
    log: Option<PathBuf>,
    ended: Option<ProgramEnd>,
    exe: PathBuf,
    /// The directories of the program's control groups.
    groups: Vec<PathBuf>,
    /// The means of freezing that the guard knows.
    holds: Mutex<Vec<Hold>>,
    /// True once the program has been asked to end. From then on, nobody may freeze it.
    is_ending: Arc<Mutex<bool>>,
}

impl Guarded {
    /// Starts a program under guard.
    ///
    /// # Errors
    /// [`SetupError::Command`] when the guard or the program cannot be started or confined.
    pub fn spawn(spawn: &Spawn<'_>) -> Result<Self, SetupError> {
        let request = serde_json::to_string(spawn).map_err(|error| {
            spawn.failed(format!("cannot write the guard's request: {error}"), None)
        })?;
        let mut guard = spawn.guard_command(request).spawn().map_err(|error| {
            let exe = spawn.guard_exe.display();
            spawn.failed(format!("cannot start the guard `{exe}`: {error}"), None)
        })?;

        let stdin = guard.stdin.take();
        let Some(stdout) = guard.stdout.take() else {
            return Err(spawn.failed("the guard has no output".into(), None));
        };

        // The first line says whether the program runs.
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        let message = line.trim_end();

        let log = spawn.log.map(Path::to_path_buf);
        if let Some(pid) = message.strip_prefix("pid ").and_then(|pid| pid.parse().ok()) {
            let groups = spawn.confinement.map_or(&[][..], |confinement| &confinement.groups);
            return Ok(Self {
                guard,
                stdin,
                stdout,
                pid,
                command: command_line(spawn.program, &spawn.args),
                log,
                ended: None,
                exe: spawn.guard_exe.to_path_buf(),
                groups: groups.iter().map(|group| group.directory.clone()).collect(),
                holds: Mutex::default(),
                is_ending: Arc::default(),
            });
        }

        // At the end of its input, the guard ends.
        drop(stdin);
        let exit = guard.wait();
        let reason = match (message.strip_prefix("failed "), read, exit) {
            (Some(reason), _, _) => reason.to_string(),
            (None, Err(error), _) | (None, _, Err(error)) => {
                format!("cannot communicate with the guard: {error}")
            }
            (None, Ok(_), Ok(status)) => format!("the guard exited at once: {status}"),
        };
        Err(spawn.failed(reason, log))
    }

    /// Returns the program's process ID, the root of its process tree. The guard is its parent.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the program's end; `None` while it or a descendant is alive.
    pub fn ended(&mut self) -> Option<ProgramEnd> {
        let is_guard_alive = matches!(self.guard.try_wait(), Ok(None));
        if self.ended.is_some() || is_guard_alive {
            return self.ended;
        }

        // The guard has ended, so this does not block.
        let mut output = String::new();
        let _ = self.stdout.read_to_string(&mut output);
        let reported = output.lines().find_map(|line| line.strip_prefix("exited "));
        if reported.is_none() && is_alive(self.pid) {
            // The kernel is about to kill the program.
            return None;
        }

        self.ended = Some(reported.map_or(ProgramEnd::GuardKilled, ProgramEnd::decode));
        self.ended
    }

    /// Returns true while the program or a descendant is alive.
    pub fn is_alive(&mut self) -> bool {
        self.ended().is_none()
    }

    /// Returns the guard's process ID.
    pub(crate) fn guard_pid(&self) -> u32 {
        self.guard.id()
    }

    /// Returns the program that runs [`main`].
    pub(crate) fn exe(&self) -> &Path {
        &self.exe
    }

    /// Returns the directories of the program's control groups.
    pub(crate) fn groups(&self) -> &[PathBuf] {
        &self.groups
    }

    /// Returns the flag that is set before the program is asked to end. Whoever freezes the program
    /// holds the lock meanwhile, and does not freeze it once the flag is set.
    pub(crate) fn is_ending(&self) -> Arc<Mutex<bool>> {
        Arc::clone(&self.is_ending)
    }

    /// Tells the guard how the program will be frozen, so that the guard thaws it before it ends
    /// it.
    ///
    /// # Errors
    /// The guard is gone, or cannot be told about a group with such a name.
    pub(crate) fn announce(&self, hold: &Hold) -> std::io::Result<()> {
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        if holds.contains(hold) {
            return Ok(());
        }

        holds.push(hold.clone());
        let mut stdin = self.stdin.as_ref().ok_or(std::io::ErrorKind::BrokenPipe)?;

        // In one piece, because other messages may be on their way.
        let message = format!("{HOLD_MESSAGE}{}\n", serde_json::to_string(hold)?);
        stdin.write_all(message.as_bytes())
    }

    /// Returns the control group in which the program was frozen before.
    pub(crate) fn freezer_group(&self) -> Option<PathBuf> {
        let holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        holds.iter().find_map(|hold| match hold {
            Hold::Group { directory, .. } => Some(directory.clone()),
            Hold::Signals => None,
        })
    }

    /// Sends the signal of `ending` to the program, without waiting. The guard thaws the program
    /// before, if it is frozen.
    pub fn signal(&mut self, ending: Ending) {
        self.forbid_freezing();
        if let Some(stdin) = &mut self.stdin {
            // If the guard is gone, so is the program.
            let _ = writeln!(stdin, "{}", ending.name());
        }
    }

    fn forbid_freezing(&self) {
        *self.is_ending.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Waits until the program has ended or `at_most` has passed. Returns the program's end.
    pub fn wait(&mut self, at_most: Duration) -> Option<ProgramEnd> {
        let deadline = Deadline::after(at_most);
        while self.is_alive() && !deadline.has_passed() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.ended()
    }

    /// Stops the program: tries each way in turn for its time, then kills the program. Returns the
    /// way that worked, and how the program ended.
    ///
    /// # Errors
    /// [`SetupError::Command`] when the program does not end after SIGKILL.
    pub fn stop(
        &mut self,
        endings: &[(Ending, Duration)],
    ) -> Result<(Ending, ProgramEnd), SetupError> {
        let last_resort = (Ending::Kill, Duration::from_secs(10));
        for &(ending, at_most) in endings.iter().chain([&last_resort]) {
            self.signal(ending);
            if let Some(ended) = self.wait(at_most) {
                return Ok((ending, ended));
            }
        }

        Err(SetupError::Command {
            command: self.command.clone(),
            status: format!("process {} did not end after SIGKILL", self.pid),
            tail: Vec::new(),
            log: self.log.clone(),
        })
    }

    /// Returns the command line, for messages.
    pub fn command(&self) -> &str {
        &self.command
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.forbid_freezing();
        // At the end of its input, the guard stops everything.
        self.stdin = None;
        if self.ended.is_none() {
            self.wait(Duration::from_secs(15));
        }
    }
}

/// Returns a command line for messages, with quotes around arguments that contain spaces.
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
