//! Why a build can't be had, and what to do instead.

use std::fmt;

/// A build that can't be had, or is not what it was.
#[derive(Debug)]
pub struct FetchError {
    message: String,
    help: Option<String>,
}

impl FetchError {
    /// What is wrong, and what to do about it.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: Some(help.into()),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FetchError {}
