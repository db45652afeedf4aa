//! The common code of servers that assay starts on this host.

pub(crate) mod config;
pub(crate) mod log;
pub(crate) mod program;
pub(crate) mod search;
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod user;
