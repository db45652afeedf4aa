//! The binary from outside: what people and scripts type, with real engines, real servers and real faults.
//!
//! What needs a PostgreSQL server is skipped, aloud, where there is none; with `postgres` in `ASSAY_REQUIRE_ENGINES` it
//! fails instead.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "all of this is tests, what they have in common included"
)]

mod bad_input;
mod benchmark;
mod command_line;
mod faults;
mod fetch;
mod foreign_server;
mod full_disk;
mod place;
mod scale;
mod show_json;
mod stall;

use std::io::Write;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Tests of what time does to a run have the machine for themselves; all others share it.
static MACHINE: RwLock<()> = RwLock::new(());

/// The machine is shared with other tests while this lives.
fn share_the_machine() -> RwLockReadGuard<'static, ()> {
    MACHINE
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// No other test runs while this lives.
fn have_the_machine_alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Says that the test that calls it does not run, and why: on stderr, past the capture of a test's output, and in the
/// file that `ASSAY_SKIP_LOG` names, where such tests are counted.
fn say_skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("SKIPPED {test}: {}\n", reason.replace('\n', " "));
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(log) = std::env::var_os("ASSAY_SKIP_LOG") {
        let mut log = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        log.write_all(line.as_bytes()).unwrap();
    }
}

/// Whether PostgreSQL is here; otherwise the test that asks has been called skipped, or fails where the server is
/// required.
fn postgres_is_here_or_test_is_skipped() -> bool {
    let Err(error) = engine::postgres::locate("distribution") else {
        return true;
    };
    let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
    assert!(
        !required.split(',').any(|engine| engine == "postgres"),
        "PostgreSQL is required: {error}"
    );
    say_skipped(&error.to_string());
    false
}
