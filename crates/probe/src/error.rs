//! The errors of this crate: a file that cannot be read, and a file with unexpected text.

use std::io;
use std::path::PathBuf;

/// The error for text of `/proc` or `/sys` that does not have the documented format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

impl Malformed {
    /// Returns the error for the item `what`: the text that it has, shortened to fit a line, and
    /// the expected format.
    pub(crate) fn new(what: &str, actual: &str, expected: &str) -> Self {
        let short: String = actual.chars().take(60).collect();
        let dots = if short.len() < actual.len() { "..." } else { "" };
        Self(format!("{what}: expected {expected}, found `{short}{dots}`"))
    }
}

/// The error for a sample that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A required file is missing or not readable.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A file has unexpected text.
    #[error("unexpected format of `{}`", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The text and the expected format.
        #[source]
        source: Malformed,
    },
}
