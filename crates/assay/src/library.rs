//! Asks a shared library what it is, in a process of its own: this one may meet several, and one that crashes.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use engine::rocksdb::Library;
use serde::{Deserialize, Serialize};

use crate::cli::LibraryArgs;
use crate::outcome::{Exit, UsageError, causes_of, help_of};
use crate::results;

/// What a library is.
#[derive(Debug, Deserialize, Serialize)]
pub struct Identity {
    /// Product and version: `Speedb 2.8.0 (RocksDB 8.6.7)`.
    pub version: String,
    /// Where it is, free of symbolic links.
    pub path: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Refusal {
    causes: Vec<String>,
    help: Option<String>,
}

/// Loads the library and says what it is, or why it can't be measured.
pub fn main(args: &LibraryArgs) -> anyhow::Result<Exit> {
    let answer = Library::open(&args.path)
        .map(|library| Identity {
            version: library.version_text().to_owned(),
            path: library.path().display().to_string(),
        })
        .map_err(|error| {
            let error = error.into();
            Refusal {
                causes: causes_of(&error),
                help: help_of(&error),
            }
        });
    results::print(&serde_json::to_string(&answer)?)?;
    Ok(Exit::Ok)
}

/// Asks another process what the library at `path` is.
pub fn identify(path: &Path) -> anyhow::Result<Identity> {
    let executable = std::env::current_exe().context("this program's own path is not known")?;
    let output = Command::new(&executable)
        .arg("library")
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("`{}` can't be started", executable.display()))?;
    let answer: Result<Identity, Refusal> =
        serde_json::from_slice(&output.stdout).map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said
                .lines()
                .last()
                .map_or(String::new(), |line| format!(": {line}"));
            UsageError::new(
                format!(
                    "the library `{}` ended the process that loaded it, by {}{last}",
                    path.display(),
                    output.status
                ),
                Some(
                    "it may need another processor or another C library; try another build of it"
                        .into(),
                ),
            )
        })?;
    answer.map_err(|refusal| UsageError::new(refusal.causes.join(": "), refusal.help).into())
}
