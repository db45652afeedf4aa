//! Servers that assay starts on this host: their programs, sockets and logs.

pub(crate) mod log;
pub(crate) mod program;
pub(crate) mod search;
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod start_options;
