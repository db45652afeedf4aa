//! Parsers for `/proc/PID/stat`, `/proc/PID/statm` and `/proc/PID/io`.

use super::{number, required_value};
use crate::Malformed;

/// CPU time in ticks of `sysconf(_SC_CLK_TCK)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) user: u64,
    pub(crate) system: u64,
}

/// Fields of `/proc/PID/stat`. Times include all threads of the process, even those that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// The state, a letter. In state `X`, the parent is collecting the process or has just done
    /// so: its times may already be in the parent's, and `parent` may be 0.
    pub(crate) state: char,
    /// The process ID of the current parent.
    pub(crate) parent: u32,
    pub(crate) own: Ticks,
    /// The time of children that the process has waited for, including their children.
    pub(crate) reaped: Ticks,
    /// The start time since boot. Together with the process ID, it identifies a process.
    pub(crate) started_ticks: u64,
    /// The current resident memory in pages.
    pub(crate) resident_pages: u64,
}

/// Parses `/proc/PID/stat`. The program's name is in parentheses and may itself contain spaces,
/// parentheses and line ends, so fields are counted from the *last* closing parenthesis.
///
/// # Errors
/// Fails if there is no parenthesis, or a field is missing or not a number.
pub(crate) fn parse_process_stat(text: &str) -> Result<ProcessStat, Malformed> {
    let (_, after_name) = text
        .rsplit_once(')')
        .ok_or_else(|| Malformed::new("process", text, "a name in parentheses"))?;

    // The first field after the name is the state, field 3 in the documentation.
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields
        .next()
        .and_then(|state| state.chars().next())
        .ok_or_else(|| Malformed::new("process", text, "a state after the name"))?;
    Ok(ProcessStat {
        state,
        parent: number("parent", fields.next())?,
        own: Ticks {
            user: number("utime", fields.nth(9))?,
            system: number("stime", fields.next())?,
        },
        // The format allows negative numbers, but they don't occur.
        reaped: Ticks {
            user: number("cutime", fields.next())?,
            system: number("cstime", fields.next())?,
        },
        started_ticks: number("starttime", fields.nth(4))?,
        resident_pages: number("rss", fields.nth(1))?,
    })
}

/// Parses `/proc/PID/statm`. Returns the resident pages of files and shared memory, which other
/// processes may share.
///
/// # Errors
/// Fails if the field is missing or not a number.
pub(crate) fn parse_shared_pages(text: &str) -> Result<u64, Malformed> {
    number("shared pages", text.split_ascii_whitespace().nth(2))
}

/// Page faults of a process, including those of its threads that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Faults without I/O.
    pub(crate) minor: u64,
    /// Faults with I/O.
    pub(crate) major: u64,
}

/// Parses the page faults in `/proc/PID/stat`; see [`parse_process_stat`].
///
/// # Errors
/// Fails if there is no parenthesis, or a field is missing or not a number.
pub(crate) fn parse_faults(text: &str) -> Result<Faults, Malformed> {
    let (_, after_name) = text
        .rsplit_once(')')
        .ok_or_else(|| Malformed::new("process", text, "a name in parentheses"))?;
    let mut fields = after_name.split_ascii_whitespace();
    Ok(Faults { minor: number("minflt", fields.nth(7))?, major: number("majflt", fields.nth(1))? })
}

/// Context switches of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextSwitches {
    /// Switches because the thread began to wait.
    pub(crate) voluntary: u64,
    /// Switches because another thread got its processor.
    pub(crate) involuntary: u64,
}

impl ContextSwitches {
    pub(crate) fn total(self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// Parses the context switches in `/proc/PID/task/TID/status`.
///
/// # Errors
/// Fails if a line is missing or its value is not a number.
pub(crate) fn parse_context_switches(text: &str) -> Result<ContextSwitches, Malformed> {
    Ok(ContextSwitches {
        voluntary: required_value(text, "voluntary_ctxt_switches")?,
        involuntary: required_value(text, "nonvoluntary_ctxt_switches")?,
    })
}

/// Block I/O that a process caused, including the children that it has waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessIo {
    /// Bytes read from storage.
    pub(crate) read_bytes: u64,
    /// Bytes sent to the page cache or to storage.
    pub(crate) write_bytes: u64,
}

/// Parses `/proc/PID/io`.
///
/// # Errors
/// Fails if a line is missing or its value is not a number.
pub(crate) fn parse_process_io(text: &str) -> Result<ProcessIo, Malformed> {
    Ok(ProcessIo {
        read_bytes: required_value(text, "read_bytes")?,
        write_bytes: required_value(text, "write_bytes")?,
    })
}
