//! What a comparison comes to: how it was made, throughput relative to the base with intervals and verdicts, what an
//! operation costs beside the base's, and the findings. Repeats of a target are one line here.

mod board;
mod costs;
mod csv;
mod json;
mod noise;
mod relative;
mod words;

use analysis::{Compared, Figures, Finding, Pairing};
use record::Run;

use crate::findings;
use crate::matrix::Matrix;
use crate::table::Table;
use crate::terminal::{TableStyle, Text};
use crate::uneven;
use board::Board;

pub use csv::compared_csv;
pub use json::compared_json;
pub use noise::noise_floor;
pub use relative::bounds;

/// One of the runs that are compared.
#[derive(Clone, Debug)]
pub struct ComparedRun<'a> {
    /// What it is called: its directory.
    pub name: String,
    /// Its record.
    pub run: &'a Run,
}

/// A comparison with all that it is shown with.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The targets of all runs, in the order in which they are shown, and the base.
    pub run: &'a Run,
    /// The runs, in the order in which rows count them.
    pub runs: &'a [ComparedRun<'a>],
    /// The figures that were compared.
    pub figures: &'a Figures,
    /// What came of it.
    pub compared: &'a Compared,
    /// What explains it, what matters most first.
    pub findings: &'a [Finding],
}

/// A comparison as tables for a terminal.
pub fn compared(comparison: &Comparison<'_>, style: TableStyle) -> String {
    let mut out = Text::new(style);
    write(&mut out, comparison);
    out.finish()
}

/// The same as Markdown, for a page of GitHub.
pub fn compared_markdown(comparison: &Comparison<'_>) -> String {
    let mut out = Text::markdown(TableStyle::default());
    write(&mut out, comparison);
    out.finish()
}

/// The tables of a comparison, what matters most first.
pub(crate) fn tables(comparison: &Comparison<'_>) -> Vec<Table> {
    let board = Board::new(comparison);
    let mut tables = relative::tables(&board);
    tables.extend(costs::tables(&board));
    tables.retain(Table::has_figures);
    tables
}

/// Returns whether anything was measured more than once, so that there are verdicts.
pub(crate) fn is_repeated(compared: &Compared) -> bool {
    let mut rows = compared.rows.iter();
    rows.any(|row| row.pairing != Pairing::Single)
}

/// Writes the tables that have verdicts, and how they were made.
pub(crate) fn write_verdicts(out: &mut Text, comparison: &Comparison<'_>) {
    let mut tables = relative::tables(&Board::new(comparison));
    tables.retain(Table::has_figures);
    out.tables(tables);
    out.gap();
    for line in unfinished(comparison).into_iter().chain(method(comparison)) {
        out.line(&line);
    }
}

/// How a comparison was made and what its verdicts mean, a paragraph each.
pub(crate) fn method(comparison: &Comparison<'_>) -> Vec<String> {
    words::method(comparison.compared)
}

/// Returns the note that cells are missing, which stands above everything else; `None`: none are.
pub(crate) fn unfinished(comparison: &Comparison<'_>) -> Option<String> {
    words::unfinished(comparison.compared)
}

fn write(out: &mut Text, comparison: &Comparison<'_>) {
    out.first(&words::title(comparison.compared));
    for line in words::runs(comparison.runs) {
        out.wrapped("  ", &line);
    }
    if let Some(busy) = uneven::busy(&Matrix::new(comparison.run, comparison.figures)) {
        out.doubt(&format!("warning: {busy}"));
    }
    for line in unfinished(comparison).into_iter().chain(method(comparison)) {
        out.line(&line);
    }
    out.tables(tables(comparison));
    if comparison
        .runs
        .iter()
        .all(|it| noise::is_against_itself(it.run))
    {
        noise::write(out, comparison.compared);
    }
    findings::write(out, comparison.findings);
}
