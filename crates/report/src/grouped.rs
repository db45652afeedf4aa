//! Tables of steps that belong to groups of their benchmark: each is a test of one sort of statement, and there are
//! dozens. A row is a test and a column a target; where several figures are told, a row is a test of a target.

use std::collections::BTreeMap;

use analysis::{Row, relative as ratio_to};
use words::Decimals;
use words::metric::COSTS_OF_TESTS;

use crate::classic::{
    Footnotes, anchor, base_row, comparable, ended_early, has_others, length_cell, not_compared,
    rate_asked, rate_cell, relative_cell, shade, throughput_cell,
};
use crate::matrix::{Line, Matrix, StepHead};
use crate::metrics::Column;
use crate::number::fixed;
use crate::operations::{noun, step_head, throughput_title, unit};
use crate::table::{Cell, TEST, Table, TableRow, Tone};

/// Targets that always have a column each. Of more, tests have the columns if they are fewer.
const ACROSS_MAX: usize = 8;

/// Whether rows are tests, rather than targets.
pub(crate) fn are_rows(matrix: &Matrix<'_>) -> bool {
    let tests = matrix.measured().filter(|step| step.group.is_some());
    let lines = matrix.groups().map(<[_]>::len).max().unwrap_or(0);
    lines <= ACROSS_MAX.max(tests.count())
}

/// The lines that are compared with each other, those of the base first; what they have in common, where there are
/// several such groups; and the end of the identifiers of their tables.
fn compared<'l, 'a>(
    matrix: &'l Matrix<'a>,
) -> impl Iterator<Item = (&'l [Line<'a>], Vec<&'l Line<'a>>, String, String)> {
    matrix.groups().enumerate().map(|(number, lines)| {
        let label = matrix.group_label(lines);
        let label = label.map_or_else(String::new, |label| format!(", {label}"));
        let id = match number {
            0 => String::new(),
            _ => format!("-{}", number + 1),
        };
        (lines, matrix.base_first(lines), label, id)
    })
}

/// Columns beyond which heads take two lines, and letters of a target beyond which they do.
const WHOLE_HEADS_MAX: usize = 3;
const WHOLE_HEAD_MAX: usize = 16;

/// The head of a line's column: its target, in two lines where there is little room, and which repeat it is.
fn column_head(matrix: &Matrix<'_>, line: &Line<'_>, is_whole: bool) -> String {
    let build = line.rows.first().map(|row| row.build.as_str());
    let config = build.and_then(|build| line.cell.target.strip_prefix(build)?.strip_prefix('.'));
    let mut head = match (build, config) {
        (Some(build), Some(config)) if !is_whole => {
            format!("{}.\n{}", step_head(build), step_head(config))
        }
        _ => line.cell.target.to_string(),
    };
    let suffix = matrix.suffix(line);
    if !suffix.is_empty() {
        head.push('\n');
        head.push_str(suffix.trim_start());
    }
    head
}

/// A table with a row for each test and a column for each line.
fn per_test<'a>(
    matrix: &Matrix<'a>,
    lines: &[&Line<'a>],
    steps: &[StepHead<'a>],
    mut cell: impl FnMut(&Line<'a>, StepHead<'a>) -> Cell,
) -> Table {
    let are_whole = lines.len() <= WHOLE_HEADS_MAX
        && lines
            .iter()
            .all(|line| line.cell.target.len() <= WHOLE_HEAD_MAX);
    let heads = lines
        .iter()
        .map(|line| column_head(matrix, line, are_whole));
    let rows = steps.iter().map(|step| TableRow {
        lead: vec![step.name.to_string()],
        cells: lines.iter().map(|line| cell(line, *step)).collect(),
        target: false,
    });
    Table {
        lead: vec![TEST.to_string()],
        columns: heads.collect(),
        rows: rows.collect(),
        across: true,
        ..Table::default()
    }
}

/// Throughput of the tests of a group; a table for each number of clients and variant.
pub(crate) fn throughput<'a>(
    matrix: &Matrix<'a>,
    group: &str,
    steps: &[StepHead<'a>],
) -> Vec<Table> {
    let tables = compared(matrix).map(|(_, lines, label, id)| {
        let mut footnotes = Footnotes::default();
        let mut table = per_test(matrix, &lines, steps, |line, step| {
            throughput_cell(matrix, line, step, &mut footnotes)
        });
        for (row, step) in table.rows.iter_mut().zip(steps) {
            shade(row.cells.iter_mut(), &lines, *step);
        }
        table.id = format!("summary-{}{id}", anchor(group));
        table.title = throughput_title(matrix, Some(&format!("{group}{label}")), steps);
        if !is_of_one(steps) {
            table.lead.push("counts".to_string());
            for (row, step) in table.rows.iter_mut().zip(steps) {
                row.lead.push(unit(*step));
            }
        }
        scanned(&mut table, &lines, steps);
        table.notes.extend(footnotes.into_notes());
        table.with_legend()
    });
    tables.filter(Table::has_figures).collect()
}

/// Adds, under tests of which one event goes through a whole table, the rows that pass in a second: the field's figure.
fn scanned(table: &mut Table, lines: &[&Line<'_>], steps: &[StepHead<'_>]) {
    for (at, step) in steps.iter().enumerate().rev() {
        let of = |line: &&Line<'_>| {
            let row = line.row(step.name).filter(|row| comparable(row))?;
            row.metric("krows_sec")
        };
        let values: Vec<Option<f64>> = lines.iter().map(of).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let decimals = Decimals::Rate.of(values.iter().copied().flatten());
        let cells = values.iter().map(|value| match value {
            Some(value) => Cell::plain(fixed(*value, decimals)),
            None => Cell::not_run(),
        });
        let mut lead = vec![format!("{}, Krows/s", step.name)];
        lead.resize(table.lead.len(), String::new());
        let row = TableRow {
            lead,
            cells: cells.collect(),
            target: false,
        };
        table.rows.insert(at + 1, row);
    }
}

/// The rates of tests that are held to one, and what was asked for; a table for each number of clients and variant.
pub(crate) fn rates<'a>(matrix: &Matrix<'a>, steps: &[StepHead<'a>]) -> Vec<Table> {
    let tables = compared(matrix).map(|(_, lines, label, id)| {
        let mut footnotes = Footnotes::default();
        let asked: Vec<Option<f64>> = steps.iter().map(|step| rate_asked(&lines, *step)).collect();
        let decimals = |asked: Option<f64>| Decimals::Rate.of(asked);
        let mut table = per_test(matrix, &lines, steps, |line, step| {
            let asked = rate_asked(&lines, step);
            rate_cell(matrix, line, step, decimals(asked), &mut footnotes)
        });
        table.lead.push("target rate".to_string());
        for (row, asked) in table.rows.iter_mut().zip(asked) {
            let text = asked.map(|rate| fixed(rate, decimals(Some(rate))));
            row.lead.push(text.unwrap_or_default());
        }
        table.id = format!("rates-of-tests{id}");
        table.title =
            format!("Rate of events in tests that ask for one, events/s over all clients{label}");
        table.notes.extend(footnotes.into_notes());
        table.with_legend()
    });
    tables.filter(Table::has_figures).collect()
}

/// Whether all tests count the same.
fn is_of_one(steps: &[StepHead<'_>]) -> bool {
    steps.windows(2).all(|two| unit(two[0]) == unit(two[1]))
}

/// The same relative to the base.
pub(crate) fn relative<'a>(matrix: &Matrix<'a>, group: &str, steps: &[StepHead<'a>]) -> Vec<Table> {
    let tables = compared(matrix)
        .filter(|(all, ..)| has_others(matrix, all))
        .map(|(_, lines, label, id)| {
            let mut table = per_test(matrix, &lines, steps, |line, step| {
                relative_cell(matrix, line, step)
            });
            table.id = format!("relative-{}{id}", anchor(group));
            table.title = format!("{group}{label}: throughput relative to {}", matrix.base);
            table.with_legend()
        });
    tables.filter(Table::has_figures).collect()
}

/// How long each test was, of those that were not all as long as most; and how long most were.
pub(crate) fn lengths<'a>(
    matrix: &Matrix<'a>,
    steps: &[StepHead<'a>],
) -> (Vec<Table>, Option<String>) {
    let mut tables: Vec<Table> = compared(matrix)
        .map(|(_, lines, label, id)| {
            let mut table = per_test(matrix, &lines, steps, |line, step| {
                length_cell(matrix, line, step)
            });
            table.id = format!("lengths-of-tests{id}");
            table.title = format!("Length of tests in seconds{label}");
            table
        })
        .collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for cell in cells(&tables).filter(|cell| cell.tone == Tone::Plain) {
        *counts.entry(cell.text.clone()).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let usual = most.map(|(text, _)| text).filter(|usual| {
        let mut left_out = 0;
        for table in &mut tables {
            let all = table.rows.len();
            let is_usual = |row: &TableRow| row.cells.iter().all(|cell| cell.text == *usual);
            table.rows.retain(|row| !is_usual(row));
            left_out += all - table.rows.len();
        }
        left_out > 0
    });
    tables.retain(Table::has_figures);
    let which = if tables.is_empty() {
        "tests"
    } else {
        "other tests"
    };
    (tables, usual.map(|usual| format!("{which}: {usual} each")))
}

fn cells(tables: &[Table]) -> impl Iterator<Item = &Cell> {
    let rows = tables.iter().flat_map(|table| &table.rows);
    rows.flat_map(|row| &row.cells)
}

/// What a query of each test costs, block by block: of every target, then relative to the base; group by group.
pub(crate) fn costs(matrix: &Matrix<'_>) -> Vec<Table> {
    let columns = Column::all(COSTS_OF_TESTS);
    let mut tables = Vec::new();
    for (group, steps) in matrix.measured_by_group() {
        let Some(group) = group else { continue };
        let of = steps.first().map_or("operation", |step| noun(*step));
        for (all, lines, label, id) in compared(matrix) {
            let mut table = per_line(
                matrix,
                &lines,
                &steps,
                columns.iter().map(|column| column.head.clone()).collect(),
                |rows| absolute(rows, &columns),
            );
            table.id = format!("costs-of-{}{id}", anchor(group));
            table.title = format!("{group}{label}: cost per {of}, of the whole host");
            tables.push(table);
            if has_others(matrix, all) {
                tables.push(relative_costs(matrix, (group, &label, &id), &lines, &steps));
            }
        }
    }
    tables.retain(Table::has_figures);
    tables
}

/// How long events of each test took and what became of those that did not succeed at once, group by group.
pub(crate) fn times(matrix: &Matrix<'_>) -> Vec<Table> {
    const HEADS: [&str; 7] = [
        "p50\nus",
        "p95\nus",
        "p99\nus",
        "p99.9\nus",
        "max\nus",
        "retried\n",
        "failed\n",
    ];
    let figure = |row: &Row, index: usize| {
        let op = row.ops.get(row.main_op.as_deref()?)?;
        let times = &op.response_us;
        let has_times = op.count > 0;
        match index {
            0 => has_times.then_some(times.p50),
            1 => has_times.then_some(times.p95),
            2 => has_times.then_some(times.p99),
            3 => has_times.then_some(times.p99_9),
            4 => has_times.then_some(times.max),
            5 => Some(op.retried as f64),
            _ => Some(op.failed as f64),
        }
    };
    let mut tables = Vec::new();
    for (group, steps) in matrix.measured_by_group() {
        let Some(group) = group else { continue };
        for (_, lines, label, id) in compared(matrix) {
            let mut table = per_line(
                matrix,
                &lines,
                &steps,
                HEADS.map(str::to_owned).into(),
                |rows| {
                    rows.iter()
                        .map(|row| {
                            (0..HEADS.len())
                                .map(|index| match figure(row, index) {
                                    Some(count) if index >= 5 => Cell::plain(fixed(count, 0)),
                                    Some(us) => {
                                        Cell::plain(fixed(us, Decimals::Microseconds.of([us])))
                                    }
                                    None => Cell::not_applicable(),
                                })
                                .collect()
                        })
                        .collect()
                },
            );
            table.id = format!("times-of-{}{id}", anchor(group));
            table.title = format!(
                "{group}{label}: response time of an event, and events that did not succeed at once"
            );
            tables.push(table);
        }
    }
    tables.retain(Table::has_figures);
    tables
}

/// Metrics of the rows of one test, with as many decimals in a column as its figures need.
fn absolute(rows: &[&Row], columns: &[Column]) -> Vec<Vec<Cell>> {
    let decimals = |column: &Column| {
        let values = rows.iter().filter_map(|row| row.metric(column.name));
        column.decimals.of(values)
    };
    let decimals: Vec<usize> = columns.iter().map(decimals).collect();
    let cells = |row: &&Row| {
        let columns = columns.iter().zip(&decimals);
        columns
            .map(|(column, decimals)| match row.metric(column.name) {
                Some(value) => Cell::plain(fixed(value, *decimals)),
                None => Cell::not_applicable(),
            })
            .collect()
    };
    rows.iter().map(cells).collect()
}

/// A table with a row for each line of each test: `cells` gives those of the rows of one test.
fn per_line<'a>(
    matrix: &Matrix<'a>,
    lines: &[&Line<'a>],
    steps: &[StepHead<'a>],
    heads: Vec<String>,
    cells: impl Fn(&[&Row]) -> Vec<Vec<Cell>>,
) -> Table {
    let mut footnotes = Footnotes::default();
    let mut table = with_heads(heads);
    for step in steps {
        let there = || {
            lines
                .iter()
                .filter_map(|line| Some((line, line.row(step.name)?)))
        };
        let rows: Vec<&Row> = there().map(|(_, row)| row).collect();
        for ((line, row), mut cells) in there().zip(cells(&rows)) {
            if let Some(cell) = ended_early(row.status) {
                cells.fill(Cell::default());
                cells[0] = cell;
            } else if !row.valid {
                cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
                cells[0].mark = format!("!{}", footnotes.letter(matrix, line, row));
            }
            table.rows.push(row_of(matrix, line, *step, cells));
        }
    }
    table.notes.extend(footnotes.into_notes());
    table.with_legend()
}

fn with_heads(columns: Vec<String>) -> Table {
    Table {
        lead: vec![TEST.to_string(), "target".to_string()],
        columns,
        ..Table::default()
    }
}

fn row_of(matrix: &Matrix<'_>, line: &Line<'_>, step: StepHead<'_>, cells: Vec<Cell>) -> TableRow {
    let target = format!("{}{}", line.cell.target, matrix.suffix(line));
    TableRow {
        lead: vec![step.name.to_string(), target],
        cells,
        target: false,
    }
}

/// What a query costs relative to the base, of all other lines.
fn relative_costs<'a>(
    matrix: &Matrix<'a>,
    (group, label, id): (&str, &str, &str),
    lines: &[&Line<'a>],
    steps: &[StepHead<'a>],
) -> Table {
    let heads = COSTS_OF_TESTS.iter().map(|(_, head)| {
        let (name, _) = head.split_once('\n').unwrap_or((head, ""));
        name.to_owned()
    });
    let mut table = with_heads(heads.collect());
    for step in steps {
        for line in lines.iter().filter(|line| line.cell.target != matrix.base) {
            let Some(row) = line.row(step.name) else {
                continue;
            };
            let mut cells = match ended_early(row.status) {
                Some(cell) => vec![cell],
                None if !comparable(row) => vec![not_compared()],
                None => {
                    let base = base_row(matrix, line, *step);
                    COSTS_OF_TESTS
                        .iter()
                        .map(|(name, _)| relative_cost(name, row, base))
                        .collect()
                }
            };
            cells.resize(COSTS_OF_TESTS.len(), Cell::default());
            table.rows.push(row_of(matrix, line, *step, cells));
        }
    }
    let of = steps.first().map_or("operation", |step| noun(*step));
    table.id = format!("relative-costs-of-{}{id}", anchor(group));
    table.title = format!("{group}{label}: cost per {of} relative to {}", matrix.base);
    table.with_legend()
}

fn relative_cost(name: &str, row: &Row, base: Option<&Row>) -> Cell {
    let value = row.metric(name);
    let Some(base) = base else {
        return Cell::toned("no base", Tone::Absent);
    };
    let base = base.metric(name);
    let Some(ratio) = ratio_to(value, base) else {
        return Cell::not_applicable();
    };
    Cell::toned(fixed(ratio, 2), Tone::Unjudged)
}
