//! Where a server that assay started listens.

use crate::SetupError;

/// The longest path of a socket: the kernel's 108 bytes with the zero at the end.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What the name of a socket's directory begins with.
pub(crate) const SOCKETS_PREFIX: &str = "assay-";

/// Makes a private directory for a socket called `name`, with a path short enough for one.
pub(crate) fn socket_directory(name: &str) -> Result<tempfile::TempDir, SetupError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(SOCKETS_PREFIX);
    if let Ok(directory) = builder.tempdir()
        && directory.path().join(name).as_os_str().len() <= SOCKET_PATH_BYTES_MAX
    {
        return Ok(directory);
    }
    Ok(builder.tempdir_in("/tmp")?)
}
