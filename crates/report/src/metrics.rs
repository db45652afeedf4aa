//! The tables of metrics in one step, one row per line: the common metrics, what an operation
//! costs, and the engine's background work.

use std::collections::BTreeMap;

use analysis::{ClientHostFigures, Row};
use record::Status;
use words::metric::{
    CLIENT_HOST, COSTS, Columns, IOSTAT, LSM_STATE, METRICS, NETWORK, PUBLISHED_COUNT, Section,
    StepScope, VMSTAT,
};
use words::{Decimals, Metric, WaitView};

use crate::lsm;
use crate::matrix::{Matrix, StepHead};
use crate::number::fixed;
use crate::operations::noun;
use crate::plans;
use crate::sizes;
use crate::table::{Cell, Table, Tone, anchor};
use crate::worth::{Footnotes, footnoted};

/// A column of a table of figures.
pub(crate) struct Column {
    /// The figure's name.
    pub name: &'static str,
    /// The head of the column.
    pub head: String,
    pub decimals: Decimals,
    /// The explanation of the name, if the name needs one.
    pub meaning: &'static str,
}

impl From<(&'static str, &str, Decimals)> for Column {
    fn from((name, head, decimals): (&'static str, &str, Decimals)) -> Self {
        let head = head.to_owned();
        Self { name, head, decimals, meaning: "" }
    }
}

impl Column {
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

/// Returns the unit of a metric; empty for a plain number.
pub(crate) fn unit(metric: &str) -> &'static str {
    Metric::named(metric).map_or("", |metric| metric.unit)
}

/// Returns the metrics of published summaries in one step, a line for each target.
pub(crate) fn metrics(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let published = METRICS[..PUBLISHED_COUNT].iter();
    let columns = published.map(|metric| Column::new(metric, metric.column_heading()));
    let title = format!("Metrics; an operation is one {}", noun(step));
    figure_table(matrix, step, ("metrics", &title), &columns.collect::<Vec<_>>(), Row::metric)
}

/// Returns the parts of an operation's time in one step, for the connections that execute it. Empty
/// if nothing was measured.
pub(crate) fn time(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let title = format!("Where the time of a {} goes", noun(step));
    of_section(matrix, step, Section::Time, ("time", &title))
}

/// Returns how far replicas lag in one step, how long they take to catch up, and their cost. Empty
/// without replicas.
pub(crate) fn replication(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let title = "Replication lag, and the time to catch up after the step";
    of_section(matrix, step, Section::Replication, ("replication", title))
}

/// Returns the metrics of a section that some target has in one step.
fn of_section(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    section: Section,
    heading: (&str, &str),
) -> Table {
    let metrics = METRICS.iter().filter(|it| it.section == section);
    let columns: Vec<Column> = metrics
        .filter(|metric| applies(matrix, step, metric.name))
        .map(|metric| Column::new(metric, metric.column_heading()))
        .collect();
    figure_table(matrix, step, heading, &columns, Row::metric)
}

/// Returns the costs of an operation in one step, the users of the CPU, and the client's cost of
/// each kind of row.
pub(crate) fn costs(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let mut columns = Column::all(COSTS);
    columns.retain(|column| {
        let is_of_all = Metric::named(column.name).is_some_and(|it| it.steps == StepScope::All);
        is_of_all || applies(matrix, step, column.name)
    });
    let title = format!("Cost per {}; host includes client and server", noun(step));
    figure_table(matrix, step, ("costs", &title), &columns, Row::metric)
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
        .filter(|metric| sections.contains(&metric.section) && is_shown(metric))
        .map(column)
        .collect();
    let title = "Durability, write amplification, and debt at the end of the step";
    figure_table(matrix, step, ("upkeep", title), &columns, Row::metric)
}

/// Returns the figures that iostat and vmstat would print in one step, for the devices of the data
/// and for all processors, the traffic with other hosts, and the use of client hosts. Empty if no
/// host was sampled.
pub(crate) fn of_host(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let of = [
        (IOSTAT, "iostat", "Input and output of the devices of the data"),
        (VMSTAT, "vmstat", "Context switches, and percent of all processors"),
        (NETWORK, "network", "Network traffic with other hosts"),
    ];
    let is_shown = |columns: &Columns| {
        let mut names = columns.iter().map(|(name, _)| name);
        names.any(|name| applies(matrix, step, name))
    };
    of.into_iter()
        .filter(|(columns, ..)| is_shown(columns))
        .map(|(columns, id, title)| {
            let columns = Column::all(columns);
            figure_table(matrix, step, (id, title), &columns, Row::metric)
        })
        .chain(all_waits(matrix, step))
        .chain(log_events(matrix, step))
        .chain(sizes::indexes(matrix, step))
        .chain(plans::plans(matrix, step))
        .chain(client_hosts(matrix, step))
        .collect()
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
        for state in row.waits(view).iter().flat_map(|it| &it.states) {
            *percent.entry(&state.name).or_default() += state.percent;
        }
    }
    let mut states: Vec<(&str, f64)> = percent.into_iter().collect();
    states.sort_by(|a, b| b.1.total_cmp(&a.1));
    states.iter().map(|(name, _)| *name).take(STATES).collect()
}

fn all_waits(matrix: &Matrix<'_>, step: StepHead<'_>) -> impl Iterator<Item = Table> {
    let views = WaitView::ALL.into_iter();
    views.filter_map(move |view| waits(matrix, step, view))
}

/// Returns what the load's sessions or the engine's threads waited for in one step. `None` where
/// the view applies to no target.
fn waits(matrix: &Matrix<'_>, step: StepHead<'_>, view: WaitView) -> Option<Table> {
    let states = frequent_states(matrix, step, view);
    if states.is_empty() {
        return None;
    }
    let mut table = Table::new(
        match view {
            WaitView::Engine => format!("waits-{}", anchor(step.name)),
            _ => format!("{}-waits-{}", view.name(), anchor(step.name)),
        },
        title_of_waits(view),
        matrix.lead(),
        states.iter().map(|name| name.replacen([':', ' '], "\n", 2)),
    );
    table.across = true;
    for (line, row) in matrix.lines_in(step) {
        let waits = row.waits(view);
        let cell = |name: &&str| {
            let Some(waits) = waits else {
                return Cell::not_applicable();
            };
            let mut known = waits.states.iter();
            let state = known.find(|state| state.name == **name);
            Cell::number(Some(state.map_or(0.0, |it| it.percent)), 1)
        };
        table.push(matrix.lead_of(line), states.iter().map(cell).collect());
    }
    Some(table)
}

/// Returns the events of the engines' logs in one step. `None` where no log has one.
fn log_events(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let lines = matrix.lines_in(step);
    let lines: Vec<_> = lines
        .flat_map(|(line, row)| {
            let kinds = row.events.iter().flat_map(|it| &it.kinds);
            kinds.map(move |kind| (line, kind))
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    let mut table = Table::new(
        format!("log-events-{}", anchor(step.name)),
        "Events of the engine's log",
        [matrix.lead(), vec!["event".to_owned()]].concat(),
        ["count", "seconds", "MB written"],
    );
    for (line, (kind, totals)) in lines {
        let lead = [matrix.lead_of(line), vec![kind.clone()]].concat();
        let cells = vec![
            Cell::number(Some(totals.count as f64), 0),
            Cell::number(totals.seconds, 1),
            Cell::number(totals.bytes.map(|bytes| bytes / 1e6), 1),
        ];
        table.push(lead, cells);
    }
    Some(table)
}

/// Returns the use of client hosts in one step, a line for each target and host. `None` without
/// client hosts.
fn client_hosts(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let hosts = matrix.lines_in(step).flat_map(|(line, row)| {
        let hosts = row.client_hosts.iter();
        hosts.map(move |host| (line, host))
    });
    let hosts: Vec<_> = hosts.collect();
    if hosts.is_empty() {
        return None;
    }
    let columns = [CLIENT_HOST, NETWORK].map(Column::all);
    let columns: Vec<Column> = columns.into_iter().flatten().collect();
    let mut table = Table::new(
        format!("client-hosts-{}", anchor(step.name)),
        "Client hosts",
        [matrix.lead(), vec!["client host".to_owned()]].concat(),
        columns.iter().map(|column| &column.head),
    );
    let mut lines = vec![Vec::new(); hosts.len()];
    for column in &columns {
        let value = |host: &ClientHostFigures| host.metrics.get(column.name).copied().flatten();
        let values: Vec<Option<f64>> = hosts.iter().map(|(_, host)| value(host)).collect();
        let decimals = column.decimals.of(values.iter().copied().flatten());
        for (cells, value) in lines.iter_mut().zip(values) {
            cells.push(Cell::number(value, decimals));
        }
    }
    for ((line, host), cells) in hosts.iter().zip(lines) {
        let lead = [matrix.lead_of(line), vec![host.host.clone()]].concat();
        table.push(lead, cells);
    }
    Some(table)
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
    (id, title): (&str, &str),
    columns: &[Column],
    value: impl Fn(&Row, &str) -> Option<f64>,
) -> Table {
    let (lines, rows): (Vec<_>, Vec<&Row>) = matrix.lines_in(step).unzip();
    let is_shown = |column: &&Column| {
        let mut rows = rows.iter();
        rows.any(|row| value(row, column.name).is_some())
    };
    let (mut shown, absent): (Vec<_>, Vec<_>) = columns.iter().partition(is_shown);
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

/// Returns the cells of rows, with as many decimals in a column as its figures need.
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
