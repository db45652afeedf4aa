//! The tables of what an operation costs: every target's figures, each with its ratio to the base.
//! One row for each step and target.

use analysis::compare::{ComparedStep, THROUGHPUT, Verdict, is_device_column};
use analysis::figures::{STEADINESS, TYPICAL_CPU, TYPICAL_RATE};
use words::Metric;

use super::board::{Board, RepeatedLine};
use super::relative::tone;
use crate::model::comparison::mean_of;
use crate::model::matrix::StepHead;
use crate::model::metric::decimals;
use crate::model::number::{fixed, ratio_text};
use crate::model::operations::{count_alike, noun, unit};
use crate::model::table::{Cell, STEP, TEST, Table, Tone, anchor};
use crate::model::worth::{Footnotes, not_compared};

/// Values below this are shown as zero: their ratio is shown but not colored.
const LEAST: f64 = 0.0005;

/// Returns a table of the steps without a group, and one for each group.
pub(super) fn tables(board: &Board<'_>) -> Vec<Table> {
    let mut metrics = board.metrics();
    // They are no costs, and have tables of their own.
    metrics.retain(|metric| ![TYPICAL_RATE, STEADINESS, TYPICAL_CPU].contains(metric));
    metrics.retain(|metric| !is_device_column(metric) || board.shows_change_of(metric));
    let by_group = board.matrix.measured_by_group().into_iter();
    by_group.map(|(group, steps)| table(board, group, &steps, &metrics)).collect()
}

/// A metric of the table. Each except throughput has a ratio beside it.
struct CostColumn<'a> {
    metric: &'a str,
    decimals: usize,
}

/// A row of the table: a line in a step, and the lines that it is compared with.
#[derive(Clone, Copy)]
struct CostRow<'a> {
    line: &'a RepeatedLine,
    group: &'a [RepeatedLine],
    step: StepHead<'a>,
}

fn table(
    board: &Board<'_>,
    group: Option<&str>,
    steps: &[StepHead<'_>],
    metrics: &[&str],
) -> Table {
    let columns = columns(board, steps, metrics);

    // Steps that count the same share a unit in the head; otherwise a column names it.
    let is_of_one = count_alike(steps);

    let mut table = empty_table(board, group, steps, &columns);
    table.names = columns.iter().filter_map(|column| explained(column.metric)).collect();

    let mut reasons = Footnotes::default();
    for &step in steps {
        for lines in board.compared_groups() {
            for line in lines {
                let row = CostRow { line, group: lines, step };
                if !row.has_comparison(board) {
                    continue;
                }

                let mut lead = vec![step.name.to_string()];
                lead.extend((!is_of_one).then(|| unit(step)));
                lead.extend(board.lead_of(line));
                table.push(lead, row.cells(board, &columns, &mut reasons));
            }
        }
    }

    table.notes.extend(reasons.notes_in("[", "]"));
    table.explained()
}

/// Returns throughput and the metrics that any line has in any of the steps.
fn columns<'a>(
    board: &Board<'_>,
    steps: &[StepHead<'_>],
    metrics: &[&'a str],
) -> Vec<CostColumn<'a>> {
    let mut columns = Vec::new();
    for metric in std::iter::once(THROUGHPUT).chain(metrics.iter().copied()) {
        let means = means(board, steps, metric);
        if !means.is_empty() {
            columns.push(CostColumn { metric, decimals: decimals(metric).of(means) });
        }
    }
    columns
}

fn means(board: &Board<'_>, steps: &[StepHead<'_>], metric: &str) -> Vec<f64> {
    let mut means = Vec::new();
    for step in steps {
        for lines in board.compared_groups() {
            means
                .extend(lines.iter().filter_map(|line| board.mean(line, lines, step.name, metric)));
        }
    }
    means
}

/// Returns the table without its rows.
fn empty_table(
    board: &Board<'_>,
    group: Option<&str>,
    steps: &[StepHead<'_>],
    columns: &[CostColumn<'_>],
) -> Table {
    let common = steps.first().filter(|_| count_alike(steps));
    let operation = common.map_or("operation", |step| noun(*step));
    let rate = common.map_or_else(String::new, |step| unit(*step));

    let mut lead = vec![if group.is_some() { TEST } else { STEP }.to_string()];
    if !count_alike(steps) {
        lead.push("counts".to_string());
    }
    lead.extend(board.lead());

    let article = if operation.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    let costs = format!("{article} {operation} costs, with the ratio to {}", board.base);
    let (id, title) = match group {
        Some(group) => {
            (format!("compared-costs-{}", anchor(group)), format!("{group}: what {costs}"))
        }
        None => ("compared-costs".to_string(), format!("What {costs}")),
    };

    let mut table = Table::new(id, title, lead, Vec::<String>::new());
    for column in columns {
        if column.metric == THROUGHPUT {
            table.columns.push(format!("throughput\n{rate}").trim_end().to_string());
        } else {
            let known = Metric::named(column.metric);
            let head = known.map_or_else(|| column.metric.to_string(), Metric::column_heading);
            table.columns.push(head);
            table.beside.push(table.columns.len());
            table.columns.push("\n/base".to_string());
        }
    }
    table
}

/// Explains the head of a metric's column, if it needs that.
fn explained(metric: &str) -> Option<String> {
    let known = Metric::named(metric).filter(|metric| !metric.meaning.is_empty())?;
    Some(format!("`{}`: {}", known.head, known.meaning))
}

impl CostRow<'_> {
    /// Returns true if the line, or for the base any line of the group, has a comparison.
    fn has_comparison(&self, board: &Board<'_>) -> bool {
        let target = &self.line.cell.target;
        let is_base = target == board.base;
        self.group
            .iter()
            .filter(|other| is_base || other.cell.target == *target)
            .any(|other| board.row(other, self.step.name, THROUGHPUT).is_some())
    }

    fn cells(
        &self,
        board: &Board<'_>,
        columns: &[CostColumn<'_>],
        reasons: &mut Footnotes,
    ) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &CostColumn { metric, decimals } in columns {
            let row = board.row(self.line, self.step.name, metric);
            let mean = board.mean(self.line, self.group, self.step.name, metric);
            let mut cell = match (mean, row) {
                (Some(mean), _) => Cell::plain(fixed(mean, decimals)),
                (None, Some(row)) if row.verdict == Verdict::Invalid => not_compared(),
                (None, _) => Cell::not_applicable(),
            };

            // The reasons are those of the whole row, so its first figure has their letter.
            if metric == THROUGHPUT {
                if let Some(row) = row {
                    let place = format!("{} {}", board.label(self.line), self.step.name);
                    reasons.mark(&mut cell, &row.reasons, place);
                }
                cells.push(cell);
            } else {
                cells.push(cell);
                cells.push(row.map_or_else(Cell::default, |row| relative(row, mean)));
            }
        }
        cells
    }
}

/// Returns the ratio of a cost without its interval, to save space.
fn relative(row: &ComparedStep, mean: Option<f64>) -> Cell {
    let Some(ratio) = row.ratio else {
        return Cell::default();
    };
    // A ratio of two values that are shown as zero would stand out for nothing.
    let base = mean_of(&row.base_values);
    let is_shown = |value: Option<f64>| value.is_some_and(|value| value >= LEAST);
    let tone = if is_shown(mean) || is_shown(base) { tone(row) } else { Tone::Plain };
    Cell::toned(ratio_text(ratio), tone)
}
