//! The command line.

mod compare;

use std::path::PathBuf;
use std::time::Duration;

use analysis::compare::Requirement;
use clap::{Args, Parser, Subcommand, ValueEnum};
use record::RateSearch;

pub use self::compare::{Base, METRIC_LIST, StepPattern, Threshold};
use self::compare::{error_percent, metric_or_list, percent_above_zero, requirement};

/// Measures database storage engines and explains what changed.
#[derive(Debug, Parser)]
#[command(
    name = "assay",
    version = crate::version::TEXT.as_str(),
    about,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 success; 1 a run or step failed; 2 a usage or plan error; 3 `compare` found a \
                        regression with `--gate`, or a missed bound with `--require`; 4 a result is invalid or too noisy to judge; 130 interrupted."
)]
pub struct Cli {
    /// The subcommand to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compares versions or configurations of an engine: fetches them, writes a plan and runs it
    Versus(VersusArgs),
    /// Writes a commented plan for an engine, as a start
    Init(InitArgs),
    /// Runs a plan, or by default a small Insert Benchmark on the bundled SQLite
    Run(RunArgs),
    /// Finds the highest rate at which response times and replication lag stay within bounds
    Find(FindArgs),
    /// Checks a plan without running it, and estimates its time and disk space
    Check(CheckArgs),
    /// Prints the results of a run
    Show(ShowArgs),
    /// Compares targets with a base target: what is faster or slower, how sure that is, and why
    Compare(CompareArgs),
    /// Writes an HTML report of one or more runs, in one self-contained file
    Report(ReportArgs),
    /// Exports results for other tools: CSV, Parquet, benchstat, HdrHistogram, viewers of CPU
    /// profiles
    Export(ExportArgs),
    /// Downloads builds of engines, side by side, without installing them on the system
    Fetch(FetchArgs),
    /// Lists, verifies or removes downloaded builds
    Builds(BuildsArgs),
    /// Describes this machine as a run records it, with warnings
    Host(HostArgs),
    /// Prints the script by which a shell completes commands and options
    Completions(CompletionsArgs),
    /// Prints the manual page, or writes one for each command into a directory
    Man(ManArgs),
    /// Prints the JSON schema of plans, by which editors complete and check them
    #[command(after_help = "\
Example: `assay plan-schema > plan.schema.json`, and as the first line of a plan `#:schema plan.schema.json`.")]
    PlanSchema,
    /// Runs one cell; `run` starts it as a separate process
    #[command(hide = true)]
    Cell(CellArgs),
    /// Loads a library and describes it in JSON
    #[command(hide = true)]
    Library(LibraryArgs),
}

/// A plan and changes to it.
#[derive(Clone, Debug, Default, Args)]
pub struct PlanArgs {
    /// The plan file (TOML) [default: the built-in plan]
    pub plan: Option<PathBuf>,
    /// Sets a value of the plan, such as `workload.insert.initial-rows=1M`. Engine options use the
    /// engine's own syntax, for example
    /// `config.rocksdb.a.set.block_cache={capacity=1G;num_shard_bits=6}`. May be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

/// Arguments of `run`.
#[derive(Clone, Debug, Default, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Measures only the cells that match. The filter is a glob of the target's name (`pg17.*`)
    /// or, if it contains a slash, of TARGET/[VARIANT/]cCLIENTS/rREPEAT (`*/c8/*`, `**/r2`). A
    /// `*` at the end stands for all the rest (`*/cached/*`).
    /// May be repeated
    #[arg(long, value_name = "FILTER")]
    pub only: Vec<String>,
    /// Resumes a run: measures its missing and failed cells with the recorded plan. If the plan
    /// contains a password, pass the plan as well, since passwords aren't recorded
    #[arg(long, value_name = "RUN", conflicts_with = "results")]
    pub resume: Option<PathBuf>,
    /// With `--resume`, also runs the programs that the record of another user names
    #[arg(long, requires = "resume")]
    pub trust: bool,
    /// Measures each cell N times, as `--set repeats=N` does. With `--resume`, adds repeats until
    /// each matching cell has N of them. Existing repeats are kept
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: Option<u32>,
    /// Compares one target with itself, which shows this machine's noise. Uses the first target,
    /// or the one that `--only` selects, and at least 5 repeats
    #[arg(long, conflicts_with = "resume")]
    pub aa: bool,
    /// Measures each cell once more while `perf` samples the engine's functions, also with
    /// `--resume`. `compare` then names the functions that changed
    #[arg(long)]
    pub profile: bool,
    /// Also measures the other cells of a target that failed before its first step was complete.
    /// By default, they are left out
    #[arg(long)]
    pub keep_going: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The search that chooses the rates of a step; set by `find`.
    #[arg(skip)]
    pub search: Option<RateSearch>,
}

/// Arguments of `find`.
#[derive(Clone, Debug, Args)]
#[command(
    group = clap::ArgGroup::new("bound").required(true).multiple(true).args(["p99", "lag"]),
    after_help = "\
Examples:
  assay find plan.toml --step l.i1 --lag 1s
  assay find plan.toml --step update-index --p99 20ms --set clients=[4]

Each rate is a variant of the workload, with one cell for each of the plan's `repeats`. Without `--to`, the first cell has no rate, and its \
throughput is the upper end of the search. `assay run --resume RUN` continues a search."
)]
pub struct FindArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// The step whose rate is raised: `l.i1` or `l.i2`, or a test of sysbench. With `--to`, also
    /// `qrN` and `qpN`
    #[arg(long, value_name = "STEP")]
    pub step: String,
    /// The bound on the 99th percentile of response times, such as `20ms`
    #[arg(long, value_name = "TIME", value_parser = plan::parse_duration)]
    pub p99: Option<Duration>,
    /// The bound on replication lag, such as `1s`; the lag must not grow either
    #[arg(long, value_name = "TIME", value_parser = plan::parse_duration)]
    pub lag: Option<Duration>,
    /// The highest rate to try, per second and client [default: what the step achieves without a
    /// rate]
    #[arg(long, value_name = "RATE", value_parser = plan::parse_rate)]
    pub to: Option<f64>,
    /// The gap between the highest rate that meets the bounds and the lowest that does not, at
    /// which the search ends
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent_above_zero)]
    pub tolerance: f64,
    /// Searches only for the targets that match, a glob such as `pg17.*`. May be repeated
    #[arg(long, value_name = "FILTER")]
    pub only: Vec<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// The default directory for run directories.
pub const RESULTS: &str = "results";
/// The default directory for databases, within the results directory.
pub const DATA: &str = "data";

/// The directories that a run uses, and how it shows its progress.
#[derive(Clone, Debug, Default, Args)]
pub struct PlaceArgs {
    /// The directory for run directories
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    pub results: PathBuf,
    /// The directory for databases; overrides `data-dir` of the plan or of the resumed run
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Hides progress and tables
    #[arg(long, short)]
    pub quiet: bool,
    /// Serves live charts at `/` and Prometheus metrics at `/metrics` during the run, for example
    /// on `127.0.0.1:9187`
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Lets `--listen` use an address that other machines can reach. There is no password
    /// protection
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

The first target is the base. With one build and one `--config`, the base is the build without it. The plan is saved in \
the results directory: edit it and run it again with `assay run`.")]
pub struct VersusArgs {
    /// A version to fetch (`postgres@17.2`), a build listed by `assay builds`, or an engine:
    /// `sqlite`; `postgres` or `mysql` as installed on the system; `rocksdb` or `speedb` for
    /// the newest downloaded build
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
    /// The time for the run in minutes: measures as many repeats as are expected to fit
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub minutes: u32,
    /// Measures 3 repeats of 1-second steps, enough to show only large changes
    #[arg(long, conflicts_with = "minutes")]
    pub quick: bool,
    /// Compares one target with itself, which shows this machine's noise
    #[arg(long)]
    pub aa: bool,
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
    /// Checks and estimates only the cells that match, as `assay run --only` selects them. May be
    /// repeated
    #[arg(long, value_name = "FILTER", conflicts_with = "between")]
    pub only: Vec<String>,
    /// Shows every value and its origin, and the order of the cells
    #[arg(long, conflicts_with = "between")]
    pub all: bool,
    /// The directory for databases, as for `assay run`
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Shows only how the configs of two targets differ
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub between: Option<Vec<String>>,
}

/// Arguments of `show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// The run directory
    pub run: PathBuf,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Shows only the answer and its verdicts
    #[arg(long, conflicts_with_all = ["format", "between", "settings", "tables"])]
    pub summary: bool,
    /// Shows only this step; may be repeated
    #[arg(long = "step", value_name = "NAME", conflicts_with = "between")]
    pub steps: Vec<String>,
    /// Shows only this table of each step, such as `iostat`, `counters`, `plans` or
    /// `engine-status`; may be repeated
    #[arg(long = "table", value_name = "NAME", conflicts_with = "between")]
    pub tables: Vec<String>,
    /// Shows only how the settings of two targets differ
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub between: Option<Vec<String>>,
    /// Lists all settings that differ, including those of only one version, without shortening
    /// values
    #[arg(long)]
    pub settings: bool,
}

/// The output format of `show` and `compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for people
    Table,
    /// All data, for scripts
    Json,
    /// One row per step of each cell, or per comparison
    Csv,
    /// Tables for GitHub pages
    Markdown,
}

/// Arguments of `compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Targets with the same name in several runs count as repeats of one target, so they must be identical. To compare \
yesterday's run with today's, use `--by-run`.

With `--gate`, the exit code is 0 if a regression beyond the threshold is ruled out, 3 if one is found, and 4 if neither is \
certain: the result is invalid, missing, too noisy or measured only once. Assay looks for regressions in throughput, in own CPU and \
instructions per operation, and in each metric that a threshold names. Only throughput and the named metrics can rule one out.

With `--require`, the exit code is 0 if every target meets every requirement, 3 if one is missed, and 4 if none is missed but \
one can't be judged: it is invalid, not applicable, too noisy or measured only once. With `--gate` as well, 3 outweighs 4, and 4 \
outweighs 0.

Examples:
  assay compare RUN --metric response_p99 --metric response_p99:insert
  assay compare RUN --gate --threshold response_p99=10
  assay compare RUN --require 'qr100 response_p99 < 5ms' --require 'qr100 sla >= 95%'")]
pub struct CompareArgs {
    /// The run directories
    #[arg(required_unless_present = "metrics", value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The base target [default: that of the first run's plan]. With GROUP, an engine or a build,
    /// the base of only that group's targets; may be repeated
    #[arg(
        long = "base",
        value_name = "[GROUP=]TARGET",
        conflicts_with_all = ["by_run", "by_step"]
    )]
    pub bases: Vec<Base>,
    /// Compares each target with the target of the same name in the first run
    #[arg(long)]
    pub by_run: bool,
    /// Compares steps of the same cell, in each target: `qr0=qr100` compares qr100 with qr0, and
    /// `.pre` each step X with X.pre. May be repeated
    #[arg(long, value_name = "BASE=STEP", conflicts_with_all = ["by_run", "by"])]
    pub by_step: Vec<StepPattern>,
    /// Shows the effect of a factor, all else being equal. A factor is a setting, `build`, or a
    /// name that the plan defines under `factors`. `all` selects every factor, and `?` lists
    /// them. May be repeated
    #[arg(long, value_name = "FACTOR", conflicts_with_all = ["by_run", "gate"])]
    pub by: Vec<String>,
    /// Also shows the verdicts of this metric, such as `response_p99`, `response_p99:insert`,
    /// `sla` or `fsyncs_per_commit`. `?` lists all metrics. May be repeated
    #[arg(long = "metric", value_name = "NAME", value_parser = metric_or_list)]
    pub metrics: Vec<String>,
    /// Requires a bound of every target, such as `qr100 response_p99 < 5ms` or
    /// `l.i1 throughput >= 20k`: a step, a metric, `<`, `<=`, `>` or `>=`, and a value with its
    /// unit. Sets the exit code, as described below. May be repeated
    #[arg(
        long = "require",
        value_name = "REQUIREMENT",
        value_parser = requirement,
        conflicts_with_all = ["by", "by_step"]
    )]
    pub requirements: Vec<Requirement>,
    /// Sets the exit code for use in CI, as described below
    #[arg(long)]
    pub gate: bool,
    /// The largest change for the worse, in percent, that `--gate` accepts: `5` for throughput,
    /// own CPU and instructions per operation [default: that of `--effect`], or `cpupq=10` for
    /// one metric. May be repeated
    #[arg(long = "threshold", value_name = "[METRIC=]PERCENT")]
    pub thresholds: Vec<Threshold>,
    /// The smallest change that matters, in percent: `no change shown` means that any change is
    /// smaller than this
    #[arg(long, value_name = "PERCENT", default_value_t = EFFECT, value_parser = percent_above_zero)]
    pub effect: f64,
    /// The accepted share of false verdicts among all verdicts of faster or slower, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = ERROR_RATE, value_parser = error_percent)]
    pub error_rate: f64,
    /// The output format
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
    /// Returns the arguments of a comparison with all options at their defaults, except for the
    /// steps.
    pub fn with_defaults(runs: Vec<PathBuf>, steps: Vec<String>) -> Self {
        Self {
            runs,
            bases: Vec::new(),
            by_run: false,
            by_step: Vec::new(),
            by: Vec::new(),
            metrics: Vec::new(),
            requirements: Vec::new(),
            gate: false,
            thresholds: Vec::new(),
            effect: EFFECT,
            error_rate: ERROR_RATE,
            format: Format::Csv,
            steps,
        }
    }
}

/// Arguments of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// The run directories
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The file to write [default: `report.html` in the first run directory]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also writes the report's plots as SVG files into this directory
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

/// Arguments of `export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// The run directories
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The output format
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// The table to write as CSV or Parquet; may be repeated [default: `steps`; with
    /// `--partition`, all but `seconds`]
    #[arg(long = "table", value_name = "TABLE", value_enum)]
    pub tables: Vec<ExportTable>,
    /// Exports only this step; may be repeated
    #[arg(long = "step", value_name = "NAME")]
    pub steps: Vec<String>,
    /// Exports only the cells that match, as in `assay run --only`. May be repeated
    #[arg(long, value_name = "FILTER")]
    pub only: Vec<String>,
    /// The file or directory to write [default: stdout]. The format `hdr` needs a directory, since
    /// it writes one file per cell
    #[arg(long, short, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
    /// Writes each run's tables to DIR/table=T/engine=E/date=D/RUN_ID.parquet, so that other tools
    /// can query many runs at once. Overwrites the files of the same runs
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "steps", "only"])]
    pub partition: Option<PathBuf>,
}

/// A table that `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportTable {
    /// One row per step of each cell
    Steps,
    /// One row per metric of each step
    Metrics,
    /// One row per comparison with the base, as in `assay compare`
    Verdicts,
    /// One row per second of each step and kind of operation
    Seconds,
}

impl ExportTable {
    /// Returns its name in the names of files and directories.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Metrics => "metrics",
            Self::Verdicts => "verdicts",
            Self::Seconds => "seconds",
        }
    }
}

/// An output format of `export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Tables with units in the column names
    Csv,
    /// The same tables, in columnar form
    Parquet,
    /// Go's benchmark format: one line per valid step of each repeat
    Benchstat,
    /// HdrHistogram interval logs: latencies of each cell, second by second
    Hdr,
    /// CPU profiles for flame graph tools: a line for each call stack, with its samples
    Folded,
    /// CPU profiles for `go tool pprof`, with the cost per operation
    Pprof,
    /// CPU profiles for the Firefox Profiler
    Firefox,
}

/// Arguments of `fetch`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Specs:
  postgres@17.2  mariadb@11.4.5     a version; `postgres@17` is the newest 17. Needs Maven
  mysql@5.6  mysql@5.7  mysql@8.0   a few versions. Needs Maven
  rocksdb@9.9.3  speedb@2.8.0       only the library. Needs Maven
  debian:sid/mysql-server-core      packages of a Debian suite with their dependencies. Needs apt
  debian:bookworm/mariadb-server,mariadb-plugin-rocksdb
  dir:/opt/postgresql-15.3=pg15     a directory of your own, under a name; its files stay where they are

Builds are stored in $ASSAY_BUILDS if set. Otherwise root uses /var/lib/assay/builds, which the servers' user can read, and \
other users $XDG_DATA_HOME/assay/builds or ~/.local/share/assay/builds.
A plan refers to a build by name, spec or version: `postgres = \"17.2\"`.")]
pub struct FetchArgs {
    /// The builds to download
    #[arg(required = true, value_name = "SPEC")]
    pub specs: Vec<String>,
    /// The build's name in plans [default: the product and the version]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Arguments of `builds`.
#[derive(Clone, Debug, Args)]
pub struct BuildsArgs {
    /// Checks that no file of a build has changed since the download
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
    /// The directory for databases
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// The progress of the whole run
    #[arg(long, value_name = "JSON")]
    pub matrix_progress: Option<String>,
    /// The pipe for live events
    #[arg(long, value_name = "PIPE")]
    pub live: Option<PathBuf>,
    /// Hides progress
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
    /// The directory for databases
    #[arg(default_value = ".")]
    pub directory: PathBuf,
}

/// Arguments of `completions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  assay completions bash > ~/.local/share/bash-completion/completions/assay
  assay completions fish > ~/.config/fish/completions/assay.fish
  assay completions zsh > ~/.zfunc/_assay   # a directory of $fpath")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  assay man | man -l -
  assay man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The directory for `assay.1`, `assay-run.1` and so on, which must exist
    pub directory: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
