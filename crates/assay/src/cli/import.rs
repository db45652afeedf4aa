//! The options of `import`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `import`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  assay import old --guess > campaign.toml
  assay import old --campaign campaign.toml --explain
  assay import old --campaign campaign.toml --out results/old
  assay import old --campaign campaign.toml --as-published")]
pub struct ImportArgs {
    /// The directory or archive with result files of other tools
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The description of the directory: which file is of which target and step
    #[arg(long, value_name = "FILE", required_unless_present = "guess")]
    pub campaign: Option<PathBuf>,
    /// The run directory to write; for a campaign of several runs, their directory [default: a
    /// new one in `results`]
    #[arg(long, value_name = "RUN")]
    pub out: Option<PathBuf>,
    /// Says how each file is understood, and writes nothing
    #[arg(long, conflicts_with_all = ["out", "guess"])]
    pub explain: bool,
    /// Prints a first description of the directory
    #[arg(long, conflicts_with_all = ["campaign", "out"])]
    pub guess: bool,
    /// Computes the tables that the campaign's author published, with the same arithmetic, and
    /// compares them cell by cell
    #[arg(long, conflicts_with_all = ["explain", "guess", "out"])]
    pub as_published: bool,
}
