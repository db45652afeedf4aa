//! The folders of a run directory, and all access to the files in them. A run directory may come
//! from a stranger, or from a place where others can write:
//!
//! * No link below the run's directory is followed. The directory itself may be a link, such as
//!   `results/latest`.
//! * Only regular files are opened: reading a device may never end, and opening a pipe may block.
//! * A file is created under a name that did not exist, and then gets its final name.

use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::RecordError;

/// The largest JSON file or text that is read.
pub(crate) const TEXT_BYTES_MAX: u64 = 64 << 20;

/// The permissions of new files and folders, from which the umask takes some away.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// A run's directory, or a folder in it, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    /// The run's directory.
    root: PathBuf,
    /// The folder's own path, which begins with the root.
    path: PathBuf,
}

impl Folder {
    pub(crate) fn of_run(root: PathBuf) -> Self {
        Self { path: root.clone(), root }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a folder in it. `name` has no `..`.
    pub(crate) fn folder(&self, name: impl AsRef<Path>) -> Self {
        Self { root: self.root.clone(), path: self.path.join(name) }
    }

    /// Returns the folder around it, which is not outside of the run's directory.
    pub(crate) fn outer(&self) -> Self {
        let outer = self.path.parent().filter(|outer| outer.starts_with(&self.root));
        Self { root: self.root.clone(), path: outer.unwrap_or(&self.root).to_owned() }
    }

    /// Returns the names of the folders between the run's directory and this one.
    fn names_below_root(&self) -> impl Iterator<Item = Component<'_>> {
        self.path.strip_prefix(&self.root).unwrap_or(Path::new("")).components()
    }

    /// Opens the folder, without following a link below the run's directory.
    fn handle(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut handle = rustix::fs::open(&self.root, flags, Mode::empty())?;
        for name in self.names_below_root() {
            handle = rustix::fs::openat(
                &handle,
                name.as_os_str(),
                flags | OFlags::NOFOLLOW,
                Mode::empty(),
            )?;
        }

        Ok(handle)
    }

    /// Opens the folder; the error names it, and says so if it is a link.
    fn open_self(&self, action: &'static str) -> Result<OwnedFd, RecordError> {
        self.handle().map_err(|error| match self.link_or_file() {
            Some((path, kind)) => {
                RecordError::damaged(&path, format!("it is {kind}, not a directory"))
            }
            None => RecordError::io(action, &self.path)(error),
        })
    }

    /// Returns what is in the place of this folder or of one around it, and is not a folder.
    fn link_or_file(&self) -> Option<(PathBuf, &'static str)> {
        let mut path = self.root.clone();
        for name in self.names_below_root() {
            path.push(name);
            let kind = FileType::from_raw_mode(rustix::fs::lstat(&path).ok()?.st_mode);
            if kind != FileType::Directory {
                return Some((path, kind_name(kind)));
            }
        }

        None
    }

    /// Returns false if nothing has this name. Returns true if something has it that cannot be
    /// read: reading then says why.
    pub(crate) fn has(&self, name: &str) -> bool {
        let status = self
            .handle()
            .and_then(|handle| Ok(rustix::fs::statat(handle, name, AtFlags::SYMLINK_NOFOLLOW)?));
        !matches!(status, Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn open(&self, name: &str) -> Result<fs_err::File, RecordError> {
        let path = self.path.join(name);
        require_plain_name(&path, name)?;

        let handle = self.open_self("open")?;
        let error = |error: Errno| RecordError::io("open", &path)(error.into());

        // Opening some devices has effects, so the kind is looked at before.
        let status = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW).map_err(error)?;
        require_regular(&path, status.st_mode)?;

        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&handle, name, flags, Mode::empty()).map_err(error)?;
        // It may have been replaced meanwhile.
        require_regular(&path, rustix::fs::fstat(&file).map_err(error)?.st_mode)?;
        Ok(fs_err::File::from_parts(file.into(), path))
    }

    /// Reads a regular file of at most [`TEXT_BYTES_MAX`].
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, RecordError> {
        let file = self.open(name)?;
        let path = file.path().to_owned();

        let mut bytes = Vec::new();
        file.take(TEXT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(RecordError::io("read", &path))?;

        if bytes.len() as u64 > TEXT_BYTES_MAX {
            let what = format!("it is larger than {} MiB", TEXT_BYTES_MAX >> 20);
            return Err(RecordError::damaged(&path, what));
        }

        Ok(bytes)
    }

    /// Creates a file that did not exist.
    pub(crate) fn create(&self, name: &str) -> Result<fs_err::File, RecordError> {
        let path = self.path.join(name);
        let handle = self.open_self("create")?;
        let file = create_in(&handle, name).map_err(RecordError::io("create", &path))?;
        Ok(fs_err::File::from_parts(file, path))
    }

    /// Writes a file under a temporary name, makes it durable, and gives it its name. What had the
    /// name before remains until then; a link is replaced, not followed.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        let handle = self.open_self("write")?;
        replace_in(&handle, name, bytes).map_err(RecordError::io("write", &self.path.join(name)))
    }

    /// Creates a folder in it that did not exist, and returns it.
    pub(crate) fn create_folder(&self, name: &str) -> Result<Self, RecordError> {
        let folder = self.folder(name);
        let handle = self.open_self("create directory")?;
        rustix::fs::mkdirat(&handle, name, FOLDER_MODE)
            .map_err(|error| RecordError::io("create directory", &folder.path)(error.into()))?;
        Ok(folder)
    }

    /// Creates the folder and those around it that are missing, durably.
    pub(crate) fn create_all(&self) -> Result<(), RecordError> {
        let mut outer = Self::of_run(self.root.clone());
        for name in self.names_below_root() {
            let name = name.as_os_str().to_string_lossy();
            if !outer.has(&name) {
                match outer.create_folder(&name) {
                    // Another cell may have created it in the meantime.
                    Err(_) if outer.has(&name) => {}
                    created => drop(created?),
                }
                outer.sync()?;
            }
            outer = outer.folder(&*name);
        }

        self.open_self("open").map(drop)
    }

    /// Renames something in the folder, durably.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), RecordError> {
        let handle = self.open_self("rename")?;
        rustix::fs::renameat(&handle, from, &handle, to)
            .map_err(|error| RecordError::io("rename", &self.path.join(from))(error.into()))?;
        self.sync()
    }

    /// Makes the names in the folder durable.
    pub(crate) fn sync(&self) -> Result<(), RecordError> {
        let handle = self.open_self("open")?;
        rustix::fs::fsync(&handle)
            .map_err(|error| RecordError::io("sync directory", &self.path)(error.into()))
    }

    /// Returns the names in the folder and whether each is a folder; none if it does not exist.
    pub(crate) fn entries(&self) -> Result<Vec<FolderEntry>, RecordError> {
        let handle = match self.handle() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            _ => self.open_self("read directory")?,
        };
        entries_of(&handle).map_err(RecordError::io("read directory", &self.path))
    }
}

/// Refuses a name that leads out of the folder: names of files stand in the record, too.
fn require_plain_name(path: &Path, name: &str) -> Result<(), RecordError> {
    if Path::new(name).components().eq([Component::Normal(name.as_ref())]) {
        return Ok(());
    }
    Err(RecordError::damaged(path, "it is not the name of a file in this directory"))
}

pub(crate) struct FolderEntry {
    pub(crate) name: String,
    pub(crate) is_folder: bool,
    pub(crate) size_bytes: u64,
}

/// Opens a regular file that is not a link, without waiting for the writer of a pipe. Others may be
/// able to write to the folder around it.
///
/// # Errors
/// The file cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<fs_err::File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;

    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(io::Error::other(format!("it is {}, not a regular file", kind_name(kind))));
    }

    Ok(fs_err::File::from_parts(file.into(), path))
}

/// Writes a file in a folder in which others may have prepared links: under a temporary name, which
/// then replaces what had its name.
///
/// # Errors
/// The folder does not exist, or the file cannot be written.
pub fn replace_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
    Folder::of_run(folder.to_owned()).replace(name, bytes)
}

/// Replaces a file in an open folder, durably.
fn replace_in(folder: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.tmp");

    // A process that was killed may have left one.
    match rustix::fs::unlinkat(folder, &*temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }

    let mut file = create_in(folder, &temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    rustix::fs::renameat(folder, &*temporary, folder, name)?;
    Ok(rustix::fs::fsync(folder)?)
}

/// Returns the names in an open folder.
fn entries_of(folder: &OwnedFd) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }

        let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        entries.push(FolderEntry {
            name: name.to_string_lossy().into_owned(),
            is_folder: FileType::from_raw_mode(status.st_mode) == FileType::Directory,
            size_bytes: status.st_size.cast_unsigned(),
        });
    }

    Ok(entries)
}

fn create_in(handle: &OwnedFd, name: &str) -> io::Result<std::fs::File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(handle, name, flags, FILE_MODE)?.into())
}

fn require_regular(path: &Path, mode: u32) -> Result<(), RecordError> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(()),
        kind => {
            let what = format!("it is {}, not a regular file", kind_name(kind));
            Err(RecordError::damaged(path, what))
        }
    }
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_threads_create_the_same_folders() {
        let outer = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let deep = Folder::of_run(outer.path().to_owned()).folder(format!("{round}/a/b"));
            let start = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        start.wait();
                        deep.create_all().unwrap();
                    });
                }
            });
        }
    }

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_damage() {
        let outer = tempfile::tempdir().unwrap();
        fs_err::write(outer.path().join("secret"), "x").unwrap();
        let inner = outer.path().join("run");
        fs_err::create_dir_all(inner.join("sub")).unwrap();
        fs_err::write(inner.join("sub/file"), "x").unwrap();

        let folder = Folder::of_run(inner);
        let absolute = outer.path().join("secret").display().to_string();
        for name in ["../secret", &absolute, "sub/file", "", ".", ".."] {
            let error = folder.open(name).unwrap_err();
            assert!(matches!(error, RecordError::Damaged { .. }), "{name}: {error}");
        }
        assert!(folder.folder("sub").open("file").is_ok());
    }
}
