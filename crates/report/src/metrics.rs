//! The tables of metrics in one step, one row per line: those of the field, what an operation costs, and what an engine
//! does beside answering.

use analysis::Row;
use record::Status;
use words::metric::{
    COSTS, Columns, FIELD_COUNT, IOSTAT, LSM_STATE, METRICS, Section, StepScope, VMSTAT,
};
use words::{Decimals, Metric};

use crate::lsm;
use crate::matrix::{Matrix, StepHead};
use crate::number::fixed;
use crate::operations::noun;
use crate::table::{Cell, Table, Tone, anchor};
use crate::worth::{Footnotes, footnoted};

/// A column of a table of figures.
pub(crate) struct Column {
    /// The figure's name.
    pub name: &'static str,
    /// What stands above it.
    pub head: String,
    pub decimals: Decimals,
    /// What the name stands for, where it doesn't say so itself.
    pub meaning: &'static str,
}

impl From<(&'static str, &str, Decimals)> for Column {
    fn from((name, head, decimals): (&'static str, &str, Decimals)) -> Self {
        let head = head.to_owned();
        Self {
            name,
            head,
            decimals,
            meaning: "",
        }
    }
}

impl Column {
    /// Returns the column of a metric under a head of its own.
    pub(crate) fn new(metric: &Metric, head: String) -> Self {
        Self {
            name: metric.name,
            head,
            decimals: metric.decimals,
            meaning: metric.meaning,
        }
    }

    /// Returns the columns of a table of metrics. What is no metric is a latency in microseconds.
    pub(crate) fn all(columns: &Columns) -> Vec<Self> {
        let column = |&(name, head): &(&'static str, &str)| {
            let metric = Metric::named(name);
            Self {
                name,
                head: match (head, metric) {
                    ("", Some(metric)) => metric.column_heading(),
                    _ => head.to_owned(),
                },
                decimals: metric.map_or(Decimals::Microseconds, |metric| metric.decimals),
                meaning: metric.map_or("", |metric| metric.meaning),
            }
        };
        columns.iter().map(column).collect()
    }
}

/// The unit of a metric; empty: it is a number of something.
pub(crate) fn unit(metric: &str) -> &'static str {
    Metric::named(metric).map_or("", |metric| metric.unit)
}

/// (d) The metrics of the field in one step, one row per line.
pub(crate) fn metrics(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let field = METRICS[..FIELD_COUNT].iter();
    let columns = field.map(|metric| Column::new(metric, metric.column_heading()));
    let title = format!("Metrics; an operation is a {}", noun(step));
    figure_table(
        matrix,
        step,
        ("metrics", &title),
        &columns.collect::<Vec<_>>(),
        Row::metric,
    )
}

/// (d) Where the time of an operation goes in one step, of the connections that do it.
/// Empty where nothing of it was measured.
pub(crate) fn time(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let parts = METRICS.iter().filter(|it| it.section == Section::Time);
    let columns: Vec<Column> = parts
        .filter(|metric| applies(matrix, step, metric.name))
        .map(|metric| Column::new(metric, metric.column_heading()))
        .collect();
    let title = format!("Where the time of a {} goes", noun(step));
    figure_table(matrix, step, ("time", &title), &columns, Row::metric)
}

/// (d) What an operation costs in one step, whose processor time it is, and what each sort of row costs the client.
pub(crate) fn costs(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let mut columns = Column::all(COSTS);
    columns.retain(|column| {
        let is_of_all = Metric::named(column.name).is_some_and(|it| it.steps == StepScope::All);
        is_of_all || applies(matrix, step, column.name)
    });
    let title = format!("Cost per {}; host includes client and server", noun(step));
    figure_table(matrix, step, ("costs", &title), &columns, Row::metric)
}

/// How often commits were made durable, how much more was written than was inserted, and what work the engine had put
/// off when the step ended; empty where no target tells any of it.
pub(crate) fn upkeep(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
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
            _ => metric.column_heading(),
        };
        Column::new(metric, head)
    };
    let sections = [Section::Durability, Section::Writes, Section::Debt];
    let columns: Vec<Column> = METRICS
        .iter()
        .filter(|metric| sections.contains(&metric.section) && is_told(metric))
        .map(column)
        .collect();
    let title = "Durability, write amplification, and debt when the step ended";
    figure_table(matrix, step, ("upkeep", title), &columns, Row::metric)
}

/// What iostat and vmstat would print in one step: of the devices of the data, and of all processors. Empty where the host was
/// not sampled.
pub(crate) fn of_host(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let of = [
        (
            IOSTAT,
            "iostat",
            "Input and output of the devices of the data",
        ),
        (
            VMSTAT,
            "vmstat",
            "Context switches, and percent of all processors",
        ),
    ];
    let is_told = |columns: &Columns| {
        let mut names = columns.iter().map(|(name, _)| name);
        names.any(|name| applies(matrix, step, name))
    };
    of.into_iter()
        .filter(|(columns, ..)| is_told(columns))
        .map(|(columns, id, title)| {
            let columns = Column::all(columns);
            figure_table(matrix, step, (id, title), &columns, Row::metric)
        })
        .collect()
}

/// Whether any line has this metric in a step.
fn applies(matrix: &Matrix<'_>, step: StepHead<'_>, name: &str) -> bool {
    matrix.rows_of(step).any(|row| row.metric(name).is_some())
}

/// Figures of one step, which `value` takes from a row by their names, one row per line. What applies to no line is named below
/// instead of taking a column.
pub(crate) fn figure_table(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    (id, title): (&str, &str),
    columns: &[Column],
    value: impl Fn(&Row, &str) -> Option<f64>,
) -> Table {
    let (lines, rows): (Vec<_>, Vec<&Row>) = matrix.lines_in(step).unzip();
    let is_told = |column: &&Column| {
        let mut rows = rows.iter();
        rows.any(|row| value(row, column.name).is_some())
    };
    let (mut shown, absent): (Vec<_>, Vec<_>) = columns.iter().partition(is_told);
    if shown.is_empty() {
        shown.extend(columns.first());
    }
    let mut table = Table::new(
        format!("{id}-{}", anchor(step.name)),
        title,
        matrix.lead(),
        shown.iter().map(|column| &column.head),
    );
    let meanings = shown.iter().filter(|column| !column.meaning.is_empty());
    let names = meanings.map(|column| {
        let head = column.head.lines().next().unwrap_or_default();
        let (name, _) = head.split_once(',').unwrap_or((head, ""));
        format!("`{name}`: {}", column.meaning)
    });
    table.names = names.collect();
    let mut footnotes = Footnotes::default();
    let cells = figure_cells(&rows, shown, value);
    for ((line, row), cells) in lines.iter().zip(&rows).zip(cells) {
        let cells = footnoted(matrix, line, row, cells, &mut footnotes);
        table.push(matrix.lead_of(line), cells);
    }
    table.notes.extend(footnotes.into_notes());
    let mut statuses = rows.iter().map(|row| row.status);
    if !absent.is_empty() && statuses.any(|status| status == Status::Complete) {
        let names: Vec<_> = absent.iter().map(|column| column.name).collect();
        table.notes.push(format!("n/a: {}", names.join(", ")));
    }
    table
}

/// Figures of rows, with as many decimals in a column as its figures need.
pub(crate) fn figure_cells<'c>(
    rows: &[&Row],
    columns: impl IntoIterator<Item = &'c Column>,
    value: impl Fn(&Row, &str) -> Option<f64>,
) -> Vec<Vec<Cell>> {
    let mut cells = vec![Vec::new(); rows.len()];
    for Column { name, decimals, .. } in columns {
        let values: Vec<Option<f64>> = rows.iter().map(|row| value(row, name)).collect();
        let decimals = decimals.of(values.iter().copied().flatten());
        for ((row, value), cells) in rows.iter().zip(values).zip(&mut cells) {
            cells.push(match value {
                Some(value) if lsm::is_coarse(row, name) => {
                    Cell::toned(fixed(value, decimals), Tone::Coarse)
                }
                value => Cell::number(value, decimals),
            });
        }
    }
    cells
}
