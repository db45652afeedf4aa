//! The error of this crate: why a build is not available, and what to do about it.

/// The reason why a build is not available, or has changed since it was fetched.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct BuildError {
    message: String,
    help: String,
    is_usage: bool,
}

impl BuildError {
    /// Returns an error for an operation that failed; `help` says what to do about it.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), is_usage: false }
    }

    /// Returns an error for an invalid request; `help` says what to write instead.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { is_usage: true, ..Self::new(message, help) }
    }

    /// Returns the next step for the user.
    pub fn help(&self) -> &str {
        &self.help
    }

    /// Returns true when the request itself is invalid. Nothing was changed.
    pub fn is_usage(&self) -> bool {
        self.is_usage
    }
}
