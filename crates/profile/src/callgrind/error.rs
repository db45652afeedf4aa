//! The reasons why work could not be counted.

use std::io;
use std::path::PathBuf;

/// The reason why work could not be counted, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// `valgrind` is not installed, or lacks a program.
    #[error("`{program}` is not installed; install Debian's package `valgrind` or its equivalent")]
    NotInstalled {
        /// The missing program.
        program: &'static str,
    },
    /// `valgrind --version` failed or printed something else.
    #[error("`valgrind --version` failed: {printed}; install Debian's package `valgrind` again")]
    Version {
        /// The output.
        printed: String,
    },
    /// A process belongs to another user or group than `vgdb` would run as.
    #[error(
        "process {process} runs as {owner}, and callgrind does not answer to {user}; run assay as \
         root or as the process's user"
    )]
    OtherUser {
        /// The process.
        process: u32,
        /// The user and group of the process, by their ids.
        owner: String,
        /// The user and group that would ask.
        user: String,
    },
    /// A process did not answer in time.
    #[error(
        "callgrind in process {process} did not answer `{request}` within {seconds} s; is the \
         process stopped, the machine overloaded, or `ptrace` forbidden in this container?"
    )]
    Silent {
        /// The process.
        process: u32,
        /// The request.
        request: &'static str,
        /// The time that the process had to answer.
        seconds: u64,
    },
    /// A process does not run under callgrind, or with its files elsewhere.
    #[error(
        "process {process} has no pipes of callgrind in `{}`: it does not run under callgrind",
        .folder.display()
    )]
    NotUnderCallgrind {
        /// The process.
        process: u32,
        /// The folder in which its pipes would be.
        folder: PathBuf,
    },
    /// `vgdb` failed.
    #[error("`vgdb` failed for process {process}: {stderr}")]
    Vgdb {
        /// The process.
        process: u32,
        /// The last lines of `vgdb` on stderr.
        stderr: String,
    },
    /// A process ended without its counts.
    #[error(
        "process {process} ended without its counts: it was killed or crashed; the end of \
         callgrind's log: {log}"
    )]
    Lost {
        /// The process.
        process: u32,
        /// The last lines of callgrind's log.
        log: String,
    },
    /// A file with counts is not what callgrind writes.
    #[error("`{}` is damaged in line {line}: {what}; is the disk full?", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The mistake.
        what: String,
    },
    /// The run was stopped.
    #[error("the run was stopped")]
    Stopped,
    /// A file or a process could not be used.
    #[error("{what}: {source}")]
    Io {
        /// The action that failed.
        what: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
}

impl WorkError {
    /// Returns a function that adds what failed to an error.
    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
