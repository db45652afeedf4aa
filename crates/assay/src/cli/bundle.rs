//! The options of `bundle`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `bundle`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The bundle has a README.md for the bug report, a plan of the two targets and the step, the figures in JSON, and what explains the \
change. `assay run BUNDLE` repeats the finding on another machine, and says whether it was reproduced.

Examples:
  assay bundle latest --between pg15.base pg17.base --step update-index
  assay bundle RUN --between A B --step qr100 --clients 8 -o report.tar.gz")]
pub struct BundleArgs {
    /// The run directory
    pub run: PathBuf,
    /// The target that the other is compared with, and the other
    #[arg(long, num_args = 2, value_names = ["A", "B"], required = true)]
    pub between: Vec<String>,
    /// The step in which the two differ
    #[arg(long, value_name = "STEP")]
    pub step: String,
    /// The figure that differs: `throughput`, `work` or the name of a metric [default: the first of
    /// throughput, work and own CPU that shows a change]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// The number of clients [default: the one at which the change is clearest]
    #[arg(long, value_name = "COUNT")]
    pub clients: Option<u32>,
    /// The variant of the workload [default: the one in which the change is clearest]
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// The directory to write, or an archive if the name ends with `.tar.gz`, `.tgz` or `.tar`
    /// [default: PLAN-STEP.tar.gz]
    #[arg(long, short, value_name = "DIR|FILE")]
    pub output: Option<PathBuf>,
}
