//! The tables of one run, for a terminal or as Markdown.

use analysis::{figures::Figures, settings::Settings};
use record::Run;

use super::writer::{TableStyle, TerminalWriter};
use crate::model::comparison::{Explained, is_repeated};
use crate::model::matrix::Matrix;
use crate::model::table::anchor;
use crate::prose::answer;
use crate::prose::method::Method;
use crate::tables::compared::other_verdicts;
use crate::tables::{
    classic, grouped, lsm, metric_list as metric_tables, quality, searches, steps,
};

/// The maximum number of lines with which the tables of operations are shown for all steps.
const DETAILED_LINES_MAX: usize = 24;

/// The maximum number of tests with which the tables of each test are shown.
const TESTS_EACH_MAX: usize = 12;

/// Formats all `figures` as tables, the most important first.
pub fn tables(run: &Run, figures: &Figures, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    write_tables(&mut out, run, figures);
    out.finish()
}

/// Formats all `figures` as Markdown.
pub fn tables_markdown(run: &Run, figures: &Figures, all_settings: bool) -> String {
    let mut out = TerminalWriter::markdown(all_settings);
    write_tables(&mut out, run, figures);
    out.finish()
}

fn write_tables(out: &mut TerminalWriter, run: &Run, figures: &Figures) {
    let matrix = Matrix::new(run, figures);
    let explained = Explained::new(run, figures);
    let answer = answer::passage(&explained.comparison());

    // In a terminal the answer is last, where it stays in view.
    out.head(run, figures);
    if out.is_markdown() {
        out.answer(&answer);
    }

    out.targets(run);
    out.tables(searches::table(run, figures));
    out.tables(classic::summary(&matrix));
    out.tables(classic::rates(&matrix));
    out.table(&lsm::stalled(&matrix));
    out.findings(&explained.findings);

    out.table(&classic::fairness(&matrix));
    out.tables(grouped::costs(&matrix));
    out.tables(grouped::times(&matrix));
    out.tables(classic::lengths(&matrix));
    out.table(&quality::debt(&matrix));
    out.settings(&figures.settings);
    out.problems(run, figures, &matrix);

    write_steps(out, &matrix);
    if !out.is_markdown() {
        out.answer(&answer);
    }
}

/// Writes the tables of each step, and which are left out because there would be too many.
fn write_steps(out: &mut TerminalWriter, matrix: &Matrix<'_>) {
    let has_one_step = matrix.measured().count() < 2;
    let is_detailed = matrix.lines.len() <= DETAILED_LINES_MAX || has_one_step;
    let tests = matrix.measured().filter(|step| step.group.is_some()).count();
    let are_tests_shown = tests <= TESTS_EACH_MAX;

    for step in matrix.measured().filter(|step| step.group.is_none() || are_tests_shown) {
        out.heading(step.name);
        out.tables(steps::short(matrix, step));
        if is_detailed {
            out.tables(steps::details(matrix, step));
        }
    }

    if !are_tests_shown {
        out.gap();
        out.line(&format!(
            "The other tables of each test are omitted, since there are {tests} tests: `--step NAME` shows those of one \
             test, `--format csv` shows all figures."
        ));
    }
    if !is_detailed {
        out.gap();
        out.line(&format!(
            "The tables of stalls, shifts, operations and response times are omitted, since there are {} lines: \
             `--step NAME` shows those of one step, `--format json` shows all figures.",
            matrix.lines.len()
        ));
    }
}

/// Formats the tables with these names, step by step; as Markdown if there is no style.
///
/// # Errors
/// Returns an unknown name, and the known names.
pub fn tables_named(
    run: &Run,
    figures: &Figures,
    names: &[String],
    style: Option<TableStyle>,
) -> Result<String, (String, Vec<String>)> {
    let mut out = TerminalWriter::of_style(style);
    let matrix = Matrix::new(run, figures);
    let mut known: Vec<String> = Vec::new();
    for step in matrix.measured() {
        // The identifier of a table is its name with the step, which makes it unique in a page.
        let suffix = format!("-{}", anchor(step.name));
        let mut has_heading = false;

        for table in steps::all(&matrix, step) {
            let name = table.id.strip_suffix(&suffix).unwrap_or(&table.id);
            if names.iter().any(|wanted| wanted == name) {
                if !has_heading {
                    out.heading(step.name);
                    has_heading = true;
                }
                out.table(&table);
            }
            if !known.iter().any(|known| known == name) {
                known.push(name.to_string());
            }
        }
    }

    match names.iter().find(|name| !known.contains(name)) {
        Some(unknown) => Err((unknown.clone(), known)),
        None => Ok(out.finish()),
    }
}

/// Formats the tables for the end of a run: throughput, insert rate, problems, findings, and last,
/// where it stays visible, the answer.
pub fn tables_brief(run: &Run, figures: &Figures, style: TableStyle) -> String {
    let matrix = Matrix::new(run, figures);
    let explained = Explained::new(run, figures);
    let comparison = explained.comparison();
    let answer = answer::passage(&comparison);

    let mut out = TerminalWriter::new(style);
    out.head(run, figures);

    // Of a search, the rates that it tried are all there is to show.
    if let Some(search) = searches::table(run, figures) {
        out.problems(run, figures, &matrix);
        out.tables([search]);
        out.answer(&answer);
        return out.finish();
    }

    out.tables(classic::summary(&matrix));
    out.tables(classic::rates(&matrix));
    out.table(&lsm::stalled(&matrix));
    out.problems(run, figures, &matrix);
    out.findings(&explained.findings);
    if is_repeated(&explained.compared) {
        out.tables(other_verdicts(&comparison));
        out.method(&Method::of_comparison(&explained.compared));
    }
    out.answer(&answer);
    out.finish()
}

/// Formats only the answer, with its verdicts.
pub fn tables_summary(run: &Run, figures: &Figures, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    let explained = Explained::new(run, figures);
    out.answer(&answer::passage(&explained.comparison()));
    out.finish()
}

/// Formats only the differences between settings.
pub fn differences(settings: &Settings, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    out.setting_blocks(settings);
    out.finish()
}

/// Formats texts with their headings, line by line and without control characters; as Markdown if
/// there is no style.
pub fn verbatim(texts: &[(String, String)], style: Option<TableStyle>) -> String {
    let mut out = TerminalWriter::of_style(style);
    for (heading, text) in texts {
        out.heading(heading);
        out.verbatim(text);
    }
    out.finish()
}

/// Formats all metrics that can be compared, with their units and meanings.
pub fn metric_list(style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    out.table(&metric_tables::table());
    out.finish()
}
