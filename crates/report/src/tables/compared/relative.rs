//! The tables of throughput and other metrics relative to the base: each ratio with its interval,
//! and the verdict as a mark and a color.

use analysis::{
    compare::{ComparedStep, Interval, THROUGHPUT, VERDICT_METRICS, Verdict, mean_of_samples},
    distinct,
    figures::{STEADINESS, TYPICAL_CPU, TYPICAL_RATE},
};

use super::all_steps;
use super::board::{Board, RepeatedLine};
use super::notes;
use crate::model::grid::Grid;
use crate::model::matrix::StepHead;
use crate::model::metric::{self, decimals};
use crate::model::number::{fixed, ratio_text};
use crate::model::table::{Cell, Table, Tone, anchor};
use crate::model::worth::{Footnotes, not_compared};

/// Returns the tables of throughput, and of the rate in typical turns.
pub(super) fn throughput(board: &Board<'_>) -> Vec<Table> {
    rate_metrics(board).into_iter().flat_map(|metric| tables_of(board, metric)).collect()
}

/// Returns the tables of every other metric that has verdicts by default or was requested.
pub(super) fn others(board: &Board<'_>) -> Vec<Table> {
    other_metrics(board).into_iter().flat_map(|metric| tables_of(board, metric)).collect()
}

/// Returns the metrics that have tables of ratios, throughput first.
pub(super) fn verdict_metrics<'a>(board: &Board<'a>) -> Vec<&'a str> {
    let mut metrics = rate_metrics(board);
    metrics.extend(other_metrics(board));
    metrics
}

/// Returns throughput, and the rate in typical turns if there were turns.
fn rate_metrics<'a>(board: &Board<'a>) -> Vec<&'a str> {
    let mut metrics = vec![THROUGHPUT];
    if board.metrics().contains(&TYPICAL_RATE) {
        metrics.push(TYPICAL_RATE);
    }
    metrics
}

/// Returns the metrics besides rates that have verdicts by default or were requested.
fn other_metrics<'a>(board: &Board<'a>) -> Vec<&'a str> {
    let rows = &board.comparison.compared.rows;
    let shows =
        |metric: &str| rows.iter().any(|row| row.metric == metric && row.verdict.is_change());

    let mut metrics: Vec<&str> = VERDICT_METRICS.iter().map(|(metric, _)| *metric).collect();
    // Both repeat what another table says, as long as stalls make no difference.
    metrics.extend([STEADINESS, TYPICAL_CPU].into_iter().filter(|metric| shows(metric)));
    metrics.extend(board.comparison.compared.shown_metrics.iter().map(String::as_str));

    let compared = board.metrics();
    let mut others = distinct(metrics);
    let rates = [THROUGHPUT, TYPICAL_RATE];
    others.retain(|metric| !rates.contains(metric) && compared.contains(metric));
    others
}

/// Returns the tables of a metric: one for each grid of the board.
fn tables_of(board: &Board<'_>, metric: &str) -> Vec<Table> {
    let grids = board.grids();
    let mut tables: Vec<Table> = grids.iter().map(|grid| table(board, metric, grid)).collect();

    if metric == THROUGHPUT {
        notes::add_not_begun(board, &mut tables);
    }

    let mut advice = Vec::new();
    for grid in &grids {
        advice.push(notes::more_repeats(board, &rows_of(board, metric, grid)));
    }

    notes::add_advice(board, &mut tables, advice);
    tables
}

/// Returns the comparisons of a table.
pub(super) fn rows_of<'a>(
    board: &Board<'a>,
    metric: &str,
    grid: &Grid<'_, &RepeatedLine>,
) -> Vec<&'a ComparedStep> {
    let mut rows = Vec::new();
    for step in &grid.steps {
        rows.extend(grid.lines.iter().filter_map(|named| board.row(named.line, step.name, metric)));
    }
    rows
}

fn table(board: &Board<'_>, metric: &str, grid: &Grid<'_, &RepeatedLine>) -> Table {
    // Other metrics have other identifiers than throughput.
    let id = match metric {
        THROUGHPUT => "compared".to_string(),
        metric => format!("compared-{}", anchor(metric)),
    };

    let mut reasons = Footnotes::default();
    let mut table = grid.table(&id, |line, step| {
        // Without a column of the base, a rate that the base missed is marked at the others.
        let is_missed = metric == THROUGHPUT && board.missed_sla(line, step.name, grid.across);
        cell(board, metric, line, step, is_missed, &mut reasons)
    });

    let subject = metric::subject(grid.name.as_deref(), metric);
    let place = grid.place_in_title();
    table.title = format!("{subject}{place} relative to {}", board.base);

    table.notes.extend(metric::meaning(metric));
    if metric == THROUGHPUT
        && let Some(means) = all_steps::cells(board, grid, &mut reasons)
    {
        grid.add_to_each_line(&mut table, all_steps::ALL_STEPS, means);
        table.notes.push(all_steps::MEANING.to_owned());
    }
    table.notes.extend(notes::detectable(rows_of(board, metric, grid).into_iter()));
    table.notes.extend(reasons.notes_in("[", "]"));
    table.explained()
}

/// Returns the ratio of a line's metric in a step, or why there is none.
pub(super) fn cell(
    board: &Board<'_>,
    metric: &str,
    line: &RepeatedLine,
    step: StepHead<'_>,
    is_missed: bool,
    reasons: &mut Footnotes,
) -> Cell {
    if line.cell.target == board.base {
        let mut cell = Cell::plain(fixed(1.0, 2));
        if is_missed {
            cell.mark = Tone::SlaMissed.mark().to_string();
        }
        return cell;
    }

    let Some(row) = board.row(line, step.name, metric) else {
        return board.missing_cell(line, step, metric);
    };

    let lacks_side = row.values.is_empty() || row.base_values.is_empty();
    let mut cell = if row.verdict == Verdict::NotComparable && lacks_side {
        board.missing_cell(line, step, metric)
    } else {
        ratio_cell(row)
    };

    if is_missed {
        cell.mark.push_str(Tone::SlaMissed.mark());
    }

    reasons.mark(&mut cell, &row.reasons, format!("{} {}", board.label(line), step.name));
    cell
}

/// Returns a ratio with its interval and tone. Returns both values if one of them is zero.
pub(crate) fn ratio_cell(row: &ComparedStep) -> Cell {
    if let Some(ratio) = row.ratio {
        return Cell::toned(ratio_with_bounds(ratio, row.interval), tone(row));
    }
    if row.verdict == Verdict::Invalid {
        return not_compared();
    }

    let (Some(base), Some(value)) =
        (mean_of_samples(&row.base_values), mean_of_samples(&row.values))
    else {
        return Cell::not_applicable();
    };
    let decimals = decimals(&row.metric).of([base, value]);
    let text = format!("{} -> {}", fixed(base, decimals), fixed(value, decimals));
    Cell::toned(text, Tone::Unjudged)
}

/// Formats a ratio with its interval, as `0.98 (0.93-1.04)`.
pub fn ratio_with_bounds(ratio: f64, interval: Option<Interval>) -> String {
    let Some(interval) = interval else {
        return ratio_text(ratio);
    };

    let ratio = interval.digits_of(ratio);
    let low = interval.digits_of(interval.low);
    let high = interval.digits_of(interval.high);
    // `0.52->1000` would look like an arrow.
    let between = if high.starts_with('>') { " to " } else { "-" };
    format!("{ratio} ({low}{between}{high})")
}

/// Returns the tone of a verdict.
pub(crate) fn tone(row: &ComparedStep) -> Tone {
    match (row.verdict, row.more_is_better) {
        (Verdict::Faster, true) => Tone::Faster,
        (Verdict::Slower, true) => Tone::Slower,
        (Verdict::Faster, false) => Tone::CostsLess,
        (Verdict::Slower, false) => Tone::CostsMore,
        (Verdict::Equal, _) => Tone::Plain,
        (Verdict::TooNoisy, _) => Tone::Noisy,
        (Verdict::Invalid, _) => Tone::Invalid,
        (Verdict::NotComparable, _) => Tone::Absent,
        (Verdict::Single, _) => Tone::Unjudged,
    }
}

#[cfg(test)]
mod tests {
    use analysis::compare::Sample;

    use super::*;

    #[test]
    fn a_ratio_has_as_many_digits_as_its_interval_allows() {
        for (ratio, low, high, expected) in [
            (0.94, 0.92, 0.96, "0.94 (0.92-0.96)"),
            (1.003_1, 0.998, 1.009, "1.003 (0.998-1.009)"),
            (1.573_1, 0.17, 3.5, "1.6 (0.17-3.5)"),
            (2.0, 0.004, 999.0, "2.0 (0.004-999)"),
            (1.6, 1.02, 2.4, "1.6 (1.02-2.4)"),
            (0.012, 1e-12, 1.5, "0.012 (<0.001-1.5)"),
            (25.3, 0.52, 3.9e89, "25 (0.52 to >1000)"),
            (1.0, 0.0, f64::INFINITY, "1.0 (<0.001 to >1000)"),
        ] {
            let interval = Interval { low, high, confidence: 0.95 };
            assert_eq!(ratio_with_bounds(ratio, Some(interval)), expected);
        }
    }

    #[test]
    fn both_values_are_a_figure_where_a_zero_has_no_ratio() {
        let of = |values: [f64; 2]| {
            let sample = |value| Sample { run: 0, repeat: 1, value };
            values.map(sample).to_vec()
        };
        let row = ComparedStep {
            metric: "fsyncs_per_commit".to_owned(),
            base_values: of([0.4, 0.4]),
            values: of([0.0, 0.002]),
            ..ComparedStep::default()
        };
        let cell = ratio_cell(&row);
        assert_eq!(cell.text, "0.400 -> 0.001");
        assert_ne!(cell.tone, Tone::Absent, "a table of such cells is shown");
    }
}
