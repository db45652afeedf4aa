//! The options of `conform`.

use std::path::PathBuf;

use clap::Args;

use super::TableFormat;

/// Arguments of `conform`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Each check runs in a process of its own, on an empty database. Assay kills processes that write at random moments, and makes the kernel \
refuse fsync. The exit code is 1 if the adapter breaks a promise. docs/engine.md says how to write an adapter.

Examples:
  assay conform --header > assay_engine.h
  assay conform ./libmine.so
  assay conform ./libmine.so --set cache=64m --only crash-process --kills 100")]
pub struct ConformArgs {
    /// The adapter: a shared library that includes `assay_engine.h`
    #[arg(required_unless_present_any = ["header", "list"])]
    pub library: Option<PathBuf>,
    /// Prints `assay_engine.h`, which adapters include
    #[arg(long, conflicts_with_all = ["library", "list"])]
    pub header: bool,
    /// Lists the checks
    #[arg(long, conflicts_with = "library")]
    pub list: bool,
    /// Sets an option of the database
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = option)]
    pub options: Vec<(String, String)>,
    /// Runs only this check. May be repeated
    #[arg(long, value_name = "CHECK")]
    pub only: Vec<String>,
    /// The number of times to kill the process that writes, for each durability
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub kills: u32,
    /// The seed of keys, values and moments
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// The output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    pub format: TableFormat,
}

/// Reads `NAME=VALUE`.
fn option(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Arguments of `conform-check`.
#[derive(Clone, Debug, Args)]
pub struct ConformCheckArgs {
    /// The name of the check
    pub check: String,
}
