//! Exports for other tools: tables of steps, metrics and seconds as CSV and Parquet, Go's benchmark
//! format, HdrHistogram logs, and CPU profiles. `docs/export.md` describes them.
//!
//! Tables are written line by line, so that one of seconds needs no more memory than one step.

mod benchmarks;
mod firefox;
mod histogram_log;
mod pprof;
mod profiles;
mod seconds;
mod sheet;
mod steps;

pub use benchmarks::{Benchmarks, benchmarks};
pub use histogram_log::HistogramLog;
pub use profiles::ProfileForm;
pub(crate) use profiles::cell_name;
pub use seconds::SecondTable;
pub use sheet::{Form, day};
pub(crate) use sheet::{Line, Sheet, Value, csv_text, fixed};
pub(crate) use steps::of_runs;
pub use steps::{csv, metric_table, step_table};
