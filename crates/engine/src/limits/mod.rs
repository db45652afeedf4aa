//! Limits of a server's memory and processors: with them a database of a few gigabytes is larger than the memory that
//! may cache it.
//!
//! Memory is limited by a control group, which the server's own memory, its shared memory and the page cache of the
//! files that it reads and writes are charged to; processors by the scheduling affinity, which child processes
//! inherit. Whatever makes the database runs under the same limits, so that nothing of it is cached elsewhere.
//!
//! A limit that makes no sense is an error. One that this machine does not let assay set is not: the server runs
//! without it, and [`Applied`] says so.

mod cpus;
mod group;
mod hierarchy;

use crate::SetupError;
use crate::guard::{Confinement, is_alive};
use group::Group;

/// Below this no server that assay knows starts and does its work.
pub const MEMORY_BYTES_LEAST: u64 = 64 << 20;

/// What a server may use; `None`: all that there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory, the page cache of the server's files included.
    pub memory_bytes: Option<u64>,
    /// Processors, by the kernel's numbers.
    pub cpus: Option<Vec<u32>>,
}

impl Limits {
    /// Checks that they make sense on this machine.
    ///
    /// # Errors
    /// [`SetupError::Config`] for memory that is too small for any server, and for processors that are not there or
    /// that assay may not use.
    pub fn check(&self) -> Result<(), SetupError> {
        if let Some(bytes) = self.memory_bytes
            && bytes < MEMORY_BYTES_LEAST
        {
            return Err(SetupError::Config {
                what: format!("`memory` is {}", in_units(bytes)),
                help: format!(
                    "the least that a server can work with is {}",
                    in_units(MEMORY_BYTES_LEAST)
                ),
            });
        }
        self.cpus.as_deref().map_or(Ok(()), cpus::check)
    }
}

/// What came of one limit that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Which: `memory` in bytes, or `cpus`.
    pub what: String,
    /// What was asked for: `1073741824`, `0-1`.
    pub asked: String,
    /// What holds, as the kernel says it; `None`: the server is not limited.
    pub effective: Option<String>,
    /// Why it is not limited, or not as was asked.
    pub reason: Option<String>,
}

impl Applied {
    /// Why figures that are measured now are not those of a server with this limit; `None` where it holds.
    pub fn shortfall(&self) -> Option<String> {
        let Self {
            what,
            asked,
            effective,
            reason,
        } = self;
        let reason = reason.as_deref().unwrap_or("the kernel does not say why");
        match effective {
            Some(_) => None,
            None => Some(format!(
                "the server runs without the limit that its config sets, {what} = {asked}: {reason}"
            )),
        }
    }
}

/// Limits in force. Dropping it removes what was made for them, so it has to outlive the program.
#[derive(Debug)]
pub struct Enforced {
    limits: Limits,
    /// The group that holds the server, or why there is none; `None`: memory is not limited.
    group: Option<Result<Group, String>>,
    confinement: Confinement,
}

impl Enforced {
    /// Checks the limits, and makes what they need.
    ///
    /// # Errors
    /// Those of [`Limits::check`].
    pub fn prepare(limits: &Limits) -> Result<Self, SetupError> {
        limits.check()?;
        let group = limits.memory_bytes.map(Group::make);
        let confinement = Confinement {
            group: match &group {
                Some(Ok(group)) => Some(group.entry()),
                _ => None,
            },
            cpus: limits.cpus.clone(),
        };
        Ok(Self {
            limits: limits.clone(),
            group,
            confinement,
        })
    }

    /// What a guard has to confine its program to.
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// What holds for the server, read back from the kernel.
    pub fn applied(&self, server: u32) -> Vec<Applied> {
        let mut applied = Vec::new();
        if let (Some(bytes), Some(group)) = (self.limits.memory_bytes, &self.group) {
            let (effective, reason) = match group {
                Ok(group) => group.effective(bytes, server),
                Err(reason) => (None, Some(reason.clone())),
            };
            applied.push(Applied {
                what: "memory".into(),
                asked: bytes.to_string(),
                effective: effective.map(|bytes| bytes.to_string()),
                reason,
            });
        }
        if let Some(cpus) = &self.limits.cpus {
            let asked = words::format_cpus(cpus);
            let effective = cpus::of_process(server);
            let reason = match &effective {
                Some(effective) if *effective == asked => None,
                Some(_) => Some("the kernel gives it others".to_string()),
                None => Some(format!(
                    "`/proc/{server}/status` does not say what it may use"
                )),
            };
            applied.push(Applied {
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
        let (Some(bytes), Some(Ok(group))) = (self.limits.memory_bytes, &self.group) else {
            return None;
        };
        if group.kill_count()? == 0 {
            return None;
        }
        let size = in_units(bytes);
        let quoted = size.replace(' ', "");
        Some(format!(
            "{who} was killed: it needed more than the {size} that its config allows (memory = \"{quoted}\")"
        ))
    }

    /// The same for a server that may live on without the process that was killed.
    pub(crate) fn server_killed_for_memory(&self, server: u32) -> Option<String> {
        self.killed_for_memory(if is_alive(server) {
            "a process of the server"
        } else {
            "the server"
        })
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
            limits: Limits {
                memory_bytes: Some(1 << 30),
                cpus: None,
            },
            group: Some(Err("there are no control groups".into())),
            confinement: Confinement::default(),
        };
        let applied = enforced.applied(std::process::id());
        let expected = Applied {
            what: "memory".into(),
            asked: "1073741824".into(),
            effective: None,
            reason: Some("there are no control groups".into()),
        };
        assert_eq!(applied, [expected]);
        let said = applied[0].shortfall().unwrap();
        assert!(
            said.contains("memory = 1073741824: there are no control groups"),
            "{said}"
        );
        let held = Applied {
            effective: Some("1073741824".into()),
            reason: Some("swap is not limited".into()),
            ..applied[0].clone()
        };
        assert_eq!(held.shortfall(), None);
    }

    #[test]
    fn sizes_are_in_whole_units() {
        assert_eq!(in_units(256 << 20), "256 MiB");
        assert_eq!(in_units(3 << 30), "3 GiB");
        assert_eq!(in_units((1 << 30) + (1 << 20)), "1025 MiB");
        assert_eq!(in_units(1000), "1000 B");
    }
}
