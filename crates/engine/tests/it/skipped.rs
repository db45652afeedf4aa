//! Reports skipped tests. Other crates use it too.

use std::io::Write;

/// Reports that the calling test is skipped, and why: on stderr, bypassing the capture of output,
/// and in the file `ASSAY_SKIP_LOG`, in which skipped tests are counted.
pub(crate) fn say_skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("SKIPPED {test}: {}\n", reason.replace('\n', " "));
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(log) = std::env::var_os("ASSAY_SKIP_LOG") {
        let mut log = fs_err::OpenOptions::new().create(true).append(true).open(log).unwrap();
        log.write_all(line.as_bytes()).unwrap();
    }
}
