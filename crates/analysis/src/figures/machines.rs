//! Tells machines apart: by their recorded id, or by the kernel's id of their boot if they have
//! none.

use record::{Host, Run};

/// The fact that identifies a machine.
pub(crate) const HOST_ID: &str = "host_id";

/// The machines of several runs, numbered in the order in which they are met.
#[derive(Default)]
pub(crate) struct Machines {
    ids: Vec<Option<String>>,
}

impl Machines {
    /// Returns the number of the machine of an invocation of a run, from 0. Machines without any id
    /// count as one.
    pub fn number(&mut self, run: &Run, invocation: u32) -> usize {
        let id = id(run, invocation);
        let known = self.ids.iter().position(|known| *known == id);
        known.unwrap_or_else(|| {
            self.ids.push(id);
            self.ids.len() - 1
        })
    }
}

/// Returns the id of the machine of an invocation, numbered from 1.
fn id(run: &Run, invocation: u32) -> Option<String> {
    let invocation = run.invocations.get(invocation.saturating_sub(1) as usize);
    let mut differences = invocation.iter().flat_map(|invocation| &invocation.host_differences);
    let host_id = match differences.find(|fact| fact.name == HOST_ID) {
        Some(fact) => fact.now.clone(),
        None => of_host(&run.host),
    };
    host_id.or_else(|| invocation?.boot_id.clone())
}

fn of_host(host: &Host) -> Option<String> {
    let mut facts = host.facts.iter();
    let fact = facts.find(|(name, _)| name == HOST_ID);
    fact.map(|(_, id)| id.clone())
}

#[cfg(test)]
mod tests {
    use record::{FactDifference, Invocation};

    use super::*;

    fn run(host_id: Option<&str>, invocations: &[(Option<&str>, Option<&str>)]) -> Run {
        let fact = |id: &str| (HOST_ID.to_owned(), id.to_owned());
        let invocation = |&(moved_to, boot_id): &(Option<&str>, Option<&str>)| Invocation {
            boot_id: boot_id.map(str::to_owned),
            host_differences: Vec::from_iter(moved_to.map(|id| FactDifference {
                name: HOST_ID.to_owned(),
                first: host_id.map(str::to_owned),
                now: Some(id.to_owned()),
            })),
            ..Invocation::default()
        };
        Run {
            host: Host { facts: host_id.map(fact).into_iter().collect(), ..Host::default() },
            invocations: invocations.iter().map(invocation).collect(),
            ..Run::default()
        }
    }

    #[test]
    fn a_machine_is_known_by_its_id_or_else_by_its_boot() {
        let mut machines = Machines::default();
        let first = run(Some("a"), &[(None, Some("x")), (Some("b"), Some("y"))]);
        assert_eq!(machines.number(&first, 1), 0);
        assert_eq!(machines.number(&first, 2), 1);
        // After a reboot it is the same machine.
        assert_eq!(machines.number(&run(Some("b"), &[(None, Some("z"))]), 1), 1);
        let without = run(None, &[(None, Some("x")), (None, Some("y"))]);
        assert_eq!(machines.number(&without, 1), 2);
        assert_eq!(machines.number(&without, 2), 3);
        assert_eq!(machines.number(&Run::default(), 0), 4);
        assert_eq!(machines.number(&Run::default(), 1), 4);
    }
}
