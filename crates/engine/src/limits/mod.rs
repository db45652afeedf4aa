//! Limits of a server's memory and processors: with them a database of a few gigabytes is larger than the memory that
//! may cache it.
//!
//! Memory is limited by a control group, which the server's own memory, its shared memory and the page cache of the
//! files that it reads and writes are charged to; processors by the scheduling affinity, which child processes
//! inherit. Whatever makes the database runs under the same limits, so that nothing of it is cached elsewhere.
//!
//! A limit that makes no sense is an error. One that this machine does not let assay set is not: the server runs
//! without it, and [`Limit`] says so.

mod cpus;
mod group;

use words::Limit;
pub use words::Limits;

use crate::SetupError;
use crate::guard::{Confinement, is_alive};
use group::Group;

/// Below this no server that assay knows starts and does its work.
pub const MEMORY_BYTES_LEAST: u64 = 64 << 20;

/// Checks that limits make sense on this machine.
///
/// # Errors
/// [`SetupError::Config`] for memory that is too small for any server, and for processors that are not there or that assay
/// may not use.
pub fn check(limits: &Limits) -> Result<(), SetupError> {
    if let Some(bytes) = limits.memory_bytes
        && bytes < MEMORY_BYTES_LEAST
    {
        let least = in_units(MEMORY_BYTES_LEAST);
        return Err(SetupError::Config {
            what: format!("`memory` is {}", in_units(bytes)),
            help: format!("the least that a server can work with is {least}"),
        });
    }
    limits.cpus.as_deref().map_or(Ok(()), cpus::check)
}

/// Limits in force. Dropping it removes what was made for them, so it has to outlive the program.
#[derive(Debug)]
pub struct Enforced {
    /// The limit of memory, and the group that holds the server, or why there is none.
    memory: Option<(u64, Result<Group, String>)>,
    confinement: Confinement,
}

impl Enforced {
    /// Checks the limits, and makes what they need.
    ///
    /// # Errors
    /// Those of [`check`].
    pub fn prepare(limits: &Limits) -> Result<Self, SetupError> {
        check(limits)?;
        let memory = limits.memory_bytes.map(|bytes| (bytes, Group::make(bytes)));
        let confinement = Confinement {
            group: match &memory {
                Some((_, Ok(group))) => Some(group.entry()),
                _ => None,
            },
            cpus: limits.cpus.clone(),
        };
        Ok(Self {
            memory,
            confinement,
        })
    }

    /// What a guard has to confine its program to.
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// What holds for the server, read back from the kernel.
    pub fn applied(&self, server: u32) -> Vec<Limit> {
        let mut applied = Vec::new();
        if let Some((bytes, group)) = &self.memory {
            let (effective, reason) = match group {
                Ok(group) => group.effective(*bytes, server),
                Err(reason) => (None, Some(reason.clone())),
            };
            applied.push(Limit {
                what: "memory".into(),
                asked: bytes.to_string(),
                effective: effective.map(|bytes| bytes.to_string()),
                reason,
            });
        }
        if let Some(cpus) = &self.confinement.cpus {
            let asked = words::format_cpus(cpus);
            let effective = cpus::of_process(server);
            let reason = match &effective {
                Some(effective) if *effective == asked => None,
                Some(_) => Some("the kernel gives it others".to_string()),
                None => Some(format!(
                    "`/proc/{server}/status` does not say what it may use"
                )),
            };
            applied.push(Limit {
                what: "cpus".into(),
                asked,
                effective,
                reason,
            });
        }
        applied
    }

    /// Says so when the kernel killed the program, or a process of it, because the limit of its memory was reached.
    /// `who` is what the sentence begins with.
    pub fn killed_for_memory(&self, who: &str) -> Option<String> {
        let Some((bytes, Ok(group))) = &self.memory else {
            return None;
        };
        if group.kill_count()? == 0 {
            return None;
        }
        let size = in_units(*bytes);
        let quoted = size.replace(' ', "");
        Some(format!(
            "{who} was killed: it needed more than the {size} that its config allows (memory = \"{quoted}\")"
        ))
    }

    /// The same for a server that may live on without the process that was killed.
    pub(crate) fn server_killed_for_memory(&self, server: u32) -> Option<String> {
        let who = match is_alive(server) {
            true => "a process of the server",
            false => "the server",
        };
        self.killed_for_memory(who)
    }
}

/// A size in the largest unit in which it is a whole number.
fn in_units(bytes: u64) -> String {
    [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .into_iter()
        .find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift))
        .map_or_else(
            || format!("{bytes} B"),
            |(unit, shift)| format!("{} {unit}", bytes >> shift),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let error = Enforced::prepare(&Limits {
            memory_bytes: Some((64 << 20) - 1),
            cpus: None,
        })
        .unwrap_err();
        assert_eq!(error.to_string(), "config: `memory` is 67108863 B");
        assert!(error.help().unwrap().contains("64 MiB"));
    }

    #[test]
    fn no_limits_need_nothing_and_say_nothing() {
        let enforced = Enforced::prepare(&Limits::default()).unwrap();
        assert_eq!(enforced.confinement(), &Confinement::default());
        assert!(enforced.applied(std::process::id()).is_empty());
        assert_eq!(enforced.killed_for_memory("it"), None);
    }

    #[test]
    fn a_limit_that_can_not_be_had_is_said() {
        let enforced = Enforced {
            memory: Some((1 << 30, Err("there are no control groups".into()))),
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
