//! The engines that are part of assay.

use engine::{null, sqlite};
use plan::Build;
use record::Status;

use super::{BuildFacts, EngineRow};
use crate::before::trials::Configs;
use crate::cell::cell_run::CellRun;
use crate::remote::{LoadRank, RankCell};

/// The engine that stores nothing.
pub struct Null;

impl EngineRow for Null {
    fn find(&self, _: &Build, _: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        Ok(BuildFacts::bundled(env!("CARGO_PKG_VERSION")))
    }

    fn measure(&self, cell: &mut CellRun<'_>) -> anyhow::Result<Status> {
        cell.measure(null::Null, |cell, engine| cell.sql(engine, false))
    }

    fn serve(&self, rank: &mut LoadRank<'_>, cell: &RankCell<'_>) -> anyhow::Result<()> {
        rank.run_cell(&null::Null, cell)
    }
}

/// SQLite, bundled with assay.
pub struct Sqlite;

impl EngineRow for Sqlite {
    fn find(&self, _: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        let version = sqlite::version();
        configs.each(&format!("SQLite {version}"), |config, _| {
            Ok(sqlite::Sqlite::try_config(&config.set)?)
        });
        Ok(BuildFacts::bundled(version))
    }

    fn measure(&self, cell: &mut CellRun<'_>) -> anyhow::Result<Status> {
        let data_dir = cell.empty_directory("sqlite")?;
        match sqlite::Sqlite::start(data_dir.path(), &cell.config().set) {
            Ok(database) => {
                let result = cell.measure(database, |cell, engine| cell.sql(engine, false));
                cell.clean_up(Some(data_dir), result)
            }
            Err(error) => {
                // The next run wipes files that can't be removed now.
                let _ = data_dir.remove();
                Err(error.into())
            }
        }
    }
}
