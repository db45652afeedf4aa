//! The contents of the JSON files of a run directory. Every number's name has its unit; times of
//! the step's clock are nanoseconds since the step began, wall-clock times are nanoseconds since
//! 1970 UTC.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use words::{
    Check, Connection, Counter, DeclaredOption, FsyncLatency, Limit, Ops, Setting, StatementPlan,
    UnmetOption, Warning,
};

use crate::CellKey;

/// The outcome of a run, cell or step. Files first have the status `Incomplete`, so that it is
/// right after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It was started, and its end was not recorded.
    #[default]
    Incomplete,
    /// It ended as planned.
    Complete,
    /// It failed; `failure` says why.
    Failed,
    /// The operator stopped it.
    Interrupted,
}

/// Facts about the CPU profile of a step, whose stacks are in `profile.parquet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepProfile {
    /// The reason why there are no samples; `None` if there are some.
    pub missing: Option<String>,
    /// The event that was sampled: `cycles`, or `cpu-clock` where the machine can't count cycles.
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

/// The load that one MPI rank made in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankLoad {
    /// The rank, from 1: rank 0 makes no load.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// It runs on the host of rank 0 and the server.
    pub is_server_host: bool,
    /// The first rank on the same host, which samples it.
    pub host_rank: u32,
    /// CPU time of its process.
    pub cpu_ns: u64,
    /// CPU time of all processes of its host.
    pub host_cpu_ns: u64,
    /// The processors of its host.
    pub processors: u32,
    /// Clients whose connections it made.
    pub clients: u32,
    /// Rows inserted, changed, deleted or read by them.
    pub rows: u64,
    /// The shortest time of a query that does nothing, before the first step.
    pub round_trip_ns: u64,
    /// Its clock minus that of rank 0, before the step.
    pub clock_offset_ns: i64,
    /// The change of that offset by the end of the step.
    pub clock_drift_ns: i64,
    /// The true offset differs by at most this much.
    pub clock_uncertainty_ns: u64,
    /// The longest time that its reports waited for rank 0: what it measured before a report is
    /// merged before it.
    pub report_delay_ns_max: u64,
}

/// The causes of a failure, and its remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The error and its causes, outermost first.
    pub causes: Vec<String>,
    /// The remedy, if one is known.
    pub help: Option<String>,
    /// The last lines of the server's log, oldest first.
    pub log_tail: Vec<String>,
}

/// `run.json`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The format of the whole directory; see [`crate::FORMAT`].
    pub format: crate::FormatVersion,
    /// A globally unique identifier.
    pub id: String,
    /// The Assay that started it.
    pub assay: Assay,
    /// Its outcome.
    pub status: Status,
    /// The plan's name.
    pub name: String,
    /// The time at which it started.
    pub started_unix_ns: u64,
    /// The time at which it ended, if it has.
    pub ended_unix_ns: Option<u64>,
    /// The command line.
    pub command: Vec<String>,
    /// The plan.
    pub plan: Plan,
    /// The seed of all data and random choices.
    pub seed: u64,
    /// The machine.
    pub host: Host,
    /// The builds.
    pub builds: Vec<Build>,
    /// The targets, in the plan's order.
    pub targets: Vec<Target>,
    /// The target that the others are compared with.
    pub base: String,
    /// The cells in the order in which they run.
    pub cells: Vec<CellRef>,
    /// The steps of each workload and variant of the plan.
    pub workloads: Vec<WorkloadSteps>,
    /// Warnings that concern all results of this run.
    pub warnings: Vec<Warning>,
    /// Each invocation of Assay for this run: the first started it, the others resumed it.
    pub invocations: Vec<Invocation>,
    /// The search that chose the rates of its variants; `None` if the plan lists all cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearch>,
    /// A process measured its cells when it was read. It is not part of the record.
    #[serde(skip)]
    pub is_running: bool,
    /// The records of the cells that have ended, such as `cells/pg.base/c1/r1/cell.json`; filled
    /// in by [`RunDir`](crate::RunDir).
    #[serde(default)]
    pub files: Vec<StepFile>,
}

/// A search for the highest rate at which a step meets its bounds. Each rate that it tries is a
/// variant of the workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateSearch {
    /// The step's name.
    pub step: String,
    /// The bound on the 99th percentile of response times, in milliseconds.
    pub p99_ms: Option<f64>,
    /// The bound on the lag of replicas, in milliseconds.
    pub lag_ms: Option<f64>,
    /// The highest rate that it tries, per second and client. `None`: that of a cell without a
    /// rate.
    pub rate_max: Option<f64>,
    /// The relative gap at which the search ends: the highest sustained rate is at most this share
    /// below the lowest one that misses a bound.
    pub tolerance: f64,
    /// The repeats of the first try of each rate. Those with higher numbers are the second try of
    /// a rate that missed a bound. 0: there is only one try.
    #[serde(default)]
    pub repeats: u32,
}

/// The steps of each cell of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSteps {
    /// The workload: `insert`.
    pub workload: String,
    /// The workload's variant, if the plan has variants.
    pub variant: Option<String>,
    /// The steps in their order.
    pub steps: Vec<String>,
}

/// A build of Assay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assay {
    /// The version.
    pub version: String,
    /// The commit that it was built from; `None` if it was not built in a checkout.
    pub git_hash: Option<String>,
    /// Its sources differed from that commit.
    pub git_dirty: Option<bool>,
    /// The profile that it was compiled with: `release`, `debug`.
    pub profile: Option<String>,
}

impl std::fmt::Display for Assay {
    /// Writes `0.1.0 (9587cafd32a1, clean, release)`, without unknown parts.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = match self.version.as_str() {
            "" => "of an unknown version",
            version => version,
        };
        let tree = self.git_dirty.map(|is_dirty| if is_dirty { "dirty" } else { "clean" });
        let hash = self.git_hash.as_deref();
        let parts = [hash, tree, self.profile.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            return f.write_str(version);
        }
        write!(f, "{version} ({})", parts.join(", "))
    }
}

/// One invocation of Assay for a run, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// The time at which it started.
    pub started_unix_ns: u64,
    /// The time at which it ended; `None` if it was killed or is still running.
    pub ended_unix_ns: Option<u64>,
    /// Its duration by the monotonic clock, which adjustments of the time don't affect; `None` as
    /// long as it has not ended, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<u64>,
    /// Its outcome: complete if every cell that it had to measure is complete.
    pub status: Status,
    /// The Assay that ran.
    pub assay: Assay,
    /// The command line.
    pub command: Vec<String>,
    /// The filters of the cells to measure; empty for all.
    pub only: Vec<String>,
    /// The directory in which databases were created.
    pub data_dir: String,
    /// The kernel's identifier of the machine's boot, if it has one.
    pub boot_id: Option<String>,
    /// Facts of the machine that differ from those in `Run::host`.
    pub host_differences: Vec<FactDifference>,
    /// The cells that were left out because an earlier cell of their target failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<CellKey>,
    /// The hosts of load ranks, without the server's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_hosts: Vec<ClientHost>,
    /// The latency of `fdatasync` after a write of 4 KiB in the data directory.
    pub fsync: Option<FsyncLatency>,
}

/// A host on which load ranks ran, but not the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientHost {
    /// Its name.
    pub name: String,
    /// Its load ranks.
    pub ranks: Vec<u32>,
    /// Its description, without disks.
    pub host: Host,
}

/// A fact of the machine that had changed when a run was resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactDifference {
    /// Its name.
    pub name: String,
    /// Its value when the run started; `None` if unknown.
    pub first: Option<String>,
    /// Its value in this invocation; `None` if unknown.
    pub now: Option<String>,
}

/// The plan as it was written, and as it was resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The file that it was read from; `None` for the built-in default.
    pub path: Option<String>,
    /// Its text, verbatim except for passwords.
    pub text: String,
    /// The `--set` arguments in their order, verbatim except for passwords.
    pub sets: Vec<String>,
    /// Every value with its origin.
    pub resolved: Vec<ResolvedValue>,
    /// A password was removed from the text or a `--set` argument; such a run can't be resumed.
    pub password_removed: bool,
    /// The files that configs name, as they were when the run started. The whole run uses these
    /// texts.
    pub files: Vec<PlanFile>,
}

/// A file that a plan names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFile {
    /// Its name in the plan.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// One value of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedValue {
    /// Its dotted key: `workload.insert.initial-rows`.
    pub key: String,
    /// Its value in the plan's notation.
    pub value: String,
    /// `default`, `plan:LINE:COLUMN` or `--set`.
    pub origin: String,
}

/// A target: a build with a config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// `build.config`
    pub name: String,
    /// The build's name.
    pub build: String,
    /// The config's name.
    pub config: String,
    /// The engine's name.
    pub engine: String,
    /// The options that the plan sets, in the engine's notation, without those of its files, which
    /// come first.
    pub set: Vec<(String, String)>,
    /// Everything that its config declares, itself and in its files, and its limits.
    pub declared: Vec<DeclaredOption>,
    /// The factors in the plan, with their values; those of the build come first.
    #[serde(default)]
    pub factors: Vec<(String, String)>,
    /// The names of its config's files, in the order in which they apply; the texts are in
    /// [`Plan::files`].
    pub files: Vec<String>,
}

/// A build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its name in the plan.
    pub name: String,
    /// The engine's name.
    pub engine: String,
    /// The version, as the engine reports it.
    pub version: String,
    /// Its source: a directory, `bundled`, or a URL without its password.
    pub source: String,
    /// Its files, with their hashes.
    pub files: Vec<FileHash>,
}

/// A file, with its size and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// Its path.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

/// A cell, with the place of its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRef {
    /// The cell's key.
    #[serde(flatten)]
    pub key: CellKey,
    /// The workload: `insert`.
    pub workload: String,
    /// The cell's directory, relative to the run's.
    pub path: String,
}

/// The machine that a run ran on. Unknown facts are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Facts by name, in the order in which they are shown. The name has the unit:
    /// `memory_total_bytes`.
    pub facts: Vec<(String, String)>,
    /// The number of online processors.
    pub cpu_count: u32,
    /// The size of the memory.
    pub memory_total_bytes: u64,
    /// The latency of `fdatasync` after a write of 4 KiB in the data directory.
    pub fsync: Option<FsyncLatency>,
}

impl Host {
    /// Returns a fact by its name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let mut facts = self.facts.iter();
        let fact = facts.find(|(known, _)| known == name);
        fact.map(|(_, value)| value.as_str())
    }
}

/// `cell.json`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The cell's key.
    #[serde(flatten)]
    pub key: CellKey,
    /// The build's name.
    pub build: String,
    /// The config's name.
    pub config: String,
    /// The engine's name.
    pub engine: String,
    /// The version, as the running engine reports it.
    pub engine_version: String,
    /// The workload: `insert`.
    pub workload: String,
    /// Its outcome.
    pub status: Status,
    /// The failure, if it failed.
    pub failure: Option<Failure>,
    /// The time at which it started.
    pub started_unix_ns: u64,
    /// The time at which it ended, if it has.
    pub ended_unix_ns: Option<u64>,
    /// The engine runs in Assay's process.
    pub embedded: bool,
    /// The host of the engine: samples of the host don't include a server on another host.
    pub server_host: ServerHost,
    /// The user that the server ran as, if it was not Assay's own.
    pub server_user: Option<String>,
    /// The invocation of the run in which it was measured, from 1.
    pub invocation: u32,
    /// Tables that the cell created in a server that Assay did not start, and did not drop.
    pub tables_left: Vec<String>,
    /// The limits that the config sets for the server, and the effective ones.
    pub limits: Vec<Limit>,
    /// The effective settings, sorted by name.
    pub settings: Vec<Setting>,
    /// Declared options of its config that the engine does not have, or may not have; `not_had` in
    /// records of format 1.0.
    #[serde(alias = "not_had")]
    pub unmet_options: Vec<UnmetOption>,
    /// The steps of the cell, in order; their directories are `steps/NN-NAME`.
    pub steps: Vec<String>,
    /// The identifier of its run; filled in by [`CellDir`](crate::CellDir). Empty in records of
    /// format 1.0, like `files`.
    #[serde(default)]
    pub run: String,
    /// The files of the cell that readers use, such as `steps/01-l.i0/step.json`; filled in by
    /// [`CellDir`](crate::CellDir).
    #[serde(default)]
    pub files: Vec<StepFile>,
}

impl Cell {
    /// Returns the listed file with this name.
    pub(crate) fn file(&self, name: &str) -> Option<&StepFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

/// The host of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerHost {
    /// On the same host as Assay.
    #[default]
    Local,
    /// On another host.
    Remote,
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

/// `step.json`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name: `l.i0`, `qr100`.
    pub name: String,
    /// Its cell; filled in when the step is finished, like `name` and `number`. Records of format
    /// 1.0 lack cell and number.
    #[serde(default)]
    pub cell: CellKey,
    /// Its number within its cell, from 1.
    #[serde(default)]
    pub number: u32,
    /// Its kind.
    pub kind: StepKind,
    /// The kind of operation whose rate is its throughput: `put`, `get`. `None` for the default;
    /// see [`Step::main_operation`].
    pub main_op: Option<String>,
    /// Queries in one operation of that kind, for benchmarks that count queries: the step's
    /// throughput is operations per second times this. `None` to count operations.
    pub queries_per_event: Option<f64>,
    /// Commits in one operation of that kind that make changes durable. `None` if each write is
    /// one commit.
    pub commits_per_event: Option<f64>,
    /// Rows that one operation of that kind deletes if it finds all of them. `None` if it does
    /// something else, or this is unknown.
    pub deletes_per_event: Option<f64>,
    /// Rows of the table that one operation of that kind scans completely; `None` if it is not a
    /// full scan.
    pub scanned_rows_per_event: Option<u64>,
    /// Its group in the benchmark: `point`, `range-1`, `range-2`, `write`. Steps of a group are
    /// shown together. `None` if the benchmark has no groups.
    pub group: Option<String>,
    /// Tables leave it out, because it only warms up or prepares later steps.
    pub unreported: bool,
    /// Its outcome.
    pub status: Status,
    /// The failure, if it failed.
    pub failure: Option<Failure>,
    /// Its figures are reliable: it is complete, and there are no `reasons` against it.
    pub valid: bool,
    /// The reasons for which it is not valid.
    pub reasons: Vec<String>,
    /// The time at which it started.
    pub started_unix_ns: u64,
    /// Its length: from the common start of all clients to the end of the last.
    pub elapsed_ns: u64,
    /// The planned length; `None` if it ends with its work. The step lasts longer while replies to
    /// operations within this time are still to come.
    pub time_given_ns: Option<u64>,
    /// Clients.
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
    /// Sizes at the end of the step; `None` if Assay can't access the files.
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
        self.main_op.as_deref().or(match self.kind {
            StepKind::Load | StepKind::Index => Some("insert"),
            StepKind::Query => Some("query"),
            StepKind::Settle => None,
        })
    }
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

/// A file of the record, as it was when it was finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFile {
    /// Its name, relative to the file that lists it: `intervals.parquet`.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC-32 (as in zip and PNG) in hexadecimal.
    pub crc32: String,
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

#[cfg(test)]
mod tests {
    use super::Assay;

    #[test]
    fn an_assay_shows_what_is_known_about_it() {
        let mut assay = Assay { version: "0.1.0".into(), ..Assay::default() };
        assert_eq!(assay.to_string(), "0.1.0");
        assay.profile = Some("debug".into());
        assert_eq!(assay.to_string(), "0.1.0 (debug)");
        (assay.git_hash, assay.git_dirty) = (Some("9587caf".into()), Some(true));
        assert_eq!(assay.to_string(), "0.1.0 (9587caf, dirty, debug)");
        assay.git_dirty = Some(false);
        assert_eq!(assay.to_string(), "0.1.0 (9587caf, clean, debug)");
        assert_eq!(Assay::default().to_string(), "of an unknown version");
    }
}
