//! MySQL and MariaDB, with real servers: the distribution's, or the build that `ASSAY_TEST_MYSQL`
//! names (a directory, or whatever else `locate` understands). Tests that need MyRocks run if the
//! build has it. These tests hold on every version:
//!
//! ```sh
//! for build in /opt/mysql-* /opt/mariadb-*; do ASSAY_TEST_MYSQL=$build cargo test -p engine mysql; done
//! ```

mod accounts;
mod life;
mod login;
mod replica;
mod statements;
mod upkeep;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use engine::mysql::{Address, Flavor, Host, Installation, Mysql, MysqlSession, locate};
use engine::{Engine, Session, SetupError, StartOptions};

use crate::server::{Access, Life, Shared, Sql, TestServer, is_required, is_there};

/// Returns the build to test.
pub(crate) fn build() -> String {
    Mysql::build()
}

/// Returns the build if it is installed; reports the test as skipped otherwise.
pub(crate) fn installed() -> Option<Installation> {
    is_there(locate(&build()), Mysql::VARIABLE, Mysql::NAME)
}

pub(crate) fn is_mariadb() -> bool {
    installed().is_some_and(|it| it.version.flavor == Flavor::MariaDb)
}

/// Returns the storage engines of the build.
pub(crate) fn storage_engines() -> Vec<&'static str> {
    let Some(installation) = installed() else {
        return Vec::new();
    };
    if installation.files.iter().any(|file| file.ends_with("ha_rocksdb.so")) {
        vec!["innodb", "rocksdb"]
    } else {
        assert!(
            !is_required("myrocks"),
            "MyRocks is required, and {} has none",
            installation.version
        );
        // Bypasses the capture of a test's output.
        let line = format!("MyRocks is left out: {} has none\n", installation.version);
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        vec!["innodb"]
    }
}

/// The place of the files of a test's server.
pub(crate) type ServerDir = crate::server::ServerDir<Mysql>;

/// A `mysqld` that only prints a version.
const FAKE: &str = "case \"$*\" in *--version*) \
    echo 'mysqld  Ver 8.0.36 for Linux on x86_64 (x)';; \
    *) echo 'say so' >&2; exit 1;; esac";

impl TestServer for Mysql {
    const NAME: &str = "mysql";
    const VARIABLE: &str = "ASSAY_TEST_MYSQL";
    const CONFIG: &str = "innodb_buffer_pool_size = 32M\ninnodb_flush_log_at_trx_commit = 0\nsync_binlog = 0\n\
                          max_allowed_packet = 64M\n";
    const SQL: Sql = Sql {
        temporary: |columns| format!("create temporary table t ({columns}) engine=memory"),
        types: ["int", "bigint", "datetime(6)", "varchar(99) character set utf8mb4"],
        whole_second: ".000000",
        // More than a packet holds, exactly as much, and a little.
        large: &[20_000_000, 0xff_ff_ff, 0xff_ff_ff - 30, 3_000_000, 5],
        codes: ["1064", "1146"],
        duplicate: "'1'",
        sleep: [
            "select sleep(1000) /* to be interrupted */",
            "select count(*) from information_schema.processlist \
             where state = 'User sleep' and info like '%to be interrupted%'",
        ],
        work: ["select benchmark(300000, md5('a'))", "select benchmark(1000000000000, md5('x'))"],
        session: [
            "select connection_id()",
            "kill ?",
            "select count(*) from information_schema.processlist where id = ?",
        ],
        is_active: "command = 'Query'",
        ended: "",
        next_key: 9,
    };
    const LIFE: Life = Life {
        set: &[("port", "6543"), ("sort_buffer_size", "1M")],
        config: "sort_buffer_size=1M",
        port: "6543",
        last_words: "shutdown complete",
        file: "ibdata1",
        refused: &[
            ("colour", "red", &["colour", "red"]),
            ("innodb_flush_method", "many", &["innodb_flush_method", "many"]),
            ("default_storage_engine", "nosuch", &["default_storage_engine", "nosuch"]),
        ],
        taken: ("innodb-page-size", "4k"),
        refused_at_once: &[
            ("innodb_bufer_pool_size", "32M", "innodb_bufer_pool_size"),
            ("innodb_buffer_pool_size", "lots", "innodb_buffer_pool_size"),
            ("colour", "red", "colour"),
        ],
        old: (&[("mysqld", "echo 'mysqld  Ver 5.1.73 for Linux on x86_64 (x)'")], "MySQL 5.1.73"),
        broken: &[("mysqld", FAKE)],
        nowhere: "mysql://me:secret@localhost/ib?socket=/nowhere",
    };

    const ACCESS: Access = Access {
        accounts: "select user from mysql.user",
        careless: &[
            ("skip_grant_tables", ""),
            ("skip_name_resolve", "0"),
            ("bind_address", "*"),
            ("loose_mysqlx", "ON"),
            ("loose_proxy_protocol_networks", "*"),
        ],
        talkative: &[
            ("general_log", "1"),
            ("general_log_file", "general.log"),
            ("slow_query_log", "1"),
            ("slow_query_log_file", "slow.log"),
            ("long_query_time", "0"),
            ("log_queries_not_using_indexes", "1"),
            ("log_slow_admin_statements", "1"),
            ("loose_log_raw", "1"),
            ("log_bin", "binlog"),
            ("server_id", "1"),
        ],
        statement_log: "data/mysql/data/general.log",
        secret: ("report_password", "hunter2"),
        replicas_use_tcp: true,
    };

    fn find(build: &str) -> Result<(), SetupError> {
        locate(build).map(drop)
    }

    fn start(options: &StartOptions<'_>) -> Result<Self, SetupError> {
        Mysql::start(options)
    }

    fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError> {
        Mysql::try_config(options)
    }

    fn attach(url: &str) -> Result<Self, SetupError> {
        Mysql::attach(url)
    }

    fn log_in(address: &Address) -> Result<MysqlSession, engine::Error> {
        MysqlSession::connect(address)
    }

    fn client_address(&self) -> &Address {
        self.address()
    }

    fn variants() -> Vec<&'static str> {
        storage_engines()
    }

    fn options_of(variant: &'static str) -> Vec<(&'static str, &'static str)> {
        vec![("default_storage_engine", variant)]
    }

    fn pool() -> &'static [Mutex<Weak<Shared<Self>>>] {
        static POOL: [Mutex<Weak<Shared<Mysql>>>; 2] =
            [Mutex::new(Weak::new()), Mutex::new(Weak::new())];
        &POOL
    }

    fn socket(&self) -> PathBuf {
        match &self.address().host {
            Host::Unix(socket) => socket.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn look_at_start(&self) {
        let storage = self.storage();
        assert!(storage.data[0].join("ib").is_dir(), "{storage:?}");
        assert!(!storage.logs.is_empty(), "{storage:?}");
    }

    fn look_at_table(session: &mut MysqlSession, table: &str, variant: &str) {
        let engine = session.query(&format!(
            "select engine from information_schema.tables where table_schema = database() and table_name = '{table}'"
        ));
        let engine = engine.unwrap()[0][0].clone().unwrap();
        assert!(engine.eq_ignore_ascii_case(variant), "{engine}");
    }

    fn is_encrypted(session: &mut MysqlSession) -> bool {
        let rows = session.query("show session status like 'Ssl_cipher'");
        rows.unwrap()[0][1].as_deref().is_some_and(|cipher| !cipher.is_empty())
    }

    /// MySQL before 5.7 and MariaDB before 10.5 cannot refuse them.
    fn refuses_plain(&self) -> bool {
        let settings = self.settings().unwrap();
        settings.iter().any(|it| it.name == "require_secure_transport")
    }

    /// Some versions before 8.0.16 support only DHE or TLS 1.1.
    fn has_old_tls() -> bool {
        !is_mariadb() && installed().is_some_and(|it| it.version.number < (8, 0, 16))
    }

    fn wait_for_locks(session: &mut MysqlSession, is_short: bool) {
        let seconds = if is_short { 1 } else { 20 };
        for variable in ["innodb_lock_wait_timeout", "rocksdb_lock_wait_timeout"] {
            // The other's is not there without it.
            let _ = session.query(&format!("set session {variable} = {seconds}"));
        }
        let _ = session.query("set session rocksdb_deadlock_detect = 1");
    }
}

/// The servers that tests share, one for each storage engine that the build has.
pub(crate) fn shared() -> Vec<Arc<Shared<Mysql>>> {
    Mysql::shared()
}
