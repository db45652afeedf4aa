//! The engines as a run uses them, one row each. A row finds builds and starts targets. Sessions
//! are static types, so a target hides them behind
//! [`RunningTarget`].

mod embedded;
pub mod libraries;
mod servers;
mod sql;
mod sqlite;

use engine::SetupError;
use plan::{Build, Engine};
use record::{BuiltCommit, FileHash};

use crate::prepare::trials::Configs;
use crate::targets::running::RunningTarget;
use crate::targets::site::CellSite;
use crate::targets::workloads::sql::LoadEngine;

/// An engine that assay can find, try and measure.
pub trait EngineRow: Sync {
    /// Finds a build, and lets it try its configs.
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts>;

    /// Finds the build of a cell, and starts its target on an empty directory or attaches to it.
    /// Leaves nothing behind if that fails.
    fn start(&self, cell: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>>;

    /// Connects a load rank to the target of a cell, which has this URL if it is a server.
    fn connect(&self, _url: Option<&str>) -> anyhow::Result<Box<dyn LoadEngine>> {
        anyhow::bail!("the engine runs inside assay, where load ranks can't reach it")
    }

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
    /// The commit that assay made the build from.
    pub commit: Option<BuiltCommit>,
}

impl BuildFacts {
    /// Returns the facts of an engine that is part of assay.
    fn bundled(version: &str) -> Self {
        Self { version: version.into(), source: "bundled".into(), files: Vec::new(), commit: None }
    }
}

/// Returns the folder of the database of a library, in its target's directory.
pub fn database_folder(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => sqlite::FOLDER,
        _ => libraries::DIRECTORY,
    }
}

/// Returns the row of an engine.
pub fn of(engine: Engine) -> &'static dyn EngineRow {
    match engine {
        Engine::Null => &embedded::Null,
        Engine::Sqlite => &sqlite::Sqlite,
        Engine::Postgres => &servers::POSTGRES,
        Engine::Mysql => &servers::MYSQL,
        Engine::RocksDb => &libraries::ROCKSDB,
        Engine::Library => &libraries::CUSTOM,
    }
}
