//! MySQL and MariaDB, with real servers: the distribution's, or the build that `ASSAY_TEST_MYSQL` names (a directory, or
//! whatever else `locate` understands). What needs MyRocks is run where the build has it. These tests hold on every
//! version:
//!
//! ```sh
//! for build in /opt/mysql-* /opt/mariadb-*; do ASSAY_TEST_MYSQL=$build cargo test -p engine mysql; done
//! ```

mod conformance;
mod life;
mod login;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use engine::SetupError;
use engine::mysql::{Flavor, Installation, Mysql, StartOptions, locate};

use crate::guard::guard_exe;

pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// Small, and not durable: what a test waits for is not the disk.
const CONFIG: &str =
    "innodb_buffer_pool_size = 32M\ninnodb_flush_log_at_trx_commit = 0\nsync_binlog = 0\n";

/// The build that is tested.
pub(crate) fn build() -> String {
    std::env::var("ASSAY_TEST_MYSQL").unwrap_or_else(|_| "distribution".into())
}

/// The build, if it is here; says so aloud when it is not. One that was asked for by name has to be.
pub(crate) fn installed() -> Option<Installation> {
    let error = match locate(&build(), None) {
        Ok(installation) => return Some(installation),
        Err(error) => error,
    };
    assert!(
        std::env::var_os("ASSAY_TEST_MYSQL").is_none(),
        "ASSAY_TEST_MYSQL names no build: {error}"
    );
    let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
    assert!(
        !required.split(',').any(|engine| engine == "mysql"),
        "MySQL or MariaDB is required: {error}"
    );
    crate::say_skipped(&error.to_string());
    None
}

pub(crate) fn is_mariadb() -> bool {
    installed().is_some_and(|it| it.version.flavor == Flavor::MariaDb)
}

/// The storage engines that the build has.
pub(crate) fn storage_engines() -> Vec<&'static str> {
    let Some(installation) = installed() else {
        return Vec::new();
    };
    if installation
        .files
        .iter()
        .any(|file| file.ends_with("ha_rocksdb.so"))
    {
        vec!["innodb", "rocksdb"]
    } else {
        let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
        assert!(
            !required.split(',').any(|engine| engine == "myrocks"),
            "MyRocks is required, and {} has none",
            installation.version
        );
        // Past the capture of a test's output, so that it is never silent.
        let line = format!("MyRocks is left out: {} has none\n", installation.version);
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        vec!["innodb"]
    }
}

/// Where a test's server keeps its files; its user may enter.
pub(crate) struct Place {
    directory: tempfile::TempDir,
    guard_exe: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        fs_err::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            directory,
            guard_exe: guard_exe(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path().join("server.log")
    }

    pub(crate) fn start(&self, set: &[(&str, &str)]) -> Result<Mysql, SetupError> {
        self.start_build(&build(), set)
    }

    pub(crate) fn start_build(
        &self,
        build: &str,
        set: &[(&str, &str)],
    ) -> Result<Mysql, SetupError> {
        let set: Vec<(String, String)> = set
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        Mysql::start(&StartOptions {
            build,
            launch: None,
            data_dir: &self.path().join("data"),
            config_files: &[CONFIG.to_string()],
            set: &set,
            user: None,
            guard_exe: &self.guard_exe,
            log: &self.log(),
            connections: 10,
            timeout: Duration::from_secs(120),
            stop: &GO_ON,
        })
    }
}

/// A server that tests share while one of them is running.
pub(crate) struct Shared {
    pub(crate) mysql: Mysql,
    pub(crate) storage_engine: &'static str,
    _place: Place,
}

/// The shared servers, one for each storage engine that the build has; none when no server is here.
pub(crate) fn shared() -> Vec<Arc<Shared>> {
    static SHARED: [Mutex<Weak<Shared>>; 2] = [Mutex::new(Weak::new()), Mutex::new(Weak::new())];
    let start = |(storage_engine, known): (&'static str, &Mutex<Weak<Shared>>)| {
        let mut known = known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let place = Place::new();
            let shared = Arc::new(Shared {
                mysql: place
                    .start(&[("default_storage_engine", storage_engine)])
                    .unwrap(),
                storage_engine,
                _place: place,
            });
            *known = Arc::downgrade(&shared);
            shared
        })
    };
    storage_engines()
        .into_iter()
        .zip(&SHARED)
        .map(start)
        .collect()
}
