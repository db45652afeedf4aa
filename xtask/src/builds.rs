//! Builds for the tests beside the system's own: a second PostgreSQL, and MariaDB with MyRocks.
//!
//! Assay fetches them itself, from Debian's suites: that needs nothing that Debian does not have already, installs
//! nothing, and is 160 MB, once. (Maven's client alone would be as much, and installed on the system.) They stay from
//! one run to the next.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::workspace::{Workspace, succeeds};

/// Names the folder of builds to assay and to its tests.
pub const ASSAY_BUILDS: &str = "ASSAY_BUILDS";

/// What is fetched: PostgreSQL of a newer Debian, which brings a C library of its own; MariaDB of the same.
const SPECS: [&str; 2] = [
    "debian:trixie/postgresql-17",
    "debian:bookworm/mariadb-server,mariadb-plugin-rocksdb",
];

/// Where builds are kept when a server's user can't reach the target directory, as below `/root`.
const FOR_ALL: &str = "/var/tmp/assay-test-builds";

/// Fetches what is missing. The folder of builds, for [`ASSAY_BUILDS`]; and whether all are there: what is wrong is on
/// stderr, and the tests that need them are skipped.
pub fn run(workspace: &Workspace) -> Result<(PathBuf, bool)> {
    let target = workspace.target_directory()?;
    let folder = match std::env::var_os(ASSAY_BUILDS) {
        Some(folder) => PathBuf::from(folder),
        None if all_may_enter(&target) => target.join("builds"),
        None => FOR_ALL.into(),
    };
    fs::create_dir_all(&folder)?;
    let fetched = succeeds(
        workspace
            .cargo()
            .args(["run", "--quiet", "--package", "assay", "--", "fetch"])
            .args(SPECS)
            .env(ASSAY_BUILDS, &folder)
            // Its list of builds is of no interest here.
            .stdout(std::process::Stdio::null()),
    )?;
    if !fetched {
        eprintln!(
            "warning: not all builds could be fetched - the tests that need them are skipped"
        );
    }
    Ok((folder, fetched))
}

/// Whether every user may enter `folder` and all above it.
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
        fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o700)).unwrap();
        assert!(!all_may_enter(&inner));
        fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o711)).unwrap();
        assert!(all_may_enter(&inner));
    }
}
