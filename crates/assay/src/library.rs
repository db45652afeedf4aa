//! Identifies a shared library and tries the plan's configs with it. This happens in a separate
//! process, since a library may crash, and since one process can't load several versions.

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

/// The time to wait for a library to load, and to try each config.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The version and the path of a library.
#[derive(Debug, Deserialize, Serialize)]
pub struct Identity {
    /// Product and version: `Speedb 2.8.0 (RocksDB 8.6.7)`.
    pub version: String,
    /// Its path, without symbolic links.
    pub path: String,
}

/// The result of trying a config: the options that are left out because the version lacks them, or
/// why it is refused.
pub type Tried = Result<Vec<String>, Failure>;

/// Returns the reason why an engine refuses a library or a config.
fn refusal(error: SetupError) -> Failure {
    failure_of(&error.into())
}

/// Loads the library and prints what it is, or why it can't be measured. Then prints a line for
/// each config on stdin, with the result of trying it.
pub fn main(args: &LibraryArgs) -> anyhow::Result<Exit> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot watch for the end of the parent process")?;
    let print_line = |line: String| output::print(&(line + "\n"));
    let library = Library::open(&args.path).map_err(refusal);
    let identity = library.as_ref().map(|library| Identity {
        version: library.version_text().to_owned(),
        path: library.path().display().to_string(),
    });
    print_line(serde_json::to_string(&identity)?)?;
    let Ok(library) = library else {
        return Ok(Exit::Ok);
    };
    let configs: Vec<Config> =
        serde_json::from_reader(std::io::stdin()).context("cannot read the configs")?;
    for config in configs {
        let tried: Tried = rocksdb::try_config(&library, &config).map_err(refusal);
        print_line(serde_json::to_string(&tried)?)?;
    }
    Ok(Exit::Ok)
}

/// Identifies the library at `path` and tries `configs` with it, one after the other, in another
/// process.
pub fn identify(path: &Path, configs: &[Config]) -> anyhow::Result<(Identity, Vec<Tried>)> {
    let executable = own_path()?;
    let mut command = Command::new(&executable);
    command.arg("library").arg(path);
    let (stdout, ending) = run_process(command, &serde_json::to_vec(configs)?, TIMEOUT)
        .with_context(|| format!("cannot start `{}`", executable.display()))?;
    Ok(parse_answers(path, &stdout, configs.len(), &ending)?)
}

/// Runs `command` with `input`, and returns its output and how it ended. Kills it if the next line
/// takes longer than `timeout`. That needs another process: a thread that hangs in a library can't
/// be ended.
fn run_process(
    mut command: Command,
    input: &[u8],
    timeout: Duration,
) -> std::io::Result<(Vec<u8>, String)> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (line, lines) = mpsc::channel();
    std::thread::scope(|threads| {
        // If the process ends without reading its input, its stderr or its status says why.
        threads.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        threads.spawn(move || {
            let answers = stdout.into_iter().flat_map(|out| BufReader::new(out).split(b'\n'));
            answers.map_while(Result::ok).try_for_each(|answer| line.send(answer))
        });
        let messages = threads.spawn(move || {
            let mut messages = Vec::new();
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut messages));
            messages
        });
        let mut answers = Vec::new();
        let is_timed_out = loop {
            match lines.recv_timeout(timeout) {
                Ok(answer) => answers.extend(answer.into_iter().chain([b'\n'])),
                Err(RecvTimeoutError::Disconnected) => break false,
                Err(RecvTimeoutError::Timeout) => break true,
            }
        };
        if is_timed_out {
            child.kill()?;
        }
        let status = child.wait()?;
        let messages = messages.join().unwrap_or_default();
        let ending = if is_timed_out {
            format!("SIGKILL, since it did not answer for {} s", timeout.as_secs_f64())
        } else {
            let messages = String::from_utf8_lossy(&messages);
            let last = messages.lines().last();
            let last = last.map_or(String::new(), |line| format!(": {line}"));
            format!("{status}{last}")
        };
        Ok((answers, ending))
    })
}

/// Parses what the other process printed about the library at `path` and `config_count` configs
/// before its `ending`.
fn parse_answers(
    path: &Path,
    stdout: &[u8],
    config_count: usize,
    ending: &str,
) -> Result<(Identity, Vec<Tried>), UsageError> {
    let mut lines = stdout.split(|&byte| byte == b'\n');
    let identity: Result<Identity, Failure> =
        serde_json::from_slice(lines.next().unwrap_or_default()).map_err(|_| {
            let path = path.display();
            UsageError::new(
                format!("the library `{path}` ended the process that loaded it, by {ending}"),
                Some(
                    "it may need another processor or another C library; try another build of it"
                        .into(),
                ),
            )
        })?;
    let identity =
        identity.map_err(|refusal| UsageError::new(refusal.causes.join(": "), refusal.help))?;
    let mut tried: Vec<Tried> =
        lines.map_while(|line| serde_json::from_slice(line).ok()).take(config_count).collect();
    if tried.len() < config_count {
        // The configs after this one were not tried.
        tried.push(Err(Failure {
            causes: vec![format!(
                "{} ended the process that opened a database with it, by {ending}",
                identity.version
            )],
            help: Some("options may contradict each other, or a cache may exceed this machine's memory: remove some options".into()),
            log_tail: Vec::new(),
        }));
    }
    Ok((identity, tried))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_stops_answering_is_killed() {
        let _turn = crate::turns::starting();
        // More than a pipe holds, since nobody reads it.
        let input = vec![0; 1 << 20];
        let mut seconds = 1;
        loop {
            let mut command = Command::new("sh");
            command.args(["-c", "echo one; exec sleep 1000"]);
            let timeout = Duration::from_secs(seconds);
            let (answers, ending) = run_process(command, &input, timeout).unwrap();
            let expected = format!("SIGKILL, since it did not answer for {seconds} s");
            assert_eq!(ending, expected);
            if answers == b"one\n" {
                break;
            }
            // A busy machine may not have started the shell by then.
            assert!(answers.is_empty() && seconds < 60, "{answers:?}");
            seconds *= 4;
        }
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo why >&2; kill -ABRT $$"]);
        let (answers, ending) = run_process(command, b"two\nthree\n", TIMEOUT).unwrap();
        assert_eq!(answers, b"two\nthree\n");
        assert!(ending.starts_with("signal: 6 (SIGABRT)") && ending.ends_with(": why"), "{ending}");
    }

    #[test]
    fn a_config_that_ends_the_process_differs_from_a_library_that_does() {
        let output = concat!(
            r#"{"Ok":{"version":"RocksDB 9.9.3","path":"/x.so"}}"#,
            "\n",
            r#"{"Ok":["y"]}"#,
            "\n"
        );
        let path = Path::new("x.so");
        let (identity, tried) =
            parse_answers(path, output.as_bytes(), 1, "exit status: 0").unwrap();
        assert_eq!(identity.version, "RocksDB 9.9.3");
        assert_eq!(tried, [Ok(vec!["y".to_owned()])]);
        let (_, tried) = parse_answers(path, output.as_bytes(), 3, "signal: 6 (SIGABRT)").unwrap();
        assert_eq!(tried.len(), 2, "{tried:?}");
        let crashed = tried[1].clone().unwrap_err();
        assert!(crashed.causes[0].contains("opened a database with it, by signal: 6"));
        let crashed = parse_answers(path, b"", 1, "signal: 6 (SIGABRT)").unwrap_err();
        assert!(crashed.to_string().contains("that loaded it, by signal: 6"));
    }
}
