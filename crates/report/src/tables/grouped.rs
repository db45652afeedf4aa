//! The tables of the costs and durations of tests, one row per test and cell.

use analysis::{figures::Row, relative as ratio_to};
use words::Decimals;
use words::metric::TEST_COSTS;

use crate::model::grid::{self, LineGrid};
use crate::model::matrix::{CellLine, Matrix, StepHead};
use crate::model::number::ratio_text;
use crate::model::operations::{common_noun, noun, time_of};
use crate::model::table::{Cell, TEST, Table, Tone};
use crate::model::worth::{Footnotes, comparable, ended_early, footnoted, not_compared};
use crate::tables::classic::title_end;
use crate::tables::metrics::{Column, figure_cells};

/// The figures of a test besides its costs.
const TIMES: [(&str, &str, Decimals); 7] = [
    ("response_us_p50", "p50\n\u{b5}s", Decimals::Microseconds),
    ("response_us_p95", "p95\n\u{b5}s", Decimals::Microseconds),
    ("response_us_p99", "p99\n\u{b5}s", Decimals::Microseconds),
    ("response_us_p99.9", "p99.9\n\u{b5}s", Decimals::Microseconds),
    ("response_us_max", "max\n\u{b5}s", Decimals::Microseconds),
    ("retried", "retried\n", Decimals::Whole),
    ("failed", "failed\n", Decimals::Whole),
];

/// The note on ratios of several repeats, instead of the one on a single repeat.
const OF_REPEATS: &str = "each repeat is relative to the base's, without a verdict";

/// Returns a grid of the tests for each group of lines.
fn grids<'m, 'a>(matrix: &'m Matrix<'a>) -> Vec<LineGrid<'m, 'a>> {
    grid::of_tests(matrix, &matrix.measured_by_kind().tests)
}

/// Returns the costs of a query of each test: for every target, then relative to the base.
pub(crate) fn costs(matrix: &Matrix<'_>) -> Vec<Table> {
    let columns = Column::all(TEST_COSTS);
    let mut tables = Vec::new();
    for grid in grids(matrix) {
        let operation = common_noun(&grid.steps);

        let mut table = per_line(matrix, &grid, "costs-of", &columns, |rows| {
            figure_cells(rows, &columns, Row::metric)
        });
        table.title =
            format!("Cost per {operation} in tests, of the whole host{}", title_end(&grid));
        tables.push(table);

        if grid.lines.iter().any(|named| matrix.is_other(named.line)) {
            let mut table = relative_costs(matrix, &grid, &columns);
            table.title = format!(
                "Cost per {operation} in tests relative to {}{}",
                matrix.base_names(),
                title_end(&grid)
            );
            tables.push(table);
        }
    }

    tables.retain(Table::has_figures);
    tables
}

/// Returns the response times of each test's events, and the numbers of events that were retried or
/// failed.
pub(crate) fn times(matrix: &Matrix<'_>) -> Vec<Table> {
    let columns = TIMES.map(|(name, head, decimals)| Column::plain(name, head, decimals));
    let mut tables = Vec::new();
    for grid in grids(matrix) {
        // Each row has its own number of decimals.
        let cells = |row: &&Row| figure_cells(&[*row], &columns, time);

        let mut table = per_line(matrix, &grid, "times-of", &columns, |rows| {
            rows.iter().flat_map(cells).collect()
        });

        // An event is several queries.
        let are_transactions = grid.steps.iter().all(|step| noun(*step) == "transaction");
        let operation = if are_transactions { "a transaction" } else { "an event" };
        table.title = format!(
            "Response time of {operation} in tests, and those that did not succeed at once{}",
            title_end(&grid)
        );
        tables.push(table);
    }

    tables.retain(Table::has_figures);
    tables
}

/// Returns a figure of [`TIMES`].
fn time(row: &Row, name: &str) -> Option<f64> {
    let op = row.ops.get(row.main_op.as_deref()?)?;
    match name {
        "retried" => Some(op.retried as f64),
        "failed" => Some(op.failed as f64),
        time => time_of(op, time),
    }
}

/// Returns an empty table for the lines of each test. Repeats have a column of their own, by which they
/// are folded.
fn begun<'c>(
    matrix: &Matrix<'_>,
    grid: &LineGrid<'_, '_>,
    id: &str,
    heads: impl IntoIterator<Item = &'c str>,
) -> Table {
    let lead = [vec![TEST.to_string()], matrix.lead_in_group()].concat();
    Table::new(format!("{id}{}", grid.id), "", lead, heads)
}

/// Returns the test and the cell of a row.
fn lead_of(matrix: &Matrix<'_>, line: &CellLine<'_>, step: StepHead<'_>) -> Vec<String> {
    [vec![step.name.to_string()], matrix.lead_in_group_of(line)].concat()
}

/// Returns a table with a row for each line of each test; `cells` returns the cells of one test's
/// rows.
fn per_line(
    matrix: &Matrix<'_>,
    grid: &LineGrid<'_, '_>,
    id: &str,
    columns: &[Column],
    cells: impl Fn(&[&Row]) -> Vec<Vec<Cell>>,
) -> Table {
    let mut footnotes = Footnotes::default();
    let mut table = begun(matrix, grid, id, columns.iter().map(|column| column.head.as_str()));

    for step in &grid.steps {
        let (lines, rows): (Vec<&CellLine<'_>>, Vec<&Row>) = grid
            .lines
            .iter()
            .filter_map(|named| Some((named.line, named.line.row(step.name)?)))
            .unzip();

        for ((line, row), cells) in lines.iter().zip(&rows).zip(cells(&rows)) {
            let cells = footnoted(matrix, line, row, cells, &mut footnotes);
            table.push(lead_of(matrix, line, *step), cells);
        }
    }

    table.notes.extend(footnotes.into_notes());
    table
}

/// Returns the costs of a query relative to the base, for all other lines.
fn relative_costs(matrix: &Matrix<'_>, grid: &LineGrid<'_, '_>, columns: &[Column]) -> Table {
    // Ratios have no units, which stand below the names.
    let heads = columns.iter().map(|column| column.head.split('\n').next().unwrap_or_default());
    let mut table = begun(matrix, grid, "relative-costs-of", heads);
    for step in &grid.steps {
        let lines = grid.lines.iter().map(|named| named.line);
        for line in lines.filter(|line| !matrix.is_base(&line.cell.target)) {
            let Some(row) = line.row(step.name) else {
                continue;
            };

            let mut cells = match ended_early(row.status) {
                Some(cell) => vec![cell],
                None if !comparable(row) => vec![not_compared()],
                None => {
                    let base = matrix.base_row(line, *step);
                    columns.iter().map(|column| relative_cost(column.name, row, base)).collect()
                }
            };
            cells.resize(columns.len(), Cell::default());
            table.push(lead_of(matrix, line, *step), cells);
        }
    }

    if matrix.is_repeated() {
        table.notes.push(OF_REPEATS.to_owned());
        return table;
    }
    table.explained()
}

fn relative_cost(name: &str, row: &Row, base: Option<&Row>) -> Cell {
    let Some(base) = base else {
        return Cell::toned("no base", Tone::Absent);
    };
    match ratio_to(row.metric(name), base.metric(name)) {
        Some(ratio) => Cell::toned(ratio_text(ratio), Tone::Unjudged),
        None => Cell::not_applicable(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use analysis::figures::Figures;
    use record::{CellKey, Run, Status, StepKind};

    use super::*;
    use crate::model::repeats::folded;

    fn row(target: &str, repeat: u32, cpu: f64) -> Row {
        Row {
            cell: CellKey::new(target, None, 1, repeat),
            step: "scan".to_owned(),
            kind: StepKind::Query,
            group: Some("range-1".to_owned()),
            status: Status::Complete,
            reported: true,
            valid: true,
            metrics: BTreeMap::from([("cpupq", Some(cpu))]),
            ..Row::default()
        }
    }

    fn leads(table: &Table) -> Vec<String> {
        table.rows.iter().map(|row| row.lead.join(" ")).collect()
    }

    #[test]
    fn the_repeats_of_a_target_are_folded() {
        let mut rows = Vec::new();
        for repeat in 1..=3 {
            rows.push(row("a.x", repeat, 100.0 + f64::from(repeat)));
            rows.push(row("a.y", repeat, 200.0 + 2.0 * f64::from(repeat)));
        }
        let figures = Figures { rows, ..Figures::default() };
        let run = Run { base: "a.x".to_owned(), ..Run::default() };

        let tables = costs(&Matrix::new(&run, &figures));
        let [of_each, relative] = tables.as_slice() else { panic!("{tables:?}") };
        assert_eq!(of_each.lead, [TEST, "target", "repeat"]);
        assert!(!relative.notes.iter().any(|note| note.contains("one repeat")), "{relative:?}");

        let medians = [of_each, relative].map(|table| folded(table).expect("it has repeats"));
        assert_eq!(leads(&medians[0]), ["scan a.x", "scan a.y"]);
        assert_eq!(leads(&medians[1]), ["scan a.y"]);
        assert_eq!(medians[1].rows[0].cells[0].text, "2.00");
    }
}
