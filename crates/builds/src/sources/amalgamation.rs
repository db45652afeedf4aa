//! SQLite's versions: its source, a single C file, which packages of npm's registry have, and the
//! compilation of that file.
//!
//! No registry has shared libraries of many versions. All versions are compiled here with the same
//! flags, so they differ in nothing else.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::client;
use super::npm::Npm;
use super::unpack;
use crate::asking::version_of;
use crate::manifest::Compiled;
use crate::unprivileged::{other_user, unprivileged};

/// The package that has the source.
const PACKAGE: &str = "better-sqlite3";

/// Versions of SQLite, each with the version of the package that first had its source.
const VERSIONS: [(&str, &str); 49] = [
    ("3.25.2", "5.0.0"),
    ("3.26.0", "5.2.0"),
    ("3.29.0", "5.4.1"),
    ("3.31.1", "6.0.0"),
    ("3.32.0", "7.1.0"),
    ("3.33.0", "7.1.1"),
    ("3.34.0", "7.1.2"),
    ("3.35.2", "7.1.4"),
    ("3.36.0", "7.4.2"),
    ("3.37.0", "7.4.6"),
    ("3.37.2", "7.5.0"),
    ("3.38.2", "7.5.1"),
    ("3.38.5", "7.5.2"),
    ("3.39.0", "7.6.0"),
    ("3.39.1", "7.6.1"),
    ("3.40.0", "8.0.0"),
    ("3.40.1", "8.1.0"),
    ("3.41.0", "8.2.0"),
    ("3.41.2", "8.3.0"),
    ("3.42.0", "8.4.0"),
    ("3.43.0", "8.6.0"),
    ("3.43.1", "8.7.0"),
    ("3.43.2", "9.0.0"),
    ("3.44.0", "9.1.0"),
    ("3.44.2", "9.2.0"),
    ("3.45.0", "9.3.0"),
    ("3.45.1", "9.4.0"),
    ("3.45.2", "9.5.0"),
    ("3.45.3", "9.6.0"),
    ("3.46.0", "10.1.0"),
    ("3.46.1", "11.3.0"),
    ("3.47.0", "11.5.0"),
    ("3.47.1", "11.6.0"),
    ("3.47.2", "11.7.0"),
    ("3.48.0", "11.8.0"),
    ("3.49.1", "11.9.0"),
    ("3.49.2", "11.10.0"),
    ("3.50.2", "12.2.0"),
    ("3.50.4", "12.4.1"),
    ("3.51.0", "12.4.5"),
    ("3.51.1", "12.5.0"),
    ("3.51.2", "12.6.0"),
    ("3.51.3", "12.8.0"),
    ("3.53.0", "12.9.0"),
    ("3.53.1", "12.10.0"),
    ("3.53.2", "12.10.1"),
    ("3.53.3", "13.0.0"),
    ("3.53.4", "13.0.2"),
    ("3.54.1", "13.1.1"),
];

const SOURCE: &str = "sqlite3.c";
const LIBRARY: &str = "libsqlite3.so.0";
/// The archive of the source in older versions of the package.
const INNER_ARCHIVE: &str = "sqlite3.tar.gz";

const COMPILER: &str = "cc";
/// The flags of all versions. The rest is as SQLite's authors have it by default. Before 3.32, a
/// statement could have 999 parameters by default, which is too few for a load of sysbench.
const FLAGS: [&str; 5] =
    ["-O2", "-shared", "-fPIC", "-DSQLITE_THREADSAFE=1", "-DSQLITE_MAX_VARIABLE_NUMBER=32766"];
/// The libraries that older C libraries have apart.
const LIBRARIES: [&str; 3] = ["-lm", "-lpthread", "-ldl"];

const INSTALL: &str = "install a C compiler (Debian: `apt-get install gcc libc6-dev`), or use a Debian package such as \
`debian:bookworm/libsqlite3-0`";

/// Returns the versions that can be downloaded, the oldest first.
pub fn versions() -> Vec<String> {
    VERSIONS.iter().map(|(version, _)| (*version).to_owned()).collect()
}

/// Downloads the package with the source of a version; `None` if there is no such version. `what`
/// begins the error.
pub fn fetch(
    downloads: &Path,
    version: &str,
    what: &str,
    progress: &dyn Fn(&str),
) -> anyhow::Result<Option<PathBuf>> {
    let Some((_, published)) = VERSIONS.iter().find(|(known, _)| *known == version) else {
        return Ok(None);
    };
    Npm::new(downloads).fetch(PACKAGE, published, what, progress).map(Some)
}

/// Unpacks the source from a package to the folder `source` below `root`.
pub fn unpack(archive: &Path, root: &Path) -> anyhow::Result<()> {
    let folder = root.join("source");
    unpack::tar_gz(archive, &folder, selected_in_package)?;

    let inner = folder.join(INNER_ARCHIVE);
    if inner.is_file() {
        unpack::tar_gz(&inner, &folder, source_file)?;
        fs_err::remove_file(inner)?;
    }
    Ok(())
}

/// Selects the source in a package, or the archive that has it.
fn selected_in_package(path: &Path) -> Option<PathBuf> {
    let path = path.strip_prefix("package/deps").ok()?;
    if path == Path::new(INNER_ARCHIVE) {
        return Some(path.to_owned());
    }
    source_file(path.strip_prefix("sqlite3").ok()?)
}

/// Selects the files that the compilation needs.
fn source_file(path: &Path) -> Option<PathBuf> {
    let is_needed = [SOURCE, "sqlite3.h"].map(Path::new).contains(&path);
    is_needed.then(|| path.to_owned())
}

/// Compiles the unpacked source to a shared library in the folder `lib` below `root`. The source was
/// downloaded, and can make the compiler read any file that its user can read: so if this process runs
/// as root, `nobody` compiles a copy in a folder that is only for that.
pub fn compile(downloads: &Path, root: &Path, progress: &dyn Fn(&str)) -> anyhow::Result<Compiled> {
    progress("compiling, for up to a minute");
    fs_err::create_dir_all(root.join("lib"))?;

    let soname = format!("-Wl,-soname,{LIBRARY}");
    let mut arguments: Vec<&str> = FLAGS.to_vec();
    arguments.extend([soname.as_str(), "-o", LIBRARY, SOURCE]);
    arguments.extend(LIBRARIES);

    let place = tempfile::Builder::new().prefix("assay-sqlite-").tempdir()?;
    for entry in fs_err::read_dir(root.join("source"))? {
        let entry = entry?;
        let copy = place.path().join(entry.file_name());
        fs_err::copy(entry.path(), &copy)?;
        fs_err::set_permissions(&copy, PermissionsExt::from_mode(0o644))?;
    }
    if let Some((user, group)) = other_user() {
        fs_err::os::unix::fs::chown(place.path(), Some(user), Some(group))?;
    }

    let log = downloads.join("cc.log");
    let mut command = Command::new(COMPILER);
    // Not the folder for temporary files of this user, which others may not enter.
    unprivileged(&mut command)
        .args(&arguments)
        .current_dir(place.path())
        .env("TMPDIR", place.path());
    let output = client::run(&mut command, &log, INSTALL)?;
    if !output.is_success {
        return Err(output.error("cannot compile SQLite", COMPILER, &log).into());
    }

    let made = place.path().join(LIBRARY);
    anyhow::ensure!(
        fs_err::symlink_metadata(&made)?.is_file(),
        "`{COMPILER}` made something else than a library"
    );
    let library = root.join("lib").join(LIBRARY);
    fs_err::copy(&made, &library)?;
    fs_err::set_permissions(&library, PermissionsExt::from_mode(0o755))?;

    Ok(Compiled {
        compiler: version_of(COMPILER),
        command: format!("{COMPILER} {}", arguments.join(" ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::numbers;

    #[test]
    fn the_versions_are_in_order() {
        assert!(VERSIONS.is_sorted_by_key(|(version, _)| numbers(version)));
        assert!(VERSIONS.is_sorted_by_key(|(_, published)| numbers(published)));
    }

    #[test]
    fn the_files_of_a_package_are_selected() {
        let selected = |path: &str| selected_in_package(Path::new(path));
        assert_eq!(selected("package/deps/sqlite3/sqlite3.c"), Some(SOURCE.into()));
        assert_eq!(selected("package/deps/sqlite3.tar.gz"), Some(INNER_ARCHIVE.into()));
        assert_eq!(selected("package/deps/sqlite3/shell.c"), None);
        assert_eq!(selected("package/deps/test_extension.c"), None);
    }
}
