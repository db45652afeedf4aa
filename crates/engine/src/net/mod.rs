//! What clients of servers have in common: addresses, the bytes between them, TLS; and what servers have in common.

pub(crate) mod address;
pub(crate) mod failure;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod url;
pub(crate) mod wire;
