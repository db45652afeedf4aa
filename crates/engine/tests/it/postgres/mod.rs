//! PostgreSQL, with a real server: the distribution's, or the build that `ASSAY_TEST_POSTGRES`
//! names (a directory, or whatever else `locate` understands). These tests hold on every version
//! from 12 on:
//!
//! ```sh
//! for build in /opt/postgresql-*; do ASSAY_TEST_POSTGRES=$build cargo test -p engine postgres; done
//! ```

mod life;
mod login;
mod replica;
mod statements;
mod upkeep;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use engine::postgres::{Address, Host, Postgres, PostgresSession, locate};
use engine::{Engine, Session, SetupError, StartOptions};

use crate::guard::{eventually, is_running};
use crate::server::{Access, Life, Shared, Sql, TestServer};

/// Returns the build to test.
pub(crate) fn build() -> String {
    Postgres::build()
}

/// Returns the major version of the build to test.
pub(crate) fn major() -> u32 {
    locate(&build()).unwrap().version.major
}

/// Returns true when PostgreSQL is installed; reports the test as skipped otherwise.
pub(crate) fn is_installed() -> bool {
    Postgres::is_installed()
}

/// The place of the files of a test's server.
pub(crate) type ServerDir = crate::server::ServerDir<Postgres>;

/// A `postgres` of version 15.1, with an `initdb` that it cannot run.
const FAKE: &str = "echo 'postgres (PostgreSQL) 15.1'";

impl TestServer for Postgres {
    const NAME: &str = "postgres";
    const VARIABLE: &str = "ASSAY_TEST_POSTGRES";
    const CONFIG: &str = "fsync = off\nautovacuum = off\nshared_buffers = 16MB\n";
    const SQL: Sql = Sql {
        temporary: |columns| format!("create temp table t ({columns})"),
        types: ["int", "bigint", "timestamp", "text"],
        whole_second: "",
        large: &[3_000_000],
        codes: ["42601", "42P01"],
        duplicate: "(a)=(1)",
        sleep: [
            "select 1 from pg_sleep(1000) /* to be interrupted */",
            "select count(*) from pg_stat_activity where wait_event = 'PgSleep' \
             and query like '%to be interrupted%'",
        ],
        work: [
            "select count(md5(i::text)) from generate_series(1, 100000) i",
            "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b",
        ],
        session: [
            "select pg_backend_pid()",
            "select pg_terminate_backend(?)",
            "select count(*) from pg_stat_activity where pid = ?",
        ],
        is_active: "state = 'active'",
        ended: "terminating connection",
        // Each session draws from its own thousand.
        next_key: 1001,
    };
    const LIFE: Life = Life {
        set: &[("port", "6543"), ("listen_addresses", "*"), ("work_mem", "7MB")],
        config: "work_mem = '7MB'",
        port: "6543",
        last_words: "database system is shut down",
        file: "PG_VERSION",
        refused: &[
            ("colour", "red", &["\"colour\""]),
            ("shared_buffers", "900TB", &["shared"]),
            ("shared_preload_libraries", "no_such_library", &["no_such_library"]),
            ("wal_level", "minimal", &["max_wal_senders"]),
            ("max_connections", "2", &["superuser_reserved_connections"]),
        ],
        taken: ("work_mem", "8MB"),
        refused_at_once: &[
            ("shared_bufers", "3", "unrecognized configuration parameter \"shared_bufers\""),
            ("shared_buffers", "many", "invalid value for parameter \"shared_buffers\": \"many\""),
            ("work_mem", "1kB", "\"work_mem\""),
        ],
        old: (
            &[("postgres", "echo 'postgres (PostgreSQL) 9.6.24'"), ("initdb", "exit 1")],
            "9.6.24",
        ),
        broken: &[("postgres", FAKE), ("initdb", "echo 'say so' >&2; exit 1")],
        nowhere: "postgresql://me:secret@/ib?host=/nowhere",
    };

    const ACCESS: Access = Access {
        accounts: "select rolname from pg_roles",
        careless: &[("listen_addresses", "*"), ("hba_file", "/dev/null"), ("ssl", "off")],
        talkative: &[
            ("log_statement", "all"),
            ("log_duration", "on"),
            ("log_min_duration_statement", "0"),
            ("log_min_error_statement", "debug5"),
            ("log_transaction_sample_rate", "1"),
            ("log_replication_commands", "on"),
        ],
        statement_log: "server.log",
        secret: ("primary_conninfo", "host=/nowhere password=hunter2"),
        replicas_use_tcp: false,
    };

    fn find(build: &str) -> Result<(), SetupError> {
        locate(build).map(drop)
    }

    fn start(options: &StartOptions<'_>) -> Result<Self, SetupError> {
        Postgres::start(options)
    }

    fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError> {
        Postgres::try_config(options)
    }

    fn attach(url: &str) -> Result<Self, SetupError> {
        Postgres::attach(url)
    }

    fn log_in(address: &Address) -> Result<PostgresSession, engine::Error> {
        PostgresSession::connect(address)
    }

    fn client_address(&self) -> &Address {
        self.address()
    }

    fn variants() -> Vec<&'static str> {
        Vec::from_iter(is_installed().then_some("heap"))
    }

    fn options_of(_variant: &'static str) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    fn pool() -> &'static [Mutex<Weak<Shared<Self>>>] {
        static POOL: [Mutex<Weak<Shared<Postgres>>>; 1] = [Mutex::new(Weak::new())];
        &POOL
    }

    fn socket(&self) -> PathBuf {
        match &self.address().host {
            Host::Unix(directory) => directory.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn look_at_start(&self) {
        let settings = self.settings().unwrap();
        let listens = settings.iter().find(|it| it.name == "listen_addresses");
        assert_eq!(listens.unwrap().value, "");
        let storage = self.storage();
        assert!(storage.data[0].join("PG_VERSION").is_file() && storage.logs[0].is_dir());
    }

    fn is_encrypted(session: &mut PostgresSession) -> bool {
        let sql = "select ssl::int from pg_stat_ssl where pid = pg_backend_pid()";
        session.query_i64(sql).unwrap() == Some(1)
    }

    fn wait_for_locks(session: &mut PostgresSession, is_short: bool) {
        let limit = if is_short { "10ms" } else { "0" };
        let set = format!("set lock_timeout = '{limit}'; set deadlock_timeout = '20ms'");
        session.query(&set).unwrap();
    }
}

/// The server that tests share; `None` when PostgreSQL is not here.
pub(crate) fn shared() -> Option<Arc<Shared<Postgres>>> {
    Postgres::shared().pop()
}

/// Ends a session and waits until its backend has exited, because it then reports its remaining
/// statistics.
pub(crate) fn end(mut session: PostgresSession) {
    let pid = session.query_i64("select pg_backend_pid()").unwrap();
    let pid = u32::try_from(pid.unwrap()).unwrap();
    drop(session);
    eventually("the backend has gone", || !is_running(pid));
}
