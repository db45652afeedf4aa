//! JSON files that are written completely or not at all, and whose damage is found. The last key of
//! each is the checksum of the rest:
//!
//! ```text
//!   "ended_unix_ns": null,
//!   "crc32": "8d6f1a02"
//! }
//! ```

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::checksum;
use super::folder::Folder;
use crate::{RecordError, StepFile};

/// The end of every file, before and after the checksum.
const END: &[u8] = b"\n}\n";
const BEFORE_SUM: &[u8] = b",\n  \"crc32\": \"";
const AFTER_SUM: &[u8] = b"\"\n}\n";
/// The number of hexadecimal digits of a CRC-32.
const SUM_DIGITS: usize = 8;

/// Replaces a file with `value`, and returns the size and the checksum of the whole file.
pub(crate) fn write<T: Serialize + DeserializeOwned>(
    folder: &Folder,
    name: &str,
    value: &T,
) -> Result<StepFile, RecordError> {
    let bytes = to_bytes(&folder.path().join(name), value)?;
    folder.replace(name, &bytes)?;
    Ok(checksum::of_bytes(name, &bytes))
}

/// Replaces a JSON file that is no part of the record, but is kept beside it, with its checksum.
///
/// # Errors
/// A value is no JSON, or the file cannot be written.
pub fn write_beside<T: Serialize + DeserializeOwned>(
    run: &Path,
    name: &str,
    value: &T,
) -> Result<(), RecordError> {
    write(&Folder::of_run(run.to_owned()), name, value).map(drop)
}

/// Reads a file from [`write_beside`].
///
/// # Errors
/// The file cannot be read, or is not as it was written.
pub fn read_beside<T: DeserializeOwned>(run: &Path, name: &str) -> Result<T, RecordError> {
    read(&Folder::of_run(run.to_owned()), name, true)
}

/// Returns the text of a file, with its checksum.
fn to_bytes<T: Serialize + DeserializeOwned>(
    path: &Path,
    value: &T,
) -> Result<Vec<u8>, RecordError> {
    let unrecordable = |error: serde_json::Error| {
        RecordError::unrecordable(path, format!("a value that JSON cannot hold ({error})"))
    };
    let mut bytes = serde_json::to_vec_pretty(value).map_err(unrecordable)?;
    bytes.push(b'\n');

    // A float that is not finite would become `null`, which cannot be read back.
    serde_json::from_slice::<T>(&bytes).map_err(unrecordable)?;

    let sum = checksum::hex(crc32fast::hash(&bytes));
    bytes.truncate(bytes.len() - END.len());
    bytes.extend([BEFORE_SUM, sum.as_bytes(), AFTER_SUM].concat());
    Ok(bytes)
}

/// Reads a file from [`write`]. Without `is_summed`, the file may lack a checksum, as those of the
/// first format do.
pub(crate) fn read<T: DeserializeOwned>(
    folder: &Folder,
    name: &str,
    is_summed: bool,
) -> Result<T, RecordError> {
    parse(&folder.path().join(name), &folder.read(name)?, is_summed)
}

/// Parses the bytes of a file from [`write`] and compares them with their checksum.
pub(crate) fn parse<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    is_summed: bool,
) -> Result<T, RecordError> {
    let value = serde_json::from_slice(bytes)
        .map_err(|error| RecordError::damaged(path, error.to_string()))?;

    match own_sum(bytes) {
        Some(OwnSum { recorded, computed }) if recorded != computed => {
            Err(RecordError::damaged(path, "its checksum, `crc32`, does not match its contents"))
        }
        None if is_summed => {
            Err(RecordError::damaged(path, "it does not end with its checksum, `crc32`"))
        }
        _ => Ok(value),
    }
}

/// The checksum at the end of a file, and that of the text before it.
struct OwnSum {
    recorded: String,
    computed: String,
}

fn own_sum(bytes: &[u8]) -> Option<OwnSum> {
    let with_digits = bytes.strip_suffix(AFTER_SUM)?;
    let (before_digits, recorded) =
        with_digits.split_at_checked(with_digits.len().checked_sub(SUM_DIGITS)?)?;
    let content = before_digits.strip_suffix(BEFORE_SUM)?;

    let mut sum = crc32fast::Hasher::new();
    sum.update(content);
    sum.update(END);
    Some(OwnSum {
        recorded: String::from_utf8_lossy(recorded).into_owned(),
        computed: checksum::hex(sum.finalize()),
    })
}
