//! Builds and targets: finds them before a run, brings them up for a cell, takes them down after it.

use std::path::Path;

use anyhow::Context;
use engine::null::Null;
use engine::postgres::{self, Postgres, StartOptions};
use engine::sqlite::{self, Sqlite};
use engine::{DataDir, Engine as _};
use plan::{Build, BuildSource, Engine, Plan};
use record::{CellDir, FileHash};
use sha2::{Digest, Sha256};

use super::Conductor;
use crate::check;

/// An engine's name, as it is recorded.
pub fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => "sqlite",
        Engine::Postgres => "postgres",
        Engine::Null => "null",
    }
}

/// Whether some target is a server that assay starts on this host.
pub fn has_local_server(plan: &Plan) -> bool {
    plan.targets.iter().any(|target| {
        let build = &plan.builds[target.build];
        build.engine == Engine::Postgres && matches!(build.source, BuildSource::Installed(_))
    })
}

/// Finds all builds of a plan. A server that assay doesn't start is asked for its version.
pub fn locate(plan: &Plan) -> anyhow::Result<Vec<record::Build>> {
    plan.builds
        .iter()
        .map(|build| locate_one(build).with_context(|| format!("build `{}`", build.name)))
        .collect()
}

fn locate_one(build: &Build) -> anyhow::Result<record::Build> {
    let (version, source, files) = match (build.engine, &build.source) {
        (Engine::Null, _) => (
            env!("CARGO_PKG_VERSION").to_owned(),
            "bundled".to_owned(),
            Vec::new(),
        ),
        (Engine::Sqlite, _) => (
            sqlite::version().to_owned(),
            "bundled".to_owned(),
            Vec::new(),
        ),
        (Engine::Postgres, BuildSource::Url(url)) => (
            Postgres::attach(url.expose())?.version().to_owned(),
            url.redacted(),
            Vec::new(),
        ),
        (Engine::Postgres, BuildSource::Installed(name)) => {
            let found = postgres::locate(name)?;
            (
                found.version.text,
                found.bin_dir.display().to_string(),
                found.files,
            )
        }
        (Engine::Postgres, BuildSource::Bundled) => {
            unreachable!("a plan has no bundled PostgreSQL")
        }
    };
    Ok(record::Build {
        name: build.name.clone(),
        engine: engine_name(build.engine).into(),
        version,
        source,
        files: files
            .iter()
            .map(|file| hash(file))
            .collect::<anyhow::Result<_>>()?,
    })
}

fn hash(path: &Path) -> anyhow::Result<FileHash> {
    let mut hasher = Sha256::new();
    let mut file = fs_err::File::open(path)?;
    let size_bytes = std::io::copy(&mut file, &mut HashWriter(&mut hasher))?;
    let sha256 = hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(FileHash {
        path: path.display().to_string(),
        size_bytes,
        sha256,
    })
}

struct HashWriter<'a>(&'a mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

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
            Ok(Up::Sqlite(
                Sqlite::start(directory.path(), &config.set)?,
                directory,
            ))
        }
        (Engine::Postgres, BuildSource::Url(url)) => {
            Ok(Up::Postgres(Box::new(Postgres::attach(url.expose())?)))
        }
        (Engine::Postgres, BuildSource::Installed(name)) => {
            let postgres = Postgres::start(&StartOptions {
                build: name,
                data_dir: &home,
                config_files: &conductor.file.config_texts(config)?,
                set: &config.set,
                user: plan.server_user.as_deref(),
                guard_exe: &conductor.executable,
                log: &cell.log_path(),
                connections: check::connections(plan, clients),
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
