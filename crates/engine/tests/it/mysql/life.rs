//! Failures of starting and stopping that only MySQL has.

use std::path::Path;

use engine::SetupError;

use super::{ServerDir, installed, is_mariadb, storage_engines};

#[test]
fn a_missing_storage_engine_is_reported_before_anything_runs() {
    if storage_engines() != ["innodb"] {
        return;
    }
    let place = ServerDir::new();
    let error = place.start(&[("storage_engine", "myrocks")]);
    let error = error.err().expect("it must not start");
    assert!(matches!(error, SetupError::Config { .. }), "{error}");
    let program = installed().unwrap().program;
    let base = program.parent().and_then(Path::parent).unwrap();
    let has_plugins = ["lib", "lib/mysql", "lib/mariadb", "lib64", "lib64/mysql"]
        .iter()
        .any(|place| base.join(place).join("plugin").is_dir());
    if has_plugins || is_mariadb() {
        assert!(error.to_string().contains("ha_rocksdb.so"), "{error}");
        assert!(!place.log().exists());
    } else {
        // It may have it built in: its own word is waited for.
        assert!(error.to_string().contains("ROCKSDB"), "{error}");
    }
}
