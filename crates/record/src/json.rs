//! JSON files that are written completely or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::RecordError;

/// Writes `value` to a temporary file, syncs it, and replaces the file at `path` with it.
pub(crate) fn write<T: Serialize + DeserializeOwned>(
    path: &Path,
    value: &T,
) -> Result<(), RecordError> {
    let unrecordable = |error: serde_json::Error| {
        RecordError::unrecordable(path, format!("a value that JSON can't hold ({error})"))
    };
    let mut text = serde_json::to_vec_pretty(value).map_err(unrecordable)?;
    text.push(b'\n');
    // A float that is not finite would become `null`, which can't be read back.
    serde_json::from_slice::<T>(&text).map_err(unrecordable)?;
    write_atomically(path, &text)
}

/// Reads a file from [`write`].
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, RecordError> {
    let text = fs_err::read(path).map_err(RecordError::io("read", path))?;
    serde_json::from_slice(&text).map_err(|error| RecordError::damaged(path, error.to_string()))
}

/// Writes and syncs a temporary file, renames it to `path`, and syncs the directory.
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

/// Returns a path with `suffix` added to its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), RecordError> {
    let opened = fs_err::File::open(path).map_err(RecordError::io("open", path))?;
    opened.sync_all().map_err(RecordError::io("sync directory", path))
}
