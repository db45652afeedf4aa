//! The installed builds that a plan names: those of the store, the user's own directories, and the
//! distribution's.

use std::path::{Path, PathBuf};

use anyhow::Context;
use builds::{Spec, Store, hash};
use plan::{Build, BuildSource, Diagnostic, Engine, Place};
use record::{BuiltCommit, FileHash};

use super::commits::recorded;
use super::plan_file::refusal;
use crate::ground::failure::UsageError;

/// An installed build that a plan names.
pub struct Installed {
    /// The path or the name that the engine locates.
    pub place: String,
    /// The build in the store; `None` for the user's own directory or the distribution's build.
    stored: Option<builds::Build>,
}

impl Installed {
    /// Finds a build of a plan: in the store by name, spec or version. Otherwise the engine takes
    /// the text as a directory or as the distribution's build.
    pub fn of(build: &Build) -> anyhow::Result<Self> {
        let text = source_text(build).context("the plan's build is not an installed one")?;
        let stored = stored(build.engine, text)?;
        let place = match &stored {
            Some(build) => {
                build.check(build.manifest.quick_check(&build.folder))?;
                build.path().display().to_string()
            }
            None if is_spec(text) => return Err(not_fetched(&[text]).into()),
            None => text.to_owned(),
        };

        Ok(Self { place, stored })
    }

    /// Returns the commit that the build was made from, if Assay made it.
    pub fn commit(&self) -> Option<BuiltCommit> {
        recorded(&self.stored.as_ref()?.manifest)
    }

    /// Returns the build's files with their hashes: the files that the store's manifest lists, or
    /// else `engine_files`.
    pub fn hashes(&self, engine_files: &[PathBuf]) -> anyhow::Result<Vec<FileHash>> {
        let Some(stored) = &self.stored else {
            return engine_files.iter().map(|file| file_hash(file)).collect();
        };

        let mut hashes = Vec::new();
        for program in &stored.manifest.programs {
            let file = file_hash(&stored.folder.join(&program.path))?;
            let state = if file.sha256 == program.sha256 {
                Ok(())
            } else {
                Err(format!("`{}` has changed", file.path))
            };

            stored.check(state)?;
            hashes.push(file);
        }
        Ok(hashes)
    }
}

/// Returns the spec that `assay fetch` must download for a build, if it is missing.
pub fn missing_spec(build: &Build) -> anyhow::Result<Option<&str>> {
    match source_text(build).filter(|text| is_spec(text)) {
        Some(text) => Ok(stored(build.engine, text)?.is_none().then_some(text)),
        None => Ok(None),
    }
}

/// Returns the error that lists the builds to fetch, with the places that name them.
pub fn not_fetched_at(missing: &[(&str, Place)]) -> Option<Diagnostic> {
    let (&(_, first), others) = missing.split_first()?;

    let mut specs: Vec<&str> = Vec::new();
    for (spec, _) in missing {
        if !specs.contains(spec) {
            specs.push(spec);
        }
    }

    let UsageError { message, help } = not_fetched(&specs);

    let mut diagnostic = refusal("build::not-fetched", first, message, help.as_deref());
    for (_, place) in others {
        diagnostic.also(*place, "");
    }

    Some(diagnostic)
}

fn not_fetched(specs: &[&str]) -> UsageError {
    let (message, them) = match specs {
        [spec] => (format!("the build `{spec}` is not downloaded"), "it"),
        _ => {
            let (count, names) = (specs.len(), specs.join("`, `"));
            (format!("{count} builds are not downloaded: `{names}`"), "them")
        }
    };

    let specs = specs.join(" ");
    let help = format!(
        "`assay fetch {specs}` downloads {them}; `assay builds` lists the builds on this machine"
    );
    UsageError::new(message, Some(help))
}

/// Returns the source of an installed build in plans.
fn source_text(build: &Build) -> Option<&str> {
    match &build.source {
        BuildSource::Installed(text) => Some(text),
        BuildSource::Commit(_) | BuildSource::Bundled | BuildSource::Url(_) => None,
    }
}

fn stored(engine: Engine, text: &str) -> anyhow::Result<Option<builds::Build>> {
    // A user without a directory for builds has no builds.
    match Store::of_user() {
        Ok(store) if Path::new(text).components().count() == 1 || is_spec(text) => {
            store.find(engine.name(), text)
        }
        _ => Ok(None),
    }
}

/// Returns true if `text` is a spec of `assay fetch` and not a path that exists.
fn is_spec(text: &str) -> bool {
    !Path::new(text).exists() && Spec::parse(text).is_ok()
}

fn file_hash(path: &Path) -> anyhow::Result<FileHash> {
    let (size_bytes, sha256) = hash::of_file(path)?;
    Ok(FileHash { path: path.display().to_string(), size_bytes, sha256 })
}
