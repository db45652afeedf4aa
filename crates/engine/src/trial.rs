//! Temporary directories in which configs are tried before a run.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::SetupError;

const PREFIX: &str = "assay-trial-";

/// A directory that is removed when it is dropped, or by the next trial if assay was killed before.
pub(crate) struct Directory {
    directory: TempDir,
    /// The open directory: its lock says that the directory is in use.
    _lock: fs::File,
}

impl Directory {
    pub(crate) fn make() -> Result<Self, SetupError> {
        Self::make_in(&std::env::temp_dir())
    }

    fn make_in(parent: &Path) -> Result<Self, SetupError> {
        remove_left(parent);
        // Another process may remove a directory between its creation and its lock; the next one has the same chance.
        for _ in 0..100 {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            if let Some(lock) = lock(directory.path()) {
                return Ok(Self {
                    directory,
                    _lock: lock,
                });
            }
        }
        let what = format!("cannot lock a new directory in `{}`", parent.display());
        Err(std::io::Error::other(what).into())
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Locks a directory unless another process has locked or removed it.
fn lock(path: &Path) -> Option<fs::File> {
    let opened = fs::File::open(path).ok()?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive).ok()?;
    path.exists().then_some(opened)
}

/// Removes this user's directories whose processes were killed.
fn remove_left(parent: &Path) {
    let uid = rustix::process::geteuid().as_raw();
    let is_ours = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry
                .metadata()
                .is_ok_and(|it| it.is_dir() && it.uid() == uid)
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(is_ours) {
        if let Some(_lock) = lock(&entry.path()) {
            // Reached under the lock, so no process uses it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_used_stays() {
        // Of its own: other tests make trials at the same time, and sweep what they find.
        let parent = tempfile::tempdir().unwrap();
        let used = Directory::make_in(parent.path()).unwrap();
        // Killed at once, and in the midst of its trial.
        let [empty, full] =
            ["empty", "full"].map(|name| parent.path().join(format!("{PREFIX}{name}")));
        fs::create_dir(&empty).unwrap();
        fs::create_dir(&full).unwrap();
        fs::write(full.join("database"), "x").unwrap();
        let other = Directory::make_in(parent.path()).unwrap();
        assert!(used.path().exists() && other.path().exists());
        assert!(!empty.exists() && !full.exists());
    }
}
