//! The options of `run` and `find`, and of `check`, which only looks; the processes that a run
//! starts.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plan::Simulate;
use record::RateSearch;
use runner::{
    CellRequest, ExactRequest, LinkPipes, PlanRequest, RESULTS, RepeatsRequest, RunRequest,
};

use super::compare::percent_above_zero;

/// A plan and changes to it.
#[derive(Clone, Debug, Default, Args)]
pub struct PlanArgs {
    /// The plan file (TOML), or a bundle: a directory or an archive from `assay bundle` [default:
    /// the built-in plan]
    pub plan: Option<PathBuf>,
    /// Sets a value of the plan, such as `workload.insert.initial-rows=1M`. Engine options use the
    /// engine's own syntax, for example
    /// `config.rocksdb.a.set.block_cache={capacity=1G;num_shard_bits=6}`. May be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

impl PlanArgs {
    /// Returns the plan and its changes for the runner.
    pub fn request(&self) -> PlanRequest {
        PlanRequest { plan: self.plan.clone(), sets: self.sets.clone() }
    }
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
    /// Lets the targets of a repeat take turns within each step, as `--set turns=LENGTH` does:
    /// `auto`, a time such as `100ms`, or `off`
    #[arg(long, value_name = "LENGTH", conflicts_with = "resume")]
    pub turns: Option<String>,
    /// Measures each cell N times, as `--set repeats=N` does; `until-decided` adds repeats until
    /// every comparison is decided or the `--time` is up. With `--resume`, adds repeats until
    /// each matching cell has N of them, or until all is decided. Existing repeats are kept
    #[arg(long, value_name = "N", value_parser = repeats)]
    pub repeats: Option<RepeatsRequest>,
    /// The time limit for adding repeats until all is decided, such as `10m`. Each `--resume` may
    /// take as long again [default: that of the plan, or 10m]
    #[arg(long, value_name = "TIME", value_parser = plan::parse_duration)]
    pub time: Option<Duration>,
    /// Compares one target with itself, which shows this machine's noise. Uses the first target,
    /// or the one that `--only` selects, and at least 5 repeats
    #[arg(long, conflicts_with = "resume")]
    pub aa: bool,
    /// Measures each cell once more while `perf` samples the engine's functions, also with
    /// `--resume`. `compare` then names the functions that changed
    #[arg(long)]
    pub profile: bool,
    #[command(flatten)]
    pub exact: ExactArg,
    /// Also measures the other cells of a target that failed before its first step was complete.
    /// By default, they are left out
    #[arg(long)]
    pub keep_going: bool,
    /// Begins a run that is refused because what it loads needs more than four times the free space
    #[arg(long)]
    pub ignore_space: bool,
    /// Begins cells with copies of databases in DIR that earlier cells loaded, and keeps new ones
    /// there, as `--set reuse=true` does in the default directory. `assay databases` lists them
    #[arg(long, value_name = "DIR")]
    pub reuse: Option<PathBuf>,
    /// Keeps a copy of each target's database after this step, as `--set keep-after=STEP` does, for runs
    /// that begin `--from` it. May be repeated
    #[arg(long, value_name = "STEP", conflicts_with = "resume")]
    pub keep_after: Vec<String>,
    /// Begins all cells with a copy of a database that was kept after this step, and leaves out the
    /// steps up to it, as `--set from=STEP` does
    #[arg(long, value_name = "STEP", conflicts_with = "resume")]
    pub from: Option<String>,
    /// Runs only this step of those after `--from`, or after the load, as `--set only-steps=STEP`
    /// does. May be repeated
    #[arg(long, value_name = "STEP", conflicts_with = "resume")]
    pub only_step: Vec<String>,
    /// Measures this step also right after the load, in cells of their own, as
    /// `--set alone=STEP` does. A difference from the same step after others is a finding.
    /// May be repeated
    #[arg(long, value_name = "STEP", conflicts_with = "resume")]
    pub alone: Vec<String>,
    /// Measures the limits of the databases' disk without other load, before the first cell
    /// and after the last, as `--set disk-floor=true` does. `assay host --disk` shows it without a
    /// run
    #[arg(long, conflicts_with = "resume")]
    pub disk_floor: bool,
    /// Counts the engine's system calls by kind in each measured step, as
    /// `--set system-calls=SET` does: `syncs`, `common` or `all`. Each kind makes the engine
    /// slower. Needs root
    #[arg(
        long,
        value_name = "SET",
        conflicts_with = "resume",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "common",
        value_parser = ["off", "syncs", "common", "all"]
    )]
    pub system_calls: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

impl RunArgs {
    /// Returns the run for the runner.
    pub fn request(&self) -> RunRequest {
        let mut plan = self.plan.request();
        if let Some(length) = &self.turns {
            plan.sets.push(format!("turns={length}"));
        }
        for (key, steps) in [
            ("keep-after", &self.keep_after),
            ("only-steps", &self.only_step),
            ("alone", &self.alone),
        ] {
            if !steps.is_empty() {
                plan.sets.push(format!("{key}={}", steps.join(",")));
            }
        }
        if let Some(step) = &self.from {
            plan.sets.push(format!("from={step}"));
        }
        if self.disk_floor {
            plan.sets.push("disk-floor=true".to_owned());
        }
        if let Some(set) = &self.system_calls {
            plan.sets.push(format!("system-calls={set}"));
        }

        RunRequest {
            plan,
            only: self.only.clone(),
            resume: self.resume.clone(),
            is_trusted: self.trust,
            repeats: self.repeats,
            time: self.time,
            is_against_itself: self.aa,
            is_profiled: self.profile,
            exact: self.exact.request,
            keeps_going: self.keep_going,
            ignores_space: self.ignore_space,
            reuse: self.reuse.clone(),
            ..self.place.request()
        }
    }
}

/// The argument `--exact`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ExactArg {
    /// Adds cells that run the engine under `valgrind` and count its instructions instead of measuring time.
    /// They show the cost of an operation to a tenth of a percent. `run --resume` adds them, too, and
    /// `run --repeats 0` measures nothing else. `cache` also simulates caches and branches; without a
    /// value, the plan decides
    #[arg(
        id = "exact",
        long,
        value_name = "SIMULATE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = AS_PLANNED,
        value_parser = exact_request
    )]
    pub request: Option<ExactRequest>,
}

/// The value of `--exact` that stands for none.
const AS_PLANNED: &str = "as-planned";

/// Reads the value of `--exact`.
fn exact_request(text: &str) -> Result<ExactRequest, String> {
    if text == AS_PLANNED {
        return Ok(ExactRequest { simulate: None });
    }
    match Simulate::NAMES.iter().find(|(name, _)| *name == text) {
        Some((_, simulate)) => Ok(ExactRequest { simulate: Some(*simulate) }),
        None => Err("expected `cache` or `nothing`, or no value".to_owned()),
    }
}

/// Reads the value of `--repeats`.
fn repeats(text: &str) -> Result<RepeatsRequest, String> {
    const UNTIL_DECIDED: &str = "until-decided";
    if text == UNTIL_DECIDED {
        return Ok(RepeatsRequest::UntilDecided);
    }

    match text.parse() {
        Ok(count) if (0..=plan::REPEATS_MAX).contains(&count) => Ok(RepeatsRequest::Count(count)),
        _ => {
            Err(format!("expected a number from 0 to {}, or `{UNTIL_DECIDED}`", plan::REPEATS_MAX))
        }
    }
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

impl FindArgs {
    /// Returns the run for the runner.
    pub fn request(&self) -> RunRequest {
        let ms = |bound: Duration| bound.as_nanos() as f64 / 1e6;
        RunRequest {
            plan: self.plan.request(),
            only: self.only.clone(),
            search: Some(RateSearch {
                step: self.step.clone(),
                p99_ms: self.p99.map(ms),
                lag_ms: self.lag.map(ms),
                rate_max: self.to,
                tolerance: self.tolerance / 100.0,
                // The plan has them.
                repeats: 0,
            }),
            ..self.place.request()
        }
    }
}

/// Arguments of `augment`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example: `assay augment latest`, then `assay compare latest --by design`

A target is opposite to another if it has the other level of each factor. With both, an effect can be told from interactions of two other \
factors.")]
pub struct AugmentArgs {
    /// The run, whose plan has `[factors]`
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Also runs the programs that the record of another user names
    #[arg(long)]
    pub trust: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

impl AugmentArgs {
    /// Returns the run for the runner.
    pub fn request(&self) -> RunRequest {
        RunRequest {
            resume: Some(self.run.clone()),
            is_trusted: self.trust,
            folds_over: true,
            ..self.place.request()
        }
    }
}

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
    /// Serves live charts and Prometheus metrics during the run, for example on `127.0.0.1:9187`.
    /// The address that Assay prints has a key, without which nobody can read them
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Lets `--listen` use an address that other machines can reach. Traffic is not encrypted
    #[arg(long, requires = "listen")]
    pub listen_anywhere: bool,
    /// Writes the key of `--listen` to this file, as `credentials_file` for Prometheus
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub listen_key_file: Option<PathBuf>,
}

impl PlaceArgs {
    /// Returns a run with these directories for the runner, by this program.
    pub fn request(&self) -> RunRequest {
        RunRequest {
            results: self.results.clone(),
            data: self.data.clone(),
            assay: crate::version::ASSAY.clone(),
            command: std::env::args().map(|arg| words::redact(&arg)).collect(),
            ..RunRequest::default()
        }
    }
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
    /// Takes the times of steps and the sizes of databases from RUN, which may have had fewer rows,
    /// instead of the last run of the plan in `results`
    #[arg(long, value_name = "RUN", conflicts_with = "between")]
    pub like: Option<PathBuf>,
    /// Checks for another machine: FILE has what `assay host --format json` prints there
    #[arg(long, value_name = "FILE", conflicts_with = "between")]
    pub host: Option<PathBuf>,
    /// Shows only how the configs of two targets differ
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub between: Option<Vec<String>>,
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
    /// The directory of databases that cells share
    #[arg(long, value_name = "DIR")]
    pub reuse: Option<PathBuf>,
    /// The progress of the whole run
    #[arg(long, value_name = "JSON")]
    pub matrix_progress: Option<String>,
    /// The pipe for live events
    #[arg(long, value_name = "PIPE")]
    pub live: Option<PathBuf>,
    /// The pipe with orders when to take turns
    #[arg(long, value_name = "PIPE", requires = "reports")]
    pub orders: Option<PathBuf>,
    /// The pipe for reports about turns
    #[arg(long, value_name = "PIPE", requires = "orders")]
    pub reports: Option<PathBuf>,
    /// Hides progress
    #[arg(long, short)]
    pub quiet: bool,
}

impl CellArgs {
    /// Returns the cell for the runner.
    pub fn request(&self) -> CellRequest {
        CellRequest {
            run: self.run.clone(),
            cell: self.cell.clone(),
            data: self.data.clone(),
            pipes: self.pipes(),
            reuse: self.reuse.clone(),
        }
    }

    /// Returns the pipes of a cell that takes turns.
    fn pipes(&self) -> Option<LinkPipes> {
        let (orders, reports) = (self.orders.clone()?, self.reports.clone()?);
        Some(LinkPipes { orders, reports })
    }
}

/// Arguments of `library`.
#[derive(Clone, Debug, Args)]
pub struct LibraryArgs {
    /// The engine
    pub engine: String,
    /// The shared library
    pub path: PathBuf,
}
