//! Which assay this is.

use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::Context;
use record::Assay;

/// The build that runs: `build.rs` asks git.
pub static ASSAY: LazyLock<Assay> = LazyLock::new(|| Assay {
    version: env!("CARGO_PKG_VERSION").into(),
    git_hash: option_env!("ASSAY_GIT_HASH").map(str::to_owned),
    git_dirty: option_env!("ASSAY_GIT_DIRTY").map(|dirty| dirty == "true"),
    profile: option_env!("ASSAY_PROFILE").map(str::to_owned),
});

/// [`ASSAY`] as `--version` prints it.
pub static TEXT: LazyLock<String> = LazyLock::new(|| ASSAY.to_string());

/// Returns this program, which guards servers when it is told to.
pub fn own_path() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("this program's own path is not known")
}
