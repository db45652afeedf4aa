//! The errors of this crate: a failed statement, and a target that cannot be set up.

use std::path::PathBuf;

words::named_enum! {
    /// The class of an [`Error`]. It decides whether the operation is retried, and failures are
    /// counted by it.
    #[derive(PartialOrd, Ord)]
    pub enum ErrorClass {
        /// Another connection locked the database for too long (SQLite's `SQLITE_BUSY`).
        Busy = "busy",
        /// The engine ended the transaction to resolve a deadlock.
        Deadlock = "deadlock",
        /// The wait for a row or table lock took too long.
        LockTimeout = "lock_timeout",
        /// The transaction cannot be serialized with others.
        Serialization = "serialization",
        /// A unique key already exists.
        DuplicateKey = "duplicate_key",
        /// The device or a quota has no space left.
        DiskFull = "disk_full",
        /// The statement was canceled by assay or an administrator.
        Interrupted = "interrupted",
        /// The connection is gone: the server stopped, crashed or closed it.
        ConnectionLost = "connection_lost",
        /// The server refused the user, password or database.
        Refused = "refused",
        /// The peer violated the protocol.
        Protocol = "protocol",
        /// Any other failure; the message has the details.
        Other = "other",
    }
}

impl ErrorClass {
    /// Returns true when a retry of the same operation may succeed.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Busy | Self::Deadlock | Self::LockTimeout | Self::Serialization)
    }

    /// Returns true when no further operation on the session can succeed.
    pub fn ends_session(self) -> bool {
        matches!(
            self,
            Self::Interrupted
                | Self::ConnectionLost
                | Self::Refused
                | Self::Protocol
                | Self::DiskFull
        )
    }
}

/// The error of a statement or connection.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}{}", code.as_ref().map(|c| format!(" ({c})")).unwrap_or_default())]
pub struct Error {
    /// The class of the failure.
    pub class: ErrorClass,
    /// The engine's code, such as an SQLSTATE or an SQLite result code.
    pub code: Option<String>,
    /// The engine's message, or assay's if the engine sent none.
    pub message: String,
}

impl Error {
    /// Returns an error with assay's own message, without a code.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, code: None, message: message.into() }
    }

    /// Returns an error of the class [`ErrorClass::Other`].
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Other, message)
    }

    /// Returns the error of a connection that the client or the server refuses.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Refused, message)
    }
}

/// The error of a target that could not be set up, started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The build is missing or incomplete, or cannot be used.
    #[error("build `{build}`: {what}")]
    Build {
        /// The build's name in the plan.
        build: String,
        /// The problem, with the file or directory.
        what: String,
        /// The remedy.
        help: String,
    },
    /// Assay does not support the version.
    #[error("build `{build}`: version {found} is not supported; use {supported}")]
    Version {
        /// The build's name in the plan.
        build: String,
        /// The version of the build.
        found: String,
        /// The supported versions.
        supported: String,
    },
    /// The engine refuses an option of the config.
    #[error("config: {what}")]
    Config {
        /// The option, its value, and the allowed values.
        what: String,
        /// The remedy.
        help: String,
        /// The option, if it is known: an engine's option, `memory`, or `cpus`.
        option: Option<String>,
        /// The file from which a server read its config, if it was started.
        config_file: Option<PathBuf>,
    },
    /// Assay may not use the directory.
    #[error("{}: {what}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The problem.
        what: String,
        /// The remedy.
        help: String,
    },
    /// A program failed.
    #[error("`{command}` failed: {status}")]
    Command {
        /// The command line.
        command: String,
        /// The exit status, or why the program did not start.
        status: String,
        /// The last lines of its output or log.
        tail: Vec<String>,
        /// The file with the whole log, if there is one.
        log: Option<PathBuf>,
    },
    /// The trial of a config ended before it could tell whether the config is accepted.
    #[error("the trial of the config could not be completed: {what}")]
    Trial {
        /// The limit that the trial reached, or what ended it.
        what: String,
    },
    /// A server runs but does not answer.
    #[error("{server} did not answer within {seconds} s: {last}")]
    NotReady {
        /// The server and its address.
        server: String,
        /// The time that assay waited.
        seconds: u64,
        /// The last error.
        last: String,
        /// The last lines of the server's log.
        tail: Vec<String>,
    },
    /// A server refuses a connection or a statement of the setup.
    #[error("{server}: {source}")]
    Server {
        /// The server and its address.
        server: String,
        /// The server's error.
        #[source]
        source: Error,
        /// The remedy, if one is known.
        help: Option<String>,
    },
    /// A file or directory cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl SetupError {
    /// Returns the error for a config as a whole.
    pub(crate) fn config(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Config { what: what.into(), help: help.into(), option: None, config_file: None }
    }

    /// Returns the error for one option of a config.
    pub(crate) fn option(option: &str, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Config {
            what: what.into(),
            help: help.into(),
            option: Some(option.to_owned()),
            config_file: None,
        }
    }

    /// Returns the remedy, if one is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Config { help, config_file: Some(file), .. } => {
                Some(format!("{help}; the server read `{}`", file.display()))
            }
            Self::Build { help, .. } | Self::Config { help, .. } | Self::Directory { help, .. } => {
                Some(help.clone())
            }
            Self::Server { help, .. } => help.clone(),
            Self::Version { .. }
            | Self::Command { .. }
            | Self::NotReady { .. }
            | Self::Trial { .. }
            | Self::Io(_) => None,
        }
    }

    /// Returns the last lines of the failed program's log, oldest first.
    pub fn log_tail(&self) -> &[String] {
        match self {
            Self::Command { tail, .. } | Self::NotReady { tail, .. } => tail,
            _ => &[],
        }
    }
}
