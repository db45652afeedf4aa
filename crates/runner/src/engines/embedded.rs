//! The engines that are part of assay.

use engine::{null, sqlite};
use plan::Build;

use super::sql::SqlTarget;
use super::{BuildFacts, EngineRow};
use crate::before::trials::Configs;
use crate::cell::cell_run::CellRun;
use crate::cell::target::{Leftovers, RunningTarget};
use crate::workloads::sql::LoadEngine;

/// The engine that stores nothing.
pub struct Null;

impl EngineRow for Null {
    fn find(&self, _: &Build, _: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        Ok(BuildFacts::bundled(env!("CARGO_PKG_VERSION")))
    }

    fn start(&self, _: &mut CellRun<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
        Ok(Box::new(SqlTarget::new(null::Null, Leftovers::default())))
    }

    fn connect(&self, _: Option<&str>) -> anyhow::Result<Box<dyn LoadEngine>> {
        Ok(Box::new(null::Null))
    }
}

/// SQLite, bundled with assay.
pub struct Sqlite;

impl EngineRow for Sqlite {
    fn find(&self, _: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        let bundled = sqlite::Library::bundled();
        let version = bundled.version();
        configs.each(&format!("SQLite {version}"), move |config, _| {
            Ok(sqlite::Sqlite::try_config(bundled, &config.set)?)
        });
        Ok(BuildFacts::bundled(version))
    }

    fn start(&self, cell: &mut CellRun<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
        let library = sqlite::Library::bundled();
        let data_dir = cell.empty_directory("sqlite")?;
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
