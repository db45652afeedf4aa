//! Builds for the tests beside the system's own: a second PostgreSQL, and MariaDB with MyRocks.
//!
//! Assay fetches them itself, from Debian's suites: that needs nothing that Debian does not have already, installs
//! nothing, and is 160 MB, once. (Maven's client alone would be as much, and installed on the system.) They stay from
//! one run to the next.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::Value;

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

/// Names a build of MySQL or MariaDB to the tests, and to benchmarks.
pub const ASSAY_TEST_MYSQL: &str = "ASSAY_TEST_MYSQL";

/// How the store calls MariaDB with MyRocks; a version's last number follows.
const MARIADB: &str = "mariadb-10.11";

/// How the store calls the PostgreSQL of a newer Debian.
const POSTGRES: &str = "postgres-17";
const NEWER_SUITE: &str = "-trixie";

/// Names the second PostgreSQL to the tests.
pub const ASSAY_TEST_OTHER_POSTGRES: &str = "ASSAY_TEST_OTHER_POSTGRES";

/// Fetches what the tests need and names it to them, as variables of their environment; and whether all is there.
/// Mirrors have their bad moments: what failed is tried once more.
pub fn for_tests(workspace: &Workspace) -> Result<(Vec<(&'static str, String)>, bool)> {
    let (folder, mut fetched) = run(workspace)?;
    if !fetched {
        fetched = run(workspace)?.1;
    }
    let mut variables = vec![(ASSAY_BUILDS, folder.display().to_string())];
    for (variable, build) in [
        (ASSAY_TEST_MYSQL, stored(&folder, MARIADB, "")?),
        (
            ASSAY_TEST_OTHER_POSTGRES,
            stored(&folder, POSTGRES, NEWER_SUITE)?,
        ),
    ] {
        if let Some(build) = build.filter(|_| std::env::var_os(variable).is_none()) {
            variables.push((variable, build));
        }
    }
    Ok((variables, fetched))
}

/// Fetches what is missing. The folder of builds, for [`ASSAY_BUILDS`]; and whether all are there: what is wrong is on
/// stderr, and the tests that need them are skipped.
pub fn run(workspace: &Workspace) -> Result<(PathBuf, bool)> {
    let folder = folder(workspace)?;
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

fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let target = workspace.target_directory()?;
    Ok(match std::env::var_os(ASSAY_BUILDS) {
        Some(folder) => PathBuf::from(folder),
        None if all_may_enter(&target) => target.join("builds"),
        None => FOR_ALL.into(),
    })
}

/// The build that [`ASSAY_TEST_MYSQL`] names, else MariaDB with MyRocks of the store, which is fetched when it is not
/// there; as the engine is told to locate it.
pub fn mariadb(workspace: &Workspace) -> Result<String> {
    if let Some(build) = std::env::var_os(ASSAY_TEST_MYSQL) {
        return build
            .into_string()
            .map_err(|_| anyhow::anyhow!("`{ASSAY_TEST_MYSQL}` is not UTF-8"));
    }
    let mut found = stored(&folder(workspace)?, MARIADB, "")?;
    if found.is_none() {
        found = stored(&run(workspace)?.0, MARIADB, "")?;
    }
    found.with_context(|| {
        format!("no `{MARIADB}` among the builds - name a build by `{ASSAY_TEST_MYSQL}`")
    })
}

/// Where the newest build of the store whose name begins and ends so has its programs.
fn stored(store: &Path, begin: &str, end: &str) -> Result<Option<String>> {
    let mut builds: Vec<PathBuf> = fs::read_dir(store)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(begin) && name.ends_with(end)
        })
        .map(|entry| entry.path())
        .filter(|build| build.join("build.json").is_file())
        .collect();
    builds.sort();
    let Some(build) = builds.pop() else {
        return Ok(None);
    };
    let manifest: Value = serde_json::from_str(&fs::read_to_string(build.join("build.json"))?)
        .with_context(|| format!("cannot read the manifest of `{}`", build.display()))?;
    match manifest["path"].as_str() {
        Some(path) => Ok(Some(build.join(path).display().to_string())),
        None => bail!("the manifest of `{}` names no path", build.display()),
    }
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
    fn the_newest_build_that_is_whole_is_taken() {
        let store = tempfile::tempdir().unwrap();
        assert_eq!(stored(store.path(), MARIADB, "").unwrap(), None);
        for (name, manifest) in [
            ("mariadb-10.11.17-bookworm", Some(r#"{"path": "root/old"}"#)),
            ("mariadb-10.11.18-bookworm", Some(r#"{"path": "root/usr"}"#)),
            ("mariadb-10.11.19-bookworm", None),
            ("postgres-17.2", Some("{}")),
        ] {
            let build = store.path().join(name);
            fs::create_dir(&build).unwrap();
            if let Some(manifest) = manifest {
                fs::write(build.join("build.json"), manifest).unwrap();
            }
        }
        let found = stored(store.path(), MARIADB, "").unwrap().unwrap();
        assert!(found.ends_with("mariadb-10.11.18-bookworm/root/usr"));
        assert_eq!(stored(store.path(), POSTGRES, NEWER_SUITE).unwrap(), None);
    }

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
