//! The allocated disk space of a target's files.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, open, stat, statat};
use rustix::io::Errno;

/// Returns the allocated disk space (`st_blocks`) of data and logs in bytes, including directories.
///
/// Counts logs inside the data as logs only, and a file with several names once. Follows symbolic
/// links, which often lead to tablespaces and log directories. Ignores files that are missing or
/// vanish during the walk.
///
/// # Errors
/// Fails if a directory or file cannot be read.
pub fn storage_size(data: &[PathBuf], logs: &[PathBuf]) -> io::Result<(u64, u64)> {
    let mut seen = HashSet::new();
    let mut log_bytes = 0;
    // Logs first, so that the data does not count them again.
    for path in logs {
        log_bytes += size_of(path, &mut seen)?;
    }
    let mut data_bytes = 0;
    for path in data {
        data_bytes += size_of(path, &mut seen)?;
    }
    Ok((data_bytes, log_bytes))
}

/// Identifies a file: its device and its number there.
type FileId = (u64, u64);

/// Returns the disk space of `top` and everything below it. Skips files in `seen`, and adds the
/// others to it.
fn size_of(top: &Path, seen: &mut HashSet<FileId>) -> io::Result<u64> {
    let mut bytes = 0;
    let mut pending = Vec::new();
    if let Some(stat) = if_present(stat(top), top)?
        && is_new(&stat, seen)
    {
        bytes += allocated_bytes(&stat);
        if is_directory(&stat) {
            pending.push(top.to_path_buf());
        }
    }

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    while let Some(path) = pending.pop() {
        let Some(directory) = if_present(open(&path, flags, Mode::empty()), &path)? else {
            continue;
        };
        let Some(entries) = if_present(Dir::read_from(&directory), &path)? else {
            continue;
        };
        for entry in entries {
            let Some(entry) = if_present(entry, &path)? else {
                continue;
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }

            // Looked up relative to its directory instead of the root, because that is most of a
            // walk's cost.
            let found = statat(&directory, name, AtFlags::empty());
            if let Some(stat) = if_present(found, &path)?
                && is_new(&stat, seen)
            {
                bytes += allocated_bytes(&stat);
                if is_directory(&stat) {
                    pending.push(path.join(OsStr::from_bytes(name.to_bytes())));
                }
            }
        }
    }
    Ok(bytes)
}

fn is_new(stat: &Stat, seen: &mut HashSet<FileId>) -> bool {
    seen.insert((stat.st_dev, stat.st_ino))
}

fn allocated_bytes(stat: &Stat) -> u64 {
    stat.st_blocks as u64 * 512
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_dir()
}

/// Returns `None` for a missing file. Any other error names `path`, the file or its directory.
fn if_present<T>(result: Result<T, Errno>, path: &Path) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => {
            let error = io::Error::from(error);
            let text = format!("cannot read `{}`: {error}", path.display());
            Err(io::Error::new(error.kind(), text))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn file(path: PathBuf, bytes: usize) -> PathBuf {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, vec![1u8; bytes]).unwrap();
        path
    }

    /// Returns the disk space of the file or directory itself.
    fn blocks(path: &Path) -> u64 {
        fs_err::metadata(path).unwrap().blocks() * 512
    }

    #[test]
    fn logs_inside_the_data_are_counted_once() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let table = file(data.join("base/1/16384"), 100_000);
        let log = file(data.join("pg_wal/000001"), 50_000);
        let (data_bytes, log_bytes) =
            storage_size(std::slice::from_ref(&data), &[data.join("pg_wal")]).unwrap();
        assert_eq!(log_bytes, blocks(&log) + blocks(&data.join("pg_wal")));
        let directories: u64 =
            ["", "base", "base/1"].iter().map(|name| blocks(&data.join(name))).sum();
        assert_eq!(data_bytes, blocks(&table) + directories);
        assert!(log_bytes >= 50_000 && data_bytes >= 100_000);
    }

    #[test]
    fn a_file_with_two_names_is_counted_once() {
        let dir = tempfile::tempdir().unwrap();
        let one = file(dir.path().join("a"), 70_000);
        fs_err::hard_link(&one, dir.path().join("b")).unwrap();
        symlink(&one, dir.path().join("c")).unwrap();
        let (bytes, _) = storage_size(&[dir.path().to_path_buf()], &[]).unwrap();
        assert_eq!(bytes, blocks(&one) + blocks(dir.path()));
    }

    #[test]
    fn links_to_directories_are_followed_and_may_lead_back() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let space = file(dir.path().join("elsewhere/table"), 30_000);
        fs_err::create_dir(&data).unwrap();
        symlink(dir.path().join("elsewhere"), data.join("tablespace")).unwrap();
        symlink(&data, data.join("self")).unwrap();
        let (bytes, _) = storage_size(std::slice::from_ref(&data), &[]).unwrap();
        assert_eq!(bytes, blocks(&data) + blocks(&dir.path().join("elsewhere")) + blocks(&space));
    }

    #[test]
    fn missing_files_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        symlink(dir.path().join("nowhere"), dir.path().join("dangling")).unwrap();
        let missing = dir.path().join("db-wal");
        let (data_bytes, log_bytes) =
            storage_size(&[dir.path().to_path_buf()], &[missing]).unwrap();
        assert_eq!((data_bytes, log_bytes), (blocks(dir.path()), 0));
    }

    #[test]
    fn a_hole_takes_no_space() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        fs_err::File::create(&path).unwrap().set_len(1 << 30).unwrap();
        let (bytes, _) = storage_size(&[path], &[]).unwrap();
        assert!(bytes < 1 << 20, "{bytes}");
    }
}
