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

use std::sync::{Arc, Mutex, Weak};

use engine::SetupError;
use engine::StartOptions;
use engine::mysql::{Flavor, Installation, Mysql, locate};

use crate::place::{Startable, is_required, is_there};

/// Names the build that is tested.
const VARIABLE: &str = "ASSAY_TEST_MYSQL";

/// The build that is tested.
pub(crate) fn build() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| "distribution".into())
}

/// The build, if it is here; says so aloud when it is not.
pub(crate) fn installed() -> Option<Installation> {
    is_there(locate(&build()), VARIABLE, "mysql")
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
        assert!(
            !is_required("myrocks"),
            "MyRocks is required, and {} has none",
            installation.version
        );
        // Past the capture of a test's output, so that it is never silent.
        let line = format!("MyRocks is left out: {} has none\n", installation.version);
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        vec!["innodb"]
    }
}

/// Where a test's server keeps its files.
pub(crate) type Place = crate::place::Place<Mysql>;

impl Startable for Mysql {
    const CONFIG: &str =
        "innodb_buffer_pool_size = 32M\ninnodb_flush_log_at_trx_commit = 0\nsync_binlog = 0\n";

    fn build() -> String {
        build()
    }

    fn start(options: &StartOptions<'_>) -> Result<Self, SetupError> {
        Mysql::start(options)
    }

    fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError> {
        Mysql::try_config(options)
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
