//! The options of `bisect`.

use std::path::PathBuf;

use clap::Args;
use inquiry::bisect::{BisectRequest, Candidates};

use super::compare::percent_above_zero;
use super::run::{PlaceArgs, PlanArgs};

/// Arguments of `bisect`.
#[derive(Clone, Debug, Args)]
#[command(
    group = clap::ArgGroup::new("candidates").multiple(true).args(["good", "builds", "resume"]).required(true),
    after_help = "\
Examples:
  assay bisect plan.toml --good rocksdb@10.5.1 --bad rocksdb@10.6.2 --step overwrite
  assay bisect plan.toml --good postgres@15.3 --bad postgres@17.2 --step point-query --metric work
  assay bisect plan.toml --git /src/rocksdb --good v10.5.1 --bad v10.6.2 --step fillseq
  assay bisect --resume results/20261126T100000Z-bisect-overwrite

The plan says what is measured; the candidates take the place of its builds. Exit codes: 0 if each change was found and confirmed, \
4 if the ends do not differ, or a change was not narrowed down or not confirmed. With `--predicate`, those of `git bisect run`: 0 good, 1 bad, 125 undecided, \
255 something is wrong with the plan or the command line."
)]
pub struct BisectArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// The older end: a spec such as `rocksdb@10.5.1`, the name of a build, or with `--git` a
    /// commit. All releases between it and `--bad` are candidates
    #[arg(long, value_name = "BUILD", conflicts_with = "builds")]
    pub good: Option<String>,
    /// The newer end. It may also be the faster one
    #[arg(long, value_name = "BUILD", requires = "good", conflicts_with = "predicate")]
    pub bad: Option<String>,
    /// All candidates, the oldest first: specs or names of builds
    #[arg(long, value_name = "BUILD,...", value_delimiter = ',', conflicts_with = "bad")]
    pub builds: Vec<String>,
    /// Searches the commits of this repository. The plan's build has the recipe: `docs/builds.md`
    #[arg(long, value_name = "DIR", requires = "bad")]
    pub git: Option<PathBuf>,
    /// The step that changed. Later steps of the plan are left out
    #[arg(long, value_name = "STEP", required_unless_present = "resume")]
    pub step: Option<String>,
    /// The measure to compare: `throughput`, a metric that `assay compare --metric '?'` lists,
    /// `work` (instructions per operation), or `background-work` (those of flushes and compactions)
    #[arg(long, value_name = "NAME", default_value = "throughput")]
    pub metric: String,
    /// The config to measure, if the plan has several
    #[arg(long, value_name = "NAME")]
    pub config: Option<String>,
    /// The smallest change to find, in percent [default: half of that between the ends, and at
    /// least 3]
    #[arg(long, value_name = "PERCENT", value_parser = percent_above_zero)]
    pub threshold: Option<f64>,
    /// Measures the middle even if the ends do not differ: the change may have come and gone
    #[arg(long)]
    pub explore: bool,
    /// The number of repeats after which an undecided candidate is skipped
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub repeats_max: u32,
    /// Continues a search
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "sets", "good", "builds", "step", "results"])]
    pub resume: Option<PathBuf>,
    /// With `--resume`, also runs the programs that the log and the records name
    #[arg(long, requires = "resume")]
    pub trust: bool,
    /// Compares `--candidate` with `--good` and ends with an exit code for `git bisect run`
    #[arg(long, requires_all = ["good", "candidate"])]
    pub predicate: bool,
    /// The build to judge with `--predicate`, such as `dir:$PWD`
    #[arg(long, value_name = "BUILD", requires = "predicate")]
    pub candidate: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

impl BisectArgs {
    /// Returns the search that is asked for.
    pub fn request(&self) -> BisectRequest {
        BisectRequest {
            plan: self.plan.request(),
            candidates: self.candidates(),
            step: self.step.clone().unwrap_or_default(),
            metric: self.metric.clone(),
            config: self.config.clone(),
            threshold: self.threshold.map(|percent| percent / 100.0),
            explores: self.explore,
            repeats_max: self.repeats_max,
        }
    }

    fn candidates(&self) -> Candidates {
        let ends = self.good.clone().zip(self.bad.clone());
        match (self.git.clone(), ends, &self.candidate, &self.good) {
            (Some(repository), Some((good, bad)), ..) => {
                Candidates::Commits { repository, good, bad }
            }
            (None, Some((good, bad)), ..) => Candidates::Releases { good, bad },
            (_, None, Some(candidate), Some(good)) => {
                Candidates::Builds(vec![good.clone(), candidate.clone()])
            }
            _ => Candidates::Builds(self.builds.clone()),
        }
    }
}
