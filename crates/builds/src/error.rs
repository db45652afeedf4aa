//! Why a build can't be had, and what to do instead.

/// A build that can't be had, or is not what it was.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
    help: String,
    is_usage: bool,
}

impl Error {
    /// Returns the error of something that failed, with what to do about it.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: help.into(),
            is_usage: false,
        }
    }

    /// Returns the error of something that was asked for wrongly, with what to write instead.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            is_usage: true,
            ..Self::new(message, help)
        }
    }

    /// Returns what to do about it.
    pub fn help(&self) -> &str {
        &self.help
    }

    /// Returns true where the request is wrong: nothing was done.
    pub fn is_usage(&self) -> bool {
        self.is_usage
    }
}
