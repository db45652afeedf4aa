//! This program.

use std::path::PathBuf;

use anyhow::Context;

/// Returns the path of this program, which is started again as guard of servers, as cell and to
/// load libraries.
pub fn own_path() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of this program")
}
