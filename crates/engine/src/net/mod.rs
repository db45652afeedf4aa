//! What clients of servers have in common: the bytes between them, TLS, passwords.

pub(crate) mod address;
pub(crate) mod failure;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod url;
pub(crate) mod wire;
