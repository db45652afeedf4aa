//! Parsers for `/proc/self/cgroup` and the files of a control group.

use super::{required_value, value};
use crate::Malformed;

/// The lowest number of bytes that means no limit. Version 1 writes a number near 2^63.
pub(crate) const UNLIMITED: u64 = 1 << 60;

/// One line of `/proc/self/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The controllers of a version 1 hierarchy; empty in version 2.
    pub(crate) controllers: Vec<String>,
    /// The group's path from the root of the hierarchy.
    pub(crate) path: String,
}

/// Parses `/proc/self/cgroup`. Skips lines in another format.
pub(crate) fn parse_cgroup(text: &str) -> Vec<Membership> {
    text.lines().filter_map(parse_cgroup_line).collect()
}

fn parse_cgroup_line(line: &str) -> Option<Membership> {
    let (_number, controllers_and_path) = line.split_once(':')?;
    let (controllers, path) = controllers_and_path.split_once(':')?;
    Some(Membership {
        controllers: controllers
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_string)
            .collect(),
        path: path.to_string(),
    })
}

/// Parses `cpu.max` of version 2 (`200000 100000`), or the quota and period of version 1 in the
/// same format. Returns thousandths of a processor; `None` for no limit, which is `max` or
/// negative.
pub(crate) fn parse_cpu_max(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let quota: u64 = quota.parse().ok()?;
    quota.saturating_mul(1000).checked_div(period.parse().ok()?)
}

/// Parses `memory.max` of version 2 or `memory.limit_in_bytes` of version 1. Returns `None` for no
/// limit, which version 2 writes as `max`.
pub(crate) fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < UNLIMITED)
}

/// Parses `memory.stat`. Returns the page cache of files without shared memory in bytes, for the
/// group and its children.
///
/// # Errors
/// Fails if the line is missing or its value is not a number.
pub(crate) fn parse_group_cache(text: &str) -> Result<u64, Malformed> {
    // In version 1, names without `total_` are the figures of the group alone.
    let (cache, shared) = match value(text, "total_cache")? {
        Some(cache) => (cache, value(text, "total_shmem")?),
        None => (required_value(text, "file")?, value(text, "shmem")?),
    };
    Ok(cache.saturating_sub(shared.unwrap_or(0)))
}
