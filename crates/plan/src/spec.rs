//! A plan that was understood: every value present, every name resolved.

use std::time::Duration;

use crate::diagnostic::Place;
use crate::order;
use crate::sysbench::Test;

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

/// The order in which cells are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Repeats are the outer loop. In each the targets are in a random order, which the next one mirrors: `ab ba`, or
    /// `ba ab`. Neither drift nor a rhythm of the machine then favors a target.
    Interleaved,
    /// a a b b ...
    Grouped,
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

/// What every workload says of its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
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
    /// Rows per table written by `l.i1` (4/5) and `l.i2` (1/5).
    pub write_rows: u64,
    /// The length of each read-write step.
    pub read_write_time: Duration,
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
    /// The shortest and longest value of the column `data`, in characters.
    pub data_length: (u32, u32),
    /// How steps are checked, fail and settle.
    pub terms: Terms,
}

/// One table for each client, or one for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// `pi1` ... `piN`
    PerClient,
    /// `pi1` alone
    Shared,
}

/// With how many statements the indexes of a table are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexStatements {
    /// As suits the engine: InnoDB one, the others one for each.
    Usual,
    /// One for all, where the engine has such a statement.
    One,
    /// One for each index.
    Each,
}

/// Which definition of the secondary indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexSet {
    /// Since December 2023.
    Current,
    /// Before December 2023.
    Before2023Dec,
}

/// How much is checked after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// Counts, smallest and largest key, every index: reads all of the database.
    Full,
    /// Smallest and largest key.
    Keys,
    /// Nothing.
    Off,
}

/// One step of the Insert Benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertStep {
    /// Its name, unique within the plan: `qr100`, `qr100.2`.
    pub name: String,
    /// What it does.
    pub kind: InsertStepKind,
}

/// What a step of the Insert Benchmark does.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertStepKind {
    /// `l.i0`: inserts without secondary indexes and without deletes.
    Load {
        /// Rows per table.
        rows: u64,
        /// Rows per commit.
        rows_per_commit: u32,
    },
    /// `l.x`: creates the secondary indexes.
    Index {
        /// Rows per table inserted first.
        rows: u64,
        /// Rows per commit.
        rows_per_commit: u32,
    },
    /// `l.i1`, `l.i2`: inserts, and deletes if the plan has them.
    Write {
        /// Rows per table.
        rows: u64,
        /// Rows per commit.
        rows_per_commit: u32,
    },
    /// `qrN`, `qpN`: queries as fast as they go, with N rows inserted (and deleted) each second for each client.
    Query {
        /// Which queries.
        query: Query,
        /// Rows per second and client.
        rate: f64,
        /// Rows per commit.
        rows_per_commit: u32,
        /// How long.
        time: Duration,
    },
    /// `settle`
    Settle,
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
    /// Bytes of keys and values that the writer beside readers writes per second.
    pub write_bytes_per_s: u64,
    /// The length of each step that only reads.
    pub read_time: Duration,
    /// The length of each step that writes for a time.
    pub read_write_time: Duration,
    /// Entries of a scan.
    pub scan_length: u32,
    /// Keys of a read of several.
    pub multiget_keys: u32,
    /// The share of read operations of which a value is compared with what was written.
    pub verify_share: f64,
    /// How steps are checked, fail and settle.
    pub terms: Terms,
}

/// One step of the key-value sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct KvStep {
    /// Its name, unique within the plan: `readwhilewriting`, `readwhilewriting.2`.
    pub name: String,
    /// What it does.
    pub kind: KvStepKind,
}

/// What a step of the key-value sequence does.
#[derive(Clone, Debug, PartialEq)]
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
    /// How random ids and values of `k` are drawn.
    pub distribution: Distribution,
    /// Whether statements are prepared, where they don't say themselves.
    pub prepared: bool,
    /// How long each test runs before it is measured.
    pub warmup: Duration,
    /// The length of each test that reads.
    pub read_time: Duration,
    /// The length of each test that writes.
    pub write_time: Duration,
    /// Events per second and client; `None`: as fast as they go.
    pub rate: Option<f64>,
    /// How steps are checked, fail and settle.
    pub terms: Terms,
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

/// How random ids and values of `k` are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Each as often as any other.
    Uniform,
    /// The n-th as often as n to the power of minus `exponent`.
    Zipfian {
        /// More than 0.
        exponent: f64,
    },
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

/// An engine by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The bundled SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
    /// RocksDB and what is made from it.
    RocksDb,
    /// Nothing at all: measures assay itself.
    Null,
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

/// Text that may hold a password: it can't be printed, and what is printed of it has no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps text that may hold a password.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the connection alone.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text without what stands between `:` and the last `@` after `//`, and without a `password=` parameter.
    pub fn redacted(&self) -> String {
        let mut text = match (self.0.find("//"), self.0.rfind('@')) {
            (Some(start), Some(at)) if at > start => match self.0[start + 2..at].find(':') {
                Some(colon) => format!("{}***{}", &self.0[..start + 2 + colon + 1], &self.0[at..]),
                None => self.0.clone(),
            },
            _ => self.0.clone(),
        };
        if let Some(start) = text.find("password=") {
            let from = start + "password=".len();
            let to = text[from..].find('&').map_or(text.len(), |end| from + end);
            text.replace_range(from..to, "***");
        }
        text
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.redacted())
    }
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
    /// Options of RocksDB for the first step, which loads, over those of `set`: the database is opened anew after it.
    pub load: Vec<(String, String)>,
    /// What its server may use of the machine.
    pub limits: Limits,
    /// What becomes of options that a version of RocksDB doesn't know.
    pub unknown_options: UnknownOptions,
    /// RocksDB counts and times what it does, which costs some of its speed.
    pub statistics: bool,
}

impl Config {
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

/// What becomes of an option that a version of RocksDB doesn't know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownOptions {
    /// The cell fails.
    #[default]
    Refuse,
    /// It is left out and recorded as not applicable.
    Skip,
}

/// What a server may use of the machine; `None`: all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory in bytes, with what the kernel caches of its files.
    pub memory_bytes: Option<u64>,
    /// The CPUs, by number, ascending.
    pub cpus: Option<Vec<u32>>,
}

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

/// One target with one variant of the workload at one number of clients, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index in the plan's targets.
    pub target: usize,
    /// Index in the plan's variants.
    pub variant: usize,
    /// Clients.
    pub clients: u32,
    /// Which repeat, from 1.
    pub repeat: u32,
}

/// One value of the plan, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Its dotted key: `workload.insert.initial-rows`.
    pub key: String,
    /// Its value in the plan's notation.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
    /// Its place, for a [`Diagnostic`](crate::Diagnostic).
    pub place: Place,
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody gave it.
    Default,
    /// The plan file, line and column from 1.
    File {
        /// Line.
        line: u32,
        /// Column, in characters.
        column: u32,
    },
    /// A `--set` argument.
    Set,
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

    /// How its steps are checked, fail and settle.
    pub fn terms(&self) -> &Terms {
        match self {
            Self::Insert(insert) => &insert.terms,
            Self::Kv(kv) => &kv.terms,
            Self::Sysbench(sysbench) => &sysbench.terms,
        }
    }
}

impl Workload {
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

/// A target with a variant of the workload that its engine can't run: it has no cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotApplicable {
    /// Index in the plan's targets.
    pub target: usize,
    /// Index in the plan's variants.
    pub variant: usize,
    /// Why.
    pub why: &'static str,
}

impl Plan {
    /// What of the matrix has no cells.
    pub fn not_applicable(&self) -> Vec<NotApplicable> {
        let mut pairs = Vec::new();
        for variant in 0..self.variants.len() {
            for target in 0..self.targets.len() {
                let of = |why| NotApplicable {
                    target,
                    variant,
                    why,
                };
                pairs.extend(self.why_not_applicable(target, variant).map(of));
            }
        }
        pairs
    }

    fn why_not_applicable(&self, target: usize, variant: usize) -> Option<&'static str> {
        let engine = self.builds[self.targets[target].build].engine;
        self.variants[variant].workload.not_applicable_to(engine)
    }

    /// The cells in the order in which they are run.
    pub fn cells(&self) -> Vec<Cell> {
        let (targets, variants) = (0..self.targets.len(), 0..self.variants.len());
        let mut cells = Vec::new();
        let mut add = |target: usize, variant: usize, clients: u32, repeat: u32| {
            if self.why_not_applicable(target, variant).is_none() {
                cells.push(Cell {
                    target,
                    variant,
                    clients,
                    repeat,
                });
            }
        };
        match self.order {
            Order::Interleaved => {
                for repeat in 1..=self.repeats {
                    for variant in variants.clone() {
                        for &clients in &self.clients {
                            let round = order::round(
                                targets.len(),
                                [self.seed, variant as u64, clients.into()],
                                repeat,
                            );
                            for target in round {
                                add(target, variant, clients, repeat);
                            }
                        }
                    }
                }
            }
            Order::Grouped => {
                for target in targets {
                    for variant in variants.clone() {
                        for &clients in &self.clients {
                            for repeat in 1..=self.repeats {
                                add(target, variant, clients, repeat);
                            }
                        }
                    }
                }
            }
        }
        cells
    }
}
