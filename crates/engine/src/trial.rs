//! Temporary directories in which configs are tried before a run.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::SetupError;

const PREFIX: &str = "assay-trial-";

/// Held as long as the directory is used.
const LOCK: &str = "lock";

/// A directory that is removed when it is dropped, and by the next trial where assay was killed before.
pub(crate) struct Directory {
    directory: TempDir,
    _lock: fs::File,
}

impl Directory {
    pub(crate) fn make() -> Result<Self, SetupError> {
        remove_left(&std::env::temp_dir());
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let mut lock = fs::File::create(directory.path().join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            let error = std::io::Error::from(error);
            let what = format!("cannot lock `{}`: {error}", lock.path().display());
            std::io::Error::new(error.kind(), what)
        })?;
        // Only now may others take it for one that was left.
        lock.write_all(b"locked\n")?;
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories of this user whose processes were killed.
fn remove_left(parent: &Path) {
    let uid = rustix::process::geteuid().as_raw();
    let is_left = |entry: &fs::DirEntry| {
        let is_ours = |it: std::fs::Metadata| it.is_dir() && it.uid() == uid;
        entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(is_ours)
            && fs::File::open(entry.path().join(LOCK)).is_ok_and(|lock| {
                lock.metadata().is_ok_and(|it| it.len() > 0)
                    && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
            })
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(is_left) {
        // Two may do so at once.
        let _ = fs::remove_dir_all(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_used_stays() {
        let used = Directory::make().unwrap();
        let left = tempfile::Builder::new().prefix(PREFIX).tempdir().unwrap();
        fs::write(left.path().join(LOCK), "locked\n").unwrap();
        let begun = tempfile::Builder::new().prefix(PREFIX).tempdir().unwrap();
        fs::write(begun.path().join(LOCK), "").unwrap();
        let other = Directory::make().unwrap();
        assert!(used.path().exists() && other.path().exists() && begun.path().exists());
        assert!(!left.path().exists());
    }
}
