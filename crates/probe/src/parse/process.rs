//! `/proc/PID/stat`, `/proc/PID/statm` and `/proc/PID/io`

use super::number;
use crate::Malformed;

/// What is wanted of `/proc/PID/stat`. Times are ticks, over all threads of the process, also those that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Whether its parent is just taking it over, or has (state `X`): then its times may be in the parent's too, and `parent` be 0.
    pub is_dead: bool,
    /// The parent now.
    pub parent: u32,
    /// User mode.
    pub user_ticks: u64,
    /// Kernel mode.
    pub system_ticks: u64,
    /// User mode of children that ended and were waited for, with what they had of theirs.
    pub children_user_ticks: u64,
    /// Kernel mode of the same.
    pub children_system_ticks: u64,
    /// When it was started, since boot: with the process id it names a process for good.
    pub started_ticks: u64,
    /// Resident memory now, in pages.
    pub resident_pages: u64,
}

/// Parses `/proc/PID/stat`. The program's name stands in parentheses and may itself hold spaces, parentheses and
/// line ends, so the fields are counted from the *last* closing parenthesis.
///
/// # Errors
/// When there is no parenthesis, or a wanted field is missing or not a number.
pub fn parse_process_stat(text: &str) -> Result<ProcessStat, Malformed> {
    let what = "/proc/PID/stat";
    let Some((_, rest)) = text.rsplit_once(')') else {
        return Err(Malformed::new(what, text, "a name in parentheses"));
    };
    // The state, field 3 of the documentation, is the first after the name.
    let mut fields = rest.split_ascii_whitespace();
    let is_dead = fields.next() == Some("X");
    let parent = number("parent in /proc/PID/stat", fields.next())?;
    let mut fields = fields.skip(9);
    let user_ticks = number("utime in /proc/PID/stat", fields.next())?;
    let system_ticks = number("stime in /proc/PID/stat", fields.next())?;
    // Signed in the kernel's format; never negative in a sound system.
    let children_user_ticks = number("cutime in /proc/PID/stat", fields.next())?;
    let children_system_ticks = number("cstime in /proc/PID/stat", fields.next())?;
    let started_ticks = number("starttime in /proc/PID/stat", fields.nth(4))?;
    let resident_pages = number("rss in /proc/PID/stat", fields.nth(1))?;
    let parent = u32::try_from(parent).map_err(|_| {
        Malformed::new(
            "parent in /proc/PID/stat",
            &parent.to_string(),
            "a process id",
        )
    })?;
    Ok(ProcessStat {
        is_dead,
        parent,
        user_ticks,
        system_ticks,
        children_user_ticks,
        children_system_ticks,
        started_ticks,
        resident_pages,
    })
}

/// Memory of one process that is resident now, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// All resident pages.
    pub resident_pages: u64,
    /// Those of files and shared memory, which other processes may hold too.
    pub shared_pages: u64,
}

/// Parses `/proc/PID/statm`.
///
/// # Errors
/// When a wanted field is missing or not a number.
pub fn parse_statm(text: &str) -> Result<ProcessMemory, Malformed> {
    let mut fields = text.split_ascii_whitespace().skip(1);
    Ok(ProcessMemory {
        resident_pages: number("resident in /proc/PID/statm", fields.next())?,
        shared_pages: number("shared in /proc/PID/statm", fields.next())?,
    })
}

/// Block I/O that one process caused, with that of its children that ended and were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Read from storage.
    pub read_bytes: u64,
    /// Sent to the page cache or to storage, to be written.
    pub write_bytes: u64,
}

/// Parses `/proc/PID/io`.
///
/// # Errors
/// When a wanted line is missing or not a number.
pub fn parse_process_io(text: &str) -> Result<ProcessIo, Malformed> {
    let find = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    Ok(ProcessIo {
        read_bytes: number("`read_bytes` of /proc/PID/io", find("read_bytes"))?,
        write_bytes: number("`write_bytes` of /proc/PID/io", find("write_bytes"))?,
    })
}
