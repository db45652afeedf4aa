//! Where a server that assay started listens.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;

/// The longest path of a socket: the kernel's 108 bytes with the zero at the end.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What the name of a socket's directory begins with.
pub(crate) const SOCKETS_PREFIX: &str = "assay-";

/// A private directory for sockets, which is removed when it is dropped.
pub(crate) struct SocketDirectory(PathBuf);

impl SocketDirectory {
    /// Makes one in `parent`. The file `note` names it before it is there: whatever kills this process, who reads the note
    /// can remove it.
    pub(crate) fn make(parent: &Path, note: &Path) -> std::io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix(SOCKETS_PREFIX).make_in(parent, |path| {
            fs::write(note, path.as_os_str().as_encoded_bytes())?;
            std::fs::DirBuilder::new().mode(0o700).create(path)
        })?;
        Ok(Self(made.into_temp_path().keep()?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        // The guard of a server has removed it already.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a directory for temporary files in which the path of a socket called `name` is short enough.
pub(crate) fn parent_of_sockets(name: &str) -> PathBuf {
    let parent = std::env::temp_dir();
    let longest = parent.join(format!("{SOCKETS_PREFIX}123456")).join(name);
    let is_short = longest.as_os_str().len() <= SOCKET_PATH_BYTES_MAX;
    match is_short && parent.is_dir() {
        true => parent,
        false => "/tmp".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_sockets_is_noted_before_it_is_made() {
        let place = tempfile::tempdir().unwrap();
        let (parent, note) = (place.path().join("parent"), place.path().join("note"));
        fs::create_dir(&parent).unwrap();
        let made = SocketDirectory::make(&parent, &note).unwrap();
        let noted = fs::read_to_string(&note).unwrap();
        assert_eq!(Path::new(&noted), made.path());
        assert!(made.path().is_dir());
        drop(made);
        // Where it can't be noted it is not made.
        assert!(SocketDirectory::make(&parent, &place.path().join("none/note")).is_err());
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
    }
}
