//! The common code of SQL servers and their clients: addresses, streams and TLS.

pub(crate) mod address;
pub(crate) mod creation;
pub(crate) mod failure;
pub(crate) mod network;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod url;
pub(crate) mod wire;
