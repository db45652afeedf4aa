//! SQLite: the library that is part of assay, or a shared one in a process of its own.

use std::path::{Path, PathBuf};

use engine::{LibraryConfig, sqlite};
use plan::{BUNDLED, Build, BuildSource, Engine};

use super::sql::SqlTarget;
use super::{BuildFacts, EngineRow};
use crate::ground::failure::UsageError;
use crate::prepare::installed::Installed;
use crate::prepare::library;
use crate::prepare::trials::{Configs, Trial};
use crate::targets::running::{Leftovers, RunningTarget};
use crate::targets::site::CellSite;

/// The folder of a database, in its target's directory.
pub const FOLDER: &str = "sqlite";

/// The word in plans for the library of the system.
const DISTRIBUTION: &str = "distribution";

/// SQLite.
pub struct Sqlite;

impl EngineRow for Sqlite {
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        if build.source == BuildSource::Bundled {
            return Ok(find_bundled(configs));
        }

        let installed = Installed::of(build)?;
        let path = path_of(&installed)?;
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

    fn start(&self, cell: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
        let build = cell.build();
        let library = if build.source == BuildSource::Bundled {
            sqlite::Library::bundled()
        } else {
            sqlite::Library::open(&path_of(&Installed::of(build)?)?)?
        };

        let data_dir = cell.empty_directory(FOLDER)?;
        let opened = if cell.copy_kept_database(&data_dir)? {
            sqlite::Sqlite::open_with(library, data_dir.path(), &cell.config().set)
        } else {
            sqlite::Sqlite::start(library, data_dir.path(), &cell.config().set)
        };

        match opened {
            Ok(database) => {
                let data = data_dir.path().to_owned();
                Ok(Box::new(SqlTarget::new(database, Leftovers::database(data_dir, data))))
            }
            Err(error) => {
                // The next run wipes files that can't be removed now.
                let _ = data_dir.remove();
                Err(error.into())
            }
        }
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
fn path_of(installed: &Installed) -> anyhow::Result<PathBuf> {
    let place = Path::new(&installed.place);
    let root = match installed.place.as_str() {
        DISTRIBUTION => Path::new("/"),
        _ if place.is_dir() => place,
        _ => return Ok(place.to_owned()),
    };

    builds::find_library(Engine::Sqlite.name(), root).ok_or_else(|| {
        let help = format!(
            "write `{BUNDLED}`, the path of a shared library, or a version to download, as in `sqlite@3.46.1`"
        );
        UsageError::new(format!("`{}` has no shared library of SQLite", root.display()), Some(help))
            .into()
    })
}
