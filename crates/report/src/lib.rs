//! Figures -> text: tables for a terminal, CSV, and one self-contained HTML file. Pure: it reads and writes nothing.
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

pub use compared::{
    ComparedRun, Comparison, compared, compared_csv, compared_json, compared_markdown, noise_floor,
};
pub use export::csv;
pub use html::{CellRecord, Source, html};
pub use terminal::{TableStyle, differences, tables, tables_brief, tables_markdown, terminal_text};
