//! What assay does with an engine besides using its sessions: a row for each. Sessions are static types, so a row brings
//! its target up, has the cell measured and takes it down again.

mod embedded;
pub mod rocksdb;
mod servers;

use engine::SetupError;
use plan::{Build, Engine};
use record::{FileHash, Status};

use crate::run::running::Running;
use crate::trials::Configs;

/// An engine, as it is found, tried and measured.
pub trait EngineRow: Sync {
    /// Finds a build, and has it try its configs.
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<Found>;

    /// Brings up the target of a cell, runs the cell's steps on it, and takes it down.
    fn measure(&self, cell: &mut Running<'_>) -> anyhow::Result<Status>;

    /// Checks the URL of a server that runs already.
    fn check_url(&self, _: &str) -> Result<(), SetupError> {
        Ok(())
    }
}

/// What a build is.
pub struct Found {
    /// The version, as the engine reports it.
    pub version: String,
    /// Where it was found.
    pub source: String,
    /// The files that make it.
    pub files: Vec<FileHash>,
}

impl Found {
    /// Returns an engine that is part of assay.
    fn bundled(version: &str) -> Self {
        Self {
            version: version.into(),
            source: "bundled".into(),
            files: Vec::new(),
        }
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
