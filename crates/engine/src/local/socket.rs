//! Where a server that assay started listens.

use std::path::PathBuf;

use crate::SetupError;

/// The longest path of a socket: the kernel's 108 bytes with the zero at the end.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What the name of a socket's directory begins with.
pub(crate) const SOCKETS_PREFIX: &str = "assay-";

/// A private directory for a socket called `name`, with a path short enough for one.
pub(crate) fn socket_directory(name: &str) -> Result<tempfile::TempDir, SetupError> {
    let mut last = None;
    for parent in [std::env::temp_dir(), PathBuf::from("/tmp")] {
        let directory = match tempfile::Builder::new()
            .prefix(SOCKETS_PREFIX)
            .tempdir_in(&parent)
        {
            Ok(directory) => directory,
            Err(source) => {
                last = Some(source.into());
                continue;
            }
        };
        let length = directory.path().join(name).as_os_str().len();
        if length <= SOCKET_PATH_BYTES_MAX {
            return Ok(directory);
        }
        last = Some(SetupError::Directory {
            path: parent,
            what: format!(
                "a socket in it has a path of {length} bytes; at most {SOCKET_PATH_BYTES_MAX} are allowed"
            ),
            help: "set TMPDIR to a directory with a shorter path".into(),
        });
    }
    Err(last.unwrap_or_else(|| SetupError::Directory {
        path: "/tmp".into(),
        what: "no directory for the socket".into(),
        help: "set TMPDIR".into(),
    }))
}
