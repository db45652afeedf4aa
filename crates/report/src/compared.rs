//! A comparison of targets, or of the levels of factors, as tables and text.
//!
//! The tables of a single run have a line for each cell. Here all repeats of a target are one line
//! ([`RepeatedLine`]), because verdicts are about targets, not repeats.
//!
//! ```text
//! Comparison ─► Board ─┬─ relative   ratios to the base, with intervals and verdicts
//!    │                 └─ costs      what an operation costs, with the ratio to the base
//!    ├─ waits, plans, functions      where the time went, and why
//!    ├─ noise                        a target compared with itself
//!    ├─ words                        how targets were compared, in sentences
//!    └─ verdicts, json               all digits, for programs
//! FactorEffects ─► effects           the same for factors, by their levels
//! ```
//!
//! A report orders these by what a reader needs first: see `write`. The answer stands last in a
//! terminal, where the end of a text stays in view, and first in Markdown.

mod board;
mod costs;
mod effects;
mod functions;
mod json;
mod noise;
mod plans;
mod relative;
mod requirements;
mod verdicts;
mod waits;
mod words;

use analysis::compare::{Compared, Pairing};
use analysis::explain::Finding;
use analysis::figures::Figures;
use record::Run;

use crate::answer;
use crate::findings;
use crate::table::Table;
use crate::terminal::{TableStyle, TerminalWriter};

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
    /// The name of the run's directory.
    pub name: String,
    /// The record.
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
    let mut out = TerminalWriter::new(style);
    write(&mut out, comparison);
    out.finish()
}

/// Formats a comparison as Markdown.
pub fn compared_markdown(comparison: &Comparison<'_>) -> String {
    let mut out = TerminalWriter::markdown(false);
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
    compared.rows.iter().any(|row| row.pairing != Pairing::Single)
}

/// Writes how the targets were compared and what the verdicts mean.
pub(crate) fn write_method<'a>(out: &mut TerminalWriter, made: impl Into<Method<'a>>) {
    let made = made.into();
    out.gap();
    for line in unfinished(&made).into_iter().chain(method(&made)) {
        out.line(&line);
    }
}

/// Writes a comparison: the findings before the costs, and the answer last in a terminal or first
/// in Markdown.
fn write(out: &mut TerminalWriter, comparison: &Comparison<'_>) {
    let compared = comparison.compared;

    // One target alone can be judged by requirements, but has nothing to be compared with.
    let has_comparisons = !compared.rows.is_empty() || compared.requirements.is_empty();
    if has_comparisons {
        out.main_title(&words::title(compared));
    }
    for line in words::runs(comparison.runs) {
        out.wrapped("  ", &line);
    }
    if !has_comparisons {
        out.table(&requirements::table(compared));
        return;
    }
    if out.is_markdown() {
        answer::write(out, comparison);
        write_requirements(out, compared);
    }

    findings::write(out, comparison.findings);
    out.tables(other_verdicts(comparison));
    out.tables(costs(comparison));
    out.tables(waits(comparison));
    out.tables(plans(comparison));
    out.tables(functions::tables(comparison.figures, &compared.profiles));
    functions::write_missing(out, comparison.figures);
    if comparison.runs.iter().all(|compared| noise::is_against_itself(compared.run)) {
        noise::write(out, compared);
    }

    write_method(out, compared);
    if !out.is_markdown() {
        write_requirements(out, compared);
        answer::write(out, comparison);
    }
}

fn write_requirements(out: &mut TerminalWriter, compared: &Compared) {
    if !compared.requirements.is_empty() {
        out.table(&requirements::table(compared));
    }
}
