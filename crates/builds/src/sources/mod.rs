//! The sources of builds: Maven's repositories and Debian's mirrors.

mod client;
pub mod debian;
pub mod maven;
pub mod own_libc;
pub mod unpack;

/// The remedy for a full disk.
pub const DISK_FULL_HELP: &str =
    "free disk space, or set ASSAY_BUILDS to a folder on another disk; downloaded files are kept";
