//! The tables of how even steps were: the spread of their seconds, stalls and shifts with
//! simultaneous events, the seconds with the requested rate, when each client ended, and the debt
//! that steps left.

use analysis::{
    counted,
    figures::{
        ConcurrentChange, Fairness, LISTED_MAX, Quality, Row, SHIFT_SECONDS_MIN, STALL_SHARE,
        Shift, Sla, SlaHistory, Stall,
    },
};
use words::{Decimals, Role};

use crate::model::matrix::{CellLine, Matrix, StepHead};
use crate::model::number::{fixed, rate_text};
use crate::model::operations::{step_head, time_of, unit};
use crate::model::table::{Cell, Table, TableHeading, Tone, anchor};
use crate::model::worth::{comparable, marked_if_invalid};
use crate::tables::metrics::{Column, figure_table};
use crate::tables::times::has_schedule;

/// Bytes in a megabyte, as metrics count them.
const MIB: f64 = 1_048_576.0;

/// The maximum number of stalls or shifts in one table. Each line has an equal share, at least one.
const LISTED_TOGETHER: usize = 24;

/// The maximum number of clients whose ends are listed.
const CLIENTS_MAX: usize = 16;

/// A figure of how even a step was.
#[derive(Clone, Copy)]
struct QualityFigure {
    name: &'static str,
    head: &'static str,
    decimals: Decimals,
    value: fn(&Quality) -> Option<f64>,
}

const fn quality_figure(
    name: &'static str,
    head: &'static str,
    decimals: Decimals,
    value: fn(&Quality) -> Option<f64>,
) -> QualityFigure {
    QualityFigure { name, head, decimals, value }
}

/// The spread of the seconds.
const SPREAD: [QualityFigure; 11] = {
    use Decimals::{One, Rate, Whole};
    use quality_figure as figure;
    [
        figure("median", "median\n/s", Rate, |quality| Some(quality.median)),
        figure("worst_second", "worst\nsecond\n/s", Rate, |quality| Some(quality.worst_second)),
        figure("p1_of_median%", "p1 of\nmedian\n%", One, |quality| percent(quality.p1_of_median)),
        figure("thickness%", "thickness\n%", One, |quality| percent(quality.thickness)),
        figure("cv%", "cv\n%", One, |quality| percent(quality.cv)),
        figure("zero_s", "zero\ns", Whole, |quality| count(quality.zero_seconds)),
        figure("below_half_s", "below\nhalf\ns", Whole, |quality| {
            count(quality.below_half_median_seconds)
        }),
        figure("stalls", "stalls", Whole, |quality| {
            quality.longest_stall_seconds.and(count(quality.stall_count))
        }),
        figure("stalled_s", "stalled\ns", Whole, |quality| count(quality.stalled_seconds?)),
        figure("longest_stall_s", "longest\nstall\ns", Whole, |quality| {
            count(quality.longest_stall_seconds?)
        }),
        figure("shifts", "shifts", Whole, |quality| {
            count(quality.shift_count).filter(|_| quality.seconds >= SHIFT_SECONDS_MIN)
        }),
    ]
};

/// The share of the step in which the engine stalled writes.
const HELD_UP: QualityFigure =
    quality_figure("stall%", "stall%\n%", Decimals::One, |quality| quality.stalled_pct);

/// The second of the longest response time.
const MAX_AT: QualityFigure =
    quality_figure("max_at_s", "max in\nsecond", Decimals::Whole, |quality| {
        count(quality.worst_response.as_ref()?.second)
    });

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

fn count(count: usize) -> Option<f64> {
    Some(count as f64)
}

/// The response and service times of the main operation, with their heads.
const TIMES: [(&str, &str, &str); 5] = [
    ("response_us_p50", "service_us_p50", "p50"),
    ("response_us_p99", "service_us_p99", "p99"),
    ("response_us_p99.9", "service_us_p99.9", "p99.9"),
    ("response_us_p99.99", "service_us_p99.99", "p99.99"),
    ("response_us_max", "service_us_max", "max"),
];

/// Returns all tables of a step, the spread first.
pub(crate) fn tables(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let mut tables = details(matrix, step);
    tables.insert(0, spread(matrix, step));
    tables
}

/// Returns the spread of the seconds; empty if no line has any.
pub(crate) fn spread(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let qualities = || matrix.rows_of(step).filter_map(|row| row.quality.as_ref());
    if qualities().next().is_none() {
        return Table::default();
    }

    let column = |figure: QualityFigure| Column::plain(figure.name, figure.head, figure.decimals);
    let time = |name: &'static str, head: String| Column::plain(name, head, Decimals::Microseconds);

    let mut columns: Vec<Column> = SPREAD.map(column).into();

    // Most engines don't report how long they stalled writes.
    if qualities().any(|quality| quality.stalled_pct.is_some()) {
        columns.push(column(HELD_UP));
    }

    columns.extend(TIMES.map(|(response, _, head)| time(response, format!("{head}\n\u{b5}s"))));
    columns.push(column(MAX_AT));

    // Without a schedule, service times are equal to response times.
    let is_scheduled = step.main_op.is_some_and(|main| has_schedule(matrix, step, main.kind));
    if is_scheduled {
        let service_head = |head: &str| format!("service\n{head}\n\u{b5}s");
        columns.extend(TIMES.map(|(_, service, head)| time(service, service_head(head))));
    }

    let times = if is_scheduled { "response and service times" } else { "response times" };
    let title = format!("Quality of service: {} of each second, and {times}", unit(step));
    let heading = TableHeading { id: "quality", title: &title };
    figure_table(matrix, step, heading, &columns, figure)
}

/// Returns the tables of single seconds, of clients, and of the requested rate.
pub(crate) fn details(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let stalls = Events {
        id: "stalls",
        title: format!(
            "Stalls: consecutive seconds with less than {}% of the usual rate",
            fixed(100.0 * STALL_SHARE, 0)
        ),
        columns: &STALLS,
        of: |quality| (&quality.stalls, quality.stall_count),
        size: |stall| stall.seconds as f64,
        begin: |stall| (stall.from_second, &stall.concurrent_changes),
        largest: "longest",
        noun: "stall",
    };

    let shifts = Events {
        id: "shifts",
        title: format!("Shifts: seconds at which the level changed, {}", unit(step)),
        columns: &SHIFTS,
        of: |quality| (&quality.shifts, quality.shift_count),
        size: |shift| (shift.after - shift.before).abs(),
        begin: |shift| (shift.second, &shift.concurrent_changes),
        largest: "largest",
        noun: "shift",
    };

    vec![
        stalls.table(matrix, step),
        shifts.table(matrix, step),
        history(matrix, step),
        ends(matrix, step),
    ]
}

/// Returns a figure of the table of spread by its name.
fn figure(row: &Row, name: &str) -> Option<f64> {
    let quality = row.quality.as_ref()?;
    let mut figures = SPREAD.iter().chain([&HELD_UP, &MAX_AT]);
    match figures.find(|figure| figure.name == name) {
        Some(figure) => (figure.value)(quality),
        None => time_of(row.ops.get(&quality.kind)?, name),
    }
}

/// A column: its head and its cell.
type EventColumn<T> = (&'static str, fn(&T) -> Cell);

const STALLS: [EventColumn<Stall>; 4] = [
    ("from\nsecond", |stall| Cell::plain(stall.from_second.to_string())),
    ("length\ns", |stall| Cell::plain(stall.seconds.to_string())),
    ("lowest\n/s", |stall| rate(stall.lowest)),
    ("longest\nresponse, s", |stall| seconds_of(stall.response_us_max)),
];

const SHIFTS: [EventColumn<Shift>; 4] = [
    ("second", |shift| Cell::plain(shift.second.to_string())),
    ("before", |shift| rate(shift.before)),
    ("after", |shift| rate(shift.after)),
    ("after /\nbefore", |shift| {
        Cell::number((shift.before > 0.0).then(|| shift.after / shift.before), 2)
    }),
];

/// A column of the table of the requested rate: its head and its cell.
type RateHead = (&'static str, fn(&Sla, &SlaHistory) -> Cell);

/// The columns of the table of the requested rate.
const HISTORY: [RateHead; 9] = [
    ("requested\n/s", |sla, _| rate(sla.target)),
    ("met in\n% of s", |_, history| Cell::plain(fixed(history.met_pct, 1))),
    ("missed\ns", |_, history| Cell::plain((history.seconds - history.met_seconds).to_string())),
    ("first\nmissed", |_, history| second(history.first_missed_second)),
    ("longest\nmiss, s", |_, history| Cell::plain(history.longest_miss_seconds.to_string())),
    ("from\nsecond", |_, history| second(history.longest_miss_from)),
    ("worst\nsecond, /s", |_, history| rate(history.worst_second)),
    ("longest\nresponse, s", |_, history| {
        seconds_of(history.worst_response.as_ref().map(|worst| worst.us))
    }),
    ("in\nsecond", |_, history| second(history.worst_response.as_ref().map(|worst| worst.second))),
];

fn rate(value: f64) -> Cell {
    Cell::plain(rate_text(value))
}

fn second(second: Option<usize>) -> Cell {
    second.map_or_else(Cell::not_run, |second| Cell::plain(second.to_string()))
}

fn seconds_of(us: Option<f64>) -> Cell {
    Cell::number(us.map(|us| us / 1e6), 3)
}

/// A kind of event in single seconds: stalls or shifts.
struct Events<T: 'static> {
    id: &'static str,
    title: String,
    columns: &'static [EventColumn<T>],
    /// Returns the recorded events, and the number of all events.
    of: fn(&Quality) -> (&[T], usize),
    /// Returns the size of an event.
    size: fn(&T) -> f64,
    /// Returns the second in which an event began, and the changes at the same time.
    begin: fn(&T) -> (usize, &[ConcurrentChange]),
    largest: &'static str,
    noun: &'static str,
}

/// The events of a line.
struct LineEvents<'m, T> {
    line: &'m CellLine<'m>,
    row: &'m Row,
    events: &'m [T],
    /// The number of all events.
    count: usize,
}

impl<T> Events<T> {
    /// Lists the largest events, with what changed at the same time.
    fn table(&self, matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
        let lines: Vec<LineEvents<'_, T>> = matrix
            .lines_in(step)
            .filter_map(|(line, row)| {
                let (events, count) = (self.of)(row.quality.as_ref()?);
                (!events.is_empty()).then_some(LineEvents { line, row, events, count })
            })
            .collect();
        let most = listed_each(lines.len());

        let heads = self.columns.iter().map(|(head, _)| *head);
        let heading = TableHeading { id: self.id, title: &self.title };
        let mut table = empty_table(matrix, step, heading, heads);
        for LineEvents { line, row, events, count } in lines {
            let label = matrix.label(line);
            let shown = worst(events, most, self.size);
            if shown.len() < count {
                table.notes.push(self.omission(&label, shown.len(), count));
            }
            for event in shown {
                let cells = self.columns.iter().map(|(_, cell)| cell(event)).collect();
                table.push(matrix.lead_of(line), marked_if_invalid(row, cells, 0));

                let (second, changed) = (self.begin)(event);
                let place = format!("{label} second {second}");
                table.notes.extend(simultaneous(&place, changed));
            }
        }
        table
    }

    /// Returns the note that only some of a line's events are listed.
    fn omission(&self, label: &str, shown: usize, count: usize) -> String {
        let oscillates = self.noun == "shift" && count > LISTED_MAX;
        let remark =
            if oscillates { ": the rate oscillates rather than changing its level" } else { "" };
        format!("{label}: the {} {shown} of {}{remark}", self.largest, counted(count, self.noun))
    }
}

/// Returns a table of a step without rows.
fn empty_table(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    heading: TableHeading<'_>,
    heads: impl IntoIterator<Item = &'static str>,
) -> Table {
    let id = format!("{}-{}", heading.id, anchor(step.name));
    Table::new(id, heading.title, matrix.lead(), heads)
}

/// Returns the number of events that each line may list.
fn listed_each(lines: usize) -> usize {
    (LISTED_TOGETHER / lines.max(1)).clamp(1, LISTED_MAX)
}

/// Returns the worst items in their original order.
fn worst<T>(all: &[T], most: usize, badness: impl Fn(&T) -> f64) -> Vec<&T> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| badness(&all[b]).total_cmp(&badness(&all[a])));
    order.truncate(most);
    order.sort_unstable();
    order.into_iter().map(|index| &all[index]).collect()
}

/// Returns the changes at the same time as a stall or a shift; `None` if there are none.
fn simultaneous(place: &str, changed: &[ConcurrentChange]) -> Option<String> {
    if changed.is_empty() {
        return None;
    }
    let changes: Vec<String> = changed
        .iter()
        .map(|change| {
            // Smaller ratios would all be `x0.00`.
            let times = match change.ratio {
                Some(ratio) if ratio >= 0.01 => format!(" (x{})", fixed(ratio, 2)),
                _ => String::new(),
            };
            format!(
                "`{}` {}, otherwise {}{times}",
                change.name,
                amount(change.during, &change.unit),
                amount(change.otherwise, &change.unit)
            )
        })
        .collect();

    Some(format!("{place}: {}", changes.join("; ")))
}

/// Formats a value in a readable unit.
fn amount(value: f64, unit: &str) -> String {
    let (value, unit) = match unit {
        "bytes" => (value / MIB, "MB"),
        "bytes/s" => (value / MIB, "MB/s"),
        "ns" => (value / 1e6, "ms"),
        "ns/s" => (value / 1e6, "ms/s"),
        "us" => (value / 1e3, "ms"),
        "us/s" => (value / 1e3, "ms/s"),
        unit => (value, unit),
    };

    let decimals = match value.abs() {
        0.0 => 0,
        size if size >= 100.0 => 0,
        size if size >= 1.0 => 1,
        _ => 3,
    };

    let gap = if unit.is_empty() || unit.starts_with('/') { "" } else { " " };
    format!("{}{gap}{unit}", fixed(value, decimals))
}

/// Returns the seconds in which the requested rate was reached and missed.
fn history(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let heading = TableHeading { id: "rate-history", title: "Requested rate, second by second" };
    let mut table = empty_table(matrix, step, heading, HISTORY.map(|(head, _)| head));

    for (line, row) in matrix.lines_in(step) {
        let Some(sla) = &row.sla else {
            continue;
        };
        let Some(history) = &sla.history else {
            continue;
        };

        let cells = HISTORY.map(|(_, cell)| cell(sla, history));
        table.push(matrix.lead_of(line), marked_if_invalid(row, cells.into(), 0));
    }

    table
}

/// Returns the time at which each client ended; empty if unknown.
fn ends(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let most_clients = matrix
        .rows_of(step)
        .filter_map(|row| row.fairness.as_ref())
        .map(|fairness| fairness.clients.len())
        .max()
        .unwrap_or(0);
    if most_clients == 0 {
        return Table::default();
    }

    let listed = if most_clients <= CLIENTS_MAX { most_clients } else { 0 };
    let heads = ["first\ns", "first\nis", "last\ns", "last\nis", "apart\npct"];
    let client_heads = (0..listed).map(|client| format!("client\n{client}"));
    let mut table = Table::new(
        format!("ends-{}", anchor(step.name)),
        "Clients: when the first, the last and each client ended, in seconds",
        matrix.lead(),
        heads.map(str::to_string).into_iter().chain(client_heads),
    );

    for (line, row) in matrix.lines_in(step) {
        if let Some(fairness) = &row.fairness {
            let cells = ends_cells(fairness, listed);
            table.push(matrix.lead_of(line), marked_if_invalid(row, cells, 0));
        }
    }

    table
}

fn ends_cells(fairness: &Fairness, listed: usize) -> Vec<Cell> {
    let mut cells = vec![
        Cell::plain(fixed(fairness.fastest_seconds, 1)),
        Cell::plain(fairness.fastest_client.to_string()),
        Cell::plain(fixed(fairness.slowest_seconds, 1)),
        Cell::plain(fairness.slowest_client.to_string()),
        Cell::plain(fixed(fairness.pct, 1)),
    ];

    for client in 0..listed {
        let end = fairness.clients.iter().find(|end| end.client as usize == client);
        cells.push(match end {
            Some(end) => Cell::plain(fixed(end.seconds, 1)),
            None => Cell::not_run(),
        });
    }
    cells
}

/// Returns the pending work of a role before settling.
fn pending(row: &Row, role: Role) -> Option<f64> {
    let of_role = row.settled.as_ref()?.pending.iter().filter(|work| work.role == Some(role));
    of_role.filter_map(|work| work.before).reduce(|sum, more| sum + more)
}

/// Returns the first of these kinds of pending work before settling, in megabytes.
fn pending_mb(row: &Row, roles: &[Role]) -> Option<f64> {
    let bytes = roles.iter().find_map(|role| pending(row, *role))?;
    Some(bytes / MIB)
}

/// Work that a step leaves to later steps.
struct Debt {
    /// The name, with the unit.
    name: &'static str,
    decimals: usize,
    value: fn(&Row) -> Option<f64>,
}

const fn debt_of(name: &'static str, decimals: usize, value: fn(&Row) -> Option<f64>) -> Debt {
    Debt { name, decimals, value }
}

/// The debts of [`debt`] in their order.
const DEBTS: [Debt; 11] = [
    debt_of("settling, s", 1, |row| Some(row.settled.as_ref()?.seconds)),
    debt_of("written by settling, MB", 1, |row| Some(row.settled.as_ref()?.written_bytes? / MIB)),
    debt_of("log before settling, MB", 1, |row| {
        pending_mb(row, &[Role::CheckpointAgeBytes, Role::LogFileBytes])
    }),
    debt_of("memtables before settling, MB", 1, |row| pending_mb(row, &[Role::MemtableBytes])),
    debt_of("dirty pages before settling", 0, |row| pending(row, Role::DirtyPageCount)),
    debt_of("dead rows", 0, |row| row.metric("debt_dead_rows")),
    debt_of("history list", 0, |row| row.metric("debt_history_list")),
    debt_of("dirty, MB", 1, |row| row.metric("debt_dirty_mb")),
    debt_of("redo, MB", 1, |row| row.metric("debt_redo_mb")),
    debt_of("compaction, MB", 1, |row| row.metric("debt_compaction_mb")),
    debt_of("log not replayed, MB", 1, |row| row.metric("debt_replica_mb")),
];

/// Returns the debt that each step left and the cost of settling, one row for each kind; empty if
/// no step was settled. Omits steps of groups, which are too many.
pub(crate) fn debt(matrix: &Matrix<'_>) -> Table {
    let steps: Vec<StepHead<'_>> =
        matrix.steps.iter().copied().filter(|step| step.group.is_none()).collect();
    let rows: Vec<&Row> = steps.iter().flat_map(|step| matrix.rows_of(*step)).collect();
    if rows.iter().all(|row| row.settled.is_none()) {
        return Table::default();
    }

    let mut table = Table::new(
        "debt",
        "Debt that each step left at its end, and the cost of settling",
        matrix.lead(),
        steps.iter().map(|step| step_head(step.name)),
    );
    table.lead.push("debt".to_string());

    // A kind of debt that no step left takes no row.
    let owed: Vec<&Debt> = DEBTS
        .iter()
        .filter(|debt| rows.iter().filter_map(|row| (debt.value)(row)).any(|value| value > 0.0))
        .collect();

    for line in &matrix.lines {
        for debt in &owed {
            let cells: Vec<Cell> = steps.iter().map(|step| debt.cell(line, *step)).collect();
            if cells.iter().any(|cell| cell.tone != Tone::Absent) {
                let mut lead = matrix.lead_of(line);
                lead.push(debt.name.to_string());
                table.push(lead, cells);
            }
        }
    }
    table
}

impl Debt {
    fn cell(&self, line: &CellLine<'_>, step: StepHead<'_>) -> Cell {
        let Some(row) = line.row(step.name) else {
            return Cell::not_run();
        };
        let Some(owed) = (self.value)(row) else {
            return Cell::not_run();
        };
        let tone = if comparable(row) { Tone::Plain } else { Tone::Invalid };
        Cell::toned(fixed(owed, self.decimals), tone)
    }
}
