//! JSON files that are there whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::RecordError;

/// Writes `value` beside `path`, syncs it, and puts it in the place of what was there before.
pub(crate) fn write<T: Serialize + DeserializeOwned>(
    path: &Path,
    value: &T,
) -> Result<(), RecordError> {
    let unrecordable = |error: serde_json::Error| {
        RecordError::unrecordable(path, format!("a value that JSON can't hold ({error})"))
    };
    let mut text = serde_json::to_vec_pretty(value).map_err(unrecordable)?;
    text.push(b'\n');
    // A float that is not finite would become `null`, which nobody could read back: better to fail now.
    serde_json::from_slice::<T>(&text).map_err(unrecordable)?;
    write_atomically(path, &text)
}

/// Reads a file that [`write`] wrote.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, RecordError> {
    let text = fs_err::read(path).map_err(RecordError::io("read", path))?;
    serde_json::from_slice(&text).map_err(|error| RecordError::damaged(path, error.to_string()))
}

/// Writes, syncs, renames, syncs the directory.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let temporary = with_suffix(path, ".tmp");
    let error = || RecordError::io("write", path);
    let mut file = fs_err::File::create(&temporary).map_err(error())?;
    file.write_all(bytes).map_err(error())?;
    file.sync_all().map_err(error())?;
    fs_err::rename(&temporary, path).map_err(error())?;
    match path.parent() {
        Some(directory) => sync_directory(directory),
        None => Ok(()),
    }
}

/// Returns a path whose name goes on with `ending`.
pub(crate) fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// Makes the names in a directory last.
pub(crate) fn sync_directory(path: &Path) -> Result<(), RecordError> {
    let opened = fs_err::File::open(path).map_err(RecordError::io("open", path))?;
    opened
        .sync_all()
        .map_err(RecordError::io("sync directory", path))
}
