//! A file for each command.

pub mod builds;
