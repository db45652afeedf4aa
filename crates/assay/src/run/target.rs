//! Brings a target up for a cell.

use engine::DataDir;
use engine::limits::Limits;
use engine::mysql::{self, Mysql};
use engine::null::Null;
use engine::postgres::{self, Postgres};
use engine::sqlite::Sqlite;
use plan::{BuildSource, Engine};
use record::CellDir;

use super::Conductor;
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
    let connections = preflight::connections(&plan.variants[cell.variant], cell.clients);
    let (build, config) = (&plan.builds[target.build], &plan.configs[target.config]);
    let home = conductor.data_root.join(&target.name);
    let limits = Limits {
        memory_bytes: config.limits.memory_bytes,
        cpus: config.limits.cpus.clone(),
    };
    match (build.engine, &build.source) {
        (Engine::Null, _) => Ok(Up::Null(Null)),
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
        (Engine::Postgres, BuildSource::Installed(name)) => {
            let postgres = Postgres::start(&postgres::StartOptions {
                build: &builds::installed(build.engine, name)?.place,
                data_dir: &home,
                config_files: &conductor.file.config_texts(config)?,
                set: &config.set,
                user: plan.server_user.as_deref(),
                guard_exe: &conductor.executable,
                log: &directory.log_path(),
                connections,
                limits: &limits,
                timeout: plan.server_timeout,
                stop: &conductor.stop,
            })?;
            if let Some(text) = postgres.config_text() {
                directory.write_text("server.conf", text)?;
            }
            Ok(Up::Postgres(Box::new(postgres)))
        }
        (Engine::Mysql, BuildSource::Url(url)) => {
            Ok(Up::Mysql(Box::new(Mysql::attach(url.expose())?)))
        }
        (Engine::Mysql, BuildSource::Installed(name)) => {
            let mysql = Mysql::start(&mysql::StartOptions {
                build: &builds::installed(build.engine, name)?.place,
                data_dir: &home,
                config_files: &conductor.file.config_texts(config)?,
                set: &config.set,
                user: plan.server_user.as_deref(),
                guard_exe: &conductor.executable,
                log: &directory.log_path(),
                connections,
                limits: &limits,
                timeout: plan.server_timeout,
                stop: &conductor.stop,
            })?;
            if let Some(text) = mysql.config_text() {
                directory.write_text("server.conf", text)?;
            }
            Ok(Up::Mysql(Box::new(mysql)))
        }
        (Engine::Postgres | Engine::Mysql, BuildSource::Bundled) => {
            unreachable!("a plan has no bundled server")
        }
    }
}
