//! Builds for the tests beside the system's own: a second PostgreSQL, MariaDB with MyRocks, and libraries of RocksDB
//! and Speedb.
//!
//! Assay fetches them itself. The servers come from Debian's suites: that needs nothing that Debian does not have
//! already, installs nothing, and is 160 MB, once. The libraries are published as Java artifacts and by Maven's client
//! alone: 150 MB once, of which 40 MB are kept, and the client is installed where it is missing and a library too.
//! They stay from one run to the next.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::prepare;
use crate::workspace::{Workspace, in_the_end, printed};

/// Names the folder of builds to assay and to its tests.
pub const ASSAY_BUILDS: &str = "ASSAY_BUILDS";
/// Names a build of MySQL or MariaDB to the tests, and to benchmarks.
pub const ASSAY_TEST_MYSQL: &str = "ASSAY_TEST_MYSQL";
/// Names the second PostgreSQL to the tests.
pub const ASSAY_TEST_OTHER_POSTGRES: &str = "ASSAY_TEST_OTHER_POSTGRES";
/// Names libraries of RocksDB to the tests, separated by colons.
const ASSAY_TEST_ROCKSDB: &str = "ASSAY_TEST_ROCKSDB";

/// MariaDB with MyRocks.
pub const MARIADB: &str = "debian:bookworm/mariadb-server,mariadb-plugin-rocksdb";

/// What is fetched, and the variable that names it to the tests: PostgreSQL of a newer Debian, which brings a C library of
/// its own; MariaDB of the same; an old RocksDB and a new one, and Speedb, 52, 73 and 21 MB; and a PostgreSQL as Maven has
/// it, which tests look for in the store: no variable names it.
const BUILDS: [(&str, &str); 6] = [
    ("debian:trixie/postgresql-17", ASSAY_TEST_OTHER_POSTGRES),
    (MARIADB, ASSAY_TEST_MYSQL),
    ("rocksdb@6.29.5", ASSAY_TEST_ROCKSDB),
    ("rocksdb@10.2.1", ASSAY_TEST_ROCKSDB),
    ("speedb@2.8.0", ASSAY_TEST_ROCKSDB),
    ("postgres@17.2", ""),
];

/// Where builds are kept when a server's user can't reach the target directory, as below `/root`.
const FOR_ALL: &str = "/var/tmp/assay-test-builds";

/// Fetches what is missing with the assay that was built last. Returns the variables that name builds to the tests, the
/// folder of all first, and whether all are there: what is wrong is on stderr, and the tests that need them are skipped.
pub fn for_tests(workspace: &Workspace) -> Result<(Vec<(&'static str, String)>, bool)> {
    let folder = folder(workspace)?;
    fs::create_dir_all(&folder)?;
    // Assay itself says what is wrong where it is not there.
    prepare::has(&["maven"])?;
    let assay = workspace.target_directory()?.join("debug/assay");
    let mut builds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let fetched = in_the_end("fetching builds", || {
        builds.clear();
        let mut is_whole = true;
        for (spec, variable) in BUILDS {
            let mut command = workspace.command(&assay);
            let printed = printed(command.args(["fetch", spec]).env(ASSAY_BUILDS, &folder))?;
            let path = printed.as_deref().and_then(path);
            is_whole &= path.is_some();
            builds
                .entry(variable)
                .or_default()
                .extend(path.map(str::to_owned));
        }
        Ok(is_whole)
    })?;
    if !fetched {
        eprintln!(
            "warning: not all builds could be fetched - the tests that need them are skipped"
        );
    }
    builds.remove("");
    let mut variables = vec![(ASSAY_BUILDS, folder.display().to_string())];
    for (variable, paths) in builds {
        let given = std::env::var(variable).ok();
        let found = (!paths.is_empty()).then(|| paths.join(":"));
        variables.extend(given.or(found).map(|value| (variable, value)));
    }
    Ok((variables, fetched))
}

/// Returns where the build is that `assay fetch` has printed: the last word of `NAME PRODUCT VERSION PATH`.
pub fn path(printed: &str) -> Option<&str> {
    Some(printed.trim_end().rsplit_once('\t')?.1)
}

/// Returns the folder of builds.
pub fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let target = workspace.target_directory()?;
    Ok(match std::env::var_os(ASSAY_BUILDS) {
        Some(folder) => PathBuf::from(folder),
        None if all_may_enter(&target) => target.join("builds"),
        None => FOR_ALL.into(),
    })
}

/// Returns whether every user may enter `folder` and all above it.
fn all_may_enter(folder: &Path) -> bool {
    folder
        .ancestors()
        .all(|path| !path.exists() || path.metadata().is_ok_and(|it| it.mode() & 0o001 != 0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_closed_folder_on_the_way_is_seen() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a");
        fs::create_dir(&inner).unwrap();
        // Whatever files are made with here.
        fs::set_permissions(&inner, PermissionsExt::from_mode(0o711)).unwrap();
        fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o700)).unwrap();
        assert!(!all_may_enter(&inner));
        fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o711)).unwrap();
        // The folder of temporary files may itself be closed.
        let above = outer.path().parent().unwrap();
        assert_eq!(all_may_enter(&inner), all_may_enter(above));
    }
}
