//! `/proc/stat`

use super::number;
use crate::Malformed;

/// What `/proc/stat` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// CPU time of all processors since boot, in ticks of `sysconf(_SC_CLK_TCK)`: user mode, user mode at low priority, kernel
    /// mode, idle, idle with I/O outstanding, interrupts, deferred work of interrupts, and what the hypervisor gave to others.
    /// What an old kernel lacks is 0. The kernel adds a guest's time to the first two as well as to its own columns, which are
    /// therefore not read.
    pub cpu_ticks: [u64; 8],
    /// Processors with a line of their own.
    pub cpu_count: u32,
    /// Context switches since boot.
    pub context_switch_count: u64,
    /// Processes and threads created since boot.
    pub created_count: u64,
    /// Threads that run or could run now.
    pub runnable_count: u64,
    /// Threads that wait for I/O now.
    pub blocked_count: u64,
}

/// Parses `/proc/stat`.
///
/// # Errors
/// When the line of all processors or one of the counts is missing or not a number.
pub fn parse_stat(text: &str) -> Result<System, Malformed> {
    let line = |key: &str| {
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        let what = || format!("`{key}` of /proc/stat");
        found.ok_or_else(|| Malformed::new(what(), "", "a line with that name"))
    };
    let count = |key: &str| {
        let what = format!("`{key}` of /proc/stat");
        number(&what, line(key)?.split_ascii_whitespace().next())
    };
    let cpu = line("cpu")?;
    let mut cpu_ticks = [0; 8];
    let mut columns = 0;
    for (ticks, field) in cpu_ticks.iter_mut().zip(cpu.split_ascii_whitespace()) {
        *ticks = number("`cpu` of /proc/stat", Some(field))?;
        columns += 1;
    }
    if columns < 4 {
        let what = "`cpu` of /proc/stat";
        return Err(Malformed::new(what, cpu, "four columns or more"));
    }
    let is_processor = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    Ok(System {
        cpu_ticks,
        cpu_count: text.lines().filter(is_processor).count() as u32,
        context_switch_count: count("ctxt")?,
        created_count: count("processes")?,
        runnable_count: count("procs_running")?,
        blocked_count: count("procs_blocked")?,
    })
}
