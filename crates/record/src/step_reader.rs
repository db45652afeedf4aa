//! Reads one step. Long files are read in batches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;

use crate::latency_log::Latencies;
use crate::step_writer::{
    COUNTERS_FILE, CUMULATIVE_NOTE, HOST_FILE, INTERVALS_FILE, LATENCY_FILE, LATENCY_TOTAL_FILE,
    STEP_FILE, counter_columns, interval_columns, sample_columns,
};
use crate::table::{ColumnType, TableReader, Values};
use crate::{CellDir, Counter, Interval, RecordError, Step, checksum, json};

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
    pub(crate) fn open(path: PathBuf, number: u32, name: String) -> Self {
        match json::read(&path.join(STEP_FILE)) {
            Ok(step) => Self {
                path,
                number,
                step,
                state: StepState::Finished,
            },
            Err(error) => {
                let step = Step {
                    name,
                    ..Step::default()
                };
                let state = StepState::Damaged;
                Self::without_data(path, number, step, state, error.with_causes_and_help())
            }
        }
    }

    /// A step whose writer ended before it did.
    pub(crate) fn partial(path: PathBuf, number: u32, name: String) -> Self {
        let step = Step {
            name,
            ..Step::default()
        };
        // Whose end it was is not known here: of a cell in a process of its own, that crashed with its engine, or assay.
        let reason = "it was never finished: the process that ran it crashed or was killed, or could not write";
        Self::without_data(path, number, step, StepState::Unfinished, reason.to_owned())
    }

    /// Returns a step that the plan asks for and the record does not have.
    pub fn missing(cell: &CellDir, number: u32, name: &str) -> Self {
        let step = Step {
            name: name.to_owned(),
            ..Step::default()
        };
        let reason = "missing: the plan asks for it, and the record does not have it".to_owned();
        let path = cell.step_path(number, name);
        Self::without_data(path, number, step, StepState::Missing, reason)
    }

    /// Returns this step as one that is damaged, which `error` says: nothing of what it measured is read.
    pub fn damaged(&self, error: &RecordError) -> Self {
        let step = Step {
            name: self.step.name.clone(),
            kind: self.step.kind,
            main_op: self.step.main_op.clone(),
            queries_per_event: self.step.queries_per_event,
            group: self.step.group.clone(),
            unreported: self.step.unreported,
            ..Step::default()
        };
        let reason = error.with_causes_and_help();
        let path = self.path.clone();
        Self::without_data(path, self.number, step, StepState::Damaged, reason)
    }

    fn without_data(
        path: PathBuf,
        number: u32,
        mut step: Step,
        state: StepState,
        reason: String,
    ) -> Self {
        step.reasons = vec![reason];
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

    /// Opens a table if it is what was written. `None`: there is none, since the step is not finished.
    fn table(&self, name: &str) -> Result<Option<TableReader>, RecordError> {
        self.verified(name)?
            .map(|path| TableReader::open(&path))
            .transpose()
    }

    fn verified(&self, name: &str) -> Result<Option<PathBuf>, RecordError> {
        if self.state != StepState::Finished {
            return Ok(None);
        }
        let path = self.path.join(name);
        match self.step.files.iter().find(|file| file.name == name) {
            Some(noted) => checksum::verify(&path, noted)?,
            None => {
                let what = format!("it does not list `{name}`");
                return Err(RecordError::damaged(&self.path.join(STEP_FILE), what));
            }
        }
        Ok(Some(path))
    }

    /// All rows of `intervals.parquet`, as [`each_interval`](Self::each_interval) shows them.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn intervals(&self) -> Result<Vec<Interval>, RecordError> {
        let mut rows = Vec::new();
        self.each_interval(|row| {
            rows.push(Interval {
                second: row.second,
                client: row.client,
                kind: row.kind.to_owned(),
                ok: row.ok,
                failed: row.failed,
                retried: row.retried,
                rows: row.rows,
                service_ns_max: row.service_ns_max,
                response_ns_max: row.response_ns_max,
            });
        })?;
        Ok(rows)
    }

    /// Shows every row of `intervals.parquet` to `each`, in the order in which they were written. It copies no text,
    /// and holds no more than a batch of them.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn each_interval(&self, mut each: impl FnMut(&IntervalRow<'_>)) -> Result<(), RecordError> {
        let Some(mut table) = self.table(INTERVALS_FILE)? else {
            return Ok(());
        };
        let path = self.path.join(INTERVALS_FILE);
        table.select(&interval_columns())?;
        while let Some((count, batch)) = table.next_batch()? {
            let Ok(
                [
                    Values::Integer(second),
                    Values::Integer(client),
                    Values::Text(kind),
                    Values::Integer(ok),
                    Values::Integer(failed),
                    Values::Integer(retried),
                    Values::Integer(rows),
                    Values::Integer(service),
                    Values::Integer(response),
                ],
            ) = <[Values; 9]>::try_from(batch)
            else {
                unreachable!("a batch has the columns that were selected")
            };
            for row in 0..count {
                each(&IntervalRow {
                    second: unsigned32(second[row]),
                    client: unsigned32(client[row]),
                    kind: text(&path, &kind[row])?,
                    ok: unsigned64(ok[row]),
                    failed: unsigned64(failed[row]),
                    retried: unsigned64(retried[row]),
                    rows: unsigned64(rows[row]),
                    service_ns_max: unsigned64(service[row]),
                    response_ns_max: unsigned64(response[row]),
                });
            }
        }
        Ok(())
    }

    /// Shows every row of `counters.parquet` to `each`, in the order in which they were written; it copies no text.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn each_counter(&self, mut each: impl FnMut(&CounterRow<'_>)) -> Result<(), RecordError> {
        let Some(mut table) = self.table(COUNTERS_FILE)? else {
            return Ok(());
        };
        let path = self.path.join(COUNTERS_FILE);
        table.select(&counter_columns())?;
        while let Some((count, batch)) = table.next_batch()? {
            let Ok(
                [
                    Values::Integer(second),
                    Values::Integer(at_ns),
                    Values::Text(name),
                    Values::Number(value),
                    Values::Boolean(cumulative),
                ],
            ) = <[Values; 5]>::try_from(batch)
            else {
                unreachable!("a batch has the columns that were selected")
            };
            for row in 0..count {
                each(&CounterRow {
                    second: unsigned32(second[row]),
                    at_ns: at_ns[row],
                    name: text(&path, &name[row])?,
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
        let Some(mut table) = self.table(HOST_FILE)? else {
            return Ok(series);
        };
        let path = self.path.join(HOST_FILE);
        let cumulative: Vec<String> = match table.note(CUMULATIVE_NOTE).map(serde_json::from_str) {
            Some(Ok(names)) => names,
            _ => {
                return Err(RecordError::damaged(
                    &path,
                    format!("its note `{CUMULATIVE_NOTE}` is missing or no list"),
                ));
            }
        };
        let columns: Vec<_> = table
            .columns()
            .into_iter()
            .filter(|column| column.optional && column.holds == ColumnType::Integer)
            .collect();
        table.select(
            &sample_columns()
                .into_iter()
                .chain(columns.iter().cloned())
                .collect::<Vec<_>>(),
        )?;
        series.columns = columns
            .into_iter()
            .map(|column| HostColumnSeries {
                cumulative: cumulative.contains(&column.name),
                name: column.name,
                values: Vec::new(),
            })
            .collect();
        while let Some((_, batch)) = table.next_batch()? {
            let mut batch = batch.into_iter();
            match (batch.next(), batch.next()) {
                (Some(Values::Integer(seconds)), Some(Values::Integer(at_ns))) => {
                    series.seconds.extend(seconds.into_iter().map(unsigned32));
                    series.at_ns.extend(at_ns);
                }
                _ => unreachable!("a batch has the columns that were selected"),
            }
            for (column, values) in series.columns.iter_mut().zip(batch) {
                let Values::OptionalInteger(values, defined) = values else {
                    unreachable!("a batch has the columns that were selected")
                };
                let mut values = values.into_iter();
                column.values.extend(
                    defined
                        .into_iter()
                        .map(|level| if level == 1 { values.next() } else { None }),
                );
            }
        }
        Ok(series)
    }

    /// All rows of `counters.parquet`, as [`each_counter`](Self::each_counter) shows them.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn counters(&self) -> Result<Vec<CounterSample>, RecordError> {
        let mut rows = Vec::new();
        self.each_counter(|row| {
            rows.push(CounterSample {
                second: row.second,
                at_ns: row.at_ns,
                counter: Counter {
                    name: row.name.to_owned(),
                    value: row.value,
                    cumulative: row.cumulative,
                    role: None,
                    rounding: 0.0,
                },
            });
        })?;
        Ok(rows)
    }

    /// The lines of `latency.hlog`, one for each second and tag.
    ///
    /// # Errors
    /// The file is missing or damaged; also each item may say so.
    pub fn latencies(&self) -> Result<Latencies, RecordError> {
        self.latency_log(LATENCY_FILE)
    }

    fn latency_log(&self, name: &str) -> Result<Latencies, RecordError> {
        match self.verified(name)? {
            Some(path) => Latencies::open(&path),
            None => Ok(Latencies::none(&self.path.join(name))),
        }
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

/// One row of `intervals.parquet` while it is read: the fields of [`Interval`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalRow<'a> {
    /// Which second of the step, from 0.
    pub second: u32,
    /// The client, from 0.
    pub client: u32,
    /// The kind of operation.
    pub kind: &'a str,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed for good.
    pub failed: u64,
    /// Attempts beyond the first.
    pub retried: u64,
    /// Rows inserted, changed, deleted or read.
    pub rows: u64,
    /// The longest service time, in nanoseconds; 0 without one.
    pub service_ns_max: u64,
    /// The longest response time, in nanoseconds; 0 without one.
    pub response_ns_max: u64,
}

/// One row of `counters.parquet` while it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterRow<'a> {
    /// Which second of the step it belongs to.
    pub second: u32,
    /// When it was read, on the step's clock.
    pub at_ns: i64,
    /// The counter's name.
    pub name: &'a str,
    /// Its value.
    pub value: f64,
    /// It only grows.
    pub cumulative: bool,
}

/// A counter of the engine at one moment of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterSample {
    /// Which second of the step it belongs to.
    pub second: u32,
    /// When it was read, on the step's clock.
    pub at_ns: i64,
    /// The counter.
    pub counter: Counter,
}

fn text<'a>(path: &Path, bytes: &'a parquet::data_type::ByteArray) -> Result<&'a str, RecordError> {
    bytes
        .as_utf8()
        .map_err(|error| RecordError::damaged(path, error.to_string()))
}

/// The writer writes nothing negative.
fn unsigned32(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// The writer writes nothing negative.
fn unsigned64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
