//! The run directory and the directories of its cells: their layout and their JSON files.

use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use crate::folder::Folder;
use crate::names::{CELLS, STEPS, file_name_of, run_name, step_file_name, step_name};
use crate::step_reader::FoundStep;
use crate::step_writer::{HostColumn, PARTIAL, StepWriter};
use crate::{
    Cell, CellKey, CellRef, FORMAT, FormatVersion, LogEvent, RecordError, Run, Status, StepFile,
    StepReader, checksum, json, log_events,
};

pub(crate) const RUN_FILE: &str = "run.json";
/// The file that a process locks while it measures cells of the run.
pub const LOCK_FILE: &str = ".assay.lock";
pub(crate) const CELL_FILE: &str = "cell.json";
const LOG_FILE: &str = "server.log";
const LOG_EVENTS_FILE: &str = "log_events.parquet";
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
    /// name. Other users can't enter the directory.
    ///
    /// # Errors
    /// It can't be created or written.
    pub fn create(results: &Path, run: &Run) -> Result<Self, RecordError> {
        fs_err::create_dir_all(results).map_err(RecordError::io("create directory", results))?;

        let base_name = run_name(run);
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
    /// It can't be written; the old file then remains.
    pub fn write_run(&self, run: &Run) -> Result<(), RecordError> {
        let files = self.ended_cells().clone();
        let run = Run { format: FORMAT, files, ..run.clone() };
        json::write(&self.folder, RUN_FILE, &run).map(drop)
    }

    /// Reads `run.json`, and looks whether the run is in progress.
    ///
    /// # Errors
    /// It can't be read.
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
    /// A directory can't be read.
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
    /// A directory can't be read.
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
    /// A directory can't be read.
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
    /// It can't be created.
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
    /// Its record can't be read, or `run.json` can't be written.
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

/// Returns the error for a directory without a run.
fn no_run(path: PathBuf) -> RecordError {
    let what =
        if path.exists() { format!("it has no `{RUN_FILE}`") } else { "it does not exist".into() };

    RecordError::Missing {
        path,
        expected: "a run directory",
        what,
        help: "give a directory that `assay run` wrote, such as `results/20261121T190211Z-pg`",
    }
}

/// Returns the name of a cell's `cell.json`, relative to the run.
fn cell_file_name(cell: &CellRef) -> String {
    format!("{}/{CELL_FILE}", cell.path)
}

/// A cell's directory.
#[derive(Clone, Debug)]
pub struct CellDir {
    folder: Folder,
    /// The identifier of its run, which its record must name.
    run_id: String,
    /// The key that its record must name, if known.
    key: Option<CellKey>,
    /// The JSON files have checksums.
    is_summed: bool,
    /// The `cell.json` that `run.json` lists.
    ended: Option<StepFile>,
}

impl CellDir {
    /// Returns the path of the cell's directory.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns whether the cell was started: it has a `cell.json`, or should have one.
    pub fn exists(&self) -> bool {
        self.ended.is_some() || self.folder.has(CELL_FILE)
    }

    /// Returns the path of the server's log.
    pub fn log_path(&self) -> PathBuf {
        self.path().join(LOG_FILE)
    }

    /// Replaces `log_events.parquet`, the events of the server's log.
    ///
    /// # Errors
    /// It can't be written; the old file then remains. Or the cell has no record yet.
    pub fn write_log_events(&self, events: &[LogEvent]) -> Result<(), RecordError> {
        let bytes = log_events::to_bytes(events)
            .map_err(RecordError::io("write", &self.path().join(LOG_EVENTS_FILE)))?;
        self.folder.replace(LOG_EVENTS_FILE, &bytes)?;
        self.list_file(checksum::of_bytes(LOG_EVENTS_FILE, &bytes))
    }

    /// Reads `log_events.parquet`; `None` for a cell without one.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read_log_events(&self) -> Result<Option<Vec<LogEvent>>, RecordError> {
        if !self.is_summed {
            if !self.folder.has(LOG_EVENTS_FILE) {
                return Ok(None);
            }
            return log_events::read(self.folder.open(LOG_EVENTS_FILE)?).map(Some);
        }

        if !self.folder.has(CELL_FILE) {
            return Ok(None);
        }

        let cell = self.read()?;
        let Some(listed) = cell.file(LOG_EVENTS_FILE) else {
            return Ok(None);
        };

        let mut file = self.folder.open(LOG_EVENTS_FILE)?;
        checksum::verify(&mut file, listed, CELL_FILE)?;
        log_events::read(file).map(Some)
    }

    /// Replaces `cell.json`. Keeps its list of files, whatever `cell.files` says.
    ///
    /// # Errors
    /// It can't be written; the old file then remains.
    pub fn write(&self, cell: &Cell) -> Result<(), RecordError> {
        let files = if self.folder.has(CELL_FILE) { self.read()?.files } else { Vec::new() };
        self.write_with(cell, files)
    }

    fn write_with(&self, cell: &Cell, files: Vec<StepFile>) -> Result<(), RecordError> {
        let cell = Cell { run: self.run_id.clone(), files, ..cell.clone() };
        json::write(&self.folder, CELL_FILE, &cell).map(drop)
    }

    /// Adds a file to the list of `cell.json`.
    pub(crate) fn list_file(&self, file: StepFile) -> Result<(), RecordError> {
        let cell = self.read()?;
        let mut files = cell.files.clone();
        files.retain(|listed| listed.name != file.name);
        files.push(file);
        self.write_with(&cell, files)
    }

    /// Reads `cell.json`.
    ///
    /// # Errors
    /// It can't be read, or belongs to another cell or run.
    pub fn read(&self) -> Result<Cell, RecordError> {
        let path = self.path().join(CELL_FILE);
        let bytes = self.folder.read(CELL_FILE)?;
        if let Some(ended) = &self.ended {
            checksum::verify_bytes(&path, &bytes, ended, RUN_FILE)?;
        }

        let cell: Cell = json::parse(&path, &bytes, self.is_summed)?;
        // Older records do not say which cell they are of.
        if !self.is_summed {
            return Ok(cell);
        }

        if cell.run != self.run_id {
            return Err(RecordError::damaged(&path, "it is a cell of another run"));
        }
        if self.key.as_ref().is_some_and(|key| *key != cell.key) {
            return Err(RecordError::damaged(&path, "it is another cell of the run"));
        }

        Ok(cell)
    }

    /// Writes a text file next to `cell.json`, such as `server.conf`.
    ///
    /// # Errors
    /// It can't be written, or the name is invalid for a file.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), RecordError> {
        self.folder.replace(self.checked_name(name)?, text.as_bytes())
    }

    /// Starts the record of a step, numbered from 1 within its cell, with the columns of its host
    /// samples.
    ///
    /// # Errors
    /// It can't be created, the step exists already, or its name is invalid for a directory.
    pub fn begin_step(
        &self,
        number: u32,
        name: &str,
        host_columns: &[HostColumn<'_>],
    ) -> Result<StepWriter, RecordError> {
        let finished = step_name(number, self.checked_name(name)?);
        let steps = self.folder.folder(STEPS);
        if steps.has(&finished) {
            let what = format!("the step `{name}` a second time");
            return Err(RecordError::unrecordable(&steps.path().join(finished), what));
        }

        StepWriter::create(self.clone(), (number, name), unix_now_ns(), host_columns)
    }

    /// Returns the folder of the cell's steps.
    pub(crate) fn steps(&self) -> Folder {
        self.folder.folder(STEPS)
    }

    /// Returns the steps that were started, in order, including unfinished steps and those with a
    /// damaged `step.json`; see [`StepReader::state`].
    ///
    /// # Errors
    /// The directory can't be read.
    pub fn read_steps(&self) -> Result<Vec<StepReader>, RecordError> {
        // A cell that is being measured changes meanwhile. A step is listed before it gets its
        // name, so the list is read after the names. No step begins after the end of its cell, so
        // that is read before them.
        let has_ended = self.read().is_ok_and(|cell| cell.status == Status::Complete);
        let steps = self.steps();
        let entries = steps.entries()?;
        let cell = if entries.is_empty() { Ok(Cell::default()) } else { self.read() };

        let mut readers = Vec::new();
        for entry in entries {
            let (final_name, is_partial) = match entry.name.strip_suffix(PARTIAL) {
                Some(final_name) => (final_name, true),
                None => (entry.name.as_str(), false),
            };
            let Some((number, name)) = final_name.split_once('-') else { continue };
            let Ok(number) = number.parse() else { continue };

            let step = FoundStep::new(steps.folder(&entry.name), number, name);
            readers.push(match &cell {
                _ if is_partial && !(self.is_summed && has_ended) => step.unfinished(),
                _ if !self.is_summed => step.open(),
                Ok(_) if is_partial => step.not_listed(),
                Ok(cell) => step.open_listed(cell),
                Err(error) => step.damaged(error),
            });
        }

        readers.sort_by_cached_key(|step| (step.number(), step.path().to_owned()));
        Ok(readers)
    }

    /// Returns the planned steps of `cell` that are not among the `recorded` ones, without those
    /// that it left out.
    pub fn missing_steps(&self, cell: &Cell, recorded: &[StepReader]) -> Vec<StepReader> {
        let mut missing = Vec::new();
        let left_out = cell.database.as_ref().map_or(0, |database| database.steps_left_out);
        for (number, name) in (1..).zip(&cell.steps).skip(left_out as usize) {
            let is_recorded = recorded.iter().any(|step| step.number() == number);
            if is_recorded || cell.not_applicable.iter().any(|left_out| left_out.step == *name) {
                continue;
            }
            let directory = step_name(number, name);
            let is_lost =
                cell.status == Status::Complete || cell.file(&step_file_name(&directory)).is_some();
            let step = FoundStep::new(self.steps().folder(directory), number, name);
            missing.push(step.missing(is_lost));
        }

        missing
    }

    /// Returns whether the cell is complete: its status says so, and all planned steps are there
    /// and undamaged.
    ///
    /// # Errors
    /// The directory can't be read.
    pub fn is_complete(&self) -> Result<bool, RecordError> {
        let cell = match self.read() {
            Ok(cell) if cell.status == Status::Complete => cell,
            _ => return Ok(false),
        };

        let steps = self.read_steps()?;
        let has_all = self.missing_steps(&cell, &steps).is_empty();
        let has_events = self.read_log_events().is_ok();
        Ok(has_all && has_events && steps.iter().all(StepReader::is_whole))
    }

    /// Checks that a name is valid for a file.
    fn checked_name<'a>(&self, name: &'a str) -> Result<&'a str, RecordError> {
        if file_name_of(name) == name && !name.ends_with(PARTIAL) {
            return Ok(name);
        }

        let what = format!(
            "the name `{name}` (only letters, digits, `.`, `_` and `-`, not starting with `.`)"
        );
        Err(RecordError::unrecordable(self.path(), what))
    }
}

fn unix_now_ns() -> u64 {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
