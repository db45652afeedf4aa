//! The tables of metrics in one step, one row per line: those of the field, what an operation costs, and what an engine
//! does beside answering.

use analysis::Row;
use record::Status;
use words::metric::{COSTS, Columns, FIELD_COUNT, LSM_STATE, METRICS, Section, Steps};
use words::{Decimals, Metric};

use crate::classic::{Footnotes, anchor, ended_early};
use crate::lsm;
use crate::matrix::{Matrix, StepHead};
use crate::number::fixed;
use crate::operations::noun;
use crate::table::{Cell, Table, TableRow, Tone};

/// A column of a table of figures.
pub(crate) struct Column {
    /// The figure's name.
    pub name: &'static str,
    /// What stands above it.
    pub head: String,
    pub decimals: Decimals,
}

impl Column {
    /// Returns the column of a metric under a head of its own.
    pub(crate) fn new(metric: &Metric, head: String) -> Self {
        Self {
            name: metric.name,
            head,
            decimals: metric.decimals,
        }
    }

    /// Returns the columns of a table of metrics. What is no metric is a latency in microseconds.
    pub(crate) fn all(columns: &Columns) -> Vec<Self> {
        let column = |&(name, head): &(&'static str, &str)| {
            let metric = Metric::named(name);
            Self {
                name,
                head: match (head, metric) {
                    ("", Some(metric)) => metric.headed(),
                    _ => head.to_owned(),
                },
                decimals: metric.map_or(Decimals::Microseconds, |metric| metric.decimals),
            }
        };
        columns.iter().map(column).collect()
    }
}

/// What a metric is called where there is little room.
pub(crate) fn short(metric: &str) -> &str {
    Metric::named(metric).map_or(metric, |metric| metric.head)
}

/// The unit of a metric; empty: it is a number of something.
pub(crate) fn unit(metric: &str) -> &'static str {
    Metric::named(metric).map_or("", |metric| metric.unit)
}

/// (d) The metrics of the field in one step, one row per line.
pub(crate) fn metrics(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let field = METRICS[..FIELD_COUNT].iter();
    let columns = field.map(|metric| Column::new(metric, metric.headed()));
    let mut table = metric_table(matrix, step, &columns.collect::<Vec<_>>());
    table.id = format!("metrics-{}", anchor(step.name));
    table.title = format!("Metrics; an operation is a {}", noun(step));
    table
}

/// (d) Where the time of an operation goes in one step, of the connections that do it.
/// `None` where nothing of it was measured.
pub(crate) fn time(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let parts = METRICS.iter().filter(|it| it.section == Section::Time);
    let columns: Vec<Column> = parts
        .filter(|metric| applies(matrix, step, metric.name))
        .map(|metric| Column::new(metric, metric.headed()))
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut table = metric_table(matrix, step, &columns);
    table.id = format!("time-{}", anchor(step.name));
    table.title = format!("Where the time of a {} goes", noun(step));
    Some(table)
}

/// (d) What an operation costs in one step, whose processor time it is, and what each sort of row costs the client.
pub(crate) fn costs(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let mut columns = Column::all(COSTS);
    columns.retain(|column| {
        let is_of_all = Metric::named(column.name).is_some_and(|it| it.steps == Steps::All);
        is_of_all || applies(matrix, step, column.name)
    });
    let mut table = metric_table(matrix, step, &columns);
    table.id = format!("costs-{}", anchor(step.name));
    table.title = format!("Cost per {}; host includes client and server", noun(step));
    table
}

/// How often commits were made durable, how much more was written than was inserted, and what work the engine had put
/// off when the step ended; `None` where no target tells any of it.
pub(crate) fn upkeep(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let of_trees = lsm::is_lsm(matrix, step);
    let is_told = |metric: &Metric| {
        // Where it stands among what else is told of the tree, it is not told twice.
        let is_of_tree = LSM_STATE.iter().any(|(name, _)| *name == metric.name);
        applies(matrix, step, metric.name) && !(of_trees && is_of_tree)
    };
    let column = |metric: &'static Metric| {
        let head = match (metric.section, metric.unit) {
            (Section::Debt, "") => format!("{}\ndebt", metric.head),
            (Section::Debt, unit) => format!("{}\ndebt, {unit}", metric.head),
            _ => metric.headed(),
        };
        Column::new(metric, head)
    };
    let sections = [Section::Durability, Section::Writes, Section::Debt];
    let columns: Vec<Column> = METRICS
        .iter()
        .filter(|metric| sections.contains(&metric.section) && is_told(metric))
        .map(column)
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut table = metric_table(matrix, step, &columns);
    table.id = format!("upkeep-{}", anchor(step.name));
    table.title = "Durability, write amplification, and debt when the step ended".to_string();
    Some(table)
}

/// Whether any line has this metric in a step.
fn applies(matrix: &Matrix<'_>, step: StepHead<'_>, name: &str) -> bool {
    matrix.rows_of(step).any(|row| row.metric(name).is_some())
}

/// Some metrics of one step, one row per line. What applies to no line is named below instead of taking a column.
fn metric_table(matrix: &Matrix<'_>, step: StepHead<'_>, columns: &[Column]) -> Table {
    figure_table(matrix, step, columns, Row::metric)
}

/// The same of figures that `value` takes from a row by their names.
pub(crate) fn figure_table(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    columns: &[Column],
    value: impl Fn(&Row, &str) -> Option<f64>,
) -> Table {
    let values = |name: &str| -> Vec<f64> {
        matrix
            .rows_of(step)
            .filter_map(|row| value(row, name))
            .collect()
    };
    let (mut shown, absent): (Vec<_>, Vec<_>) = columns
        .iter()
        .partition(|column| !values(column.name).is_empty());
    if shown.is_empty() {
        shown.extend(columns.first());
    }
    let decimals: Vec<usize> = shown
        .iter()
        .map(|column| column.decimals.of(values(column.name)))
        .collect();
    let mut footnotes = Footnotes::default();
    let mut table = Table {
        lead: matrix.lead(),
        columns: shown.iter().map(|column| column.head.clone()).collect(),
        ..Table::default()
    };
    for line in &matrix.lines {
        let Some(row) = line.row(step.name) else {
            continue;
        };
        let mut cells: Vec<Cell> = shown
            .iter()
            .zip(&decimals)
            .map(|(column, decimals)| match value(row, column.name) {
                Some(value) if lsm::is_coarse(row, column.name) => {
                    Cell::toned(fixed(value, *decimals), Tone::Coarse)
                }
                Some(value) => Cell::plain(fixed(value, *decimals)),
                None => Cell::not_applicable(),
            })
            .collect();
        if let Some(cell) = ended_early(row.status) {
            cells.fill(Cell::default());
            cells[0] = cell;
        } else if !row.valid {
            cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
            cells[0].mark = format!("!{}", footnotes.letter(matrix, line, row));
        }
        table.rows.push(TableRow {
            lead: matrix.lead_of(line),
            cells,
            target: false,
        });
    }
    table.notes.extend(footnotes.into_notes());
    if !absent.is_empty()
        && matrix
            .rows_of(step)
            .any(|row| row.status == Status::Complete)
    {
        let names: Vec<_> = absent.iter().map(|column| column.name).collect();
        table.notes.push(format!("n/a: {}", names.join(", ")));
    }
    table.with_legend()
}
