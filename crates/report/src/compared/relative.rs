//! Throughput, and what else has verdicts of its own, relative to the base: each ratio with its interval, and the verdict as a
//! mark and a colour.

use analysis::{ComparedStep, Interval, THROUGHPUT, VERDICT_METRICS, Verdict, metric_label};

use super::board::{Board, Folded, remarks};
use super::words;
use crate::classic::{Footnotes, anchor, not_compared};
use crate::matrix::StepHead;
use crate::number::fixed;
use crate::operations::step_head;
use crate::table::{Cell, TEST, Table, TableRow, Tone};

/// Other targets that always have a column each where rows are tests.
const ACROSS_MAX: usize = 8;

/// An interval of this width needs a third decimal to be one.
const NARROW: f64 = 0.02;

/// The tables of throughput and of every other metric that has verdicts and values.
pub(super) fn tables(board: &Board<'_>) -> Vec<Table> {
    let others = board.metrics();
    let shown = |metric: &&str| *metric == THROUGHPUT || others.contains(metric);
    let metrics = VERDICT_METRICS.iter().map(|(metric, _)| *metric);
    metrics
        .filter(shown)
        .flat_map(|metric| tables_of(board, metric))
        .collect()
}

/// A table of the steps that belong to no group, and those of each group.
fn tables_of(board: &Board<'_>, metric: &str) -> Vec<Table> {
    let mut tables = Vec::new();
    let others = board.groups().map(<[_]>::len).max().unwrap_or(1) - 1;
    let by_group = board.matrix.measured_by_group();
    let tests = by_group
        .iter()
        .filter(|(group, _)| group.is_some())
        .map(|(_, steps)| steps.len())
        .sum::<usize>();
    let are_rows = others <= ACROSS_MAX.max(tests);
    for (group, steps) in by_group {
        match group {
            Some(group) if are_rows => tables.extend(of_tests(board, metric, group, &steps)),
            group => tables.push(of_steps(board, metric, group, &steps)),
        }
    }
    if let Some(first) = tables.iter_mut().find(|table| table.has_figures()) {
        first.notes.extend(words::repeats_needed(board, metric));
    }
    tables
}

/// A row for each target and a column for each step.
fn of_steps(board: &Board<'_>, metric: &str, group: Option<&str>, steps: &[StepHead<'_>]) -> Table {
    let mut reasons = Footnotes::default();
    let decimals = decimals(board, metric, steps);
    let mut rows = Vec::new();
    for lines in board.groups().filter(|lines| board.has_others(lines)) {
        for line in lines {
            let cells = steps
                .iter()
                .map(|step| cell(board, metric, line, *step, decimals, &mut reasons));
            rows.push(TableRow {
                lead: board.lead_of(line),
                cells: cells.collect(),
                target: false,
            });
        }
    }
    let id = group.map_or(String::new(), |group| format!("-{}", anchor(group)));
    let label = metric_label(metric);
    let of = match group {
        Some(group) => format!("{group}: {label}"),
        None => words::capitalized(label),
    };
    finished(
        Table {
            id: format!("compared{}{id}", id_of(metric)),
            title: format!("{of} relative to {}", board.base),
            lead: board.lead(),
            columns: steps.iter().map(|step| step_head(step.name)).collect(),
            rows,
            ..Table::default()
        },
        words::detectable(&board.lines, steps, |line, step| {
            board.row(line, step, metric)
        }),
        reasons,
    )
}

/// Tells the tables of a metric apart from those of throughput.
fn id_of(metric: &str) -> String {
    match metric {
        THROUGHPUT => String::new(),
        metric => format!("-{}", anchor(metric)),
    }
}

/// A row for each test and a column for each target but the base; a table for each variant and number of clients.
fn of_tests(board: &Board<'_>, metric: &str, group: &str, steps: &[StepHead<'_>]) -> Vec<Table> {
    let decimals = decimals(board, metric, steps);
    let tables = board
        .groups()
        .filter(|lines| board.has_others(lines))
        .enumerate()
        .map(|(number, lines)| {
            let mut reasons = Footnotes::default();
            let others: Vec<&Folded> = lines
                .iter()
                .filter(|line| line.cell.target != board.base)
                .collect();
            let rows = steps
                .iter()
                .map(|step| TableRow {
                    lead: vec![step.name.to_string()],
                    cells: others
                        .iter()
                        .map(|line| cell(board, metric, line, *step, decimals, &mut reasons))
                        .collect(),
                    target: false,
                })
                .collect();
            let id = match number {
                0 => String::new(),
                _ => format!("-{}", number + 1),
            };
            finished(
                Table {
                    id: format!("compared{}-{}{id}", id_of(metric), anchor(group)),
                    title: format!(
                        "{group}{}: {} relative to {}",
                        board.group_label(lines),
                        metric_label(metric),
                        board.base
                    ),
                    lead: vec![TEST.to_string()],
                    columns: others
                        .iter()
                        .map(|line| line.cell.target.to_string())
                        .collect(),
                    rows,
                    across: true,
                    ..Table::default()
                },
                words::detectable(lines, steps, |line, step| board.row(line, step, metric)),
                reasons,
            )
        });
    tables.collect()
}

fn finished(mut table: Table, detectable: Option<String>, reasons: Footnotes) -> Table {
    table.notes.extend(detectable);
    table.notes.extend(reasons.notes_in("[", "]"));
    table.with_legend()
}

/// Decimals of all ratios of a table.
fn decimals(board: &Board<'_>, metric: &str, steps: &[StepHead<'_>]) -> usize {
    let mut intervals = board.lines.iter().flat_map(|line| {
        steps
            .iter()
            .filter_map(|step| board.row(line, step.name, metric)?.interval)
    });
    2 + usize::from(intervals.any(|interval| interval.high - interval.low < NARROW))
}

/// The ratio of a line's metric in a step, or why there is none.
fn cell(
    board: &Board<'_>,
    metric: &str,
    line: &Folded,
    step: StepHead<'_>,
    decimals: usize,
    reasons: &mut Footnotes,
) -> Cell {
    let missed = metric == THROUGHPUT && board.missed_sla(line, step.name);
    if line.cell.target == board.base {
        let mut cell = Cell::plain(fixed(1.0, decimals));
        cell.mark = if missed { Tone::SlaMissed.mark() } else { "" }.to_string();
        return cell;
    }
    let Some(row) = board.row(line, step.name, metric) else {
        return board.nothing(line, step, metric);
    };
    let mut cell = match row.verdict {
        Verdict::NotComparable if row.values.is_empty() || row.base_values.is_empty() => {
            board.nothing(line, step, metric)
        }
        _ => ratio_cell(row, decimals),
    };
    if missed {
        cell.mark.push_str(Tone::SlaMissed.mark());
    }
    let remarks = remarks(row);
    if !remarks.is_empty() {
        let place = format!("{} {}", board.label(line), step.name);
        let letter = reasons.letter_of(&remarks, place);
        cell.mark.push_str(&format!("[{letter}]"));
    }
    cell
}

/// A ratio with its interval and what it is worth.
pub(super) fn ratio_cell(row: &ComparedStep, decimals: usize) -> Cell {
    let Some(ratio) = row.ratio else {
        return match row.verdict {
            Verdict::Invalid => not_compared(),
            _ => Cell::not_applicable(),
        };
    };
    let mut text = fixed(ratio, decimals);
    if let Some(interval) = row.interval {
        text += &format!(" ({})", bounds(interval, decimals));
    }
    Cell::toned(text, tone(row))
}

/// The bounds of an interval of ratios, as `0.93-1.04`. Of two repeats they may be anywhere: how far beyond 0.001 and 1000
/// says nothing.
pub fn bounds(interval: Interval, decimals: usize) -> String {
    const LEAST: f64 = 0.001;
    const MOST: f64 = 1000.0;
    let bound = |ratio: f64| match ratio {
        ratio if ratio < LEAST => format!("<{LEAST}"),
        ratio if ratio > MOST => format!(">{MOST}"),
        // What is not zero is not shown as zero.
        ratio => fixed(ratio, if ratio < 0.01 { 3 } else { decimals }),
    };
    let (low, high) = (bound(interval.low), bound(interval.high));
    // `0.52->1000` would be an arrow.
    let between = if high.starts_with('>') { " to " } else { "-" };
    format!("{low}{between}{high}")
}

/// What a ratio is worth.
pub(super) fn tone(row: &ComparedStep) -> Tone {
    match (row.verdict, row.more_is_better) {
        (Verdict::Faster, true) => Tone::Faster,
        (Verdict::Slower, true) => Tone::Slower,
        (Verdict::Faster, false) => Tone::CostsLess,
        (Verdict::Slower, false) => Tone::CostsMore,
        (Verdict::NoChangeShown, _) => Tone::Plain,
        (Verdict::TooNoisy, _) => Tone::Noisy,
        (Verdict::Invalid, _) => Tone::Invalid,
        (Verdict::NotComparable, _) => Tone::Absent,
        (Verdict::Single, _) => Tone::Unjudged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_are_far_away_take_no_more_room_than_others() {
        for (low, high, told) in [
            (0.92, 0.96, "0.92-0.96"),
            (0.004, 999.0, "0.004-999.00"),
            (1e-12, 1.5, "<0.001-1.50"),
            (0.52, 3.9e89, "0.52 to >1000"),
            (0.0, f64::INFINITY, "<0.001 to >1000"),
        ] {
            let interval = Interval {
                low,
                high,
                confidence: 0.95,
            };
            assert_eq!(bounds(interval, 2), told);
        }
    }
}
