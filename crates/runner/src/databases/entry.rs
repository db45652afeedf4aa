//! A kept database that is open.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use super::manifest::Manifest;
use super::refuse_shared;

/// The folder with the files.
pub(super) const DATA: &str = "data";

/// The file with a line for each use.
const USES: &str = "uses";

/// The largest database whose contents are compared with their hashes before it is used. That takes a
/// second for each gigabyte, about as long as copying it.
const VERIFIED_BYTES_MAX: u64 = 1 << 30;

/// A kept database. Until this is dropped, no process can remove it.
#[derive(Debug)]
pub struct Entry {
    path: PathBuf,
    /// The origin and the contents of the database.
    pub manifest: Manifest,
    _lock: EntryLock,
}

impl Entry {
    /// Opens a database, whose files must have the sizes that its manifest lists.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        refuse_shared(path)?;
        let lock = EntryLock::shared(path)?
            .with_context(|| format!("`{}` is being removed", path.display()))?;

        let manifest = Manifest::read(path)?;
        manifest.compare_sizes(&path.join(DATA))?;

        Ok(Self { path: path.to_owned(), manifest, _lock: lock })
    }

    /// Compares the contents of all files with the manifest, unless the database is so large that
    /// this would take longer than a copy. Returns whether they were compared.
    ///
    /// # Errors
    /// The first file that differs.
    pub(crate) fn verify_if_cheap(&self) -> anyhow::Result<bool> {
        let is_cheap = self.manifest.bytes() <= VERIFIED_BYTES_MAX;
        if is_cheap {
            self.verify()?;
        }
        Ok(is_cheap)
    }

    /// Returns the name.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the directory with its files.
    pub fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Compares the contents of all files with the manifest.
    ///
    /// # Errors
    /// The first file that differs.
    pub fn verify(&self) -> anyhow::Result<()> {
        self.manifest.compare_contents(&self.data())
    }

    /// Returns the runs that used it, each once, in their order.
    pub fn runs(&self) -> Vec<String> {
        let text = fs_err::read_to_string(self.path.join(USES)).unwrap_or_default();
        let mut runs: Vec<String> = Vec::new();

        for line in text.lines() {
            if !runs.iter().any(|run| run == line) {
                runs.push(line.to_owned());
            }
        }

        runs
    }

    /// Notes that a cell of a run uses it.
    pub(crate) fn note_use(&self, run: &str) -> anyhow::Result<()> {
        let mut file = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(self.path.join(USES))?;

        Ok(file.write_all(format!("{run}\n").as_bytes())?)
    }

    /// Returns the disk space of all its files in bytes.
    pub fn disk_bytes(&self) -> u64 {
        let files = self.manifest.files.iter();
        let blocks = files.filter_map(|file| {
            Some(fs_err::symlink_metadata(self.data().join(&file.path)).ok()?.blocks())
        });
        blocks.sum::<u64>() * 512
    }
}

/// A lock on the folder of a database, released on drop.
#[derive(Debug)]
pub(super) struct EntryLock {
    _folder: OwnedFd,
}

impl EntryLock {
    /// Keeps others from removing the folder; `None` if somebody does already.
    pub(super) fn shared(path: &Path) -> anyhow::Result<Option<Self>> {
        Self::of(path, FlockOperation::NonBlockingLockShared)
    }

    /// Keeps others from using the folder; `None` if somebody does already.
    pub(super) fn exclusive(path: &Path) -> anyhow::Result<Option<Self>> {
        Self::of(path, FlockOperation::NonBlockingLockExclusive)
    }

    fn of(path: &Path, operation: FlockOperation) -> anyhow::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())
            .with_context(|| format!("cannot open `{}`", path.display()))?;

        match flock(&folder, operation) {
            Ok(()) => Ok(Some(Self { _folder: folder })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot lock `{}`", path.display())),
        }
    }
}
