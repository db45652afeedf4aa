//! The two ways in which observing the host fails: a file that can't be read, and a file that says what it must not.

use std::io;
use std::path::PathBuf;

/// Text of `/proc` or `/sys` that is not what the kernel's documentation says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: got `{got}`, expected {expected}")]
pub struct Malformed {
    /// What was to be read.
    pub what: String,
    /// The text found, shortened.
    pub got: String,
    /// What is allowed there.
    pub expected: &'static str,
}

impl Malformed {
    /// `got` is shortened to what fits a line.
    pub(crate) fn new(what: impl Into<String>, got: &str, expected: &'static str) -> Self {
        let mut short: String = got.chars().take(60).collect();
        if short.len() < got.len() {
            short.push_str("...");
        }
        Self {
            what: what.into(),
            got: short,
            expected,
        }
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
