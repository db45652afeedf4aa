//! Files with a name that measurements make in a directory of the user, and remove.

use std::io;
use std::path::Path;

use fs_err::File;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::TempPath;

/// The prefix of the file's name.
const PREFIX: &str = ".assay-disk-";

/// A new file that nobody else can open. It is removed when this is dropped, or by the next
/// measurement in its directory if the process was killed.
pub(crate) struct ScratchFile {
    pub(crate) file: File,
    path: TempPath,
}

impl ScratchFile {
    /// Makes a file, and removes those that killed processes left in the directory.
    pub(crate) fn create(dir: &Path) -> io::Result<Self> {
        remove_leftovers(dir);
        let (file, path) = tempfile::Builder::new().prefix(PREFIX).tempfile_in(dir)?.into_parts();
        // The lock keeps other processes from removing the file. Without locks in the file system,
        // nobody removes any.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let file = File::from_parts(file, &*path);
        Ok(Self { file, path })
    }

    /// Removes the file, and says if that fails.
    pub(crate) fn remove(self) -> io::Result<()> {
        match self.path.close() {
            // Another process removed the file before it was locked.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

/// Removes the unlocked files of processes that were killed during a measurement. Ignores files
/// that cannot be removed.
fn remove_leftovers(dir: &Path) {
    for entry in fs_err::read_dir(dir).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = open_without_waiting(&entry.path())
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs_err::remove_file(entry.path());
        }
    }
}

/// Opens a file that others may replace by a link or a pipe.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = fs_err::OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_killed_process_is_removed_and_a_locked_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in [".assay-disk-leftover", ".assay-disk-locked", "theirs"] {
            fs_err::write(path(name), "x").unwrap();
        }
        let locked = File::open(path(".assay-disk-locked")).unwrap();
        flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
        ScratchFile::create(dir.path()).unwrap().remove().unwrap();
        assert!(!path(".assay-disk-leftover").exists());
        assert!(path(".assay-disk-locked").exists() && path("theirs").exists());
    }

    #[test]
    fn a_link_with_the_name_of_a_leftover_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("theirs");
        fs_err::write(&theirs, "x").unwrap();
        let link = dir.path().join(".assay-disk-link");
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        drop(ScratchFile::create(dir.path()).unwrap());
        assert!(link.is_symlink() && theirs.exists());
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 2);
    }
}
