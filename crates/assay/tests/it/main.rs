//! The binary from outside: what people and scripts type, with real engines, real servers and real
//! faults.
//!
//! Tests that need a server are skipped, aloud, where there is none; with `postgres`, `mysql`,
//! `myrocks`, `rocksdb` in `ASSAY_REQUIRE_ENGINES` they fail instead. `ASSAY_TEST_MYSQL` names the
//! directory of the MySQL or MariaDB to use, `ASSAY_TEST_OTHER_POSTGRES` that of a PostgreSQL
//! beside the system's own, and `ASSAY_TEST_ROCKSDB` libraries, with colons between them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "all of this is tests, what they have in common included"
)]

mod alone;
mod bad_input;
mod benchmark;
mod bisect;
mod bundle;
mod ci;
mod command_line;
mod commits;
mod compare;
mod compare_factors;
mod compare_latency;
mod compare_variants;
mod conflicts;
mod conform;
mod damage;
mod databases;
mod decided;
mod delay;
mod designs;
mod differences;
mod disk_floor;
mod documents;
mod estimates;
mod exact;
mod export;
mod faults;
mod fetch;
mod fetch_sqlite;
mod find;
mod foreign_record;
mod foreign_server;
mod forged;
mod full_disk;
mod history;
mod honest;
mod http;
mod import;
mod install;
mod live;
mod ls;
mod max_rates;
mod own_server;
mod place;
mod plans;
mod prepared_tables;
mod profile;
mod python;
mod rank_kills;
mod ranks;
mod remarks;
mod replica_url;
mod replication;
mod replication_logical;
mod replication_mysql;
mod resume;
mod rocksdb;
mod scale;
mod serve;
mod show_json;
mod slurm;
mod sqlite_library;
mod stall;
mod step_commands;
mod sysbench;
mod system_calls;
mod table_formats;
mod tls;
mod transaction_forms;
mod transactions;
mod tun;
mod turns;
mod turns_host;
mod versus;
mod waits;
mod work;

use std::io::Write;
/// Says that the test that calls it does not run, and why: on stderr, past the capture of a test's
/// output, and in the file that `ASSAY_SKIP_LOG` names, where such tests are counted.
fn say_skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("SKIPPED {test}: {}\n", reason.replace('\n', " "));
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(log) = std::env::var_os("ASSAY_SKIP_LOG") {
        let mut log = fs_err::OpenOptions::new().create(true).append(true).open(log).unwrap();
        log.write_all(line.as_bytes()).unwrap();
    }
}

/// Returns true if PostgreSQL is here; otherwise the test that asks has been called skipped, or
/// fails where the server is required.
fn postgres_is_here_or_test_is_skipped() -> bool {
    let Err(error) = engine::postgres::locate("distribution") else {
        return true;
    };
    not_here("postgres", &error.to_string());
    false
}

/// Returns whether callgrind is here; if not, the test is skipped.
fn callgrind_is_here_or_test_is_skipped() -> bool {
    let version = std::process::Command::new("valgrind").arg("--version").output();
    let is_here = version.is_ok_and(|output| output.status.success());
    if !is_here {
        not_here("valgrind", "valgrind is not installed");
    }
    is_here
}

/// Returns whether the libraries of the adapters are here; if not, the test is skipped.
fn adapters_are_here_or_test_is_skipped() -> bool {
    let headers = ["lmdb.h", "leveldb/c.h", "wiredtiger.h"];
    let are_here =
        headers.iter().all(|header| std::path::Path::new("/usr/include").join(header).exists());
    if !are_here {
        not_here("adapters", "liblmdb-dev, libleveldb-dev or libwiredtiger-dev is not installed");
    }
    are_here
}

/// Returns the build of MySQL or MariaDB that tests use, if it is here and has the storage engine
/// (`innodb` or `rocksdb`); otherwise as with PostgreSQL.
fn mysql_or_test_is_skipped(storage_engine: &str) -> Option<String> {
    let build = std::env::var("ASSAY_TEST_MYSQL").unwrap_or_else(|_| "distribution".into());
    let installation = match engine::mysql::locate(&build) {
        Ok(installation) => installation,
        Err(error) => {
            not_here("mysql", &error.to_string());
            return None;
        }
    };
    let has_myrocks = installation.files.iter().any(|file| file.ends_with("ha_rocksdb.so"));
    if storage_engine == "rocksdb" && !has_myrocks {
        not_here("myrocks", &format!("{} has no MyRocks", installation.version));
        return None;
    }
    Some(build)
}

/// Returns the directory of a PostgreSQL besides the system's own, or skips the test.
fn other_postgres_or_test_is_skipped() -> Option<String> {
    let build = std::env::var("ASSAY_TEST_OTHER_POSTGRES").ok();
    if build.is_none() {
        not_here("other-postgres", "ASSAY_TEST_OTHER_POSTGRES names none");
    }
    build
}

/// Returns the libraries of RocksDB and Speedb that tests use, as with PostgreSQL.
fn rocksdb_or_test_is_skipped() -> Option<Vec<std::path::PathBuf>> {
    let named = std::env::var_os("ASSAY_TEST_ROCKSDB").unwrap_or_default();
    let libraries: Vec<_> =
        std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect();
    if libraries.is_empty() {
        not_here("rocksdb", "ASSAY_TEST_ROCKSDB names no library");
        return None;
    }
    Some(libraries)
}

/// Returns SQLite's library of the system, as with PostgreSQL.
fn sqlite_library_or_test_is_skipped() -> Option<std::path::PathBuf> {
    let found = builds::find_library("sqlite", std::path::Path::new("/"));
    if found.is_none() {
        not_here("sqlite", "the system has no libsqlite3.so.0");
    }
    found
}

fn not_here(engine: &str, why: &str) {
    let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
    assert!(!required.split(',').any(|other| other == engine), "{engine} is required: {why}");
    say_skipped(why);
}
