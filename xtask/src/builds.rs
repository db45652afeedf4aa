//! Fetches the builds that tests use besides those of the system: a second PostgreSQL, MariaDB with
//! MyRocks, and libraries of RocksDB and Speedb.
//!
//! Assay itself fetches them, once. The servers come from Debian's suites: 160 MB, without an
//! installation. The libraries are published as Java artifacts, which Maven's client downloads: 150
//! MB, of which 40 MB are kept. The client is installed if it is missing.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::prepare;
use crate::workspace::{Workspace, printed, with_retries};

/// Names the folder of builds, for Assay and its tests.
pub const ASSAY_BUILDS: &str = "ASSAY_BUILDS";
/// Names a build of MySQL or MariaDB, for tests and benchmarks.
pub const ASSAY_TEST_MYSQL: &str = "ASSAY_TEST_MYSQL";
/// Names the second PostgreSQL, for tests.
pub const ASSAY_TEST_OTHER_POSTGRES: &str = "ASSAY_TEST_OTHER_POSTGRES";
/// Names libraries of RocksDB, separated by colons, for tests.
pub const ASSAY_TEST_ROCKSDB: &str = "ASSAY_TEST_ROCKSDB";

/// MariaDB with MyRocks.
pub const MARIADB: &str = "debian:bookworm/mariadb-server,mariadb-plugin-rocksdb";

/// The builds to fetch, each with the variable that names it: PostgreSQL of a newer Debian, which
/// brings its own C library; MariaDB; an old and a new RocksDB, and Speedb (52, 73 and 21 MB); and
/// a PostgreSQL from Maven, which tests find in the store without a variable.
const BUILDS: [(&str, &str); 6] = [
    ("debian:trixie/postgresql-17", ASSAY_TEST_OTHER_POSTGRES),
    (MARIADB, ASSAY_TEST_MYSQL),
    ("rocksdb@6.29.5", ASSAY_TEST_ROCKSDB),
    ("rocksdb@10.2.1", ASSAY_TEST_ROCKSDB),
    ("speedb@2.8.0", ASSAY_TEST_ROCKSDB),
    ("postgres@17.2", ""),
];

/// The folder of builds if a server's user cannot enter the target directory, as in root's home.
const SHARED_FOLDER: &str = "/var/tmp/assay-test-builds";

/// Fetches missing builds with the Assay that was built last. Returns the variables that name
/// builds, the folder of all first, and whether all builds are there. If not, it prints why, and
/// tests that need them are skipped.
pub fn for_tests(workspace: &Workspace) -> Result<(Vec<(&'static str, String)>, bool)> {
    let folder = folder(workspace)?;
    fs::create_dir_all(&folder)?;
    // Without it, Assay prints what is wrong.
    prepare::ensure_installed(&["maven"])?;

    let assay = workspace.target_directory()?.join("debug/assay");
    let mut builds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let fetched = with_retries("fetching builds", || {
        builds.clear();
        let mut is_complete = true;
        for (spec, variable) in BUILDS {
            let mut command = workspace.command(&assay);
            let printed = printed(command.args(["fetch", spec]).env(ASSAY_BUILDS, &folder))?;
            let path = printed.as_deref().and_then(path);
            is_complete &= path.is_some();
            builds.entry(variable).or_default().extend(path.map(str::to_owned));
        }
        Ok(is_complete)
    })?;
    if !fetched {
        eprintln!("warning: not all builds could be fetched; tests that need them are skipped");
    }

    // Tests find builds without a variable in the folder.
    builds.remove("");
    let mut variables = vec![(ASSAY_BUILDS, folder.display().to_string())];
    for (variable, paths) in builds {
        let preset = std::env::var(variable).ok();
        let fetched = (!paths.is_empty()).then(|| paths.join(":"));
        variables.extend(preset.or(fetched).map(|value| (variable, value)));
    }
    Ok((variables, fetched))
}

/// Returns the path of a build that `assay fetch` printed as `NAME PRODUCT VERSION PATH`.
pub fn path(printed: &str) -> Option<&str> {
    Some(printed.trim_end().rsplit_once('\t')?.1)
}

/// Returns the folder of builds.
pub fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let target = workspace.target_directory()?;
    Ok(match std::env::var_os(ASSAY_BUILDS) {
        Some(folder) => PathBuf::from(folder),
        None if all_may_enter(&target) => target.join("builds"),
        None => SHARED_FOLDER.into(),
    })
}

/// Returns whether every user may enter `folder` and all its parents.
fn all_may_enter(folder: &Path) -> bool {
    folder.ancestors().filter(|path| path.exists()).all(|path| {
        let metadata = path.metadata();
        metadata.is_ok_and(|metadata| metadata.mode() & 0o001 != 0)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_parent_that_others_may_not_enter_is_found() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a");
        fs::create_dir(&inner).unwrap();
        // Regardless of the umask.
        fs::set_permissions(&inner, PermissionsExt::from_mode(0o711)).unwrap();
        fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o700)).unwrap();
        assert!(!all_may_enter(&inner));
        fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o711)).unwrap();
        // Others may not be able to enter the folder of temporary files.
        let above = outer.path().parent().unwrap();
        assert_eq!(all_may_enter(&inner), all_may_enter(above));
    }
}
