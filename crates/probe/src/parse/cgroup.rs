//! `/proc/self/cgroup` and the limits of a control group

use super::number;
use crate::Malformed;

/// One line of `/proc/self/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The controllers of a version 1 hierarchy; empty in version 2.
    pub controllers: Vec<String>,
    /// The group, seen from the hierarchy's root.
    pub path: String,
}

/// Parses `/proc/self/cgroup`. Lines that are not understood are left out.
pub fn parse_cgroup(text: &str) -> Vec<Membership> {
    text.lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            let path = parts.next()?.to_string();
            Some(Membership {
                controllers: controllers
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .map(str::to_string)
                    .collect(),
                path,
            })
        })
        .collect()
}

/// Parses `cpu.max` of version 2 (`200000 100000`), or quota and period of version 1 joined in that way. In
/// thousandths of a processor; `None` without a limit.
///
/// # Errors
/// When it is not two numbers, or `max` and a number.
pub fn parse_cpu_max(text: &str) -> Result<Option<u64>, Malformed> {
    let malformed = || {
        Malformed::new(
            "CPU limit of a control group",
            text,
            "`QUOTA PERIOD` in microseconds",
        )
    };
    let (quota, period) = text.trim().split_once(' ').ok_or_else(malformed)?;
    if quota == "max" || quota.starts_with('-') {
        return Ok(None);
    }
    let quota: u64 = quota.parse().map_err(|_| malformed())?;
    let period: u64 = period
        .parse()
        .ok()
        .filter(|period| *period > 0)
        .ok_or_else(malformed)?;
    Ok(Some(quota.saturating_mul(1000) / period))
}

/// Parses `memory.max` of version 2 or `memory.limit_in_bytes` of version 1. `None` without a limit, which version 1
/// writes as a number near 2^63.
///
/// # Errors
/// When it is neither `max` nor a number.
pub fn parse_memory_limit(text: &str) -> Result<Option<u64>, Malformed> {
    let text = text.trim();
    if text == "max" {
        return Ok(None);
    }
    let bytes: u64 = text.parse().map_err(|_| {
        Malformed::new(
            "memory limit of a control group",
            text,
            "a number of bytes or `max`",
        )
    })?;
    Ok((bytes < 1 << 60).then_some(bytes))
}

/// Parses `memory.stat`: page cache of files, without shared memory, in bytes. Of the group and those below it.
///
/// # Errors
/// When it has no such line, or a number is not one.
pub fn parse_group_cache(text: &str) -> Result<u64, Malformed> {
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
    };
    // Version 1 has figures of the group alone too, under names without `total_`.
    let (cache, shared) = match value("total_cache") {
        Some(cache) => (Some(cache), value("total_shmem")),
        None => (value("file"), value("shmem")),
    };
    let cache = number("page cache of a control group", cache)?;
    let shared = match shared {
        Some(text) => number("shared memory of a control group", Some(text))?,
        None => 0,
    };
    Ok(cache.saturating_sub(shared))
}
