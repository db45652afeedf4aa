//! Exports for other tools: tables of steps, metrics, seconds and samples as CSV and Parquet, Go's benchmark
//! format, HdrHistogram logs, and CPU profiles. `docs/export.md` describes them.
//!
//! Tables are written line by line, so that one of seconds needs no more memory than one step.

mod benchmarks;
mod effects;
mod firefox;
mod histogram_log;
mod history;
mod judgements;
mod latencies;
mod pprof;
mod profiles;
mod samples;
mod seconds;
mod sheet;
mod steps;
mod verdicts;

pub use benchmarks::{Benchmarks, benchmarks};
pub use effects::effects_csv;
pub use histogram_log::{HistogramLog, histogram_log_name};
pub use history::history_csv;
pub use judgements::{
    Judgement, JudgementOutcome, github_annotations, gitlab_report, judgements_markdown, junit,
};
pub use latencies::LatencyTable;
pub use profiles::ProfileForm;
pub use samples::SampleTable;
pub use seconds::SecondTable;
pub use sheet::{Form, day};
pub use steps::{csv, metric_table, step_table};
pub use verdicts::{compared_csv, verdict_table};
