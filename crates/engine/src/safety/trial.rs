//! Temporary directories in which configs are tested before a run.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::error::SetupError;

const PREFIX: &str = "assay-trial-";

/// The time that a trial may take. Reading a config takes less than a second.
pub const TRIAL_TIMEOUT: Duration = Duration::from_secs(60);

/// The memory that each process of a trial may use. A trial needs no cache of the size that its
/// config asks for.
pub const TRIAL_MEMORY_BYTES_MAX: u64 = 2 << 30;

/// A directory that is removed on drop, or by the next trial if assay was killed.
pub(crate) struct Directory {
    directory: TempDir,
    /// The open directory: its lock says that the directory is in use.
    _lock: fs::File,
}

impl Directory {
    pub(crate) fn create() -> Result<Self, SetupError> {
        let parent = std::env::temp_dir();
        if !parent.is_dir() {
            let path = parent.display();
            let source = match std::env::var_os("TMPDIR") {
                Some(_) => "the variable TMPDIR",
                None => "the default directory for temporary files",
            };

            let what = format!(
                "`{path}` ({source}) is not a directory; set TMPDIR to an existing directory on a local file system"
            );
            return Err(std::io::Error::other(what).into());
        }

        Self::create_in(&parent)
    }

    fn create_in(parent: &Path) -> Result<Self, SetupError> {
        remove_leftovers(parent);

        // Another process may remove a directory before it is locked.
        for _ in 0..100 {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            if let Some(lock) = lock(directory.path()) {
                return Ok(Self { directory, _lock: lock });
            }
        }

        let what = format!(
            "cannot lock a new directory in `{}`; set TMPDIR to a directory on a local file system",
            parent.display()
        );
        Err(std::io::Error::other(what).into())
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Locks a directory unless another process has locked or removed it.
fn lock(path: &Path) -> Option<fs::File> {
    let directory = fs::File::open(path).ok()?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    path.exists().then_some(directory)
}

/// Removes this user's directories whose processes were killed.
fn remove_leftovers(parent: &Path) {
    let uid = rustix::process::geteuid().as_raw();
    let is_ours = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == uid)
    };

    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(is_ours) {
        if let Some(_lock) = lock(&entry.path()) {
            // The lock shows that no process uses the directory.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_a_killed_process_is_removed_and_one_in_use_is_not() {
        // Separate from other tests, which remove leftovers at the same time.
        let parent = tempfile::tempdir().unwrap();
        let used = Directory::create_in(parent.path()).unwrap();
        // One process was killed at once, and one during its trial.
        let [empty, full] =
            ["empty", "full"].map(|name| parent.path().join(format!("{PREFIX}{name}")));
        fs::create_dir(&empty).unwrap();
        fs::create_dir(&full).unwrap();
        fs::write(full.join("database"), "x").unwrap();
        let other = Directory::create_in(parent.path()).unwrap();
        assert!(used.path().exists() && other.path().exists());
        assert!(!empty.exists() && !full.exists());
    }
}
