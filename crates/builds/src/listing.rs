//! Lists what is in a folder, at any depth.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Returns the disk space of all files below `folder` in bytes; 0 if one of them vanishes meanwhile.
pub fn size_of(folder: &Path) -> u64 {
    let entries = entries_below(folder).unwrap_or_default();
    let files = entries.iter().filter(|(_, metadata)| !metadata.is_dir());
    files.map(|(_, metadata)| metadata.blocks() * 512).sum()
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
