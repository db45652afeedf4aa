//! Figures -> text: tables for a terminal, one self-contained HTML file, and what other tools read. Pure: it opens
//! nothing, and exports go into what they are given.
//!
//! Every table is built once, as data (`table::Table`), and rendered twice; so what a terminal shows and what the
//! HTML file shows can't differ. What is in which table is said in `classic`,
//! `grouped`, `metrics`, `times`, `quality` and `lsm`.

mod classic;
mod compared;
mod differences;
mod export;
mod findings;
mod grouped;
mod html;
mod lsm;
mod markdown;
mod matrix;
mod metrics;
mod number;
mod operations;
mod problems;
mod quality;
mod table;
mod terminal;
mod times;
mod trees;
mod uneven;

pub use compared::{
    ComparedRun, Comparison, bounds, compared, compared_csv, compared_json, compared_markdown,
    noise_floor,
};
pub use export::{
    About, Benchmarks, ExportedRun, Form, HistogramLog, SecondTable, benchmarks, csv, step_table,
};
pub use html::{CellRecord, Curves, Page, Source, html, html_page};
pub use number::rate_text;
pub use terminal::{TableStyle, differences, tables, tables_brief, tables_markdown, terminal_text};
