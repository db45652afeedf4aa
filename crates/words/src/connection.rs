//! The states of a connection.

use serde::{Deserialize, Serialize};

/// The activity of a connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionState {
    /// The thread whose turn it is runs, or waits for a processor.
    Runnable,
    /// Client and server both run, because the server continues for a while after its reply. Their
    /// times overlap.
    Overlap,
    /// The thread is blocked while it reads a file, or waits for a page of a file.
    Read,
    /// The thread is blocked while it writes a file.
    Write,
    /// The thread waits for data to become durable.
    Fsync,
    /// The thread waits for another thread or process: a lock, a latch, a queue, a group commit.
    Lock,
    /// Client and server both wait for a message that is on its way.
    Handover,
    /// The thread sleeps, because it is not due yet or backs off from a lock.
    Sleep,
    /// The thread waits in another system call.
    #[serde(other)]
    Other,
}

impl ConnectionState {
    /// All states, in the order of their declaration.
    pub const ALL: [Self; 9] = [
        Self::Runnable,
        Self::Overlap,
        Self::Read,
        Self::Write,
        Self::Fsync,
        Self::Lock,
        Self::Handover,
        Self::Sleep,
        Self::Other,
    ];

    /// Returns the name of the state of a thread.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runnable => "running",
            Self::Overlap => "overlap",
            Self::Read => "read",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Lock => "lock",
            Self::Handover => "handover",
            Self::Sleep => "sleep",
            Self::Other => "other",
        }
    }
}
