//! The builds of a plan: finds them and says what they are.

use std::path::Path;

use anyhow::Context;
use engine::Engine as _;
use engine::postgres::{self, Postgres};
use engine::sqlite;
use plan::{Build, BuildSource, Engine, Plan};
use record::FileHash;
use sha2::{Digest, Sha256};

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
