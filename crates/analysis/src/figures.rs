//! The figures of runs, by the names of the field. All are computed from the record alone.

use std::collections::{BTreeMap, BTreeSet};

use record::{CellKey, Role, StatementPlan, Status, StepKind, Warning};
use serde::Serialize;
use words::WaitView;

use crate::step_figures;
use crate::{
    Lag, ProfiledStep, Quality, Remark, Settings, SettleWork, Size, SlaHistory, StepEvents,
};

/// All figures of one or several runs, in the order of their plans.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// One row for each step of each cell that was begun, settle steps included.
    pub rows: Vec<Row>,
    /// Steps of the plan that the record lacks: rows without figures.
    pub missing: Vec<Row>,
    /// Damaged parts of the record, and what to do about them.
    pub damages: Vec<String>,
    /// Cells that did not end as planned or never began, or that lack a step.
    pub unfinished: Vec<UnfinishedCell>,
    /// The cells that were started, for the order in which they ran.
    pub begun: Vec<StartedCell>,
    /// The differences between the targets of each run.
    pub settings: Settings,
    /// The steps of profiled cells, whose figures are not among `rows`.
    #[serde(skip)]
    pub profiled: Vec<ProfiledStep>,
}

/// A cell without its full set of steps.
#[derive(Clone, Debug, Serialize)]
pub struct UnfinishedCell {
    /// The index of the run, from 0.
    pub run: usize,
    /// The cell.
    #[serde(flatten)]
    pub cell: CellKey,
    /// Its status; `None`: it was never started.
    pub status: Option<Status>,
    /// The causes, outermost first.
    pub causes: Vec<String>,
}

/// The start of a cell's measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StartedCell {
    /// The index of the run, from 0.
    pub run: usize,
    /// The cell.
    #[serde(flatten)]
    pub cell: CellKey,
    /// The invocation of the run, from 1.
    pub invocation: u32,
    /// The number of the machine among those of all runs, from 0.
    pub machine: usize,
    /// The time at which it began, in nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
}

/// The part of a step that one load rank made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankFigures {
    /// The rank, from 1: rank 0 makes no load.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Clients whose connections it made.
    pub clients: u32,
    /// Rows inserted, changed, deleted or read by them.
    pub rows: u64,
    /// The shortest time of a query that does nothing, before the first step.
    pub round_trip_us: f64,
    /// The time since its start minus that of rank 0, in microseconds.
    pub clock_offset_us: f64,
    /// The largest possible error of the offset, and so of the rank's seconds.
    pub clock_uncertainty_us: f64,
    /// The change of the offset over the step.
    pub clock_drift_us: f64,
    /// The longest time that its reports waited for rank 0.
    pub report_delay_us_max: f64,
}

impl RankFigures {
    /// Returns the figures of a rank in a step.
    pub(crate) fn new(load: &record::RankLoad) -> Self {
        Self {
            rank: load.rank,
            host: load.host.clone(),
            clients: load.clients,
            rows: load.rows,
            round_trip_us: load.round_trip_ns as f64 / 1e3,
            clock_offset_us: load.clock_offset_ns as f64 / 1e3,
            clock_uncertainty_us: load.clock_uncertainty_ns as f64 / 1e3,
            clock_drift_us: load.clock_drift_ns as f64 / 1e3,
            report_delay_us_max: load.report_delay_ns_max as f64 / 1e3,
        }
    }
}

/// A host of load ranks in a step, other than the server's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClientHostFigures {
    /// Its name, with its first rank if several hosts have this name.
    pub host: String,
    /// Its load ranks.
    pub ranks: Vec<u32>,
    /// The metrics of [`words::metric::CLIENT_HOST`] and [`words::metric::NETWORK`], of this host,
    /// per operation of all ranks. `None`: not applicable.
    pub metrics: BTreeMap<&'static str, Option<f64>>,
}

/// The figures of one step of one cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The index of the run, from 0.
    pub run: usize,
    /// The cell.
    #[serde(flatten)]
    pub cell: CellKey,
    /// The build's name.
    pub build: String,
    /// The config's name.
    pub config: String,
    /// The engine's name.
    pub engine: String,
    /// The engine's version, as it reports it.
    pub engine_version: String,
    /// The workload.
    pub workload: String,
    /// The step's name.
    pub step: String,
    /// The kind of step.
    pub kind: StepKind,
    /// Its main kind of operation: `insert`, `get`.
    pub main_op: Option<String>,
    /// Queries in one such operation, if queries are counted: rates and costs are per query.
    pub queries_per_event: Option<f64>,
    /// The benchmark's group that shows it.
    pub group: Option<String>,
    /// Tables show it: warm-ups and preparations are not reported.
    pub reported: bool,
    /// Its status.
    pub status: Status,
    /// Its length.
    pub seconds: f64,
    /// Its figures are valid.
    pub valid: bool,
    /// The reasons for which they are not valid.
    pub reasons: Vec<String>,
    /// Its record is damaged: nothing that was measured can be read.
    pub damaged: bool,
    /// The figures of each kind of operation.
    pub ops: BTreeMap<String, OpFigures>,
    /// The metrics of [`words::METRICS`] by their names. `None`: not applicable.
    pub metrics: BTreeMap<&'static str, Option<f64>>,
    /// The activity of its log-structured merge tree; `None` where the engine has none.
    pub lsm: Option<Lsm>,
    /// The requested rate and the achieved rate: of writes, or of the step's main operation;
    /// `None` without a rate.
    pub sla: Option<Sla>,
    /// The lag of its replicas; `None` without replicas.
    pub lag: Option<Lag>,
    /// The differences between the clients' ends; `None` with one client, and in steps of given
    /// length.
    pub fairness: Option<Fairness>,
    /// The parts of the load ranks; empty where one process made all load.
    pub ranks: Vec<RankFigures>,
    /// The hosts of load ranks, without the server's.
    pub client_hosts: Vec<ClientHostFigures>,
    /// The states of the load's sessions and of the engine's threads, in each view that applies.
    /// Empty in a step so short that nobody looked.
    pub waits: Vec<Waits>,
    /// The plans of the workload's statements after the step. Empty from engines without plans.
    pub plans: Vec<StatementPlan>,
    /// The sizes of tables and indexes after the step. Empty from engines that tell none.
    pub sizes: Vec<Size>,
    /// The events of the engine's log during the step; `None` if Assay reads no such log.
    pub events: Option<StepEvents>,
    /// The evenness of its throughput; `None` where nothing is counted second by second, and in
    /// steps of less than a second.
    pub quality: Option<Quality>,
    /// The work of settling the engine; `None` if it was not settled.
    pub settled: Option<SettleWork>,
    /// The engine's counters: differences of cumulative ones, final values of gauges.
    pub counters: BTreeMap<String, f64>,
    /// The names of counters of work: more for the same load means that the engine works
    /// differently.
    #[serde(skip)]
    pub work_counters: Vec<String>,
    /// The latency of an fsync in the data directory before anything ran there, in microseconds:
    /// the median at the start of the invocation. `None`: not measured, or others started the
    /// server, whose files may be elsewhere.
    pub fsync_us: Option<f64>,
    /// The limits on the size of reads of the data's disk; `None`: not known. Left out of JSON.
    #[serde(skip)]
    pub read_limits: Option<ReadLimits>,
    /// The sum of each column of `host.parquet` over all seconds, which is the growth of a
    /// cumulative one. Left out of JSON.
    #[serde(skip)]
    pub host_sums: BTreeMap<String, f64>,
    /// Every second, over all clients. Left out of JSON: it is long, and the record has it as
    /// Parquet.
    #[serde(skip)]
    pub series: Series,
    /// Warnings that were recorded while it ran.
    pub warnings: Vec<Warning>,
    /// Remarks that follow from its figures.
    pub remarks: Vec<Remark>,
}

/// The limits on the size of reads of the data's disk, in KB.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadLimits {
    /// The largest request that the disk takes.
    pub max_sectors_kb: f64,
    /// The size of the kernel's read-ahead for a sequential reader.
    pub read_ahead_kb: f64,
    /// The setting of compaction's read-ahead, and its size; `None` if compaction does not rely on
    /// the kernel's.
    pub compaction: Option<(String, f64)>,
}

impl Row {
    /// Returns the states in a view; `None` if it does not apply.
    pub fn waits(&self, view: WaitView) -> Option<&Waits> {
        self.waits.iter().find(|it| it.view == view)
    }

    /// Returns one of [`words::Metric::all`]; `None`: not applicable.
    pub fn metric(&self, name: &str) -> Option<f64> {
        debug_assert!(words::Metric::named(name).is_some(), "{name} is no metric");
        match self.metrics.get(name) {
            Some(value) => *value,
            None => step_figures::figure(self, name),
        }
    }
}

/// One kind of operation in one step, over all clients.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OpFigures {
    /// Operations that succeeded.
    pub count: u64,
    /// Rows they inserted, changed, deleted or read.
    pub rows: u64,
    /// Operations that failed for good.
    pub failed: u64,
    /// Operations that were due but not sent when time was up.
    pub skipped: u64,
    /// Attempts beyond the first.
    pub retried: u64,
    /// `offered = skipped + ok + failed`
    pub offered: u64,
    /// Successes per second of the step.
    pub per_second: f64,
    /// Rows per second of the step.
    pub rows_per_second: f64,
    /// It has a requested rate: only then do response and service time differ.
    pub scheduled: bool,
    /// Failures by class, retried attempts included.
    pub errors: BTreeMap<String, u64>,
    /// Times from sending to the reply.
    pub service_us: Percentiles,
    /// Times from the scheduled moment to the reply.
    pub response_us: Percentiles,
    /// Service times by bucket; the counts sum to `count`.
    pub service_buckets: Buckets,
    /// The same for response times.
    pub response_buckets: Buckets,
    /// Service times as a curve: see [`crate::curve`]. Left out of JSON, which has percentiles.
    #[serde(skip)]
    pub service_curve: Vec<(f64, f64)>,
    /// The same for response times.
    #[serde(skip)]
    pub response_curve: Vec<(f64, f64)>,
}

/// Percentiles of a latency in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 90th.
    pub p90: f64,
    /// 95th.
    pub p95: f64,
    /// 99th.
    pub p99: f64,
    /// 99.9th.
    pub p99_9: f64,
    /// 99.99th.
    pub p99_99: f64,
    /// The largest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
}

impl Percentiles {
    /// Returns all of them in the order of the fields.
    pub fn values(&self) -> [f64; 8] {
        [self.p50, self.p90, self.p95, self.p99, self.p99_9, self.p99_99, self.max, self.mean]
    }
}

/// Response-time buckets: upper bounds 256us 1ms 4ms 16ms 64ms 256ms 1s 4s 16s and above.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Buckets {
    /// Operations in each; ten buckets.
    pub counts: [u64; 10],
    /// The largest, in seconds.
    pub max_seconds: f64,
}

/// A requested rate, and whether it was reached.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sla {
    /// The kind of operation that has the rate: `insert`, `put`, `event`.
    pub kind: String,
    /// The target: rows, keys or events per second over all clients.
    pub target: f64,
    /// Rows inserted, keys put or events completed per second, over all clients.
    pub achieved: f64,
    /// `achieved >= 0.95 * target` (`docs/metrics.md`).
    pub met: bool,
    /// The same second by second; `None` in steps of less than a second, and where operations are
    /// too rare for seconds to say anything.
    pub history: Option<SlaHistory>,
}

/// The activity of a log-structured merge tree in a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lsm {
    /// The number of times that writes were delayed or stopped, by RocksDB's reason:
    /// `memtable-limit-stops`. `total-delays` and `total-stops` are the sums of
    /// `l0-file-count-limit`, `memtable-limit` and `pending-compaction-bytes`. The others
    /// are counted within these, or do not come from the tree.
    pub stalls: BTreeMap<String, f64>,
    /// The seconds in which writes were held up, by reason. Those of each second are divided among
    /// the reasons that counted in it, delays and stops together, in proportion to their
    /// counts; `unknown` has the seconds without a reason.
    pub stall_seconds: BTreeMap<String, f64>,
    /// The levels at the end of the step, from the first on. Levels that were never used may be
    /// missing.
    pub levels: Vec<Level>,
    /// The step settles the engine itself, which pays the debt that it left.
    pub settled: bool,
    /// Metrics more than a twentieth of which may be the library's rounding.
    pub coarse: BTreeSet<&'static str>,
}

/// One level of a tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Level {
    /// Its number, from 0.
    pub number: u32,
    /// Its files; `None`: not reported.
    pub files: Option<f64>,
    /// Their bytes.
    pub bytes: Option<f64>,
    /// Its need of compaction: it is compacted from 1 on.
    pub score: Option<f64>,
    /// Bytes that compactions into it read in the step.
    pub read_bytes: Option<f64>,
    /// Bytes that flushes and compactions wrote to it in the step.
    pub written_bytes: Option<f64>,
    /// The rounding error of either.
    pub rounding_bytes: f64,
    /// Time of these flushes and compactions, over all threads.
    pub compaction_seconds: Option<f64>,
    /// The number of these flushes and compactions.
    pub compaction_count: Option<f64>,
}

/// The states of the load's sessions, or of the engine's threads, in one view.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    /// The view.
    pub view: WaitView,
    /// The number of samples of all sessions or threads; 0 if the engine measures times instead.
    pub samples: f64,
    /// The states, the most frequent first.
    pub states: Vec<SessionState>,
}

/// A state of sessions or threads: an event that they wait for, or `running`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionState {
    /// Its name in the view: `IO:WALSync`.
    pub name: String,
    /// The number of sessions or threads that were seen in the state, over all samples; `None` if
    /// its time was measured.
    pub sightings: Option<f64>,
    /// The share of the connections' time, in percent, or of one thread's time for background
    /// threads. Idle sessions are not counted, so shares of the connections' time add up to
    /// less than 100.
    pub percent: f64,
    /// The time of all sessions or threads in the state per operation, in microseconds; `None` in
    /// steps that have no operations.
    pub us_per_op: Option<f64>,
}

/// The differences between the ends of a step's clients.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Fairness {
    /// The time at which the first client finished its work, in seconds.
    pub fastest_seconds: f64,
    /// The number of that client, from 0.
    pub fastest_client: u32,
    /// The time at which the last client finished, in seconds.
    pub slowest_seconds: f64,
    /// The number of that client, from 0.
    pub slowest_client: u32,
    /// The difference in seconds.
    pub abs_seconds: f64,
    /// The difference in percent of the fastest.
    pub pct: f64,
    /// The time at which each client finished its work, in the order of their numbers.
    pub clients: Vec<ClientEnd>,
}

/// The time at which a client finished its work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClientEnd {
    /// Its number, from 0.
    pub client: u32,
    /// Seconds since the common start.
    pub seconds: f64,
}

/// The seconds of a step, over all clients. Every vector is as long as the step has seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// The series of each kind of operation.
    pub ops: BTreeMap<String, OpSeries>,
    /// The series of each column of `host.parquet`: cumulative ones as differences per second,
    /// gauges as they are. `None`: not applicable or not sampled.
    pub host: BTreeMap<String, Vec<Option<f64>>>,
    /// The series of each client host, in the order of [`Row::client_hosts`].
    pub client_hosts: Vec<BTreeMap<String, Vec<Option<f64>>>>,
    /// The series of each counter of the engine.
    pub engine: BTreeMap<String, CounterSeries>,
}

/// One counter of the engine, second by second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CounterSeries {
    /// The counter only grows: its values are its growth per second. The values of a gauge are its
    /// readings.
    pub cumulative: bool,
    /// `None`: not sampled.
    pub values: Vec<Option<f64>>,
    /// Its role, if known.
    #[serde(skip)]
    pub role: Option<Role>,
}

/// One kind of operation, second by second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OpSeries {
    /// Rows inserted, changed, deleted or read in each second, over all clients.
    pub rows: Vec<u64>,
    /// Operations that succeeded in each second.
    pub ok: Vec<u64>,
    /// Operations that failed in each second.
    pub failed: Vec<u64>,
    /// The longest service time that ended in each second, in microseconds.
    pub service_us_max: Vec<f64>,
    /// The longest response time that ended in each second, in microseconds.
    pub response_us_max: Vec<f64>,
    /// Operations that succeeded in each second, by client.
    pub ok_by_client: Vec<Vec<u64>>,
    /// Their rows, by client.
    pub rows_by_client: Vec<Vec<u64>>,
}
