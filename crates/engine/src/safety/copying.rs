//! Copies the files of a stopped database, by sharing their blocks where the file system can.
//!
//! One of the two sides may belong to the user of a server, who is not trusted: files are opened
//! relative to their open directory, no link is followed, and only what is created here is written
//! to. Anything but directories and regular files is refused.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    Advice, Dir, FallocateFlags, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Uid, fstat,
};
use rustix::io::Errno;

use super::data_dir::{DataDir, MARKER};
use super::guard::Deadline;
use crate::error::SetupError;

/// The bytes that are copied before the copy looks whether it should stop.
const CHUNK_BYTES: u64 = 64 << 20;

/// Bytes of a block in the sizes that the kernel reports.
const STAT_BLOCK_BYTES: u64 = 512;

/// The permissions that a copy has. The bits that run a program as its owner are never copied.
const MODE_BITS: u32 = 0o777;

/// A copy of a database that was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// The number of files.
    pub files: u64,
    /// The number of files that share their blocks with the original.
    pub cloned: u64,
    /// The sizes of all files together.
    pub bytes: u64,
    /// The time that it took.
    pub took: Duration,
}

/// The user and group that files belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// The conditions of a copy.
#[derive(Clone, Copy, Debug)]
pub struct CopyOptions<'a> {
    /// The user that all files of the original belong to: whoever could put another's file among
    /// them could read it in the copy.
    pub owner_before: u32,
    /// The owner of the copy; `None` for this process's user.
    pub owner_after: Option<Owner>,
    /// Ends the copy early when it is set.
    pub stop: &'a AtomicBool,
}

/// Copies everything in the directory `from` into the empty directory `to`, and makes the copy
/// durable. Leaves out the marker of a data directory, and permits one in `to`.
///
/// # Errors
/// [`SetupError::Directory`] for a link, a special file, or a file of another user in `from`;
/// [`SetupError::Io`] for anything else, also when the copy was stopped.
pub fn copy_database(
    from: &Path,
    to: &Path,
    options: &CopyOptions<'_>,
) -> Result<Copied, SetupError> {
    let began = Deadline::after(Duration::MAX);
    let mut copy = Copy { options, copied: Copied::default() };
    let original = open_directory(from)?;
    let target = open_directory(to)?;
    copy.directory(original.as_fd(), target.as_fd(), from)?;
    // At once: to sync a thousand small files one by one takes longer than to copy them.
    rustix::fs::syncfs(&target).map_err(io)?;
    Ok(Copied { took: began.elapsed(), ..copy.copied })
}

/// A file of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseFile {
    /// The path, relative to the database.
    pub path: PathBuf,
    /// The size.
    pub bytes: u64,
}

/// Returns the files of a database, sorted by path. It may be in use: files that disappear are left
/// out.
///
/// # Errors
/// Like [`copy_database`], for files that should belong to the user `owner`.
pub fn list_database(directory: &Path, owner: u32) -> Result<Vec<DatabaseFile>, SetupError> {
    let mut files = Vec::new();
    for_each_file(directory, owner, |path, file| {
        files.push(DatabaseFile { path: path.to_owned(), bytes: file.metadata()?.len() });
        Ok(())
    })?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Reads all files of a database into the page cache, or removes them from it. It may be in use.
///
/// # Errors
/// Like [`copy_database`], for files that should belong to the user `owner`.
pub fn set_page_cache(directory: &Path, owner: u32, is_warm: bool) -> Result<(), SetupError> {
    for_each_file(directory, owner, |_, mut file| {
        if is_warm {
            std::io::copy(&mut file, &mut std::io::sink())?;
        } else {
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    })
}

/// Opens each file of a database in turn, with its path relative to the database.
///
/// # Errors
/// Like [`copy_database`], for files that should belong to the user `owner`; errors of `visit`.
pub fn for_each_file(
    directory: &Path,
    owner: u32,
    mut visit: impl FnMut(&Path, std::fs::File) -> std::io::Result<()>,
) -> Result<(), SetupError> {
    let mut pending = vec![(PathBuf::new(), open_directory(directory)?)];
    while let Some((relative, handle)) = pending.pop() {
        for name in names(handle.as_fd())? {
            let inner = relative.join(as_path(&name));
            let found = match Found::open(handle.as_fd(), &name, &directory.join(&inner), owner) {
                // A running server removes files.
                Err(SetupError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                    continue;
                }
                other => other?,
            };

            if found.is_directory() {
                pending.push((inner, found.handle));
            } else {
                visit(&inner, found.handle.into())?;
            }
        }
    }
    Ok(())
}

/// A copy that is being made.
struct Copy<'a> {
    options: &'a CopyOptions<'a>,
    copied: Copied,
}

impl Copy<'_> {
    /// Copies the contents of an open directory. `path` is the original's, for messages.
    fn directory(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        path: &Path,
    ) -> Result<(), SetupError> {
        for name in names(from)? {
            let inner = path.join(as_path(&name));
            let found = Found::open(from, &name, &inner, self.options.owner_before)?;

            if found.is_directory() {
                rustix::fs::mkdirat(to, &name, Mode::RWXU).map_err(io)?;
                let made = open_below(to, &name, OFlags::RDONLY | OFlags::DIRECTORY)?;
                self.directory(found.handle.as_fd(), made.as_fd(), &inner)?;
                self.finish(&made, &found.stat)?;
            } else {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let made = open_below(to, &name, flags)?;
                self.file(&found, &made)?;
                self.finish(&made, &found.stat)?;
            }
        }

        Ok(())
    }

    /// Copies the contents of a file.
    fn file(&mut self, found: &Found, to: &OwnedFd) -> Result<(), SetupError> {
        self.refuse_if_stopped()?;
        self.copied.files += 1;
        self.copied.bytes += found.size_bytes();

        // Not all file systems can share blocks, and none across a mount.
        if rustix::fs::ioctl_ficlone(to, &found.handle).is_ok() {
            self.copied.cloned += 1;
            return Ok(());
        }
        self.copy_blocks(found, to)
    }

    /// Copies a file's blocks, but not its holes.
    fn copy_blocks(&self, found: &Found, to: &OwnedFd) -> Result<(), SetupError> {
        let size = found.size_bytes();
        let has_all_blocks = found.stat.st_blocks as u64 * STAT_BLOCK_BYTES >= size;
        // A log that was allocated in advance must not allocate its blocks while it is measured.
        let is_allocated = has_all_blocks
            && size > 0
            && rustix::fs::fallocate(to, FallocateFlags::empty(), 0, size).is_ok();
        if !is_allocated {
            rustix::fs::ftruncate(to, size).map_err(io)?;
        }

        let mut position = 0;
        while position < size {
            let data = match rustix::fs::seek(&found.handle, SeekFrom::Data(position)) {
                Ok(data) => data,
                // Only a hole follows.
                Err(Errno::NXIO) => break,
                Err(error) => return Err(io(error)),
            };

            let hole = rustix::fs::seek(&found.handle, SeekFrom::Hole(data)).map_err(io)?;
            self.copy_range(found, to, data, hole)?;
            position = hole;
        }
        Ok(())
    }

    /// Copies the bytes from `start` up to `end`.
    fn copy_range(
        &self,
        found: &Found,
        to: &OwnedFd,
        start: u64,
        end: u64,
    ) -> Result<(), SetupError> {
        let (mut read_at, mut write_at) = (start, start);
        while read_at < end {
            self.refuse_if_stopped()?;
            let length = (end - read_at).min(CHUNK_BYTES) as usize;

            let copied = rustix::fs::copy_file_range(
                &found.handle,
                Some(&mut read_at),
                to,
                Some(&mut write_at),
                length,
            );

            match copied {
                Ok(0) => return Err(io(Errno::IO)),
                Ok(_) | Err(Errno::INTR) => {}
                // Kernels before 5.19 refuse some pairs of file systems.
                Err(Errno::XDEV | Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => {
                    copy_through_memory(&found.handle, to, read_at, end)?;
                    return Ok(());
                }
                Err(error) => return Err(io(error)),
            }
        }
        Ok(())
    }

    /// Gives a copy the permissions of its original and its own owner.
    fn finish(&self, made: &OwnedFd, original: &Stat) -> Result<(), SetupError> {
        let mode = Mode::from_raw_mode(original.st_mode & MODE_BITS);
        rustix::fs::fchmod(made, mode).map_err(io)?;
        if let Some(owner) = self.options.owner_after {
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            rustix::fs::fchown(made, Some(uid), Some(gid)).map_err(io)?;
        }
        Ok(())
    }

    fn refuse_if_stopped(&self) -> Result<(), SetupError> {
        if self.options.stop.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("the copy of the database was interrupted").into());
        }
        Ok(())
    }
}

/// Copies the bytes from `start` up to `end` by reading and writing them.
fn copy_through_memory(
    from: &OwnedFd,
    to: &OwnedFd,
    start: u64,
    end: u64,
) -> Result<(), SetupError> {
    let mut buffer = vec![0; 1 << 20];

    let mut position = start;
    while position < end {
        let length = buffer.len().min((end - position) as usize);
        let read = rustix::io::pread(from, &mut buffer[..length], position).map_err(io)?;

        if read == 0 {
            return Err(io(Errno::IO));
        }

        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            let written = rustix::io::pwrite(to, rest, position).map_err(io)?;
            position += written as u64;
            rest = &rest[written..];
        }
    }
    Ok(())
}

/// A file or directory of the original, which is open.
struct Found {
    handle: OwnedFd,
    stat: Stat,
}

impl Found {
    /// Opens the file or directory `name`. Refuses anything else, and what is another user's.
    fn open(
        directory: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
        owner: u32,
    ) -> Result<Self, SetupError> {
        // Doesn't wait for the other end of a pipe.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;

        let handle = match open_below(directory, name, flags) {
            Err(SetupError::Io(error))
                if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) =>
            {
                return Err(refused(path, "is a link"));
            }
            // A socket cannot be opened.
            Err(SetupError::Io(error))
                if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) =>
            {
                return Err(refused(path, "is neither a file nor a directory"));
            }
            other => other?,
        };

        let stat = fstat(&handle).map_err(io)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::Directory && kind != FileType::RegularFile {
            return Err(refused(path, "is neither a file nor a directory"));
        }

        if stat.st_uid != owner {
            return Err(refused(path, "belongs to another user"));
        }

        Ok(Self { handle, stat })
    }

    fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::Directory
    }

    fn size_bytes(&self) -> u64 {
        self.stat.st_size.cast_unsigned()
    }
}

/// Returns the names in a directory, without the marker of a data directory.
fn names(directory: BorrowedFd<'_>) -> Result<Vec<CString>, SetupError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_owned();
        let bytes = name.as_bytes();
        if bytes != b"." && bytes != b".." && bytes != MARKER.as_bytes() {
            names.push(name);
        }
    }

    names.sort();
    Ok(names)
}

fn open_directory(path: &Path) -> Result<OwnedFd, SetupError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| {
        let error = std::io::Error::from(error);
        let text = format!("cannot open the directory `{}`: {error}", path.display());
        SetupError::Io(std::io::Error::new(error.kind(), text))
    })
}

fn open_below(
    directory: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
) -> Result<OwnedFd, SetupError> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map_err(io)
}

fn as_path(name: &CStr) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

fn io(error: Errno) -> SetupError {
    SetupError::Io(error.into())
}

fn refused(path: &Path, what: &str) -> SetupError {
    SetupError::Directory {
        path: path.to_owned(),
        what: format!("{what}, so the database is not copied"),
        help: "keep all files of the database in its data directory, without links".into(),
    }
}

impl DataDir {
    /// Returns the user that the directory belongs to.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn owner(&self) -> Result<Owner, SetupError> {
        let stat = rustix::fs::lstat(self.path()).map_err(io)?;
        Ok(Owner { uid: stat.st_uid, gid: stat.st_gid })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use fs_err as fs;

    use super::*;

    fn options(stop: &AtomicBool) -> CopyOptions<'_> {
        let owner_before = rustix::process::geteuid().as_raw();
        CopyOptions { owner_before, owner_after: None, stop }
    }

    fn directories() -> (tempfile::TempDir, tempfile::TempDir) {
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap())
    }

    #[test]
    fn a_copy_has_the_files_their_holes_and_their_permissions_but_not_the_marker() {
        let (from, to) = directories();
        fs::create_dir_all(from.path().join("base/1")).unwrap();
        fs::write(from.path().join("base/1/t"), "rows").unwrap();
        fs::write(from.path().join(MARKER), "{}").unwrap();
        fs::set_permissions(from.path().join("base/1"), PermissionsExt::from_mode(0o750)).unwrap();
        let sparse = fs::File::create(from.path().join("sparse")).unwrap();
        sparse.set_len(8 << 20).unwrap();

        let copied =
            copy_database(from.path(), to.path(), &options(&AtomicBool::new(false))).unwrap();
        assert_eq!((copied.files, copied.bytes), (2, (8 << 20) + 4));
        assert_eq!(fs::read(to.path().join("base/1/t")).unwrap(), b"rows");
        let mode = fs::metadata(to.path().join("base/1")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        assert!(!to.path().join(MARKER).exists());
        let stat = rustix::fs::stat(to.path().join("sparse")).unwrap();
        assert_eq!((stat.st_size, stat.st_blocks), (8 << 20, 0));
        let listed = list_database(to.path(), rustix::process::geteuid().as_raw()).unwrap();
        let file = |path: &str, bytes| DatabaseFile { path: path.into(), bytes };
        assert_eq!(listed, [file("base/1/t", 4), file("sparse", 8 << 20)]);
    }

    #[test]
    fn a_link_or_a_pipe_in_a_database_is_refused_and_not_followed() {
        let (from, to) = directories();
        let elsewhere = tempfile::tempdir().unwrap();
        let entry = from.path().join("entry");
        let refuse = |what: &str| {
            let copied = copy_database(from.path(), to.path(), &options(&AtomicBool::new(false)));
            let error = copied.unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
            assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
            fs::remove_file(&entry).unwrap();
        };
        std::os::unix::fs::symlink(elsewhere.path(), &entry).unwrap();
        refuse("is a link");
        rustix::fs::mknodat(rustix::fs::CWD, &entry, FileType::Fifo, Mode::RWXU, 0).unwrap();
        refuse("neither a file nor a directory");
        let socket = std::os::unix::net::UnixListener::bind(&entry).unwrap();
        refuse("neither a file nor a directory");
        drop(socket);
    }

    #[test]
    fn a_file_of_another_user_in_a_database_is_refused() {
        let (from, to) = directories();
        fs::write(from.path().join("t"), "rows").unwrap();
        let stop = AtomicBool::new(false);
        let others = CopyOptions { owner_before: 4_000_000, ..options(&stop) };
        let error = copy_database(from.path(), to.path(), &others).unwrap_err().to_string();
        assert!(error.contains("belongs to another user"), "{error}");
    }

    #[test]
    fn a_copy_ends_when_it_is_stopped() {
        let (from, to) = directories();
        fs::write(from.path().join("t"), "rows").unwrap();
        let error = copy_database(from.path(), to.path(), &options(&AtomicBool::new(true)));
        assert!(error.unwrap_err().to_string().contains("interrupted"));
    }
}
