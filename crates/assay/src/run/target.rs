//! Brings a target up for a cell.

use std::path::{Path, PathBuf};

use engine::StartOptions;
use engine::mysql::Mysql;
use engine::null::Null;
use engine::postgres::Postgres;
use engine::rocksdb::{self, Library, RocksDb};
use engine::sqlite::Sqlite;
use engine::{DataDir, ServerEngine, SetupError};
use plan::{BuildSource, Engine};
use record::CellDir;

use super::Conductor;
use crate::library::Trial;
use crate::{locate, preflight};

/// A target that is up, of whichever engine.
pub enum Up {
    /// Nothing.
    Null(Null),
    /// A database file, and its directory.
    Sqlite(Sqlite, DataDir),
    /// A server.
    Postgres(Box<Postgres>),
    /// A server of MySQL or MariaDB.
    Mysql(Box<Mysql>),
    /// A database of a library in this process.
    RocksDb(Box<Rocks>),
}

/// A database of RocksDB that is open.
pub struct Rocks {
    /// The database.
    pub database: RocksDb,
    /// Its directory.
    pub data_dir: DataDir,
    /// What it is opened anew with after the load, where that has options of its own.
    pub after_load: Option<rocksdb::Config>,
}

/// Brings up the target of a cell, which is recorded in `directory`.
pub(super) fn bring_up(
    conductor: &Conductor<'_>,
    cell: plan::Cell,
    directory: &CellDir,
) -> anyhow::Result<Up> {
    let plan = conductor.plan();
    let target = &plan.targets[cell.target];
    let (build, config) = (&plan.builds[target.build], &plan.configs[target.config]);
    let home = conductor.data_root.join(&target.name);
    match (build.engine, &build.source) {
        (Engine::Null, _) => Ok(Up::Null(Null)),
        (Engine::RocksDb, BuildSource::Installed(name)) => {
            let place = locate::installed(build.engine, name)?.place;
            let library = Library::open(Path::new(&place))?;
            let data_dir = DataDir::create(&home, ROCKSDB)?;
            data_dir.wipe()?;
            let openings = locate::openings(conductor.file, config)?;
            let mut openings = openings.into_iter().map(Trial::into_config);
            let first = openings.next().unwrap_or_default();
            match RocksDb::create(&library, data_dir.path(), &first) {
                Ok(database) => Ok(Up::RocksDb(Box::new(Rocks {
                    database,
                    data_dir,
                    after_load: openings.next(),
                }))),
                Err(error) => {
                    if let Some(log) = rocksdb_log(&home) {
                        keep_log(directory, &log)?;
                    }
                    if !plan.keep_data {
                        remove(&home, ROCKSDB);
                    }
                    Err(error.into())
                }
            }
        }
        (Engine::Sqlite, _) => {
            let data_dir = DataDir::create(&home, "sqlite")?;
            data_dir.wipe()?;
            match Sqlite::start(data_dir.path(), &config.set) {
                Ok(sqlite) => Ok(Up::Sqlite(sqlite, data_dir)),
                Err(error) => {
                    // Nothing in it tells why; what can't be removed now is wiped by the next run.
                    let _ = data_dir.remove();
                    Err(error.into())
                }
            }
        }
        (Engine::Postgres, BuildSource::Url(url)) => {
            Ok(Up::Postgres(Box::new(Postgres::attach(url.expose())?)))
        }
        (Engine::Mysql, BuildSource::Url(url)) => {
            Ok(Up::Mysql(Box::new(Mysql::attach(url.expose())?)))
        }
        (engine @ (Engine::Postgres | Engine::Mysql), BuildSource::Installed(name)) => {
            let options = StartOptions {
                build: &locate::installed(engine, name)?.place,
                data_dir: &home,
                config_files: &conductor.file.config_texts(config)?,
                set: &config.set,
                user: plan.server_user.as_deref(),
                guard_exe: &conductor.executable,
                log: &directory.log_path(),
                connections: preflight::connections(&plan.variants[cell.variant], cell.clients),
                limits: &locate::limits_of(config),
                timeout: plan.server_timeout,
                stop: &conductor.stop,
            };
            let given_up = |config: &str| {
                let place = home.join(engine.name());
                let config = place.join(config);
                move |error| given_up(conductor, directory, &place, &config, error)
            };
            if engine == Engine::Postgres {
                let postgres = Postgres::start(&options).map_err(given_up("server.conf"))?;
                keep_config(&postgres, directory)?;
                Ok(Up::Postgres(Box::new(postgres)))
            } else {
                let mysql = Mysql::start(&options).map_err(given_up("server.cnf"))?;
                keep_config(&mysql, directory)?;
                Ok(Up::Mysql(Box::new(mysql)))
            }
        }
        (Engine::Postgres | Engine::Mysql, BuildSource::Bundled)
        | (Engine::RocksDb, BuildSource::Bundled | BuildSource::Url(_)) => {
            unreachable!("a plan has no bundled server, and no library by URL")
        }
    }
}

/// The directory of a database of RocksDB, in its target's.
const ROCKSDB: &str = "rocksdb";

/// The log of the database in a target's directory, if one was made.
pub(super) fn rocksdb_log(home: &Path) -> Option<PathBuf> {
    Some(rocksdb::log_path(&home.join(ROCKSDB))).filter(|log| log.exists())
}

/// A log that an engine writes beside its data goes into the record.
pub(super) fn keep_log(directory: &CellDir, log: &Path) -> anyhow::Result<()> {
    let kept = directory.log_path();
    let is_there =
        fs_err::canonicalize(&kept).is_ok_and(|kept| Some(kept) == fs_err::canonicalize(log).ok());
    // A server's log is written where it is kept, by whatever name: copying a file onto itself empties it.
    if !is_there && log.exists() {
        fs_err::copy(log, kept)?;
    }
    Ok(())
}

/// Removes what is left of a database in a target's directory. What can't be removed now is wiped by the next cell of
/// this target.
pub(super) fn remove(home: &Path, name: &str) {
    let _ = DataDir::create(home, name).and_then(DataDir::remove);
    let _ = fs_err::remove_dir(home);
}

/// The text of a server's configuration file goes into the record.
fn keep_config(server: &impl ServerEngine, directory: &CellDir) -> anyhow::Result<()> {
    if let Some(text) = server.config_text() {
        directory.write_text("server.conf", text)?;
    }
    Ok(())
}

/// What a server leaves in `place` that did not start: the `config` that assay made goes into the record, the rest with
/// the database unless those are kept. Where the place itself is what is wrong it is left alone.
fn given_up(
    conductor: &Conductor<'_>,
    directory: &CellDir,
    place: &Path,
    config: &Path,
    error: SetupError,
) -> anyhow::Error {
    if matches!(error, SetupError::Directory { .. }) || conductor.plan().keep_data {
        return error.into();
    }
    if let Ok(text) = fs_err::read_to_string(config)
        && let Err(error) = directory.write_text("server.conf", &text)
    {
        return error.into();
    }
    if let (true, Some(home), Some(name)) = (place.exists(), place.parent(), place.file_name()) {
        remove(home, &name.to_string_lossy());
    }
    let moved = |help: String| {
        let kept = directory.path().join("server.conf");
        help.replace(&config.display().to_string(), &kept.display().to_string())
    };
    match error {
        SetupError::Config { what, help } => SetupError::Config {
            what,
            help: moved(help),
        }
        .into(),
        error => error.into(),
    }
}
