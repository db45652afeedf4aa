//! Brings a target up for a cell.

use engine::DataDir;
use engine::null::Null;
use engine::postgres::{Postgres, StartOptions};
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
}

/// Brings up the target number `target` for a cell.
pub(super) fn bring_up(
    conductor: &Conductor<'_>,
    target: usize,
    clients: u32,
    cell: &CellDir,
) -> anyhow::Result<Up> {
    let plan = conductor.plan();
    let target = &plan.targets[target];
    let (build, config) = (&plan.builds[target.build], &plan.configs[target.config]);
    let home = conductor.data_root.join(&target.name);
    match (build.engine, &build.source) {
        (Engine::Null, _) => Ok(Up::Null(Null)),
        (Engine::Sqlite, _) => {
            let directory = DataDir::create(&home, "sqlite")?;
            directory.wipe()?;
            match Sqlite::start(directory.path(), &config.set) {
                Ok(sqlite) => Ok(Up::Sqlite(sqlite, directory)),
                Err(error) => {
                    // Nothing in it tells why; what can't be removed now is wiped by the next run.
                    let _ = directory.remove();
                    Err(error.into())
                }
            }
        }
        (Engine::Postgres, BuildSource::Url(url)) => {
            Ok(Up::Postgres(Box::new(Postgres::attach(url.expose())?)))
        }
        (Engine::Postgres, BuildSource::Installed(name)) => {
            let postgres = Postgres::start(&StartOptions {
                build: &builds::installed(build.engine, name)?.place,
                data_dir: &home,
                config_files: &conductor.file.config_texts(config)?,
                set: &config.set,
                user: plan.server_user.as_deref(),
                guard_exe: &conductor.executable,
                log: &cell.log_path(),
                connections: preflight::connections(plan, clients),
                timeout: plan.server_timeout,
                stop: &conductor.stop,
            })?;
            if let Some(text) = postgres.config_text() {
                cell.write_text("server.conf", text)?;
            }
            Ok(Up::Postgres(Box::new(postgres)))
        }
        (Engine::Postgres, BuildSource::Bundled) => {
            unreachable!("a plan has no bundled PostgreSQL")
        }
    }
}
