//! Takes from a source what its recipe made.
//!
//! As root, the recipe ran as another user, who may have put links in the place of files and
//! folders. So no link is followed that leads out of the source, and files are copied rather than
//! moved: what a process of the recipe still holds open is not what is measured.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};

/// Why what a recipe should make cannot be taken.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotGiven(String);

/// Copies the file or folder `gives` of a source to the new folder `root`: a file into the folder,
/// of a folder what is in it. Returns the path of the copy: the file, or `root`.
///
/// # Errors
/// A [`NotGiven`] if there is no such file or folder in the source.
pub fn collect(source: &Path, gives: &Path, root: &Path) -> anyhow::Result<PathBuf> {
    let folder = openat(CWD, source, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let opened = openat2(&folder, gives, flags, Mode::empty(), resolve).map_err(|error| {
        let why = match error {
            rustix::io::Errno::XDEV => "it leads out of the source".to_owned(),
            error => io::Error::from(error).to_string(),
        };
        NotGiven(why)
    })?;

    fs_err::create_dir(root)?;
    let file = std::fs::File::from(opened);
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        copy_folder(file.as_fd(), Path::new(""), root)?;
        return Ok(root.to_path_buf());
    }
    if !metadata.is_file() {
        return Err(NotGiven("it is neither a file nor a directory".into()).into());
    }

    // A link such as `librocksdb.so` has the version in the name of its file.
    let real = rustix::fs::readlinkat(CWD, proc_path(&file), Vec::new())?;
    let name = Path::new(OsStr::from_bytes(real.to_bytes())).file_name();
    let copy = root.join(name.context("the file has no name")?);

    copy_file(file, &copy)?;
    Ok(copy)
}

/// Returns the path under which the kernel shows an open file.
fn proc_path(file: &std::fs::File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Copies what is in a folder. `path` is its path in what the recipe gives.
fn copy_folder(folder: BorrowedFd<'_>, path: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }

        let path = path.join(OsStr::from_bytes(name.to_bytes()));
        let copy = to.join(OsStr::from_bytes(name.to_bytes()));
        copy_entry(folder, name, &path, &copy)
            .with_context(|| format!("cannot copy `{}`", path.display()))?;
    }
    Ok(())
}

fn copy_entry(folder: BorrowedFd<'_>, name: &CStr, path: &Path, copy: &Path) -> anyhow::Result<()> {
    let status = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Symlink => {
            let target = readlinkat(folder, name, Vec::new())?;
            let target = Path::new(OsStr::from_bytes(target.to_bytes()));
            if !stays_inside(path, target) {
                return Err(
                    NotGiven(format!("the link `{}` leads out of it", path.display())).into()
                );
            }
            symlink(target, copy)?;
        }
        FileType::Directory => {
            let inner: OwnedFd = openat(folder, name, flags | OFlags::DIRECTORY, Mode::empty())?;
            fs_err::create_dir(copy)?;
            copy_folder(inner.as_fd(), path, copy)?;
        }
        FileType::RegularFile => {
            copy_file(openat(folder, name, flags, Mode::empty())?.into(), copy)?;
        }
        // No build needs pipes or sockets.
        _ => {}
    }

    Ok(())
}

/// Copies an open file, which everybody may read and, if its owner may execute it, execute.
fn copy_file(mut file: std::fs::File, to: &Path) -> anyhow::Result<()> {
    let metadata = file.metadata()?;
    anyhow::ensure!(metadata.is_file(), "it is not a regular file");

    let mut copy = fs_err::File::create_new(to)?;
    io::copy(&mut file, copy.file_mut())?;

    let mode = if metadata.mode() & 0o100 == 0 { 0o644 } else { 0o755 };
    // Independent of the umask: servers run as other users.
    fs_err::set_permissions(to, PermissionsExt::from_mode(mode))?;
    Ok(())
}

/// Returns true if the link at `path` leads to a place below the folder in which `path` begins.
fn stays_inside(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }

    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_inside_unless_it_leads_out() {
        let stays = |path: &str, target: &str| stays_inside(Path::new(path), Path::new(target));
        assert!(stays("lib/libpq.so", "libpq.so.5"));
        assert!(stays("bin/x", "../lib/./x"));
        for target in ["/etc/passwd", "../../x", "a/../../../x"] {
            assert!(!stays("bin/x", target), "{target}");
        }
    }
}
