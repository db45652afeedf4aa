//! The directory of the socket on which a server that assay started listens, and of its private
//! key.

use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;

/// The maximum length of a socket's path: the kernel's 108 bytes include a zero at the end.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The prefix of the names of socket directories.
pub(crate) const SOCKETS_PREFIX: &str = "assay-";

/// A private directory for sockets and keys, which is removed on drop.
pub(crate) struct SocketDirectory(PathBuf);

impl SocketDirectory {
    /// Creates a directory in `parent`. First writes its path to the file `note`, so that it can be
    /// removed even if this process is killed.
    pub(crate) fn create(parent: &Path, note: &Path) -> std::io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let directory = builder.prefix(SOCKETS_PREFIX).make_in(parent, |path| {
            // A try before this one may have left a note.
            let _ = fs::remove_file(note);
            fs::File::create_new(note)?.write_all(path.as_os_str().as_encoded_bytes())?;
            std::fs::DirBuilder::new().mode(0o700).create(path)
        })?;
        Ok(Self(directory.into_temp_path().keep()?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        // A server's guard has already removed it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a directory for temporary files in which the path of a socket with this name is short
/// enough.
pub(crate) fn socket_parent(name: &str) -> PathBuf {
    let parent = std::env::temp_dir();
    let longest = parent.join(format!("{SOCKETS_PREFIX}123456")).join(name);
    let is_short = longest.as_os_str().len() <= SOCKET_PATH_BYTES_MAX;
    if is_short && parent.is_dir() { parent } else { "/tmp".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_directory_is_noted_before_it_is_created() {
        let place = tempfile::tempdir().unwrap();
        let (parent, note) = (place.path().join("parent"), place.path().join("note"));
        fs::create_dir(&parent).unwrap();
        let directory = SocketDirectory::create(&parent, &note).unwrap();
        let noted = fs::read_to_string(&note).unwrap();
        assert_eq!(Path::new(&noted), directory.path());
        assert!(directory.path().is_dir());
        drop(directory);
        // Without a note, it is not created.
        assert!(SocketDirectory::create(&parent, &place.path().join("none/note")).is_err());
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
    }
}
