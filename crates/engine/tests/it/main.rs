//! Tests with real servers and processes. Where an engine is not installed its tests are skipped, aloud; with its name
//! in `ASSAY_REQUIRE_ENGINES` (separated by commas) they fail instead.

#![allow(
    clippy::unwrap_used,
    reason = "all of this is tests, what they have in common included"
)]

use std::io::Write;

mod guard;
mod limits;
mod mysql;
mod place;
mod postgres;
mod rocksdb;
mod statements;
mod tables;

/// Says that the test that calls it does not run, and why: on stderr, past the capture of a test's output, and in the
/// file that `ASSAY_SKIP_LOG` names, where such tests are counted.
pub(crate) fn say_skipped(reason: &str) {
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
