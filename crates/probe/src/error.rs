//! The two ways in which observing the host fails: a file that can't be read, and a file that says what it must not.

use std::io;
use std::path::PathBuf;

/// Text of `/proc` or `/sys` that is not what the kernel's documentation says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

impl Malformed {
    /// Says what was to be read, what was found (shortened to what fits a line), and what is allowed there.
    pub(crate) fn new(what: &str, got: &str, expected: &str) -> Self {
        let short: String = got.chars().take(60).collect();
        let dots = if short.len() < got.len() { "..." } else { "" };
        Self(format!("{what}: got `{short}{dots}`, expected {expected}"))
    }
}

/// A sample that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A file that must be there and readable.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file with unexpected text.
    #[error("cannot understand `{}`", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Malformed,
    },
}
