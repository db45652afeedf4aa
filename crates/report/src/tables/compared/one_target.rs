//! The table of a comparison of one target: all ratios of a step in a row, a column for each metric.

use analysis::compare::{OWN_CPU, THROUGHPUT, metric_label};
use analysis::figures::{TYPICAL_CPU, TYPICAL_RATE};

use super::all_steps;
use super::board::{Board, RepeatedLine};
use super::notes::{self, Advice, MetricRows};
use super::relative;
use crate::model::grid::Grid;
use crate::model::metric;
use crate::model::table::{Cell, Table, Tone};
use crate::model::worth::Footnotes;

/// The number of letters beyond which the head of a column has several lines.
const HEAD_MAX: usize = 14;

/// Returns a table for each group of lines; `None` if there are several targets, which are the
/// columns of a table for each metric.
pub(super) fn tables(board: &Board<'_>) -> Option<Vec<Table>> {
    if !board.has_one_target() {
        return None;
    }

    let metrics = relative::verdict_metrics(board);
    let grids = board.grids();
    let mut tables = Vec::new();
    let mut advice = Vec::new();
    for grid in &grids {
        let Some(named) = grid.lines.first() else { continue };

        let rows = rows_by_metric(board, &metrics, grid);
        tables.push(table(board, named.line, &rows, grid));
        advice.push(advice_on(board, &rows));
    }

    notes::add_not_begun(board, &mut tables);
    notes::add_advice(board, &mut tables, advice);
    Some(tables)
}

/// Returns the advice on the first metric that more repeats would help, or else on the first that is
/// too noisy to say; `None` if none is.
fn advice_on(board: &Board<'_>, rows: &[MetricRows<'_>]) -> Option<Advice> {
    let mut useless = None;
    for MetricRows { metric, rows } in rows {
        let Some(advice) = notes::more_repeats(board, rows) else { continue };
        if advice.helps() {
            return Some(advice.about(metric_label(metric)));
        }
        useless = useless.or(Some(advice));
    }
    useless
}

/// Returns the comparisons of each metric that a table has.
fn rows_by_metric<'a>(
    board: &Board<'a>,
    metrics: &[&'a str],
    grid: &Grid<'_, &RepeatedLine>,
) -> Vec<MetricRows<'a>> {
    let mut all = Vec::new();
    for metric in metrics {
        let rows = relative::rows_of(board, metric, grid);
        // Of what was measured once, throughput says enough.
        let is_judged = rows.iter().any(|row| row.interval.is_some());
        let says_more = is_judged && says_more_than_all_turns(board, metric, grid);
        let is_shown = says_more || *metric == THROUGHPUT || board.is_asked_for(metric);
        if is_shown && !rows.is_empty() {
            all.push(MetricRows { metric, rows });
        }
    }
    all
}

/// Returns false for a metric of typical turns whose column would only repeat that of all turns.
fn says_more_than_all_turns(
    board: &Board<'_>,
    metric: &str,
    grid: &Grid<'_, &RepeatedLine>,
) -> bool {
    match metric {
        TYPICAL_RATE => differs(&cells(board, metric, grid), &cells(board, THROUGHPUT, grid)),
        TYPICAL_CPU => differs(&cells(board, metric, grid), &cells(board, OWN_CPU, grid)),
        _ => true,
    }
}

/// Returns the ratios of a metric in all steps, without footnotes.
fn cells(board: &Board<'_>, metric: &str, grid: &Grid<'_, &RepeatedLine>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for named in &grid.lines {
        for step in &grid.steps {
            let mut unused = Footnotes::default();
            cells.push(relative::cell(board, metric, named.line, *step, false, &mut unused));
        }
    }
    cells
}

/// Returns whether any figure of a column says what the one beside it does not.
fn differs(column: &[Cell], beside: &[Cell]) -> bool {
    column.iter().zip(beside).any(|(cell, other)| {
        let is_same = cell.text == other.text && cell.tone == other.tone;
        cell.tone != Tone::Absent && !is_same
    })
}

fn table(
    board: &Board<'_>,
    line: &RepeatedLine,
    rows: &[MetricRows<'_>],
    grid: &Grid<'_, &RepeatedLine>,
) -> Table {
    let id = format!("compared{}", grid.id);
    let heads = rows.iter().map(|of_metric| head(metric_label(of_metric.metric)));
    let mut table = Table::new(id, "", grid.lead.clone(), heads);

    let subject = format!("{} relative to {}", line.cell.target, board.base);
    table.title = match &grid.name {
        Some(name) => format!("{name}: {subject}"),
        None => subject,
    };

    let mut reasons = Footnotes::default();
    for step in &grid.steps {
        let mut cells = Vec::new();
        for MetricRows { metric, .. } in rows {
            // A rate that the base missed is marked here, since the base has no column.
            let is_missed = *metric == THROUGHPUT && board.missed_sla(line, step.name, true);
            cells.push(relative::cell(board, metric, line, *step, is_missed, &mut reasons));
        }
        table.push(vec![step.name.to_string()], cells);
    }

    // Only throughput has a mean of all steps, and it is the first column.
    let begins_with_throughput = rows.first().is_some_and(|first| first.metric == THROUGHPUT);
    if begins_with_throughput && let Some(mut means) = all_steps::cells(board, grid, &mut reasons) {
        means.resize(rows.len(), Cell::default());
        table.push(vec![all_steps::ALL_STEPS.to_owned()], means);
        table.notes.push(all_steps::MEANING.to_owned());
    }

    table.notes.extend(rows.iter().filter_map(|of_metric| metric::meaning(of_metric.metric)));
    table.notes.extend(notes::detectable_by_metric(rows));
    table.notes.extend(reasons.notes_in("[", "]"));
    table.explained()
}

/// Returns a metric's name as the head of a column, in short lines.
fn head(label: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in label.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= HEAD_MAX => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_differs_from_the_one_beside_it_by_a_figure_or_a_verdict() {
        let own =
            [Cell::plain("1.00 (0.99-1.01)"), Cell::toned("1.02 (1.01-1.03)", Tone::CostsMore)];
        let absent = Cell::not_applicable();
        assert!(!differs(&[absent.clone(), absent.clone()], &own));

        // The footnote of a cell is no figure.
        let with_note = Cell { mark: "\u{25b2}[a]".to_owned(), ..own[1].clone() };
        assert!(!differs(&[absent.clone(), with_note], &own));
        assert!(differs(&[Cell::plain("1.01 (0.99-1.02)"), absent.clone()], &own));
        assert!(differs(&[absent, Cell::toned("1.02 (1.01-1.03)", Tone::Noisy)], &own));
    }

    #[test]
    fn long_names_of_metrics_have_heads_of_several_lines() {
        for (label, expected) in [
            ("throughput", "throughput"),
            ("rate in a typical turn", "rate in a\ntypical turn"),
            ("own CPU per operation", "own CPU per\noperation"),
        ] {
            assert_eq!(head(label), expected);
        }
    }
}
