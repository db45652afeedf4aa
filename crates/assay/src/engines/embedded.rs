//! The engines that are part of assay.

use engine::{null, sqlite};
use plan::Build;
use record::Status;

use super::{EngineRow, Found};
use crate::run::running::Running;
use crate::trials::Configs;

/// Keeps nothing.
pub struct Null;

impl EngineRow for Null {
    fn find(&self, _: &Build, _: &mut Configs<'_>) -> anyhow::Result<Found> {
        Ok(Found::bundled(env!("CARGO_PKG_VERSION")))
    }

    fn measure(&self, cell: &mut Running<'_>) -> anyhow::Result<Status> {
        cell.measure(null::Null, |cell, engine| cell.sql(engine, false))
    }
}

/// A database file.
pub struct Sqlite;

impl EngineRow for Sqlite {
    fn find(&self, _: &Build, configs: &mut Configs<'_>) -> anyhow::Result<Found> {
        let version = sqlite::version();
        configs.each(&format!("SQLite {version}"), |_, config, _| {
            Ok(sqlite::Sqlite::try_config(&config.set)?)
        })?;
        Ok(Found::bundled(version))
    }

    fn measure(&self, cell: &mut Running<'_>) -> anyhow::Result<Status> {
        let data_dir = cell.empty_directory("sqlite")?;
        match sqlite::Sqlite::start(data_dir.path(), &cell.config().set) {
            Ok(database) => {
                let result = cell.measure(database, |cell, engine| cell.sql(engine, false));
                cell.leave(Some(data_dir), result)
            }
            Err(error) => {
                // Nothing in it tells why; what can't be removed now is wiped by the next run.
                let _ = data_dir.remove();
                Err(error.into())
            }
        }
    }
}
