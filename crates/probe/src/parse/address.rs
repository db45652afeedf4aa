//! `/proc/net/fib_trie` and `/proc/net/if_inet6`: the addresses of this host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the IPv4 addresses in `fib_trie`: those with a local route of their own. The kernel
/// prints an address, and below it its routes.
pub(crate) fn parse_fib_trie(text: &str) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    let mut address = None;
    for line in text.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("|-- ") {
            address = text.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = address
            && !addresses.contains(&address.into())
        {
            addresses.push(address.into());
        }
    }
    addresses
}

/// Returns the IPv6 addresses in `if_inet6` with global scope. Each line has the address, the
/// interface's number, the length of the prefix, the scope, flags and the interface's name.
pub(crate) fn parse_if_inet6(text: &str) -> Vec<IpAddr> {
    text.lines().filter_map(parse_if_inet6_line).collect()
}

fn parse_if_inet6_line(line: &str) -> Option<IpAddr> {
    const GLOBAL: &str = "00";

    let mut fields = line.split_whitespace();
    let bits = u128::from_str_radix(fields.next()?, 16).ok()?;
    (fields.nth(2)? == GLOBAL).then(|| Ipv6Addr::from_bits(bits).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_local_route_and_is_named_once() {
        let text = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
     +-- 192.0.2.0/24 2 0 2
        |-- 192.0.2.0
           /24 link UNICAST
        |-- 192.0.2.2
           /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
Local:
     |-- 192.0.2.2
        /32 host LOCAL
";
        let expected: Vec<IpAddr> =
            ["127.0.0.1", "192.0.2.2"].map(|address| address.parse().unwrap()).into();
        assert_eq!(parse_fib_trie(text), expected);
        assert!(parse_fib_trie("").is_empty());
    }

    #[test]
    fn only_global_addresses_of_ipv6_are_reached_from_elsewhere() {
        let text = "\
fe8000000000000000fc00fffe000001 04 40 20 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
fd000000000000000000000000000002 04 40 00 82     eth0
";
        let expected: IpAddr = "fd00::2".parse().unwrap();
        assert_eq!(parse_if_inet6(text), [expected]);
    }
}
