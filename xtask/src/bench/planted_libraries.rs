//! Libraries that burn a known time or number of instructions in each operation of an engine, and
//! the targets that load them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use tempfile::TempDir;

use super::Setup;
use super::run::{fetch, mariadb};
use crate::workspace::{output, succeeds, typed};

/// The C files of the planted changes.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/planted");
/// The version of RocksDB that is slowed down.
const ROCKSDB: &str = "rocksdb@10.2.1";

/// An engine that loads such a library.
#[derive(Clone, Copy)]
pub enum PlantedEngine {
    Postgres,
    MariaDb,
    RocksDb,
}

const POSTGRES_OPTIONS: &str = r#"shared_buffers = "256MB"
max_wal_size = "4GB"
synchronous_commit = "off""#;

const MARIADB_OPTIONS: &str = r#"innodb_buffer_pool_size = "256M"
innodb_flush_log_at_trx_commit = 2
sync_binlog = 0"#;

/// A server that loads a library.
struct LoadingServer<'a> {
    /// The key of the engine's builds and configs.
    engine: &'a str,
    build: &'a str,
    options: &'a str,
    /// The key of a config that names the library.
    library_key: &'a str,
}

impl LoadingServer<'_> {
    /// Returns the tables of two targets that differ in their library.
    fn target_tables(&self, plain: &Path, changed: &Path) -> String {
        let Self { engine, build, options, library_key } = self;
        let [plain, changed] = [plain, changed].map(Path::display);
        format!(
            r#"
[build.plain]
{engine} = '{build}'
[config.{engine}.base.set]
{options}
[config.{engine}.plain]
extends = "base"
{library_key} = '{plain}'
[config.{engine}.changed]
extends = "base"
{library_key} = '{changed}'
[[target]]
configs = ["plain", "changed"]
"#
        )
    }
}

/// Returns the tables of two targets that differ in their build of RocksDB.
fn rocksdb_tables(plain: &Path, changed: &Path) -> String {
    let [plain, changed] = [plain, changed].map(Path::display);
    format!(
        r#"
[build.plain]
rocksdb = '{plain}'
[build.changed]
rocksdb = '{changed}'
[config.rocksdb.plain.set]
compression = "kNoCompression"
"block_based_table_factory.block_cache" = "{{capacity=1G;num_shard_bits=6}}"
"#
    )
}

/// Compiles libraries that plant a change.
pub struct Libraries {
    engine: PlantedEngine,
    /// The headers of PostgreSQL, the build of MariaDB, or the library of RocksDB.
    needed: PathBuf,
    folder: TempDir,
}

impl Libraries {
    pub fn new(setup: &Setup, engine: PlantedEngine) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // A server runs as another user.
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), readable)?;
        let needed = match engine {
            PlantedEngine::Postgres => postgres_headers(folder.path())?,
            PlantedEngine::MariaDb => PathBuf::from(mariadb(setup)?),
            PlantedEngine::RocksDb => PathBuf::from(fetch(setup, ROCKSDB)?),
        };
        Ok(Self { engine, needed, folder })
    }

    /// Compiles a library that burns these times in each statement and in each commit.
    pub fn compile(&self, name: &str, statement_ns: f64, commit_ns: f64) -> Result<PathBuf> {
        let library = self.folder.path().join(format!("{name}.so"));
        self.compile_to(
            library,
            &[format!("STATEMENT_NS={statement_ns:.0}"), format!("COMMIT_NS={commit_ns:.0}")],
        )
    }

    /// Compiles a library whose function `planted_work` executes this number of instructions in
    /// each statement. Libraries of different `folder`s have the same name, as functions are found
    /// again by the name of their library.
    pub fn compile_instructions(&self, folder: &str, instructions: u64) -> Result<PathBuf> {
        let folder = self.folder.path().join(folder);
        fs::create_dir_all(&folder)?;
        self.compile_to(
            folder.join("planted.so"),
            &[
                "STATEMENT_NS=1".to_owned(),
                "COMMIT_NS=0".to_owned(),
                format!("PLANTED_INSTRUCTIONS={instructions}"),
            ],
        )
    }

    /// Returns the tables of the two targets.
    pub fn target_tables(&self, plain: &Path, changed: &Path) -> String {
        let server = match self.engine {
            PlantedEngine::Postgres => LoadingServer {
                engine: "postgres",
                build: "distribution",
                options: POSTGRES_OPTIONS,
                library_key: "set.shared_preload_libraries",
            },
            PlantedEngine::MariaDb => LoadingServer {
                engine: "mysql",
                build: &self.needed.to_string_lossy(),
                options: MARIADB_OPTIONS,
                library_key: "env.LD_PRELOAD",
            },
            PlantedEngine::RocksDb => return rocksdb_tables(plain, changed),
        };
        server.target_tables(plain, changed)
    }

    fn compile_to(&self, library: PathBuf, macros: &[String]) -> Result<PathBuf> {
        let mut compiler = typed("cc", "-O2 -shared -fPIC -o");
        compiler.arg(&library).arg(format!("-I{SOURCES}"));
        compiler.args(macros.iter().map(|text| format!("-D{text}")));
        match self.engine {
            PlantedEngine::Postgres => {
                compiler.arg("-I").arg(&self.needed).arg(format!("{SOURCES}/postgres.c"));
            }
            PlantedEngine::MariaDb => {
                compiler.arg(format!("{SOURCES}/mariadb.c"));
            }
            PlantedEngine::RocksDb => {
                compiler.arg(format!("{SOURCES}/rocksdb.c")).arg("-Wl,--no-as-needed");
                compiler.arg(&self.needed);
            }
        }
        let name = library.display();
        ensure!(succeeds(&mut compiler)?, "`{name}` does not compile, see above");
        Ok(library)
    }
}

/// Downloads the headers of the distribution's PostgreSQL to a folder, without the compilers that
/// its package asks for.
fn postgres_headers(folder: &Path) -> Result<PathBuf> {
    let servers = output(Command::new("sh").args(["-c", "ls -d /usr/lib/postgresql/*"]))?;
    let newest = servers.lines().max_by_key(|path| major(path));
    let major = newest.and_then(major).context("install Debian's package `postgresql`")?;
    let package = format!("postgresql-server-dev-{major}");
    let unpack = format!("apt-get download {package} && dpkg-deb -x {package}_*.deb .");
    output(Command::new("sh").args(["-c", &unpack]).current_dir(folder))?;
    Ok(folder.join(format!("usr/include/postgresql/{major}/server")))
}

/// Returns the version that a folder such as `/usr/lib/postgresql/15` is named after.
fn major(folder: &str) -> Option<u32> {
    folder.rsplit('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_folder_is_its_name() {
        assert_eq!(major("/usr/lib/postgresql/15"), Some(15));
        assert_eq!(major("/usr/lib/postgresql/common"), None);
    }
}
