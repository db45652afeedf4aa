//! A plan that was understood: every value present, every name resolved.

use std::time::Duration;

pub use words::{IndexStatements, Limits};
use words::{Secret, named_enum};

use crate::reader::Resolved;
use crate::sysbench::test::{Distribution, Test};

/// Everything that a run needs to know, from one plan file, `--set` and defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name, part of the run directory's.
    pub name: String,
    /// The numbers of clients to run with.
    pub clients: Vec<u32>,
    /// How often each cell is run.
    pub repeats: u32,
    /// The order of the cells.
    pub order: Order,
    /// The index in `targets` of the one that others are compared to.
    pub base: usize,
    /// The targets are one and its twin, the same build with the same config: the plan asks for the noise.
    pub against_itself: bool,
    /// The seed of all data and random choices.
    pub seed: u64,
    /// Where databases are made; `None`: beside the results.
    pub data_dir: Option<String>,
    /// Whether a cell's database is kept when the cell has ended.
    pub keep_data: bool,
    /// How long a server may take to start or stop.
    pub server_timeout: Duration,
    /// The system user that runs servers that refuse to run as root; `None`: chosen when needed.
    pub server_user: Option<String>,
    /// What is run on each target: at least one, and only one without a name.
    pub variants: Vec<Variant>,
    /// The builds, in the order of the file.
    pub builds: Vec<Build>,
    /// The configs, in the order of the file.
    pub configs: Vec<Config>,
    /// What is measured, in the order of the file.
    pub targets: Vec<Target>,
    /// Every value with its origin, in the order in which `check` shows them.
    pub resolved: Vec<Resolved>,
}

named_enum! {
    /// The order in which cells are run.
    pub enum Order {
        /// Repeats are the outer loop. In each the targets are in a random order, which the next one mirrors: `ab ba`, or
        /// `ba ab`. Neither drift nor a rhythm of the machine then favors a target.
        Interleaved = "interleaved",
        /// a a b b ...
        Grouped = "grouped",
    }
}

/// One way in which the workload is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name in the plan; `None` where the plan declares no variants.
    pub name: Option<String>,
    /// The workload with what the variant changes applied.
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

/// How a step is run, whatever its workload does in it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRun<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it measures anything; otherwise it only settles.
    pub measures: bool,
    /// How long it is measured; `None`: until its work is done.
    pub time: Option<Duration>,
    /// How long its work is done before it is measured.
    pub warmup: Duration,
    /// How the engine settles, after what is measured and not as part of it.
    pub settle: Option<Settle>,
    /// Whether it is shown among the results, and not only recorded.
    pub reported: bool,
}

impl<'a> StepRun<'a> {
    fn measured(name: &'a str, time: Option<Duration>) -> Self {
        Self {
            name,
            measures: true,
            time,
            warmup: Duration::ZERO,
            settle: None,
            reported: true,
        }
    }

    fn settling(name: &'a str, settle: Settle) -> Self {
        Self {
            measures: false,
            settle: Some(settle),
            ..Self::measured(name, None)
        }
    }
}

impl InsertStep {
    fn run(&self) -> StepRun<'_> {
        match self.kind {
            // As MyRocks settles, on RocksDB too.
            InsertStepKind::Settle => StepRun::settling(&self.name, Settle::EmptyLevel0),
            InsertStepKind::Query { time, .. }
            | InsertStepKind::Write {
                until: WriteEnd::Time(time),
            } => StepRun::measured(&self.name, Some(time)),
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
            SysbenchStepKind::Run {
                time,
                warmup,
                reported,
                ..
            } => StepRun {
                warmup: *warmup,
                reported: *reported,
                ..StepRun::measured(&self.name, Some(*time))
            },
        }
    }
}

/// How far an engine settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settle {
    /// What is pending is done.
    Pending,
    /// And level 0 of an LSM tree is compacted into the next.
    EmptyLevel0,
}

/// What every workload says of its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPolicy {
    /// What is compared with what the workload knows it did, after each step.
    pub checks: Checks,
    /// Failed operations that end a step as failed.
    pub error_limit: u64,
    /// Attempts at an operation that fails with a transient error, the first included.
    pub attempts: u32,
    /// The least time that settling takes.
    pub settle_at_least: Duration,
    /// When settling stops waiting for pending work.
    pub settle_at_most: Duration,
}

/// The parameters of the Insert Benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The steps in their order.
    pub steps: Vec<InsertStep>,
    /// Rows per table loaded by `l.i0`.
    pub initial_rows: u64,
    /// Whether every insert comes with a delete of as many of the oldest rows.
    pub delete_per_insert: bool,
    /// How `l.x` makes the indexes of a table.
    pub index_statements: IndexStatements,
    /// Whether `l.i0` uses what the engine has to load many rows at once, where it has something.
    pub bulk_load: bool,
    /// One table for each client, or one for all.
    pub tables: Tables,
    /// Range partitions per table; 0 for none.
    pub partitions: u32,
    /// How long the extra connection of each client holds its transaction; `None` without one.
    pub long_transaction: Option<Duration>,
    /// The definition of the secondary indexes.
    pub indexes: IndexSet,
    /// How many of [`INDEX_NAMES`] there are, the first ones.
    pub secondary_indexes: u32,
    /// The shortest and longest value of the column `data`, in characters.
    pub data_length: (u32, u32),
    /// How steps are checked, fail and settle.
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
    /// Which definition of the secondary indexes.
    pub enum IndexSet {
        /// Since December 2023.
        Current = "current",
        /// Before December 2023.
        Before2023Dec = "before-2023-12",
    }
}

named_enum! {
    /// How much is checked after each step.
    pub enum Checks {
        /// Counts, smallest and largest key, every index: reads all of the database.
        Full = "full",
        /// Smallest and largest key.
        Keys = "keys",
        /// Nothing.
        Off = "off",
    }
}

/// The secondary indexes of the Insert Benchmark; each is scanned by a range query of its own.
pub const INDEX_NAMES: [&str; 3] = ["marketsegment", "registersegment", "pdc"];

/// One step of the Insert Benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertStep {
    /// Its position in the plan, from 0.
    pub number: u32,
    /// Its name, unique within the plan: `qr100`, `qr100.2`.
    pub name: String,
    /// What it does.
    pub kind: InsertStepKind,
    /// Rows per commit.
    pub rows_per_commit: u32,
}

/// What a step of the Insert Benchmark does.
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
    /// `l.i1`, `l.i2`: inserts, and deletes if the plan has them.
    Write {
        /// When it ends.
        until: WriteEnd,
    },
    /// `qrN`, `qpN`: queries as fast as they go, with N rows inserted (and deleted) each second for each client, where N is
    /// not 0.
    Query {
        /// Which queries.
        query: Query,
        /// Rows per second and client.
        rate: f64,
        /// How long.
        time: Duration,
    },
    /// `settle`
    Settle,
}

/// When a step ends that writes as fast as it goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteEnd {
    /// After so many rows per table.
    Rows(u64),
    /// After so long.
    Time(Duration),
}

impl InsertStepKind {
    /// Returns whether it loads the tables.
    pub fn is_load(&self) -> bool {
        matches!(self, Self::Load { .. })
    }
}

impl Insert {
    /// Returns how many keys each table gets in all steps together, as far as the plan says it.
    pub fn rows_per_table(&self, clients: u32) -> u64 {
        let writers = match self.tables {
            Tables::Shared => f64::from(clients),
            Tables::PerClient => 1.0,
        };
        let rows = |step: &InsertStep| match step.kind {
            InsertStepKind::Load { rows }
            | InsertStepKind::Index { rows }
            | InsertStepKind::Write {
                until: WriteEnd::Rows(rows),
            } => rows,
            InsertStepKind::Query { rate, time, .. } => {
                (rate * time.as_secs_f64() * writers) as u64
            }
            InsertStepKind::Write { .. } | InsertStepKind::Settle => 0,
        };
        self.steps.iter().map(rows).sum()
    }
}

/// Which queries a query step does.
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
    /// Keys.
    pub keys: u64,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// The share of a value that remains when it is compressed well.
    pub compression_ratio: f64,
    /// Entries of a scan.
    pub scan_length: u32,
    /// Keys of a read of several.
    pub multiget_keys: u32,
    /// The share of read operations of which a value is compared with what was written.
    pub verify_share: f64,
    /// How steps are checked, fail and settle.
    pub policy: StepPolicy,
}

/// One step of the key-value sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct KvStep {
    /// Its position in the plan, from 0.
    pub number: u32,
    /// Its name, unique within the plan: `readwhilewriting`, `readwhilewriting.2`.
    pub name: String,
    /// What it does.
    pub kind: KvStepKind,
}

/// What a step of the key-value sequence does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KvStepKind {
    /// `fillseq`: writes all keys in their order, one client, without a log.
    FillSeq,
    /// `drain`: waits for compaction.
    Drain,
    /// `flush`: flushes memtables, waits, compacts level 0, waits.
    Flush,
    /// `readrandom`, `multireadrandom`, `fwdrange`, `revrange`
    Read {
        /// How it reads.
        read: KvRead,
        /// How long.
        time: Duration,
    },
    /// `readwhilewriting`, `multireadwhilewriting`, `fwdrangewhilewriting`, `revrangewhilewriting`
    ReadWhileWriting {
        /// How it reads.
        read: KvRead,
        /// Bytes of keys and values that the writer writes per second.
        write_bytes_per_s: u64,
        /// How long.
        time: Duration,
    },
    /// `overwritesome`
    OverwriteSome {
        /// Writes of all clients together.
        writes: u64,
    },
    /// `overwrite`: overwrites as fast as it goes, then waits for compaction.
    Overwrite {
        /// How long it writes.
        time: Duration,
    },
}

/// How a step of the key-value sequence reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvRead {
    /// One random key.
    Get,
    /// Several random keys at once.
    MultiGet,
    /// From a random key on, upwards.
    Forward,
    /// From a random key on, downwards.
    Reverse,
}

/// The parameters of the sysbench microbenchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct Sysbench {
    /// The steps in their order.
    pub steps: Vec<SysbenchStep>,
    /// Tables: `sbtest1` ... `sbtestN`.
    pub tables: u32,
    /// Rows per table that `load` makes.
    pub rows: u64,
    /// Connections that load.
    pub load_connections: u32,
    /// Rows per statement of the load.
    pub load_batch: u32,
    /// Whether there is an index on `k`.
    pub secondary_index: bool,
    /// Whether `id` is the primary key; otherwise it has a secondary index.
    pub primary_key: bool,
    /// How steps are checked, fail and settle.
    pub policy: StepPolicy,
}

impl Sysbench {
    /// Whether it makes the rows; otherwise they are there, as `sysbench prepare` or an earlier run left them.
    pub fn loads(&self) -> bool {
        let loads = |step: &SysbenchStep| step.kind == SysbenchStepKind::Load;
        self.steps.iter().any(loads)
    }

    /// Whether it makes the indexes.
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
    /// What it does.
    pub kind: SysbenchStepKind,
}

/// What a step of the sysbench microbenchmarks does.
#[derive(Clone, Debug, PartialEq)]
pub enum SysbenchStepKind {
    /// `load`: makes the rows of all tables.
    Load,
    /// `index`: creates the index on `k` of each table.
    Index,
    /// `settle`
    Settle,
    /// Runs a test.
    Run {
        /// The test, its arguments put in.
        test: Test,
        /// How long it is measured.
        time: Duration,
        /// How long it runs before.
        warmup: Duration,
        /// How random ids and values of `k` are drawn.
        distribution: Distribution,
        /// Events per second and client; `None`: as fast as they go.
        rate: Option<f64>,
        /// Whether it is shown among the results, and not only recorded.
        reported: bool,
    },
}

named_enum! {
    /// An engine by its name.
    pub enum Engine {
        /// The bundled SQLite.
        Sqlite = "sqlite",
        /// PostgreSQL.
        Postgres = "postgres",
        /// MySQL and MariaDB.
        Mysql = "mysql",
        /// RocksDB and what is made from it.
        RocksDb = "rocksdb",
        /// Nothing at all: measures assay itself.
        Null = "null",
    }
}

/// One installed version of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Build {
    /// Its name in the plan.
    pub name: String,
    /// Its engine.
    pub engine: Engine,
    /// Where it is.
    pub source: BuildSource,
    /// What tells it from other builds, by the names of factors.
    pub factors: Vec<(String, String)>,
}

/// Where a build is.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildSource {
    /// Part of assay.
    Bundled,
    /// A directory, or a name that assay knows.
    Installed(String),
    /// A server that runs already.
    Url(Secret),
}

/// A named set of options, with what it extends already applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Its name in the plan.
    pub name: String,
    /// The engine it is for.
    pub engine: Engine,
    /// Files in the engine's own format, used verbatim, in their order: those of what it extends come first.
    pub files: Vec<String>,
    /// Options, in the engine's notation; a later one wins over an earlier one of the same name.
    pub set: Vec<(String, String)>,
    /// Options of RocksDB for the load, over those of `set`: the database is opened anew after it.
    pub load: Vec<(String, String)>,
    /// What tells it from other configs, by the names of factors.
    pub factors: Vec<(String, String)>,
    /// What its server may use of the machine.
    pub limits: Limits,
    /// Options that a version of RocksDB doesn't know are left out and recorded as not applicable; otherwise the cell
    /// fails.
    pub skips_unknown_options: bool,
    /// RocksDB counts and times what it does, which costs some of its speed.
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
            skips_unknown_options: false,
            statistics: false,
        }
    }

    /// The options that it declares; those of the load alone are called `load.NAME`.
    pub fn declared(&self) -> Vec<(String, String)> {
        let of_load = |(name, value): &(String, String)| {
            let name = name.strip_prefix(TABLE_OPTION).unwrap_or(name);
            (format!("{LOAD_OPTION}{name}"), value.clone())
        };
        let of_load = self.load.iter().map(of_load);
        self.set.iter().cloned().chain(of_load).collect()
    }
}

/// How the names of options of the load alone begin, where they stand beside others.
pub const LOAD_OPTION: &str = "load.";
/// How the names of RocksDB's options of tables may begin.
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
    /// Its name in plans and records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Insert(_) => "insert",
            Self::Kv(_) => "kv",
            Self::Sysbench(_) => "sysbench",
        }
    }

    /// Its steps, as far as they are alike in all workloads.
    pub fn steps(&self) -> Vec<StepRun<'_>> {
        match self {
            Self::Insert(insert) => insert.steps.iter().map(InsertStep::run).collect(),
            Self::Kv(kv) => kv.steps.iter().map(KvStep::run).collect(),
            Self::Sysbench(sysbench) => sysbench.steps.iter().map(SysbenchStep::run).collect(),
        }
    }

    /// How many of its steps there are up to the one that loads, that included.
    pub fn steps_to_load(&self) -> usize {
        match self {
            Self::Insert(insert) => {
                let mut steps = insert.steps.iter();
                steps.position(|step| step.kind.is_load()).unwrap_or(0) + 1
            }
            _ => 1,
        }
    }

    /// How its steps are checked, fail and settle.
    pub fn policy(&self) -> &StepPolicy {
        match self {
            Self::Insert(insert) => &insert.policy,
            Self::Kv(kv) => &kv.policy,
            Self::Sysbench(sysbench) => &sysbench.policy,
        }
    }

    /// Why it is not applicable to an engine; `None` where it is.
    pub(crate) fn not_applicable_to(&self, engine: Engine) -> Option<&'static str> {
        match self {
            Self::Sysbench(sysbench) if engine == Engine::Sqlite && !sysbench.primary_key => Some(
                "SQLite assigns keys only where they are the primary key, and `primary-key` is false",
            ),
            _ => None,
        }
    }
}
