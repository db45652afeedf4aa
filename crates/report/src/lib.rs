//! Formats figures: tables for a terminal, one self-contained HTML file, plots, and files for other
//! tools.
//!
//! ```text
//! analysis::Figures ──► matrix    one line per cell, one column per step
//!                         │
//!                         ├─ classic grouped metrics times quality lsm ─┐
//!                         ├─ compared/   ratios, verdicts, costs        ├─► table::Table ──┬─► terminal
//!                         └─ findings    explanations                  ─┘                  ├─► markdown
//!                                                                                          └─► html/
//!                         plot/     forest plots, heat maps, charts ──► SVG ──► html/, files
//!                         html/     the page, its charts and scripts
//!                         export/   CSV, Parquet, benchstat, HdrHistogram
//! ```
//!
//! * Each table is built once as data and then formatted, so a terminal, Markdown and a page always
//!   show the same figures, marks and notes.
//! * Every line knows whether its figures may be compared (`worth`). Invalid figures stay visible,
//!   gray and with a reason, and no ratio, color or mean uses them.
//! * This crate opens no files: it returns text, or writes into sinks that it gets.
//! * Figures come from [`analysis`]; nothing is computed here but means and ranges of what is shown.
//! * Names, messages and plans come from engines and other hosts. Each printer removes what a
//!   terminal or a browser would obey ([`terminal_text`]).
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

mod answer;
mod classic;
mod compared;
mod differences;
mod export;
mod findings;
mod grid;
mod grouped;
mod html;
mod lsm;
mod markdown;
mod matrix;
mod metric_list;
mod metrics;
mod names;
mod number;
mod operations;
mod plans;
mod plot;
mod problems;
mod quality;
mod searches;
mod sizes;
mod table;
mod terminal;
mod times;
mod trees;
mod uneven;
mod worth;

pub use compared::{
    ComparedRun, Comparison, FactorEffects, compared, compared_csv, compared_json,
    compared_markdown, effects, effects_csv, effects_json, effects_markdown, factors, noise_floor,
    ratio_with_bounds, verdict_table,
};
pub use export::{
    Benchmarks, Form, HistogramLog, ProfileForm, SecondTable, benchmarks, csv, day, metric_table,
    step_table,
};
pub use html::{CellRecord, Curves, Page, Source, html_page, live_page};
pub use metric_list::metric_list;
pub use number::rate_text;
pub use plot::plots;
pub use terminal::{
    TableStyle, differences, is_printable, tables, tables_brief, tables_markdown, tables_named,
    tables_summary, terminal_text, verbatim,
};
