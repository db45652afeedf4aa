//! A cell's directory: its record, its log and the names of its files. Its steps are read and
//! written in [`crate::steps`].

use std::path::{Path, PathBuf};

use super::log_events;
use crate::files::{Folder, checksum, json};
use crate::layout::{CELL_FILE, LOG_EVENTS_FILE, LOG_FILE, PARTIAL, RUN_FILE, STEPS, file_name_of};
use crate::{Cell, CellKey, LogEvent, RecordError, StepFile};

/// A cell's directory.
#[derive(Clone, Debug)]
pub struct CellDir {
    pub(super) folder: Folder,
    /// The identifier of its run, which its record must name.
    pub(super) run_id: String,
    /// The key that its record must name, if known.
    pub(super) key: Option<CellKey>,
    /// The JSON files have checksums.
    pub(crate) is_summed: bool,
    /// The `cell.json` that `run.json` lists.
    pub(super) ended: Option<StepFile>,
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
    /// It cannot be written; the old file then remains. Or the cell has no record yet.
    pub fn write_log_events(&self, events: &[LogEvent]) -> Result<(), RecordError> {
        let bytes = log_events::to_bytes(events)
            .map_err(RecordError::io("write", &self.path().join(LOG_EVENTS_FILE)))?;
        self.folder.replace(LOG_EVENTS_FILE, &bytes)?;
        self.list_file(checksum::of_bytes(LOG_EVENTS_FILE, &bytes))
    }

    /// Reads `log_events.parquet`; `None` for a cell without one.
    ///
    /// # Errors
    /// It cannot be read.
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
    /// It cannot be written; the old file then remains.
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
    /// It cannot be read, or belongs to another cell or run.
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
    /// It cannot be written, or the name is invalid for a file.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), RecordError> {
        self.folder.replace(self.checked_name(name)?, text.as_bytes())
    }

    /// Returns the folder of the cell's steps.
    pub(crate) fn steps(&self) -> Folder {
        self.folder.folder(STEPS)
    }

    /// Checks that a name is valid for a file.
    pub(crate) fn checked_name<'a>(&self, name: &'a str) -> Result<&'a str, RecordError> {
        if file_name_of(name) == name && !name.ends_with(PARTIAL) {
            return Ok(name);
        }

        let what = format!(
            "the name `{name}` (only letters, digits, `.`, `_` and `-`, not starting with `.`)"
        );
        Err(RecordError::unrecordable(self.path(), what))
    }
}
