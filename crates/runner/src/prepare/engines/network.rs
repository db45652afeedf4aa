//! The addresses at which a server listens that is started next, to try it or to measure it.

use std::net::Ipv4Addr;

use anyhow::Context;
use engine::{Certificate, ForReplicas, Network, Port};
use plan::{Config, Plan};
use words::Secret;

use crate::ground::host::random_id;
use crate::remote::LoadRanks;

/// Returns the TCP address for clients of a server that is started next; `None` if they use its
/// private socket. Password and certificate are made for this server.
pub fn network_for(
    plan: &Plan,
    config: &Config,
    ranks: Option<&LoadRanks>,
) -> anyhow::Result<Option<Network>> {
    // Without an address of the plan's, TLS needs TCP all the same: only clients here use it.
    let address = match ranks {
        Some(ranks) if ranks.has_other_host() => Some(ranks.reached_address(plan.listen)?),
        _ => plan.listen.or(config.tls.then_some(Ipv4Addr::LOCALHOST.into())),
    };
    let Some(address) = address else {
        return Ok(None);
    };

    let port = Port::reserve(address);

    Ok(Some(Network {
        port: port.with_context(|| format!("a server cannot listen on {address}"))?,
        password: Secret::new(random_id()?),
        certificate: config.tls.then(|| Certificate::make(address)).transpose()?,
    }))
}

/// Returns a port for the replicas of a server that is started next; `None` if it has none.
pub fn port_for_replicas(config: &Config) -> anyhow::Result<Option<Port>> {
    let port = (config.replicas > 0).then(|| Port::reserve(Ipv4Addr::LOCALHOST.into()));
    port.transpose().context("cannot reserve a port on 127.0.0.1 for replicas")
}

/// Returns what the replicas of a server need.
pub fn for_replicas<'a>(config: &Config, port: Option<&'a Port>) -> Option<ForReplicas<'a>> {
    Some(ForReplicas { port: port?, logical: config.logical_replication })
}
