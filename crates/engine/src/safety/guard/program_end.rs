//! The end of a guarded program, as the guard reports it.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// The program exited, or a signal ended it.
    Exited(ExitStatus),
    /// The guard could not wait for the program.
    Unknown,
    /// The guard was killed, and the kernel then ended the program.
    GuardKilled,
}

impl ProgramEnd {
    /// Returns the exit code; `None` for a program that did not exit by itself.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(status) => status.code(),
            Self::Unknown | Self::GuardKilled => None,
        }
    }

    /// Returns true for the exit code 0.
    pub fn is_success(self) -> bool {
        self.code() == Some(0)
    }

    /// Returns true if another process or the kernel killed the program.
    pub fn is_killed(self) -> bool {
        match self {
            Self::Exited(status) => status.signal() == Some(Signal::KILL.as_raw()),
            Self::Unknown | Self::GuardKilled => false,
        }
    }

    /// Formats the end of a program for the guard's protocol.
    pub(super) fn encode(status: Option<ExitStatus>) -> String {
        status.map_or_else(|| "unknown".to_owned(), |status| status.into_raw().to_string())
    }

    /// Parses what [`encode`](Self::encode) returned.
    pub(super) fn decode(text: &str) -> Self {
        text.parse().map_or(Self::Unknown, |raw| Self::Exited(ExitStatus::from_raw(raw)))
    }
}

impl fmt::Display for ProgramEnd {
    /// Writes `exit status: 1` or `signal: 9 (SIGKILL)`, as the standard library does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => status.fmt(f),
            Self::Unknown => f.write_str("unknown"),
            Self::GuardKilled => f.write_str("unknown: the guard was killed"),
        }
    }
}
