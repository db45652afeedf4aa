//! The options of `versus` and `init`, which write plans.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plan::Reuse;
use plan::draft::DraftWorkload;

use super::run::{ExactArg, PlaceArgs};

/// Arguments of `versus`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  assay versus postgres@15.3 postgres@17.2
  assay versus rocksdb@8.5.4 rocksdb@9.9.3 --quick
  assay versus postgres@15.3 postgres@17.2 --config synchronous_commit=on
  assay versus --config synchronous_commit=on --config synchronous_commit=off postgres
  assay versus sqlite --config 'synchronous=full cache_size=-1000'
  assay versus --aa postgres@17.2

The first target is the base. With one build and one `--config`, the base is the build without it; with several builds, \
it applies to all. By the plan's defaults, which `--dry-run` prints, commits don't wait for the disk: PostgreSQL has \
`synchronous_commit=off`. The plan is saved in the results directory: edit it and run it again with `assay run`.")]
pub struct VersusArgs {
    /// A version to fetch (`postgres@17.2`), a build listed by `assay builds`, or an engine:
    /// `sqlite`, which is bundled; `postgres` or `mysql` as installed on the system; `rocksdb` or
    /// `speedb` for the newest downloaded build
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    /// Engine options to compare, separated by spaces and added to the plan's defaults. May be
    /// repeated
    #[arg(long = "config", value_name = "OPTION=VALUE...")]
    pub configs: Vec<String>,
    /// Numbers of clients, separated by commas; each is measured
    #[arg(
        long,
        value_name = "N,...",
        default_value = "1",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=i64::from(plan::CLIENTS_MAX))
    )]
    pub clients: Vec<u32>,
    /// The workload [default: insert; kv for RocksDB and Speedb]
    #[arg(long, value_enum)]
    pub workload: Option<WorkloadName>,
    /// Sets a value of the plan, such as `workload.kv.keys=1M`. May be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// The time limit of the run. Until then, the run adds repeats as long as a comparison is
    /// undecided; with `--aa`, as many as are expected to fit
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = plan::parse_duration)]
    pub time: Duration,
    /// Measures 5 repeats of 0.6-second steps, enough to show only large changes
    #[arg(long, conflicts_with = "time")]
    pub quick: bool,
    #[command(flatten)]
    pub exact: ExactArg,
    /// Compares one target with itself, which shows this machine's noise
    #[arg(long)]
    pub aa: bool,
    /// Which targets load a database; the others begin with a copy. Targets that share a load differ
    /// less by chance, and have one result for the load
    #[arg(long, value_name = "TARGETS", default_value = "each", conflicts_with = "reuse")]
    pub load: Loads,
    /// Begins with copies of databases in DIR that earlier runs loaded, and keeps new ones there
    #[arg(long, value_name = "DIR")]
    pub reuse: Option<PathBuf>,
    /// Prints the plan without downloading, writing or running anything
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// An engine or a build, as for `versus`
    #[arg(value_name = "ENGINE", default_value = "sqlite")]
    pub target: String,
    /// The workload [default: insert; kv for RocksDB and Speedb]
    #[arg(long, value_enum)]
    pub workload: Option<WorkloadName>,
    /// The file to write; must not exist
    #[arg(long, short, value_name = "FILE", default_value = "plan.toml")]
    pub output: PathBuf,
}

/// The cells of `versus` that load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Loads {
    /// Every target, in each repeat
    Each,
    /// One target in each repeat, for all targets with the same database: those of one build whose
    /// configs differ only in memory, durability or the like
    Repeat,
    /// One target in the first repeat, for all targets with the same database. Intervals hold only
    /// for this load
    Once,
}

impl Loads {
    /// Returns the plan's word for it.
    pub fn reuse(self) -> Reuse {
        match self {
            Self::Each => Reuse::Off,
            Self::Repeat => Reuse::Repeat,
            Self::Once => Reuse::Run,
        }
    }
}

/// A workload on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadName {
    /// The Insert Benchmark
    Insert,
    /// The microbenchmarks of sysbench, on servers and SQLite
    Sysbench,
    /// The key-value sequence, on RocksDB and Speedb
    Kv,
    /// The transaction of pgbench, on servers and SQLite
    Tpcb,
    /// Order entry, on servers and SQLite
    Orders,
    /// The core workloads A to F of YCSB, on servers and SQLite
    Ycsb,
}

impl From<WorkloadName> for DraftWorkload {
    fn from(name: WorkloadName) -> Self {
        match name {
            WorkloadName::Insert => Self::Insert,
            WorkloadName::Sysbench => Self::Sysbench,
            WorkloadName::Kv => Self::Kv,
            WorkloadName::Tpcb => Self::Tpcb,
            WorkloadName::Orders => Self::Orders,
            WorkloadName::Ycsb => Self::Ycsb,
        }
    }
}
