//! The run directory and the directories of its cells: their layout and their JSON files.

use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::step_writer::{HostColumn, PARTIAL, StepWriter};
use crate::{
    Cell, CellKey, CellRef, FORMAT, FormatVersion, LogEvent, RecordError, Run, Status, StepReader,
    json::{self, with_suffix},
    log_events,
};

pub(crate) const RUN_FILE: &str = "run.json";
/// The file that a process locks while it measures cells of the run.
pub const LOCK_FILE: &str = ".assay.lock";
const CELL_FILE: &str = "cell.json";
const LOG_FILE: &str = "server.log";
const LOG_EVENTS_FILE: &str = "log_events.parquet";
const CELLS: &str = "cells";
const STEPS: &str = "steps";
/// The suffix of an attempt that was set aside, before its number.
const SET_ASIDE: &str = ".attempt-";

/// A run's directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
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
        let name = run_name(run);
        let mut number = 1;
        let path = loop {
            let path =
                results.join(if number == 1 { name.clone() } else { format!("{name}-{number}") });
            // Plans, statements and logs are nobody else's business.
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(RecordError::io("create directory", &path)(error)),
            }
        };
        json::sync_directory(results)?;
        let directory = Self { path };
        directory.write_run(&Run { status: Status::Incomplete, ..run.clone() })?;
        Ok(directory)
    }

    /// Opens the directory of a run, to read it or to resume it.
    ///
    /// # Errors
    /// It holds no run, its `run.json` is damaged, or this Assay does not know its format.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let directory = Self { path };
        directory.check_format()?;
        Ok(directory)
    }

    /// Returns whether a path is the directory of a run, or of what is left of one.
    pub fn exists_at(path: &Path) -> bool {
        path.join(RUN_FILE).exists() || path.join(CELLS).is_dir()
    }

    /// Checks that this Assay can read the format.
    fn check_format(&self) -> Result<(), RecordError> {
        // All versions of `run.json` have these fields.
        #[derive(Deserialize)]
        struct Head {
            format: FormatVersion,
            #[serde(default)]
            assay: HeadAssay,
        }
        #[derive(Default, Deserialize)]
        struct HeadAssay {
            version: String,
        }
        let file = self.path.join(RUN_FILE);
        if !file.exists() {
            let exists = self.path.exists();
            return Err(RecordError::Missing {
                path: self.path.clone(),
                expected: "a run directory",
                what: if exists {
                    format!("it has no `{RUN_FILE}`")
                } else {
                    "it does not exist".into()
                },
                help: "give a directory that `assay run` wrote, such as `results/20261121T190211Z-pg`",
            });
        }
        let head: Head = json::read(&file)?;
        if head.format.major != FORMAT.major {
            return Err(RecordError::Format {
                path: self.path.clone(),
                found: head.format,
                written_by: head.assay.version,
            });
        }
        Ok(())
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces `run.json`, in the current format regardless of `run.format`.
    ///
    /// # Errors
    /// It can't be written; the old file then remains.
    pub fn write_run(&self, run: &Run) -> Result<(), RecordError> {
        json::write(&self.path.join(RUN_FILE), &Run { format: FORMAT, ..run.clone() })
    }

    /// Reads `run.json`, and looks whether the run is in progress.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read_run(&self) -> Result<Run, RecordError> {
        let mut run: Run = json::read(&self.path.join(RUN_FILE))?;
        let last = run.invocations.last();
        run.is_running = last.is_some_and(|it| it.ended_unix_ns.is_none()) && self.is_locked();
        Ok(run)
    }

    /// Returns true if a process has locked the directory.
    fn is_locked(&self) -> bool {
        let path = self.path.join(LOCK_FILE);
        // Anything else is not assay's, and opening a pipe would wait.
        if !fs_err::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            return false;
        }
        let Ok(file) = fs_err::File::open(&path) else {
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
            return Err(RecordError::damaged(&self.path.join(RUN_FILE), what));
        }
        Ok(CellDir { path: self.path.join(relative) })
    }

    /// Returns the directories of all cells that were started, sorted by name, including those that
    /// [`begin_cell`](Self::begin_cell) set aside.
    ///
    /// # Errors
    /// A directory can't be read.
    pub fn started_cells(&self) -> Result<Vec<CellDir>, RecordError> {
        let mut cells = Vec::new();
        let mut pending = vec![self.path.join(CELLS)];
        while let Some(path) = pending.pop() {
            let cell = CellDir { path };
            if cell.exists() {
                cells.push(cell);
                continue;
            }
            for entry in entries(&cell.path)? {
                let kind = entry.file_type();
                if kind.map_err(RecordError::io("look at", &entry.path()))?.is_dir() {
                    pending.push(entry.path());
                }
            }
        }
        cells.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(cells)
    }

    /// Returns the number of attempts at cells that were set aside. When it changes while a run is
    /// resumed, cells that were being read have moved.
    ///
    /// # Errors
    /// A directory can't be read.
    pub fn set_aside_count(&self) -> Result<usize, RecordError> {
        let is_aside = |cell: &&CellDir| {
            let name = cell.path.file_name().unwrap_or_default();
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
        let cell = self.cell(cell)?;
        if cell.path.exists() {
            let mut names =
                (1..).map(|number| with_suffix(&cell.path, &format!("{SET_ASIDE}{number}")));
            let unused = names.find(|name| !name.exists()).unwrap_or_default();
            fs_err::rename(&cell.path, unused)
                .map_err(RecordError::io("move aside", &cell.path))?;
        }
        let steps = cell.path.join(STEPS);
        fs_err::create_dir_all(&steps).map_err(RecordError::io("create directory", &steps))?;
        // Every directory that may be new, from the innermost, so that no name is lost.
        for directory in cell.path.ancestors().take_while(|directory| *directory != self.path) {
            json::sync_directory(directory)?;
        }
        json::sync_directory(&self.path)?;
        Ok(cell)
    }
}

/// A cell's directory.
#[derive(Clone, Debug)]
pub struct CellDir {
    path: PathBuf,
}

impl CellDir {
    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the cell was started: it has a `cell.json`.
    pub fn exists(&self) -> bool {
        self.path.join(CELL_FILE).exists()
    }

    /// Returns the path of the server's log.
    pub fn log_path(&self) -> PathBuf {
        self.path.join(LOG_FILE)
    }

    /// Replaces `log_events.parquet`, the events of the server's log.
    ///
    /// # Errors
    /// It can't be written; the old file then remains.
    pub fn write_log_events(&self, events: &[LogEvent]) -> Result<(), RecordError> {
        log_events::write(&self.path.join(LOG_EVENTS_FILE), events)
    }

    /// Reads `log_events.parquet`; `None` for a cell without one.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read_log_events(&self) -> Result<Option<Vec<LogEvent>>, RecordError> {
        let path = self.path.join(LOG_EVENTS_FILE);
        path.exists().then(|| log_events::read(&path)).transpose()
    }

    /// Replaces `cell.json`.
    ///
    /// # Errors
    /// It can't be written; the old file then remains.
    pub fn write(&self, cell: &Cell) -> Result<(), RecordError> {
        json::write(&self.path.join(CELL_FILE), cell)
    }

    /// Reads `cell.json`.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read(&self) -> Result<Cell, RecordError> {
        json::read(&self.path.join(CELL_FILE))
    }

    /// Writes a text file next to `cell.json`, such as `server.conf`.
    ///
    /// # Errors
    /// It can't be written, or the name is invalid for a file.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), RecordError> {
        json::write_atomically(&self.path.join(self.checked_name(name)?), text.as_bytes())
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
        let finished = self.step_path(number, self.checked_name(name)?);
        if finished.exists() {
            let what = format!("the step `{name}` a second time");
            return Err(RecordError::unrecordable(&finished, what));
        }
        StepWriter::create(finished, unix_now_ns(), host_columns)
    }

    /// Returns the directory of a finished step.
    pub(crate) fn step_path(&self, number: u32, name: &str) -> PathBuf {
        self.path.join(STEPS).join(format!("{number:02}-{name}"))
    }

    /// Returns the steps that were started, in order, including unfinished steps and those with a
    /// damaged `step.json`; see [`StepReader::state`].
    ///
    /// # Errors
    /// The directory can't be read.
    pub fn read_steps(&self) -> Result<Vec<StepReader>, RecordError> {
        let steps = self.path.join(STEPS);
        let mut readers = Vec::new();
        for entry in entries(&steps)? {
            let directory = entry.file_name().to_string_lossy().into_owned();
            let (name, read): (_, fn(_, _, &str) -> _) = match directory.strip_suffix(PARTIAL) {
                Some(name) => (name, StepReader::partial),
                None => (directory.as_str(), StepReader::open),
            };
            if let Some((number, name)) = name.split_once('-')
                && let Ok(number) = number.parse()
            {
                readers.push(read(entry.path(), number, name));
            }
        }
        readers.sort_by_cached_key(|step| (step.number(), step.path().to_owned()));
        Ok(readers)
    }

    /// Returns the `planned` steps that are not among the `recorded` ones.
    pub fn missing_steps(&self, planned: &[String], recorded: &[StepReader]) -> Vec<StepReader> {
        let missing = (1..).zip(planned).filter(|(number, _)| {
            let mut numbers = recorded.iter().map(StepReader::number);
            numbers.all(|other| other != *number)
        });
        let missing = missing.map(|(number, name)| StepReader::missing(self, number, name));
        missing.collect()
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
        let has_all = self.missing_steps(&cell.steps, &steps).is_empty();
        Ok(has_all && steps.iter().all(StepReader::is_whole))
    }

    /// Checks that a name is valid for a file.
    fn checked_name<'a>(&self, name: &'a str) -> Result<&'a str, RecordError> {
        if file_name_of(name) == name && !name.ends_with(PARTIAL) {
            return Ok(name);
        }
        let what = format!(
            "the name `{name}` (only letters, digits, `.`, `_` and `-`, not starting with `.`)"
        );
        Err(RecordError::unrecordable(&self.path, what))
    }
}

impl CellRef {
    /// Returns a measured cell with its directory.
    pub fn new(
        target: &str,
        workload: &str,
        variant: Option<&str>,
        clients: u32,
        repeat: u32,
    ) -> Self {
        Self::of(CellKey::new(target, variant, clients, repeat), workload)
    }

    /// Returns a cell with its directory: `cells/TARGET/[VARIANT/]cCLIENTS/rREPEAT`, with `p` for
    /// `r` if it is profiled.
    pub fn of(key: CellKey, workload: &str) -> Self {
        let variant = key.variant.as_deref();
        let variant_directory =
            variant.map(|variant| format!("{}/", file_name_of(variant))).unwrap_or_default();
        let letter = if key.profiled { 'p' } else { 'r' };
        Self {
            workload: workload.to_owned(),
            path: format!(
                "{CELLS}/{}/{variant_directory}c{}/{letter}{}",
                file_name_of(&key.target),
                key.clients,
                key.repeat
            ),
            key,
        }
    }

    /// Returns its name, `TARGET/[VARIANT/]cCLIENTS/rREPEAT`, which is its directory below
    /// `cells/`.
    pub fn name(&self) -> &str {
        let below = self.path.strip_prefix(CELLS);
        below.map_or(&self.path, |name| name.trim_start_matches('/'))
    }
}

/// Returns the entries of a directory; none if it does not exist.
fn entries(path: &Path) -> Result<Vec<fs_err::DirEntry>, RecordError> {
    match fs_err::read_dir(path).and_then(Iterator::collect) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(RecordError::io("read directory", path)),
    }
}

/// Returns the name of a run's directory, from its start and its name: `20261121T190211Z-round-6`.
pub(crate) fn run_name(run: &Run) -> String {
    format!("{}-{}", compact_time(run.started_unix_ns), file_name_of(&run.name))
}

/// Formats a time as `20261121T190211Z`.
fn compact_time(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(0);
    let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Replaces characters that a file name should not have.
fn file_name_of(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = name.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    match name.chars().next() {
        None => "-".into(),
        Some('.') => format!("-{}", &name[1..]),
        Some(_) => name,
    }
}

fn unix_now_ns() -> u64 {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
