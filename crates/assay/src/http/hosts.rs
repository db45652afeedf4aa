//! The names by which a server may be requested.
//!
//! A page from elsewhere can make its own name lead to 127.0.0.1 and read what is served there. Its
//! requests then have its name as `Host`.

use std::net::{IpAddr, SocketAddr};

/// The names and the port that a request may have as `Host`.
pub struct AllowedHosts {
    /// The host that `--listen` names.
    given: String,
    listening: SocketAddr,
}

/// Names of this host that only its own users use.
const LOCAL: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

impl AllowedHosts {
    /// Returns the names for a listener at `listening`, which `--listen` gave as `address`.
    pub fn new(address: &str, listening: SocketAddr) -> Self {
        let given = address.rsplit_once(':').map_or(address, |(host, _)| host);
        Self { given: given.to_owned(), listening }
    }

    /// Returns whether a request may have this `Host`.
    pub fn contain(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        if port != Some(self.listening.port()) {
            return false;
        }

        let is_known = |known: &str| known.eq_ignore_ascii_case(name);
        if LOCAL.iter().copied().any(is_known) || is_known(&self.given) {
            return true;
        }

        // Only names can be made to lead here, not addresses.
        let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
        address.is_some_and(|address| {
            self.listening.ip().is_unspecified() || address == self.listening.ip()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_host_with_the_port_are_allowed() {
        let hosts = AllowedHosts::new("box.example:9187", "127.0.0.2:9187".parse().unwrap());
        for host in [
            "127.0.0.1:9187",
            "localhost:9187",
            "LOCALHOST:9187",
            "[::1]:9187",
            "box.example:9187",
            "127.0.0.2:9187",
        ] {
            assert!(hosts.contain(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9187",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost:91870",
            "",
            ":9187",
            "10.0.0.1:9187",
            "localhost:9187:9187",
        ] {
            assert!(!hosts.contain(host), "{host}");
        }
    }

    #[test]
    fn port_80_may_be_left_out_and_where_all_addresses_listen_any_address_is_allowed() {
        let hosts = AllowedHosts::new("0.0.0.0:80", "0.0.0.0:80".parse().unwrap());
        assert!(hosts.contain("192.0.2.7") && hosts.contain("[2001:db8::7]"));
        assert!(hosts.contain("192.0.2.7:80") && !hosts.contain("evil.example"));
    }
}
