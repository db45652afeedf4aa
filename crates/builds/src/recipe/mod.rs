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
//! A build is identified by its key: a hash over the commit, the recipe, the patch, the engine, and
//! what `toolchain.rs` knows of the machine. The store has one build for each key.

mod checkout;
mod collect;
mod git;
mod repository;
mod shell;
mod toolchain;

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

pub use repository::Repository;
pub use shell::Interrupted;

use crate::error::BuildError;
use crate::fetch::unix_now_s;
use crate::hash;
use crate::inspect::{self, FoundBuild};
use crate::manifest::{Commit, FORMAT, Made, MadePatch, Manifest, Program};
use crate::sources::DISK_FULL_HELP;
use crate::store::{self, Build, Lock, Store};
use crate::unprivileged::other_user;
use collect::{NotGiven, collect};
use toolchain::Toolchain;

/// Lines of the log that a failure shows.
const LOG_LINES: usize = 20;

/// The end of a log that is read for its last lines.
const LOG_END_BYTES: u64 = 64 << 10;

/// The largest size of a patch.
const PATCH_BYTES_MAX: u64 = 16 << 20;

/// What GCC prints when the kernel ends it, usually for lack of memory.
const KILLED_COMPILER: &str = "Killed signal terminated program";

/// The version of what a key is made of.
const KEY_VERSION: u32 = 1;

/// How a build is made from a commit.
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
    /// A [`BuildError`] for a file that can't be read or is too large.
    pub fn read(path: &Path) -> Result<Self, BuildError> {
        let help = "give a file in the form of `git diff`";
        let mut content = Vec::new();
        // A pipe or a device may never end.
        let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
        let read = fs_err::File::open(path)
            .and_then(|file| file.take(PATCH_BYTES_MAX + 1).read_to_end(&mut content));
        if let Err(error) = read {
            return Err(BuildError::usage(error.to_string(), help));
        }
        if !is_file || content.len() as u64 > PATCH_BYTES_MAX {
            let limit = PATCH_BYTES_MAX >> 20;
            let message =
                format!("`{}` is not a regular file of at most {limit} MiB", path.display());
            return Err(BuildError::usage(message, help));
        }
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
    /// What went wrong.
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

/// What decides what a build is. Its hash is the key.
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

/// A build that is being made.
struct Making<'a> {
    recipe: &'a Recipe,
    commit: &'a Commit,
    key: String,
    name: String,
    toolchain: Toolchain,
    log_path: PathBuf,
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
            // A manifest that can't be read says nothing.
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

impl Making<'_> {
    fn find(&self, store: &Store) -> anyhow::Result<Option<Build>> {
        let Some(build) = store.by_name(&self.name)? else {
            return Ok(None);
        };
        let is_this = build.manifest.made.as_ref().is_some_and(|made| made.key == self.key);
        if !is_this {
            return Err(store::name_is_taken(&self.name));
        }
        build.check(build.manifest.quick_check(&build.folder))?;
        Ok(Some(build))
    }

    /// Makes the build in the folder `partial`, and adds it to the store.
    fn make(
        &self,
        store: &Store,
        lock: &Lock,
        partial: &Path,
        progress: &dyn Fn(&str),
        is_stopped: &dyn Fn() -> bool,
    ) -> anyhow::Result<Build> {
        let Recipe { repository, make, .. } = self.recipe;
        let (source, home, root) =
            (partial.join("source"), partial.join("home"), partial.join("root"));
        let mut log = self.begin_log(repository, make)?;
        let described = repository.describe(self.commit)?;

        progress(&format!("checking out {}", self.commit.short()));
        checkout::check_out(repository, self.commit, &source, &mut log)?;
        self.apply_patch(&source)?;
        fs_err::create_dir(&home)?;
        for folder in [&source, &home] {
            give_to_other_user(folder)?;
        }

        progress(&format!("running its recipe, with the output in `{}`", self.log_path.display()));
        let started_at = now();
        let status = shell::run(make, &source, &home, &log, is_stopped)?;
        let duration = started_at.elapsed();
        let Some(status) = status else {
            return Err(Interrupted { commit: self.commit.short().to_owned() }.into());
        };
        if !status.success() {
            return Err(self.failed_recipe(status)?);
        }

        let (place, version) = self.collect(&source, &root)?;
        progress("adding it to the store");
        for folder in [&source, &home] {
            store::remove_tree(folder)?;
        }
        fs_err::copy(&self.log_path, partial.join("build.log"))?;
        let relative = |path: &Path| path.strip_prefix(partial).unwrap_or(path).to_path_buf();
        let programs = place.programs.iter().filter(|program| program.is_file());
        let programs = programs.map(|program| Program::read(partial, relative(program)));
        let manifest = Manifest {
            format: FORMAT,
            name: self.name.clone(),
            engine: place.engine.into(),
            product: version.product.into(),
            version: version.number,
            version_text: version.text,
            spec: self.spec(&described),
            fetched_unix_s: unix_now_s(),
            path: relative(&place.path),
            made: Some(self.made(described, duration)),
            artifacts: Vec::new(),
            programs: programs.collect::<anyhow::Result<_>>()?,
            files_sha256: None,
        };
        let build = store.finish(lock, partial, manifest)?;
        // The build has a copy of it.
        let _ = fs_err::remove_file(&self.log_path);
        Ok(build)
    }

    /// Creates the log, and writes what is made into it.
    fn begin_log(&self, repository: &Repository, make: &str) -> anyhow::Result<fs_err::File> {
        // Others may be able to write to the folder: a link there is not followed.
        let _ = fs_err::remove_file(&self.log_path);
        let mut log = fs_err::OpenOptions::new()
            .append(true)
            .read(true)
            .create_new(true)
            .open(&self.log_path)?;
        let path = repository.path().display();
        writeln!(log, "assay: commit {} of `{path}`: {}", self.commit.hash, self.commit.subject)?;
        writeln!(log, "assay: {make}")?;
        Ok(log)
    }

    fn apply_patch(&self, source: &Path) -> anyhow::Result<()> {
        let Some(patch) = &self.recipe.patch else {
            return Ok(());
        };
        let Err(error) = checkout::apply_patch(source, &patch.content)? else {
            return Ok(());
        };
        let why = format!("the patch `{}` does not apply: {error}", patch.name);
        let help = "make the patch with `git diff` on this commit";
        Err(self.failure(why, Vec::new(), help.into()).into())
    }

    /// Returns the error for a recipe that ended with `status`.
    fn failed_recipe(&self, status: std::process::ExitStatus) -> anyhow::Result<anyhow::Error> {
        let tail = last_lines(&self.log_path)?;
        if tail.iter().any(|line| line.contains("No space left on device")) {
            let what = format!("cannot build commit {}: the disk is full", self.commit.short());
            return Ok(BuildError::new(what, DISK_FULL_HELP).into());
        }
        let is_killed = tail.iter().any(|line| line.contains(KILLED_COMPILER));
        if is_killed || shell::is_ended_by_others(status) {
            let what = format!("the build of commit {} was killed", self.commit.short());
            let help = format!(
                "maybe memory was short: let `make` use fewer jobs, or try again; the output is in `{}`",
                self.log_path.display()
            );
            return Ok(BuildError::new(what, help).into());
        }
        let why = format!("its recipe failed with {status}");
        let help = format!(
            "correct `make` in the plan, or choose another commit; the whole output is in `{}`",
            self.log_path.display()
        );
        Ok(self.failure(why, tail, help).into())
    }

    /// Takes what the recipe made, and finds the engine and its version in it.
    fn collect(
        &self,
        source: &Path,
        root: &Path,
    ) -> anyhow::Result<(FoundBuild, inspect::ProductVersion)> {
        let gives = &self.recipe.gives;
        let useless = |why: String| -> anyhow::Result<anyhow::Error> {
            let help = format!(
                "`gives` names the library, or the folder that has `bin` of an installed server; \
                the output of the recipe is in `{}`",
                self.log_path.display()
            );
            let why = format!("`{}`, which it should give, {why}", gives.display());
            Ok(self.failure(why, last_lines(&self.log_path)?, help).into())
        };

        let copy = match collect(source, gives, root) {
            Ok(copy) => copy,
            Err(error) => match error.downcast_ref::<NotGiven>() {
                Some(why) => return Err(useless(format!("can't be taken: {why}"))?),
                None => return Err(error),
            },
        };
        let Some(place) = inspect::find(&copy) else {
            return Err(useless("is no build of a supported engine".into())?);
        };
        let engine = &self.recipe.engine;
        if place.engine != engine {
            return Err(useless(format!("is a build of {}, not {engine}", place.engine))?);
        }
        match inspect::version(&place, &place.programs[0]) {
            Ok(version) => Ok((place, version)),
            Err(error) => Err(useless(format!("can't be used: {error}"))?),
        }
    }

    fn failure(&self, why: String, log_tail: Vec<String>, help: String) -> CommitFailure {
        CommitFailure {
            commit: self.commit.clone(),
            repository: self.recipe.repository.path().to_path_buf(),
            why,
            log_tail,
            log: self.log_path.clone(),
            help,
        }
    }

    /// Returns the source in one line: `git:/src/rocksdb@v9.9.3 + fix.diff`.
    fn spec(&self, described: &str) -> String {
        let spec = format!("git:{}@{described}", self.recipe.repository.path().display());
        match &self.recipe.patch {
            Some(patch) => format!("{spec} + {}", patch.name),
            None => spec,
        }
    }

    fn made(&self, described: String, duration: Duration) -> Made {
        let patch = self.recipe.patch.as_ref();
        let patch =
            patch.map(|patch| MadePatch { name: patch.name.clone(), sha256: patch.sha256.clone() });
        Made {
            key: self.key.clone(),
            repository: self.recipe.repository.path().to_path_buf(),
            commit: self.commit.clone(),
            described,
            make: self.recipe.make.clone(),
            gives: self.recipe.gives.clone(),
            patch,
            compilers: self.toolchain.compilers.clone(),
            flags: self.toolchain.flags.clone(),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a build takes minutes, and nothing is measured")]
fn now() -> Instant {
    Instant::now()
}

/// Gives a folder with all that is in it to the user who runs the recipe, if that is another one.
/// Nothing of that user runs yet.
fn give_to_other_user(folder: &Path) -> anyhow::Result<()> {
    let Some((user, group)) = other_user() else {
        return Ok(());
    };
    if folder.is_dir() && !folder.is_symlink() {
        for entry in fs_err::read_dir(folder)? {
            give_to_other_user(&entry?.path())?;
        }
    }
    Ok(fs_err::os::unix::fs::lchown(folder, Some(user), Some(group))?)
}

/// Returns the last lines of a log.
fn last_lines(path: &Path) -> anyhow::Result<Vec<String>> {
    let mut file = fs_err::File::open(path).context("cannot read the log")?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_END_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LOG_END_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(LOG_LINES);
    Ok(lines[first..].iter().map(|line| (*line).to_owned()).collect())
}
