//! The resolved plan: every value is present, and every name is resolved.

use std::net::IpAddr;
use std::time::Duration;

pub use words::{Engine, IndexStatements, Limits};
use words::{Secret, named_enum};

use crate::reader::Resolved;
use crate::sysbench::test::{Distribution, Test};

/// Everything that a run needs to know, from a plan file, `--set` arguments and defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name, which is part of the run directory's name.
    pub name: String,
    /// The numbers of clients to run with.
    pub clients: Vec<u32>,
    /// The number of times that each cell runs.
    pub repeats: u32,
    /// The order of the cells.
    pub order: Order,
    /// The index in `targets` of the target that the others are compared with.
    pub base: usize,
    /// The targets are one and its twin, the same build with the same config, to measure noise.
    pub against_itself: bool,
    /// The seed of all data and random choices.
    pub seed: u64,
    /// The directory in which databases are created; `None` for next to the results.
    pub data_dir: Option<String>,
    /// A cell's database is kept after the cell.
    pub keep_data: bool,
    /// The time that a server may take to start or stop.
    pub server_timeout: Duration,
    /// The system user for servers that refuse to run as root; `None` to choose one when needed.
    pub server_user: Option<String>,
    /// The address on which servers listen; `None` to choose one when needed.
    pub listen: Option<IpAddr>,
    /// CPU profiles.
    pub profile: Profile,
    /// The workloads that run on each target: one variant without a name, or one or more with
    /// names.
    pub variants: Vec<Variant>,
    /// The builds, in the order of the file.
    pub builds: Vec<Build>,
    /// The configs, in the order of the file.
    pub configs: Vec<Config>,
    /// The targets, in the order of the file.
    pub targets: Vec<Target>,
    /// Every value with its origin, in the order in which `check` shows them.
    pub resolved: Vec<Resolved>,
}

/// Cells that are measured once more while a profiler samples the engine's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The number of profiled repeats of each cell; 0 without a table `[profile]`.
    pub repeats: u32,
    /// The samples per second of each busy processor.
    pub frequency_hz: u32,
    /// The way in which the profiler finds the callers of a function.
    pub call_graph: CallGraph,
}

named_enum! {
    /// The way in which the profiler finds the callers of a function.
    pub enum CallGraph {
        /// By frame pointers if the program keeps them, else by unwinding.
        Auto = "auto",
        /// By frame pointers.
        FramePointers = "fp",
        /// By unwinding copies of stacks.
        Dwarf = "dwarf",
        /// By the processor's record of branches.
        Lbr = "lbr",
    }
}

named_enum! {
    /// The order in which cells run.
    pub enum Order {
        /// Repeats are the outer loop. Each has its targets in a random order, which the next repeat mirrors: `ab ba`, or
        /// `ba ab`. So neither drift nor a rhythm of the machine favors a target.
        Interleaved = "interleaved",
        /// All repeats of a target in a row: `aa bb`.
        Grouped = "grouped",
    }
}

/// A workload with some of its options changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name in the plan; `None` where the plan declares no variants.
    pub name: Option<String>,
    /// The workload, with the changes of the variant.
    pub workload: Workload,
}

/// A workload with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// The Insert Benchmark.
    Insert(Insert),
    /// The key-value sequence.
    Kv(Kv),
    /// The sysbench microbenchmarks.
    Sysbench(Sysbench),
}

/// The way in which a step runs, regardless of the work in it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRun<'a> {
    /// Its name.
    pub name: &'a str,
    /// It measures something; otherwise it only settles.
    pub measures: bool,
    /// The time for which it is measured; `None` for until its work is done.
    pub time: Option<Duration>,
    /// The time that it runs before it is measured.
    pub warmup: Duration,
    /// The settling of the engine afterwards, which is not measured.
    pub settle: Option<Settle>,
    /// Results show it; otherwise it is only recorded.
    pub reported: bool,
}

impl<'a> StepRun<'a> {
    fn measured(name: &'a str, time: Option<Duration>) -> Self {
        Self { name, measures: true, time, warmup: Duration::ZERO, settle: None, reported: true }
    }

    fn settling(name: &'a str, settle: Settle) -> Self {
        Self { measures: false, settle: Some(settle), ..Self::measured(name, None) }
    }
}

impl InsertStep {
    fn run(&self) -> StepRun<'_> {
        match self.kind {
            // MyRocks and RocksDB settle in the same way.
            InsertStepKind::Settle => StepRun::settling(&self.name, Settle::EmptyLevel0),
            InsertStepKind::Query { time, .. }
            | InsertStepKind::Write { until: WriteEnd::Time(time), .. } => {
                StepRun::measured(&self.name, Some(time))
            }
            _ => StepRun::measured(&self.name, None),
        }
    }
}

impl KvStep {
    fn run(&self) -> StepRun<'_> {
        match self.kind {
            KvStepKind::Drain => StepRun::settling(&self.name, Settle::Pending),
            KvStepKind::Flush => StepRun::settling(&self.name, Settle::EmptyLevel0),
            KvStepKind::FillSeq | KvStepKind::OverwriteSome { .. } => {
                StepRun::measured(&self.name, None)
            }
            KvStepKind::Read { time, .. } | KvStepKind::ReadWhileWriting { time, .. } => {
                StepRun::measured(&self.name, Some(time))
            }
            KvStepKind::Overwrite { time } => StepRun {
                settle: Some(Settle::Pending),
                ..StepRun::measured(&self.name, Some(time))
            },
        }
    }
}

impl SysbenchStep {
    fn run(&self) -> StepRun<'_> {
        match &self.kind {
            SysbenchStepKind::Load | SysbenchStepKind::Index => StepRun::measured(&self.name, None),
            SysbenchStepKind::Settle => StepRun::settling(&self.name, Settle::Pending),
            SysbenchStepKind::Run { time, warmup, reported, .. } => StepRun {
                warmup: *warmup,
                reported: *reported,
                ..StepRun::measured(&self.name, Some(*time))
            },
        }
    }
}

/// The state until which an engine settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settle {
    /// No work is pending.
    Pending,
    /// No work is pending, and level 0 of an LSM tree is compacted into the next level.
    EmptyLevel0,
}

/// The options of steps that all workloads have.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPolicy {
    /// The part of the data that is checked after each step.
    pub checks: Checks,
    /// The number of failed operations beyond which a step fails.
    pub error_limit: u64,
    /// The attempts at an operation that fails with a transient error, the first included.
    pub attempts: u32,
    /// The shortest time that settling takes.
    pub settle_at_least: Duration,
    /// The longest time that settling waits for pending work.
    pub settle_at_most: Duration,
    /// The largest lag of a replica that counts as bounded.
    pub lag_at_most: Duration,
}

/// The parameters of the Insert Benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The steps in their order.
    pub steps: Vec<InsertStep>,
    /// Rows per table loaded by `l.i0`.
    pub initial_rows: u64,
    /// Every insert comes with a delete of as many rows, the oldest ones.
    pub delete_per_insert: bool,
    /// The number of statements in which `l.x` creates the indexes of a table.
    pub index_statements: IndexStatements,
    /// `l.i0` uses the engine's bulk load, if it has one.
    pub bulk_load: bool,
    /// One table for each client, or one for all.
    pub tables: Tables,
    /// Range partitions per table; 0 for an unpartitioned table.
    pub partitions: u32,
    /// The time for which each client's extra connection holds its transaction; `None` for no
    /// extra connection.
    pub long_transaction: Option<Duration>,
    /// The definition of the secondary indexes.
    pub indexes: IndexSet,
    /// The number of secondary indexes: the first ones of [`INDEX_NAMES`].
    pub secondary_indexes: u32,
    /// The shortest and longest value of the column `data`, in characters.
    pub data_length: (u32, u32),
    /// The options of all steps: checks, failures and settling.
    pub policy: StepPolicy,
}

named_enum! {
    /// One table for each client, or one for all.
    pub enum Tables {
        /// `pi1` ... `piN`
        PerClient = "per-client",
        /// `pi1` alone
        Shared = "shared",
    }
}

named_enum! {
    /// The definition of the secondary indexes.
    pub enum IndexSet {
        /// Since December 2023.
        Current = "current",
        /// Before December 2023.
        Before2023Dec = "before-2023-12",
    }
}

named_enum! {
    /// The part of the data that is checked after each step.
    pub enum Checks {
        /// Counts, smallest and largest key, every index. This reads the whole database.
        Full = "full",
        /// Smallest and largest key.
        Keys = "keys",
        /// Nothing.
        Off = "off",
    }
}

/// The secondary indexes of the Insert Benchmark. Each has its own range query.
pub const INDEX_NAMES: [&str; 3] = ["marketsegment", "registersegment", "pdc"];

/// One step of the Insert Benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertStep {
    /// Its position in the list of steps, from 0.
    pub number: u32,
    /// Its name, unique within the plan: `qr100`, `qr100.2`.
    pub name: String,
    /// Its work.
    pub kind: InsertStepKind,
    /// Rows per commit.
    pub rows_per_commit: u32,
}

/// The work of a step of the Insert Benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InsertStepKind {
    /// `l.i0`: inserts without deletes.
    Load {
        /// Rows per table.
        rows: u64,
    },
    /// `l.x`: creates the secondary indexes.
    Index {
        /// Rows per table inserted first.
        rows: u64,
    },
    /// `l.i1`, `l.i2`: inserts, with deletes if the plan has them.
    Write {
        /// Its end.
        until: WriteEnd,
        /// Rows per second and client; `None` for as fast as possible.
        rate: Option<f64>,
    },
    /// `qrN`, `qpN`: queries as fast as possible, while each client inserts (and deletes) N rows
    /// per second.
    Query {
        /// The kind of queries.
        query: Query,
        /// Rows per second and client.
        rate: f64,
        /// Its duration.
        time: Duration,
    },
    /// `settle`
    Settle,
}

/// The end of a step that writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteEnd {
    /// After this many rows per table.
    Rows(u64),
    /// After this time.
    Time(Duration),
}

impl InsertStepKind {
    /// Returns whether it loads the tables.
    pub fn is_load(&self) -> bool {
        matches!(self, Self::Load { .. })
    }
}

impl Insert {
    /// Returns the number of rows that each table gets in all steps together, except in steps that
    /// write for a time.
    pub fn rows_per_table(&self, clients: u32) -> u64 {
        let writers = match self.tables {
            Tables::Shared => f64::from(clients),
            Tables::PerClient => 1.0,
        };
        let rows = |step: &InsertStep| match step.kind {
            InsertStepKind::Load { rows }
            | InsertStepKind::Index { rows }
            | InsertStepKind::Write { until: WriteEnd::Rows(rows), .. } => rows,
            InsertStepKind::Query { rate, time, .. } => {
                (rate * time.as_secs_f64() * writers) as u64
            }
            InsertStepKind::Write { .. } | InsertStepKind::Settle => 0,
        };
        self.steps.iter().map(rows).sum()
    }
}

/// The queries of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Scans of secondary indexes.
    Range,
    /// Lookups by primary key.
    Point,
}

/// The parameters of the key-value sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Kv {
    /// The steps in their order.
    pub steps: Vec<KvStep>,
    /// The number of keys.
    pub keys: u64,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// The share of a value that is random; the rest compresses to nothing.
    pub compression_ratio: f64,
    /// Entries of a scan.
    pub scan_length: u32,
    /// Keys of a multi-get.
    pub multiget_keys: u32,
    /// The share of reads that compare a value with what was written.
    pub verify_share: f64,
    /// The options of all steps: checks, failures and settling.
    pub policy: StepPolicy,
}

/// One step of the key-value sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct KvStep {
    /// Its position in the list of steps, from 0.
    pub number: u32,
    /// Its name, unique within the plan: `readwhilewriting`, `readwhilewriting.2`.
    pub name: String,
    /// Its work.
    pub kind: KvStepKind,
}

/// The work of a step of the key-value sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KvStepKind {
    /// `fillseq`: one client writes all keys in order, without a log.
    FillSeq,
    /// `drain`: waits for compaction.
    Drain,
    /// `flush`: flushes memtables, waits, compacts level 0, waits.
    Flush,
    /// `readrandom`, `multireadrandom`, `fwdrange`, `revrange`
    Read {
        /// The kind of reads.
        read: KvRead,
        /// Its duration.
        time: Duration,
    },
    /// `readwhilewriting`, `multireadwhilewriting`, `fwdrangewhilewriting`, `revrangewhilewriting`
    ReadWhileWriting {
        /// The kind of reads.
        read: KvRead,
        /// Bytes of keys and values that the writer writes per second.
        write_bytes_per_s: u64,
        /// Its duration.
        time: Duration,
    },
    /// `overwritesome`
    OverwriteSome {
        /// Writes of all clients together.
        writes: u64,
    },
    /// `overwrite`: overwrites as fast as possible, then waits for compaction.
    Overwrite {
        /// The time for which it writes.
        time: Duration,
    },
}

/// The kind of reads of a step of the key-value sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvRead {
    /// One random key.
    Get,
    /// Several random keys at once.
    MultiGet,
    /// From a random key upward.
    Forward,
    /// From a random key downward.
    Reverse,
}

/// The parameters of the sysbench microbenchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct Sysbench {
    /// The steps in their order.
    pub steps: Vec<SysbenchStep>,
    /// The number of tables: `sbtest1` ... `sbtestN`.
    pub tables: u32,
    /// Rows per table after `load`.
    pub rows: u64,
    /// Connections that load.
    pub load_connections: u32,
    /// Rows per statement of the load.
    pub load_batch: u32,
    /// There is an index on `k`.
    pub secondary_index: bool,
    /// `id` is the primary key; otherwise it has a secondary index.
    pub primary_key: bool,
    /// The options of all steps: checks, failures and settling.
    pub policy: StepPolicy,
}

impl Sysbench {
    /// Returns whether it loads the rows. If not, the tables exist already, from `sysbench prepare`
    /// or an earlier run.
    pub fn loads(&self) -> bool {
        let loads = |step: &SysbenchStep| step.kind == SysbenchStepKind::Load;
        self.steps.iter().any(loads)
    }

    /// Returns whether it creates the indexes.
    pub fn makes_indexes(&self) -> bool {
        let makes = |step: &SysbenchStep| step.kind == SysbenchStepKind::Index;
        self.steps.iter().any(makes)
    }
}

/// One step of the sysbench microbenchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct SysbenchStep {
    /// Its name, unique within the plan: `read-only.range10.pre`.
    pub name: String,
    /// Its work.
    pub kind: SysbenchStepKind,
}

/// The work of a step of the sysbench microbenchmarks.
#[derive(Clone, Debug, PartialEq)]
pub enum SysbenchStepKind {
    /// `load`: creates all tables with their rows.
    Load,
    /// `index`: creates the index on `k` of each table.
    Index,
    /// `settle`
    Settle,
    /// Runs a test.
    Run {
        /// The test, with its arguments applied.
        test: Test,
        /// The time for which it is measured.
        time: Duration,
        /// The time that it runs before it is measured.
        warmup: Duration,
        /// The distribution of random ids and values of `k`.
        distribution: Distribution,
        /// Events per second and client; `None` for as fast as possible.
        rate: Option<f64>,
        /// Results show it; otherwise it is only recorded.
        reported: bool,
    },
}

/// One installed version of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Build {
    /// Its name in the plan.
    pub name: String,
    /// Its engine.
    pub engine: Engine,
    /// The location of the build.
    pub source: BuildSource,
    /// The URLs of replicas of a running server.
    pub replica_urls: Vec<Secret>,
    /// Factors in which it differs from other builds, with their values.
    pub factors: Vec<(String, String)>,
}

/// The location of a build.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildSource {
    /// Part of Assay.
    Bundled,
    /// A directory, or a name that Assay knows.
    Installed(String),
    /// A running server.
    Url(Secret),
}

/// A named set of options, merged with those of the configs that it extends.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Its name in the plan.
    pub name: String,
    /// The engine it is for.
    pub engine: Engine,
    /// Files in the engine's own format, used verbatim, in order: those of the configs that it
    /// extends come first.
    pub files: Vec<String>,
    /// Options, in the engine's notation; a later one overrides an earlier one of the same name.
    pub set: Vec<(String, String)>,
    /// Options of RocksDB that override `set` during the load; afterwards the database is
    /// reopened.
    pub load: Vec<(String, String)>,
    /// Factors in which it differs from other configs, with their values.
    pub factors: Vec<(String, String)>,
    /// The part of the machine that its server may use.
    pub limits: Limits,
    /// The number of the server's replicas.
    pub replicas: u32,
    /// Replicas get the changes of rows instead of the log (PostgreSQL).
    pub logical_replication: bool,
    /// Options of the replicas, which override `set`.
    pub replica_set: Vec<(String, String)>,
    /// The part of the machine that each replica may use.
    pub replica_limits: Limits,
    /// Connections that only read connect to the replicas.
    pub reads_replicas: bool,
    /// Clients connect to its server by TCP with TLS.
    pub tls: bool,
    /// Options that a version of RocksDB doesn't have are left out and recorded as not applicable;
    /// otherwise the cell fails.
    pub skips_unknown_options: bool,
    /// RocksDB counts and times its operations, which costs some speed.
    pub statistics: bool,
}

impl Config {
    /// Returns a config without options.
    pub(crate) fn new(name: &str, engine: Engine) -> Self {
        Self {
            name: name.to_owned(),
            engine,
            files: Vec::new(),
            set: Vec::new(),
            load: Vec::new(),
            factors: Vec::new(),
            limits: Limits::default(),
            replicas: 0,
            logical_replication: false,
            replica_set: Vec::new(),
            replica_limits: Limits::default(),
            reads_replicas: false,
            tls: false,
            skips_unknown_options: false,
            statistics: false,
        }
    }

    /// Returns the options that it declares, of which `tls` and those of replicas are assay's own;
    /// those of the load have names `load.NAME`.
    pub fn declared(&self) -> Vec<(String, String)> {
        let with_prefix = |(name, value): &(String, String)| {
            let name = name.strip_prefix(TABLE_OPTION).unwrap_or(name);
            (format!("{LOAD_OPTION}{name}"), value.clone())
        };
        let of_load = self.load.iter().map(with_prefix);
        let tls = self.tls.then(|| ("tls".to_owned(), "on".to_owned()));
        let own = tls.into_iter().chain(self.replica_options());
        self.set.iter().cloned().chain(own).chain(of_load).collect()
    }

    /// Returns the options of its replicas: those of `set` and their own.
    pub fn set_of_replicas(&self) -> Vec<(String, String)> {
        self.set.iter().chain(&self.replica_set).cloned().collect()
    }

    /// Returns what it declares about replicas; empty without replicas.
    pub fn replica_options(&self) -> Vec<(String, String)> {
        if self.replicas == 0 && !self.reads_replicas {
            return Vec::new();
        }
        let limits = self.replica_limits.declared().into_iter();
        let limits = limits.map(|(name, value)| (name.to_owned(), value));
        let options = self.replica_set.iter().cloned().chain(limits);
        let options = options.filter(|_| self.replicas > 0);
        let options = options.map(|(name, value)| (format!("replica.{name}"), value));
        let count = self.replicas.to_string();
        let chosen = [
            (self.replicas > 0, "replicas", count.as_str()),
            (self.logical_replication, "replication", "logical"),
            (self.reads_replicas, "reads", "replica"),
        ];
        let chosen = chosen.into_iter().filter(|(is_chosen, ..)| *is_chosen);
        let chosen = chosen.map(|(_, name, value)| (name.to_owned(), value.to_owned()));
        chosen.chain(options).collect()
    }
}

/// The prefix of options of the load, in a list with other options.
pub const LOAD_OPTION: &str = "load.";
/// The prefix that names of RocksDB's table options may have.
const TABLE_OPTION: &str = "block_based_table_factory.";

/// A build with a config.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// `build.config`
    pub name: String,
    /// Index in the plan's builds.
    pub build: usize,
    /// Index in the plan's configs.
    pub config: usize,
}

impl Workload {
    /// Returns its name in plans and records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Insert(_) => "insert",
            Self::Kv(_) => "kv",
            Self::Sysbench(_) => "sysbench",
        }
    }

    /// Returns its steps, without what depends on the workload.
    pub fn steps(&self) -> Vec<StepRun<'_>> {
        match self {
            Self::Insert(insert) => insert.steps.iter().map(InsertStep::run).collect(),
            Self::Kv(kv) => kv.steps.iter().map(KvStep::run).collect(),
            Self::Sysbench(sysbench) => sysbench.steps.iter().map(SysbenchStep::run).collect(),
        }
    }

    /// Returns the rate of a step per second and client: `Some(None)` if it has none but may have
    /// one, `None` if it can't have one or there is no such step.
    pub fn step_rate(&self, name: &str) -> Option<Option<f64>> {
        match self {
            Self::Insert(insert) => {
                let step = insert.steps.iter().find(|step| step.name == name)?;
                match step.kind {
                    InsertStepKind::Write { rate, .. } => Some(rate),
                    InsertStepKind::Query { rate, .. } if rate > 0.0 => Some(Some(rate)),
                    _ => None,
                }
            }
            Self::Sysbench(sysbench) => {
                let step = sysbench.steps.iter().find(|step| step.name == name)?;
                match step.kind {
                    SysbenchStepKind::Run { rate, .. } => Some(rate),
                    _ => None,
                }
            }
            Self::Kv(_) => None,
        }
    }

    /// Returns the number of steps up to the one that loads, including that one.
    pub fn steps_to_load(&self) -> usize {
        match self {
            Self::Insert(insert) => {
                let mut steps = insert.steps.iter();
                steps.position(|step| step.kind.is_load()).unwrap_or(0) + 1
            }
            _ => 1,
        }
    }

    /// Returns the options of all its steps: checks, failures and settling.
    pub fn policy(&self) -> &StepPolicy {
        match self {
            Self::Insert(insert) => &insert.policy,
            Self::Kv(kv) => &kv.policy,
            Self::Sysbench(sysbench) => &sysbench.policy,
        }
    }

    /// Returns the reason why an engine can't run it; `None` if the engine can.
    pub(crate) fn not_applicable_to(&self, engine: Engine) -> Option<&'static str> {
        match self {
            Self::Sysbench(sysbench)
                if engine.facts().assigns_only_primary_keys && !sysbench.primary_key =>
            {
                Some(
                    "SQLite assigns keys only where they are the primary key, and `primary-key` is false",
                )
            }
            _ => None,
        }
    }
}
