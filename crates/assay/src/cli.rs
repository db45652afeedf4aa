//! The command line.

mod bisect;
mod bundle;
mod compare;
mod conform;
mod draft;
mod export;
mod groups;
mod history;
mod import;
mod run;
mod tune;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::conform::CHECK_COMMAND;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use inquiry::compare::arguments::Base;
use probe::{FLOOR_DEPTH_MAX, FloorRequest};
use runner::{CELL_COMMAND, LIBRARY_COMMAND};

pub use self::bisect::BisectArgs;
pub use self::bundle::BundleArgs;
pub use self::compare::{AnnotationFormat, Annotations, CompareArgs, METRIC_LIST};
pub use self::conform::{ConformArgs, ConformCheckArgs};
pub use self::draft::{InitArgs, VersusArgs};
pub use self::export::{ExportArgs, ExportFormat, ExportTable};
pub use self::history::HistoryArgs;
pub use self::import::ImportArgs;
pub use self::run::{AugmentArgs, CellArgs, CheckArgs, FindArgs, LibraryArgs, PlaceArgs, RunArgs};
pub use self::tune::TuneArgs;

/// The remedy for a directory without runs.
pub const RESULTS_HELP: &str =
    "give the directory that `assay run` writes to, which is `results` without `--results`";

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
    after_help = "Exit codes: 0 success; 1 a run or step failed; 2 a usage or plan error; 3 `compare` or \
                        `history` found a regression with `--gate`, or `compare` a missed bound with `--require`, or a bundle's finding was not reproduced; 4 a result is invalid or too noisy to say; 130 interrupted."
)]
pub struct Cli {
    /// When to use colors; NO_COLOR=1 means `never`
    #[arg(long, value_enum, default_value_t = Colors::Auto, value_name = "WHEN", global = true, hide_possible_values = true)]
    pub color: Colors,
    /// The subcommand to run.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// The arguments are wrong, or ask for help or the version.
    pub fn read() -> Result<Self, clap::Error> {
        let args: Vec<OsString> = env::args_os().collect();
        if args.get(1).is_some_and(|command| command == CELL_COMMAND) {
            return Self::read_cell(&args[1..]);
        }

        let matches = groups::with_groups(Self::command()).try_get_matches_from(args)?;
        Self::from_arg_matches(&matches)
    }

    /// Reads the arguments of a cell's process. Under callgrind, to prepare for those of all
    /// commands takes a noticeable part of the process's time.
    fn read_cell(args: &[OsString]) -> Result<Self, clap::Error> {
        let matches =
            CellArgs::augment_args(clap::Command::new(CELL_COMMAND)).try_get_matches_from(args)?;
        let command = Command::Cell(CellArgs::from_arg_matches(&matches)?);
        Ok(Self { color: Colors::Auto, command })
    }
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
    /// Adds the opposite targets (fold-over) to a designed experiment, to tell effects from interactions
    Augment(AugmentArgs),
    /// Finds a configuration that beats the base with the fewest changed options
    Tune(TuneArgs),
    /// Finds the version or the commit that changed a step
    Bisect(BisectArgs),
    /// Checks a plan without running it, and estimates its time and disk space
    Check(CheckArgs),
    /// Lists the runs in a directory, the newest first
    Ls(LsArgs),
    /// Serves pages about the runs in a directory: list, compare, trends, reports
    Serve(ServeArgs),
    /// Prints the results of a run
    Show(ShowArgs),
    /// Compares targets with a base target: what is faster or slower, how certain that is, and why
    Compare(CompareArgs),
    /// Shows when steps became faster or slower, over all runs below a directory, and what changed
    /// with them
    History(HistoryArgs),
    /// Writes an HTML report of one or more runs, in one self-contained file
    Report(ReportArgs),
    /// Writes a finding with all that others need to repeat it, as a bug report
    Bundle(BundleArgs),
    /// Exports results for other tools: CSV, Parquet, benchstat, HdrHistogram, viewers of CPU
    /// profiles
    Export(ExportArgs),
    /// Imports results of sysbench, pgbench, db_bench and other tools as a run
    Import(ImportArgs),
    /// Downloads builds of engines, side by side, without installing them on the system
    Fetch(FetchArgs),
    /// Lists, verifies or removes downloaded builds
    Builds(BuildsArgs),
    /// Lists, verifies or removes databases that are kept for later cells
    Databases(DatabasesArgs),
    /// Tests the adapter of your own storage engine, before you measure the engine
    Conform(ConformArgs),
    /// Describes this machine as a run records it, with warnings
    Host(HostArgs),
    /// Prints a script that lets a shell complete commands and options
    Completions(CompletionsArgs),
    /// Prints the manual page, or writes one for each command into a directory
    Man(ManArgs),
    /// Prints the JSON schema of plans, with which editors complete and check them
    #[command(after_help = "\
Example: `assay plan-schema > plan.schema.json`, and as the first line of a plan `#:schema plan.schema.json`.")]
    PlanSchema,
    /// Runs one cell; `run` starts it as a separate process
    #[command(name = CELL_COMMAND, hide = true)]
    Cell(CellArgs),
    /// Loads a library and describes it in JSON
    #[command(name = LIBRARY_COMMAND, hide = true)]
    Library(LibraryArgs),
    /// Runs one check of `conform`
    #[command(name = CHECK_COMMAND, hide = true)]
    ConformCheck(ConformCheckArgs),
}

/// When text is colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colors {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always, for a pager or a log that shows colors
    Always,
    /// Never
    Never,
}

/// Arguments of `ls`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Where a command takes a RUN, `latest` is the newest run in `results`, `DIR/latest` the newest in DIR, and the beginning of a \
run's name is enough if no other name begins with it.

Examples:
  assay ls --last 5
  assay ls results --all --format json
  assay show 20261121T19")]
pub struct LsArgs {
    /// The directory of runs
    #[arg(default_value = runner::RESULTS, value_name = "DIR")]
    pub folder: PathBuf,
    /// Lists only this many runs, the newest
    #[arg(long, value_name = "COUNT", default_value_t = 20, conflicts_with = "all")]
    pub last: usize,
    /// Lists all runs, which may take a while: results are computed from the records
    #[arg(long)]
    pub all: bool,
    /// The output format
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}

/// The output format of `ls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A table for people
    Table,
    /// The same, with the names of all targets and steps, for scripts
    Json,
}

/// Arguments of `serve`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The pages change nothing. They open only at the address that Assay prints, which has a key. From another machine: `ssh -L 9188:127.0.0.1:9188 HOST`.")]
pub struct ServeArgs {
    /// The directory of runs
    #[arg(default_value = runner::RESULTS, value_name = "DIR")]
    pub folder: PathBuf,
    /// The address to listen on; with port 0, the system chooses the port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9188")]
    pub listen: String,
    /// Allows an address that other machines can reach. Traffic is not encrypted
    #[arg(long)]
    pub listen_anywhere: bool,
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
    #[arg(long, conflicts_with_all = ["format", "between", "settings", "tables", "all"])]
    pub summary: bool,
    /// Shows all tables of all steps, not only those at the end of a run with a list of the others
    #[arg(long, conflicts_with_all = ["between", "tables"])]
    pub all: bool,
    /// Shows only this step, with all of its tables; may be repeated
    #[arg(long = "step", value_name = "NAME", conflicts_with = "between")]
    pub steps: Vec<String>,
    /// Shows only this table, of each step or over all of them, such as `iostat`, `counters`,
    /// `plans` or `engine-status`; may be repeated
    #[arg(long = "table", value_name = "NAME", conflicts_with = "between")]
    pub tables: Vec<String>,
    /// Shows each repeat in the tables, instead of the median of a target's repeats with its spread
    #[arg(long, conflicts_with = "between")]
    pub each: bool,
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

/// Arguments of `report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "For Markdown: `assay compare RUN --markdown FILE`.")]
pub struct ReportArgs {
    /// The run directories
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The target to compare the others with [default: that of the first run's plan]. With an engine
    /// or a build as GROUP, the base of only that group's targets; may be repeated
    #[arg(long = "base", value_name = "[GROUP=]TARGET")]
    pub bases: Vec<Base>,
    /// The file to write [default: `report.html` in the first run directory]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also writes the report's plots as SVG files into this directory
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// The width of the SVG files in pixels [default: as wide as each plot needs]
    #[arg(long, value_name = "PX", requires = "svg", value_parser = clap::value_parser!(u32).range(360..=4000))]
    pub width: Option<u32>,
    /// Draws only this step in the SVG files; may be repeated
    #[arg(long = "step", value_name = "NAME", requires = "svg")]
    pub steps: Vec<String>,
}

/// Arguments of `fetch`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Specs:
  postgres@17.2  mariadb@11.4.5     a version; `postgres@17` is the newest 17. Needs Maven
  mysql@5.6  mysql@5.7  mysql@8.0   a few versions. Needs Maven
  rocksdb@9.9.3  speedb@2.8.0       only the library. Needs Maven
  sqlite@3.46.1                     the library, compiled from its source. Needs npm and a C compiler
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
    /// Shows where a build is from, and how it was made from a commit
    #[arg(conflicts_with_all = ["verify", "remove"])]
    pub name: Option<String>,
    /// Checks that no file of a build has changed since the download
    #[arg(long, conflicts_with = "remove")]
    pub verify: bool,
    /// Removes a build
    #[arg(long, value_name = "NAME")]
    pub remove: Option<String>,
    /// Lists the versions of a product that can be downloaded, such as those of `rocksdb`
    #[arg(long, value_name = "PRODUCT", conflicts_with_all = ["verify", "remove"])]
    pub available: Option<String>,
}

/// Arguments of `databases`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Databases are kept in DIR if a run has `--reuse DIR`, else in $ASSAY_DATABASES if set. Otherwise root uses \
/var/lib/assay/databases, and other users $XDG_DATA_HOME/assay/databases or ~/.local/share/assay/databases.")]
pub struct DatabasesArgs {
    /// Shows all that made this database, and the runs that used it
    #[arg(conflicts_with_all = ["verify", "remove"])]
    pub name: Option<String>,
    /// The directory of databases
    #[arg(long, value_name = "DIR")]
    pub reuse: Option<PathBuf>,
    /// Checks that no file of a database has changed since it was kept
    #[arg(long, conflicts_with = "remove")]
    pub verify: bool,
    /// Removes a database
    #[arg(long, value_name = "NAME")]
    pub remove: Option<String>,
}

/// Arguments of `host`.
#[derive(Clone, Debug, Args)]
pub struct HostArgs {
    /// The directory for databases
    #[arg(default_value = ".")]
    pub directory: PathBuf,
    /// Also measures the limits of the directory's disk without other load: random reads and
    /// `fdatasync` calls per second, direct and through the page cache. Takes 20 s and a file of 1 GiB
    #[arg(long)]
    pub disk: bool,
    #[command(flatten)]
    pub floor: FloorArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    pub format: TableFormat,
}

/// The output format of `host` and `conform`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Tables for people
    Table,
    /// All data, for scripts
    Json,
}

/// Arguments of `host --disk`.
#[derive(Clone, Debug, Args)]
pub struct FloorArgs {
    /// The numbers of reads in progress, such as `1,8`: that many threads, each with one read
    #[arg(
        long = "depth", value_name = "COUNT", requires = "disk", value_delimiter = ',',
        default_value = "1", value_parser = clap::value_parser!(u32).range(1..=i64::from(FLOOR_DEPTH_MAX))
    )]
    pub depths: Vec<u32>,
    /// The sizes of reads
    #[arg(
        long = "block-size", value_name = "SIZE", requires = "disk", value_delimiter = ',',
        default_value = "4KiB,8KiB,16KiB", value_parser = block_size
    )]
    pub block_sizes: Vec<u32>,
    /// The size of the file that is read. A small one may fit into a cache of the device
    #[arg(long, value_name = "SIZE", requires = "disk", default_value = "1GiB", value_parser = file_size)]
    pub file_size: u64,
    /// The time for which each rate is measured
    #[arg(long, value_name = "TIME", requires = "disk", default_value = "2s", value_parser = plan::parse_duration)]
    pub time: Duration,
}

impl FloorArgs {
    /// Returns the measurement of a directory.
    pub fn request<'a>(&self, dir: &'a Path) -> FloorRequest<'a> {
        FloorRequest {
            dir,
            depths: self.depths.clone(),
            block_bytes: self.block_sizes.clone(),
            file_bytes: self.file_size,
            time: self.time,
            ..FloorRequest::new(dir)
        }
    }
}

/// Reads the size of a block.
fn block_size(text: &str) -> Result<u32, String> {
    let size = plan::parse_size(text).ok().and_then(|size| u32::try_from(size).ok());
    let size = size.filter(|size| size.is_power_of_two() && (512..=16 << 20).contains(size));
    size.ok_or_else(|| "expected a power of two from `512B` to `16MiB`".to_owned())
}

/// Reads the size of the file. A larger one than this has too many blocks to put in random order.
fn file_size(text: &str) -> Result<u64, String> {
    let size = plan::parse_size(text)?;
    let in_range = (1 << 20..=1 << 36).contains(&size);
    in_range.then_some(size).ok_or_else(|| "expected a size from `1MiB` to `64GiB`".to_owned())
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
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
