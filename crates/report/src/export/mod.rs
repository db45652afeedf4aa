//! Figures for other tools: tables of steps and of seconds as CSV and Parquet, Go's benchmark format, and HdrHistogram
//! logs. What each holds is said in `docs/export.md`.
//!
//! Everything is written line by line into what it is given, so that a table of seconds takes no more memory than one
//! step.

mod benchmarks;
mod histogram_log;
mod seconds;
mod sheet;
mod steps;

pub use benchmarks::{Benchmarks, benchmarks};
pub use histogram_log::HistogramLog;
pub(crate) use record::ColumnType;
pub use seconds::SecondTable;
pub use sheet::{About, ExportedRun, Form};
pub(crate) use sheet::{Sheet, Value, column};
pub use steps::{csv, step_table};
