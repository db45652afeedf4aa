//! The two ways in which an engine fails: a statement that it refuses, and a target that it can't bring up.

use std::path::PathBuf;

words::named_enum! {
    /// What kind of failure an [`Error`] is: decides whether the operation is tried again, and is what failures are
    /// counted by.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum ErrorClass {
        /// The engine is locked by another connection and waiting for it took too long (SQLite's busy).
        Busy = "busy",
        /// Chosen as the victim of a deadlock.
        Deadlock = "deadlock",
        /// A row or table lock was not had in time.
        LockTimeout = "lock_timeout",
        /// A transaction that can't be serialised with others.
        Serialization = "serialization",
        /// A unique key that exists already.
        DuplicateKey = "duplicate_key",
        /// No space on the device or in a quota.
        DiskFull = "disk_full",
        /// The engine ended the statement because assay or its operator asked it to.
        Interrupted = "interrupted",
        /// The connection is gone: the server stopped, crashed or closed it.
        ConnectionLost = "connection_lost",
        /// User, password or database refused.
        Refused = "refused",
        /// The peer says what the protocol does not allow.
        Protocol = "protocol",
        /// Anything else: the message says what.
        Other = "other",
    }
}

impl ErrorClass {
    /// Whether the same operation may succeed when it is tried again.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Busy | Self::Deadlock | Self::LockTimeout | Self::Serialization
        )
    }

    /// Whether no further operation on this session can succeed.
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

/// A statement or connection that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}{}", code.as_ref().map(|c| format!(" ({c})")).unwrap_or_default())]
pub struct Error {
    /// What kind of failure it is.
    pub class: ErrorClass,
    /// The engine's own code: an SQLSTATE, an SQLite result code.
    pub code: Option<String>,
    /// The engine's own words, or ours where it said nothing.
    pub message: String,
}

impl Error {
    /// An error in assay's own words, without a code of the engine.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            code: None,
            message: message.into(),
        }
    }

    /// Returns an error of no class of its own.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Other, message)
    }

    /// Returns the error of a connection that is not made because one of its ends does not accept the other.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Refused, message)
    }
}

/// A target that could not be brought up, set up or taken down. Each says what is wrong, where, and the way out.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A build that is not there, or not one.
    #[error("build `{build}`: {what}")]
    Build {
        /// The build as the plan names it.
        build: String,
        /// What is missing and where it was looked for.
        what: String,
        /// What to do.
        help: String,
    },
    /// A version that assay does not measure.
    #[error("build `{build}`: version {found} is not supported; supported are {supported}")]
    Version {
        /// The build as the plan names it.
        build: String,
        /// The version found.
        found: String,
        /// The range that works.
        supported: String,
    },
    /// An option of the config that the engine refuses.
    #[error("config: {what}")]
    Config {
        /// Which option, its value, what is allowed.
        what: String,
        /// What to do.
        help: String,
    },
    /// A directory that assay may not use.
    #[error("{}: {what}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        help: String,
    },
    /// A program that failed.
    #[error("`{command}` failed: {status}")]
    Command {
        /// The command line.
        command: String,
        /// The exit status, or why it could not be started.
        status: String,
        /// The last lines of what it printed or logged.
        tail: Vec<String>,
        /// Where the whole log is, if it was kept.
        log: Option<PathBuf>,
    },
    /// A server that runs but does not answer.
    #[error("{server} did not answer within {seconds} s: {last}")]
    NotReady {
        /// Which server, at which address.
        server: String,
        /// How long was waited.
        seconds: u64,
        /// The last answer, or refusal.
        last: String,
        /// The last lines of its log.
        tail: Vec<String>,
    },
    /// A server that refuses a connection or a statement of the set-up.
    #[error("{server}: {source}")]
    Server {
        /// Which server, at which address.
        server: String,
        /// What it said.
        #[source]
        source: Error,
        /// What to do, where that is known.
        help: Option<String>,
    },
    /// A file or directory that can't be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl SetupError {
    /// What to do about it, where that is known.
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::Build { help, .. } | Self::Config { help, .. } | Self::Directory { help, .. } => {
                Some(help)
            }
            Self::Server { help, .. } => help.as_deref(),
            Self::Version { .. } | Self::Command { .. } | Self::NotReady { .. } | Self::Io(_) => {
                None
            }
        }
    }

    /// The last lines of the log of the program that failed, oldest first.
    pub fn log_tail(&self) -> &[String] {
        match self {
            Self::Command { tail, .. } | Self::NotReady { tail, .. } => tail,
            _ => &[],
        }
    }
}
