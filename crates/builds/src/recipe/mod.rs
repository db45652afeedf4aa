//! Makes builds of commits: checks out a commit, runs a shell command, and keeps what it made in
//! the store.
//!
//! ```text
//! repository.rs   which commit is it? (git.rs runs git)
//!      │
//! checkout.rs     its source, with submodules and the patch
//!      │
//! shell.rs        the recipe's command, with its log
//!      │
//! collect.rs      what the command made ──► the store
//! ```
//!
//! `making.rs` goes through these stages. A build is identified by its key: a hash over the commit,
//! the recipe, the patch, the engine, and what `toolchain.rs` knows of the machine. The store has
//! one build for each key.

mod checkout;
mod collect;
mod git;
mod making;
mod repository;
mod shell;
mod toolchain;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

pub use repository::Repository;
pub use shell::Interrupted;

use crate::error::BuildError;
use crate::hash;
use crate::manifest::Commit;
use crate::store::{self, Build, Store};
use making::Making;
use toolchain::Toolchain;

/// The largest size of a patch.
const PATCH_BYTES_MAX: u64 = 16 << 20;

/// The version of what a key is made of.
const KEY_VERSION: u32 = 1;

/// The way to make a build from a commit.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The engine that runs the build: `postgres`, `mysql` or `rocksdb`.
    pub engine: String,
    /// The repository.
    pub repository: Repository,
    /// The shell command that is run in the source.
    pub make: String,
    /// The path of what the command makes, in the source: a library, or the folder of an installed
    /// server, which contains `bin`.
    pub gives: PathBuf,
    /// A patch that is applied to each commit.
    pub patch: Option<Patch>,
}

/// A patch in the form of `git diff`.
#[derive(Clone, Debug)]
pub struct Patch {
    name: String,
    content: Vec<u8>,
    sha256: String,
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    /// A [`BuildError`] for a file that cannot be read or is too large.
    pub fn read(path: &Path) -> Result<Self, BuildError> {
        let refused = |why: String| BuildError::usage(why, "give a file in the form of `git diff`");

        let metadata = fs_err::metadata(path).map_err(|error| refused(error.to_string()))?;
        // A pipe or a device may never end.
        if !metadata.is_file() || metadata.len() > PATCH_BYTES_MAX {
            let limit = PATCH_BYTES_MAX >> 20;
            let path = path.display();
            return Err(refused(format!("`{path}` is not a regular file of at most {limit} MiB")));
        }

        let content = fs_err::read(path).map_err(|error| refused(error.to_string()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();

        Ok(Self { name, sha256: hash::of_bytes(&content), content })
    }
}

/// The reason why a commit has no build: its recipe fails, makes nothing that can be measured, or
/// its patch does not apply. Another commit may have a build.
#[derive(Debug, thiserror::Error)]
#[error("commit {} of `{}` does not build: {why}", commit.short(), repository.display())]
pub struct CommitFailure {
    /// The commit.
    pub commit: Commit,
    /// The repository.
    pub repository: PathBuf,
    /// The reason.
    pub why: String,
    /// The last lines of the recipe's output.
    pub log_tail: Vec<String>,
    /// The file with the recipe's output.
    pub log: PathBuf,
    help: String,
}

impl CommitFailure {
    /// Returns the next step for the user.
    pub fn help(&self) -> &str {
        &self.help
    }
}

/// The facts that decide what a build is. Its hash is the key.
#[derive(Serialize)]
struct KeyFacts<'a> {
    version: u32,
    engine: &'a str,
    commit: &'a str,
    make: &'a str,
    gives: &'a Path,
    patch_sha256: Option<&'a str>,
    toolchain: &'a Toolchain,
}

impl Recipe {
    /// Returns the build of a commit if the store has it.
    ///
    /// # Errors
    /// A [`BuildError`] if the build has changed since it was made.
    pub fn find(&self, store: &Store, commit: &Commit) -> anyhow::Result<Option<Build>> {
        self.making(store, commit)?.find(store)
    }

    /// Returns the build of a commit from the store, or makes it. Calls `progress` with a short
    /// text before each stage, and asks `is_stopped` several times a second while the recipe runs.
    ///
    /// # Errors
    /// A [`CommitFailure`] if this commit has no build, [`Interrupted`] if `is_stopped` said so.
    /// All other errors are the machine's or the user's, and hold for other commits too.
    pub fn build(
        &self,
        store: &Store,
        commit: &Commit,
        progress: &dyn Fn(&str),
        is_stopped: &dyn Fn() -> bool,
    ) -> anyhow::Result<Build> {
        let making = self.making(store, commit)?;
        if let Some(build) = making.find(store)? {
            return Ok(build);
        }

        // Another process may make the same build while this one waits.
        let lock = store.lock(progress)?;
        if let Some(build) = making.find(store)? {
            return Ok(build);
        }

        let partial = store.begin(&lock)?;
        let made = making.make(store, &lock, &partial, progress, is_stopped);
        if made.is_err() {
            let _ = store::remove_tree(&partial);
        }
        made
    }

    /// Returns the time that the recipe took for the commit that was built last.
    pub fn last_duration(&self, store: &Store) -> anyhow::Result<Option<Duration>> {
        let mut last = None;
        for (_, build) in store.list()? {
            // A manifest that cannot be read says nothing.
            let Ok(manifest) = build.map(|build| build.manifest) else { continue };
            let Some(made) = manifest.made else { continue };
            if manifest.engine == self.engine && made.make == self.make {
                last = last.max(Some((manifest.fetched_unix_s, made.duration_ms)));
            }
        }

        Ok(last.map(|(_, duration_ms)| Duration::from_millis(duration_ms)))
    }

    fn making<'a>(&'a self, store: &Store, commit: &'a Commit) -> anyhow::Result<Making<'a>> {
        let toolchain = Toolchain::of_environment();
        let facts = KeyFacts {
            version: KEY_VERSION,
            engine: &self.engine,
            commit: &commit.hash,
            make: &self.make,
            gives: &self.gives,
            patch_sha256: self.patch.as_ref().map(|patch| patch.sha256.as_str()),
            toolchain: &toolchain,
        };

        let key = hash::of_bytes(&serde_json::to_vec(&facts)?);
        let name = format!("{}-{}-{}", self.engine, commit.short(), &key[..8]);
        let log_path = store.downloads().join(format!("{name}.log"));
        Ok(Making { recipe: self, commit, key, name, toolchain, log_path })
    }
}
