//! The tables of metrics in one step, one row per line: the common metrics, what an operation
//! costs, and the engine's background work.

use std::collections::BTreeMap;

use analysis::figures::{ClientHostFigures, EventTotals, Row};
use record::Status;
use words::metric::{
    CLIENT_HOST, COSTS, Columns, IOSTAT, LSM_STATE, METRICS, NETWORK, PUBLISHED_COUNT, Section,
    StepScope, VMSTAT,
};
use words::{Decimals, Metric, WaitView};

use crate::model::matrix::{CellLine, Matrix, StepHead};
use crate::model::number::fixed;
use crate::model::operations::noun;
use crate::model::table::{Cell, Table, TableHeading, Tone, anchor};
use crate::model::worth::{Footnotes, footnoted};
use crate::tables::lsm;
use crate::tables::sizes;
use crate::tables::{commands, plans, system_calls};

/// A column of a table of figures.
pub(crate) struct Column {
    pub name: &'static str,
    /// The column header.
    pub head: String,
    pub decimals: Decimals,
    /// The explanation of the name, if the name needs one.
    pub meaning: &'static str,
}

impl Column {
    /// Returns the column of a figure that is no metric.
    pub(crate) fn plain(name: &'static str, head: impl Into<String>, decimals: Decimals) -> Self {
        Self { name, head: head.into(), decimals, meaning: "" }
    }

    /// Returns the column of a metric with its own head.
    pub(crate) fn new(metric: &Metric, head: String) -> Self {
        Self { name: metric.name, head, decimals: metric.decimals, meaning: metric.meaning }
    }

    /// Returns the columns of a table of metrics. A name that is not a metric is a latency in
    /// microseconds.
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

/// Returns the metrics of published summaries in one step, a line for each target.
pub(crate) fn metrics(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let columns: Vec<Column> = METRICS[..PUBLISHED_COUNT]
        .iter()
        .map(|metric| Column::new(metric, metric.column_heading()))
        .collect();
    let title = format!("Metrics; an operation is one {}", noun(step));
    let heading = TableHeading { id: "metrics", title: &title };
    figure_table(matrix, step, heading, &columns, Row::metric)
}

/// Returns the parts of an operation's time in one step, for the connections that execute it. Empty
/// if nothing was measured.
pub(crate) fn time(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let title = format!("Where the time of a {} goes", noun(step));
    of_section(matrix, step, Section::Time, TableHeading { id: "time", title: &title })
}

/// Returns how far replicas lag in one step, how long they take to catch up, and their cost. Empty
/// without replicas.
pub(crate) fn replication(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let title = "Replication lag, and the time to catch up after the step";
    let heading = TableHeading { id: "replication", title };
    of_section(matrix, step, Section::Replication, heading)
}

/// Returns the metrics of a section that some target has in one step.
fn of_section(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    section: Section,
    heading: TableHeading<'_>,
) -> Table {
    let columns: Vec<Column> = METRICS
        .iter()
        .filter(|metric| metric.section == section && applies(matrix, step, metric.name))
        .map(|metric| Column::new(metric, metric.column_heading()))
        .collect();
    figure_table(matrix, step, heading, &columns, Row::metric)
}

/// Returns the costs of an operation in one step, the users of the CPU, and the client's cost of
/// each kind of row.
pub(crate) fn costs(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let columns = in_scope(matrix, step, COSTS);
    let title = format!("Cost per {}; host includes client and server", noun(step));
    let heading = TableHeading { id: "costs", title: &title };
    figure_table(matrix, step, heading, &columns, Row::metric)
}

/// Returns the frequency with which commits were made durable, the write amplification, and the
/// work that the engine had postponed at the end of the step. Empty if no target reports any of it.
pub(crate) fn upkeep(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let of_trees = lsm::is_lsm(matrix, step);
    let is_shown = |metric: &Metric| {
        // The table of the tree shows this metric already.
        let is_of_tree = LSM_STATE.iter().any(|(name, _)| *name == metric.name);
        applies(matrix, step, metric.name) && !(of_trees && is_of_tree)
    };
    let head = |metric: &Metric| match (metric.section, metric.unit) {
        (Section::Debt, "") => format!("{}\ndebt", metric.head),
        (Section::Debt, unit) => format!("{}\ndebt, {unit}", metric.head),
        _ => metric.column_heading(),
    };

    let sections = [Section::Durability, Section::Writes, Section::Debt];
    let columns: Vec<Column> = METRICS
        .iter()
        .filter(|metric| sections.contains(&metric.section) && is_shown(metric))
        .map(|metric| Column::new(metric, head(metric)))
        .collect();

    let title = "Durability, write amplification, and debt at the end of the step";
    let heading = TableHeading { id: "upkeep", title };
    figure_table(matrix, step, heading, &columns, Row::metric)
}

/// Returns the figures that iostat and vmstat would print in one step, for the devices of the data
/// and for all processors, the traffic with other hosts, and the use of client hosts. Empty if no
/// host was sampled.
pub(crate) fn of_host(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let of_samples = [
        (IOSTAT, "iostat", "Input and output of the devices of the data"),
        (VMSTAT, "vmstat", "Context switches, and percent of all processors"),
        (NETWORK, "network", "Network traffic with other hosts"),
    ];
    let mut tables = Vec::new();
    for (columns, id, title) in of_samples {
        if columns.iter().any(|(name, _)| applies(matrix, step, name)) {
            let heading = TableHeading { id, title };
            let columns = in_scope(matrix, step, columns);
            tables.push(figure_table(matrix, step, heading, &columns, Row::metric));
        }
    }

    tables.extend(WaitView::ALL.into_iter().filter_map(|view| waits(matrix, step, view)));
    tables.extend(system_calls::system_calls(matrix, step));
    tables.extend(log_events(matrix, step));
    tables.extend(sizes::indexes(matrix, step));
    tables.extend(plans::plans(matrix, step));
    tables.extend(commands::commands(matrix, step));
    tables.extend(client_hosts(matrix, step));
    tables
}

/// The number of states that a table of waits has columns for.
const STATES: usize = 6;

/// Returns what a view of waits shows, and as a share of what.
pub(crate) fn title_of_waits(view: WaitView) -> &'static str {
    match view {
        WaitView::Engine => "Session waits, reported by the engine: percent of connection time",
        WaitView::Kernel => {
            "Connection threads of the engine, seen by the kernel: percent of connection time"
        }
        WaitView::Background => "Busy background threads: percent of one thread's time",
    }
}

/// Returns the most frequent states of a view in a step, over all its lines.
pub(crate) fn frequent_states<'f>(
    matrix: &Matrix<'f>,
    step: StepHead<'_>,
    view: WaitView,
) -> Vec<&'f str> {
    let mut percent: BTreeMap<&str, f64> = BTreeMap::new();
    for (_, row) in matrix.lines_in(step) {
        for state in row.waits(view).iter().flat_map(|waits| &waits.states) {
            *percent.entry(&state.name).or_default() += state.percent;
        }
    }

    let mut states: Vec<(&str, f64)> = percent.into_iter().collect();
    states.sort_by(|a, b| b.1.total_cmp(&a.1));
    states.iter().map(|(name, _)| *name).take(STATES).collect()
}

/// Returns what the load's sessions or the engine's threads waited for in one step. `None` where
/// the view applies to no target.
fn waits(matrix: &Matrix<'_>, step: StepHead<'_>, view: WaitView) -> Option<Table> {
    let states = frequent_states(matrix, step, view);
    if states.is_empty() {
        return None;
    }

    let id = match view {
        WaitView::Engine => format!("waits-{}", anchor(step.name)),
        _ => format!("{}-waits-{}", view.name(), anchor(step.name)),
    };

    let heads = states.iter().map(|name| name.replacen([':', ' '], "\n", 2));

    let mut table = Table::new(id, title_of_waits(view), matrix.lead(), heads);
    table.across = true;

    for (line, row) in matrix.lines_in(step) {
        let waits = row.waits(view);
        let cell = |name: &&str| {
            let Some(waits) = waits else {
                return Cell::not_applicable();
            };
            let state = waits.states.iter().find(|state| state.name == **name);
            Cell::number(Some(state.map_or(0.0, |state| state.percent)), 1)
        };

        table.push(matrix.lead_of(line), states.iter().map(cell).collect());
    }

    Some(table)
}

/// Returns the events of the engines' logs in one step. `None` where no log has one.
fn log_events(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let mut table = Table::new(
        format!("log-events-{}", anchor(step.name)),
        "Events of the engine's log",
        [matrix.lead(), vec!["event".to_owned()]].concat(),
        ["count", "seconds", "MB written"],
    );
    for (line, row) in matrix.lines_in(step) {
        let Some(events) = &row.events else {
            continue;
        };
        let mut kinds = events.kinds.clone();
        if row.status == Status::Complete {
            for (kind, none) in absent_events(matrix, step, line) {
                kinds.entry(kind).or_insert(none);
            }
        }

        for (kind, totals) in kinds {
            let lead = [matrix.lead_of(line), vec![kind]].concat();
            let cells = vec![
                Cell::number(Some(totals.count as f64), 0),
                Cell::number(totals.seconds, 1),
                Cell::number(totals.bytes.map(|bytes| bytes / 1e6), 1),
            ];
            table.push(lead, cells);
        }
    }

    (!table.is_empty()).then_some(table)
}

/// Returns the kinds of events that any repeat of a line's target had in a step, each with the
/// totals of a repeat without such events: zeros, which count in a median.
fn absent_events(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    line: &CellLine<'_>,
) -> BTreeMap<String, EventTotals> {
    let mut kinds: BTreeMap<String, EventTotals> = BTreeMap::new();
    for (other, row) in matrix.lines_in(step) {
        if other.cell.target != line.cell.target || !other.same_group(line) {
            continue;
        }
        for (kind, totals) in row.events.iter().flat_map(|events| &events.kinds) {
            let none = kinds.entry(kind.clone()).or_default();
            none.seconds = none.seconds.or(totals.seconds.map(|_| 0.0));
            none.bytes = none.bytes.or(totals.bytes.map(|_| 0.0));
        }
    }
    kinds
}

/// Returns the use of client hosts in one step, a line for each target and host. `None` without
/// client hosts.
fn client_hosts(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let hosts: Vec<(&CellLine<'_>, &ClientHostFigures)> = matrix
        .lines_in(step)
        .flat_map(|(line, row)| row.client_hosts.iter().map(move |host| (line, host)))
        .collect();
    if hosts.is_empty() {
        return None;
    }

    // Column by column, because all figures of a column have the same decimals.
    let columns: Vec<Column> = [CLIENT_HOST, NETWORK].into_iter().flat_map(Column::all).collect();
    let mut cells = vec![Vec::new(); hosts.len()];
    for column in &columns {
        let value = |host: &ClientHostFigures| host.metrics.get(column.name).copied().flatten();
        let values: Vec<Option<f64>> = hosts.iter().map(|(_, host)| value(host)).collect();
        let decimals = column.decimals.of(values.iter().copied().flatten());
        for (cells, value) in cells.iter_mut().zip(values) {
            cells.push(Cell::number(value, decimals));
        }
    }

    let mut table = Table::new(
        format!("client-hosts-{}", anchor(step.name)),
        "Client hosts",
        [matrix.lead(), vec!["client host".to_owned()]].concat(),
        columns.iter().map(|column| &column.head),
    );
    for ((line, host), cells) in hosts.iter().zip(cells) {
        let lead = [matrix.lead_of(line), vec![host.host.clone()]].concat();
        table.push(lead, cells);
    }
    Some(table)
}

/// Returns the columns of a step, without those that only other kinds of steps have.
fn in_scope(matrix: &Matrix<'_>, step: StepHead<'_>, columns: &Columns) -> Vec<Column> {
    let mut columns = Column::all(columns);
    columns.retain(|column| {
        let metric = Metric::named(column.name);
        let is_of_all_steps = metric.is_some_and(|metric| metric.steps == StepScope::All);
        is_of_all_steps || applies(matrix, step, column.name)
    });
    columns
}

/// Returns true if any line has this metric in a step.
fn applies(matrix: &Matrix<'_>, step: StepHead<'_>, name: &str) -> bool {
    matrix.rows_of(step).any(|row| row.metric(name).is_some())
}

/// Returns a table of figures in one step, one row per line; `value` returns a figure by its name.
/// Figures that no line has are listed below instead of taking a column.
pub(crate) fn figure_table(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    heading: TableHeading<'_>,
    columns: &[Column],
    value: impl Fn(&Row, &str) -> Option<f64>,
) -> Table {
    let (lines, rows): (Vec<_>, Vec<&Row>) = matrix.lines_in(step).unzip();
    let (mut shown, absent): (Vec<_>, Vec<_>) =
        columns.iter().partition(|column| rows.iter().any(|row| value(row, column.name).is_some()));
    // A table without columns would not show how the steps of its lines ended.
    if shown.is_empty() {
        shown.extend(columns.first());
    }

    let mut table = Table::new(
        format!("{}-{}", heading.id, anchor(step.name)),
        heading.title,
        matrix.lead(),
        shown.iter().map(|column| &column.head),
    );
    table.names = explained(&shown);

    let mut footnotes = Footnotes::default();
    let cells = figure_cells(&rows, shown, value);
    for ((line, row), cells) in lines.iter().zip(&rows).zip(cells) {
        let cells = footnoted(matrix, line, row, cells, &mut footnotes);
        table.push(matrix.lead_of(line), cells);
    }
    table.notes.extend(footnotes.into_notes());

    // If no line completed the step, all figures are absent, and the cells say why.
    let is_any_complete = rows.iter().any(|row| row.status == Status::Complete);
    if !absent.is_empty() && is_any_complete {
        let names: Vec<_> = absent.iter().map(|column| column.name).collect();
        table.notes.push(format!("n/a: {}", names.join(", ")));
    }
    table
}

/// Returns the explanations of columns' names: `rps: disk reads`.
fn explained(columns: &[&Column]) -> Vec<String> {
    columns
        .iter()
        .filter(|column| !column.meaning.is_empty())
        .map(|column| {
            let head = column.head.lines().next().unwrap_or_default();
            // The unit may stand after the name.
            let (name, _) = head.split_once(',').unwrap_or((head, ""));

            format!("`{name}`: {}", column.meaning)
        })
        .collect()
}

/// Returns the cells of rows, with as many decimals in a column as its figures need.
pub(crate) fn figure_cells<'c>(
    rows: &[&Row],
    columns: impl IntoIterator<Item = &'c Column>,
    value: impl Fn(&Row, &str) -> Option<f64>,
) -> Vec<Vec<Cell>> {
    let mut cells = vec![Vec::new(); rows.len()];
    for Column { name, decimals, .. } in columns {
        let values: Vec<Option<f64>> = rows.iter().map(|row| value(row, name)).collect();
        let shown_decimals = decimals.of(values.iter().copied().flatten());

        for ((row, value), row_cells) in rows.iter().zip(values).zip(&mut cells) {
            row_cells.push(match value {
                Some(value) if lsm::is_coarse(row, name) => {
                    Cell::toned(fixed(value, shown_decimals), Tone::Coarse)
                }
                value => Cell::number(value, shown_decimals),
            });
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use analysis::figures::{Figures, StepEvents};
    use record::{CellKey, Run};

    use super::*;

    fn row(repeat: u32, flushes: Option<EventTotals>) -> Row {
        let kinds = flushes.map(|totals| ("flush".to_owned(), totals)).into_iter().collect();
        Row {
            cell: CellKey::new("r10.a", None, 1, repeat),
            step: "overwrite".to_owned(),
            status: Status::Complete,
            reported: true,
            events: Some(StepEvents { kinds, ..StepEvents::default() }),
            ..Row::default()
        }
    }

    #[test]
    fn a_repeat_without_an_event_that_others_had_has_none_of_it() {
        let flushes = EventTotals { count: 3, seconds: Some(1.5), bytes: None };
        let rows = vec![row(1, Some(flushes)), row(2, None)];
        let figures = Figures { rows, ..Figures::default() };
        let run = Run::default();
        let matrix = Matrix::new(&run, &figures);

        let table = log_events(&matrix, matrix.steps[0]).unwrap();
        let shown: Vec<Vec<&str>> = table
            .rows
            .iter()
            .map(|line| line.cells.iter().map(|cell| cell.text.as_str()).collect())
            .collect();
        assert_eq!(shown, [["3", "1.5", "n/a"], ["0", "0.0", "n/a"]]);
    }
}
