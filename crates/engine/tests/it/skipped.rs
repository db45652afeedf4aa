//! Tests that don't run. Those of other crates say it the same way.

use std::io::Write;

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
