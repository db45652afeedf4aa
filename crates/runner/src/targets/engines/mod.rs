//! The engines as a run uses them, one row each. A row starts targets. Sessions are static types, so
//! a target hides them behind [`RunningTarget`].
//!
//! The rows that find builds are those of [`prepare::engines`](crate::prepare::engines).

mod embedded;
pub mod libraries;
mod servers;
mod sql;
mod sqlite;

use plan::Engine;

use crate::targets::running::RunningTarget;
use crate::targets::site::CellSite;
use crate::targets::workloads::sql::LoadEngine;

/// An engine whose targets assay can start.
pub trait TargetStarter: Sync {
    /// Finds the build of a cell, and starts its target on an empty directory or attaches to it.
    /// Leaves nothing behind if that fails.
    fn start(&self, cell: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>>;

    /// Connects a load rank to the target of a cell, which has this URL if it is a server.
    fn connect(&self, _url: Option<&str>) -> anyhow::Result<Box<dyn LoadEngine>> {
        anyhow::bail!("the engine runs inside assay, where load ranks cannot reach it")
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
pub fn of(engine: Engine) -> &'static dyn TargetStarter {
    match engine {
        Engine::Null => &embedded::Null,
        Engine::Sqlite => &sqlite::Sqlite,
        Engine::Postgres => &servers::POSTGRES,
        Engine::Mysql => &servers::MYSQL,
        Engine::RocksDb => &libraries::ROCKSDB,
        Engine::Library => &libraries::CUSTOM,
    }
}
