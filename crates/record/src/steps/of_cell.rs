//! The steps of a cell: begins, finds and counts them.

use super::reader::{FoundStep, StepReader};
use super::writer::{HostColumn, StepWriter};
use crate::layout::{PARTIAL, step_file_name, step_name};
use crate::{Cell, CellDir, RecordError, Status};

impl CellDir {
    /// Starts the record of a step, numbered from 1 within its cell, with the columns of its host
    /// samples.
    ///
    /// # Errors
    /// It cannot be created, the step exists already, or its name is invalid for a directory.
    pub fn begin_step(
        &self,
        number: u32,
        name: &str,
        host_columns: &[HostColumn<'_>],
    ) -> Result<StepWriter, RecordError> {
        let finished = step_name(number, self.checked_name(name)?);
        let steps = self.steps();
        if steps.has(&finished) {
            let what = format!("the step `{name}` a second time");
            return Err(RecordError::unrecordable(&steps.path().join(finished), what));
        }

        StepWriter::create(self.clone(), (number, name), unix_now_ns(), host_columns)
    }

    /// Returns the steps that were started, in order, including unfinished steps and those with a
    /// damaged `step.json`; see [`StepReader::state`].
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn read_steps(&self) -> Result<Vec<StepReader>, RecordError> {
        // A cell that is being measured changes meanwhile. A step is listed before it gets its
        // name, so the list is read after the names. No step begins after the end of its cell, so
        // whether the cell has ended is read before the names.
        let has_ended = self.read().is_ok_and(|cell| cell.status == Status::Complete);
        let steps = self.steps();
        let entries = steps.entries()?;
        let listing = if entries.is_empty() { Ok(Cell::default()) } else { self.read() };

        let mut readers = Vec::new();
        for entry in entries {
            let (final_name, is_partial) = match entry.name.strip_suffix(PARTIAL) {
                Some(final_name) => (final_name, true),
                None => (entry.name.as_str(), false),
            };
            let Some((digits, name)) = final_name.split_once('-') else { continue };
            let Ok(number) = digits.parse() else { continue };

            let step = FoundStep::new(steps.folder(&entry.name), number, name);
            let reader = if is_partial && !(self.is_summed && has_ended) {
                step.unfinished()
            } else if !self.is_summed {
                step.open()
            } else {
                match &listing {
                    Ok(_) if is_partial => step.not_listed(),
                    Ok(cell) => step.open_listed(cell),
                    Err(error) => step.damaged(error),
                }
            };
            readers.push(reader);
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
    /// The directory cannot be read.
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
}

fn unix_now_ns() -> u64 {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
