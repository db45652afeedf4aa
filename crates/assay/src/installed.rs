//! Installed builds: those of the store that a plan names, and directories of the user's or of the distribution.

use std::path::{Path, PathBuf};

use anyhow::Context;
use builds::{Spec, Store, hash};
use plan::{Build, BuildSource, Diagnostic, Engine, Place};
use record::FileHash;

use crate::outcome::UsageError;
use crate::plan_file::refusal;

/// An installed build that a plan names.
pub struct Installed {
    /// What the engine is told to locate.
    pub place: String,
    /// The build of the store that it is; `None` for a directory of the user's or the distribution's build.
    stored: Option<builds::Build>,
}

impl Installed {
    /// Finds out what a plan means by a build: one of the store by name, spec or version; else what the engine itself
    /// makes of it, a directory or the distribution's build.
    pub fn of(build: &Build) -> anyhow::Result<Self> {
        let text = text_of(build).context("it is not an installed build")?;
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

    /// The files that make the build, with their hashes: those that the engine names, or what the store has noted.
    pub fn hashes(&self, named: &[PathBuf]) -> anyhow::Result<Vec<FileHash>> {
        let Some(stored) = &self.stored else {
            return named.iter().map(|file| file_hash(file)).collect();
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

/// What `assay fetch` would have to get for a build.
pub fn missing_spec(build: &Build) -> anyhow::Result<Option<&str>> {
    match text_of(build).filter(|text| is_spec(text)) {
        Some(text) => Ok(stored(build.engine, text)?.is_none().then_some(text)),
        None => Ok(None),
    }
}

/// Says which builds are to be fetched, at the places of those that name them.
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
        [spec] => (format!("the build `{spec}` was not fetched"), "it"),
        _ => {
            let (count, names) = (specs.len(), specs.join("`, `"));
            (
                format!("{count} builds were not fetched: `{names}`"),
                "them",
            )
        }
    };
    let specs = specs.join(" ");
    let help =
        format!("`assay fetch {specs}` gets {them}; `assay builds` lists those that are here");
    UsageError::new(message, Some(help))
}

fn text_of(build: &Build) -> Option<&str> {
    match &build.source {
        BuildSource::Installed(text) => Some(text),
        BuildSource::Bundled | BuildSource::Url(_) => None,
    }
}

fn stored(engine: Engine, text: &str) -> anyhow::Result<Option<builds::Build>> {
    // Without a place for builds there are none.
    match Store::of_user() {
        Ok(store) if Path::new(text).components().count() == 1 || is_spec(text) => {
            store.find(engine.name(), text)
        }
        _ => Ok(None),
    }
}

/// Whether it is written as `assay fetch` takes it, as no directory of a build is.
fn is_spec(text: &str) -> bool {
    !Path::new(text).exists() && Spec::parse(text).is_ok()
}

fn file_hash(path: &Path) -> anyhow::Result<FileHash> {
    let (size_bytes, sha256) = hash::of_file(path)?;
    Ok(FileHash {
        path: path.display().to_string(),
        size_bytes,
        sha256,
    })
}
