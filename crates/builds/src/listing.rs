//! Lists what is in a folder, at any depth.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Returns the disk space of all files below `folder` in bytes, without what vanishes meanwhile or cannot
/// be read.
pub fn size_of(folder: &Path) -> u64 {
    let mut bytes = 0;
    for entry in fs_err::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += size_of(&entry.path()),
            Ok(metadata) => bytes += metadata.blocks() * 512,
            Err(_) => {}
        }
    }
    bytes
}

/// Returns all files and folders below `folder`, at any depth.
pub fn entries_below(folder: &Path) -> std::io::Result<Vec<(PathBuf, Metadata)>> {
    let mut entries = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let (path, metadata) = (entry.path(), entry.metadata()?);
        if metadata.is_dir() {
            entries.extend(entries_below(&path)?);
        }
        entries.push((path, metadata));
    }

    Ok(entries)
}
