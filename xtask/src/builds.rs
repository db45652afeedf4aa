//! Builds for the tests beside the system's own: a second PostgreSQL, MariaDB with MyRocks, and libraries of RocksDB
//! and Speedb.
//!
//! Assay fetches them itself. The servers come from Debian's suites: that needs nothing that Debian does not have
//! already, installs nothing, and is 160 MB, once. The libraries are published as Java artifacts and by Maven's client
//! alone: 150 MB once, of which 40 MB are kept, and the client is installed where it is missing and a library too.
//! They stay from one run to the next.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::Value;

use crate::prepare;
use crate::workspace::{Workspace, in_the_end, succeeds};

/// Names the folder of builds to assay and to its tests.
pub const ASSAY_BUILDS: &str = "ASSAY_BUILDS";

/// What is fetched: PostgreSQL of a newer Debian, which brings a C library of its own; MariaDB of the same; an old
/// RocksDB and a new one, and Speedb, 52, 73 and 21 MB; and a PostgreSQL as Maven has it.
const BUILDS: [&str; 6] = [
    "debian:trixie/postgresql-17",
    "debian:bookworm/mariadb-server,mariadb-plugin-rocksdb",
    "rocksdb@6.29.5",
    "rocksdb@10.2.1",
    "speedb@2.8.0",
    "postgres@17.2",
];

/// Names libraries of RocksDB to the tests, separated by colons.
const ASSAY_TEST_ROCKSDB: &str = "ASSAY_TEST_ROCKSDB";

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

/// Fetches what the tests need; the variables that name it to them. Assay must have been built.
pub fn for_tests(workspace: &Workspace) -> Result<Vec<(&'static str, String)>> {
    let folder = folder(workspace)?;
    fetch(workspace, &folder)?;
    let mut variables = vec![(ASSAY_BUILDS, folder.display().to_string())];
    for (variable, build) in [
        (ASSAY_TEST_MYSQL, stored(&folder, MARIADB, "")?),
        (
            ASSAY_TEST_OTHER_POSTGRES,
            stored(&folder, POSTGRES, NEWER_SUITE)?,
        ),
        (ASSAY_TEST_ROCKSDB, stored_libraries(&folder)?),
    ] {
        if let Some(build) = build.filter(|_| std::env::var_os(variable).is_none()) {
            variables.push((variable, build));
        }
    }
    Ok(variables)
}

/// Fetches what is missing. The folder of builds, for [`ASSAY_BUILDS`]; and whether all are there: what is wrong is on
/// stderr, and the tests that need them are skipped.
pub fn run(workspace: &Workspace) -> Result<(PathBuf, bool)> {
    let mut build = workspace.cargo();
    build.args(["build", "--quiet", "--package", "assay"]);
    anyhow::ensure!(succeeds(&mut build)?, "assay does not compile");
    let folder = folder(workspace)?;
    let fetched = fetch(workspace, &folder)?;
    Ok((folder, fetched))
}

/// Fetches with the assay that was built last; whether all are there then.
fn fetch(workspace: &Workspace, folder: &Path) -> Result<bool> {
    fs::create_dir_all(folder)?;
    // Assay itself says what is wrong where it is not there.
    prepare::program("mvn", "maven")?;
    let assay = workspace.target_directory()?.join("debug/assay");
    let fetched = in_the_end("fetching builds", || {
        let mut command = workspace.command(&assay);
        command.arg("fetch").args(BUILDS).env(ASSAY_BUILDS, folder);
        // Its list of builds is of no interest here.
        succeeds(command.stdout(Stdio::null()))
    })?;
    if !fetched {
        eprintln!(
            "warning: not all builds could be fetched - the tests that need them are skipped"
        );
    }
    Ok(fetched)
}

/// The libraries of the store that the tests use, as [`ASSAY_TEST_ROCKSDB`] names them; `None` where there are none.
fn stored_libraries(store: &Path) -> Result<Option<String>> {
    let mut paths = Vec::new();
    for spec in BUILDS {
        let is_library = spec.starts_with("rocksdb@") || spec.starts_with("speedb@");
        if is_library {
            paths.extend(stored(store, &spec.replace('@', "-"), "")?);
        }
    }
    Ok((!paths.is_empty()).then(|| paths.join(":")))
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

/// The build that [`ASSAY_TEST_MYSQL`] names, else MariaDB with MyRocks of the store, which is fetched when it is not
/// there; as the engine is told to locate it.
pub fn mariadb(workspace: &Workspace) -> Result<String> {
    if let Some(build) = std::env::var_os(ASSAY_TEST_MYSQL) {
        return build
            .into_string()
            .map_err(|_| anyhow::anyhow!("`{ASSAY_TEST_MYSQL}` is not UTF-8"));
    }
    let folder = folder(workspace)?;
    let mut found = stored(&folder, MARIADB, "")?;
    if found.is_none() {
        run(workspace)?;
        found = stored(&folder, MARIADB, "")?;
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
    builds.sort_by_cached_key(|build| numbers(build));
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

/// The numbers in the name of a build, by which versions are in order: 10.11.9 comes before 10.11.18.
fn numbers(build: &Path) -> Vec<u64> {
    let name = build.file_name().unwrap_or_default().to_string_lossy();
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
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
            ("mariadb-10.11.9-bookworm", Some(r#"{"path": "root/old"}"#)),
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
    fn the_libraries_that_are_there_are_named_in_their_order() {
        let store = tempfile::tempdir().unwrap();
        assert_eq!(stored_libraries(store.path()).unwrap(), None);
        for name in ["speedb-2.8.0", "rocksdb-6.29.5", "rocksdb-9.9.3"] {
            let build = store.path().join(name);
            fs::create_dir(&build).unwrap();
            fs::write(build.join("build.json"), r#"{"path": "root/it.so"}"#).unwrap();
        }
        let at = |name: &str| format!("{}/{name}/root/it.so", store.path().display());
        assert_eq!(
            stored_libraries(store.path()).unwrap(),
            Some([at("rocksdb-6.29.5"), at("speedb-2.8.0")].join(":"))
        );
    }

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
