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
//! * Figures come from [`analysis`]; nothing is computed here but means and ranges of what is
//!   shown.
//! * Names, messages and plans come from engines and other hosts. Each printer removes what a
//!   terminal or a browser would obey ([`terminal_text`]).
//!
//! ```
//! use analysis::{Figures, Row};
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

mod export;
mod model;
mod plot;
mod printers;
mod prose;
mod tables;

pub use export::{
    Benchmarks, Form, HistogramLog, ProfileForm, SecondTable, benchmarks, compared_csv, csv, day,
    effects_csv, metric_table, step_table, verdict_table,
};
pub use model::comparison::{ComparedRun, Comparison, FactorEffects};
pub use model::number::rate_text;
pub use model::text::{is_printable, terminal_text};
pub use plot::plots;
pub use printers::json::{compared_json, effects_json};
pub use printers::page::{CellRecord, Curves, Page, Source, html_page, live_page};
pub use printers::terminal::comparisons::{compared, compared_markdown, noise_floor};
pub use printers::terminal::effects::{effects, effects_markdown, factors};
pub use printers::terminal::runs::{
    differences, metric_list, tables, tables_brief, tables_markdown, tables_named, tables_summary,
    verbatim,
};
pub use printers::terminal::writer::TableStyle;
pub use tables::compared::ratio_with_bounds;
