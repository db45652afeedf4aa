//! Brings a target up for a cell.

use std::path::Path;

use engine::StartOptions;
use engine::limits::Limits;
use engine::mysql::Mysql;
use engine::null::Null;
use engine::postgres::Postgres;
use engine::sqlite::Sqlite;
use engine::{DataDir, ServerEngine, SetupError};
use plan::{BuildSource, Engine, Plan};
use record::CellDir;

use super::Conductor;
use crate::outcome::UsageError;
use crate::{builds, preflight};

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
        (Engine::RocksDb, _) => Err(preflight::no_rocksdb()),
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
                build: &builds::installed(engine, name)?.place,
                data_dir: &home,
                config_files: &conductor.file.config_texts(config)?,
                set: &config.set,
                user: plan.server_user.as_deref(),
                guard_exe: &conductor.executable,
                log: &directory.log_path(),
                connections: preflight::connections(&plan.variants[cell.variant], cell.clients),
                limits: &limits_of(config),
                timeout: plan.server_timeout,
                stop: &conductor.stop,
            };
            let given_up = |config: &str| {
                let place = home.join(builds::engine_name(engine));
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
        (Engine::Postgres | Engine::Mysql, BuildSource::Bundled) => {
            unreachable!("a plan has no bundled server")
        }
    }
}

/// The text of a server's configuration file goes into the record.
fn keep_config(server: &impl ServerEngine, directory: &CellDir) -> anyhow::Result<()> {
    if let Some(text) = server.config_text() {
        directory.write_text("server.conf", text)?;
    }
    Ok(())
}

fn limits_of(config: &plan::Config) -> Limits {
    Limits {
        memory_bytes: config.limits.memory_bytes,
        cpus: config.limits.cpus.clone(),
    }
}

/// Refuses limits that this machine can't have, before anything is measured.
pub(super) fn refuse_limits(
    plan: &Plan,
    cells: impl Iterator<Item = plan::Cell>,
) -> Result<(), UsageError> {
    for cell in cells {
        let target = &plan.targets[cell.target];
        if let Err(error) = limits_of(&plan.configs[target.config]).check() {
            let message = format!("target `{}`: {error}", target.name);
            return Err(UsageError::new(message, error.help().map(str::to_owned)));
        }
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
        // What can't be removed now is wiped by the next cell of this target.
        let _ = DataDir::create(home, &name.to_string_lossy()).and_then(DataDir::remove);
        let _ = fs_err::remove_dir(home);
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
