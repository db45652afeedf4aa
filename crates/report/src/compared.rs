//! A comparison as text: throughput relative to the base with intervals and verdicts, the cost of
//! an operation, the findings, and how targets were compared. The repeats of a target are one line
//! here.

mod board;
mod costs;
mod effects;
mod functions;
mod json;
mod noise;
mod plans;
mod relative;
mod verdicts;
mod waits;
mod words;

use analysis::{Compared, Figures, Finding, Pairing};
use record::Run;

use crate::answer;
use crate::findings;
use crate::table::Table;
use crate::terminal::{TableStyle, Text};

pub(crate) use board::{Board, RepeatedLine, mean_of};
pub(crate) use effects::section as effects_section;
pub use effects::{FactorEffects, effects, effects_csv, effects_json, effects_markdown, factors};
pub(crate) use functions::{
    MissingProfiles, facts, missing as missing_profiles, operation, tables as function_tables,
};
pub use json::compared_json;
pub use noise::noise_floor;
pub use relative::ratio_with_bounds;
pub(crate) use relative::{ratio_cell, tone};
pub use verdicts::{compared_csv, verdict_table};
pub(crate) use words::{Method, method, percent, unfinished};

/// One of the compared runs.
#[derive(Clone, Debug)]
pub struct ComparedRun<'a> {
    /// Its name: its directory.
    pub name: String,
    /// Its record.
    pub run: &'a Run,
}

/// A comparison, and the records and findings that are shown with it.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The targets of all runs in the order in which they are shown, and the base.
    pub run: &'a Run,
    /// The runs; rows refer to them by index.
    pub runs: &'a [ComparedRun<'a>],
    /// The figures that were compared.
    pub figures: &'a Figures,
    /// The comparisons with their verdicts.
    pub compared: &'a Compared,
    /// The explanations, the most important first.
    pub findings: &'a [Finding],
}

/// Formats a comparison as tables for a terminal.
pub fn compared(comparison: &Comparison<'_>, style: TableStyle) -> String {
    let mut out = Text::new(style);
    write(&mut out, comparison);
    out.finish()
}

/// Formats a comparison as Markdown.
pub fn compared_markdown(comparison: &Comparison<'_>) -> String {
    let mut out = Text::markdown(false);
    write(&mut out, comparison);
    out.finish()
}

impl<'a> Comparison<'a> {
    /// Returns the comparison of the targets of one run.
    pub(crate) fn of_run(
        run: &'a Run,
        figures: &'a Figures,
        compared: &'a Compared,
        findings: &'a [Finding],
    ) -> Self {
        Self { run, runs: &[], figures, compared, findings }
    }
}

/// Returns the tables of throughput relative to the base.
pub(crate) fn verdicts(comparison: &Comparison<'_>) -> Vec<Table> {
    with_figures(relative::throughput(&Board::new(comparison)))
}

/// Returns the tables of the other metrics that have their own verdicts.
pub(crate) fn other_verdicts(comparison: &Comparison<'_>) -> Vec<Table> {
    with_figures(relative::others(&Board::new(comparison)))
}

/// Returns the tables of what an operation costs, with the ratio to the base.
pub(crate) fn costs(comparison: &Comparison<'_>) -> Vec<Table> {
    with_figures(costs::tables(&Board::new(comparison)))
}

/// Returns the table of waits of sessions that changed, if any did.
pub(crate) fn waits(comparison: &Comparison<'_>) -> Vec<Table> {
    with_figures(vec![waits::table(comparison)])
}

/// Returns the table of statements whose plans differ, if there are any.
pub(crate) fn plans(comparison: &Comparison<'_>) -> Vec<Table> {
    with_figures(vec![plans::table(comparison.compared)])
}

fn with_figures(mut tables: Vec<Table>) -> Vec<Table> {
    tables.retain(Table::has_figures);
    tables
}

/// Returns true if anything was measured more than once, so that there are verdicts.
pub(crate) fn is_repeated(compared: &Compared) -> bool {
    let mut rows = compared.rows.iter();
    rows.any(|row| row.pairing != Pairing::Single)
}

/// Writes how the targets were compared and what the verdicts mean.
pub(crate) fn write_method<'a>(out: &mut Text, made: impl Into<Method<'a>>) {
    let made = made.into();
    out.gap();
    for line in unfinished(&made).into_iter().chain(method(&made)) {
        out.line(&line);
    }
}

/// Writes a comparison: the findings before the costs, and the answer last in a terminal or first
/// in Markdown.
fn write(out: &mut Text, comparison: &Comparison<'_>) {
    out.main_title(&words::title(comparison.compared));
    for line in words::runs(comparison.runs) {
        out.wrapped("  ", &line);
    }
    if out.is_markdown() {
        answer::write(out, comparison);
    }
    findings::write(out, comparison.findings);
    out.tables(other_verdicts(comparison));
    out.tables(costs(comparison));
    out.tables(waits(comparison));
    out.tables(plans(comparison));
    out.tables(functions::tables(comparison.figures, &comparison.compared.profiles));
    functions::write_missing(out, comparison.figures);
    if comparison.runs.iter().all(|it| noise::is_against_itself(it.run)) {
        noise::write(out, comparison.compared);
    }
    write_method(out, comparison.compared);
    if !out.is_markdown() {
        answer::write(out, comparison);
    }
}
