//! Figures -> text: tables for a terminal, CSV, and one self-contained HTML file. Pure: it reads and writes nothing.
//!
//! Every table is built once, as data (`table::Table`), and rendered twice; so what a terminal shows and what the
//! HTML file shows can't differ. What is in which table is said in `classic`,
//! `grouped`, `metrics`, `times` and `lsm`.

mod classic;
mod differences;
mod export;
mod grouped;
mod html;
mod lsm;
mod matrix;
mod metrics;
mod number;
mod operations;
mod problems;
mod table;
mod terminal;
mod times;

pub use export::csv;
pub use html::{CellRecord, Curves, Page, Passage, Source, html, html_page};
pub use terminal::{TableStyle, differences, tables, tables_brief, terminal_text};
