//! The options of `tune`.

use std::path::PathBuf;
use std::time::Duration;

use analysis::tune::{Goal, Keep};
use clap::Args;
use inquiry::tune::TuneRequest;

use super::run::{PlaceArgs, PlanArgs};

/// Arguments of `tune`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  assay tune plan.toml --step l.i1 --time 2h
  assay tune plan.toml --step l.i1 --keep 'qr100 >= 0.95' --time 2h
  assay tune --resume results/20261126T100000Z-tune-l.i1 --time 1h

The plan has `[factors]`: options with their levels. Exit codes: 0 if a better configuration was found and confirmed by new instances, 4 if \
nothing helps or the gain is not confirmed, 130 if the time is up or the operator interrupted it.")]
pub struct TuneArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// The step whose throughput is to increase
    #[arg(long, value_name = "STEP", required_unless_present = "resume")]
    pub step: Option<String>,
    /// A step whose throughput must not fall below a share of the base's, such as `qr100 >= 0.95`.
    /// May be repeated
    #[arg(long, value_name = "STEP >= SHARE", value_parser = keep)]
    pub keep: Vec<Keep>,
    /// The time limit of this invocation. A phase that has begun still finishes its repeat
    #[arg(long, value_name = "TIME", value_parser = plan::parse_duration)]
    pub time: Option<Duration>,
    /// The number of repeats after which a phase ends
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub repeats_max: u32,
    /// Continues a tuning
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "step", "keep"])]
    pub resume: Option<PathBuf>,
    /// With `--resume`, also runs the programs that the log and the records name
    #[arg(long, requires = "resume")]
    pub trust: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

impl TuneArgs {
    /// Returns the tuning that is asked for.
    pub fn request(&self) -> TuneRequest {
        TuneRequest {
            plan: self.plan.request(),
            goal: Goal { step: self.step.clone().unwrap_or_default(), keeps: self.keep.clone() },
            repeats_max: self.repeats_max,
        }
    }
}

/// Reads `qr100 >= 0.95`.
fn keep(text: &str) -> Result<Keep, String> {
    let expected = "expected a step and a share of the base's throughput, such as `qr100 >= 0.95`";
    let (left, right) = text.split_once(">=").ok_or(expected)?;
    let step = left.trim().to_owned();

    match right.trim().parse() {
        Ok(share) if (0.0..=1.0).contains(&share) && !step.is_empty() => Ok(Keep { step, share }),
        _ => Err(expected.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_step_has_a_share() {
        assert_eq!(keep("qr100 >= 0.95"), Ok(Keep { step: "qr100".to_owned(), share: 0.95 }));
        for wrong in ["qr100", ">= 0.9", "qr100 >= 2", "qr100 >= much", "qr100 <= 0.9"] {
            assert!(keep(wrong).is_err(), "{wrong}");
        }
    }
}
