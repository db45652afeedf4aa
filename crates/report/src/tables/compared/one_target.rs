//! The table of a comparison of one target: all ratios of a step in a row, a column for each metric.

use analysis::compare::{THROUGHPUT, metric_label};

use super::board::{Board, RepeatedLine};
use super::notes::{self, Advice, MetricRows};
use super::relative;
use crate::model::grid::Grid;
use crate::model::metric;
use crate::model::table::Table;
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
        let is_shown = is_judged || *metric == THROUGHPUT || board.is_asked_for(metric);
        if is_shown && !rows.is_empty() {
            all.push(MetricRows { metric, rows });
        }
    }
    all
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
