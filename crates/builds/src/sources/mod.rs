//! Where builds come from: Maven's repositories and Debian's mirrors.

mod client;
pub mod debian;
pub mod maven;
pub mod own_libc;
pub mod unpack;
