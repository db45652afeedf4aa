//! Tables that follow from other tables.

use super::grid::{self, Block, Row, ratio};
use super::{Cell, Table};

/// The decimals of ratios, unless `with.decimals` says otherwise.
const DECIMALS: usize = 2;

/// Why a relative table has the absolute value of its last row.
const LABEL_IS_A_COLUMN: &str =
    "the row has its test's name as a further column, so the last value is absolute";

/// The values of which a cell is the ratio.
#[derive(Clone, Copy)]
struct Terms<'a> {
    value: &'a str,
    base: &'a str,
}

impl<'a> Terms<'a> {
    /// Returns the values of two rows in a column; `None` if there is no such row or column.
    fn in_column(row: Option<&'a Row>, base: Option<&'a Row>, column: usize) -> Option<Self> {
        Some(Self { value: row?.cells.get(column)?, base: base?.cells.get(column)? })
    }
}

/// Returns a cell that is the ratio of two values; if there are none, `missing` is the reason.
fn ratio_cell(
    place: String,
    printed: &str,
    terms: Option<Terms<'_>>,
    decimals: usize,
    missing: &str,
) -> Cell {
    let computed = match terms {
        Some(Terms { value, base }) => ratio(value, base, decimals),
        None => Err(missing.to_owned()),
    };
    Cell::new(place, printed, computed)
}

fn decimals(table: &Table<'_>) -> usize {
    table.with("decimals").and_then(|text| text.parse().ok()).unwrap_or(DECIMALS).min(9)
}

fn all_missing(rows: &[Row], reason: &str) -> Vec<Cell> {
    let mut cells = Vec::new();
    for row in rows {
        for cell in &row.cells {
            cells.push(Cell::new(row.label.clone(), cell, Err(reason.to_owned())));
        }
    }
    cells
}

/// Ratios to the first column (a column for each target) or to the first row of a block (a row for
/// each target) of the table `of`.
pub fn ratios(table: &Table<'_>) -> Vec<Cell> {
    let blocks = grid::blocks(table.text);
    let source = match table.source() {
        Ok(source) => source,
        Err(reason) => {
            let all = |block: &Block| all_missing(&block.rows, &reason);
            return blocks.iter().flat_map(all).collect();
        }
    };

    let is_by_column = !grid::targets(table.text).is_empty();
    let sources = grid::blocks(source);
    let mut cells = Vec::new();
    for block in &blocks {
        for row in &block.rows {
            cells.extend(if is_by_column {
                by_column(&sources, row, decimals(table))
            } else {
                by_row(&sources, block, row, decimals(table))
            });
        }
    }
    cells
}

fn by_column(sources: &[Block], row: &Row, decimals: usize) -> Vec<Cell> {
    let mut rows = sources.iter().flat_map(|block| &block.rows);
    let found = rows.find(|source| source.label == row.label);

    let mut cells = Vec::new();
    for (column, printed) in row.cells.iter().enumerate() {
        let place = format!("{}, column {}", row.label, column + 1);
        let terms = found.and_then(|source| {
            Some(Terms { value: source.cells.get(column + 1)?, base: source.cells.first()? })
        });
        cells.push(ratio_cell(place, printed, terms, decimals, "there is no such row"));
    }
    cells
}

fn by_row(sources: &[Block], block: &Block, row: &Row, decimals: usize) -> Vec<Cell> {
    let source = sources.iter().find(|source| source.name == block.name);
    let base = source.and_then(|source| source.rows.first());
    let found = source.and_then(|source| {
        let named = source.rows.iter().find(|known| known.label == row.label);
        // A row whose label is lost follows the base in its order.
        let at = block.rows.iter().position(|known| known == row)?;
        named.or_else(|| source.rows.get(at + 1))
    });
    let last_rate = found.and_then(|known| known.cells.iter().rev().find(|cell| is_rate(cell)));

    let mut cells = Vec::new();
    for (column, printed) in row.cells.iter().enumerate() {
        let place = format!("{} {}, column {}", block.name, row.label, column + 1);
        let terms = Terms::in_column(found, base, column);
        let cell = ratio_cell(place, printed, terms, decimals, "there is no such column");
        cells.push(match last_rate {
            Some(last) if terms.is_none() => cell.with_quirk(last.clone(), LABEL_IS_A_COLUMN),
            _ => cell,
        });
    }
    cells
}

fn is_rate(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// The cells of another table as CSV.
pub fn csv_of(table: &Table<'_>) -> Vec<Cell> {
    let rows = grid::csv(table.text);
    let source = match table.source() {
        Ok(source) => source,
        Err(reason) => return all_missing(&rows, &reason),
    };
    let sources: Vec<Row> = grid::blocks(source).into_iter().flat_map(|block| block.rows).collect();

    let mut cells = Vec::new();
    for row in &rows {
        let found = sources.iter().find(|source| source.label == row.label);
        for (column, printed) in row.cells.iter().enumerate() {
            let place = format!("{}, column {}", row.label, column + 1);
            let value = found.and_then(|row| row.cells.get(column));
            let computed = value.cloned().ok_or_else(|| "there is no such row".to_owned());
            cells.push(Cell::new(place, printed, computed));
        }
    }
    cells
}

/// Costs per operation by target, and the same relative to the first. With `from`, the absolute
/// ones come from files of single tests, which a row's target and a block's name find.
pub fn cost_table(table: &Table<'_>) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut absolute: Option<Block> = None;
    for block in grid::blocks(table.text) {
        if !block.is_relative {
            cells.extend(absolute_costs(table, &block));
            absolute = Some(block);
            continue;
        }

        let base = absolute.as_ref().and_then(|block| block.rows.first());
        for row in &block.rows {
            let found = absolute
                .as_ref()
                .and_then(|absolute| absolute.rows.iter().find(|known| known.label == row.label));
            for (column, printed) in row.cells.iter().enumerate() {
                let place = format!("{} {}, column {}", block.name, row.label, column + 1);
                let terms = Terms::in_column(found, base, column);
                cells.push(ratio_cell(place, printed, terms, DECIMALS, "there is no such row"));
            }
        }
    }
    cells
}

/// The columns of a cost table in the order of the file of a test: two lines of values.
fn absolute_costs(table: &Table<'_>, block: &Block) -> Vec<Cell> {
    let mut cells = Vec::new();
    for row in &block.rows {
        let wanted = format!("{}/{}", row.label, block.name);
        let file = table.texts.iter().find(|(path, _)| {
            path.strip_prefix(wanted.as_str())
                .or_else(|| {
                    let at = path.find(&format!("/{wanted}"))?;
                    Some(&path[at + wanted.len() + 1..])
                })
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        let costs = file.and_then(|(_, text)| costs_in(text));
        for (column, printed) in row.cells.iter().enumerate() {
            let place = format!("{} {}, column {}", block.name, row.label, column + 1);
            cells.push(match costs.as_ref().map(|costs| costs.get(column)) {
                Some(Some(value)) => Cell::new(place, printed, Ok(value.clone())),
                Some(None) => Cell::new(place, printed, Err("there is no such cost".to_owned())),
                None => Cell::without_files(place, printed),
            });
        }
    }
    cells
}

/// Returns cpu/o, cs/o, r/o, rKB/o, wKB/o and o/s of the file of a test. The three in the middle
/// lose zeros at their ends.
fn costs_in(text: &str) -> Option<Vec<String>> {
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let value = |name: &str| {
        let header = rows.iter().position(|row| row.contains(&name))?;
        let column = rows[header].iter().position(|known| *known == name)?;
        rows.get(header + 1)?.get(column).copied()
    };
    let short = |text: &str| text.parse::<f64>().ok().map(|number| number.to_string());
    let rate: f64 = value("o/s")?.parse().ok()?;
    Some(vec![
        value("cpu/o")?.to_owned(),
        value("cs/o")?.to_owned(),
        short(value("r/o")?)?,
        short(value("rKB/o")?)?,
        short(value("wKB/o")?)?,
        format!("{rate:.0}"),
    ])
}

/// Metrics relative to the first row of each group of the table `of`; a row of `-` ends a group.
pub fn metric_ratios(table: &Table<'_>) -> Vec<Cell> {
    let blocks = grid::blocks(table.text);
    let sources = match table.source() {
        Ok(source) => grid::blocks(source),
        Err(reason) => {
            let all = |block: &Block| all_missing(&block.rows, &reason);
            return blocks.iter().flat_map(all).collect();
        }
    };

    let mut cells = Vec::new();
    for (block, source) in blocks.iter().zip(&sources) {
        let mut first_of_group: Option<&Row> = None;
        let mut rows = block.rows.iter().peekable();
        for row in &source.rows {
            if row.label == "-" {
                first_of_group = None;
                // Relative tables may have the same separators.
                rows.next_if(|row| row.label == "-");
                continue;
            }
            let Some(base) = first_of_group else {
                first_of_group = Some(row);
                continue;
            };
            let Some(printed) = rows.next() else {
                continue;
            };

            let of_same_target = (row.label == printed.label).then_some(row);
            for (column, cell) in printed.cells.iter().enumerate() {
                let place = format!("{} {}, column {}", block.name, printed.label, column + 1);
                let terms = Terms::in_column(of_same_target, Some(base), column);
                let missing = "the rows are of other targets";
                cells.push(ratio_cell(place, cell, terms, DECIMALS, missing));
            }
        }
    }
    cells
}

/// Values relative to the first one of the table `of`: pairs of a target and a value, or the rates
/// of a report of `benchmark.sh`.
pub fn value_ratios(table: &Table<'_>) -> Vec<Cell> {
    let source = match table.source() {
        Ok(source) => source,
        Err(reason) => return all_missing(&grid::csv(table.text), &reason),
    };
    if source.contains("ops_sec") {
        return report_ratios(table, source);
    }

    let sources = grid::csv(source);
    let mut cells = Vec::new();
    for row in grid::csv(table.text) {
        let found = sources.iter().find(|source| source.label == row.label);
        let terms = Terms::in_column(found, sources.first(), 0);
        let printed = row.cells.first().map_or("", String::as_str);
        let missing = "there is no such target";
        cells.push(ratio_cell(row.label.clone(), printed, terms, decimals(table), missing));
    }
    cells
}

/// Rates of tests relative to that of the first version, with a column for each version.
fn report_ratios(table: &Table<'_>, source: &str) -> Vec<Cell> {
    let mut rates: Vec<(String, String)> = Vec::new();
    let mut header: Vec<&str> = Vec::new();
    for line in source.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        if cells.contains(&"ops_sec") {
            header = cells;
            continue;
        }
        let cell = |name: &str| {
            let column = header.iter().position(|known| *known == name)?;
            cells.get(column).map(|cell| (*cell).to_owned())
        };
        rates.extend(cell("test").zip(cell("ops_sec")));
    }

    let is_csv = table.text.lines().next().is_some_and(|line| line.contains(','));
    let rows = if is_csv {
        grid::csv(table.text)
    } else {
        grid::blocks(table.text).into_iter().flat_map(|block| block.rows).collect()
    };
    let mut cells = Vec::new();
    for row in rows.iter().filter(|row| row.label != "test") {
        let of_test: Vec<&String> =
            rates.iter().filter(|(test, _)| *test == row.label).map(|(_, rate)| rate).collect();
        for (column, printed) in row.cells.iter().enumerate() {
            let place = format!("{}, column {}", row.label, column + 1);
            let values = of_test.get(column).zip(of_test.first());
            let terms = values.map(|(value, base)| Terms { value, base });
            cells.push(ratio_cell(place, printed, terms, DECIMALS, "there is no such version"));
        }
    }
    cells
}
