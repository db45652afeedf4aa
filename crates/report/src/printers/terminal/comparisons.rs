//! A comparison of targets, for a terminal or as Markdown.

use analysis::{compare::Compared, figures::Figures};

use super::writer::{TableStyle, TerminalWriter};
use crate::model::comparison::Comparison;
use crate::model::number::listed;
use crate::prose::answer;
use crate::prose::method::{self, Method};
use crate::prose::profiles::{self, MissingProfiles};
use crate::tables::compared::{self, Board, noise, requirements};

/// The number of places that a reason for a missing profile lists.
const PLACES_SHOWN: usize = 6;

/// Formats a comparison as tables for a terminal.
pub fn compared(comparison: &Comparison<'_>, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    write(&mut out, comparison);
    out.finish()
}

/// Formats a comparison as Markdown.
pub fn compared_markdown(comparison: &Comparison<'_>) -> String {
    let mut out = TerminalWriter::markdown();
    write(&mut out, comparison);
    out.finish()
}

/// Formats the throughput of the targets of several groups, relative to one base, and what it shows.
pub fn across(comparison: &Comparison<'_>, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    write_across(&mut out, comparison);
    out.finish()
}

/// Formats the same as Markdown.
pub fn across_markdown(comparison: &Comparison<'_>) -> String {
    let mut out = TerminalWriter::markdown();
    write_across(&mut out, comparison);
    out.finish()
}

/// Formats the noise that a run of a target against itself shows.
pub fn noise_floor(compared: &Compared, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    out.table(&noise::table(compared));
    out.finish()
}

/// Writes a comparison: the findings before the costs, and the answer last in a terminal or first
/// in Markdown.
fn write(out: &mut TerminalWriter, comparison: &Comparison<'_>) {
    let compared = comparison.compared;

    // One target alone can be judged by requirements, but has nothing to be compared with.
    let has_comparisons = !compared.rows.is_empty() || compared.requirements.is_empty();
    if has_comparisons {
        out.main_title(&method::title(compared));
    }

    for line in method::runs(comparison.runs) {
        out.wrapped("  ", &line);
    }

    if !has_comparisons {
        out.table(&requirements::table(compared));
        return;
    }

    let answer = answer::passage(comparison);
    if out.is_markdown() {
        out.answer(&answer);
        write_requirements(out, compared);
    }

    out.findings(comparison.findings);
    let board = Board::new(comparison);
    out.tables(compared::other_verdicts(&board));
    out.tables(compared::work(comparison));
    out.tables(compared::costs(&board));
    out.tables(compared::waits(comparison));
    out.tables(compared::system_calls(comparison));
    out.tables(compared::plans(comparison));
    out.tables(compared::functions::tables(comparison.figures, &compared.profiles));
    write_missing_profiles(out, comparison.figures);

    if comparison.runs.iter().all(|compared| noise::is_against_itself(compared.run)) {
        out.table(&noise::table(compared));
    }

    out.method(&Method::of_comparison(compared));
    if !out.is_markdown() {
        write_requirements(out, compared);
        out.answer(&answer);
    }
}

/// Writes the throughput of the targets of several groups: the answer last in a terminal or first in
/// Markdown.
pub(super) fn write_across(out: &mut TerminalWriter, comparison: &Comparison<'_>) {
    let answer = answer::passage(comparison);
    if out.is_markdown() {
        out.answer_sentences(&answer);
    }
    out.tables(compared::across(comparison));
    if !out.is_markdown() {
        out.answer_sentences(&answer);
    }
}

fn write_requirements(out: &mut TerminalWriter, compared: &Compared) {
    if !compared.requirements.is_empty() {
        out.table(&requirements::table(compared));
    }
}

/// Writes why steps that were to be profiled have no profile.
fn write_missing_profiles(out: &mut TerminalWriter, figures: &Figures) {
    let missing = profiles::missing(figures);
    if missing.is_empty() {
        return;
    }

    out.gap();
    for MissingProfiles { reason, places } in missing {
        let places = listed(&places, PLACES_SHOWN, ", ");
        out.warning(&format!("no profile of {places}: {reason}"));
    }
}
