//! SQLite: the library that is part of assay, or a shared one in a process of its own.

use engine::sqlite;
use plan::BuildSource;

use super::TargetStarter;
use super::sql::SqlTarget;
use crate::prepare::engines::sqlite::library_path;
use crate::prepare::installed::Installed;
use crate::targets::running::{Leftovers, RunningTarget};
use crate::targets::site::CellSite;

/// The folder of a database, in its target's directory.
pub const FOLDER: &str = "sqlite";

/// SQLite.
pub struct Sqlite;

impl TargetStarter for Sqlite {
    fn start(&self, cell: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
        let build = cell.build();
        let library = if build.source == BuildSource::Bundled {
            sqlite::Library::bundled()
        } else {
            sqlite::Library::open(&library_path(&Installed::of(build)?)?)?
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
                // The next run wipes files that cannot be removed now.
                let _ = data_dir.remove();
                Err(error.into())
            }
        }
    }
}
