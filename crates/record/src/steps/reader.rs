//! Reads the record of a step. Long files are read in batches.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use hdrhistogram::Histogram;
use words::{StackNode, StackTree, Stacks, WorkGraph, WorkRole};

use super::columns::{
    CUMULATIVE_NOTE, counter_columns, interval_columns, profile_columns, sample_columns, unsigned,
};
use super::turns::{self, TurnRow, turn_columns};
use super::work::{self, call_columns, function_columns};
use crate::files::{
    ColumnSpec, ColumnType, Folder, Latencies, TEXT_BYTES_MAX, TableReader, Values, checksum, json,
};
use crate::layout::{
    CELL_FILE, COUNTERS_FILE, HOST_FILE, INTERVALS_FILE, LATENCY_FILE, LATENCY_TOTAL_FILE,
    PROFILE_FILE, STATUS_FILE, STEP_FILE, TURNS_FILE, WORK_CALLS_FILE, WORK_FUNCTIONS_FILE,
    host_file, step_file_name,
};
use crate::{Cell, IntervalRow, RecordError, Step, StepFile};

/// The files of every step other than `step.json`.
const SERIES_FILES: [&str; 5] =
    [INTERVALS_FILE, HOST_FILE, COUNTERS_FILE, LATENCY_FILE, LATENCY_TOTAL_FILE];

/// A directory of a step that was found in a cell, or should be there.
pub(crate) struct FoundStep {
    folder: Folder,
    number: u32,
    name: String,
}

impl FoundStep {
    pub(crate) fn new(folder: Folder, number: u32, name: &str) -> Self {
        Self { folder, number, name: name.to_owned() }
    }

    /// Returns a finished step of a cell that lists no steps. If its `step.json` cannot be read, the
    /// step is damaged.
    pub(crate) fn open(self) -> StepReader {
        match json::read(&self.folder, STEP_FILE, false) {
            Ok(step) => self.finished(step),
            Err(error) => self.damaged(&error),
        }
    }

    /// Returns a finished step if it is the one that the cell lists, and a damaged one otherwise.
    pub(crate) fn open_listed(self, cell: &Cell) -> StepReader {
        let directory = self.folder.path().file_name().unwrap_or_default().to_string_lossy();
        let Some(listed) = cell.file(&step_file_name(&directory)) else {
            return self.not_listed();
        };

        match self.read_listed(cell, listed) {
            Ok(step) => self.finished(step),
            Err(error) => self.damaged(&error),
        }
    }

    fn read_listed(&self, cell: &Cell, listed: &StepFile) -> Result<Step, RecordError> {
        let path = self.folder.path().join(STEP_FILE);
        let bytes = self.folder.read(STEP_FILE)?;
        checksum::verify_bytes(&path, &bytes, listed, CELL_FILE)?;

        let step: Step = json::parse(&path, &bytes, true)?;

        if step.cell == cell.key && step.number == self.number && step.name == self.name {
            Ok(step)
        } else {
            Err(RecordError::damaged(&path, "it is another step, or a step of another cell"))
        }
    }

    fn finished(self, step: Step) -> StepReader {
        StepReader { step, ..self.without_data(StepState::Finished, String::new()) }
    }

    /// Returns a step that its cell does not have.
    pub(crate) fn not_listed(self) -> StepReader {
        let what = format!("`{CELL_FILE}` does not list this step");
        let error = RecordError::damaged(self.folder.path(), what);
        self.damaged(&error)
    }

    pub(crate) fn damaged(self, error: &RecordError) -> StepReader {
        self.without_data(StepState::Damaged, error.with_causes())
    }

    /// Returns a step whose writer ended before the step was finished.
    pub(crate) fn unfinished(self) -> StepReader {
        // It is not known here which process ended: Assay, or one that ran only this cell and
        // crashed with its engine.
        let reason = "it was never finished: the process that ran it crashed or was killed, or could not write";
        self.without_data(StepState::Unfinished, reason.to_owned())
    }

    /// Returns a step that the plan has but the record does not. `is_lost`: the record had it.
    pub(crate) fn missing(self, is_lost: bool) -> StepReader {
        let reason = if is_lost {
            format!("missing: it was recorded, but `{}` is gone", self.folder.path().display())
        } else {
            "missing: the plan has this step, but the record does not".to_owned()
        };

        StepReader { is_lost, ..self.without_data(StepState::Missing, reason) }
    }

    fn without_data(self, state: StepState, reason: String) -> StepReader {
        let step = Step { name: self.name, reasons: vec![reason], ..Step::default() };
        StepReader { folder: self.folder, number: self.number, step, state, is_lost: false }
    }
}

/// More seconds than a step has: four months.
const SECONDS_MAX: u64 = 10_000_000;
/// More frames than the call stacks of a profile have.
const STACK_NODES_MAX: u64 = 10_000_000;
/// The most rows of turns of a step.
const TURN_ROWS_MAX: u64 = 10_000_000;
/// More functions, or pairs of them, than an engine has.
const WORK_ROWS_MAX: u64 = 10_000_000;

/// The record of a step. Each file is compared with its checksum before it is read.
#[derive(Clone, Debug)]
pub struct StepReader {
    folder: Folder,
    number: u32,
    step: Step,
    state: StepState,
    is_lost: bool,
}

/// The completeness of a step's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// The step was finished, so its record should be complete.
    Finished,
    /// The step was started but never finished.
    Unfinished,
    /// A file is missing, or differs from what was written.
    Damaged,
    /// The plan has the step, but the record does not.
    Missing,
}

impl StepReader {
    /// Returns this step as damaged, with `error` as the reason and without measurements.
    pub fn damaged(&self, error: &RecordError) -> Self {
        let name = &self.step.name;

        let mut damaged = FoundStep::new(self.folder.clone(), self.number, name).damaged(error);
        damaged.step = Step {
            kind: self.step.kind,
            main_op: self.step.main_op.clone(),
            queries_per_event: self.step.queries_per_event,
            group: self.step.group.clone(),
            unreported: self.step.unreported,
            ..damaged.step
        };

        damaged
    }

    /// Returns the directory of the step.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns whether it is missing although it was recorded.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns the number of the step within its cell, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns `step.json`. A step that is not [`StepState::Finished`] has little more than its
    /// name, with the status incomplete and the reasons.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Returns the completeness of its record. The series of a step that is not finished are empty.
    pub fn state(&self) -> StepState {
        self.state
    }

    /// Returns whether the step is finished and all of its files are undamaged.
    pub fn is_whole(&self) -> bool {
        self.state == StepState::Finished
            && SERIES_FILES.iter().all(|name| self.has_file(name))
            && self.verify_files().is_ok()
    }

    /// Compares each file of a finished step with its checksum, also those that hardly anything
    /// reads. The files of other steps are not looked at.
    ///
    /// # Errors
    /// A file is missing or differs from what was written.
    pub fn verify_files(&self) -> Result<(), RecordError> {
        self.step.files.iter().try_for_each(|file| self.verified(&file.name).map(drop))
    }

    fn has_file(&self, name: &str) -> bool {
        self.step.files.iter().any(|file| file.name == name)
    }

    /// Checks and opens a table to read these columns. Returns `None` if the step is not finished.
    fn table(
        &self,
        name: &str,
        columns: &[ColumnSpec],
    ) -> Result<Option<TableReader>, RecordError> {
        let file = self.verified(name)?;
        file.map(|file| TableReader::open(file, columns)).transpose()
    }

    /// Opens a file and checks it; `None` if the step is not finished.
    fn verified(&self, name: &str) -> Result<Option<fs_err::File>, RecordError> {
        if self.state != StepState::Finished {
            return Ok(None);
        }

        let Some(recorded) = self.step.files.iter().find(|file| file.name == name) else {
            let what = format!("it does not list `{name}`");
            return Err(RecordError::damaged(&self.path().join(STEP_FILE), what));
        };

        let mut file = self.folder.open(name)?;
        checksum::verify(&mut file, recorded, STEP_FILE)?;
        Ok(Some(file))
    }

    /// Calls `visit` with every row of `intervals.parquet`, in the order in which they were
    /// written. It copies no text, and keeps only one batch in memory.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn for_each_interval(
        &self,
        mut visit: impl FnMut(&IntervalRow<'_>),
    ) -> Result<(), RecordError> {
        let Some(mut table) = self.table(INTERVALS_FILE, &interval_columns())? else {
            return Ok(());
        };

        while let Some(batch) = table.next_values()? {
            let [
                Values::Integer(second),
                Values::Integer(client),
                Values::Text(kind),
                Values::Integer(ok),
                Values::Integer(failed),
                Values::Integer(retried),
                Values::Integer(rows),
                Values::Integer(service),
                Values::Integer(response),
            ] = batch
            else {
                unreachable!("a batch has the columns that were selected")
            };

            for row in 0..second.len() {
                visit(&IntervalRow {
                    second: unsigned(second[row]),
                    client: unsigned(client[row]),
                    kind: table.text(&kind[row])?,
                    ok: unsigned(ok[row]),
                    failed: unsigned(failed[row]),
                    retried: unsigned(retried[row]),
                    rows: unsigned(rows[row]),
                    service_ns_max: unsigned(service[row]),
                    response_ns_max: unsigned(response[row]),
                });
            }
        }

        Ok(())
    }

    /// Calls `visit` with every row of `counters.parquet`, in the order in which they were written.
    /// It copies no text.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn for_each_counter(
        &self,
        mut visit: impl FnMut(&CounterRow<'_>),
    ) -> Result<(), RecordError> {
        let [_, columns @ ..] = &counter_columns();
        let Some(mut table) = self.table(COUNTERS_FILE, columns)? else {
            return Ok(());
        };

        while let Some(batch) = table.next_values()? {
            let [
                Values::Integer(at_ns),
                Values::Text(name),
                Values::Number(value),
                Values::Boolean(cumulative),
            ] = batch
            else {
                unreachable!("a batch has the columns that were selected")
            };

            for row in 0..at_ns.len() {
                visit(&CounterRow {
                    at_ns: at_ns[row],
                    name: table.text(&name[row])?,
                    value: value[row],
                    cumulative: cumulative[row],
                });
            }
        }

        Ok(())
    }

    /// Reads `profile.parquet`; `None` for a step without a profile.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn profile(&self) -> Result<Option<Stacks>, RecordError> {
        if !self.has_file(PROFILE_FILE) {
            return Ok(None);
        }

        let Some(mut table) = self.table(PROFILE_FILE, &profile_columns())? else {
            return Ok(None);
        };
        table.limit_rows(STACK_NODES_MAX)?;

        let mut tree = StackTree::default();
        while let Some(batch) = table.next_values()? {
            let [Values::Integer(depth), Values::Text(frame), Values::Integer(samples)] = batch
            else {
                unreachable!("a batch has the columns that were selected")
            };
            for row in 0..depth.len() {
                tree.add(StackNode {
                    depth: unsigned(depth[row]),
                    frame: table.text(&frame[row])?,
                    samples: unsigned(samples[row]),
                });
            }
        }

        Ok(Some(tree.into_stacks()))
    }

    /// Reads `work_functions.parquet` and `work_calls.parquet`; empty for a step whose work was not
    /// counted.
    ///
    /// # Errors
    /// A file is missing or damaged.
    pub fn work(&self) -> Result<BTreeMap<WorkRole, WorkGraph>, RecordError> {
        let mut graphs: BTreeMap<WorkRole, WorkGraph> = BTreeMap::new();
        if !self.has_file(WORK_FUNCTIONS_FILE) {
            return Ok(graphs);
        }

        let functions = self.table(WORK_FUNCTIONS_FILE, &function_columns())?;
        let calls = self.table(WORK_CALLS_FILE, &call_columns())?;
        let (Some(mut functions), Some(mut calls)) = (functions, calls) else {
            return Ok(graphs);
        };

        functions.limit_rows(WORK_ROWS_MAX)?;
        work::read_functions(&mut functions, &mut graphs)?;
        calls.limit_rows(WORK_ROWS_MAX)?;
        work::read_calls(&mut calls, &mut graphs)?;

        Ok(graphs)
    }

    /// Reads `turns.parquet`; none for a step without turns.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn turns(&self) -> Result<Vec<TurnRow>, RecordError> {
        if !self.has_file(TURNS_FILE) {
            return Ok(Vec::new());
        }

        let Some(mut table) = self.table(TURNS_FILE, &turn_columns())? else {
            return Ok(Vec::new());
        };
        // A file may claim any number of rows, and all of them are kept.
        table.limit_rows(TURN_ROWS_MAX)?;
        turns::read(&mut table)
    }

    /// Reads the samples of the host of rank 0, `host.parquet`.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn host(&self) -> Result<HostSeries, RecordError> {
        self.host_of(0)
    }

    /// Reads the samples of the host whose first rank is `rank`; none if it was not sampled.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn host_of(&self, rank: u32) -> Result<HostSeries, RecordError> {
        let mut series = HostSeries::default();

        let name = host_file(rank);
        if rank != 0 && !self.has_file(&name) {
            return Ok(series);
        }

        let Some(mut table) = self.table(&name, &[])? else {
            return Ok(series);
        };

        table.limit_rows(SECONDS_MAX)?;

        let note = table.note(CUMULATIVE_NOTE).map(serde_json::from_str::<Vec<String>>);
        let Some(Ok(cumulative)) = note else {
            let what = format!("its note `{CUMULATIVE_NOTE}` is missing or not a list");
            return Err(RecordError::damaged(&self.path().join(name), what));
        };

        // Hosts differ in what they have, so the columns are those of the file.
        let mut columns = table.columns();
        columns.retain(|column| column.optional && column.holds == ColumnType::Integer);
        table.select(&[&sample_columns(), columns.as_slice()].concat())?;

        for column in columns {
            series.columns.push(HostColumnSeries {
                cumulative: cumulative.contains(&column.name),
                name: column.name,
                values: Vec::new(),
            });
        }

        while let Some(batch) = table.next_batch()? {
            let mut batch_columns = batch.into_iter();
            let of_samples = [batch_columns.next(), batch_columns.next()];
            let values = of_samples.map(|column| column.map(|rows| rows.values));
            let [Some(Values::Integer(seconds)), Some(Values::Integer(at_ns))] = values else {
                unreachable!("a batch has the columns that were selected")
            };

            series.seconds.extend(seconds.into_iter().map(unsigned::<u32>));
            series.at_ns.extend(at_ns);
            for (column, rows) in series.columns.iter_mut().zip(batch_columns) {
                column.values.extend(rows.into_optional_integers());
            }
        }

        Ok(series)
    }

    /// Reads `engine_status.txt`, the engine's own text about its state after the step; `None` if
    /// it has none.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn engine_status(&self) -> Result<Option<String>, RecordError> {
        if !self.has_file(STATUS_FILE) {
            return Ok(None);
        }

        let Some(file) = self.verified(STATUS_FILE)? else {
            return Ok(None);
        };

        let path = self.path().join(STATUS_FILE);
        let mut text = String::new();
        file.take(TEXT_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(RecordError::io("read", &path))?;

        Ok(Some(text))
    }

    /// Opens `latency.hlog`, which has a line for each second and tag.
    ///
    /// # Errors
    /// The file is missing or damaged. Reading a line may also fail.
    pub fn latencies(&self) -> Result<Latencies, RecordError> {
        self.latency_log(LATENCY_FILE)
    }

    fn latency_log(&self, name: &str) -> Result<Latencies, RecordError> {
        Ok(Latencies::new(self.verified(name)?))
    }

    /// Reads the latencies of the whole step in nanoseconds, by tag: `insert.service`,
    /// `insert.response`. They are in `latency_total.hlog`; [`Latencies::merged`] computes the
    /// same from all seconds, which is slow.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn histograms(&self) -> Result<BTreeMap<String, Histogram<u64>>, RecordError> {
        self.latency_log(LATENCY_TOTAL_FILE)?.merged()
    }
}

/// The samples of the host during a step. Every column is as long as `seconds`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSeries {
    /// The second of the step of each sample.
    pub seconds: Vec<u32>,
    /// The time of each sample, on the step's clock.
    pub at_ns: Vec<i64>,
    /// The values, by column.
    pub columns: Vec<HostColumnSeries>,
}

impl HostSeries {
    /// Returns the column with this name.
    pub fn column(&self, name: &str) -> Option<&HostColumnSeries> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// A column of `host.parquet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostColumnSeries {
    /// The name of the column, with its unit last.
    pub name: String,
    /// The counter only grows, so that differences are meaningful.
    pub cumulative: bool,
    /// The values; `None` if one was unavailable.
    pub values: Vec<Option<i64>>,
}

/// A row of `counters.parquet` while it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterRow<'a> {
    /// The time of the sample, on the step's clock.
    pub at_ns: i64,
    /// The counter's name.
    pub name: &'a str,
    /// The value of the counter.
    pub value: f64,
    /// The counter only grows.
    pub cumulative: bool,
}
