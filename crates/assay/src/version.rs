//! The version of this program.

use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::Context;
use record::Assay;

/// The version, and what `build.rs` found out about the source and the profile.
pub static ASSAY: LazyLock<Assay> = LazyLock::new(|| Assay {
    version: env!("CARGO_PKG_VERSION").into(),
    git_hash: option_env!("ASSAY_GIT_HASH").map(str::to_owned),
    git_dirty: option_env!("ASSAY_GIT_DIRTY").map(|dirty| dirty == "true"),
    profile: option_env!("ASSAY_PROFILE").map(str::to_owned),
});

/// [`ASSAY`] as `--version` prints it.
pub static TEXT: LazyLock<String> = LazyLock::new(|| ASSAY.to_string());

/// Returns the path of this program, which is started again as guard of servers, as cell and to
/// load libraries.
pub fn own_path() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of this program")
}
