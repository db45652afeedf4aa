//! The version of this program.

use std::sync::LazyLock;

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
