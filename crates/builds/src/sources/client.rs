//! Runs the package managers' own clients, and understands how they fail.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::error::Error;

/// What a client said.
#[derive(Debug)]
pub struct Said {
    /// Whether it did its work.
    pub success: bool,
    /// Its standard output.
    pub stdout: String,
    /// All that it said, for looking for reasons.
    all: String,
}

/// How a client failed, as far as it can be told from what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no such thing.
    Unknown,
    /// Nobody answers.
    NoNetwork,
    /// The disk is full.
    DiskFull,
    /// What came is not what was announced.
    Damaged,
    /// Something else.
    Other,
}

/// What clients print, and what it means; the first that is found counts.
const PHRASES: [(&str, Reason); 24] = [
    ("no space left on device", Reason::DiskFull),
    ("disk quota exceeded", Reason::DiskFull),
    ("enough free space", Reason::DiskFull),
    ("checksum validation failed", Reason::Damaged),
    ("hash sum mismatch", Reason::Damaged),
    ("file has unexpected size", Reason::Damaged),
    ("unknown host", Reason::NoNetwork),
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
    ("could not find artifact", Reason::Unknown),
    ("unable to locate package", Reason::Unknown),
    ("has no installation candidate", Reason::Unknown),
    ("does not have a release file", Reason::Unknown),
];

impl Said {
    /// Why it failed.
    pub fn reason(&self) -> Reason {
        let said = self.all.to_lowercase();
        PHRASES
            .iter()
            .find(|(phrase, _)| said.contains(phrase))
            .map_or(Reason::Other, |&(_, reason)| reason)
    }

    /// What follows `mark` in the first line that begins with it.
    pub fn complaint(&self, mark: &str) -> Option<&str> {
        self.all.lines().find_map(|line| line.strip_prefix(mark))
    }

    /// Returns the failure in words; `what` was to be done by `client`, whose words are in `log`.
    pub fn failure(&self, what: &str, client: &str, log: &Path) -> Error {
        self.failure_or(what, client, log, || {
            Error::new(
                format!("{what}: `{client}` failed{}", self.first_complaint()),
                format!("what `{client}` said is in `{}`", log.display()),
            )
        })
    }

    /// Returns the failure in words, where its reason is the same whatever was asked for; else that of `other`.
    pub fn failure_or(
        &self,
        what: &str,
        client: &str,
        log: &Path,
        other: impl FnOnce() -> Error,
    ) -> Error {
        let log = log.display();
        match self.reason() {
            Reason::NoNetwork => Error::new(
                format!("{what}: `{client}` reaches nobody"),
                format!(
                    "try again when there is a network, or register a build that is on this machine with `dir:/PATH=NAME`; what `{client}` said is in `{log}`"
                ),
            ),
            Reason::DiskFull => Error::new(
                format!("{what}: the disk is full"),
                "make room, or name another place for builds in ASSAY_BUILDS; what was downloaded is kept",
            ),
            Reason::Damaged => Error::new(
                format!("{what}: what arrived is not what was announced"),
                format!("try again; what `{client}` said is in `{log}`"),
            ),
            Reason::Unknown | Reason::Other => other(),
        }
    }

    /// The first complaint, without addresses.
    fn first_complaint(&self) -> String {
        let complaint = self.all.lines().map(str::trim).find(|line| {
            ["E: ", "[ERROR]", "error", "tar: ", "dpkg"]
                .iter()
                .any(|mark| line.starts_with(mark))
        });
        complaint.map_or_else(String::new, |line| {
            let words = line.split_whitespace();
            let words: Vec<&str> = words.filter(|word| !word.contains("://")).collect();
            format!(": {}", words.join(" "))
        })
    }
}

/// Runs a client to its end, and adds all that it says to `log`. `install` says how the client itself is had.
pub fn run(command: &mut Command, log: &Path, install: &str) -> anyhow::Result<Said> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_started(&name, install, error))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    append(log, &format!("$ {command:?}\n{all}\n"))
        .with_context(|| format!("what `{name}` said can't be noted"))?;
    Ok(Said {
        success: output.status.success(),
        stdout,
        all,
    })
}

/// Returns why a client was not started; `install` says how it is had.
pub fn not_started(name: &str, install: &str, error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => Error::new(format!("there is no `{name}` here"), install).into(),
        _ => anyhow::Error::new(error).context(format!("`{name}` can't be started")),
    }
}

fn append(log: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    fs_err::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)?
        .write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(all: &str) -> Said {
        Said {
            success: false,
            stdout: String::new(),
            all: all.into(),
        }
    }

    #[test]
    fn reasons_are_told_apart() {
        for (text, reason) in [
            ("[ERROR] Could not find artifact a:b:jar:1", Reason::Unknown),
            (
                "Could not transfer artifact: registry.example: Unknown host",
                Reason::NoNetwork,
            ),
            (
                "E: Failed to fetch  Temporary failure resolving 'x'",
                Reason::NoNetwork,
            ),
            (
                "java.io.IOException: No space left on device",
                Reason::DiskFull,
            ),
            ("E: Unable to locate package x", Reason::Unknown),
            ("Checksum validation failed, expected", Reason::Damaged),
            ("it rains", Reason::Other),
        ] {
            assert_eq!(said(text).reason(), reason, "{text}");
        }
    }

    #[test]
    fn a_failure_carries_the_complaint_without_addresses() {
        let failure = said("note\nE: Broken http://mirror.example/x here\n").failure(
            "it",
            "apt-get",
            Path::new("/l"),
        );
        assert_eq!(failure.to_string(), "it: `apt-get` failed: E: Broken here");
    }
}
