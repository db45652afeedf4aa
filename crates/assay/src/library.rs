//! Asks a shared library what it is and whether it takes the plan's configs, in a process of its own: this one may meet
//! several, and one that crashes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context;
use engine::SetupError;
use engine::rocksdb::{self, Config, Library};
use record::Failure;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::cli::LibraryArgs;
use crate::outcome::{Exit, UsageError, failure_of};
use crate::output;
use crate::version::own_path;

/// How long a library is waited for: to load, and for each config.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a library is.
#[derive(Debug, Deserialize, Serialize)]
pub struct Identity {
    /// Product and version: `Speedb 2.8.0 (RocksDB 8.6.7)`.
    pub version: String,
    /// Where it is, free of symbolic links.
    pub path: String,
}

/// What became of a config: the options that are left out, since the version doesn't have them.
pub type Tried = Result<Vec<String>, Failure>;

/// Returns what an engine has against a library or a config.
fn refusal(error: SetupError) -> Failure {
    failure_of(&error.into())
}

/// Loads the library and says what it is, or why it can't be measured; then, a line for each, what becomes of the configs
/// on stdin.
pub fn main(args: &LibraryArgs) -> anyhow::Result<Exit> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("the end of the process that asks can't be watched")?;
    let say = |line: String| output::print(&(line + "\n"));
    let library = Library::open(&args.path).map_err(refusal);
    let identity = library.as_ref().map(|library| Identity {
        version: library.version_text().to_owned(),
        path: library.path().display().to_string(),
    });
    say(serde_json::to_string(&identity)?)?;
    let Ok(library) = library else {
        return Ok(Exit::Ok);
    };
    let trials: Vec<Config> =
        serde_json::from_reader(std::io::stdin()).context("the configs can't be read")?;
    for trial in trials {
        let tried: Tried = rocksdb::try_config(&library, &trial).map_err(refusal);
        say(serde_json::to_string(&tried)?)?;
    }
    Ok(Exit::Ok)
}

/// Asks another process what the library at `path` is, and what becomes of the configs with it, each in its turn.
pub fn identify(path: &Path, trials: &[Config]) -> anyhow::Result<(Identity, Vec<Tried>)> {
    let executable = own_path()?;
    let mut command = Command::new(&executable);
    command.arg("library").arg(path);
    let (stdout, ended) = ask(command, &serde_json::to_vec(trials)?, PATIENCE)
        .with_context(|| format!("`{}` can't be started", executable.display()))?;
    Ok(answers(path, &stdout, trials.len(), &ended)?)
}

/// The lines that `command` answers to `question`, and how it ended. It is killed where the next line does not come
/// within `patience`: only from outside can one be ended that waits inside of a library, which then holds locks that
/// other threads of its process need.
fn ask(
    mut command: Command,
    question: &[u8],
    patience: Duration,
) -> std::io::Result<(Vec<u8>, String)> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (line, lines) = mpsc::channel();
    std::thread::scope(|threads| {
        // One that ended without reading it says why, or how it ended does.
        threads.spawn(move || stdin.map(|mut stdin| stdin.write_all(question)));
        threads.spawn(move || {
            let answers = stdout
                .into_iter()
                .flat_map(|out| BufReader::new(out).split(b'\n'));
            answers
                .map_while(Result::ok)
                .try_for_each(|answer| line.send(answer))
        });
        let complaints = threads.spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut said));
            said
        });
        let mut answers = Vec::new();
        let silent = loop {
            match lines.recv_timeout(patience) {
                Ok(answer) => answers.extend(answer.into_iter().chain([b'\n'])),
                Err(RecvTimeoutError::Disconnected) => break false,
                Err(RecvTimeoutError::Timeout) => break true,
            }
        };
        if silent {
            child.kill()?;
        }
        let status = child.wait()?;
        let said = complaints.join().unwrap_or_default();
        let ended = if silent {
            format!(
                "SIGKILL, since it did not answer for {} s",
                patience.as_secs_f64()
            )
        } else {
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().last();
            let last = last.map_or(String::new(), |line| format!(": {line}"));
            format!("{status}{last}")
        };
        Ok((answers, ended))
    })
}

/// What the other process said of the library at `path` and of so many configs, until it ended in some way.
fn answers(
    path: &Path,
    stdout: &[u8],
    trials: usize,
    ended: &str,
) -> Result<(Identity, Vec<Tried>), UsageError> {
    let mut lines = stdout.split(|&byte| byte == b'\n');
    let identity: Result<Identity, Failure> =
        serde_json::from_slice(lines.next().unwrap_or_default()).map_err(|_| {
            let path = path.display();
            UsageError::new(
                format!("the library `{path}` ended the process that loaded it, by {ended}"),
                Some(
                    "it may need another processor or another C library; try another build of it"
                        .into(),
                ),
            )
        })?;
    let identity =
        identity.map_err(|refusal| UsageError::new(refusal.causes.join(": "), refusal.help))?;
    let mut tried: Vec<Tried> = lines
        .map_while(|line| serde_json::from_slice(line).ok())
        .take(trials)
        .collect();
    if tried.len() < trials {
        // Those after it were not tried.
        tried.push(Err(Failure {
            causes: vec![format!(
                "{} ended the process that opened a database with it, by {ended}",
                identity.version
            )],
            help: Some("options may contradict each other, or a cache be larger than this machine can give: leave some out".into()),
            log_tail: Vec::new(),
        }));
    }
    Ok((identity, tried))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_stops_to_answer_is_ended() {
        let _turn = crate::turns::starting();
        // More than a pipe holds, which nobody reads.
        let question = vec![0; 1 << 20];
        let mut seconds = 1;
        loop {
            let mut command = Command::new("sh");
            command.args(["-c", "echo one; exec sleep 1000"]);
            let (answers, ended) = ask(command, &question, Duration::from_secs(seconds)).unwrap();
            let silent = format!("SIGKILL, since it did not answer for {seconds} s");
            assert_eq!(ended, silent);
            if answers == b"one\n" {
                break;
            }
            // A busy machine may not have begun it by then.
            assert!(answers.is_empty() && seconds < 60, "{answers:?}");
            seconds *= 4;
        }
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo why >&2; kill -ABRT $$"]);
        let (answers, ended) = ask(command, b"two\nthree\n", PATIENCE).unwrap();
        assert_eq!(answers, b"two\nthree\n");
        assert!(
            ended.starts_with("signal: 6 (SIGABRT)") && ended.ends_with(": why"),
            "{ended}"
        );
    }

    #[test]
    fn a_config_that_ends_the_process_is_told_from_a_library_that_does() {
        let said = concat!(
            r#"{"Ok":{"version":"RocksDB 9.9.3","path":"/x.so"}}"#,
            "\n",
            r#"{"Ok":["y"]}"#,
            "\n"
        );
        let path = Path::new("x.so");
        let (identity, tried) = answers(path, said.as_bytes(), 1, "exit status: 0").unwrap();
        assert_eq!(identity.version, "RocksDB 9.9.3");
        assert_eq!(tried, [Ok(vec!["y".to_owned()])]);
        let (_, tried) = answers(path, said.as_bytes(), 3, "signal: 6 (SIGABRT)").unwrap();
        assert_eq!(tried.len(), 2, "{tried:?}");
        let crashed = tried[1].clone().unwrap_err();
        assert!(crashed.causes[0].contains("opened a database with it, by signal: 6"));
        let crashed = answers(path, b"", 1, "signal: 6 (SIGABRT)").unwrap_err();
        assert!(crashed.to_string().contains("that loaded it, by signal: 6"));
    }
}
