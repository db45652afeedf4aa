//! The contents of a file, in the terms of the record.

use std::collections::BTreeMap;

use record::{Counter, OpRole, Ops, StepKind};

use crate::text::{Doubt, Line, Refusal};

/// Reads the lines of one format.
pub(crate) trait FormatReader {
    /// Takes the next line.
    ///
    /// # Errors
    /// The line contradicts the format.
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal>;

    /// Ends the file.
    ///
    /// # Errors
    /// The file has nothing of its format, or contradicts itself.
    fn end(self: Box<Self>) -> Result<FileContents, Refusal>;
}

/// The contents of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileContents {
    /// Facts about what was measured.
    pub facts: Facts,
    /// The results; empty in files with samples of the host.
    pub results: Vec<StepResult>,
    /// Samples of the host.
    pub host: Option<HostSamples>,
    /// Events that were counted over the whole step, such as those of `perf stat`.
    pub events: Vec<Counter>,
    /// Doubts about the file.
    pub doubts: Vec<Doubt>,
}

/// Facts that a file has about what was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The tool with its version.
    pub tool: Option<String>,
    /// The engine's name.
    pub engine: Option<String>,
    /// The engine's version.
    pub engine_version: Option<String>,
    /// The number of processors by the tool that made the load.
    pub cpus: Option<u32>,
    /// The number of processors by a tool that samples the host, which may count threads that are
    /// off.
    pub sampled_cpus: Option<u32>,
    /// The number of clients or threads.
    pub clients: Option<u32>,
    /// The rows of all tables.
    pub rows: Option<u64>,
    /// The rows of one table.
    pub table_rows: Option<u64>,
    /// The warm-up before the step in nanoseconds, which the results leave out.
    pub warm_up_ns: u64,
    /// The date, such as `2025-03-17`.
    pub date: Option<String>,
    /// The percentile that the tool prints, with its number: `95`.
    pub percentile: Option<String>,
}

/// The result of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepResult {
    /// The name of the step, if the file has it.
    pub step: Option<String>,
    /// The name of the target, if the file has it.
    pub target: Option<String>,
    /// The number of clients, if the file has it for this result only.
    pub clients: Option<u32>,
    /// The kind of step.
    pub kind: StepKind,
    /// The kind of operation whose rate is the throughput.
    pub main: String,
    /// The meaning of that kind.
    pub role: OpRole,
    /// The length in nanoseconds; 0 if unknown.
    pub elapsed_ns: u64,
    /// Totals by kind of operation.
    pub ops: BTreeMap<String, Ops>,
    /// Queries in one operation.
    pub queries_per_event: Option<f64>,
    /// Rows in all tables before.
    pub rows_before: u64,
    /// Rows of one insert.
    pub rows_per_commit: Option<u32>,
    /// Metrics as they are in the file.
    pub metrics: BTreeMap<String, f64>,
    /// Times in microseconds by kind and statistic, as they are in the file.
    pub times_us: BTreeMap<String, BTreeMap<String, f64>>,
    /// Operations by kind in buckets of response times.
    pub buckets: BTreeMap<String, [u64; 10]>,
    /// The number of operations of each time in nanoseconds, by tag: `event.service`.
    pub distributions: BTreeMap<String, BTreeMap<u64, u64>>,
    /// The seconds of each client.
    pub seconds: Vec<Second>,
    /// Counters at the end of the step.
    pub counters: Vec<Counter>,
    /// The reason why the step failed.
    pub failure: Option<String>,
    /// The line with the result.
    pub line: u64,
    /// The engine's version, if the result has its own.
    pub engine_version: Option<String>,
    /// The throughput as the tool prints it.
    pub printed_rate: Option<f64>,
    /// The value of a table whose files are not there.
    pub is_of_table: bool,
    /// A part of the operations of a step: parts add up.
    pub is_part: bool,
    /// The second since 1970 from which its seconds count.
    pub begins_unix_s: Option<i64>,
}

/// One second of one client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// The second, from 0.
    pub second: u32,
    /// The client, from 0.
    pub client: u32,
    /// The kind of operation.
    pub kind: String,
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Attempts beyond the first.
    pub retried: u64,
    /// Rows.
    pub rows: u64,
    /// The longest time from sending to the reply, in nanoseconds.
    pub service_ns_max: u64,
    /// The longest time from the scheduled moment to the reply, in nanoseconds.
    pub response_ns_max: u64,
}

/// Samples of the host. Each covers the time since the one before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSamples {
    /// The time between samples in seconds; `None`: not in the file.
    pub interval_s: Option<f64>,
    /// The samples.
    pub samples: Vec<HostSample>,
    /// Samples as the author's scripts count them: lines since boot and header rows are samples.
    pub published: PublishedSamples,
}

/// One sample, as rates per second. `None`: not in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostSample {
    /// Context switches.
    pub switches: Option<f64>,
    /// Shares of all processors in percent.
    pub cpu: Option<CpuShares>,
    /// The disk of the database.
    pub disk: Option<DiskRates>,
}

/// Shares of all processors in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuShares {
    /// In user mode, at low priority too.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// Waiting for disks.
    pub iowait: f64,
    /// Taken by a hypervisor.
    pub steal: f64,
}

/// The rates of a disk per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskRates {
    /// Reads.
    pub reads: f64,
    /// KiB read.
    pub read_kb: f64,
    /// Writes.
    pub writes: f64,
    /// KiB written.
    pub written_kb: f64,
    /// The mean time of a read in milliseconds.
    pub read_ms: Option<f64>,
    /// The mean time of a write in milliseconds.
    pub write_ms: Option<f64>,
    /// The mean number of requests at a time.
    pub queue: Option<f64>,
    /// The share of time with requests, in percent.
    pub busy: Option<f64>,
}

/// Sums over samples as the author's scripts count them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PublishedSamples {
    /// The number of samples.
    pub count: u64,
    /// The sum of context switches per second.
    pub switches: f64,
    /// The sum of shares in user mode and in the kernel.
    pub busy: f64,
    /// The sum of reads per second.
    pub reads: f64,
    /// The sum of KiB read per second.
    pub read_kb: f64,
    /// The sum of writes per second.
    pub writes: f64,
    /// The sum of KiB written per second.
    pub written_kb: f64,
}

impl StepResult {
    /// Returns the result of a step that does one kind of operation.
    pub(crate) fn of(kind: StepKind, main: &str, role: OpRole) -> Self {
        Self { kind, main: main.to_owned(), role, ..Self::default() }
    }

    /// Adds successes of a kind of operation, with the rows of each.
    pub(crate) fn count_ok(&mut self, kind: &str, role: OpRole, ok: u64, rows: u64) {
        let ops = self.ops.entry(kind.to_owned()).or_insert_with(|| Ops::of_role(role));
        ops.ok = ops.ok.saturating_add(ok);
        ops.rows = ops.rows.saturating_add(rows);
        ops.offered = ops.ok.saturating_add(ops.failed).saturating_add(ops.skipped);
    }

    /// Sets a statistic of the times of a kind of operation.
    pub(crate) fn set_time_us(&mut self, kind: &str, statistic: &str, us: f64) {
        let times = self.times_us.entry(kind.to_owned()).or_default();
        times.insert(statistic.to_owned(), us);
    }
}
