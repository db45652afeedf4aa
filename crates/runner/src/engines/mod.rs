//! The engines as the session uses them, one row each. Sessions are static types, so a row starts
//! its target, measures the cell, and stops the target.

mod embedded;
pub mod rocksdb;
mod servers;

use engine::SetupError;
use plan::{Build, Engine};
use record::{FileHash, Status};

use crate::before::trials::Configs;
use crate::cell::cell_run::CellRun;
use crate::remote::{LoadRank, RankCell};

/// An engine that assay can find, try and measure.
pub trait EngineRow: Sync {
    /// Finds a build, and lets it try its configs.
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts>;

    /// Starts the target of a cell, runs the cell's steps on it, and stops it.
    fn measure(&self, cell: &mut CellRun<'_>) -> anyhow::Result<Status>;

    /// Connects a load rank to the target of a cell, and makes the load of its steps.
    fn serve(&self, _: &mut LoadRank<'_>, _: &RankCell<'_>) -> anyhow::Result<()> {
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
    /// Its directory or URL.
    pub source: String,
    /// Its files.
    pub files: Vec<FileHash>,
}

impl BuildFacts {
    /// Returns the facts of an engine that is part of assay.
    fn bundled(version: &str) -> Self {
        Self { version: version.into(), source: "bundled".into(), files: Vec::new() }
    }
}

/// Returns the row of an engine.
pub fn of(engine: Engine) -> &'static dyn EngineRow {
    match engine {
        Engine::Null => &embedded::Null,
        Engine::Sqlite => &embedded::Sqlite,
        Engine::Postgres => &servers::POSTGRES,
        Engine::Mysql => &servers::MYSQL,
        Engine::RocksDb => &rocksdb::RocksDb,
    }
}
