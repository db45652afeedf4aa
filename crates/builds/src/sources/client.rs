//! Runs the package managers' own clients, and recognizes why they fail.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

use super::DISK_FULL_HELP;
use crate::error::BuildError;

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

/// Runs a client to its end, and appends its output to `log`. `install` says how to install the
/// client.
pub fn run(command: &mut Command, log: &Path, install: &str) -> anyhow::Result<ClientOutput> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_started(&name, install, error))?;

    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));

    append(log, &format!("$ {command:?}\n{all}\n"))
        .with_context(|| format!("cannot write the output of `{name}` to a file"))?;

    Ok(ClientOutput { is_success: output.status.success(), stdout, all })
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
