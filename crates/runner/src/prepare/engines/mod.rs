//! The engines as they are prepared, one row each. A row finds builds, and lets them try their
//! configs. The rows that start targets are those of [`targets::engines`](crate::targets::engines).

pub mod libraries;
pub mod network;
pub mod servers;
pub mod sqlite;

use engine::SetupError;
use plan::{Build, Engine};
use record::{BuiltCommit, FileHash};

use super::trials::Configs;

/// An engine whose builds Assay can find and try.
pub trait BuildFinder: Sync {
    /// Finds a build, and lets it try its configs.
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts>;

    /// Checks the URL of a server that already runs.
    fn check_url(&self, _: &str) -> Result<(), SetupError> {
        Ok(())
    }
}

/// The version, the place and the files of a build.
pub struct BuildFacts {
    /// The version, as the engine reports it.
    pub version: String,
    /// The directory or URL.
    pub source: String,
    /// The files.
    pub files: Vec<FileHash>,
    /// The commit that Assay made the build from.
    pub commit: Option<BuiltCommit>,
}

impl BuildFacts {
    /// Returns the facts of an engine that is part of assay.
    fn bundled(version: &str) -> Self {
        Self { version: version.into(), source: "bundled".into(), files: Vec::new(), commit: None }
    }
}

/// The engine that stores nothing, which is a part of assay.
struct Null;

impl BuildFinder for Null {
    fn find(&self, _: &Build, _: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        Ok(BuildFacts::bundled(env!("CARGO_PKG_VERSION")))
    }
}

/// Returns the row of an engine.
pub fn of(engine: Engine) -> &'static dyn BuildFinder {
    match engine {
        Engine::Null => &Null,
        Engine::Sqlite => &sqlite::Sqlite,
        Engine::Postgres => &servers::POSTGRES,
        Engine::Mysql => &servers::MYSQL,
        Engine::RocksDb | Engine::Library => &libraries::Libraries,
    }
}
