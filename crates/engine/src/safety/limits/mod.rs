//! Limits on a server's memory and processors. With them, a database of a few gigabytes can exceed
//! the memory that caches it.
//!
//! A control group limits memory: the server's own and shared memory, and the page cache of the
//! files that it uses. Another, in version 2 the same, limits CPU time. The scheduling affinity
//! limits processors, and child processes inherit it. The program that creates the database has the
//! same limits, so that no other group caches its files.
//!
//! An invalid limit is an error. If this machine does not let assay set a limit, the server runs
//! without it, and [`Limit`] says so.

mod cpus;
pub(crate) mod group;

pub use words::Limits;
use words::{Limit, format_cpu_quota};

use crate::error::SetupError;
use crate::safety::guard::{Confinement, is_alive};
use group::{Resource, ServerGroup};

/// The lowest memory limit with which the supported servers work.
pub const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// Checks that limits are valid on this machine.
///
/// # Errors
/// [`SetupError::Config`] for memory that is too small for any server, and for processors that are
/// offline or that assay may not use.
pub fn check(limits: &Limits) -> Result<(), SetupError> {
    check_memory(limits)?;
    limits.cpus.as_deref().map_or(Ok(()), cpus::check)
}

/// Checks that limits are valid on a machine with these processors.
///
/// # Errors
/// [`SetupError::Config`] for memory that is too small for any server, and for other processors.
pub fn check_for(limits: &Limits, online: &[u32]) -> Result<(), SetupError> {
    check_memory(limits)?;
    limits.cpus.as_deref().map_or(Ok(()), |cpus| cpus::check_online(cpus, Some(online)))
}

fn check_memory(limits: &Limits) -> Result<(), SetupError> {
    if let Some(bytes) = limits.memory_bytes
        && bytes < MEMORY_BYTES_MIN
    {
        let minimum = in_units(MEMORY_BYTES_MIN);
        return Err(SetupError::option(
            "memory",
            format!("`memory` is {}, below the minimum of {minimum}", in_units(bytes)),
            format!("set `memory` to {minimum} or more"),
        ));
    }

    Ok(())
}

/// Enforced limits. Dropping them removes the control group, so they must outlive the program.
#[derive(Debug)]
pub struct Enforced {
    groups: Vec<ServerGroup>,
    /// The limits that need a group.
    group_limits: Vec<GroupLimit>,
    confinement: Confinement,
}

/// A limit that a control group should enforce.
#[derive(Debug)]
struct GroupLimit {
    resource: Resource,
    value: u64,
    /// The index of its group, or the reason why there is none.
    group: Result<usize, String>,
}

impl Enforced {
    /// Checks the limits and creates the control group.
    ///
    /// # Errors
    /// The errors of [`check`].
    pub fn prepare(limits: &Limits) -> Result<Self, SetupError> {
        check(limits)?;

        let mut groups = Vec::new();
        let mut group_limits = Vec::new();

        for (resource, value) in
            [(Resource::Memory, limits.memory_bytes), (Resource::Cpu, limits.cpu_quota_milli)]
        {
            if let Some(value) = value {
                let group = enforce(&mut groups, resource, value);
                group_limits.push(GroupLimit { resource, value, group });
            }
        }

        let confinement = Confinement {
            groups: groups.iter().map(ServerGroup::control_group).collect(),
            cpus: limits.cpus.clone(),
            memory_bytes_max: None,
        };
        Ok(Self { groups, group_limits, confinement })
    }

    /// Limits the private memory of each process of the guarded program.
    pub(crate) fn limit_memory(&mut self, bytes: u64) {
        self.confinement.memory_bytes_max = Some(bytes);
    }

    /// Returns the confinement for the guarded program.
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// Returns the effective limits of the server, read from the kernel.
    pub fn applied(&self, server: u32) -> Vec<Limit> {
        let mut applied = Vec::new();
        for GroupLimit { resource, value, group } in &self.group_limits {
            let (effective, reason) = match group {
                Ok(group) => self.groups[*group].effective(*resource, *value, server),
                Err(reason) => (None, Some(reason.clone())),
            };

            let (what, format): (_, fn(u64) -> String) = match resource {
                Resource::Memory => ("memory", |bytes| bytes.to_string()),
                Resource::Cpu => ("cpu-quota", format_cpu_quota),
            };

            applied.push(Limit {
                what: what.into(),
                asked: format(*value),
                effective: effective.map(format),
                reason,
            });
        }

        if let Some(cpus) = &self.confinement.cpus {
            let requested = words::format_cpus(cpus);
            let effective = cpus::of_process(server);
            let reason = match &effective {
                Some(effective) if *effective == requested => None,
                Some(_) => Some("the kernel grants it other processors".to_string()),
                None => Some(format!("`/proc/{server}/status` does not list its processors")),
            };
            applied.push(Limit { what: "cpus".into(), asked: requested, effective, reason });
        }
        applied
    }

    /// Returns a message that begins with `who` if the kernel killed a process of the program
    /// because its memory limit was reached.
    pub fn killed_for_memory(&self, who: &str) -> Option<String> {
        let limit = self.group_limits.iter().find(|limit| limit.resource == Resource::Memory)?;
        let group = *limit.group.as_ref().ok()?;
        if self.groups[group].kill_count()? == 0 {
            return None;
        }

        let size = in_units(limit.value);
        let quoted = size.replace(' ', "");
        Some(format!(
            "{who} was killed: it needed more than the {size} that its config allows (memory = \"{quoted}\")"
        ))
    }

    /// Returns the message of [`Self::killed_for_memory`] for a server, which may survive the loss
    /// of a process.
    pub(crate) fn server_killed_for_memory(&self, server: u32) -> Option<String> {
        let who = if is_alive(server) { "a process of the server" } else { "the server" };
        self.killed_for_memory(who)
    }
}

/// Limits a resource with one of the groups, or with a new one. Returns the group's index.
fn enforce(groups: &mut Vec<ServerGroup>, resource: Resource, value: u64) -> Result<usize, String> {
    for (index, group) in groups.iter_mut().enumerate() {
        if group.also_limits(resource, value)? {
            return Ok(index);
        }
    }
    groups.push(ServerGroup::create(resource, value)?);
    Ok(groups.len() - 1)
}

/// Formats a size in the largest unit in which it is a whole number.
pub fn in_units(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift)) {
        Some((unit, shift)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let error =
            Enforced::prepare(&Limits { memory_bytes: Some((64 << 20) - 1), ..Limits::default() })
                .unwrap_err();
        assert_eq!(
            error.to_string(),
            "config: `memory` is 67108863 B, below the minimum of 64 MiB"
        );
        assert!(error.help().unwrap().contains("64 MiB"));
    }

    #[test]
    fn no_limits_have_no_effect() {
        let enforced = Enforced::prepare(&Limits::default()).unwrap();
        assert_eq!(enforced.confinement(), &Confinement::default());
        assert!(enforced.applied(std::process::id()).is_empty());
        assert_eq!(enforced.killed_for_memory("it"), None);
    }

    #[test]
    fn a_limit_that_can_not_be_set_has_a_reason() {
        let enforced = Enforced {
            groups: Vec::new(),
            group_limits: vec![GroupLimit {
                resource: Resource::Memory,
                value: 1 << 30,
                group: Err("there are no control groups".into()),
            }],
            confinement: Confinement::default(),
        };
        let applied = enforced.applied(std::process::id());
        let expected = Limit {
            what: "memory".into(),
            asked: "1073741824".into(),
            effective: None,
            reason: Some("there are no control groups".into()),
        };
        assert_eq!(applied, [expected]);
    }

    #[test]
    fn sizes_are_in_whole_units() {
        assert_eq!(in_units(256 << 20), "256 MiB");
        assert_eq!(in_units(3 << 30), "3 GiB");
        assert_eq!(in_units((1 << 30) + (1 << 20)), "1025 MiB");
        assert_eq!(in_units(1000), "1000 B");
    }
}
