//! Kept databases, which the first steps of a cell made: for later cells that would make the same, or
//! that begin after these steps.
//!
//! A folder of databases has one folder for each:
//!
//! ```text
//! postgres-3f2a9c04d1b7/
//!   manifest.json   what made the database, what the workload knew of it, and all files
//!   data/           the files of the stopped database
//!   uses            a line for each cell that used the database
//! ```
//!
//! A database is complete or absent: its folder is filled under another name, and gets its own once
//! the manifest is durable. Folder and files belong to the user that runs assay, and nobody else
//! can enter them, so a copy for a server never reads what the server's user could have changed.

mod entry;
mod key;
mod manifest;
mod nearest;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use engine::{CopyOptions, DataDir, MARKER, copy_database};
use plan::{Plan, Reuse};
use words::size_text;

pub use entry::Entry;
pub use key::{Key, KeyPart};
pub(crate) use manifest::Contents;
pub use manifest::{KeptFile, Manifest};
pub(crate) use nearest::Nearest;

use crate::ground::failure::UsageError;
use crate::ground::host::{free_bytes, random_id};
use entry::{DATA, EntryLock};

/// The folder of the databases of one run, in its directory for databases. Not that directory
/// itself, which may belong to another user than root, decides who can write around it.
const RUN_FOLDER: &str = ".kept-databases/run";

/// The prefix of folders that are being filled or removed.
const PARTIAL: &str = ".partial-";

/// A folder of kept databases, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Databases {
    root: PathBuf,
}

/// The source of a database to keep.
pub(crate) struct Loaded<'a> {
    /// The directory of the stopped database.
    pub(crate) data: &'a Path,
    /// The user that its files belong to.
    pub(crate) owner: u32,
    pub(crate) key: &'a Key,
    pub(crate) contents: Contents,
}

impl Databases {
    /// Returns the user's folder.
    ///
    /// # Errors
    /// The environment names none.
    pub fn of_user() -> anyhow::Result<Self> {
        Ok(Self::at(&builds::databases_folder()?))
    }

    /// Returns the folder with this path.
    pub fn at(root: &Path) -> Self {
        Self { root: std::path::absolute(root).unwrap_or_else(|_| root.to_owned()) }
    }

    /// Returns the folder that the cells of a run share, if its plan lets them. `given` is the
    /// folder that the user chose.
    ///
    /// # Errors
    /// The environment names none.
    pub(crate) fn of_run(
        plan: &Plan,
        given: Option<&Path>,
        data_root: &Path,
    ) -> anyhow::Result<Option<Self>> {
        let uses_steps = !plan.keep_after.is_empty() || plan.from.is_some();
        match (plan.reuse, given) {
            (Reuse::Off, _) if !uses_steps => Ok(None),
            (Reuse::Run | Reuse::Repeat, _) => Ok(Some(Self::at(&data_root.join(RUN_FOLDER)))),
            (Reuse::Off | Reuse::Always, Some(given)) => Ok(Some(Self::at(given))),
            (Reuse::Off | Reuse::Always, None) => Self::of_user().map(Some),
        }
    }

    /// Returns the path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the names of all databases, sorted.
    ///
    /// # Errors
    /// The folder cannot be read, or others could change what is in it.
    pub fn names(&self) -> anyhow::Result<Vec<String>> {
        if !self.root.exists() {
            return Ok(Vec::new());
        }
        refuse_shared(&self.root)?;

        let mut names = Vec::new();
        for entry in fs_err::read_dir(&self.root)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && name != MARKER {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a database by its name. Until it is dropped, nobody can remove it.
    ///
    /// # Errors
    /// There is none, it is damaged, or others could change it.
    pub fn open(&self, name: &str) -> anyhow::Result<Entry> {
        let path = self.existing(name)?;
        refuse_shared(&self.root)?;
        Entry::open(&path)
    }

    /// Opens the database of a key; `None` if there is none.
    ///
    /// # Errors
    /// It is damaged, or others could change it.
    pub(crate) fn find(&self, key: &Key) -> anyhow::Result<Option<Entry>> {
        let name = key.name();
        if !self.root.join(&name).exists() {
            return Ok(None);
        }

        let entry = self.open(&name)?;
        // The name has only a part of the fingerprint.
        if entry.manifest.fingerprint == key.fingerprint() { Ok(Some(entry)) } else { Ok(None) }
    }

    /// Keeps a copy of a loaded database. If another process has kept one with that key meanwhile,
    /// returns that one.
    ///
    /// # Errors
    /// The disk is too small, or the database cannot be copied. Nothing is left then.
    pub(crate) fn keep(
        &self,
        loaded: &Loaded<'_>,
        stop: &std::sync::atomic::AtomicBool,
    ) -> anyhow::Result<Entry> {
        self.create_root()?;
        self.remove_partial();
        let listed = engine::list_database(loaded.data, loaded.owner)?;
        require_space(&self.root, listed.iter().map(|file| file.bytes).sum())?;

        let partial = Partial::create(&self.root)?;
        let data = partial.path.join(DATA);
        create_private(&data)?;
        let options = CopyOptions { owner_before: loaded.owner, owner_after: None, stop };
        copy_database(loaded.data, &data, &options)?;

        let manifest = loaded.contents.clone().manifest_of(loaded.key, &data)?;
        // A folder gets its name only when it is complete: a name is a promise.
        manifest.write(&partial.path)?;
        partial.publish(&self.root.join(loaded.key.name()))
    }

    /// Removes a database, and returns its size in bytes.
    ///
    /// # Errors
    /// There is none, it is in use, or it cannot be removed.
    pub fn remove(&self, name: &str) -> anyhow::Result<u64> {
        refuse_shared(&self.root)?;
        let path = self.existing(name)?;

        let lock = EntryLock::exclusive(&path)?.with_context(|| {
            format!("the database `{name}` is in use: try again when the run has ended")
        })?;

        let bytes = Manifest::read(&path).map_or(0, |manifest| manifest.bytes());

        // Without its name, nobody finds a database that is removed only in part.
        let doomed = self.root.join(format!("{PARTIAL}{}", random_id()?));
        fs_err::rename(&path, &doomed)?;
        fs_err::remove_dir_all(&doomed)?;

        drop(lock);
        Ok(bytes)
    }

    /// Returns the path of a database.
    ///
    /// # Errors
    /// There is none with this name.
    fn existing(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.root.join(name);
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        if is_name && path.exists() {
            return Ok(path);
        }

        let help = format!("`assay databases` lists those in `{}`", self.root.display());
        Err(UsageError::new(format!("no database `{name}`"), Some(help)).into())
    }

    /// Removes the folder with all databases, if assay created it: those of a run.
    pub(crate) fn remove_all(&self) {
        let (Some(parent), Some(name)) = (self.root.parent(), self.root.file_name()) else {
            return;
        };
        if self.root.exists() {
            // What cannot be removed now is removed before the next run here.
            let _ = DataDir::create(parent, &name.to_string_lossy()).and_then(DataDir::remove);
            // Only if nothing else is in it.
            let _ = fs_err::remove_dir(parent);
        }
    }

    /// Creates the folder.
    fn create_root(&self) -> anyhow::Result<()> {
        // Before its mode is changed: others may have put something in it.
        if self.root.exists() {
            refuse_shared(&self.root)?;
        }
        let (parent, name) = (self.root.parent(), self.root.file_name());
        let (parent, name) = parent.zip(name).context("the directory for databases has no name")?;

        DataDir::create(parent, &name.to_string_lossy())
            .context("databases cannot be kept; `--reuse DIR` chooses another directory")?;
        refuse_shared(&self.root)
    }

    /// Removes what killed processes left.
    fn remove_partial(&self) {
        let Ok(entries) = fs_err::read_dir(&self.root) else {
            return;
        };
        for entry in entries.flatten() {
            if !entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                continue;
            }
            // A process that still fills it has locked it.
            if let Ok(Some(_lock)) = EntryLock::exclusive(&entry.path()) {
                let _ = fs_err::remove_dir_all(entry.path());
            }
        }
    }
}

/// The databases that the cells of one run share, which are removed when this is dropped.
pub(crate) struct RunDatabases {
    databases: Databases,
}

impl RunDatabases {
    /// Removes what a killed run left in the folder.
    pub(crate) fn begin(databases: Databases) -> Self {
        databases.remove_all();
        Self { databases }
    }

    /// Removes all of them. Later cells load anew.
    pub(crate) fn remove(&self) {
        self.databases.remove_all();
    }
}

impl Drop for RunDatabases {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A folder that is being filled, and is removed if that fails.
struct Partial {
    path: PathBuf,
    lock: Option<EntryLock>,
}

impl Partial {
    fn create(root: &Path) -> anyhow::Result<Self> {
        let path = root.join(format!("{PARTIAL}{}", random_id()?));
        create_private(&path)?;
        let lock = EntryLock::exclusive(&path)?;
        Ok(Self { path, lock })
    }

    /// Gives the folder its name, and opens it.
    fn publish(mut self, name: &Path) -> anyhow::Result<Entry> {
        // A damaged one would never be used.
        let is_whole = |entry: Entry| entry.verify_if_cheap();
        if name.exists() && Entry::open(name).and_then(is_whole).is_err() {
            remove_damaged(name)?;
        }

        // A rename fails if another process has kept a database with this key meanwhile.
        if fs_err::rename(&self.path, name).is_ok() {
            self.path = name.to_owned();
            sync_directory(name.parent().unwrap_or(name))?;
            // The folder must stay when this value is dropped.
            self.path = PathBuf::new();
        }

        drop(self.lock.take());
        Entry::open(name)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs_err::remove_dir_all(&self.path);
        }
    }
}

/// Removes the folder of a damaged database.
///
/// # Errors
/// Another process uses it, or it cannot be removed.
fn remove_damaged(path: &Path) -> anyhow::Result<()> {
    let _lock = EntryLock::exclusive(path)?
        .with_context(|| format!("`{}` is damaged, and another process uses it", path.display()))?;

    Ok(fs_err::remove_dir_all(path)?)
}

/// Refuses a copy for which the disk is too small.
///
/// # Errors
/// The disk has too little space.
pub(crate) fn require_space(directory: &Path, needed: u64) -> anyhow::Result<()> {
    let existing = directory.ancestors().find(|path| path.exists());
    let Some(free) = existing.and_then(free_bytes) else {
        return Ok(());
    };
    if free >= needed {
        return Ok(());
    }

    let message = format!(
        "a copy of the database needs {}, but `{}` has only {} free",
        size_text(needed),
        directory.display(),
        size_text(free)
    );

    let help = "free disk space, remove kept databases with `assay databases --remove`, or set `reuse = false`";
    Err(UsageError::new(message, Some(help.into())).into())
}

/// Refuses a folder in which another user could exchange what is in it.
fn refuse_shared(directory: &Path) -> anyhow::Result<()> {
    const GROUP_AND_OTHERS_WRITE: u32 = 0o022;
    const OTHERS_WRITE: u32 = 0o002;
    const STICKY: u32 = 0o1000;

    let own = rustix::process::geteuid().as_raw();
    let metadata = fs_err::symlink_metadata(directory)?;
    let is_private =
        metadata.is_dir() && metadata.uid() == own && metadata.mode() & GROUP_AND_OTHERS_WRITE == 0;

    let resolved = fs_err::canonicalize(directory)?;
    let around = resolved.parent().unwrap_or(&resolved);
    // Who can rename the folder can put another one in its place.
    let is_open = fs_err::metadata(around).is_ok_and(|metadata| {
        let is_writable = metadata.mode() & OTHERS_WRITE != 0 && metadata.mode() & STICKY == 0;
        is_writable || ![0, own].contains(&metadata.uid())
    });

    let shared = match (is_private, is_open) {
        (false, _) => directory,
        (true, true) => around,
        (true, false) => return Ok(()),
    };

    let message = format!(
        "databases in `{}` are not used: another user can write to `{}`",
        directory.display(),
        shared.display()
    );
    let help =
        "choose a directory that only this user can write to with `--reuse DIR` or ASSAY_DATABASES";
    Err(UsageError::new(message, Some(help.into())).into())
}

/// Creates a directory that nobody else can enter.
fn create_private(path: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::mkdir(path, rustix::fs::Mode::RWXU)?)
}

/// Makes the names in a directory durable.
fn sync_directory(path: &Path) -> std::io::Result<()> {
    fs_err::File::open(path)?.sync_all()
}
