//! SQLite: the library that is part of Assay, or a shared one.

use std::path::{Path, PathBuf};

use engine::{LibraryConfig, sqlite};
use plan::{Build, BuildSource, Engine};

use super::{BuildFacts, BuildFinder};
use crate::prepare::installed::{Installed, library_in};
use crate::prepare::library;
use crate::prepare::trials::{Configs, Trial};

/// The word in plans for the library of the system.
const DISTRIBUTION: &str = "distribution";

/// SQLite.
pub struct Sqlite;

impl BuildFinder for Sqlite {
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        if build.source == BuildSource::Bundled {
            return Ok(find_bundled(configs));
        }

        let installed = Installed::of(build)?;
        let path = library_path(&installed)?;
        let identity = library::identify(Engine::Sqlite, &path)?;

        for (&config, &target) in &configs.targets {
            let path = path.clone();
            let pragmas = LibraryConfig {
                set: configs.file.plan.configs[config].set.clone(),
                ..LibraryConfig::default()
            };
            configs.trials.push(Trial {
                config,
                target,
                version: format!("SQLite {}", identity.version),
                try_config: Box::new(move || library::try_config(Engine::Sqlite, &path, &pragmas)),
            });
        }

        Ok(BuildFacts {
            files: installed.hashes(&[PathBuf::from(&identity.path)])?,
            version: identity.version,
            source: identity.path,
            commit: installed.commit(),
        })
    }
}

/// Returns the facts of the bundled library, and lets it try its configs.
fn find_bundled(configs: &mut Configs<'_>) -> BuildFacts {
    let bundled = sqlite::Library::bundled();
    let version = bundled.version();

    configs.each(&format!("SQLite {version}"), move |config, _| {
        Ok(sqlite::Sqlite::try_config(bundled, &config.set)?)
    });

    BuildFacts::bundled(version)
}

/// Returns the path of the library of a build, which may be a directory that has one.
pub fn library_path(installed: &Installed) -> anyhow::Result<PathBuf> {
    match installed.place.as_str() {
        DISTRIBUTION => library_in(Engine::Sqlite, Path::new("/")),
        _ => installed.library(Engine::Sqlite),
    }
}
