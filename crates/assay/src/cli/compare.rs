//! The options of `compare`, and the form of their values.

use std::path::PathBuf;

use analysis::compare::Requirement;
use clap::Args;
use inquiry::compare::CompareRequest;
use inquiry::compare::arguments::{
    Base, StepPattern, Threshold, check_metric, percent_of, requirement,
};

use super::Format;

/// Arguments of `compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Targets with the same name in several runs count as repeats of one target, so they must be identical. To compare \
yesterday's run with today's, use `--by-run`: that shows ratios without verdicts, since each \
run counts as a single measurement.

With `--gate`, the exit code is 0 if a regression beyond the threshold is ruled out, 3 if one is found, and 4 if neither is \
certain: the result is invalid, missing, too noisy or measured only once. Assay looks for regressions in throughput, in own CPU and \
instructions per operation, in exact work, and in each metric that a threshold names. To pass, only throughput and the named metrics must rule one out.

With `--require`, the exit code is 0 if every target meets every requirement, 3 if one is missed, and 4 if none is missed but \
one cannot be judged: it is invalid, not applicable, too noisy or measured only once. With `--gate` as well, 3 outweighs 4, and 4 \
outweighs 0.

`assay show RUN --summary` prints only the answer and its verdicts. On a busy machine, `assay run PLAN --exact` tells \
whether the engine's own work changed: it counts instructions, which other programs do not disturb.

Examples:
  assay compare RUN --metric response_p99 --metric response_p99:insert
  assay compare RUN --gate --threshold response_p99=10
  assay compare RUN --gate --junit gate.xml --markdown gate.md --annotations github
  assay compare RUN --require 'qr100 response_p99 < 5ms' --require 'qr100 sla >= 95%'")]
pub struct CompareArgs {
    /// The run directories
    #[arg(required_unless_present = "metrics", value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The base target [default: that of the first run's plan]. With GROUP, an engine or a build,
    /// the base of only that group's targets; may be repeated. Where variants are compared, the base
    /// variant [default: the plan's first]
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
    /// them. May be repeated. `variant` alone compares the variants of the workload, as if they were
    /// targets
    #[arg(long, value_name = "FACTOR", conflicts_with = "by_run")]
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
        conflicts_with = "by_step"
    )]
    pub requirements: Vec<Requirement>,
    /// Sets the exit code for use in CI, as described below
    #[arg(long)]
    pub gate: bool,
    /// Also writes the judgments of `--gate` and `--require` as a JUnit report. An
    /// uncertain judgment is an error there
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also writes the comparison as Markdown, after the judgments of `--gate` and `--require`,
    /// such as for `$GITHUB_STEP_SUMMARY`
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Annotates what `--gate` or `--require` rejected: `github` prints workflow commands,
    /// `gitlab` writes a code quality report, gl-code-quality-report.json without FILE
    #[arg(long, value_name = "github|gitlab[=FILE]")]
    pub annotations: Option<Annotations>,
    /// The largest change for the worse, in percent, that `--gate` accepts: `5` for throughput,
    /// own CPU and instructions per operation [default: that of `--effect`], `cpupq=10` for one
    /// metric, or `work=1` for exact work [default: any change that is shown]. May be repeated
    #[arg(long = "threshold", value_name = "[METRIC=]PERCENT")]
    pub thresholds: Vec<Threshold>,
    /// The smallest change that matters, in percent: `equal` means that any change is smaller than
    /// this [default: 3, or the `effect` of the plan of a run until decided]
    #[arg(long, value_name = "PERCENT", value_parser = percent_above_zero)]
    pub effect: Option<f64>,
    /// The accepted error rate in percent, for each target and kind of metric: the share of tables
    /// that show a change of a target which did not change
    #[arg(long, value_name = "PERCENT", default_value_t = ERROR_RATE, value_parser = error_percent)]
    pub error_rate: f64,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Shows only this step, with the verdict that the whole table gives it; may be repeated
    #[arg(long = "step", value_name = "NAME")]
    pub steps: Vec<String>,
    /// Explains the width of this step's intervals, instead of printing tables
    #[arg(long, value_name = "STEP", conflicts_with_all = ["format", "steps"])]
    pub why: Option<String>,
}

impl CompareArgs {
    /// Returns the comparison that is asked for.
    pub fn request(&self) -> CompareRequest {
        CompareRequest {
            runs: self.runs.clone(),
            bases: self.bases.clone(),
            by_run: self.by_run,
            by_step: self.by_step.clone(),
            by: self.by.clone(),
            metrics: self.metrics.clone(),
            requirements: self.requirements.clone(),
            thresholds: self.thresholds.clone(),
            effect: self.effect.map(|percent| percent / 100.0),
            error_rate: self.error_rate / 100.0,
            steps: self.steps.clone(),
            why: self.why.clone(),
        }
    }
}

/// The default of `--error-rate`, in percent.
const ERROR_RATE: f64 = 5.0;

/// One `--annotations`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotations {
    /// The system that reads them.
    pub format: AnnotationFormat,
    /// The file to write.
    pub file: Option<PathBuf>,
}

/// The system that reads annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationFormat {
    /// Workflow commands of GitHub.
    Github,
    /// A code quality report of GitLab.
    Gitlab,
}

impl std::str::FromStr for Annotations {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = match text.split_once('=') {
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (text, None),
        };

        let format = match format {
            "github" => AnnotationFormat::Github,
            "gitlab" => AnnotationFormat::Gitlab,
            other => return Err(format!("unknown format `{other}`; use `github` or `gitlab`")),
        };

        Ok(Self { format, file })
    }
}

/// The value of `--metric` that lists all metrics.
pub const METRIC_LIST: &str = "?";

/// Reads a `--metric`.
pub(super) fn metric_or_list(text: &str) -> Result<String, String> {
    if text != METRIC_LIST {
        check_metric(text)?;
    }
    Ok(text.to_owned())
}

pub(super) fn percent_above_zero(text: &str) -> Result<f64, String> {
    let percent = percent_of(text)?;
    let is_within = percent > 0.0 && percent < 100.0;
    is_within.then_some(percent).ok_or("the percentage must be above 0 and below 100".into())
}

pub(super) fn error_percent(text: &str) -> Result<f64, String> {
    let percent = percent_of(text)?;
    let is_within = (0.01..=50.0).contains(&percent);
    is_within.then_some(percent).ok_or("the percentage must be from 0.01 to 50".into())
}
