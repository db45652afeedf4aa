//! A file that is there only when all of it was written.

use std::io;
use std::path::{Path, PathBuf};

use fs_err::File;

/// A file that gets its name when it is complete. If dropped before, it is removed.
pub(super) struct NewFile {
    partial: PathBuf,
    path: PathBuf,
    is_kept: bool,
}

impl NewFile {
    pub(super) fn new(path: &Path) -> Self {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        Self { partial: partial.into(), path: path.to_owned(), is_kept: false }
    }

    /// Creates the file under its temporary name, not through a link that others may have put
    /// there.
    pub(super) fn create(&self) -> io::Result<File> {
        // A process that was killed may have left one.
        match fs_err::remove_file(&self.partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => File::create_new(&self.partial),
        }
    }

    pub(super) fn keep(mut self) -> io::Result<()> {
        fs_err::rename(&self.partial, &self.path)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // The error that kept it from being completed was reported.
            let _ = fs_err::remove_file(&self.partial);
        }
    }
}
