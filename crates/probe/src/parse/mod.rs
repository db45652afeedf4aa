//! Pure parsers for files of `/proc`, with one module per subject. The formats are documented in
//! the kernel's `Documentation/filesystems/proc.rst`, `admin-guide/iostats.rst` and
//! `accounting/psi.rst`. `exposition` parses the pages of exporters.

mod address;
mod cgroup;
mod cpu;
mod disk;
mod exposition;
mod mount;
mod network;
mod pressure;
mod process;

pub(crate) use address::{parse_fib_trie, parse_if_inet6};
pub(crate) use cgroup::{
    Membership, UNLIMITED, parse_cgroup, parse_cpu_max, parse_group_cache, parse_limit,
};
pub(crate) use cpu::{count_processors, parse_cpu_ticks, parse_cpuinfo, parse_frequency_khz};
pub(crate) use disk::{DiskLine, parse_diskstats};
pub(crate) use exposition::{Metric, metrics};
pub(crate) use mount::{Mount, mount_of, parse_mountinfo};
pub(crate) use network::{interfaces, parse_retransmits, parse_traffic};
pub(crate) use pressure::parse_pressure;
pub(crate) use process::{
    ProcessIo, ProcessStat, Ticks, parse_context_switches, parse_faults, parse_process_io,
    parse_process_stat, parse_shared_pages,
};

use std::str::FromStr;

use crate::Malformed;

/// Parses a field of a line as a number.
fn number<T: FromStr>(what: &str, field: Option<&str>) -> Result<T, Malformed> {
    let text = field.unwrap_or("");
    text.parse().map_err(|_| Malformed::new(what, text, "a whole number"))
}

/// Returns the text that follows `key` and a space or colon at the beginning of a line.
fn line<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix([':', ' ']))
}

/// Returns the number in the line of `key`, converted to bytes if its unit is `kB`. Returns `None`
/// without such a line.
///
/// # Errors
/// Fails if the value is not a number, or has another unit.
pub(crate) fn value(text: &str, key: &str) -> Result<Option<u64>, Malformed> {
    let Some(line) = line(text, key) else {
        return Ok(None);
    };

    let mut fields = line.split_ascii_whitespace();
    let value: u64 = number(&format!("`{key}`"), fields.next())?;
    match fields.next() {
        // A container's file may have negative differences, written as numbers near 2^64.
        Some("kB") => Ok(Some(value.saturating_mul(1024))),
        None => Ok(Some(value)),
        Some(unit) => Err(Malformed::new(&format!("unit of `{key}`"), unit, "`kB` or no unit")),
    }
}

/// Returns the number in a line that every kernel has, like [`value`].
///
/// # Errors
/// The errors of [`value`], and a missing line.
pub(crate) fn required_value(text: &str, key: &str) -> Result<u64, Malformed> {
    value(text, key)?
        .ok_or_else(|| Malformed::new(&format!("`{key}`"), "", "a line that begins with it"))
}

#[cfg(test)]
mod tests;
