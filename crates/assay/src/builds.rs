//! The builds of a plan: finds them and says what they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use engine::Engine as _;
use engine::mysql::{self, Mysql};
use engine::postgres::{self, Postgres};
use engine::sqlite;
use plan::{Build, BuildSource, Engine, Plan};
use record::FileHash;

use crate::fetch::{self, Store, Stored, hash};
use crate::library;
use crate::outcome::UsageError;

/// An engine's name, as it is recorded.
pub fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => "sqlite",
        Engine::Postgres => "postgres",
        Engine::Mysql => "mysql",
        Engine::RocksDb => "rocksdb",
        Engine::Null => "null",
    }
}

/// Whether some target is a server that assay starts on this host.
pub fn has_local_server(plan: &Plan) -> bool {
    plan.targets.iter().any(|target| {
        let build = &plan.builds[target.build];
        build.engine != Engine::RocksDb && matches!(build.source, BuildSource::Installed(_))
    })
}

/// Finds the builds of a plan that these cells use. A server that assay doesn't start is asked for its version.
pub fn locate(
    plan: &Plan,
    cells: impl Iterator<Item = plan::Cell>,
) -> anyhow::Result<Vec<record::Build>> {
    let used: BTreeSet<usize> = cells.map(|cell| plan.targets[cell.target].build).collect();
    used.into_iter()
        .map(|index| &plan.builds[index])
        .map(|build| locate_one(build).with_context(|| format!("build `{}`", build.name)))
        .collect()
}

/// An installed build that a plan names.
pub struct Installed {
    /// What the engine is told to locate.
    pub place: String,
    /// The build of the store that it is; `None` for a directory of the user's or the distribution's build.
    stored: Option<Stored>,
}

/// Finds out what a plan means by `text`: a build of the store by name, spec or version; else what the engine itself
/// makes of it, a directory or the distribution's build.
pub fn installed(engine: Engine, text: &str) -> anyhow::Result<Installed> {
    // Without a place for builds there are none.
    let stored = match Store::of_user() {
        Ok(store) if Path::new(text).components().count() == 1 || is_spec(text) => {
            store.find(engine_name(engine), text)?
        }
        _ => None,
    };
    let place = match &stored {
        Some(build) => {
            fetch::check(build, build.manifest.quick_check(&build.folder))?;
            build.path().display().to_string()
        }
        None if is_spec(text) => {
            return Err(UsageError::new(
                format!("the build `{text}` was not fetched"),
                Some(format!(
                    "`assay fetch {text}` gets it; `assay builds` lists those that are here"
                )),
            )
            .into());
        }
        None => text.to_owned(),
    };
    Ok(Installed { place, stored })
}

/// Whether it is written as `assay fetch` takes it, as no directory of a build is.
fn is_spec(text: &str) -> bool {
    !Path::new(text).exists() && fetch::is_spec(text)
}

impl Installed {
    /// The files that make the build, with their hashes: those that the engine names, or what the store has noted.
    fn hashes(&self, named: &[PathBuf]) -> anyhow::Result<Vec<FileHash>> {
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
            fetch::check(stored, state)?;
            hashes.push(file);
        }
        Ok(hashes)
    }
}

fn locate_one(build: &Build) -> anyhow::Result<record::Build> {
    let (version, source, files) = match (build.engine, &build.source) {
        (Engine::Null, _) => (
            env!("CARGO_PKG_VERSION").to_owned(),
            "bundled".to_owned(),
            Vec::new(),
        ),
        (Engine::Sqlite, _) => (
            sqlite::version().to_owned(),
            "bundled".to_owned(),
            Vec::new(),
        ),
        (Engine::RocksDb, BuildSource::Installed(name)) => {
            let installed = installed(build.engine, name)?;
            let found = library::identify(Path::new(&installed.place))?;
            let files = installed.hashes(&[PathBuf::from(&found.path)])?;
            (found.version, found.path, files)
        }
        (Engine::Postgres, BuildSource::Url(url)) => (
            Postgres::attach(url.expose())?.version().to_owned(),
            url.redacted(),
            Vec::new(),
        ),
        (Engine::Postgres, BuildSource::Installed(name)) => {
            let installed = installed(build.engine, name)?;
            let found = postgres::locate(&installed.place)?;
            (
                found.version.text,
                found.bin_dir.display().to_string(),
                installed.hashes(&found.files)?,
            )
        }
        (Engine::Mysql, BuildSource::Url(url)) => (
            Mysql::attach(url.expose())?.version().to_owned(),
            url.redacted(),
            Vec::new(),
        ),
        (Engine::Mysql, BuildSource::Installed(name)) => {
            let installed = installed(build.engine, name)?;
            let found = mysql::locate(&installed.place)?;
            (
                found.version.text.clone(),
                found.program.display().to_string(),
                installed.hashes(&found.files)?,
            )
        }
        (Engine::Postgres | Engine::Mysql, BuildSource::Bundled)
        | (Engine::RocksDb, BuildSource::Bundled | BuildSource::Url(_)) => {
            unreachable!("a plan has no bundled server, and no library by URL")
        }
    };
    Ok(record::Build {
        name: build.name.clone(),
        engine: engine_name(build.engine).into(),
        version,
        source,
        files,
    })
}

fn file_hash(path: &Path) -> anyhow::Result<FileHash> {
    let (size_bytes, sha256) = hash::of_file(path)?;
    Ok(FileHash {
        path: path.display().to_string(),
        size_bytes,
        sha256,
    })
}
