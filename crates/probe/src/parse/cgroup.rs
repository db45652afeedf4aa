//! `/proc/self/cgroup` and the limits of a control group

use super::{required_value, value};
use crate::Malformed;

/// A limit of so many bytes or more is none: version 1 writes a number near 2^63.
pub(crate) const UNLIMITED: u64 = 1 << 60;

/// One line of `/proc/self/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The controllers of a version 1 hierarchy; empty in version 2.
    pub(crate) controllers: Vec<String>,
    /// The group, seen from the hierarchy's root.
    pub(crate) path: String,
}

/// Parses `/proc/self/cgroup`. Leaves out lines that are not understood.
pub(crate) fn parse_cgroup(text: &str) -> Vec<Membership> {
    let parse_line = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let controllers = controllers.split(',').filter(|name| !name.is_empty());
        Some(Membership {
            controllers: controllers.map(str::to_string).collect(),
            path: path.to_string(),
        })
    };
    text.lines().filter_map(parse_line).collect()
}

/// Parses `cpu.max` of version 2 (`200000 100000`), or quota and period of version 1 joined in that way. In thousandths of a
/// processor; `None` without a limit, which is `max` or negative.
pub(crate) fn parse_cpu_max(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let quota: u64 = quota.parse().ok()?;
    quota.saturating_mul(1000).checked_div(period.parse().ok()?)
}

/// Parses `memory.max` of version 2 or `memory.limit_in_bytes` of version 1. `None` without a limit, for which
/// version 2 writes `max`.
pub(crate) fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < UNLIMITED)
}

/// Parses `memory.stat`: page cache of files, without shared memory, in bytes. Of the group and those below it.
///
/// # Errors
/// When it has no such line, or a number is not one.
pub(crate) fn parse_group_cache(text: &str) -> Result<u64, Malformed> {
    // Version 1 has figures of the group alone too, under names without `total_`.
    let (cache, shared) = match value(text, "total_cache")? {
        Some(cache) => (cache, value(text, "total_shmem")?),
        None => (required_value(text, "file")?, value(text, "shmem")?),
    };
    Ok(cache.saturating_sub(shared.unwrap_or(0)))
}
