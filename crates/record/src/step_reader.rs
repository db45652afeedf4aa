//! Reads one step. Long files are read in batches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;

use crate::latency_log::Latencies;
use crate::step_writer::{
    COUNTERS_FILE, CUMULATIVE_NOTE, HOST_FILE, INTERVALS_FILE, LATENCY_FILE, LATENCY_TOTAL_FILE,
    STEP_FILE, counter_columns, interval_columns, sample_columns,
};
use crate::table::{ColumnSpec, ColumnType, TableReader, Values};
use crate::{CellDir, IntervalRow, RecordError, Step, checksum, json};

/// The files of a step beside `step.json`.
const SERIES_FILES: [&str; 5] = [
    INTERVALS_FILE,
    HOST_FILE,
    COUNTERS_FILE,
    LATENCY_FILE,
    LATENCY_TOTAL_FILE,
];

/// A step of a record. A file is compared with its checksum before it is read.
#[derive(Clone, Debug)]
pub struct StepReader {
    path: PathBuf,
    number: u32,
    step: Step,
    state: StepState,
}

/// How much there is of a step's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// The step was finished: all of it should be there.
    Finished,
    /// The step was begun and never finished.
    Unfinished,
    /// A file of it is gone, or is not what was written.
    Damaged,
    /// The plan asks for the step, and nothing of it is there.
    Missing,
}

impl StepReader {
    /// Opens a step that was finished. Where its `step.json` can't be read, the step is damaged.
    pub(crate) fn open(path: PathBuf, number: u32, name: &str) -> Self {
        match json::read(&path.join(STEP_FILE)) {
            Ok(step) => Self {
                path,
                number,
                step,
                state: StepState::Finished,
            },
            Err(error) => {
                let reason = error.with_causes_and_help();
                Self::without_data(path, number, name, StepState::Damaged, reason)
            }
        }
    }

    /// A step whose writer ended before it did.
    pub(crate) fn partial(path: PathBuf, number: u32, name: &str) -> Self {
        // Whose end it was is not known here: of a cell in a process of its own, that crashed with its engine, or assay.
        let reason = "it was never finished: the process that ran it crashed or was killed, or could not write";
        Self::without_data(path, number, name, StepState::Unfinished, reason.to_owned())
    }

    /// Returns a step that the plan asks for and the record does not have.
    pub fn missing(cell: &CellDir, number: u32, name: &str) -> Self {
        let reason = "missing: the plan asks for it, and the record does not have it".to_owned();
        let path = cell.step_path(number, name);
        Self::without_data(path, number, name, StepState::Missing, reason)
    }

    /// Returns this step as one that is damaged, which `error` says: nothing of what it measured is read.
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
        let step = Step {
            name: name.to_owned(),
            reasons: vec![reason],
            ..Step::default()
        };
        Self {
            path,
            number,
            step,
            state,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its number within its cell, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// `step.json`; of a step that is not [`StepState::Finished`] little more than the name is known: its status is
    /// incomplete, and its reasons say what became of it.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Returns how much there is of its record. Of a step that is not finished no series can be read: they are empty.
    pub fn state(&self) -> StepState {
        self.state
    }

    /// Returns whether the step was finished and each of its files is what was written.
    pub fn is_whole(&self) -> bool {
        let is_there = |name: &str| matches!(self.verified(name), Ok(Some(_)));
        SERIES_FILES.into_iter().all(is_there)
    }

    /// Opens a table if it is what was written, to read these columns. `None`: there is none, since the step is not
    /// finished.
    fn table(
        &self,
        name: &str,
        columns: &[ColumnSpec],
    ) -> Result<Option<TableReader>, RecordError> {
        let path = self.verified(name)?;
        path.map(|path| TableReader::open(&path, columns))
            .transpose()
    }

    fn verified(&self, name: &str) -> Result<Option<PathBuf>, RecordError> {
        if self.state != StepState::Finished {
            return Ok(None);
        }
        let Some(noted) = self.step.files.iter().find(|file| file.name == name) else {
            let what = format!("it does not list `{name}`");
            return Err(RecordError::damaged(&self.path.join(STEP_FILE), what));
        };
        let path = self.path.join(name);
        checksum::verify(&path, noted)?;
        Ok(Some(path))
    }

    /// Shows every row of `intervals.parquet` to `each`, in the order in which they were written. It copies no text,
    /// and holds no more than a batch of them.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn for_each_interval(
        &self,
        mut each: impl FnMut(&IntervalRow<'_>),
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
                each(&IntervalRow {
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

    /// Shows every row of `counters.parquet` to `each`, in the order in which they were written; it copies no text.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn for_each_counter(
        &self,
        mut each: impl FnMut(&CounterRow<'_>),
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
                each(&CounterRow {
                    at_ns: at_ns[row],
                    name: table.text(&name[row])?,
                    value: value[row],
                    cumulative: cumulative[row],
                });
            }
        }
        Ok(())
    }

    /// All of `host.parquet`.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn host(&self) -> Result<HostSeries, RecordError> {
        let mut series = HostSeries::default();
        let Some(mut table) = self.table(HOST_FILE, &[])? else {
            return Ok(series);
        };
        let note = table.note(CUMULATIVE_NOTE).map(serde_json::from_str);
        let Some(Ok(cumulative)) = note else {
            let what = format!("its note `{CUMULATIVE_NOTE}` is missing or no list");
            return Err(RecordError::damaged(&self.path.join(HOST_FILE), what));
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
            series
                .seconds
                .extend(seconds.into_iter().map(unsigned::<u32>));
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

    /// The lines of `latency.hlog`, one for each second and tag.
    ///
    /// # Errors
    /// The file is missing or damaged; also each item may say so.
    pub fn latencies(&self) -> Result<Latencies, RecordError> {
        self.latency_log(LATENCY_FILE)
    }

    fn latency_log(&self, name: &str) -> Result<Latencies, RecordError> {
        Latencies::open(self.verified(name)?.as_deref())
    }

    /// The latencies of the whole step in nanoseconds, by tag: `insert.service`, `insert.response`. They are read from
    /// `latency_total.hlog`; [`Latencies::merged`] makes the same of all seconds, and takes its time.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn histograms(&self) -> Result<BTreeMap<String, Histogram<u64>>, RecordError> {
        self.latency_log(LATENCY_TOTAL_FILE)?.merged()
    }
}

/// What was sampled of the host in a step. Every column is as long as `seconds`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSeries {
    /// Which second of the step each sample belongs to.
    pub seconds: Vec<u32>,
    /// When each was taken, on the step's clock.
    pub at_ns: Vec<i64>,
    /// What was sampled.
    pub columns: Vec<HostColumnSeries>,
}

impl HostSeries {
    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&HostColumnSeries> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// One column of `host.parquet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostColumnSeries {
    /// Its name, with its unit last.
    pub name: String,
    /// It only grows, so that a difference means something.
    pub cumulative: bool,
    /// Its values; `None` where one could not be had.
    pub values: Vec<Option<i64>>,
}

/// One row of `counters.parquet` while it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterRow<'a> {
    /// When it was read, on the step's clock.
    pub at_ns: i64,
    /// The counter's name.
    pub name: &'a str,
    /// Its value.
    pub value: f64,
    /// It only grows.
    pub cumulative: bool,
}

/// The writer writes nothing negative.
fn unsigned<T: TryFrom<i64> + Default>(value: i64) -> T {
    T::try_from(value).unwrap_or_default()
}
