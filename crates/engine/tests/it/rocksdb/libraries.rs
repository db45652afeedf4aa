//! Runs tests with each library in a separate process, also for other crates.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::rocksdb::Library;

/// The library of this process.
pub(crate) const LIBRARY: &str = "ASSAY_TEST_ROCKSDB_LIBRARY";

/// The time limit of a test with one library.
const LIMIT: Duration = Duration::from_secs(300);

/// Returns the libraries to test; reports the test as skipped if there are none.
pub(crate) fn libraries() -> Vec<PathBuf> {
    let named = std::env::var_os("ASSAY_TEST_ROCKSDB").unwrap_or_default();
    let libraries: Vec<PathBuf> =
        std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect();
    if libraries.is_empty() {
        let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
        assert!(
            !required.split(',').any(|engine| engine == "rocksdb"),
            "RocksDB is required: name its libraries in ASSAY_TEST_ROCKSDB"
        );
        crate::say_skipped("no library of RocksDB is named in ASSAY_TEST_ROCKSDB");
    }
    libraries
}

#[expect(
    clippy::disallowed_methods,
    reason = "bounds tests, and measures nothing that is recorded"
)]
fn now() -> Instant {
    Instant::now()
}

/// Runs `case`, a closure of a test, with each library, in a process of its own that runs that test
/// of this binary.
pub(crate) fn on_each<F: FnOnce(&Arc<Library>)>(case: F) {
    if let Some(path) = std::env::var_os(LIBRARY) {
        case(&Library::open(Path::new(&path)).unwrap());
        return;
    }
    // The crate, the test, and what a closure is called.
    let (_, name) = std::any::type_name::<F>().split_once("::").unwrap();
    let name = name.strip_suffix("::{{closure}}").unwrap();
    // Side by side: most of these tests wait for a library's own threads.
    std::thread::scope(|scope| {
        for library in libraries() {
            scope.spawn(move || alone(name, &library, &[]));
        }
    });
}

/// Runs the test `name` with `library` and `variables` in a process of its own, to its end.
pub(crate) fn alone(name: &str, library: &Path, variables: &[(&str, &Path)]) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(LIBRARY, library)
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let drain = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            pipe.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = drain(Box::new(child.stdout.take().unwrap()));
    let err = drain(Box::new(child.stderr.take().unwrap()));
    let began = now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if began.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    let has_passed = status.is_some_and(|status| status.success()) && out.contains("1 passed");
    assert!(has_passed, "{name} with {}: {status:?}\n{out}\n{err}", library.display());
}
