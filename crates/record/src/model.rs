//! What the JSON files of a run directory hold. Every number's name has its unit; times of the step's clock are
//! nanoseconds since the step began, wall-clock times are nanoseconds since 1970 UTC.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use words::{
    Check, Connection, Counter, DeclaredOption, FsyncLatency, Limit, Ops, Setting, UnmetOption,
    Warning,
};

use crate::CellKey;

/// How far a run, cell or step got. Files are written as `Incomplete` first, so that a crash leaves the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It was begun and nothing was said since.
    #[default]
    Incomplete,
    /// It ended as planned.
    Complete,
    /// It could not go on: `failure` says why.
    Failed,
    /// The operator ended it.
    Interrupted,
}

/// Why something failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What failed, with its causes, outermost first.
    pub causes: Vec<String>,
    /// What to do about it, where that is known.
    pub help: Option<String>,
    /// The last lines of the server's log, oldest first.
    pub log_tail: Vec<String>,
}

/// `run.json`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The format of the whole directory: see [`crate::FORMAT`].
    pub format: crate::FormatVersion,
    /// What tells it from all other runs, wherever they were made.
    pub id: String,
    /// The assay that began it.
    pub assay: Assay,
    /// How far it got.
    pub status: Status,
    /// The plan's name.
    pub name: String,
    /// When it began.
    pub started_unix_ns: u64,
    /// When it ended, if it did.
    pub ended_unix_ns: Option<u64>,
    /// The command line.
    pub command: Vec<String>,
    /// What was to be run.
    pub plan: Plan,
    /// The seed of all data and random choices.
    pub seed: u64,
    /// The machine.
    pub host: Host,
    /// The builds that were used.
    pub builds: Vec<Build>,
    /// The targets, in the plan's order.
    pub targets: Vec<Target>,
    /// The target that others are compared to.
    pub base: String,
    /// The cells in the order in which they are run.
    pub cells: Vec<CellRef>,
    /// The steps of each workload and variant of the plan.
    pub workloads: Vec<WorkloadSteps>,
    /// What should be known about all results of this run.
    pub warnings: Vec<Warning>,
    /// Each run of assay that worked at it: the first began the run, the others resumed it.
    pub invocations: Vec<Invocation>,
}

/// The steps that each cell of a workload is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSteps {
    /// The workload: `insert`.
    pub workload: String,
    /// The workload's variant, where a plan has several.
    pub variant: Option<String>,
    /// The steps in their order.
    pub steps: Vec<String>,
}

/// A build of assay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assay {
    /// The version.
    pub version: String,
    /// The commit that it was built from; `None`: it was not built in a checkout.
    pub git_hash: Option<String>,
    /// Its sources were not those of that commit.
    pub git_dirty: Option<bool>,
    /// How it was compiled: `release`, `debug`.
    pub profile: Option<String>,
}

impl std::fmt::Display for Assay {
    /// Writes `0.1.0 (9587cafd32a1, clean, release)`; what is not known is left out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = match self.version.as_str() {
            "" => "of an unknown version",
            version => version,
        };
        let tree = self
            .git_dirty
            .map(|is_dirty| if is_dirty { "dirty" } else { "clean" });
        let hash = self.git_hash.as_deref();
        let parts = [hash, tree, self.profile.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            return f.write_str(version);
        }
        write!(f, "{version} ({})", parts.join(", "))
    }
}

/// One time that a run was worked at, from the start of assay to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// When it began.
    pub started_unix_ns: u64,
    /// When it ended, if it did: one that was killed did not.
    pub ended_unix_ns: Option<u64>,
    /// How it ended: complete when every cell that it was to measure is.
    pub status: Status,
    /// The assay that worked at it.
    pub assay: Assay,
    /// The command line.
    pub command: Vec<String>,
    /// The filters of the cells that were to be measured; empty: all.
    pub only: Vec<String>,
    /// Where databases were made.
    pub data_dir: String,
    /// What the kernel calls the time since the machine was started, where it says so.
    pub boot_id: Option<String>,
    /// Facts of the machine that are not those of `Run::host`.
    pub host_differences: Vec<FactDifference>,
    /// The latency of `fdatasync` after a write of 4 KiB in the data directory.
    pub fsync: Option<FsyncLatency>,
}

/// A fact of the machine that was another one when a run was gone on with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactDifference {
    /// Its name.
    pub name: String,
    /// What it was when the run began; `None`: it was not known.
    pub first: Option<String>,
    /// What it was in this invocation; `None`: it was not known.
    pub now: Option<String>,
}

/// The plan as it was given and as it was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Where it was read from; `None` for the built-in default.
    pub path: Option<String>,
    /// Its text, verbatim but for passwords.
    pub text: String,
    /// The `--set` arguments in their order, verbatim but for passwords.
    pub sets: Vec<String>,
    /// Every value with its origin.
    pub resolved: Vec<ResolvedValue>,
    /// A password was taken out of the text or of a `--set` argument: without it the run can't go on.
    pub password_removed: bool,
    /// The files that configs name, as they were when the run began. All of the run uses these texts.
    pub files: Vec<PlanFile>,
}

/// A file that a plan names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFile {
    /// Its name in the plan.
    pub name: String,
    /// What is in it.
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
    /// The options that the plan sets, in the engine's notation: those of its files, which come first, not among them.
    pub set: Vec<(String, String)>,
    /// All that its config declares, of its files and by itself, with its limits.
    pub declared: Vec<DeclaredOption>,
    /// The factors that the plan names, with its values of them: those of its build first.
    #[serde(default)]
    pub factors: Vec<(String, String)>,
    /// The names of its config's files, in the order in which they hold: the texts are in [`Plan::files`].
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
    /// Where it was found: a directory, `bundled`, or a URL without its password.
    pub source: String,
    /// The files that make it, with their hashes.
    pub files: Vec<FileHash>,
}

/// A file and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// Its path.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

/// Where a cell's record is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRef {
    /// Which cell.
    #[serde(flatten)]
    pub key: CellKey,
    /// The workload: `insert`.
    pub workload: String,
    /// The cell's directory, relative to the run's.
    pub path: String,
}

/// The machine that a run ran on. What could not be found out is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Facts by name, in the order in which they are shown; the unit is in the name: `memory_total_bytes`.
    pub facts: Vec<(String, String)>,
    /// Processors that are online.
    pub cpu_count: u32,
    /// Memory.
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
    /// Which cell.
    #[serde(flatten)]
    pub key: CellKey,
    /// The build's name.
    pub build: String,
    /// The config's name.
    pub config: String,
    /// The engine's name.
    pub engine: String,
    /// The version, as the engine that ran reports it.
    pub engine_version: String,
    /// The workload: `insert`.
    pub workload: String,
    /// How far it got.
    pub status: Status,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// When it began.
    pub started_unix_ns: u64,
    /// When it ended, if it did.
    pub ended_unix_ns: Option<u64>,
    /// The engine works in assay's own process.
    pub embedded: bool,
    /// Where the engine works: what was sampled of the host says nothing of a server on another one.
    pub server_host: ServerHost,
    /// The user that the server ran as, where that is not assay's own.
    pub server_user: Option<String>,
    /// The invocation of the run in which it was measured, from 1.
    pub invocation: u32,
    /// Tables that the cell made in a server that assay did not start, and that are there still.
    pub tables_left: Vec<String>,
    /// The limits that the config sets on the server, and what came of them.
    pub limits: Vec<Limit>,
    /// The effective settings, sorted by name.
    pub settings: Vec<Setting>,
    /// What its config declares and the engine does not have, or may not have.
    pub not_had: Vec<UnmetOption>,
    /// The steps that the cell is made of, in order: their directories are `steps/NN-NAME`.
    pub steps: Vec<String>,
}

/// Where an engine works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerHost {
    /// On the host that assay runs on.
    #[default]
    Local,
    /// On another one.
    Remote,
}

/// What sort of step it is: decides which figure is its throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Rows are inserted (and deleted): throughput is rows inserted per second.
    #[default]
    Load,
    /// Indexes are created: throughput is rows indexed per second.
    Index,
    /// Queries run, maybe with rate-limited writes beside them: throughput is queries per second.
    Query,
    /// The engine is brought to rest: nothing is measured.
    Settle,
}

/// `step.json`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name: `l.i0`, `qr100`.
    pub name: String,
    /// What sort it is.
    pub kind: StepKind,
    /// The kind of operation whose rate is its throughput: `put`, `get`. `None`: see
    /// [`Step::main_operation`].
    pub main_op: Option<String>,
    /// Queries that one operation of that kind stands for, where its benchmark counts these: the step's throughput is
    /// operations per second times this. `None`: operations are what is counted.
    pub queries_per_event: Option<f64>,
    /// Commits that one operation of that kind stands for, of those that have something to make durable. `None`: it is
    /// not told, and each write is one.
    pub commits_per_event: Option<f64>,
    /// Rows that one operation of that kind deletes if all that it looks for are there, where it does nothing else. `None`:
    /// it does something else, or is not told.
    pub deletes_per_event: Option<f64>,
    /// Rows of the table that one operation of that kind goes through from end to end, where that is what it is about.
    pub scanned_rows_per_event: Option<u64>,
    /// Which of its benchmark's groups it belongs to: `point`, `range-1`, `range-2`, `write`. Steps of one group are
    /// shown together; `None`: there are no groups.
    pub group: Option<String>,
    /// It is not among the results that tables show: a warm-up, or a run before those that count.
    pub unreported: bool,
    /// How far it got.
    pub status: Status,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// Its figures can be stood behind: it is complete and nothing below says otherwise.
    pub valid: bool,
    /// Why it is not valid.
    pub reasons: Vec<String>,
    /// When it began.
    pub started_unix_ns: u64,
    /// Its length: from the common start of all clients to the end of the last.
    pub elapsed_ns: u64,
    /// The time that it was given; `None` when it ends with its work. It lasts longer than that while a reply to what
    /// was sent within it is still to come.
    pub time_given_ns: Option<u64>,
    /// Clients.
    pub clients: u32,
    /// Rows that were in all tables when it began: what an index step indexes.
    pub rows_before: u64,
    /// Rows per commit of inserts and deletes.
    pub rows_per_commit: Option<u32>,
    /// What the values of a row take in bytes, on average over the rows that the step inserts; of keys and values both
    /// together, also where they are read. Nothing that an engine adds is in it, and no index. `None` where that is not known.
    pub row_bytes_mean: Option<f64>,
    /// Bytes of user data that the engine should hold when the step has ended: keys and values as they were given, no
    /// overhead and no older versions. `None` where that is not known.
    pub data_bytes: Option<u64>,
    /// The rate of writes that is asked for, over all clients, in rows inserted or keys put; `None` without a rate.
    pub insert_rate_target_rows_per_s: Option<f64>,
    /// What each connection did.
    pub connections: Vec<Connection>,
    /// Totals of each kind of operation, over all connections.
    pub ops: BTreeMap<String, Ops>,
    /// The same of the warm-up that ran before, which no figure has in it; empty without one.
    pub warm_up_ops: BTreeMap<String, Ops>,
    /// When the whole process of the load stood still.
    pub held_up: Vec<LoadPause>,
    /// The process times of the step.
    pub cpu: Cpu,
    /// Counters of the engine when the step began.
    pub counters_before: Vec<Counter>,
    /// Counters of the engine when the step had ended.
    pub counters_after: Vec<Counter>,
    /// The same when what follows a measured step was over too: its check and its settling. Empty in settle steps.
    pub counters_end: Vec<Counter>,
    /// Sizes when the step had ended; `None` where assay can't reach the files.
    pub storage: Option<StorageSize>,
    /// The checks of the data, and whether they hold.
    pub checks: Vec<Check>,
    /// How long the checks took; they are not part of the step.
    pub checks_ns: u64,
    /// What settling did, in a settle step.
    pub settle: Option<Settle>,
    /// What should be known about the step's results, without making them invalid.
    pub warnings: Vec<Warning>,
    /// The other files of the step's directory; filled in when the step is finished.
    pub files: Vec<StepFile>,
}

impl Step {
    /// The kind of operation whose rate is the step's throughput: what the step is said to be about, else `insert` in steps that
    /// load or index, and `query` in those that query. A step that only settles has none.
    pub fn main_operation(&self) -> Option<&str> {
        self.main_op.as_deref().or(match self.kind {
            StepKind::Load | StepKind::Index => Some("insert"),
            StepKind::Query => Some("query"),
            StepKind::Settle => None,
        })
    }
}

/// A time in which all threads of the load stood still, and not for want of a processor: somebody stopped the process or
/// froze its control group, or the virtual machine was paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPause {
    /// When it was last seen at work, since the step began.
    pub from_ns: u64,
    /// When it was seen at work again.
    pub to_ns: u64,
}

/// A file of a step's directory, as it was when the step was finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFile {
    /// Its name: `intervals.parquet`.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC-32 (as in zip and PNG) in hexadecimal.
    pub crc32: String,
}

/// CPU time during the step, of three parties that share the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Threads of the load, in user mode. With an embedded engine the engine's work on them is included.
    pub client_user_ns: u64,
    /// Threads of the load, in the kernel.
    pub client_system_ns: u64,
    /// All of assay's own process.
    pub assay_ns: u64,
    /// The server's process tree, backends that ended during the step included; `None` where there is none on this
    /// host.
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

/// The evidence of settling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settle {
    /// What was done, in order, and how long it took in nanoseconds.
    pub actions: Vec<(String, u64)>,
    /// What was pending before.
    pub pending_before: Vec<Counter>,
    /// What was still pending afterwards.
    pub pending_after: Vec<Counter>,
}

#[cfg(test)]
mod tests {
    use super::Assay;

    #[test]
    fn an_assay_says_what_is_known_of_it() {
        let mut assay = Assay {
            version: "0.1.0".into(),
            ..Assay::default()
        };
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
