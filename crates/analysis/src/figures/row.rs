//! The figures of runs, by the names of the field. All are computed from the record alone.

use std::collections::BTreeMap;

use record::{
    AloneStep, CellKey, HomeRows, KeptDatabase, OpPause, OpRole, StatementPlan, Status,
    StepCommand, StepKind, StepProfile, StepWork, Warning,
};
use serde::Serialize;
use words::{Stacks, WaitView, WorkGraph, WorkRole};

use super::client_hosts::ClientHostFigures;
use super::disk_floor::StepFloor;
use super::fairness::Fairness;
use super::latency::{Buckets, Percentiles};
use super::metrics::Lsm;
use super::operation::MainOperation;
use super::series::Series;
use super::sla::Sla;
use super::swing::Swing;
use super::turns::{HalfBlock, TurnTotals};
use super::waits::Waits;
use crate::figures::{Lag, Looks, Quality, Remark, SettleWork, Size, StepEvents, step_figures};
use crate::settings::Settings;

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
    /// The times at which the results are looked at.
    #[serde(skip)]
    pub looks: Looks,
    /// The smallest relative change that matters, by the plans of the runs: the least of them.
    #[serde(skip)]
    pub effect: Option<f64>,
    /// The design that made the targets of the run; `None` of several runs.
    #[serde(skip)]
    pub design: Option<record::Design>,
    /// The kind of things that take the place of targets.
    #[serde(skip)]
    pub sides: ComparedSides,
    /// The differences between the targets of each run.
    pub settings: Settings,
    /// The steps of cells that measure highest rates, whose figures are not among `rows`.
    #[serde(skip)]
    pub unlimited: Vec<Row>,
    /// The steps of profiled cells, whose figures are not among `rows`.
    #[serde(skip)]
    pub profiled: Vec<ProfiledStep>,
    /// The steps of exact cells, whose figures are not among `rows`.
    #[serde(skip)]
    pub exact: Vec<ExactStep>,
}

impl Figures {
    /// Keeps only these steps. Groups of targets need not have all of them.
    pub fn retain_steps(&mut self, wanted: &[String]) {
        self.rows.retain(|row| wanted.contains(&row.step));
        self.missing.retain(|row| wanted.contains(&row.step));
        self.profiled.retain(|step| wanted.contains(&step.row.step));
        self.exact.retain(|step| wanted.contains(&step.row.step));
    }
}

/// The kind of things that are compared with each other, and named as targets are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComparedSides {
    /// Targets.
    #[default]
    Targets,
    /// Runs of the same targets.
    Runs,
    /// Steps of the same cells.
    Steps,
    /// Variants of the workload.
    Variants,
}

impl ComparedSides {
    /// Returns the noun for one of them.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Targets => "target",
            Self::Runs => "run",
            Self::Steps => "step",
            Self::Variants => "variant",
        }
    }
}

/// A cell without its full set of steps.
#[derive(Clone, Debug, Serialize)]
pub struct UnfinishedCell {
    /// The index of the run, from 0.
    pub run: usize,
    /// The cell.
    #[serde(flatten)]
    pub cell: CellKey,
    /// The status; `None`: it was never started.
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
    /// The database of which its later steps used a copy; `None` if it had its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<CopiedDatabase>,
}

/// A kept database of which a cell used a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopiedDatabase {
    /// The SHA-256 of all that made it: cells with the same one began with the same files.
    pub fingerprint: String,
    /// The run whose cell made it; empty in earlier records.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub made_by: String,
    /// The last step that made it; empty in earlier records.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after_step: String,
    /// Measured steps made it as well.
    pub has_measured_steps: bool,
    /// The cell made it.
    pub made_here: bool,
    /// The target that loads it for the cell's, if that is another.
    pub loaded_by: Option<String>,
    /// The time that a program took to upgrade the copy; `None` if none did.
    pub upgrade_ns: Option<u64>,
    /// The time that the engine took to start on the copy.
    pub open_ns: u64,
}

impl CopiedDatabase {
    /// Returns the facts of a record that readers of figures need.
    pub(super) fn of(record: &KeptDatabase) -> Self {
        Self {
            fingerprint: record.fingerprint.clone(),
            made_by: record.made_by.clone(),
            after_step: record.after_step.clone(),
            has_measured_steps: record.has_measured_steps,
            made_here: record.made_here,
            loaded_by: record.loaded_by.clone(),
            upgrade_ns: record.upgrade_ns,
            open_ns: record.open_ns,
        }
    }
}

/// The part of a step that one load rank made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankFigures {
    /// The rank, from 1: rank 0 makes no load.
    pub rank: u32,
    /// The host.
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
    /// The main kind of operation: `insert`, `get`.
    pub main_op: Option<String>,
    /// The recorded roles of its kinds of operation, also of the main kind.
    #[serde(skip)]
    pub roles: BTreeMap<String, OpRole>,
    /// The kinds of operation that share a requested rate of the main one: itself, and those that its
    /// clients mix with it. Left out of JSON.
    #[serde(skip)]
    pub kinds_of_rate: Vec<String>,
    /// Queries in one such operation, if queries are counted: rates and costs are per query.
    pub queries_per_event: Option<f64>,
    /// The name of its throughput per minute; `None` if its workload names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<String>,
    /// The benchmark's group that shows it.
    pub group: Option<String>,
    /// Tables show it: warm-ups and preparations are not reported.
    pub reported: bool,
    /// The status.
    pub status: Status,
    /// The length.
    pub seconds: f64,
    /// The number of its turns within the step; `None`: it was measured alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The work of the target in its turns; `None` in a step without turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_totals: Option<TurnTotals>,
    /// The work of the target in each half of a block of turns; empty in a step without turns.
    #[serde(skip)]
    pub half_blocks: Vec<HalfBlock>,
    /// The figures are valid.
    pub valid: bool,
    /// The reasons for which they are not valid.
    pub reasons: Vec<String>,
    /// The record is damaged: nothing that was measured can be read.
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
    /// The rows of tables for which its clients work; empty if the workload divides none among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<HomeRows>,
    /// The times for which its clients wait around operations of each kind; empty if they don't wait.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pauses: BTreeMap<String, OpPause>,
    /// The figures of each load rank; empty if one process made all load.
    pub ranks: Vec<RankFigures>,
    /// The hosts of load ranks, without the server's.
    pub client_hosts: Vec<ClientHostFigures>,
    /// The states of the load's sessions and of the engine's threads, in each view that applies.
    /// Empty if the step was too short for a sample.
    pub waits: Vec<Waits>,
    /// The engine's system calls of each kind per operation, by the kernel's names. Empty if they
    /// were not counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub system_calls: BTreeMap<String, f64>,
    /// The plans of the workload's statements after the step. Empty from engines without plans.
    pub plans: Vec<StatementPlan>,
    /// The plan's commands around the step.
    pub commands: Vec<StepCommand>,
    /// The sizes of tables and indexes after the step. Empty if the engine reports none.
    pub sizes: Vec<Size>,
    /// The events of the engine's log during the step; `None` if Assay reads no such log.
    pub events: Option<StepEvents>,
    /// The evenness of its throughput; `None` where nothing is counted second by second, and in
    /// steps of less than a second.
    pub quality: Option<Quality>,
    /// The period of its throughput, and what keeps step with it; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swing: Option<Swing>,
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
    /// The cell measured this step right after the load: the variant that has it in sequence. Left
    /// out of JSON.
    #[serde(skip)]
    pub alone: Option<AloneStep>,
    /// The floor of the data's disk; `None`: not measured. Left out of JSON.
    #[serde(skip)]
    pub floor: Option<StepFloor>,
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
    /// Remarks that follow from its figures. The crate `report` serializes them with their words.
    #[serde(skip)]
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
        self.waits.iter().find(|waits| waits.view == view)
    }

    /// Returns the role of a kind of operation. A record that has no roles has those of its names.
    pub fn role_of(&self, kind: &str) -> OpRole {
        self.roles.get(kind).copied().unwrap_or_else(|| OpRole::of_kind(kind))
    }

    /// Returns the kind of operation that the step is about.
    pub fn main_operation(&self) -> Option<MainOperation<'_>> {
        let kind = self.main_op.as_deref()?;
        Some(MainOperation { kind, role: self.role_of(kind) })
    }

    /// Returns whether a kind of operation has a rate of its own beside reads of keys: that of a writer,
    /// which readers do not share.
    pub fn is_beside_reads(&self, kind: &str) -> bool {
        let main = self.main_operation();
        let is_other = main.is_some_and(|main| main.role.reads_keys() && main.kind != kind);
        is_other && !self.kinds_of_rate.iter().any(|shared| shared == kind)
    }

    /// Returns whether a schedule decides the throughput of the main operation, as long as the engine
    /// keeps up: a requested rate, or the pauses of users.
    pub fn is_scheduled(&self) -> bool {
        let main = self.main_op.as_ref().and_then(|kind| self.ops.get(kind));
        main.is_some_and(|operations| operations.scheduled)
    }

    /// Returns one of [`words::Metric::all`]; `None`: not applicable.
    pub fn metric(&self, name: &str) -> Option<f64> {
        if let Some(value) = self.metrics.get(name) {
            return *value;
        }

        debug_assert!(words::Metric::named(name).is_some(), "{name} is no metric");
        step_figures::figure(self, name)
    }
}

/// Returns whether a count is left out.
fn is_zero(count: &u64) -> bool {
    *count == 0
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
    /// Successes that rolled back, as their workload meant.
    #[serde(skip_serializing_if = "is_zero")]
    pub rolled_back: u64,
    /// `offered = skipped + ok + failed`
    pub offered: u64,
    /// Successes per second of the step.
    pub per_second: f64,
    /// Rows per second of the step.
    pub rows_per_second: f64,
    /// The operation has a requested rate, or clients think before it: only then do response and service
    /// time differ.
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
    /// Service times as a curve: see [`crate::figures::curve`]. Left out of JSON, which has
    /// percentiles.
    #[serde(skip)]
    pub service_curve: Vec<(f64, f64)>,
    /// The same for response times.
    #[serde(skip)]
    pub response_curve: Vec<(f64, f64)>,
}

/// Returns rows inserted or indexed, or queries, per second; `None` in steps that only settle.
pub fn throughput(row: &Row) -> Option<f64> {
    let name = match row.kind {
        StepKind::Load | StepKind::Index => "ips",
        StepKind::Query => "qps",
        StepKind::Settle => return None,
    };
    row.metric(name)
}

/// A step of a profiled cell.
#[derive(Clone, Debug, Serialize)]
pub struct ProfiledStep {
    /// The figures, which the profiler affects.
    #[serde(flatten)]
    pub row: Row,
    /// Facts about the profile.
    pub profile: StepProfile,
    /// The samples.
    #[serde(skip)]
    pub stacks: Stacks,
}

/// A step of an exact cell.
#[derive(Clone, Debug, Serialize)]
pub struct ExactStep {
    /// The figures, whose times mean nothing: counting slows the engine down.
    #[serde(flatten)]
    pub row: Row,
    /// The operations and the instructions that were counted.
    pub work: StepWork,
    /// The functions that were executed, and who called whom.
    #[serde(skip)]
    pub graphs: BTreeMap<WorkRole, WorkGraph>,
}

impl ExactStep {
    /// Returns the reason why the step's work is not known; `None` if it is.
    pub fn missing(&self) -> Option<&str> {
        let not_valid = || self.row.reasons.first().map_or("it is not complete", String::as_str);
        let missing = self.work.missing.as_deref();
        missing.or_else(|| (!self.row.valid || self.work.parts.is_empty()).then(not_valid))
    }
}

/// Returns the name of a run where runs are compared.
pub(crate) fn run_label(run: usize) -> String {
    format!("run {}", run + 1)
}
