//! Runs the package managers' own clients, and recognizes why they fail.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::DISK_FULL_HELP;
use super::limits::Limits;
use crate::error::BuildError;
use crate::process_group::ProcessGroup;
use crate::waiting::wait;

/// The limits of a client. Builds have less than 1 GB. 900 MB come in this time at 1 Mbit/s.
const LIMITS: Limits = Limits { time: Duration::from_secs(2 * 3600), bytes: 4_000_000_000 };

/// The most bytes of each output of a client that are read.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;

/// The output and outcome of a client.
#[derive(Debug)]
pub struct ClientOutput {
    pub is_success: bool,
    pub stdout: String,
    /// Standard output and standard error.
    all: String,
}

/// The reason why a client failed, as far as its output shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The requested package or version does not exist.
    NotFound,
    /// The server cannot be reached.
    NoNetwork,
    /// The disk is full.
    DiskFull,
    /// A download does not match its checksum or size.
    Damaged,
    Other,
}

/// Phrases that clients print, in lower case, and their reasons. The first match is used.
const PHRASES: [(&str, Reason); 30] = [
    ("no space left on device", Reason::DiskFull),
    ("disk quota exceeded", Reason::DiskFull),
    ("enough free space", Reason::DiskFull),
    ("npm error code enospc", Reason::DiskFull),
    ("npm error code eintegrity", Reason::Damaged),
    ("checksum validation failed", Reason::Damaged),
    ("hash sum mismatch", Reason::Damaged),
    ("premature end", Reason::Damaged),
    ("premature eof", Reason::Damaged),
    ("file has unexpected size", Reason::Damaged),
    ("unknown host", Reason::NoNetwork),
    ("npm error code enotfound", Reason::NoNetwork),
    ("unknownhost", Reason::NoNetwork),
    ("temporary failure", Reason::NoNetwork),
    ("could not resolve '", Reason::NoNetwork),
    ("name or service not known", Reason::NoNetwork),
    ("network is unreachable", Reason::NoNetwork),
    ("unable to connect", Reason::NoNetwork),
    ("could not connect", Reason::NoNetwork),
    ("connection refused", Reason::NoNetwork),
    ("connect timed out", Reason::NoNetwork),
    ("connection timed out", Reason::NoNetwork),
    ("read timed out", Reason::NoNetwork),
    ("connection reset", Reason::NoNetwork),
    ("no route to host", Reason::NoNetwork),
    ("could not find artifact", Reason::NotFound),
    ("npm error code etarget", Reason::NotFound),
    ("unable to locate package", Reason::NotFound),
    ("has no installation candidate", Reason::NotFound),
    ("does not have a release file", Reason::NotFound),
];

impl ClientOutput {
    /// Returns the reason why the client failed.
    pub fn reason(&self) -> Reason {
        let text = self.all.to_lowercase();
        PHRASES
            .iter()
            .find(|(phrase, _)| text.contains(phrase))
            .map_or(Reason::Other, |&(_, reason)| reason)
    }

    /// Returns the text after `prefix` in the first line that begins with it.
    pub fn text_after(&self, prefix: &str) -> Option<&str> {
        self.all.lines().find_map(|line| line.strip_prefix(prefix))
    }

    /// Returns the error of a failed client: `what` failed, because of `client`, whose output is in
    /// `log`.
    pub fn error(&self, what: &str, client: &str, log: &Path) -> BuildError {
        self.error_or(what, client, log, || {
            BuildError::new(
                format!("{what}: `{client}` failed{}", self.first_error()),
                format!("see the output of `{client}` in `{}`", log.display()),
            )
        })
    }

    /// Returns the error of a failed client like [`Self::error`], or `other` when the reason
    /// depends on the request.
    pub fn error_or(
        &self,
        what: &str,
        client: &str,
        log: &Path,
        other: impl FnOnce() -> BuildError,
    ) -> BuildError {
        let log = log.display();
        match self.reason() {
            Reason::NoNetwork => BuildError::new(
                format!("{what}: `{client}` cannot reach the server"),
                format!(
                    "check the network and try again, or register a build on this machine with `dir:/PATH=NAME`; the output of `{client}` is in `{log}`"
                ),
            ),
            Reason::DiskFull => {
                BuildError::new(format!("{what}: the disk is full"), DISK_FULL_HELP)
            }
            Reason::Damaged => BuildError::new(
                format!("{what}: a download is incomplete, or does not match its checksum or size"),
                format!("try again; the output of `{client}` is in `{log}`"),
            ),
            Reason::NotFound | Reason::Other => other(),
        }
    }

    /// Returns the first error message that the client printed, without addresses.
    fn first_error(&self) -> String {
        let is_error = |line: &&str| {
            let mut prefixes = ["E: ", "[ERROR]", "error", "npm error", "tar: ", "dpkg"].iter();
            // The code is for programs; the next line has words.
            let is_code = line.starts_with("npm error code");
            !is_code && prefixes.any(|prefix| line.starts_with(prefix))
        };

        let without_addresses = |line: &str| {
            let words = line.split_whitespace().filter(|word| !word.contains("://"));
            words.collect::<Vec<_>>().join(" ")
        };

        let mut errors = self.all.lines().map(str::trim).filter(is_error).map(without_addresses);
        // A client may print an error as a line with only its mark, then the reason.
        errors
            .find(|error| error.contains(' '))
            .map_or_else(String::new, |error| format!(": {error}"))
    }
}

/// Runs a client to its end, and appends its output to `log`, which is in the folder of downloads.
/// `install` says how to install the client.
///
/// # Errors
/// The client does not start, runs for too long, or writes too much to the folder of downloads.
pub fn run(command: &mut Command, log: &Path, install: &str) -> anyhow::Result<ClientOutput> {
    run_within(&LIMITS, command, log, install)
}

fn run_within(
    limits: &Limits,
    command: &mut Command,
    log: &Path,
    install: &str,
) -> anyhow::Result<ClientOutput> {
    let name = command.get_program().to_string_lossy().into_owned();
    let downloads = log.parent().unwrap_or(Path::new("."));
    // Files, because a full pipe would block the client.
    let stdout_file = tempfile::tempfile_in(downloads)?;
    let stderr_file = tempfile::tempfile_in(downloads)?;

    let usage = limits.begin(downloads, [&stdout_file, &stderr_file]);
    let group = ProcessGroup::begin()?;
    let mut child = group
        .add(command)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(stdout_file.try_clone()?)
        .stderr(stderr_file.try_clone()?)
        .spawn()
        .map_err(|error| not_started(&name, install, error))?;
    let has_ended = wait(&child, &|| usage.is_too_much());
    // Also what it left running, which would write into the folder.
    group.kill();
    // It may have left the group.
    let _ = child.kill();
    let status = child.wait()?;

    let stdout = text_of(&stdout_file)?;
    let all = format!("{stdout}{}", text_of(&stderr_file)?);
    append(log, &format!("$ {command:?}\n{all}\n"))
        .with_context(|| format!("cannot write the output of `{name}` to a file"))?;

    if !has_ended? {
        return Err(usage.error(&name, log).into());
    }
    Ok(ClientOutput { is_success: status.success(), stdout, all })
}

/// Returns the text that a client wrote to a file.
fn text_of(mut file: &File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the error of a client that did not start; `install` says how to install it.
pub fn not_started(name: &str, install: &str, error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => {
            BuildError::new(format!("cannot find the program `{name}`"), install).into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot start `{name}`")),
    }
}

fn append(log: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    fs_err::OpenOptions::new().create(true).append(true).open(log)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed_client(all: &str) -> ClientOutput {
        ClientOutput { is_success: false, stdout: String::new(), all: all.into() }
    }

    #[test]
    fn the_output_shows_why_a_client_failed() {
        for (text, reason) in [
            ("[ERROR] Could not find artifact a:b:jar:1", Reason::NotFound),
            ("Could not transfer artifact: registry.example: Unknown host", Reason::NoNetwork),
            ("E: Failed to fetch  Temporary failure resolving 'x'", Reason::NoNetwork),
            ("java.io.IOException: No space left on device", Reason::DiskFull),
            ("E: Unable to locate package x", Reason::NotFound),
            ("Checksum validation failed, expected", Reason::Damaged),
            ("[ERROR] Premature end of Content-Length delimited message body", Reason::Damaged),
            ("something else", Reason::Other),
        ] {
            assert_eq!(failed_client(text).reason(), reason, "{text}");
        }
    }

    /// Runs the script as a client that prints its process ID first, within these limits. Returns the
    /// error after the client's end.
    fn error_of(script: &str, limits: &Limits) -> BuildError {
        let downloads = tempfile::tempdir().unwrap();
        let log = downloads.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo $$; {script}")]).current_dir(downloads.path());
        let ended = run_within(limits, &mut command, &log, "");

        let logged = fs_err::read_to_string(&log).unwrap();
        let process = logged.lines().find(|line| line.parse::<u32>().is_ok()).unwrap();
        assert!(!Path::new("/proc").join(process).exists(), "{logged}");
        ended.unwrap_err().downcast().unwrap()
    }

    #[test]
    fn a_client_that_takes_too_long_or_writes_too_much_is_ended() {
        // On a busy machine, too, the client has begun by then.
        let limits = Limits { time: Duration::from_millis(1500), bytes: u64::MAX };
        let slow = error_of("while :; do echo x >> file; sleep 0.1; done", &limits);
        assert_eq!(slow.to_string(), "`sh` ran for more than 0 minutes, and was ended");

        let limits = Limits { time: Duration::from_secs(600), bytes: 100_000 };
        let print = "yes | head -c 1000000";
        for script in [format!("{print} > file; sleep 600"), format!("{print}; sleep 600")] {
            let large = error_of(&script, &limits);
            assert!(large.to_string().contains("wrote more than 0 GB to `"), "{large}");
        }
    }

    #[test]
    fn an_error_repeats_the_clients_message_without_addresses() {
        let output = failed_client("note\nE: Broken http://mirror.example/x here\n");
        let error = output.error("cannot fetch `x`", "apt-get", Path::new("/l"));
        assert_eq!(error.to_string(), "cannot fetch `x`: `apt-get` failed: E: Broken here");
        let output = failed_client("[ERROR]\n[ERROR] http://mirror.example/x\n[ERROR] It broke\n");
        let error = output.error("cannot fetch `x`", "mvn", Path::new("/l"));
        assert_eq!(error.to_string(), "cannot fetch `x`: `mvn` failed: [ERROR] It broke");
    }
}
