//! Identifies a shared library and tries a config of the plan with it. This happens in a separate
//! process, since a library may crash, and since one process cannot load several versions.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::Context;
use engine::custom::CustomLibrary;
use engine::limits::in_units;
use engine::{
    KeyValueLibrary, LibraryConfig, SetupError, TRIAL_MEMORY_BYTES_MAX, TRIAL_TIMEOUT, rocksdb,
    sqlite,
};
use plan::Engine;
use record::Failure;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::trials::Tried;
use crate::ground::failure::{UsageError, failure_of};
use crate::ground::program::own_path;

/// The hidden command by which this program loads a library and describes it:
/// `library ENGINE PATH`.
pub const LIBRARY_COMMAND: &str = "library";

/// The version and the path of a library.
#[derive(Debug, Deserialize, Serialize)]
pub struct Identity {
    /// Product and version: `Speedb 2.8.0 (RocksDB 8.6.7)`.
    pub version: String,
    /// The path, without symbolic links.
    pub path: String,
}

/// The answer of the other process to a config: the options that are left out because the version
/// lacks them, or why the config is refused.
type Answer = Result<Vec<String>, Failure>;

/// Returns the reason why an engine refuses a library or a config.
fn refusal(error: SetupError) -> Failure {
    failure_of(&error.into())
}

/// Loads a library and calls `print` with what it is, or why it cannot be measured. If `input` has a
/// config, also calls `print` with the result of trying it. Each is a line of JSON.
///
/// # Errors
/// No engine with this name has libraries, the input is not a config, or what `print` returns.
pub fn describe_library(
    engine: &str,
    path: &Path,
    input: impl std::io::Read,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // A library may hang: nothing else would end this process then.
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot watch for the end of the parent process")?;

    let engine = Engine::named(engine).with_context(|| format!("unknown engine `{engine}`"))?;
    match engine {
        Engine::Sqlite => describe_sqlite(path, input, print),
        Engine::RocksDb => describe::<rocksdb::Library>(path, input, print),
        Engine::Library => describe::<CustomLibrary>(path, input, print),
        Engine::Postgres | Engine::Mysql | Engine::Null => {
            anyhow::bail!("builds of the engine `{}` are not libraries", engine.name())
        }
    }
}

fn describe<L: KeyValueLibrary>(
    path: &Path,
    input: impl std::io::Read,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let library = L::load(path).map_err(refusal);

    // Identified at once: what the library does with a config may end this process.
    let identity = library.as_ref().map(|library| Identity {
        version: library.version_text().to_owned(),
        path: library.path().display().to_string(),
    });
    print_line(&identity, &print)?;
    let Ok(library) = library else {
        return Ok(());
    };

    if let Some(config) = read_config(input)? {
        let answer: Answer = library.try_config(&config).map_err(refusal);
        print_line(&answer, &print)?;
    }

    Ok(())
}

/// Describes a library of SQLite, whose config is only options.
fn describe_sqlite(
    path: &Path,
    input: impl std::io::Read,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let library = sqlite::Library::open(path).map_err(refusal);

    // Identified at once: what the library does with a config may end this process.
    let identity = library.as_ref().map(|library| Identity {
        version: library.version().to_owned(),
        path: path_without_links(path),
    });
    print_line(&identity, &print)?;
    let Ok(library) = library else {
        return Ok(());
    };

    if let Some(config) = read_config(input)? {
        let tried = sqlite::Sqlite::try_config(library, &config.set);
        let answer: Answer = tried.map(|()| Vec::new()).map_err(refusal);
        print_line(&answer, &print)?;
    }

    Ok(())
}

fn path_without_links(path: &Path) -> String {
    fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn read_config(input: impl std::io::Read) -> anyhow::Result<Option<LibraryConfig>> {
    serde_json::from_reader(input).context("cannot read the config")
}

fn print_line(
    value: &impl Serialize,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    print(&(serde_json::to_string(value)? + "\n"))
}

/// Identifies the library at `path` in another process.
///
/// # Errors
/// A [`UsageError`] for a library that cannot be measured.
pub fn identify(engine: Engine, path: &Path) -> anyhow::Result<Identity> {
    Ok(ask(engine, path, None)?.1)
}

/// Tries a config with the library at `path` in another process.
pub fn try_config(engine: Engine, path: &Path, config: &LibraryConfig) -> anyhow::Result<Tried> {
    let (ended, identity) = ask(engine, path, Some(config))?;

    // The first line identifies the library.
    let answer = ended.answers.split(|&byte| byte == b'\n').nth(1).unwrap_or_default();
    Ok(match serde_json::from_slice::<Answer>(answer) {
        Ok(Ok(left_out)) => Tried::Accepted(left_out),
        Ok(Err(failure)) => Tried::Refused(failure.into()),
        Err(_) => crashed(&identity, &ended),
    })
}

/// Lets another process identify the library at `path` and try a config with it.
fn ask(
    engine: Engine,
    path: &Path,
    config: Option<&LibraryConfig>,
) -> anyhow::Result<(Ended, Identity)> {
    let executable = own_path()?;
    let mut command = Command::new(&executable);
    command.arg(LIBRARY_COMMAND).arg(engine.name()).arg(path);

    let input = serde_json::to_vec(&config)?;

    let limits =
        Limits { answer: TRIAL_TIMEOUT, idle: IDLE_TIMEOUT, memory_bytes: TRIAL_MEMORY_BYTES_MAX };

    let ended = run_process(command, &input, limits)
        .with_context(|| format!("cannot start `{}`", executable.display()))?;

    let identity = parse_identity(path, &ended)?;
    Ok((ended, identity))
}

/// The output of a process, and how it ended.
#[derive(Debug)]
struct Ended {
    answers: Vec<u8>,
    /// The last line of its stderr.
    message: String,
    status: ExitStatus,
    /// The limit for which it was killed.
    exceeded: Option<Exceeded>,
}

impl Ended {
    /// Returns how the process ended: `signal: 6 (SIGABRT): why`.
    fn text(&self) -> String {
        match self.message.as_str() {
            "" => self.status.to_string(),
            message => format!("{}: {message}", self.status),
        }
    }

    /// Returns the reason if something other than the library ended the process.
    fn interruption(&self) -> Option<String> {
        match self.exceeded {
            Some(Exceeded::Answer(timeout)) => {
                Some(format!("it did not answer within {} s", timeout.as_secs_f64()))
            }
            Some(Exceeded::Idle(timeout)) => {
                Some(format!("it did nothing for {} s", timeout.as_secs_f64()))
            }
            Some(Exceeded::Memory(bytes)) => {
                let limit = in_units(bytes);
                Some(format!("it needs more than the {limit} of memory that a trial may use"))
            }
            None if self.status.signal() == Some(Signal::KILL.as_raw()) => {
                Some("another process, or the kernel, killed it".to_owned())
            }
            None => None,
        }
    }
}

/// The limits of another process.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The time until its next line.
    answer: Duration,
    /// The time in which it neither uses a processor, nor waits for one or for a disk.
    idle: Duration,
    /// The resident memory, in bytes. The kernel's own limits would also count memory that is
    /// reserved and never used, such as the stacks of threads.
    memory_bytes: u64,
}

/// The limit that a process has exceeded, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exceeded {
    Answer(Duration),
    Idle(Duration),
    Memory(u64),
}

/// The longest time in which a library may neither use a processor, nor wait for one or for a disk. One
/// that waits for itself, as one does whose thread could not get its memory, runs forever.
const IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// The time between two looks at another process.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Runs `command` with `input`. Kills it if it exceeds a limit. That needs another process: a thread
/// that hangs in a library cannot be ended.
fn run_process(mut command: Command, input: &[u8], limits: Limits) -> std::io::Result<Ended> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());

    let (line, lines) = mpsc::channel();
    std::thread::scope(|threads| {
        // If the process ends without reading its input, its stderr or its status says why.
        start(threads, move || drop(stdin.map(|mut stdin| stdin.write_all(input))))?;
        start(threads, move || {
            let answers = stdout.into_iter().flat_map(|out| BufReader::new(out).split(b'\n'));
            // The receiver is gone after a timeout.
            let _ = answers.map_while(Result::ok).try_for_each(|answer| line.send(answer));
        })?;
        let messages = start(threads, move || {
            let mut messages = Vec::new();
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut messages));
            messages
        })?;

        let mut answers = Vec::new();
        let mut watched = Watched::new(child.id(), limits);
        let exceeded = loop {
            match lines.recv_timeout(LOOK_INTERVAL) {
                Ok(answer) => {
                    answers.extend(answer.into_iter().chain([b'\n']));
                    // Lines still come, so the library works, however long all of them take.
                    watched = Watched::new(child.id(), limits);
                }
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(exceeded) = watched.look() {
                        break Some(exceeded);
                    }
                }
            }
        };

        if exceeded.is_some() {
            child.kill()?;
        }

        let status = child.wait()?;
        let message_bytes = messages.join().unwrap_or_default();
        let text = String::from_utf8_lossy(&message_bytes);

        Ok(Ended {
            answers,
            message: text.lines().last().unwrap_or_default().to_owned(),
            status,
            exceeded,
        })
    })
}

/// A process that is watched until its next line.
struct Watched {
    pid: u32,
    limits: Limits,
    waited: Duration,
    /// The time for which it has done nothing.
    idle: Duration,
    /// The CPU time at the last look; `None` before the first.
    cpu_ticks: Option<u64>,
}

impl Watched {
    fn new(pid: u32, limits: Limits) -> Self {
        Self { pid, limits, waited: Duration::ZERO, idle: Duration::ZERO, cpu_ticks: None }
    }

    /// Looks at the process after another [`LOOK_INTERVAL`]. Returns a limit that it exceeds.
    fn look(&mut self) -> Option<Exceeded> {
        // It runs or could run, or it waits for a disk.
        const AT_WORK: [char; 2] = ['R', 'D'];

        let cpu_ticks = probe::cpu_ticks(self.pid);
        let state = probe::state_and_parent(self.pid).map(|(state, _)| state);
        let is_at_work = state.is_some_and(|letter| AT_WORK.contains(&letter));
        let has_worked = is_at_work || cpu_ticks != self.cpu_ticks;

        self.cpu_ticks = cpu_ticks;
        self.waited += LOOK_INTERVAL;
        self.idle = if has_worked { Duration::ZERO } else { self.idle + LOOK_INTERVAL };

        let Limits { answer, idle, memory_bytes } = self.limits;
        if self.waited >= answer {
            return Some(Exceeded::Answer(answer));
        }
        if self.idle >= idle {
            return Some(Exceeded::Idle(idle));
        }
        if resident_bytes(self.pid) > memory_bytes {
            return Some(Exceeded::Memory(memory_bytes));
        }

        None
    }
}

/// Returns the resident memory of a process; 0 if it has ended.
fn resident_bytes(pid: u32) -> u64 {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits = resident.map(|text| text.trim().trim_end_matches(" kB"));
    let kilobytes: Option<u64> = digits.and_then(|digits| digits.parse().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes << 10)
}

/// Starts a thread that serves one of the pipes to another process.
fn start<'scope, T: Send + 'scope>(
    threads: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> std::io::Result<ScopedJoinHandle<'scope, T>> {
    std::thread::Builder::new().name("trial".into()).spawn_scoped(threads, work)
}

/// Parses what the other process printed about the library at `path`.
fn parse_identity(path: &Path, ended: &Ended) -> anyhow::Result<Identity> {
    let line = ended.answers.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let path = path.display();

    match serde_json::from_slice::<Result<Identity, Failure>>(line) {
        Ok(Ok(identity)) => Ok(identity),
        Ok(Err(refusal)) => Err(UsageError::new(refusal.causes.join(": "), refusal.help).into()),
        Err(_) => {
            // The library is not to blame for that.
            if let Some(why) = ended.interruption() {
                anyhow::bail!("the process that loads the library `{path}` was killed: {why}");
            }

            let ending = ended.text();
            let help =
                "it may need another processor or another C library; try another build of it";

            Err(UsageError::new(
                format!("the library `{path}` crashed the process that loaded it ({ending})"),
                Some(help.into()),
            )
            .into())
        }
    }
}

/// Returns what a trial shows whose process ended without an answer.
fn crashed(identity: &Identity, ended: &Ended) -> Tried {
    let version = &identity.version;
    if let Some(why) = ended.interruption() {
        return Tried::Incomplete(format!(
            "the trial of the config could not be completed: the process that opens a database \
             with {version} was killed: {why}"
        ));
    }

    let ending = ended.text();

    let failure = Failure {
        causes: vec![format!(
            "{version} crashed the process that opened a database with it ({ending})"
        )],
        help: Some("options may contradict each other: remove some options".into()),
        log_tail: Vec::new(),
    };
    Tried::Refused(failure.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNLIMITED: Limits =
        Limits { answer: TRIAL_TIMEOUT, idle: TRIAL_TIMEOUT, memory_bytes: u64::MAX };

    #[test]
    fn a_process_that_stops_answering_is_killed() {
        let _turn = crate::starting::starting();
        // More than a pipe holds, since nobody reads it.
        let input = vec![0; 1 << 20];
        let mut seconds = 1;
        loop {
            let mut command = Command::new("sh");
            command.args(["-c", "echo one; exec sleep 1000"]);
            let limits = Limits { answer: Duration::from_secs(seconds), ..UNLIMITED };
            let ended = run_process(command, &input, limits).unwrap();
            let expected = format!("it did not answer within {seconds} s");
            assert_eq!(ended.interruption(), Some(expected));
            if ended.answers == b"one\n" {
                break;
            }
            // A busy machine may not have started the shell by then.
            assert!(ended.answers.is_empty() && seconds < 60, "{ended:?}");
            seconds *= 4;
        }
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo why >&2; kill -ABRT $$"]);
        let ended = run_process(command, b"two\nthree\n", UNLIMITED).unwrap();
        assert_eq!(ended.answers, b"two\nthree\n");
        let ending = ended.text();
        assert!(ending.starts_with("signal: 6 (SIGABRT)") && ending.ends_with(": why"), "{ending}");
        assert_eq!(ended.interruption(), None);
    }

    #[test]
    fn a_process_that_neither_works_nor_ends_is_killed_long_before_one_that_works() {
        let _turn = crate::starting::starting();
        let limits = Limits { idle: Duration::from_secs(2), ..UNLIMITED };

        let mut idle = Command::new("sh");
        idle.args(["-c", "exec sleep 1000"]);
        let ended = run_process(idle, b"", limits).unwrap();
        assert_eq!(ended.interruption().unwrap(), "it did nothing for 2 s");

        // Twice as long, with a little work from time to time.
        let mut working = Command::new("sh");
        let script = "end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do \
                      i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.1; done; echo done";
        working.args(["-c", script]);
        let ended = run_process(working, b"", limits).unwrap();
        assert_eq!((ended.exceeded, ended.answers), (None, b"done\n".to_vec()));
    }

    #[test]
    fn a_process_that_uses_more_memory_than_it_may_is_killed() {
        let _turn = crate::starting::starting();
        let mut command = Command::new("sh");
        // Doubles its text until that is too large, and keeps it.
        let doubling = "text=0123456789; while [ ${#text} -lt 70000000 ]; do text=$text$text; done";
        command.args(["-c", &format!("{doubling}; while :; do :; done")]);
        let limits = Limits { memory_bytes: 64 << 20, ..UNLIMITED };
        let ended = run_process(command, b"", limits).unwrap();
        assert_eq!(ended.exceeded, Some(Exceeded::Memory(limits.memory_bytes)));
        let why = ended.interruption().unwrap();
        assert_eq!(why, "it needs more than the 64 MiB of memory that a trial may use");
    }

    /// Returns the end of a process after these answers, by a signal and with a message.
    fn ended(answers: &str, signal: i32, message: &str) -> Ended {
        Ended {
            answers: answers.into(),
            message: message.into(),
            status: ExitStatus::from_raw(signal),
            exceeded: None,
        }
    }

    const IDENTITY: &str = "{\"Ok\":{\"version\":\"RocksDB 9.9.3\",\"path\":\"/x.so\"}}\n";

    #[test]
    fn a_config_that_ends_the_process_differs_from_a_library_that_does() {
        let path = Path::new("x.so");
        let crash = ended(IDENTITY, 6, "");
        let identity = parse_identity(path, &crash).unwrap();
        assert_eq!(identity.version, "RocksDB 9.9.3");
        let Tried::Refused(refusal) = crashed(&identity, &crash) else {
            panic!("a crash is the fault of the config");
        };
        assert!(refusal.failure.causes[0].contains("opened a database with it (signal: 6"));
        let error = parse_identity(path, &ended("", 6, "")).unwrap_err();
        assert!(error.is::<UsageError>());
        assert!(error.to_string().contains("that loaded it (signal: 6"));
    }

    #[test]
    fn a_trial_that_is_killed_or_lacks_memory_says_nothing_of_the_config() {
        let path = Path::new("x.so");
        let too_large =
            Ended { exceeded: Some(Exceeded::Memory(2 << 30)), ..ended(IDENTITY, 9, "") };
        for (end, why) in [
            (ended(IDENTITY, 9, ""), "another process, or the kernel, killed it"),
            (too_large, "more than the 2 GiB of memory"),
        ] {
            let identity = parse_identity(path, &end).unwrap();
            let Tried::Incomplete(text) = crashed(&identity, &end) else {
                panic!("{end:?} is taken for a refusal");
            };
            assert!(text.contains("could not be completed") && text.contains(why), "{text}");
        }
        let error = parse_identity(path, &ended("", 9, "")).unwrap_err();
        assert!(!error.is::<UsageError>(), "{error}");
    }
}
