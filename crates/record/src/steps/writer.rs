//! Writes the record of a step while it is measured.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use words::{Stacks, WorkGraph, WorkRole, counted};

use super::columns::{
    CUMULATIVE_NOTE, counter_columns, integer, interval_columns, profile_columns, sample_columns,
};
use super::turns::{TurnRow, turn_columns};
use super::work::{self, call_columns, function_columns};
use crate::files::checksum::ChecksummedFile;
use crate::files::{
    ColumnSpec, ColumnType, Folder, LatencyLogWriter, TableWriter, Value, json, latency_histogram,
};
use crate::layout::{
    COUNTERS_FILE, INTERVALS_FILE, LATENCY_FILE, LATENCY_TOTAL_FILE, PARTIAL, PROFILE_FILE,
    STATUS_FILE, STEP_FILE, TURNS_FILE, WORK_CALLS_FILE, WORK_FUNCTIONS_FILE, host_file,
    step_file_name, step_name,
};
use crate::{CellDir, Counter, IntervalRow, RecordError, Step, StepFile};

/// The maximum size of `engine_status.txt`.
const STATUS_BYTES_MAX: usize = 1 << 20;

/// A column of `host.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostColumn<'a> {
    /// The name of the column, with its unit last: `cpu_user_ns`.
    pub name: &'a str,
    /// The counter only grows, so that differences are meaningful.
    pub cumulative: bool,
}

/// The record of a running step. The name of its directory ends in `.partial` until
/// [`finish`](Self::finish). Memory does not grow with the length of the step.
pub struct StepWriter {
    cell: CellDir,
    /// The number of the step within its cell, and its name.
    number: u32,
    name: String,
    /// The name of the directory of the finished step.
    finished: String,
    /// The directory until then.
    folder: Folder,
    host_table: HostTable,
    intervals: TableWriter<ChecksummedFile>,
    /// The samples of each host, by its first rank.
    hosts: BTreeMap<u32, TableWriter<ChecksummedFile>>,
    counters: TableWriter<ChecksummedFile>,
    latency: LatencyLogWriter,
    latency_total: LatencyLogWriter,
    totals: BTreeMap<String, Histogram<u64>>,
    /// The files that were written at once.
    others: Vec<StepFile>,
}

/// The form of the tables with samples of hosts.
struct HostTable {
    columns: Vec<ColumnSpec>,
    /// The list of the columns that only grow.
    notes: [(String, String); 1],
}

impl HostTable {
    fn new(sampled: &[HostColumn<'_>]) -> Self {
        let mut columns = sample_columns().to_vec();
        let mut cumulative = Vec::new();
        for column in sampled {
            columns.push(ColumnSpec::optional(column.name, ColumnType::Integer));
            if column.cumulative {
                cumulative.push(column.name);
            }
        }

        let note = serde_json::Value::from(cumulative).to_string();
        Self { columns, notes: [(CUMULATIVE_NOTE.to_owned(), note)] }
    }

    fn create(
        &self,
        folder: &Folder,
        name: &str,
    ) -> Result<TableWriter<ChecksummedFile>, RecordError> {
        create_table(folder, name, &self.columns, &self.notes)
    }
}

impl StepWriter {
    pub(crate) fn create(
        cell: CellDir,
        (number, name): (u32, &str),
        started_unix_ns: u64,
        host_columns: &[HostColumn<'_>],
    ) -> Result<Self, RecordError> {
        let finished = step_name(number, name);
        let folder = cell.steps().create_folder(&format!("{finished}{PARTIAL}"))?;

        let latency_log = |name: &str| -> Result<LatencyLogWriter, RecordError> {
            Ok(LatencyLogWriter::new(folder.create(name)?, started_unix_ns))
        };

        let host_table = HostTable::new(host_columns);
        Ok(Self {
            intervals: create_table(&folder, INTERVALS_FILE, &interval_columns(), &[])?,
            hosts: BTreeMap::from([(0, host_table.create(&folder, &host_file(0))?)]),
            counters: create_table(&folder, COUNTERS_FILE, &counter_columns(), &[])?,
            latency: latency_log(LATENCY_FILE)?,
            latency_total: latency_log(LATENCY_TOTAL_FILE)?,
            totals: BTreeMap::new(),
            others: Vec::new(),
            host_table,
            cell,
            number,
            name: name.to_owned(),
            finished,
            folder,
        })
    }

    /// Returns the directory while the step is written.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sets the start of the step's clock, for the headers of the latency logs. Without it, or
    /// after the first latency, the header has the time at which the writer was created.
    pub fn started(&mut self, started_unix_ns: u64) {
        self.latency.started(started_unix_ns);
        self.latency_total.started(started_unix_ns);
    }

    /// Adds rows to `intervals.parquet`. Readers get them in the same order.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn intervals(&mut self, rows: &[IntervalRow<'_>]) -> Result<(), RecordError> {
        for row in rows {
            self.intervals
                .push([
                    Value::Integer(row.second.into()),
                    Value::Integer(row.client.into()),
                    Value::Text(row.kind),
                    integer(row.ok),
                    integer(row.failed),
                    integer(row.retried),
                    integer(row.rows),
                    integer(row.service_ns_max),
                    integer(row.response_ns_max),
                ])
                .map_err(RecordError::io("write", &self.path().join(INTERVALS_FILE)))?;
        }
        Ok(())
    }

    /// Adds the latencies of one second to `latency.hlog`, in nanoseconds. `tag` has the kinds of
    /// operation and latency: `insert.service`, `insert.response` (only with a schedule) or
    /// `insert.failed`. A second may be left out, or come more than once. `latency_total.hlog`
    /// gets the sum when the step is finished.
    ///
    /// # Errors
    /// The file cannot be written, the tag has a comma, a space or a line end, or a value is above
    /// [`LATENCY_NS_MAX`](words::LATENCY_NS_MAX).
    pub fn latency(
        &mut self,
        second: u32,
        tag: &str,
        histogram: &Histogram<u64>,
    ) -> Result<(), RecordError> {
        self.latency.write(second, Duration::from_secs(1), tag, histogram)?;

        // `entry` would copy the tag each time.
        let total = match self.totals.get_mut(tag) {
            Some(total) => total,
            None => self.totals.entry(tag.to_owned()).or_insert_with(latency_histogram),
        };

        total.add(histogram).map_err(|error| {
            let path = self.path().join(LATENCY_FILE);
            RecordError::unrecordable(&path, format!("a histogram ({error})"))
        })
    }

    /// Adds a row to `host.parquet`, or to the table of a client host if its first `rank` is not 0:
    /// `at_ns` on the step's clock, and one value for each column that the step started with;
    /// `None` if a value is unavailable.
    ///
    /// # Errors
    /// The file cannot be written, or there are more or fewer values than columns.
    pub fn host(
        &mut self,
        rank: u32,
        second: u32,
        at_ns: i64,
        values: &[Option<i64>],
    ) -> Result<(), RecordError> {
        let name = host_file(rank);
        let path = self.path().join(&name);
        let sampled = self.host_table.columns.len() - sample_columns().len();
        if values.len() != sampled {
            let count = counted(values.len(), "value");
            let columns = counted(sampled, "column");
            let what = format!("{count} of the host in {columns}");
            return Err(RecordError::unrecordable(&path, what));
        }

        let table = match self.hosts.entry(rank) {
            Entry::Occupied(table) => table.into_mut(),
            Entry::Vacant(place) => place.insert(self.host_table.create(&self.folder, &name)?),
        };

        let sample = [Value::Integer(second.into()), Value::Integer(at_ns)];
        let sampled = values.iter().map(|value| value.map_or(Value::Absent, Value::Integer));
        table.push(sample.into_iter().chain(sampled)).map_err(RecordError::io("write", &path))
    }

    /// Adds a sample of the engine's counters to `counters.parquet`; `at_ns` is on the step's
    /// clock.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn counters(
        &mut self,
        second: u32,
        at_ns: i64,
        counters: &[Counter],
    ) -> Result<(), RecordError> {
        for counter in counters {
            self.counters
                .push([
                    Value::Integer(second.into()),
                    Value::Integer(at_ns),
                    Value::Text(&counter.name),
                    Value::Number(counter.value),
                    Value::Boolean(counter.cumulative),
                ])
                .map_err(RecordError::io("write", &self.path().join(COUNTERS_FILE)))?;
        }
        Ok(())
    }

    /// Writes `profile.parquet`: the tree of all stacks, depth first.
    ///
    /// # Errors
    /// The file cannot be written, or there is one already.
    pub fn profile(&mut self, stacks: &Stacks) -> Result<(), RecordError> {
        let path = self.path().join(PROFILE_FILE);
        let mut table = create_table(&self.folder, PROFILE_FILE, &profile_columns(), &[])?;

        for node in stacks.tree() {
            let row = [integer(node.depth as u64), Value::Text(node.frame), integer(node.samples)];
            table.push(row).map_err(RecordError::io("write", &path))?;
        }

        self.others.push(finish(table, &self.folder, PROFILE_FILE)?);
        Ok(())
    }

    /// Writes `work_functions.parquet` and `work_calls.parquet`: the functions that were executed,
    /// by their part in the step, and who called whom.
    ///
    /// # Errors
    /// A file cannot be written, or there is one already.
    pub fn work(&mut self, graphs: &BTreeMap<WorkRole, WorkGraph>) -> Result<(), RecordError> {
        let path = self.path().join(WORK_FUNCTIONS_FILE);
        let mut functions =
            create_table(&self.folder, WORK_FUNCTIONS_FILE, &function_columns(), &[])?;
        work::push_functions(graphs, &mut functions).map_err(RecordError::io("write", &path))?;
        self.others.push(finish(functions, &self.folder, WORK_FUNCTIONS_FILE)?);

        let path = self.path().join(WORK_CALLS_FILE);
        let mut calls = create_table(&self.folder, WORK_CALLS_FILE, &call_columns(), &[])?;
        work::push_calls(graphs, &mut calls).map_err(RecordError::io("write", &path))?;
        self.others.push(finish(calls, &self.folder, WORK_CALLS_FILE)?);
        Ok(())
    }

    /// Writes `turns.parquet`: the turns of the target within the step, in their order.
    ///
    /// # Errors
    /// The file cannot be written, or there is one already.
    pub fn turns(&mut self, turns: &[TurnRow]) -> Result<(), RecordError> {
        let path = self.path().join(TURNS_FILE);
        let mut table = create_table(&self.folder, TURNS_FILE, &turn_columns(), &[])?;

        for turn in turns {
            turn.push_to(&mut table).map_err(RecordError::io("write", &path))?;
        }

        self.others.push(finish(table, &self.folder, TURNS_FILE)?);
        Ok(())
    }

    /// Writes `engine_status.txt`: the engine's own text about its state after the step. A text
    /// above 1 MB is cut, with a note at the cut.
    ///
    /// # Errors
    /// The file cannot be written, or there is one already.
    pub fn engine_status(&mut self, text: &str) -> Result<(), RecordError> {
        let kept = &text[..text.floor_char_boundary(STATUS_BYTES_MAX)];
        let left_out = text.len() - kept.len();
        let note = match left_out {
            0 => String::new(),
            _ => format!("\n[cut by assay: {left_out} more bytes]\n"),
        };

        let path = self.path().join(STATUS_FILE);
        let mut file = ChecksummedFile::new(self.folder.create(STATUS_FILE)?);
        file.write_all(kept.as_bytes())
            .and_then(|()| file.write_all(note.as_bytes()))
            .map_err(RecordError::io("write", &path))?;

        self.others.push(file.finish()?);
        Ok(())
    }

    /// Finishes the record of a step, however it ended, and fills in `step.files`. When this
    /// returns, everything is on disk, and the directory has its final name.
    ///
    /// # Errors
    /// Something cannot be written. The directory then keeps its suffix `.partial`.
    pub fn finish(mut self, step: &Step) -> Result<(), RecordError> {
        for (tag, total) in &self.totals {
            self.latency_total.write(0, Duration::from_nanos(step.elapsed_ns), tag, total)?;
        }

        let mut files = vec![
            finish(self.intervals, &self.folder, INTERVALS_FILE)?,
            finish(self.counters, &self.folder, COUNTERS_FILE)?,
            self.latency.finish()?,
            self.latency_total.finish()?,
        ];
        files.extend(self.others);
        for (rank, table) in self.hosts {
            files.push(finish(table, &self.folder, &host_file(rank))?);
        }

        let cell = self.cell.read()?.key;
        let (number, name) = (self.number, self.name);
        let step = Step { cell, number, name, files, ..step.clone() };
        let listed = json::write(&self.folder, STEP_FILE, &step)?;

        // Listed first, so that every step with its final name is listed, even after a crash.
        self.cell.list_file(StepFile { name: step_file_name(&self.finished), ..listed })?;
        self.cell.steps().rename(&format!("{}{PARTIAL}", self.finished), &self.finished)
    }
}

fn create_table(
    folder: &Folder,
    name: &str,
    columns: &[ColumnSpec],
    notes: &[(String, String)],
) -> Result<TableWriter<ChecksummedFile>, RecordError> {
    let sink = ChecksummedFile::new(folder.create(name)?);
    TableWriter::new(sink, columns, notes)
        .map_err(RecordError::io("write", &folder.path().join(name)))
}

/// Writes the remaining rows of a table, and makes the file durable.
fn finish(
    table: TableWriter<ChecksummedFile>,
    folder: &Folder,
    name: &str,
) -> Result<StepFile, RecordError> {
    let file = table.finish().map_err(RecordError::io("write", &folder.path().join(name)))?;
    file.finish()
}
