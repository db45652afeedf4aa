//! The tables of how even steps were: the spread of their seconds, stalls and shifts with
//! simultaneous events, the seconds with the requested rate, when each client ended, and the debt
//! that steps left.

use analysis::{
    ConcurrentChange, LISTED_MAX, Pending, Quality, Row, SHIFT_SECONDS_MIN, STALL_SHARE,
    SettleWork, Shift, Sla, SlaHistory, Stall, counted,
};
use words::Decimals;

use crate::matrix::{Matrix, StepHead};
use crate::metrics::{Column, figure_table};
use crate::number::{fixed, rate_text};
use crate::operations::{step_head, time_of, unit};
use crate::table::{Cell, Table, Tone, anchor};
use crate::times::has_schedule;
use crate::worth::{comparable, marked_if_invalid};

/// Bytes in a megabyte, as metrics count them.
const MIB: f64 = 1_048_576.0;

/// The maximum number of stalls or shifts in one table. Each line has an equal share, at least one.
const LISTED_TOGETHER: usize = 24;

/// The maximum number of clients whose ends are listed.
const CLIENTS_MAX: usize = 16;

/// A figure of how even a step was: its name, head, decimals and value.
type Figure = (&'static str, &'static str, Decimals, fn(&Quality) -> Option<f64>);

/// The spread of the seconds.
const SPREAD: [Figure; 11] = {
    use Decimals::{One, Rate, Whole};
    [
        ("median", "median\n/s", Rate, |it| Some(it.median)),
        ("worst_second", "worst\nsecond\n/s", Rate, |it| Some(it.worst_second)),
        ("p1_of_median%", "p1 of\nmedian\n%", One, |it| percent(it.p1_of_median)),
        ("thickness%", "thickness\n%", One, |it| percent(it.thickness)),
        ("cv%", "cv\n%", One, |it| percent(it.cv)),
        ("zero_s", "zero\ns", Whole, |it| count(it.zero_seconds)),
        ("below_half_s", "below\nhalf\ns", Whole, |it| count(it.below_half_median_seconds)),
        ("stalls", "stalls", Whole, |it| it.longest_stall_seconds.and(count(it.stall_count))),
        ("stalled_s", "stalled\ns", Whole, |it| count(it.stalled_seconds?)),
        ("longest_stall_s", "longest\nstall\ns", Whole, |it| count(it.longest_stall_seconds?)),
        ("shifts", "shifts", Whole, |it| {
            count(it.shift_count).filter(|_| it.seconds >= SHIFT_SECONDS_MIN)
        }),
    ]
};

/// The share of the step in which the engine stalled writes.
const HELD_UP: Figure = ("stall%", "stall%\n%", Decimals::One, |it| it.stalled_pct);

/// The second of the longest response time.
const MAX_AT: Figure =
    ("max_at_s", "max in\nsecond", Decimals::Whole, |it| count(it.worst_response.as_ref()?.second));

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
    let qualities = || {
        let rows = matrix.rows_of(step);
        rows.filter_map(|row| row.quality.as_ref())
    };
    if qualities().next().is_none() {
        return Table::default();
    }
    let column = |(name, head, decimals, _): Figure| Column::from((name, head, decimals));
    let mut columns: Vec<Column> = SPREAD.map(column).into();
    // Most engines don't report how long they stalled writes.
    let has_stalls = qualities().any(|quality| quality.stalled_pct.is_some());
    columns.extend(has_stalls.then(|| column(HELD_UP)));
    let is_scheduled = step.main_op.is_some_and(|kind| has_schedule(matrix, step, kind));
    for (response, _, head) in TIMES {
        let head = format!("{head}\n\u{b5}s");
        columns.push(Column::from((response, head.as_str(), Decimals::Microseconds)));
    }
    columns.push(column(MAX_AT));
    for (_, service, head) in TIMES.iter().filter(|_| is_scheduled) {
        let head = format!("service\n{head}\n\u{b5}s");
        columns.push(Column::from((*service, head.as_str(), Decimals::Microseconds)));
    }
    let times = if is_scheduled { "response and service times" } else { "response times" };
    let title = format!("Quality of service: {} of each second, and {times}", unit(step));
    figure_table(matrix, step, ("quality", &title), &columns, figure)
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
    match figures.find(|(known, ..)| *known == name) {
        Some((.., of)) => of(quality),
        None => time_of(row.ops.get(&quality.kind)?, name),
    }
}

/// A column: its head and its cell.
type Head<T> = (&'static str, fn(&T) -> Cell);

const STALLS: [Head<Stall>; 4] = [
    ("from\nsecond", |it| Cell::plain(it.from_second.to_string())),
    ("length\ns", |it| Cell::plain(it.seconds.to_string())),
    ("lowest\n/s", |it| rate(it.lowest)),
    ("longest\nresponse, s", |it| seconds_of(it.response_us_max)),
];

const SHIFTS: [Head<Shift>; 4] = [
    ("second", |it| Cell::plain(it.second.to_string())),
    ("before", |it| rate(it.before)),
    ("after", |it| rate(it.after)),
    ("after /\nbefore", |it| Cell::number((it.before > 0.0).then(|| it.after / it.before), 2)),
];

/// A column of the table of the requested rate: its head and its cell.
type RateHead = (&'static str, fn(&Sla, &SlaHistory) -> Cell);

/// The columns of the table of the requested rate.
const HISTORY: [RateHead; 9] = [
    ("requested\n/s", |sla, _| rate(sla.target)),
    ("met in\n% of s", |_, it| Cell::plain(fixed(it.met_pct, 1))),
    ("missed\ns", |_, it| Cell::plain((it.seconds - it.met_seconds).to_string())),
    ("first\nmissed", |_, it| second(it.first_missed_second)),
    ("longest\nmiss, s", |_, it| Cell::plain(it.longest_miss_seconds.to_string())),
    ("from\nsecond", |_, it| second(it.longest_miss_from)),
    ("worst\nsecond, /s", |_, it| rate(it.worst_second)),
    ("longest\nresponse, s", |_, it| seconds_of(it.worst_response.as_ref().map(|worst| worst.us))),
    ("in\nsecond", |_, it| second(it.worst_response.as_ref().map(|worst| worst.second))),
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
    columns: &'static [Head<T>],
    /// Returns the recorded events, and the number of all events.
    of: fn(&Quality) -> (&[T], usize),
    /// Returns the size of an event.
    size: fn(&T) -> f64,
    /// Returns the second in which an event began, and the changes at the same time.
    begin: fn(&T) -> (usize, &[ConcurrentChange]),
    largest: &'static str,
    noun: &'static str,
}

impl<T> Events<T> {
    /// Lists the largest events, with what changed at the same time.
    fn table(&self, matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
        let with = matrix.lines_in(step).filter_map(|(line, row)| {
            let (events, count) = (self.of)(row.quality.as_ref()?);
            (!events.is_empty()).then_some((line, row, events, count))
        });
        let with: Vec<_> = with.collect();
        let most = listed_each(with.len());
        let heads = self.columns.iter().map(|(head, _)| *head);
        let mut table = list(matrix, step, (self.id, &self.title), heads);
        for (line, row, events, count) in with {
            let label = matrix.label(line);
            let shown = worst(events, most, self.size);
            if shown.len() < count {
                let swings = match self.noun {
                    "shift" if count > LISTED_MAX => {
                        ": the rate oscillates rather than changing its level"
                    }
                    _ => "",
                };
                table.notes.push(format!(
                    "{label}: the {} {} of {}{swings}",
                    self.largest,
                    shown.len(),
                    counted(count, self.noun)
                ));
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
}

/// Returns a table without rows.
fn list(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    (id, title): (&str, &str),
    heads: impl IntoIterator<Item = &'static str>,
) -> Table {
    let id = format!("{id}-{}", anchor(step.name));
    Table::new(id, title, matrix.lead(), heads)
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
    let changes: Vec<String> = changed
        .iter()
        .map(|one| {
            let times = match one.ratio {
                Some(ratio) if ratio >= 0.01 => format!(" (x{})", fixed(ratio, 2)),
                _ => String::new(),
            };
            format!(
                "`{}` {}, otherwise {}{times}",
                one.name,
                amount(one.during, &one.unit),
                amount(one.otherwise, &one.unit)
            )
        })
        .collect();
    (!changes.is_empty()).then(|| format!("{place}: {}", changes.join("; ")))
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
    let title = "Requested rate of writes, second by second";
    let mut table = list(matrix, step, ("rate-history", title), HISTORY.map(|(head, _)| head));
    for (line, row) in matrix.lines_in(step) {
        let Some(sla) = &row.sla else { continue };
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
    let fairness = || {
        let lines = matrix.lines_in(step);
        lines.filter_map(|(line, row)| Some((line, row, row.fairness.as_ref()?)))
    };
    let clients = fairness().map(|(.., fairness)| fairness.clients.len());
    let clients = clients.max().unwrap_or(0);
    if clients == 0 {
        return Table::default();
    }
    let listed = if clients <= CLIENTS_MAX { clients } else { 0 };
    let heads = ["first\ns", "first\nis", "last\ns", "last\nis", "apart\npct"];
    let heads = heads.map(str::to_string).into_iter();
    let mut table = Table::new(
        format!("ends-{}", anchor(step.name)),
        "Clients: when the first, the last and each client ended, in seconds",
        matrix.lead(),
        heads.chain((0..listed).map(|client| format!("client\n{client}"))),
    );
    for (line, row, fairness) in fairness() {
        let mut cells = vec![
            Cell::plain(fixed(fairness.fastest_seconds, 1)),
            Cell::plain(fairness.fastest_client.to_string()),
            Cell::plain(fixed(fairness.slowest_seconds, 1)),
            Cell::plain(fairness.slowest_client.to_string()),
            Cell::plain(fixed(fairness.pct, 1)),
        ];
        cells.extend((0..listed).map(|client| {
            let mut ends = fairness.clients.iter();
            let end = ends.find(|end| end.client as usize == client);
            end.map_or_else(Cell::not_run, |end| Cell::plain(fixed(end.seconds, 1)))
        }));
        table.push(matrix.lead_of(line), marked_if_invalid(row, cells, 0));
    }
    table
}

/// Returns the pending work of all tables before settling.
fn pending(settled: &SettleWork, name: &str) -> Option<f64> {
    let is_of_table = |one: &&Pending| {
        let rest = one.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let values = settled.pending.iter().filter(is_of_table);
    let values: Vec<f64> = values.filter_map(|one| one.before).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

/// Returns the first of these kinds of pending work before settling, in megabytes.
fn pending_mb(row: &Row, names: [&str; 2]) -> Option<f64> {
    let settled = row.settled.as_ref()?;
    let bytes = names.iter().find_map(|name| pending(settled, name))?;
    Some(bytes / MIB)
}

/// A debt: its name, its decimals and its value.
type Debt = (&'static str, usize, fn(&Row) -> Option<f64>);

/// The debts of [`debt`] in their order.
const DEBTS: [Debt; 11] = [
    ("settling, s", 1, |row| Some(row.settled.as_ref()?.seconds)),
    ("written by settling, MB", 1, |row| Some(row.settled.as_ref()?.written_bytes? / MIB)),
    ("log before settling, MB", 1, |row| {
        pending_mb(row, ["wal_since_checkpoint_bytes", "wal_file_bytes"])
    }),
    ("memtables before settling, MB", 1, |row| {
        pending_mb(row, ["memtable_bytes", "rocksdb_memtable_bytes"])
    }),
    ("dirty pages before settling", 0, |row| pending(row.settled.as_ref()?, "dirty_page_count")),
    ("dead rows", 0, |row| row.metric("debt_dead_rows")),
    ("history list", 0, |row| row.metric("debt_history_list")),
    ("dirty, MB", 1, |row| row.metric("debt_dirty_mb")),
    ("redo, MB", 1, |row| row.metric("debt_redo_mb")),
    ("compaction, MB", 1, |row| row.metric("debt_compaction_mb")),
    ("log not replayed, MB", 1, |row| row.metric("debt_replica_mb")),
];

/// Returns the debt that each step left and the cost of settling, one row for each kind; empty if
/// no step was settled. Omits steps of groups, which are too many.
pub(crate) fn debt(matrix: &Matrix<'_>) -> Table {
    let steps = matrix.steps.iter().copied();
    let steps: Vec<StepHead<'_>> = steps.filter(|step| step.group.is_none()).collect();
    let rows = || steps.iter().flat_map(|step| matrix.rows_of(*step));
    if !rows().any(|row| row.settled.is_some()) {
        return Table::default();
    }
    let is_owed = |(.., of): &&Debt| rows().any(|row| of(row).is_some_and(|owed| owed > 0.0));
    let debts: Vec<&Debt> = DEBTS.iter().filter(is_owed).collect();
    let mut table = Table::new(
        "debt",
        "Debt that each step left at its end, and the cost of settling",
        matrix.lead(),
        steps.iter().map(|step| step_head(step.name)),
    );
    table.lead.push("debt".to_string());
    for line in &matrix.lines {
        for (name, decimals, of) in &debts {
            let cell = |step: &StepHead<'_>| {
                let row = line.row(step.name)?;
                let text = fixed(of(row)?, *decimals);
                Some(if comparable(row) {
                    Cell::plain(text)
                } else {
                    Cell::toned(text, Tone::Invalid)
                })
            };
            let cells = steps.iter().map(|step| cell(step).unwrap_or_else(Cell::not_run));
            let cells: Vec<Cell> = cells.collect();
            if cells.iter().any(|cell| cell.tone != Tone::Absent) {
                let mut lead = matrix.lead_of(line);
                lead.push(name.to_string());
                table.push(lead, cells);
            }
        }
    }
    table
}
