//! Makes one build: its source, its log, its recipe's end, and its place in the store.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context;

use super::collect::{NotGiven, collect};
use super::shell::{self, Interrupted};
use super::toolchain::Toolchain;
use super::{CommitFailure, Recipe, checkout};
use crate::error::BuildError;
use crate::fetch::unix_now_s;
use crate::inspect::{self, FoundBuild, ProductVersion};
use crate::manifest::{Commit, FORMAT, Made, MadePatch, Manifest, Program};
use crate::sources::DISK_FULL_HELP;
use crate::store::{self, Build, Lock, Store};
use crate::unprivileged::other_user;
use crate::waiting::now;

/// Lines of the log that a failure shows.
const LOG_LINES: usize = 20;

/// The end of a log that is read for its last lines.
const LOG_END_BYTES: u64 = 64 << 10;

/// The text that GCC prints when the kernel ends it, usually for lack of memory.
const KILLED_COMPILER: &str = "Killed signal terminated program";

/// A build that is being made.
pub struct Making<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) commit: &'a Commit,
    pub(super) key: String,
    pub(super) name: String,
    pub(super) toolchain: Toolchain,
    pub(super) log_path: PathBuf,
}

/// The files that a recipe made.
struct Collected {
    place: FoundBuild,
    version: ProductVersion,
}

impl Making<'_> {
    /// Returns the build if the store has it.
    pub fn find(&self, store: &Store) -> anyhow::Result<Option<Build>> {
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
    pub fn make(
        &self,
        store: &Store,
        lock: &Lock,
        partial: &Path,
        progress: &dyn Fn(&str),
        is_stopped: &dyn Fn() -> bool,
    ) -> anyhow::Result<Build> {
        let Recipe { repository, make, .. } = self.recipe;

        let (source, home) = (partial.join("source"), partial.join("home"));
        let described = repository.describe(self.commit)?;
        let mut log = self.begin_log()?;

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

        progress("adding it to the store");
        let collected = self.collect(&source, &partial.join("root"))?;
        for folder in [&source, &home] {
            store::remove_tree(folder)?;
        }
        fs_err::copy(&self.log_path, partial.join("build.log"))?;

        let manifest = self.manifest(partial, collected, described, duration)?;
        let build = store.finish(lock, partial, manifest)?;
        // The build has a copy of it.
        let _ = fs_err::remove_file(&self.log_path);

        Ok(build)
    }

    /// Creates the log, and writes what is made into it.
    fn begin_log(&self) -> anyhow::Result<fs_err::File> {
        let Recipe { repository, make, .. } = self.recipe;
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
    fn failed_recipe(&self, status: ExitStatus) -> anyhow::Result<anyhow::Error> {
        let tail = last_lines(&self.log_path)?;
        if tail.iter().any(|line| line.contains("No space left on device")) {
            let what = format!("cannot build commit {}: the disk is full", self.commit.short());
            return Ok(BuildError::new(what, DISK_FULL_HELP).into());
        }

        let is_killed = tail.iter().any(|line| line.contains(KILLED_COMPILER));
        if is_killed || shell::is_ended_by_others(status) {
            let what = format!("the build of commit {} was killed", self.commit.short());
            let help = format!(
                "it may have run out of memory: run `make` with fewer jobs, or try again; the output is in `{}`",
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
    fn collect(&self, source: &Path, root: &Path) -> anyhow::Result<Collected> {
        let copy = match collect(source, &self.recipe.gives, root) {
            Ok(copy) => copy,
            Err(error) => match error.downcast_ref::<NotGiven>() {
                Some(why) => return Err(self.useless(&format!("cannot be taken: {why}"))?),
                None => return Err(error),
            },
        };

        let Some(place) = inspect::find(&copy) else {
            return Err(self.useless("is not a build of a supported engine")?);
        };

        let engine = &self.recipe.engine;
        if place.engine != engine {
            return Err(self.useless(&format!("is a build of {}, not {engine}", place.engine))?);
        }

        match inspect::version(&place, &place.programs[0]) {
            Ok(version) => Ok(Collected { place, version }),
            Err(error) => Err(self.useless(&format!("cannot be used: {error}"))?),
        }
    }

    /// Returns the error for a recipe that succeeded and made nothing that can be measured.
    fn useless(&self, why: &str) -> anyhow::Result<anyhow::Error> {
        let why = format!("`{}`, which it should give, {why}", self.recipe.gives.display());
        let help = format!(
            "`gives` names the library, or the directory that has `bin` of an installed server; \
            the output of the recipe is in `{}`",
            self.log_path.display()
        );

        Ok(self.failure(why, last_lines(&self.log_path)?, help).into())
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

    /// Returns the manifest of what was collected below the folder `partial`.
    fn manifest(
        &self,
        partial: &Path,
        collected: Collected,
        described: String,
        duration: Duration,
    ) -> anyhow::Result<Manifest> {
        let Collected { place, version } = collected;
        let relative = |path: &Path| path.strip_prefix(partial).unwrap_or(path).to_path_buf();

        let mut programs = Vec::new();
        for program in place.programs.iter().filter(|program| program.is_file()) {
            programs.push(Program::read(partial, relative(program))?);
        }

        Ok(Manifest {
            format: FORMAT,
            name: self.name.clone(),
            engine: place.engine.into(),
            product: version.product.into(),
            version: version.number,
            version_text: version.text,
            spec: self.spec(&described),
            fetched_unix_s: unix_now_s(),
            path: relative(&place.path),
            compiled: None,
            made: Some(self.made(described, duration)),
            artifacts: Vec::new(),
            programs,
            files_sha256: None,
        })
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
        let patch = self
            .recipe
            .patch
            .as_ref()
            .map(|patch| MadePatch { name: patch.name.clone(), sha256: patch.sha256.clone() });

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
