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
use crate::{Counter, Interval, RecordError, Step, checksum, json};

/// A step of a record. A file is compared with its checksum before it is read.
#[derive(Clone, Debug)]
pub struct StepReader {
    path: PathBuf,
    number: u32,
    step: Step,
    partial: bool,
}

impl StepReader {
    pub(crate) fn open(path: PathBuf, number: u32) -> Result<Self, RecordError> {
        let step = json::read(&path.join(STEP_FILE))?;
        Ok(Self {
            path,
            number,
            step,
            partial: false,
        })
    }

    /// A step whose writer ended before it did.
    pub(crate) fn partial(path: PathBuf, number: u32, name: String) -> Self {
        // Whose end it was is not known here: of a cell in a process of its own, that crashed with its engine, or assay.
        let reasons = vec![
            "it was never finished: the process that ran it crashed or was killed, or could not write"
                .to_owned(),
        ];
        Self {
            path,
            number,
            step: Step {
                name,
                reasons,
                ..Step::default()
            },
            partial: true,
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

    /// `step.json`; of a step that was never finished only the name is known, and its status is incomplete.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// It was never finished, and nothing of what it measured can be read.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Opens a table if it is what was written. `None`: there is none, since the step was never finished.
    fn table(&self, name: &str) -> Result<Option<TableReader>, RecordError> {
        self.verified(name)?
            .map(|path| TableReader::open(&path))
            .transpose()
    }

    fn verified(&self, name: &str) -> Result<Option<PathBuf>, RecordError> {
        if self.partial {
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

    /// The rows of `intervals.parquet` in the order in which they were written.
    ///
    /// # Errors
    /// The file is missing or damaged; also each item may say so.
    pub fn intervals(&self) -> Result<Intervals, RecordError> {
        let mut table = self.table(INTERVALS_FILE)?;
        if let Some(table) = &mut table {
            table.select(&interval_columns())?;
        }
        Ok(Intervals {
            path: self.path.join(INTERVALS_FILE),
            table,
            rows: Vec::new().into_iter(),
        })
    }

    /// Shows every row of `intervals.parquet` to `each`, in the order in which they were written. It copies no text, and
    /// so is many times quicker than [`intervals`](Self::intervals).
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn each_interval(&self, mut each: impl FnMut(&IntervalRow<'_>)) -> Result<(), RecordError> {
        let Some(mut table) = self.table(INTERVALS_FILE)? else {
            return Ok(());
        };
        let path = self.path.join(INTERVALS_FILE);
        let wanted: Vec<ColumnSpec> = interval_columns()
            .into_iter()
            .filter(|column| column.name != "retried")
            .collect();
        table.select(&wanted)?;
        while let Some((count, batch)) = table.next_batch()? {
            let Ok(
                [
                    Values::Int32(second),
                    Values::Int32(client),
                    Values::Text(kind),
                    Values::Int64(ok),
                    Values::Int64(failed),
                    Values::Int64(rows),
                    Values::Int64(service),
                    Values::Int64(response),
                ],
            ) = <[Values; 8]>::try_from(batch)
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
        let wanted: Vec<ColumnSpec> = counter_columns()
            .into_iter()
            .filter(|column| column.name != "second")
            .collect();
        table.select(&wanted)?;
        while let Some((count, batch)) = table.next_batch()? {
            let Ok(
                [
                    Values::Int64(at_ns),
                    Values::Text(name),
                    Values::Double(value),
                    Values::Boolean(cumulative),
                ],
            ) = <[Values; 4]>::try_from(batch)
            else {
                unreachable!("a batch has the columns that were selected")
            };
            for row in 0..count {
                each(&CounterRow {
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
            .filter(|column| column.holds == ColumnType::OptionalInt64)
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
                (Some(Values::Int32(seconds)), Some(Values::Int64(at_ns))) => {
                    series.seconds.extend(seconds.into_iter().map(unsigned32));
                    series.at_ns.extend(at_ns);
                }
                _ => unreachable!("a batch has the columns that were selected"),
            }
            for (column, values) in series.columns.iter_mut().zip(batch) {
                let Values::OptionalInt64(values, defined) = values else {
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

    /// The rows of `counters.parquet` in the order in which they were written.
    ///
    /// # Errors
    /// The file is missing or damaged; also each item may say so.
    pub fn counters(&self) -> Result<CounterSamples, RecordError> {
        let mut table = self.table(COUNTERS_FILE)?;
        if let Some(table) = &mut table {
            table.select(&counter_columns())?;
        }
        Ok(CounterSamples {
            path: self.path.join(COUNTERS_FILE),
            table,
            rows: Vec::new().into_iter(),
        })
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

/// One row of `intervals.parquet` while it is read: the fields of [`Interval`] but for attempts.
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
    /// When it was read, on the step's clock.
    pub at_ns: i64,
    /// The counter's name.
    pub name: &'a str,
    /// Its value.
    pub value: f64,
    /// It only grows.
    pub cumulative: bool,
}

/// Reads `intervals.parquet`.
pub struct Intervals {
    path: PathBuf,
    table: Option<TableReader>,
    rows: std::vec::IntoIter<Interval>,
}

impl Iterator for Intervals {
    type Item = Result<Interval, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_row(&mut self.rows, &mut self.table, |rows, batch| {
            interval_rows(&self.path, rows, batch)
        })
    }
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

/// Reads `counters.parquet`.
pub struct CounterSamples {
    path: PathBuf,
    table: Option<TableReader>,
    rows: std::vec::IntoIter<CounterSample>,
}

impl Iterator for CounterSamples {
    type Item = Result<CounterSample, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_row(&mut self.rows, &mut self.table, |rows, batch| {
            counter_rows(&self.path, rows, batch)
        })
    }
}

/// Takes the next row of a batch, and the next batch when there is none.
fn next_row<T>(
    rows: &mut std::vec::IntoIter<T>,
    table: &mut Option<TableReader>,
    decode: impl FnOnce(usize, Vec<Values>) -> Result<Vec<T>, RecordError>,
) -> Option<Result<T, RecordError>> {
    if let Some(row) = rows.next() {
        return Some(Ok(row));
    }
    let batch = match table.as_mut()?.next_batch() {
        Ok(batch) => batch.map(|(count, values)| decode(count, values)),
        Err(error) => Some(Err(error)),
    };
    match batch {
        Some(Ok(next)) => {
            *rows = next.into_iter();
            rows.next().map(Ok)
        }
        // After an error nothing more can be trusted.
        Some(Err(error)) => {
            *table = None;
            Some(Err(error))
        }
        None => None,
    }
}

fn interval_rows(
    path: &Path,
    count: usize,
    batch: Vec<Values>,
) -> Result<Vec<Interval>, RecordError> {
    let Ok(
        [
            Values::Int32(second),
            Values::Int32(client),
            Values::Text(kind),
            Values::Int64(ok),
            Values::Int64(failed),
            Values::Int64(retried),
            Values::Int64(rows),
            Values::Int64(service),
            Values::Int64(response),
        ],
    ) = <[Values; 9]>::try_from(batch)
    else {
        unreachable!("a batch has the columns that were selected")
    };
    (0..count)
        .map(|row| {
            Ok(Interval {
                second: unsigned32(second[row]),
                client: unsigned32(client[row]),
                kind: text(path, &kind[row])?.to_owned(),
                ok: unsigned64(ok[row]),
                failed: unsigned64(failed[row]),
                retried: unsigned64(retried[row]),
                rows: unsigned64(rows[row]),
                service_ns_max: unsigned64(service[row]),
                response_ns_max: unsigned64(response[row]),
            })
        })
        .collect()
}

fn counter_rows(
    path: &Path,
    count: usize,
    batch: Vec<Values>,
) -> Result<Vec<CounterSample>, RecordError> {
    let Ok(
        [
            Values::Int32(second),
            Values::Int64(at_ns),
            Values::Text(name),
            Values::Double(value),
            Values::Boolean(cumulative),
        ],
    ) = <[Values; 5]>::try_from(batch)
    else {
        unreachable!("a batch has the columns that were selected")
    };
    (0..count)
        .map(|row| {
            Ok(CounterSample {
                second: unsigned32(second[row]),
                at_ns: at_ns[row],
                counter: Counter {
                    name: text(path, &name[row])?.to_owned(),
                    value: value[row],
                    cumulative: cumulative[row],
                },
            })
        })
        .collect()
}

fn text<'a>(path: &Path, bytes: &'a parquet::data_type::ByteArray) -> Result<&'a str, RecordError> {
    bytes
        .as_utf8()
        .map_err(|error| RecordError::damaged(path, error.to_string()))
}

/// The writer writes nothing negative.
fn unsigned32(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// The writer writes nothing negative.
fn unsigned64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
