//! The tables of what an operation costs: every target's figures, each with its ratio to the base.
//! One row for each step and target.

use analysis::compare::{ComparedStep, THROUGHPUT};
use words::{Decimals, Metric};

use super::board::{Board, RepeatedLine, remarks};
use super::relative::tone;
use crate::matrix::StepHead;
use crate::number::{fixed, ratio_text};
use crate::operations::{count_alike, noun, unit};
use crate::table::{Cell, STEP, TEST, Table, Tone, anchor};
use crate::worth::{Footnotes, not_compared};

/// Values below this are shown as zero: their ratio is shown but not colored.
const LEAST: f64 = 0.0005;

/// Returns a table of the steps without a group, and one for each group.
pub(super) fn tables(board: &Board<'_>) -> Vec<Table> {
    let metrics = board.metrics();
    let by_group = board.matrix.measured_by_group().into_iter();
    by_group.map(|(group, steps)| table(board, group, &steps, &metrics)).collect()
}

fn table(
    board: &Board<'_>,
    group: Option<&str>,
    steps: &[StepHead<'_>],
    metrics: &[&str],
) -> Table {
    let groups: Vec<&[RepeatedLine]> = board.compared_groups().collect();
    let means = |metric: &str| -> Vec<f64> {
        let mut means = Vec::new();
        for step in steps {
            for lines in &groups {
                let of = |line| board.mean(line, lines, step.name, metric);
                means.extend(lines.iter().filter_map(of));
            }
        }
        means
    };
    let columns: Vec<(&str, usize)> = std::iter::once(THROUGHPUT)
        .chain(metrics.iter().copied())
        .map(|metric| (metric, means(metric)))
        .filter(|(_, means)| !means.is_empty())
        .map(|(metric, means)| (metric, decimals(metric).of(means)))
        .collect();
    let is_of_one = count_alike(steps);
    let rate = match steps.first() {
        Some(step) if is_of_one => unit(*step),
        _ => String::new(),
    };

    let mut lead = vec![if group.is_some() { TEST } else { STEP }.to_string()];
    lead.extend((!is_of_one).then(|| "counts".to_string()));
    lead.extend(board.lead());
    let of =
        steps.first().map_or("operation", |step| if is_of_one { noun(*step) } else { "operation" });
    let article = if of.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    let (id, prefix) = match group {
        Some(group) => (format!("-{}", anchor(group)), format!("{group}: w")),
        None => (String::new(), "W".to_string()),
    };
    let (heads, beside) = heads(&columns, &rate);
    let mut table = Table::new(
        format!("compared-costs{id}"),
        format!("{prefix}hat {article} {of} costs, with the ratio to {}", board.base),
        lead,
        heads,
    );
    table.beside = beside;
    let explained = columns.iter().filter_map(|(name, _)| Metric::named(name));
    table.names = explained
        .filter(|metric| !metric.meaning.is_empty())
        .map(|metric| format!("`{}`: {}", metric.head, metric.meaning))
        .collect();
    let mut reasons = Footnotes::default();
    for step in steps {
        for lines in &groups {
            let is_shown = |line: &&RepeatedLine| has_comparison(board, line, lines, step);
            for line in lines.iter().filter(is_shown) {
                let mut lead = vec![step.name.to_string()];
                lead.extend((!is_of_one).then(|| unit(*step)));
                lead.extend(board.lead_of(line));
                let cells = cells(board, line, lines, *step, &columns, &mut reasons);
                table.push(lead, cells);
            }
        }
    }
    table.notes.extend(reasons.notes_in("[", "]"));
    table.explained()
}

/// Returns the heads of the columns, and the indexes of the columns of ratios. Each metric except
/// throughput has a ratio.
fn heads(columns: &[(&str, usize)], rate: &str) -> (Vec<String>, Vec<usize>) {
    let (mut heads, mut ratios) = (Vec::new(), Vec::new());
    for (metric, _) in columns {
        if *metric == THROUGHPUT {
            heads.push(format!("throughput\n{rate}").trim_end().to_string());
        } else {
            let known = Metric::named(metric);
            heads.push(known.map_or_else(|| (*metric).to_string(), Metric::column_heading));
            ratios.push(heads.len());
            heads.push("\n/base".to_string());
        }
    }
    (heads, ratios)
}

pub(super) fn decimals(metric: &str) -> Decimals {
    Metric::named(metric).map_or(Decimals::Rate, |metric| metric.decimals)
}

/// Returns true if a line has a comparison in a step.
fn has_comparison(
    board: &Board<'_>,
    line: &RepeatedLine,
    lines: &[RepeatedLine],
    step: &StepHead<'_>,
) -> bool {
    let is_base = line.cell.target == board.base;
    let mut others = lines.iter().filter(|other| is_base || other.cell.target == line.cell.target);
    others.any(|other| board.row(other, step.name, THROUGHPUT).is_some())
}

fn cells(
    board: &Board<'_>,
    line: &RepeatedLine,
    lines: &[RepeatedLine],
    step: StepHead<'_>,
    columns: &[(&str, usize)],
    reasons: &mut Footnotes,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (metric, decimals) in columns {
        let row = board.row(line, step.name, metric);
        let mean = board.mean(line, lines, step.name, metric);
        let mut cell = match (mean, row) {
            (Some(mean), _) => Cell::plain(fixed(mean, *decimals)),
            (None, Some(row)) if row.verdict == analysis::compare::Verdict::Invalid => {
                not_compared()
            }
            (None, _) => Cell::not_applicable(),
        };
        if *metric == THROUGHPUT {
            let remarks = row.map(remarks).unwrap_or_default();
            if !remarks.is_empty() {
                let place = format!("{} {}", board.label(line), step.name);
                let letter = reasons.letter_of(&remarks, place);
                cell.mark.push_str(&format!("[{letter}]"));
            }
            cells.push(cell);
            continue;
        }
        cells.push(cell);
        cells.push(row.map_or_else(Cell::default, |row| relative(row, mean)));
    }
    cells
}

/// Returns the ratio of a cost without its interval, to save space.
fn relative(row: &ComparedStep, mean: Option<f64>) -> Cell {
    let Some(ratio) = row.ratio else {
        return Cell::default();
    };
    let is_least = |value: Option<f64>| value.is_none_or(|value| value < LEAST);
    let base = super::board::mean_of(&row.base_values);
    let tone = if is_least(mean) && is_least(base) { Tone::Plain } else { tone(row) };
    Cell::toned(ratio_text(ratio), tone)
}
