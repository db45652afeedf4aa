//! Reads the record of a step. Long files are read in batches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use words::{StackNode, StackTree, Stacks};

use crate::latency_log::Latencies;
use crate::step_writer::{
    COUNTERS_FILE, CUMULATIVE_NOTE, HOST_FILE, INTERVALS_FILE, LATENCY_FILE, LATENCY_TOTAL_FILE,
    PROFILE_FILE, STATUS_FILE, STEP_FILE, counter_columns, host_file, interval_columns,
    profile_columns, sample_columns,
};
use crate::table::{ColumnSpec, ColumnType, TableReader, Values};
use crate::{CellDir, IntervalRow, RecordError, Step, checksum, json};

/// The files of every step other than `step.json`.
const SERIES_FILES: [&str; 5] =
    [INTERVALS_FILE, HOST_FILE, COUNTERS_FILE, LATENCY_FILE, LATENCY_TOTAL_FILE];

/// The record of a step. Each file is compared with its checksum before it is read.
#[derive(Clone, Debug)]
pub struct StepReader {
    path: PathBuf,
    number: u32,
    step: Step,
    state: StepState,
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
    /// Opens a finished step. If its `step.json` can't be read, the step is damaged.
    pub(crate) fn open(path: PathBuf, number: u32, name: &str) -> Self {
        match json::read(&path.join(STEP_FILE)) {
            Ok(step) => Self { path, number, step, state: StepState::Finished },
            Err(error) => {
                let reason = error.with_causes_and_help();
                Self::without_data(path, number, name, StepState::Damaged, reason)
            }
        }
    }

    /// Returns a step whose writer ended before the step was finished.
    pub(crate) fn partial(path: PathBuf, number: u32, name: &str) -> Self {
        // It is not known here which process ended: Assay, or one that ran only this cell and
        // crashed with its engine.
        let reason = "it was never finished: the process that ran it crashed or was killed, or could not write";
        Self::without_data(path, number, name, StepState::Unfinished, reason.to_owned())
    }

    /// Returns a step that the plan has but the record does not.
    pub fn missing(cell: &CellDir, number: u32, name: &str) -> Self {
        let reason = "missing: the plan has this step, but the record does not".to_owned();
        let path = cell.step_path(number, name);
        Self::without_data(path, number, name, StepState::Missing, reason)
    }

    /// Returns this step as damaged, with `error` as the reason and without measurements.
    pub fn damaged(&self, error: &RecordError) -> Self {
        let (path, reason) = (self.path.clone(), error.with_causes_and_help());
        let state = StepState::Damaged;
        let mut damaged = Self::without_data(path, self.number, &self.step.name, state, reason);
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

    fn without_data(
        path: PathBuf,
        number: u32,
        name: &str,
        state: StepState,
        reason: String,
    ) -> Self {
        let step = Step { name: name.to_owned(), reasons: vec![reason], ..Step::default() };
        Self { path, number, step, state }
    }

    /// Returns its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its number within its cell, from 1.
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
        let is_undamaged = |name: &str| matches!(self.verified(name), Ok(Some(_)));
        let mut recorded = self.step.files.iter().map(|file| file.name.as_str());
        SERIES_FILES.iter().all(|name| self.has_file(name)) && recorded.all(is_undamaged)
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
        let path = self.verified(name)?;
        path.map(|path| TableReader::open(&path, columns)).transpose()
    }

    /// Checks a file, and returns its path; `None` if the step is not finished.
    fn verified(&self, name: &str) -> Result<Option<PathBuf>, RecordError> {
        if self.state != StepState::Finished {
            return Ok(None);
        }
        let Some(recorded) = self.step.files.iter().find(|file| file.name == name) else {
            let what = format!("it does not list `{name}`");
            return Err(RecordError::damaged(&self.path.join(STEP_FILE), what));
        };
        let path = self.path.join(name);
        checksum::verify(&path, recorded)?;
        Ok(Some(path))
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
        let note = table.note(CUMULATIVE_NOTE).map(serde_json::from_str);
        let Some(Ok(cumulative)) = note else {
            let what = format!("its note `{CUMULATIVE_NOTE}` is missing or not a list");
            return Err(RecordError::damaged(&self.path.join(name), what));
        };
        let cumulative: Vec<String> = cumulative;
        let mut columns = table.columns();
        columns.retain(|column| column.optional && column.holds == ColumnType::Integer);
        table.select(&[&sample_columns(), columns.as_slice()].concat())?;
        let columns = columns.into_iter().map(|column| HostColumnSeries {
            cumulative: cumulative.contains(&column.name),
            name: column.name,
            values: Vec::new(),
        });
        series.columns = columns.collect();
        while let Some(batch) = table.next_batch()? {
            let mut batch = batch.into_iter();
            let samples = [batch.next(), batch.next()].map(|rows| rows.map(|rows| rows.values));
            let [Some(Values::Integer(seconds)), Some(Values::Integer(at_ns))] = samples else {
                unreachable!("a batch has the columns that were selected")
            };
            series.seconds.extend(seconds.into_iter().map(unsigned::<u32>));
            series.at_ns.extend(at_ns);
            for (column, rows) in series.columns.iter_mut().zip(batch) {
                let (Values::Integer(values), Some(defined)) = (rows.values, rows.defined) else {
                    unreachable!("a batch has the columns that were selected")
                };
                let mut values = values.into_iter();
                let value = |level| if level == 1 { values.next() } else { None };
                column.values.extend(defined.into_iter().map(value));
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
        let path = self.verified(STATUS_FILE)?;
        let read =
            |path: PathBuf| fs_err::read_to_string(&path).map_err(RecordError::io("read", &path));
        path.map(read).transpose()
    }

    /// Opens `latency.hlog`, which has a line for each second and tag.
    ///
    /// # Errors
    /// The file is missing or damaged. Reading a line may also fail.
    pub fn latencies(&self) -> Result<Latencies, RecordError> {
        self.latency_log(LATENCY_FILE)
    }

    fn latency_log(&self, name: &str) -> Result<Latencies, RecordError> {
        Latencies::open(self.verified(name)?.as_deref())
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

/// One column of `host.parquet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostColumnSeries {
    /// Its name, with its unit last.
    pub name: String,
    /// It only grows, so that differences are meaningful.
    pub cumulative: bool,
    /// Its values; `None` if one was unavailable.
    pub values: Vec<Option<i64>>,
}

/// One row of `counters.parquet` while it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterRow<'a> {
    /// The time of the sample, on the step's clock.
    pub at_ns: i64,
    /// The counter's name.
    pub name: &'a str,
    /// Its value.
    pub value: f64,
    /// It only grows.
    pub cumulative: bool,
}

/// Converts a number that the writer wrote, which is never negative.
fn unsigned<T: TryFrom<i64> + Default>(value: i64) -> T {
    T::try_from(value).unwrap_or_default()
}
