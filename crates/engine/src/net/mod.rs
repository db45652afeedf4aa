//! The way to a server: addresses, networks, streams and TLS.

pub(crate) mod address;
pub(crate) mod failure;
pub(crate) mod network;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod url;
