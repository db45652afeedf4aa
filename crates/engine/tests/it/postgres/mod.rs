//! PostgreSQL, with a real server: the distribution's, or the build that `ASSAY_TEST_POSTGRES` names (a directory, or
//! whatever else `locate` understands). These tests hold on every version from 12 on:
//!
//! ```sh
//! for build in /opt/postgresql-*; do ASSAY_TEST_POSTGRES=$build cargo test -p engine postgres; done
//! ```

mod conformance;
mod life;
mod login;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use engine::postgres::{Postgres, PostgresSession, StartOptions, locate};
use engine::{
    Column, ColumnType, Engine, ErrorClass, Index, Outcome, Partitions, Session, SetupError, Table,
};

use crate::guard::guard_exe;

pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// The build that is tested.
pub(crate) fn build() -> String {
    std::env::var("ASSAY_TEST_POSTGRES").unwrap_or_else(|_| "distribution".into())
}

/// The major version of the build that is tested.
pub(crate) fn major() -> u32 {
    locate(&build()).unwrap().version.major
}

/// Whether PostgreSQL is here; says so aloud when it is not. A build that was asked for by name has to be.
pub(crate) fn is_installed() -> bool {
    let Err(error) = locate(&build()) else {
        return true;
    };
    assert!(
        std::env::var_os("ASSAY_TEST_POSTGRES").is_none(),
        "ASSAY_TEST_POSTGRES names no build: {error}"
    );
    let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
    assert!(
        !required.split(',').any(|engine| engine == "postgres"),
        "PostgreSQL is required: {error}"
    );
    crate::say_skipped(&error.to_string());
    false
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

    pub(crate) fn start(&self, set: &[(&str, &str)]) -> Result<Postgres, SetupError> {
        self.start_build(&build(), set)
    }

    pub(crate) fn start_build(
        &self,
        build: &str,
        set: &[(&str, &str)],
    ) -> Result<Postgres, SetupError> {
        self.start_in(&self.path().join("data"), build, set, 60)
    }

    pub(crate) fn start_in(
        &self,
        data_dir: &Path,
        build: &str,
        set: &[(&str, &str)],
        timeout_s: u64,
    ) -> Result<Postgres, SetupError> {
        let set: Vec<(String, String)> = set
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        Postgres::start(&StartOptions {
            build,
            data_dir,
            config_files: &["fsync = off\nautovacuum = off\nshared_buffers = 16MB\n".to_string()],
            set: &set,
            user: None,
            guard_exe: &self.guard_exe,
            log: &self.log(),
            connections: 10,
            timeout: Duration::from_secs(timeout_s),
            stop: &GO_ON,
        })
    }
}

/// A server that tests share while one of them is running.
pub(crate) struct Shared {
    pub(crate) postgres: Postgres,
    _place: Place,
}

/// The shared server; `None` when PostgreSQL is not here.
pub(crate) fn shared() -> Option<Arc<Shared>> {
    static SHARED: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
    if !is_installed() {
        return None;
    }
    let mut known = SHARED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    Some(known.upgrade().unwrap_or_else(|| {
        let place = Place::new();
        let shared = Arc::new(Shared {
            postgres: place.start(&[]).unwrap(),
            _place: place,
        });
        *known = Arc::downgrade(&shared);
        shared
    }))
}

/// A small table like the Insert Benchmark's.
pub(crate) fn table(name: &str, partitions: Option<Partitions>) -> Table {
    let column = |name, kind| Column { name, kind };
    Table {
        name: name.into(),
        columns: vec![
            column("transactionid", ColumnType::AutoKey),
            column("dateandtime", ColumnType::Timestamp),
            column("price", ColumnType::Int4),
            column("data", ColumnType::Text(4000)),
        ],
        indexes: vec![
            Index {
                name: "pdc",
                columns: vec!["price", "dateandtime"],
            },
            Index {
                name: "byprice",
                columns: vec!["price"],
            },
        ],
        partitions,
    }
}

pub(crate) fn run(session: &mut PostgresSession, statements: &[String]) {
    for sql in statements {
        session.query(sql).unwrap();
    }
}

/// Makes the table anew and puts `rows` rows with prices from 0 into it.
pub(crate) fn fill(postgres: &Postgres, table: &Table, rows: i32) -> PostgresSession {
    use engine::ParamType::{Int4, Text, Timestamp};
    let dialect = postgres.dialect();
    let mut session = postgres.connect().unwrap();
    run(&mut session, &dialect.drop_table(table));
    run(&mut session, &dialect.create_table(table));
    let insert = session
        .prepare(&dialect.insert(table, 1), &[Timestamp, Int4, Text])
        .unwrap();
    for price in 0..rows {
        session.start(insert);
        session.timestamp(1_700_000_000_000_000 + i64::from(price));
        session.int4(price);
        session.text("déjà vu");
        assert_eq!(
            session.execute().unwrap(),
            Outcome {
                rows: 1,
                value: None
            }
        );
    }
    session
}

pub(crate) fn class_of<T>(result: Result<T, engine::Error>) -> ErrorClass {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error.class,
    }
}
