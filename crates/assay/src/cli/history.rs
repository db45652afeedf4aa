//! The options of `history`.

use std::path::PathBuf;

use analysis::history::{HistoryOptions, HistoryOrder, LevelOptions, RECENT_RUNS, history_metrics};
use clap::{Args, ValueEnum};

use super::Format;

/// Arguments of `history`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A series is a step of a target with its load and a metric, over all runs of one plan that did the same work. A new level has at \
least two runs: one high run is listed as not confirmed.

Each run that is read gets a `history.json` of a few kilobytes, from which it is read the next time. If you keep only this file, \
the run stays in the history.

With `--gate`, the exit code is 3 if the newest level of a series is for the worse, is at most `--recent` runs old, and is \
attributed to its target. A change that the machine explains does not fail.

Examples:
  assay history results
  assay history results --html history.html --gate
  assay history results --metric throughput --step qr100 --by version")]
pub struct HistoryArgs {
    /// The directory of runs; those in directories below it count as well
    #[arg(default_value = runner::RESULTS, value_name = "DIR")]
    pub folder: PathBuf,
    /// The order of the points
    #[arg(long, value_enum, default_value_t = By::Time)]
    pub by: By,
    /// Shows only this metric: throughput, own_cpu_us_per_op, instructions_per_op or response_p99.
    /// May be repeated
    #[arg(long = "metric", value_name = "NAME", value_parser = metric)]
    pub metrics: Vec<String>,
    /// Shows only this step; may be repeated
    #[arg(long = "step", value_name = "NAME")]
    pub steps: Vec<String>,
    /// Shows only this plan; may be repeated
    #[arg(long = "plan", value_name = "NAME")]
    pub plans: Vec<String>,
    /// The smallest change that is shown, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub threshold: f64,
    /// The accepted share of false changes among all changes that are shown, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    pub error_rate: f64,
    /// Sets the exit code for use in CI, as described below
    #[arg(long)]
    pub gate: bool,
    /// The number of runs up to which `--gate` counts a level as new
    #[arg(long, value_name = "COUNT", default_value_t = RECENT_RUNS, requires = "gate")]
    pub recent: usize,
    /// Also writes a page with all series, in one self-contained file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

impl HistoryArgs {
    /// Returns the options of the history that is asked for.
    pub fn options(&self) -> HistoryOptions {
        HistoryOptions {
            levels: LevelOptions {
                error_rate: self.error_rate / 100.0,
                effect: self.threshold / 100.0,
            },
            order: self.by.into(),
            metrics: self.metrics.clone(),
            recent_runs: self.recent,
        }
    }
}

/// The order of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The start of the run
    Time,
    /// The version of the target's build, then the start of the run
    Version,
    /// The time of the commit that the target's build was made from, then the start of the run
    Commit,
}

impl From<By> for HistoryOrder {
    fn from(by: By) -> Self {
        match by {
            By::Time => Self::Time,
            By::Version => Self::Version,
            By::Commit => Self::Commit,
        }
    }
}

fn metric(text: &str) -> Result<String, String> {
    if history_metrics().any(|known| known == text) {
        return Ok(text.to_owned());
    }
    let known: Vec<&str> = history_metrics().collect();
    Err(format!("only these have a history: {}", known.join(", ")))
}

/// Reads a share in percent, above 0 and below 100.
fn percent(text: &str) -> Result<f64, String> {
    let value = text.trim_end_matches('%').parse::<f64>().map_err(|error| error.to_string())?;
    if value > 0.0 && value < 100.0 {
        Ok(value)
    } else {
        Err("it must be above 0 and below 100".into())
    }
}
