//! The command line.

use std::path::PathBuf;

use analysis::THROUGHPUT;
use clap::{Args, Parser, Subcommand, ValueEnum};
use words::{METRICS, Metric};

/// Measures database storage engines and says what changed and why.
#[derive(Debug, Parser)]
#[command(
    name = "assay",
    version = crate::version::TEXT.as_str(),
    about,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 ok, 1 a run or step failed, 2 usage or plan error, 3 a regression is shown (`compare \
                        --gate`), 4 a result is invalid or too noisy to judge, 130 interrupted."
)]
pub struct Cli {
    /// What is to be done.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compares versions or configurations of an engine: fetches them, writes a plan, runs it
    Versus(VersusArgs),
    /// Writes a first plan for an engine, with comments
    Init(InitArgs),
    /// Runs a plan; without one, the Insert Benchmark, small, on the bundled SQLite in two configurations
    Run(RunArgs),
    /// Shows what a plan comes to: cells, time, disk, builds, and what is wrong with it; runs nothing
    Check(CheckArgs),
    /// Prints the tables of a run
    Show(ShowArgs),
    /// Says which targets are faster or slower than a base, by how much and how surely, and why
    Compare(CompareArgs),
    /// Writes a run, or several, as one self-contained HTML file
    Report(ReportArgs),
    /// Writes what a run came to, or several, for other tools: CSV, Parquet, benchstat, HdrHistogram
    Export(ExportArgs),
    /// Installs builds of engines side by side, without touching the system
    Fetch(FetchArgs),
    /// Lists the builds that were fetched
    Builds(BuildsArgs),
    /// Shows what a run would note about this machine, with warnings
    Host(HostArgs),
    /// The process of one cell, which `run` starts
    #[command(hide = true)]
    Cell(CellArgs),
    /// Says in JSON what a library is, which is loaded to find out
    #[command(hide = true)]
    Library(LibraryArgs),
}

/// A plan and changes to it.
#[derive(Clone, Debug, Default, Args)]
pub struct PlanArgs {
    /// The plan file (TOML); without one, the built-in plan
    pub plan: Option<PathBuf>,
    /// Sets one value of the plan, as in `workload.insert.initial-rows=1M`; an option of a config as the engine reads it,
    /// as in `config.rocksdb.a.set.block_cache={capacity=1G;num_shard_bits=6}`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

/// Arguments of `run`.
#[derive(Clone, Debug, Default, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Measures only the cells that match: a glob over the target's name, as in `pg17.*`, or with a
    /// slash over TARGET/[VARIANT/]cCLIENTS/rREPEAT, as in `*/c8/*`; may be repeated
    #[arg(long, value_name = "FILTER")]
    pub only: Vec<String>,
    /// Goes on with a run: measures its missing and failed cells, by the plan that it recorded. A
    /// plan with a password, which is not recorded, is given again
    #[arg(long, value_name = "RUN", conflicts_with = "results")]
    pub resume: Option<PathBuf>,
    /// With `--resume`: measures the cells that match until there are so many repeats of each; what is measured stays
    #[arg(long, value_name = "N", requires = "resume", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: Option<u32>,
    /// Measures a target against itself, the first one or that of `--only`, by turns, with 5 repeats if the plan has
    /// fewer: what differs is this machine's noise
    #[arg(long, conflicts_with = "resume")]
    pub aa: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Where run directories are made, unless the command line says otherwise.
pub const RESULTS: &str = "results";
/// Where databases are made in that, unless the plan or the command line says otherwise.
pub const DATA: &str = "data";

/// Where a run works, and whether it says so.
#[derive(Clone, Debug, Default, Args)]
pub struct PlaceArgs {
    /// Where run directories are made
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    pub results: PathBuf,
    /// Where databases are made; overrides the plan's `data-dir`, or where the run made them before
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Shows no progress and no tables
    #[arg(long, short)]
    pub quiet: bool,
    /// Serves metrics for Prometheus at `/metrics`, and at `/` a page with the charts of the running step, while the run
    /// goes on: `127.0.0.1:9187`
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Lets `--listen` take an address that other machines can reach; no password is asked for
    #[arg(long, requires = "listen")]
    pub listen_anywhere: bool,
}

/// Arguments of `versus`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  assay versus postgres@15.3 postgres@17.2
  assay versus rocksdb@8.5.4 rocksdb@9.9.3 --quick
  assay versus --config synchronous_commit=on --config synchronous_commit=off postgres
  assay versus sqlite --config 'synchronous=full cache_size=-1000'
  assay versus --aa postgres@17.2

The first target is the base of the comparison. One `--config` on one build is compared with none. The plan is kept in the \
directory of results, to be edited and run again by `assay run`.")]
pub struct VersusArgs {
    /// A version as `assay fetch` takes it (`postgres@17.2`), a build of `assay builds`, or an engine: `sqlite`,
    /// `postgres` and `mysql` as the distribution has them, the newest `rocksdb` or `speedb` that was fetched
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    /// Options of the engine, with spaces between them, over those that the plan begins with; may be repeated
    #[arg(long = "config", value_name = "OPTION=VALUE...")]
    pub configs: Vec<String>,
    /// What is run; by default the Insert Benchmark, on RocksDB the key-value sequence
    #[arg(long, value_enum)]
    pub workload: Option<WorkloadName>,
    /// How long the run may take, as far as `assay check` can tell; as many repeats are measured as fit
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub minutes: u32,
    /// Measures 3 repeats of steps of 1 s, which show large changes alone
    #[arg(long, conflicts_with = "minutes")]
    pub quick: bool,
    /// Measures the one target against itself: what differs is this machine's noise
    #[arg(long)]
    pub aa: bool,
    /// Prints the plan; fetches, writes and runs nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// The engine, or a build of it, named as for `versus`
    #[arg(value_name = "ENGINE", default_value = "sqlite")]
    pub target: String,
    /// What the plan runs; by default the Insert Benchmark, on RocksDB the key-value sequence
    #[arg(long, value_enum)]
    pub workload: Option<WorkloadName>,
    /// The file to write, which must not be there
    #[arg(long, short, value_name = "FILE", default_value = "plan.toml")]
    pub output: PathBuf,
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
}

/// Arguments of `check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Shows every value with its origin too, and the order of the cells
    #[arg(long, conflicts_with = "between")]
    pub all: bool,
    /// Where databases would be made, as `assay run` is told
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Shows only in which options of their configs two targets differ
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub between: Option<Vec<String>>,
}

/// Arguments of `show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// The run directory
    pub run: PathBuf,
    /// How
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Shows only the answer, with the verdicts that it rests on
    #[arg(long, conflicts_with_all = ["format", "between", "settings"])]
    pub summary: bool,
    /// Shows only this step; may be repeated
    #[arg(long = "step", value_name = "NAME", conflicts_with = "between")]
    pub steps: Vec<String>,
    /// Shows only this table of each step, as `iostat`, `vmstat`, `counters` or `lsm-levels`; may be repeated
    #[arg(long = "table", value_name = "NAME", conflicts_with = "between")]
    pub tables: Vec<String>,
    /// Shows only in which settings two targets differ
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub between: Option<Vec<String>>,
    /// Lists every setting that differs, also those that only one version has, with whole values
    #[arg(long)]
    pub settings: bool,
}

/// How `show` and `compare` print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for people
    Table,
    /// Everything, for scripts
    Json,
    /// One line for each step of each cell, or for each comparison
    Csv,
    /// The tables for a page of GitHub
    Markdown,
}

/// Arguments of `compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Targets of one name in several runs are repeats of one target, and must be the same: the same plan run again adds \
repeats. `--by-run` compares each target with that of its name in the first run: yesterday's run, then today's.

With `--gate`: exit code 0 where a regression beyond the threshold is ruled out, 3 where one is shown, 4 where it is \
not known: invalid, not measured, a single run, too noisy. A regression can be in throughput, in own CPU or instructions \
per operation, or in a metric that a threshold names. Throughput and the metrics that thresholds name decide whether one is ruled out.")]
pub struct CompareArgs {
    /// The run directories
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The target that others are compared to, by default that of the first run's plan; once for each GROUP, an engine or
    /// a build, whose targets are compared with its own
    #[arg(
        long = "base",
        value_name = "[GROUP=]TARGET",
        conflicts_with = "by_run"
    )]
    pub bases: Vec<Base>,
    /// Compares each target with that of the same name in the first run
    #[arg(long)]
    pub by_run: bool,
    /// Shows what a factor does, all else equal: a setting that configs declare, or `build`, over all combinations of the
    /// others; `all`: each factor; `?`: lists them; may be repeated
    #[arg(long, value_name = "FACTOR", conflicts_with_all = ["by_run", "gate"])]
    pub by: Vec<String>,
    /// Ends with an exit code that tells a regression from what can't be judged
    #[arg(long)]
    pub gate: bool,
    /// The change for the worse beyond which `--gate` objects, in percent: `5` for throughput, own CPU and instructions per
    /// operation (by default that of `--effect`), `cpupq=10` for one metric; may be repeated
    #[arg(long = "threshold", value_name = "[METRIC=]PERCENT")]
    pub thresholds: Vec<Threshold>,
    /// The least change that matters, in percent: `no change shown` means that there is none as large
    #[arg(long, value_name = "PERCENT", default_value_t = EFFECT, value_parser = percent_above_zero)]
    pub effect: f64,
    /// Of what is called faster or slower, the share that may be no change, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = ERROR_RATE, value_parser = error_percent)]
    pub error_rate: f64,
    /// How
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Compares only this step; may be repeated
    #[arg(long = "step", value_name = "NAME")]
    pub steps: Vec<String>,
}

/// The defaults of `--effect` and `--error-rate`, in percent.
const EFFECT: f64 = 3.0;
const ERROR_RATE: f64 = 5.0;

impl CompareArgs {
    /// Returns what compares runs in the way that needs no option, but for the steps.
    pub fn usual(runs: Vec<PathBuf>, steps: Vec<String>) -> Self {
        Self {
            runs,
            bases: Vec::new(),
            by_run: false,
            by: Vec::new(),
            gate: false,
            thresholds: Vec::new(),
            effect: EFFECT,
            error_rate: ERROR_RATE,
            format: Format::Csv,
            steps,
        }
    }
}

/// One `--base`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The engine or the build whose targets it is for; `None`: all.
    pub group: Option<String>,
    /// The target.
    pub target: String,
}

impl std::str::FromStr for Base {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (group, target) = match text.split_once('=') {
            Some((group, target)) => (Some(group.to_owned()), target),
            None => (None, text),
        };
        Ok(Self {
            group,
            target: target.to_owned(),
        })
    }
}

/// One `--threshold`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The metric; `None`: all that have verdicts of their own.
    pub metric: Option<String>,
    /// Percent.
    pub percent: f64,
}

impl std::str::FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (metric, percent) = match text.rsplit_once('=') {
            Some((metric, percent)) => (Some(metric), percent),
            None => (None, text),
        };
        let known = |metric: &str| metric == THROUGHPUT || Metric::named(metric).is_some();
        if let Some(metric) = metric.filter(|metric| !known(metric)) {
            let alike = |name: &&str| strsim::normalized_damerau_levenshtein(metric, name);
            let names = METRICS.iter().map(|it| it.name).chain([THROUGHPUT]);
            let nearest = names.max_by(|a, b| alike(a).total_cmp(&alike(b)));
            return Err(format!(
                "`{metric}` is no metric: the nearest is `{}`; docs/metrics.md has all",
                nearest.unwrap_or(THROUGHPUT)
            ));
        }
        let percent = percent_of(percent)?;
        if percent < 0.0 {
            return Err("a threshold is not below 0".into());
        }
        Ok(Self {
            metric: metric.map(str::to_owned),
            percent,
        })
    }
}

fn percent_of(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() => Ok(percent),
        _ => Err(format!("`{text}` is no percentage: write `5` or `2.5`")),
    }
}

fn percent_above_zero(text: &str) -> Result<f64, String> {
    let percent = percent_of(text)?;
    let is_within = percent > 0.0 && percent < 100.0;
    is_within
        .then_some(percent)
        .ok_or("it is above 0 and below 100".into())
}

fn error_percent(text: &str) -> Result<f64, String> {
    let percent = percent_of(text)?;
    let is_within = (0.01..=50.0).contains(&percent);
    is_within
        .then_some(percent)
        .ok_or("it is from 0.01 to 50".into())
}

/// Arguments of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// The run directories
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The file to write; by default `report.html` in the first run directory
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Writes the report's plots as SVG files as well, in this directory
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

/// Arguments of `export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// The run directories
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// As what
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Which table, of `csv` and `parquet`; may be repeated. By default `steps`, with `--partition` all but `seconds`
    #[arg(long = "table", value_name = "TABLE", value_enum)]
    pub tables: Vec<ExportTable>,
    /// Exports only this step; may be repeated
    #[arg(long = "step", value_name = "NAME")]
    pub steps: Vec<String>,
    /// The file to write, or the directory to write it in; by default stdout. `hdr` writes a file for each cell and needs
    /// a directory
    #[arg(long, short, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
    /// Writes the tables of each run into files of their own, DIR/table=T/engine=E/date=D/RUN_ID.parquet, where many runs
    /// are read together; those of a run that was written before are written anew
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "steps"])]
    pub partition: Option<PathBuf>,
}

/// A table that `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportTable {
    /// One line for each step of each cell
    Steps,
    /// One line for each figure of each step
    Metrics,
    /// One line for each comparison with the base, as `assay compare` makes them
    Verdicts,
    /// One line for each second of each step and kind of operation
    Seconds,
}

impl ExportTable {
    /// Returns what it is called in names of files and directories.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Metrics => "metrics",
            Self::Verdicts => "verdicts",
            Self::Seconds => "seconds",
        }
    }
}

/// What `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Tables with units in their heads
    Csv,
    /// The same tables as columns
    Parquet,
    /// The format of Go's benchmarks: one line for each valid step of each repeat
    Benchstat,
    /// HdrHistogram interval logs: the latencies of each cell, second by second
    Hdr,
}

/// Arguments of `fetch`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Specs:
  postgres@17.2  mariadb@11.4.5     a version, or its beginning for the newest; through Maven's client
  mysql@5.6  mysql@5.7  mysql@8.0   the same; of each one version
  rocksdb@9.9.3  speedb@2.8.0       the library alone
  debian:sid/mysql-server-core      packages of a suite of Debian with all that they depend on; through apt
  debian:bookworm/mariadb-server,mariadb-plugin-rocksdb
  dir:/opt/postgresql-15.3=pg15     a directory of yours, by a name; it stays where it is

Builds are kept in $ASSAY_BUILDS; else, for root, in /var/lib/assay/builds, which the user of its servers can \
read; else in $XDG_DATA_HOME/assay/builds, else in ~/.local/share/assay/builds.
A plan finds them by name, spec or version: `postgres = \"17.2\"`.")]
pub struct FetchArgs {
    /// What to fetch
    #[arg(required = true, value_name = "SPEC")]
    pub specs: Vec<String>,
    /// The name by which plans find the build; by default product and version
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Arguments of `builds`.
#[derive(Clone, Debug, Args)]
pub struct BuildsArgs {
    /// Compares every file of every build with what it was
    #[arg(long, conflicts_with = "remove")]
    pub verify: bool,
    /// Removes a build
    #[arg(long, value_name = "NAME")]
    pub remove: Option<String>,
}

/// Arguments of `cell`.
#[derive(Clone, Debug, Args)]
pub struct CellArgs {
    /// The run directory
    pub run: PathBuf,
    /// The cell's directory in it
    pub cell: String,
    /// Where databases are made
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Where the run is in its matrix
    #[arg(long, value_name = "JSON")]
    pub outlook: Option<String>,
    /// The pipe that takes what happens, for who watches the run
    #[arg(long, value_name = "PIPE")]
    pub live: Option<PathBuf>,
    /// Shows no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of `library`.
#[derive(Clone, Debug, Args)]
pub struct LibraryArgs {
    /// The shared library
    pub path: PathBuf,
}

/// Arguments of `host`.
#[derive(Clone, Debug, Args)]
pub struct HostArgs {
    /// The directory that databases would be made in
    #[arg(default_value = ".")]
    pub directory: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
