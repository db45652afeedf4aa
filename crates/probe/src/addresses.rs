//! The addresses by which other hosts may reach this one.

use std::net::IpAddr;

use crate::Proc;
use crate::parse::{parse_fib_trie, parse_if_inet6};

/// Returns the addresses of this host, in this process's network namespace, without those that only
/// it can reach.
pub fn host_addresses(proc: &Proc) -> Vec<IpAddr> {
    let mut addresses = parse_fib_trie(&read(proc, "proc/net/fib_trie"));
    addresses.extend(parse_if_inet6(&read(proc, "proc/net/if_inet6")));
    addresses.retain(|address| !address.is_loopback());
    addresses
}

fn read(proc: &Proc, name: &str) -> String {
    fs_err::read_to_string(proc.path(name)).unwrap_or_default()
}
