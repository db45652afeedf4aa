//! The record of a step: its totals, connections, counters and checks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use words::{
    Check, Connection, Counter, OpKind, OpRole, Ops, StatementPlan, SystemCallCounts, Warning,
    WorkPart,
};

use super::{CellKey, Failure, ImportedStep, Status, StepFile};

/// `step.json`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The name of the step: `l.i0`, `qr100`.
    pub name: String,
    /// The cell of the step; filled in when the step is finished, like `name` and `number`.
    /// Records of format 1.0 lack cell and number.
    #[serde(default)]
    pub cell: CellKey,
    /// The number of the step within its cell, from 1.
    #[serde(default)]
    pub number: u32,
    /// The kind of step.
    pub kind: StepKind,
    /// The kind of operation whose rate is its throughput: `put`, `get`. `None` for the default;
    /// see [`Step::main_operation`].
    pub main_op: Option<String>,
    /// The meaning of that kind; `None` in records that have no roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_role: Option<OpRole>,
    /// Queries in one operation of that kind, for benchmarks that count queries: the step's
    /// throughput is operations per second times this. `None` to count operations.
    pub queries_per_event: Option<f64>,
    /// The name of its throughput per minute: `new orders per minute`. `None` if its workload names
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<String>,
    /// Commits in one operation of that kind that make changes durable. `None` if each write is
    /// one commit.
    pub commits_per_event: Option<f64>,
    /// Rows that one operation of that kind deletes if it finds all of them. `None` if it does
    /// something else, or this is unknown.
    pub deletes_per_event: Option<f64>,
    /// Rows of the table that one operation of that kind scans completely; `None` if it is not a
    /// full scan.
    pub scanned_rows_per_event: Option<u64>,
    /// The group of the step in the benchmark: `point`, `range-1`, `range-2`, `write`. Steps of a
    /// group are shown together. `None` if the benchmark has no groups.
    pub group: Option<String>,
    /// Tables leave it out, because it only warms up or prepares later steps.
    pub unreported: bool,
    /// The outcome of the step.
    pub status: Status,
    /// The failure, if the step failed.
    pub failure: Option<Failure>,
    /// The figures are reliable: the step is complete, and there are no `reasons` against it.
    pub valid: bool,
    /// The reasons for which the figures are not reliable.
    pub reasons: Vec<String>,
    /// The time at which the step started.
    pub started_unix_ns: u64,
    /// The length of the step: from the common start of all clients to the end of the last.
    pub elapsed_ns: u64,
    /// The rows of tables for which the clients work; empty if the workload divides no rows among
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<HomeRows>,
    /// The times for which clients wait around operations of each kind; empty if they don't wait.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pauses: BTreeMap<String, OpPause>,
    /// The planned length; `None` if it ends with its work. The step lasts longer while replies to
    /// operations within this time are still to come.
    pub time_given_ns: Option<u64>,
    /// The number of clients.
    pub clients: u32,
    /// Rows in all tables when it started, which an index step indexes.
    pub rows_before: u64,
    /// Rows per commit of inserts and deletes.
    pub rows_per_commit: Option<u32>,
    /// The mean size of a row's values in bytes, over the rows that the step inserts, or of a key
    /// and its value together, also where they are read. It excludes indexes and everything
    /// that the engine adds. `None` if unknown.
    pub row_bytes_mean: Option<f64>,
    /// Bytes of user data that the engine should hold after the step: keys and values, without
    /// overhead and older versions. `None` if unknown.
    pub data_bytes: Option<u64>,
    /// The scheduled rate of writes of all clients, in rows inserted or keys put; `None` without a
    /// rate.
    pub insert_rate_target_rows_per_s: Option<f64>,
    /// The activity of each connection.
    pub connections: Vec<Connection>,
    /// Totals of each kind of operation, of all connections.
    pub ops: BTreeMap<String, Ops>,
    /// Totals of the warm-up before it, which no figure includes; empty without a warm-up.
    pub warm_up_ops: BTreeMap<String, Ops>,
    /// The parts of the load ranks; empty where one process made all load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankLoad>,
    /// The profile of the step, if its cell is profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<StepProfile>,
    /// The engine's work in the step, if its cell is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<StepWork>,
    /// The engine's system calls by kind; `None` if the plan does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<SystemCallCounts>,
    /// The number of its turns, in `turns.parquet`; `None`: it was measured alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The times in which the whole process of the load was stopped.
    pub held_up: Vec<LoadPause>,
    /// The process times of the step.
    pub cpu: Cpu,
    /// Counters of the engine at the start of the step.
    pub counters_before: Vec<Counter>,
    /// Counters of the engine at the end of the step.
    pub counters_after: Vec<Counter>,
    /// Counters of the engine after the check and the settling that follow a measured step. Empty
    /// in settle steps.
    pub counters_end: Vec<Counter>,
    /// Sizes at the end of the step; `None` if Assay cannot access the files.
    pub storage: Option<StorageSize>,
    /// The checks of the data, with their results.
    pub checks: Vec<Check>,
    /// The duration of the checks, which are not part of the step.
    pub checks_ns: u64,
    /// The time from the end of the load until all replicas showed everything that the step wrote;
    /// `None` without replicas, or if they did not within the limit for settling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up_ns: Option<u64>,
    /// The largest lag of a replica that the plan accepts; `None` without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_at_most_ns: Option<u64>,
    /// The actions and effect of settling; only in a settle step.
    pub settle: Option<Settle>,
    /// The plans of the workload's statements after the step; empty from engines without plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<StatementPlan>,
    /// The plan's commands that ran around the step; empty if the plan has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<StepCommand>,
    /// The origin of a step that another tool measured; `None` if Assay measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedStep>,
    /// Warnings that concern the step's results, which remain valid.
    pub warnings: Vec<Warning>,
    /// The other files in the step's directory; filled in when the step is finished.
    pub files: Vec<StepFile>,
}

impl Step {
    /// Returns the kind of operation whose rate is the step's throughput: `main_op`, or by default
    /// `insert` in steps that load or index, and `query` in steps that query. A settle step has
    /// none.
    pub fn main_operation(&self) -> Option<&str> {
        let usual = match self.kind {
            StepKind::Load | StepKind::Index => Some(OpRole::Insert),
            StepKind::Query => Some(OpRole::Query),
            StepKind::Settle => None,
        };
        self.main_op.as_deref().or_else(|| usual?.usual_kind())
    }

    /// Sets the kind of operation whose rate is the step's throughput.
    pub fn set_main_operation(&mut self, kind: OpKind) {
        self.main_op = Some(kind.name.to_owned());
        self.main_role = Some(kind.role);
    }

    /// Returns the role of the main operation.
    pub fn main_role(&self) -> Option<OpRole> {
        Some(self.role_of(self.main_operation()?))
    }

    /// Returns whether operations of a kind are due at a time, before which connections are idle: they
    /// have a rate, or clients think between them.
    pub fn is_scheduled(&self, kind: &str) -> bool {
        let ops = self.ops.get(kind);
        let has_rate = ops.is_some_and(|ops| ops.rate_target_ops_per_s.is_some());
        has_rate || self.pauses.contains_key(kind)
    }

    /// Returns the role of a kind of operation. A record that has no roles has those of its names.
    pub fn role_of(&self, kind: &str) -> OpRole {
        let counted = self.ops.get(kind).and_then(|ops| ops.role);
        let main = self.main_role.filter(|_| self.main_op.as_deref() == Some(kind));
        counted.or(main).unwrap_or_else(|| OpRole::of_kind(kind))
    }

    /// Returns the kinds of operations of a role, with their totals.
    pub fn ops_of(&self, role: OpRole) -> impl Iterator<Item = (&str, &Ops)> {
        let ops = self.ops.iter().map(|(kind, ops)| (kind.as_str(), ops));
        ops.filter(move |(kind, _)| self.role_of(kind) == role)
    }
}

/// The kind of a step, which decides which figure is its throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Rows are inserted (and deleted): throughput is rows inserted per second.
    #[default]
    Load,
    /// Indexes are created: throughput is rows indexed per second.
    Index,
    /// Queries run, perhaps together with rate-limited writes: throughput is queries per second.
    Query,
    /// The engine settles: nothing is measured.
    Settle,
}

/// The rows of a table for which the clients of a step work, such as warehouses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeRows {
    /// The table.
    pub table: String,
    /// The number of its rows.
    pub rows: u64,
    /// The rule that divides them among the clients, as plans name it: `spread`.
    pub rule: String,
    /// The number of rows of the client with the fewest.
    pub least_per_client: u64,
    /// The number of rows of the client with the most.
    pub most_per_client: u64,
}

/// The times for which a client waits around an operation of some kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpPause {
    /// The mean of the exponential think time after it.
    pub think_ns_mean: u64,
    /// The constant keying time before it.
    pub keying_ns: u64,
}

/// CPU time during the step, of client, server and host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Threads of the load, in user mode. With an embedded engine this includes the engine's work
    /// on them.
    pub client_user_ns: u64,
    /// Threads of the load, in the kernel.
    pub client_system_ns: u64,
    /// Assay's whole process.
    pub assay_ns: u64,
    /// The server's process tree, including backends that ended during the step; `None` without a
    /// server on this host.
    pub server_ns: Option<u64>,
    /// The whole host, user and system.
    pub host_ns: u64,
}

/// Sizes of a target's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageSize {
    /// Tables and indexes, as allocated on disk.
    pub data_bytes: u64,
    /// Redo, undo and write-ahead logs, as allocated on disk.
    pub log_bytes: u64,
}

/// The actions and effect of settling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settle {
    /// The actions in order, with their times in nanoseconds.
    pub actions: Vec<(String, u64)>,
    /// The pending work before.
    pub pending_before: Vec<Counter>,
    /// The pending work that remained.
    pub pending_after: Vec<Counter>,
}

/// A time in which all threads of the load stopped, but not because they waited for a processor:
/// the process was stopped, its control group was frozen, or the virtual machine was paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPause {
    /// The time at which it was last seen running, since the step began.
    pub from_ns: u64,
    /// The time at which it was seen running again, since the step began.
    pub to_ns: u64,
}

/// The load that one MPI rank made in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankLoad {
    /// The rank, from 1: rank 0 makes no load.
    pub rank: u32,
    /// The host of the rank.
    pub host: String,
    /// The rank runs on the host of rank 0 and the server.
    pub is_server_host: bool,
    /// The first rank on the same host, which samples it.
    pub host_rank: u32,
    /// CPU time of the rank's process.
    pub cpu_ns: u64,
    /// CPU time of all processes of the host.
    pub host_cpu_ns: u64,
    /// The number of processors of the host.
    pub processors: u32,
    /// The number of clients whose connections the rank made.
    pub clients: u32,
    /// Rows inserted, changed, deleted or read by those connections.
    pub rows: u64,
    /// The shortest time of a query that does nothing, before the first step.
    pub round_trip_ns: u64,
    /// The rank's clock minus that of rank 0, before the step.
    pub clock_offset_ns: i64,
    /// The change of that offset by the end of the step.
    pub clock_drift_ns: i64,
    /// The true offset differs by at most this much.
    pub clock_uncertainty_ns: u64,
    /// The longest time that reports of the rank waited for rank 0: what it measured before a
    /// report is merged before it.
    pub report_delay_ns_max: u64,
}

/// Facts about the CPU profile of a step, whose stacks are in `profile.parquet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepProfile {
    /// The reason why there are no samples; `None` if there are some.
    pub missing: Option<String>,
    /// The event that was sampled: `cycles`, or `cpu-clock` where the machine cannot count cycles.
    pub event: String,
    /// The samples per second of each busy processor.
    pub frequency_hz: u32,
    /// The way in which callers were found: `fp`, `dwarf` or `lbr`.
    pub call_graph: String,
    /// The number of samples.
    pub samples: u64,
    /// The number of samples that were dropped.
    pub lost: u64,
    /// The number of samples in functions without a symbol.
    pub unknown: u64,
}

/// A command of the plan that ran before or after a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCommand {
    /// The key of the plan: `before-step` or `after-step`.
    pub key: String,
    /// The text of the command.
    pub command: String,
    /// The exit code; `None` if a signal ended the command.
    pub exit_code: Option<i32>,
    /// The way in which it ended, in words: `exit status: 0`.
    pub ended: String,
    /// The duration.
    pub took_ns: u64,
    /// The output, or its end.
    pub output: String,
    /// The size of all that it printed, in bytes.
    pub output_bytes: u64,
}

/// The counts of callgrind in a step. Functions and their calls are in `work_functions.parquet` and
/// `work_calls.parquet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepWork {
    /// The reason why nothing was counted; `None` if something was.
    pub missing: Option<String>,
    /// The tool that counted, with its version.
    pub tool: String,
    /// The operations that ran before counting began.
    pub warmup_operations: u64,
    /// The operations that succeeded while work was counted, by kind.
    pub operations: BTreeMap<String, u64>,
    /// The work of each thread or process.
    pub parts: Vec<WorkPart>,
}

impl StepWork {
    /// The beginning of `missing` of a step that had too few operations to be counted.
    pub const ENDED_IN_WARMUP: &'static str = "the step ended before its";

    /// Returns whether nothing was counted because the step had too few operations.
    pub fn ended_in_warmup(&self) -> bool {
        self.missing.as_ref().is_some_and(|why| why.starts_with(Self::ENDED_IN_WARMUP))
    }
}
