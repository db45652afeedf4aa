//! `/proc/PID/stat`, `/proc/PID/statm` and `/proc/PID/io`

use super::{number, required_value};
use crate::Malformed;

/// CPU time in ticks of `sysconf(_SC_CLK_TCK)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) user: u64,
    pub(crate) system: u64,
}

/// What is wanted of `/proc/PID/stat`. Times are over all threads of the process, also those that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// Its state, a letter. With `X` its parent is just taking it over, or has: then its times may be in the parent's too, and
    /// `parent` be 0.
    pub(crate) state: char,
    /// The parent now.
    pub(crate) parent: u32,
    pub(crate) own: Ticks,
    /// Time of children that ended and were waited for, with what they had of theirs.
    pub(crate) reaped: Ticks,
    /// When it was started, since boot: with the process id it names a process for good.
    pub(crate) started_ticks: u64,
    /// Resident memory now, in pages.
    pub(crate) resident_pages: u64,
}

/// Parses `/proc/PID/stat`. The program's name stands in parentheses and may itself hold spaces, parentheses and
/// line ends, so the fields are counted from the *last* closing parenthesis.
///
/// # Errors
/// When there is no parenthesis, or a wanted field is missing or not a number.
pub(crate) fn parse_process_stat(text: &str) -> Result<ProcessStat, Malformed> {
    let malformed = |expected| Malformed::new("a process", text, expected);
    let (_, rest) = text
        .rsplit_once(')')
        .ok_or_else(|| malformed("a name in parentheses"))?;
    // The state, field 3 of the documentation, is the first after the name.
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next().and_then(|state| state.chars().next());
    let state = state.ok_or_else(|| malformed("a state after the name"))?;
    let parent = number("the parent", fields.next())?;
    let mut next = |what, skipped| number(what, fields.nth(skipped));
    Ok(ProcessStat {
        state,
        parent,
        own: Ticks {
            user: next("utime", 9)?,
            system: next("stime", 0)?,
        },
        // Signed in the kernel's format; never negative in a sound system.
        reaped: Ticks {
            user: next("cutime", 0)?,
            system: next("cstime", 0)?,
        },
        started_ticks: next("starttime", 4)?,
        resident_pages: next("rss", 1)?,
    })
}

/// Parses `/proc/PID/statm`: resident pages of files and shared memory, which other processes may hold too.
///
/// # Errors
/// When the field is missing or not a number.
pub(crate) fn parse_shared_pages(text: &str) -> Result<u64, Malformed> {
    number("shared pages", text.split_ascii_whitespace().nth(2))
}

/// Block I/O that one process caused, with that of its children that ended and were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessIo {
    /// Read from storage.
    pub(crate) read_bytes: u64,
    /// Sent to the page cache or to storage, to be written.
    pub(crate) write_bytes: u64,
}

/// Parses `/proc/PID/io`.
///
/// # Errors
/// When a wanted line is missing or not a number.
pub(crate) fn parse_process_io(text: &str) -> Result<ProcessIo, Malformed> {
    Ok(ProcessIo {
        read_bytes: required_value(text, "read_bytes")?,
        write_bytes: required_value(text, "write_bytes")?,
    })
}
