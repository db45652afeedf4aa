//! Formats figures: tables for a terminal, one self-contained HTML file, plots, and files for other
//! tools.
//!
//! ```text
//! analysis::figures::Figures, record::Run
//!    │
//!    ▼
//! model/      what is shown: lines of cells, steps, names; a Table as data; a Comparison
//!    │
//!    ▼
//! tables/     figures as Tables: throughput, costs, times, quality, LSM trees, ratios
//!    │
//!    ▼
//! prose/      what is said: the answer, findings, problems, the method, as values
//!    │
//!    ├──► plot/      forest plots, heat maps and charts as SVG
//!    ▼        │
//! printers/ ◄─┘      terminal, Markdown, page (HTML), JSON
//!
//! export/     CSV, Parquet, benchstat, HdrHistogram, CPU profiles: every digit, for other tools
//! ```
//!
//! Data flows down only: a table knows no printer, and no sentence is worded by one. Whatever is
//! shown twice, in a terminal and in a page, therefore has the same figures, marks, notes and
//! words.
//!
//! * [`model::matrix::Matrix`]: one line per cell, one column per step; nearly every table begins
//!   with it.
//! * [`model::table::Table`]: a table as data. Each cell has a [`Tone`](model::table::Tone), which
//!   a printer shows as a color and a mark.
//! * [`model::comparison::Comparison`]: targets with verdicts. [`tables::compared::Board`] looks
//!   them up for tables and plots.
//! * [`prose::Passage`]: an answer or a finding.
//! * [`printers::terminal::writer::TerminalWriter`], [`printers::page`], [`printers::json`]: the
//!   printers.
//!
//! Three rules hold everywhere:
//!
//! * Every line knows whether its figures may be compared ([`model::worth`]). Invalid figures stay
//!   visible, gray and with a reason, and no ratio, color or mean uses them.
//! * Nothing is computed here but means and ranges of what is shown. Figures come from
//!   [`analysis`]. This crate opens no files: it returns text, or writes into sinks that it gets.
//! * Names, messages and plans come from engines and other hosts. Each printer removes what a
//!   terminal or a browser would obey ([`model::text`]).
//!
//! ```
//! use analysis::figures::{Figures, Row};
//! use record::{CellKey, Run, Status, StepKind};
//! use report::{TableStyle, tables};
//!
//! let row = Row {
//!     cell: CellKey::new("pg17.base", None, 8, 1),
//!     step: "l.i0".into(),
//!     kind: StepKind::Load,
//!     main_op: Some("insert".into()),
//!     metrics: [("ips", Some(54_321.0))].into(),
//!     status: Status::Complete,
//!     valid: true,
//!     reported: true,
//!     ..Row::default()
//! };
//! let figures = Figures { rows: vec![row], ..Figures::default() };
//! let text = tables(&Run::default(), &figures, TableStyle::default());
//! assert!(text.contains("\npg17.base  54,321\n"));
//! ```

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the heading leads those who change the crate to its types"
)]

mod export;
mod model;
mod plot;
mod printers;
mod prose;
mod tables;

pub use export::{
    Benchmarks, Form, HistogramLog, Judgement, JudgementOutcome, LatencyTable, ProfileForm,
    SampleTable, SecondTable, benchmarks, compared_csv, csv, day, effects_csv, github_annotations,
    gitlab_report, histogram_log_name, history_csv, judgements_markdown, junit, metric_table,
    step_table, verdict_table,
};
pub use model::comparison::{Across, ComparedRun, Comparison, FactorEffects, effects_of_matrices};
pub use model::history::HistoryView;
pub use model::number::{age_text, moment_of_seconds, rate_text};
pub use model::outline::{ListedEntry, ListedRun, ListedSearch, Outline, RunState, SearchOutline};
pub use model::text::{file_url, is_printable, terminal_text};
pub use plot::{PlotFiles, plots};
pub use printers::catalog::{
    CatalogRow, ComparedSides, RunList, RunPage, SideChoice, comparison_page, list_page, paths,
    refused_page, run_page,
};
pub use printers::history::{ServedStep, history_page, step_page};
pub use printers::json::{
    compared_json, effects_json, history_json, json_text, run_json, run_list_json,
};
pub use printers::markdown::escaped as markdown_escaped;
pub use printers::page::{
    CellRecord, Curves, Page, Source, html_page, live_page, variants_as_targets,
};
pub use printers::terminal::bundles::{BundleCommand, BundleFacts, BundleProgram, bundle_readme};
pub use printers::terminal::columns::{columns, safe_columns};
pub use printers::terminal::comparisons::{
    across, across_markdown, compared, compared_markdown, noise_floor,
};
pub use printers::terminal::effects::{effects, effects_markdown, factors};
pub use printers::terminal::history::{history, history_markdown};
pub use printers::terminal::run_list::run_list;
pub use printers::terminal::runs::{
    differences, disk_floor, metric_list, steps_with_table, tables, tables_brief, tables_named,
    tables_of_steps, tables_overview, tables_summary, verbatim,
};
pub use printers::terminal::writer::TableStyle;
pub use prose::bisections::BisectView;
pub use prose::brief::result_in_brief;
pub use prose::judgements::{
    comparison_sentence, requirement_sentence, ruled_out_sentence, work_sentence,
};
pub use prose::max_rates::max_rate_sentence;
pub use prose::tunings::{TuneView, TunedFactor};
pub use prose::why::why;
pub use tables::compared::ratio_with_bounds;
