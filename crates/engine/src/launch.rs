//! Builds whose programs can't be started directly: they were made for another C library than this system's, and
//! have their own with them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fs_err as fs;

/// How the programs of a build are run: by a dynamic loader of its own, with its own libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The loader: `ld-linux-x86-64.so.2`.
    pub loader: PathBuf,
    /// Where it looks for libraries, in this order.
    pub library_path: Vec<PathBuf>,
}

/// Where a distribution's packages put libraries.
const LIBRARY_DIRECTORIES: [&str; 2] = ["lib", "usr/lib"];

impl Launch {
    /// For packages of a distribution that were unpacked into `root`, the C library among them; `None` when it is not.
    pub fn of_root(root: &Path) -> Option<Self> {
        let root = fs::canonicalize(root).ok()?;
        let mut library_path = Vec::new();
        for parent in LIBRARY_DIRECTORIES {
            let Ok(entries) = fs::read_dir(root.join(parent)) else {
                continue;
            };
            let mut found: Vec<PathBuf> = entries
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().contains("-linux-"))
                .map(|entry| entry.path())
                .filter(|path| path.is_dir())
                .collect();
            found.sort();
            library_path.extend(found);
        }
        let loader = library_path.iter().find_map(|directory| {
            fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
                let name = entry.file_name();
                let is_loader = name.to_string_lossy().starts_with("ld-linux");
                // A link with an absolute path leads to this system's own.
                let path = fs::canonicalize(entry.path()).ok()?;
                (is_loader && path.starts_with(&root)).then_some(path)
            })
        })?;
        library_path.extend(LIBRARY_DIRECTORIES.map(|parent| root.join(parent)));
        library_path.retain(|path| path.is_dir());
        Some(Self {
            loader,
            library_path,
        })
    }

    /// What has to stand before a program's arguments, it included, after the loader.
    fn before(&self, program: &Path) -> Vec<OsString> {
        let mut path = OsString::new();
        for directory in &self.library_path {
            if !path.is_empty() {
                path.push(":");
            }
            path.push(directory);
        }
        vec!["--library-path".into(), path, program.into()]
    }
}

/// The program to start and its arguments, for `program` with `args`.
pub(crate) fn command(
    launch: Option<&Launch>,
    program: &Path,
    args: impl IntoIterator<Item = OsString>,
) -> (PathBuf, Vec<OsString>) {
    match launch {
        None => (program.to_path_buf(), args.into_iter().collect()),
        Some(launch) => (
            launch.loader.clone(),
            launch.before(program).into_iter().chain(args).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacked_packages_run_by_their_own_loader() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Launch::of_root(root.path()), None);
        let libraries = root.path().join("usr/lib/x86_64-linux-gnu");
        fs::create_dir_all(&libraries).unwrap();
        // Of the system, not of the root.
        std::os::unix::fs::symlink("/bin/sh", libraries.join("ld-linux-other.so")).unwrap();
        assert_eq!(Launch::of_root(root.path()), None);
        fs::write(libraries.join("ld-linux-x86-64.so.2"), "").unwrap();
        let launch = Launch::of_root(root.path()).unwrap();
        let (program, args) = command(Some(&launch), Path::new("/x/mysqld"), ["-V".into()]);
        assert!(program.ends_with("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"));
        assert_eq!(args[0], "--library-path");
        assert!(args[1].to_string_lossy().contains("x86_64-linux-gnu:"));
        assert_eq!(args[2..], ["/x/mysqld", "-V"]);
    }
}
