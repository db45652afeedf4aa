//! The tables of what an operation costs: every target's figures, each with its ratio to the base.
//! One row for each step and target.

use analysis::compare::{ComparedStep, THROUGHPUT, Verdict, is_device_column};
use analysis::explain::statement::NOTHING;
use analysis::figures::{STEADINESS, TYPICAL_CPU, TYPICAL_RATE};
use words::Metric;

use super::board::{Board, RepeatedLine};
use super::relative::tone;
use crate::model::matrix::{MeasuredSteps, StepHead};
use crate::model::metric::decimals;
use crate::model::number::{fixed, ratio_text};
use crate::model::operations::{common_noun, count_alike, unit};
use crate::model::table::{Cell, STEP, TEST, Table, Tone};
use crate::model::worth::{Footnotes, not_compared};

/// The word instead of a ratio of two figures below [`NOTHING`]: its verdict would stand out for nothing,
/// and without a verdict it would look equal.
const TINY: &str = "tiny";

/// The note on figures of several repeats: tables of throughput show medians.
const MEANS: &str =
    "figures are geometric means of the repeats; each ratio is that of two such means";

/// Returns a table of the tests, and one of the other steps.
pub(super) fn tables(board: &Board<'_>) -> Vec<Table> {
    let mut metrics = board.metrics();
    // They are no costs, and have tables of their own.
    metrics.retain(|metric| ![TYPICAL_RATE, STEADINESS, TYPICAL_CPU].contains(metric));
    metrics.retain(|metric| !is_device_column(metric) || board.shows_change_of(metric));

    let MeasuredSteps { others, tests } = board.matrix.measured_by_kind();
    vec![
        table(board, CostsOf::Steps, &others, &metrics),
        table(board, CostsOf::Tests, &tests, &metrics),
    ]
}

/// The rows of a table of costs.
#[derive(Clone, Copy)]
enum CostsOf {
    /// Steps that belong to no group, such as loads.
    Steps,
    /// Tests, which belong to groups.
    Tests,
}

impl CostsOf {
    /// Returns the identifier of the table.
    fn id(self) -> &'static str {
        match self {
            Self::Steps => "compared-costs",
            Self::Tests => "compared-costs-tests",
        }
    }

    /// Returns the end of what the table is about.
    fn place(self) -> &'static str {
        match self {
            Self::Steps => "",
            Self::Tests => " in tests",
        }
    }

    /// Returns the head of the column of names.
    fn head(self) -> &'static str {
        match self {
            Self::Steps => STEP,
            Self::Tests => TEST,
        }
    }
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

fn table(board: &Board<'_>, costs_of: CostsOf, steps: &[StepHead<'_>], metrics: &[&str]) -> Table {
    let metrics_with_figures = metrics_with_figures(board, steps, metrics);

    // Steps that count the same share a unit in the head; otherwise a column names it.
    let is_of_one = count_alike(steps);

    let mut table = empty_table(board, costs_of, steps, &metrics_with_figures);
    table.names = metrics_with_figures.iter().filter_map(|metric| explained(metric)).collect();

    let mut reasons = Footnotes::default();
    for &step in steps {
        let columns = columns_of(board, step, &metrics_with_figures);
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

    remove_columns_without_ratios(&mut table);
    if table.cells().any(|cell| cell.text == TINY) {
        let meaning = format!("both figures are below {NOTHING}, so their ratio is not judged");
        table.notes.push(format!("`{TINY}`: {meaning}"));
    }

    if board.has_repeats() {
        table.notes.push(MEANS.to_owned());
    }
    table.notes.extend(reasons.notes_in("[", "]"));
    table.explained()
}

/// Removes the columns of ratios that are empty in all rows, as where some repeat has none of a cost.
fn remove_columns_without_ratios(table: &mut Table) {
    // From the right, so that the indexes on the left stay what they are.
    for column in table.beside.clone().into_iter().rev() {
        if table.rows.iter().all(|row| row.cells[column].text.is_empty()) {
            table.remove_column(column);
        }
    }
}

/// Returns throughput and the metrics that any line has in any of the steps.
fn metrics_with_figures<'a>(
    board: &Board<'_>,
    steps: &[StepHead<'_>],
    metrics: &[&'a str],
) -> Vec<&'a str> {
    let mut shown = vec![THROUGHPUT];
    shown.extend(metrics);
    shown.retain(|metric| steps.iter().any(|step| !means(board, *step, metric).is_empty()));
    shown
}

/// Returns the columns of a step's rows. Figures of one step have equal numbers of decimals; those
/// of a point query and a scan differ by too much for that.
fn columns_of<'a>(
    board: &Board<'_>,
    step: StepHead<'_>,
    metrics: &[&'a str],
) -> Vec<CostColumn<'a>> {
    let column = |metric: &&'a str| CostColumn {
        metric,
        decimals: decimals(metric).of(means(board, step, metric)),
    };
    metrics.iter().map(column).collect()
}

/// Returns the means of all lines in a step.
fn means(board: &Board<'_>, step: StepHead<'_>, metric: &str) -> Vec<f64> {
    let mut means = Vec::new();
    for lines in board.compared_groups() {
        means.extend(lines.iter().filter_map(|line| board.mean(line, lines, step.name, metric)));
    }
    means
}

/// Returns the table without its rows.
fn empty_table(
    board: &Board<'_>,
    costs_of: CostsOf,
    steps: &[StepHead<'_>],
    metrics: &[&str],
) -> Table {
    let operation = common_noun(steps);
    let common = steps.first().filter(|_| count_alike(steps));
    let rate = common.map_or_else(String::new, |step| unit(*step));

    let mut lead = vec![costs_of.head().to_string()];
    if !count_alike(steps) {
        lead.push("counts".to_string());
    }
    lead.extend(board.lead());

    let article = if operation.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    let place = costs_of.place();
    let title =
        format!("What {article} {operation} costs{place}, with the ratio to {}", board.base);

    let mut table = Table::new(costs_of.id(), title, lead, Vec::<String>::new());
    for metric in metrics {
        if *metric == THROUGHPUT {
            table.columns.push(format!("throughput\n{rate}").trim_end().to_string());
        } else {
            let known = Metric::named(metric);
            let head = known.map_or_else(|| metric.to_string(), Metric::column_heading);
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
                cells.push(row.map_or_else(Cell::default, relative));
            }
        }
        cells
    }
}

/// Returns the ratio of a cost without its interval, to save space.
fn relative(row: &ComparedStep) -> Cell {
    let Some(ratio) = row.ratio else {
        return Cell::default();
    };
    // Zeros are equal.
    if row.verdict != Verdict::Equal && row.is_tiny() {
        return Cell::toned(TINY, Tone::Absent);
    }
    Cell::toned(ratio_text(ratio), tone(row))
}

#[cfg(test)]
mod tests {
    use analysis::compare::Sample;

    use super::*;

    #[test]
    fn a_ratio_of_two_tiny_figures_is_not_judged() {
        for (base, value, ratio, verdict, expected) in [
            (0.000_2, 0.000_4, 2.0, Verdict::Slower, Cell::toned("tiny", Tone::Absent)),
            (0.000_2, 0.000_4, 2.0, Verdict::TooNoisy, Cell::toned("tiny", Tone::Absent)),
            (0.000_4, 0.000_4, 1.0, Verdict::Equal, Cell::plain("1.00")),
            (0.000_2, 0.001, 5.0, Verdict::Slower, Cell::toned("5.00", Tone::CostsMore)),
            (0.001, 0.000_2, 0.2, Verdict::Faster, Cell::toned("0.20", Tone::CostsLess)),
        ] {
            let row = ComparedStep {
                base_values: vec![Sample { run: 0, repeat: 1, value: base }],
                values: vec![Sample { run: 0, repeat: 1, value }],
                ratio: Some(ratio),
                verdict,
                ..ComparedStep::default()
            };
            assert_eq!(relative(&row), expected);
        }
    }

    #[test]
    fn a_column_of_ratios_that_is_empty_in_all_rows_is_removed() {
        let lead = vec![STEP.to_owned()];
        let heads = ["throughput", "cpupq", "\n/base", "r/o", "\n/base"];
        let mut table = Table::new("t", "T", lead, heads);
        table.beside = vec![2, 4];
        for texts in [["9", "1.0", "", "0", ""], ["8", "1.1", "", "0", "1.10"]] {
            table.push(vec!["load".to_owned()], texts.map(Cell::plain).to_vec());
        }

        remove_columns_without_ratios(&mut table);
        assert_eq!(table.columns, ["throughput", "cpupq", "r/o", "\n/base"]);
        assert_eq!(table.beside, [3]);
        let last: Vec<&str> = table.rows[1].cells.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(last, ["8", "1.1", "0", "1.10"]);
    }
}
