//! What clients of servers have in common: the bytes between them, TLS, passwords.

pub(crate) mod failure;
mod password;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod url;
pub(crate) mod wire;

pub use password::Password;

/// Whether a name or an address is this host's own.
pub(crate) fn is_this_host(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}
