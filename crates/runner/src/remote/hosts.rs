//! The hosts of ranks.

use analysis::compat::{differences_text, host_differences};
use record::{Assay, ClientHost, Host, Warning};
use serde::{Deserialize, Serialize};

use crate::ground::failure::UsageError;

/// The host of a rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankHost {
    /// The assay that runs there. Those of earlier versions don't say.
    #[serde(default)]
    pub assay: Assay,
    /// The name.
    pub name: String,
    /// The identity, which differs between machines, and between network namespaces of one
    /// machine.
    pub network: String,
    /// The description, without disks.
    pub host: Host,
}

impl RankHost {
    /// Describes the host of this process, which is this assay.
    pub fn of_this_process(assay: &Assay) -> Self {
        let boot = fs_err::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let network = fs_err::read_link("/proc/self/ns/net").unwrap_or_default();
        let name = rustix::system::uname();

        Self {
            assay: assay.clone(),
            name: name.nodename().to_string_lossy().into_owned(),
            network: format!("{} {}", boot.trim(), network.display()),
            host: crate::ground::host::without_disks(),
        }
    }
}

/// Refuses load ranks of another assay than this one. The version alone does not tell messages that
/// differ apart, nor the cost of the load, so the source and the profile must be the same, too.
pub fn refuse_other_assay(hosts: &[RankHost], here: &RankHost) -> Result<(), UsageError> {
    let Some(rank) = hosts.iter().position(|host| host.assay != here.assay) else {
        return Ok(());
    };

    let RankHost { name, assay, .. } = &hosts[rank];
    let message = format!(
        "rank {} on host `{name}` is assay {assay}, but rank 0 is assay {}",
        rank + 1,
        here.assay
    );

    let help = "install the same build of assay on all hosts";
    Err(UsageError { message, help: Some(help.into()) })
}

/// Returns the index of the first rank on the same host as the rank with this index.
pub fn first_on_host(hosts: &[RankHost], index: usize) -> usize {
    let is_same = |other: &RankHost| other.network == hosts[index].network;
    hosts.iter().position(is_same).unwrap_or(index)
}

/// Returns the hosts of load ranks, given those of all in their order, without the server's host
/// `here`.
pub fn client_hosts(hosts: &[RankHost], here: &RankHost) -> Vec<ClientHost> {
    let mut clients = Vec::new();
    for (first, host) in hosts.iter().enumerate() {
        // The first rank on a host stands for it.
        if host.network == here.network || first_on_host(hosts, first) != first {
            continue;
        }

        let on_host = (0..hosts.len()).filter(|index| first_on_host(hosts, *index) == first);
        clients.push(ClientHost {
            name: host.name.clone(),
            ranks: on_host.map(|index| index as u32 + 1).collect(),
            host: host.host.clone(),
        });
    }

    clients
}

/// Warns about processors that a rank may not use, and about differences between client hosts.
pub fn warnings(hosts: &[RankHost], here: &RankHost) -> Vec<Warning> {
    let mut warnings = Vec::from_iter(bound_ranks(hosts, here));

    let clients = client_hosts(hosts, here);
    let Some((first, others)) = clients.split_first() else {
        return warnings;
    };

    for other in others {
        let found = host_differences(&first.host, &other.host);
        if !found.is_empty() {
            let text = format!(
                "client hosts `{}` and `{}` differ: {}",
                first.name,
                other.name,
                differences_text(&found, "unknown")
            );
            warnings.push(Warning::new("ranks::different-hosts", text));
        }
    }

    warnings
}

/// Warns about ranks that may not use all processors of their hosts.
fn bound_ranks(hosts: &[RankHost], here: &RankHost) -> Option<Warning> {
    let mut bound = Vec::new();
    for (rank, host) in std::iter::once(here).chain(hosts).enumerate() {
        let count = host.host.cpu_count;
        let allowed = host.host.fact("cpu_allowed_count").and_then(|text| text.parse().ok());
        let Some(allowed) = allowed.filter(|allowed: &u32| *allowed < count) else {
            continue;
        };

        let whose = if rank == 0 { " and the server" } else { "" };
        bound.push(format!(
            "rank {rank}{whose} on host `{}` may use {allowed} of {count} processors",
            host.name
        ));
    }

    if bound.is_empty() {
        return None;
    }

    let remedy = "`mpirun` binds ranks to processors unless it is told `--bind-to none`";
    Some(Warning::new("ranks::bound", format!("{}: {remedy}", bound.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_another_assay_are_refused_with_both_versions() {
        let of = |version: &str, hash: &str| RankHost {
            assay: Assay {
                version: version.into(),
                git_hash: Some(hash.into()),
                ..Assay::default()
            },
            name: "load".into(),
            ..RankHost::default()
        };
        let here = of("1.2", "abc");
        assert!(refuse_other_assay(&[of("1.2", "abc")], &here).is_ok());
        let refused = |other| refuse_other_assay(&[here.clone(), other], &here).unwrap_err();
        let expected = "rank 2 on host `load` is assay 1.2 (abd), but rank 0 is assay 1.2 (abc)";
        assert_eq!(refused(of("1.2", "abd")).message, expected);
        // An earlier one does not say what it is.
        let unknown: RankHost = serde_json::from_value(serde_json::json!({
            "name": "load", "network": "", "host": Host::default()
        }))
        .unwrap();
        assert!(refused(unknown).message.contains("is assay of an unknown version"));
    }

    fn host(name: &str, cpu_model: &str, allowed: u32) -> RankHost {
        let facts =
            [("cpu_model", cpu_model.to_owned()), ("cpu_allowed_count", allowed.to_string())];
        RankHost {
            assay: Assay::default(),
            name: name.to_owned(),
            network: name.to_owned(),
            host: Host {
                facts: facts.map(|(name, value)| (name.to_owned(), value)).into(),
                cpu_count: 8,
                ..Host::default()
            },
        }
    }

    #[test]
    fn a_client_host_is_described_once_and_the_servers_is_none() {
        let here = host("db", "A", 8);
        let hosts = ["c1", "db", "c2", "c1"].map(|name| host(name, "A", 8));
        let clients = client_hosts(&hosts, &here);
        let ranks: Vec<_> =
            clients.iter().map(|client| (client.name.as_str(), client.ranks.as_slice())).collect();
        assert_eq!(ranks, [("c1", [1, 4].as_slice()), ("c2", &[3])]);
        assert_eq!(warnings(&hosts, &here), []);
    }

    #[test]
    fn bound_ranks_and_different_client_hosts_are_warned_of() {
        let hosts = [host("c1", "A", 8), host("c2", "B", 8), host("db", "A", 2)];
        let found = warnings(&hosts, &host("db", "A", 1));
        let codes: Vec<&str> = found.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["ranks::bound", "ranks::different-hosts"]);
        let [bound, different] = &found[..] else {
            panic!("{found:?}");
        };
        let expected = "rank 0 and the server on host `db` may use 1 of 8 processors; rank 3 on host `db` may use 2 of 8";
        assert!(bound.text.starts_with(expected), "{}", bound.text);
        let expected = "client hosts `c1` and `c2` differ: `cpu_model` A -> B";
        assert!(different.text.starts_with(expected), "{}", different.text);
    }
}
