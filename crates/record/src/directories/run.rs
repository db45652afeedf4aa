//! The run directory: `run.json`, the cells that it lists, and the files that are there.

use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use super::cell::CellDir;
use crate::files::{Folder, checksum, json};
use crate::layout::{CELL_FILE, CELLS, LOCK_FILE, RUN_FILE, STEPS, dated_name};
use crate::{Cell, CellRef, FORMAT, FormatVersion, RecordError, Run, Status, StepFile};

/// The suffix of an attempt that was set aside, before its number.
const SET_ASIDE: &str = ".attempt-";

/// A run's directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    folder: Folder,
    /// The run's identifier, which its cells name.
    id: String,
    /// The JSON files have checksums, which the first format did not have.
    is_summed: bool,
    /// The `cell.json` of each cell that ended, as `run.json` lists them.
    ended_cells: Arc<Mutex<Vec<StepFile>>>,
}

/// The fields of `run.json` that all of its versions have, and those for checks of its cells.
#[derive(Deserialize)]
struct Head {
    format: FormatVersion,
    #[serde(default)]
    assay: HeadAssay,
    #[serde(default)]
    id: String,
    #[serde(default)]
    files: Vec<StepFile>,
}

#[derive(Default, Deserialize)]
struct HeadAssay {
    version: String,
}

impl RunDir {
    /// Creates the directory of a new run, named after its start and its name, and writes
    /// `run.json` with the status incomplete. If the directory exists, adds a number to the
    /// name. Other users cannot enter the directory.
    ///
    /// # Errors
    /// It cannot be created or written.
    pub fn create(results: &Path, run: &Run) -> Result<Self, RecordError> {
        fs_err::create_dir_all(results).map_err(RecordError::io("create directory", results))?;

        let base_name = dated_name(run.started_unix_ns, &run.name);
        let mut number = 1;
        let path = loop {
            let name =
                if number == 1 { base_name.clone() } else { format!("{base_name}-{number}") };
            let path = results.join(name);
            // Plans, statements and logs are nobody else's business.
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(RecordError::io("create directory", &path)(error)),
            }
        };
        // Until the outer folder is synced, a power failure may take the new name away.
        Folder::of_run(results.to_owned()).sync()?;

        let directory = Self {
            folder: Folder::of_run(path),
            id: run.id.clone(),
            is_summed: true,
            ended_cells: Arc::default(),
        };

        directory.write_run(&Run { status: Status::Incomplete, ..run.clone() })?;
        Ok(directory)
    }

    /// Opens the directory of a run, to read it or to resume it.
    ///
    /// # Errors
    /// It holds no run, its `run.json` is damaged, or this Assay does not know its format.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let folder = Folder::of_run(path.clone());
        if !path.is_dir() || !folder.has(RUN_FILE) {
            return Err(no_run(path));
        }

        let file = path.join(RUN_FILE);
        let bytes = folder.read(RUN_FILE)?;
        let head: Head = json::parse(&file, &bytes, false)?;
        if head.format.major != FORMAT.major {
            return Err(RecordError::Format {
                path,
                found: head.format,
                written_by: head.assay.version,
            });
        }

        // Exports name files after it.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if !head.id.chars().all(is_plain) {
            return Err(RecordError::damaged(&file, "its `id` has characters that no id has"));
        }

        // Only the format says whether there is a checksum.
        let is_summed = head.format.has_sums();
        json::parse::<Head>(&file, &bytes, is_summed)?;
        Ok(Self { folder, id: head.id, is_summed, ended_cells: Arc::new(Mutex::new(head.files)) })
    }

    /// Returns the path of the run's directory.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ended_cells(&self) -> MutexGuard<'_, Vec<StepFile>> {
        self.ended_cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces `run.json`, in the current format regardless of `run.format`, with the list of
    /// cells that [`end_cell`](Self::end_cell) made.
    ///
    /// # Errors
    /// It cannot be written; the old file then remains.
    pub fn write_run(&self, run: &Run) -> Result<(), RecordError> {
        let files = self.ended_cells().clone();
        let run = Run { format: FORMAT, files, ..run.clone() };
        json::write(&self.folder, RUN_FILE, &run).map(drop)
    }

    /// Reads `run.json`, and looks whether the run is in progress.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_run(&self) -> Result<Run, RecordError> {
        let mut run: Run = json::read(&self.folder, RUN_FILE, self.is_summed)?;
        // Another process may have measured a cell since this directory was opened.
        self.ended_cells().clone_from(&run.files);

        let last = run.invocations.last();
        let is_open = last.is_some_and(|invocation| invocation.ended_unix_ns.is_none());
        run.is_running = is_open && self.is_locked();
        Ok(run)
    }

    /// Returns whether a path is the directory of a run, or of what is left of one.
    pub fn exists_at(path: &Path) -> bool {
        path.join(RUN_FILE).exists() || path.join(CELLS).is_dir()
    }

    /// Returns a checksum of the names and sizes of all files of the run's cells, in hexadecimal. It
    /// tells in some milliseconds that a file has come, gone or grown, but not that its contents
    /// have changed.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn sizes_crc32(path: &Path) -> Result<String, RecordError> {
        let mut lines = Vec::new();
        let mut pending = vec![Folder::of_run(path.to_owned()).folder(CELLS)];
        while let Some(folder) = pending.pop() {
            for entry in folder.entries()? {
                if entry.is_folder {
                    pending.push(folder.folder(entry.name));
                } else {
                    let file = folder.path().join(entry.name);
                    let name = file.strip_prefix(path).unwrap_or(&file).display().to_string();
                    lines.push(format!("{name} {}\n", entry.size_bytes));
                }
            }
        }

        // The system lists names in any order.
        lines.sort();
        Ok(checksum::hex(crc32fast::hash(lines.concat().as_bytes())))
    }

    /// Returns true if a process has locked the directory.
    fn is_locked(&self) -> bool {
        let Ok(file) = self.folder.open(LOCK_FILE) else {
            return false;
        };
        matches!(file.file().try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Returns a cell's directory for reading. It may not exist; see [`CellDir::exists`].
    ///
    /// # Errors
    /// The recorded path of the cell leads out of the run directory.
    pub fn cell(&self, cell: &CellRef) -> Result<CellDir, RecordError> {
        let relative = Path::new(&cell.path);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || cell.path.is_empty() {
            let what =
                format!("the path of a cell, `{}`, is not inside the run directory", cell.path);
            return Err(RecordError::damaged(&self.path().join(RUN_FILE), what));
        }

        let name = cell_file_name(cell);
        let ended_cells = self.ended_cells();
        Ok(CellDir {
            key: Some(cell.key.clone()),
            ended: ended_cells.iter().find(|file| file.name == name).cloned(),
            ..self.unknown_cell(self.folder.folder(relative))
        })
    }

    /// Returns the directory of a cell of which only the place is known.
    fn unknown_cell(&self, folder: Folder) -> CellDir {
        CellDir {
            folder,
            run_id: self.id.clone(),
            key: None,
            is_summed: self.is_summed,
            ended: None,
        }
    }

    /// Returns the directories of all cells that were started, sorted by name, including those that
    /// [`begin_cell`](Self::begin_cell) set aside.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn started_cells(&self) -> Result<Vec<CellDir>, RecordError> {
        let mut cells = Vec::new();

        let mut pending = vec![self.folder.folder(CELLS)];
        while let Some(folder) = pending.pop() {
            if folder.has(CELL_FILE) {
                cells.push(self.unknown_cell(folder));
                continue;
            }
            let inner = folder.entries()?.into_iter().filter(|entry| entry.is_folder);
            pending.extend(inner.map(|entry| folder.folder(entry.name)));
        }

        cells.sort_by(|a, b| a.path().cmp(b.path()));
        Ok(cells)
    }

    /// Returns the number of attempts at cells that were set aside. When it changes while a run is
    /// resumed, cells that were being read have moved.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn set_aside_count(&self) -> Result<usize, RecordError> {
        let is_aside = |cell: &&CellDir| {
            let name = cell.path().file_name().unwrap_or_default();
            name.to_string_lossy().contains(SET_ASIDE)
        };
        Ok(self.started_cells()?.iter().filter(is_aside).count())
    }

    /// Creates a cell's directory. An earlier attempt there is renamed, with the suffix
    /// `.attempt-N`, and no longer read.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn begin_cell(&self, cell: &CellRef) -> Result<CellDir, RecordError> {
        // First: otherwise the list would name a cell that has moved if this process is killed.
        self.list_end(cell, None)?;

        let cell = self.cell(cell)?;
        let name = cell.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let around = cell.folder.outer();
        // Also fails if it is a link, in which every name would seem to exist.
        around.create_all()?;

        if around.has(&name) {
            let mut names = (1..).map(|number| format!("{name}{SET_ASIDE}{number}"));
            let unused = names.find(|unused| !around.has(unused)).unwrap_or_default();
            around.rename(&name, &unused)?;
        }

        cell.folder.folder(STEPS).create_all()?;
        Ok(cell)
    }

    /// Lists a cell that has ended in `run.json`, with the checksum of its `cell.json`.
    ///
    /// # Errors
    /// Its record cannot be read, or `run.json` cannot be written.
    pub fn end_cell(&self, cell: &CellRef) -> Result<(), RecordError> {
        let folder = self.cell(cell)?.folder;
        let bytes = folder.read(CELL_FILE)?;
        json::parse::<Cell>(&folder.path().join(CELL_FILE), &bytes, true)?;
        self.list_end(cell, Some(checksum::of_bytes(&cell_file_name(cell), &bytes)))
    }

    /// Replaces the entry of a cell in the list of `run.json`.
    fn list_end(&self, cell: &CellRef, entry: Option<StepFile>) -> Result<(), RecordError> {
        let name = cell_file_name(cell);
        let is_listed = self.ended_cells().iter().any(|file| file.name == name);
        if !is_listed && entry.is_none() {
            return Ok(());
        }

        // Reading replaces the list by that of the file, so it comes before the change.
        let run = self.read_run()?;
        let mut ended_cells = self.ended_cells();
        ended_cells.retain(|file| file.name != name);
        ended_cells.extend(entry);

        // Writing locks the list again.
        drop(ended_cells);
        self.write_run(&run)
    }
}

/// The folder of the runs in the directory of a tuning or a bisection.
const RUNS_OF_SEARCH: &str = "runs";

/// Returns the error for a directory without a run.
fn no_run(path: PathBuf) -> RecordError {
    let what =
        if path.exists() { format!("it has no `{RUN_FILE}`") } else { "it does not exist".into() };
    let help = if path.join(RUNS_OF_SEARCH).is_dir() {
        "`assay tune` and `assay bisect` write several runs: give one of those in its directory `runs`"
    } else {
        "give a directory that `assay run` wrote, such as `results/20261121T190211Z-pg`"
    };

    RecordError::Missing { path, expected: "a run directory", what, help }
}

/// Returns the name of a cell's `cell.json`, relative to the run.
fn cell_file_name(cell: &CellRef) -> String {
    format!("{}/{CELL_FILE}", cell.path)
}
