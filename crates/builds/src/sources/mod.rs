//! The sources of builds: Maven's repositories, Debian's mirrors, and npm's registry.

pub mod amalgamation;
mod client;
pub mod debian;
mod entry_headers;
mod limits;
mod maven;
mod npm;
pub mod own_libc;
pub mod products;
pub mod unpack;

/// The remedy for a full disk.
pub const DISK_FULL_HELP: &str = "free disk space, or set ASSAY_BUILDS to a directory on another disk; downloaded files are kept";
