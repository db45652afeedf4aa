//! Figures -> text: tables for a terminal, one self-contained HTML file, and what other tools read. Pure: it opens
//! nothing, and exports go into what they are given.
//!
//! Every table is built once, as data (`table::Table`), and rendered twice; so what a terminal shows and what the
//! HTML file shows can't differ. What is in which table is said in `classic`,
//! `grouped`, `metrics`, `times`, `quality` and `lsm`; `grid` has what is told of each line in each step.

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
mod metrics;
mod names;
mod number;
mod operations;
mod plot;
mod problems;
mod quality;
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
    Benchmarks, Form, HistogramLog, SecondTable, benchmarks, csv, day, metric_table, step_table,
};
pub use html::{CellRecord, Curves, Page, Source, html_page, live_page};
pub use number::rate_text;
pub use plot::plots;
pub use terminal::{
    TableStyle, differences, tables, tables_brief, tables_markdown, tables_named, tables_summary,
    terminal_text,
};
