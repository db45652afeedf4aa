//! The options of `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
    /// `--partition`, `steps`, `metrics` and
    /// `verdicts`]
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
    /// One row per second of each step and counter of the engine or column of the host
    Samples,
    /// One row per bucket of the latency histograms of each step and kind of operation
    Latencies,
}

impl ExportTable {
    /// Returns the table's name in the names of files and directories.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Metrics => "metrics",
            Self::Verdicts => "verdicts",
            Self::Seconds => "seconds",
            Self::Samples => "samples",
            Self::Latencies => "latencies",
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
