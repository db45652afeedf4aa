//! The tables of how evenly steps went: the spread of their seconds, stalls and shifts with what happened beside them,
//! the seconds in which a rate of writes was had, when each client ended, and the debt that steps left.

use analysis::{
    LISTED_MAX, Moved, Pending, Quality, Row, SHIFT_SECONDS_MIN, STALL_SHARE, Settled, counted,
};
use words::Decimals;

use crate::classic::{anchor, comparable};
use crate::matrix::{Line, Matrix, StepHead};
use crate::metrics::{Column, figure_table};
use crate::number::fixed;
use crate::operations::{step_head, unit};
use crate::table::{Cell, Table, TableRow, Tone};
use crate::times::has_schedule;

/// Bytes in a megabyte, as the metrics count them.
const MIB: f64 = 1_048_576.0;

/// Stalls, and shifts, that one table lists together; each line has as many of them as every other, and at least one.
const LISTED_TOGETHER: usize = 24;

/// Clients beyond which their ends are not told one by one.
const CLIENTS_MAX: usize = 16;

/// The spread of the seconds: the figure, its head and its decimals.
const SPREAD: [(&str, &str, Decimals); 11] = [
    ("median", "median\n/s", Decimals::Rate),
    ("worst_second", "worst\nsecond\n/s", Decimals::Rate),
    ("p1_of_median%", "p1 of\nmedian\n%", Decimals::One),
    ("thickness%", "thickness\n%", Decimals::One),
    ("cv%", "cv\n%", Decimals::One),
    ("zero_s", "zero\ns", Decimals::Whole),
    ("below_half_s", "below\nhalf\ns", Decimals::Whole),
    ("stalls", "stalls", Decimals::Whole),
    ("stalled_s", "stalled\ns", Decimals::Whole),
    ("longest_stall_s", "longest\nstall\ns", Decimals::Whole),
    ("shifts", "shifts", Decimals::Whole),
];

/// The response and service times of the main operation that say how even it was, and their head.
const TIMES: [(&str, &str, &str); 5] = [
    ("response_us_p50", "service_us_p50", "p50"),
    ("response_us_p99", "service_us_p99", "p99"),
    ("response_us_p99.9", "service_us_p99.9", "p99.9"),
    ("response_us_p99.99", "service_us_p99.99", "p99.99"),
    ("response_us_max", "service_us_max", "max"),
];

/// Everything of one step, the spread first.
pub(crate) fn tables(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    spread(matrix, step)
        .into_iter()
        .chain(details(matrix, step))
        .collect()
}

/// The spread of the seconds side by side; `None` where no line has any.
pub(crate) fn spread(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    if !matrix.rows_of(step).any(|row| row.quality.is_some()) {
        return None;
    }
    let column = |(name, head, decimals): (&'static str, &str, Decimals)| Column {
        name,
        head: head.to_owned(),
        decimals,
    };
    let mut columns: Vec<Column> = SPREAD.map(column).into();
    // Most engines don't tell how long they held writes up.
    let tells = |row: &Row| row.quality.as_ref()?.stalled_pct;
    if matrix.rows_of(step).any(|row| tells(row).is_some()) {
        columns.push(column(("stall%", "stall%\n%", Decimals::One)));
    }
    let is_scheduled = step
        .main_op
        .is_some_and(|kind| has_schedule(matrix, step, kind));
    for (response, _, head) in TIMES {
        let head = format!("{head}\nus");
        columns.push(column((response, &head, Decimals::Microseconds)));
    }
    columns.push(column(("max_at_s", "max in\nsecond", Decimals::Whole)));
    for (_, service, head) in TIMES.iter().filter(|_| is_scheduled) {
        let head = format!("service\n{head}\nus");
        columns.push(column((service, &head, Decimals::Microseconds)));
    }
    let mut table = figure_table(matrix, step, &columns, figure);
    table.id = format!("quality-{}", anchor(step.name));
    table.title = format!(
        "Quality of service: {} of each second, {}",
        unit(step),
        if is_scheduled {
            "and response and service times"
        } else {
            "and response times"
        }
    );
    Some(table)
}

/// What is told of single seconds, of clients, and of the rate of writes.
pub(crate) fn details(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    [
        stalls(matrix, step),
        shifts(matrix, step),
        history(matrix, step),
        ends(matrix, step),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A figure of the table of spread by its name.
fn figure(row: &Row, name: &str) -> Option<f64> {
    let quality = row.quality.as_ref()?;
    let percent = |share: Option<f64>| share.map(|share| 100.0 * share);
    let count = |count: usize| Some(count as f64);
    let of_times = || {
        let op = row.ops.get(&quality.kind).filter(|op| op.count > 0)?;
        let (times, which) = match name.strip_prefix("service_us_") {
            Some(which) => (&op.service_us, which),
            None => (&op.response_us, name.strip_prefix("response_us_")?),
        };
        Some(match which {
            "p50" => times.p50,
            "p99" => times.p99,
            "p99.9" => times.p99_9,
            "p99.99" => times.p99_99,
            _ => times.max,
        })
    };
    match name {
        "median" => Some(quality.median),
        "worst_second" => Some(quality.worst_second),
        "p1_of_median%" => percent(quality.p1_of_median),
        "thickness%" => percent(quality.thickness),
        "cv%" => percent(quality.cv),
        "zero_s" => count(quality.zero_seconds),
        "below_half_s" => count(quality.below_half_median_seconds),
        "stalls" => quality
            .longest_stall_seconds
            .and(count(quality.stall_count)),
        "stalled_s" => count(quality.stalled_seconds?),
        "longest_stall_s" => count(quality.longest_stall_seconds?),
        "shifts" if quality.seconds >= SHIFT_SECONDS_MIN => count(quality.shift_count),
        "shifts" => None,
        "stall%" => quality.stalled_pct,
        "max_at_s" => count(quality.worst_response.as_ref()?.second),
        _ => of_times(),
    }
}

/// The lines that did a step and were looked at second by second.
fn qualities<'m, 'a>(
    matrix: &'m Matrix<'a>,
    step: StepHead<'a>,
) -> impl Iterator<Item = (&'m Line<'a>, &'a Row, &'a Quality)> {
    matrix.lines.iter().filter_map(move |line| {
        let row = line.row(step.name)?;
        Some((line, row, row.quality.as_ref()?))
    })
}

/// How many each line may list where so many have any.
fn listed_each(lines: usize) -> usize {
    (LISTED_TOGETHER / lines.max(1)).clamp(1, LISTED_MAX)
}

/// The worst of some, in the order in which they are.
fn worst<T>(all: &[T], most: usize, badness: impl Fn(&T) -> f64) -> Vec<&T> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| badness(&all[b]).total_cmp(&badness(&all[a])));
    order.truncate(most);
    order.sort_unstable();
    order.into_iter().map(|index| &all[index]).collect()
}

/// A row of a list, grey where it can't be stood behind.
fn listed(matrix: &Matrix<'_>, line: &Line<'_>, row: &Row, mut cells: Vec<Cell>) -> TableRow {
    if !comparable(row) {
        cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
        if let Some(first) = cells.first_mut() {
            first.mark = Tone::Invalid.mark().to_string();
        }
    }
    TableRow {
        lead: matrix.lead_of(line),
        cells,
        target: false,
    }
}

fn rate(value: f64) -> Cell {
    Cell::plain(fixed(value, Decimals::Rate.of([value])))
}

fn seconds_of(us: Option<f64>) -> Cell {
    us.map_or_else(Cell::not_applicable, |us| Cell::plain(fixed(us / 1e6, 3)))
}

fn stalls(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let with: Vec<_> = qualities(matrix, step)
        .filter(|(_, _, quality)| !quality.stalls.is_empty())
        .collect();
    let most = listed_each(with.len());
    let mut table = Table {
        id: format!("stalls-{}", anchor(step.name)),
        title: format!(
            "Stalls: consecutive seconds with less than {}% of the usual rate",
            fixed(100.0 * STALL_SHARE, 0)
        ),
        lead: matrix.lead(),
        columns: [
            "from\nsecond",
            "length\ns",
            "lowest\n/s",
            "longest\nresponse, s",
        ]
        .map(str::to_string)
        .to_vec(),
        ..Table::default()
    };
    for (line, row, quality) in &with {
        let label = matrix.label(line);
        let shown = worst(&quality.stalls, most, |stall| stall.seconds as f64);
        if shown.len() < quality.stall_count {
            table.notes.push(format!(
                "{label}: the longest {} of {}",
                shown.len(),
                counted(quality.stall_count, "stall")
            ));
        }
        for stall in shown {
            let cells = vec![
                Cell::plain(stall.from_second.to_string()),
                Cell::plain(stall.seconds.to_string()),
                rate(stall.lowest),
                seconds_of(stall.response_us_max),
            ];
            table.rows.push(listed(matrix, line, row, cells));
            let place = format!("{label} second {}", stall.from_second);
            table.notes.extend(beside(&place, &stall.beside));
        }
    }
    (!table.rows.is_empty()).then(|| table.with_legend())
}

fn shifts(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let with: Vec<_> = qualities(matrix, step)
        .filter(|(_, _, quality)| !quality.shifts.is_empty())
        .collect();
    let most = listed_each(with.len());
    let mut table = Table {
        id: format!("shifts-{}", anchor(step.name)),
        title: format!("Shifts: seconds at which the level changed, {}", unit(step)),
        lead: matrix.lead(),
        columns: ["second", "before", "after", "after /\nbefore"]
            .map(str::to_string)
            .to_vec(),
        ..Table::default()
    };
    for (line, row, quality) in &with {
        let label = matrix.label(line);
        let change = |before: f64, after: f64| (after - before).abs();
        let shown = worst(&quality.shifts, most, |shift| {
            change(shift.before, shift.after)
        });
        if shown.len() < quality.shift_count {
            let swings = if quality.shift_count > LISTED_MAX {
                ": the rate swings rather than changes its level"
            } else {
                ""
            };
            table.notes.push(format!(
                "{label}: the largest {} of {}{swings}",
                shown.len(),
                counted(quality.shift_count, "shift")
            ));
        }
        for shift in shown {
            let ratio = (shift.before > 0.0).then(|| shift.after / shift.before);
            let cells = vec![
                Cell::plain(shift.second.to_string()),
                rate(shift.before),
                rate(shift.after),
                ratio.map_or_else(Cell::not_applicable, |ratio| Cell::plain(fixed(ratio, 2))),
            ];
            table.rows.push(listed(matrix, line, row, cells));
            let place = format!("{label} second {}", shift.second);
            table.notes.extend(beside(&place, &shift.beside));
        }
    }
    (!table.rows.is_empty()).then(|| table.with_legend())
}

/// What moved beside a stall or a shift; `None` where nothing did.
fn beside(place: &str, moved: &[Moved]) -> Option<String> {
    let told: Vec<String> = moved
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
    (!told.is_empty()).then(|| format!("{place}: {}", told.join("; ")))
}

/// A value in the unit in which people read it.
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
    let gap = if unit.is_empty() || unit.starts_with('/') {
        ""
    } else {
        " "
    };
    format!("{}{gap}{unit}", fixed(value, decimals))
}

/// In which seconds the rate of writes was had.
fn history(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let mut table = Table {
        id: format!("rate-history-{}", anchor(step.name)),
        title: "Rate of writes, second by second: where it was had".to_string(),
        lead: matrix.lead(),
        columns: [
            "asked\n/s",
            "had in\n% of s",
            "missed\ns",
            "first\nmissed",
            "longest\nmiss, s",
            "from\nsecond",
            "worst\nsecond, /s",
            "longest\nresponse, s",
            "in\nsecond",
        ]
        .map(str::to_string)
        .to_vec(),
        ..Table::default()
    };
    for line in &matrix.lines {
        let Some((row, sla)) = line
            .row(step.name)
            .and_then(|row| Some((row, row.sla.as_ref()?)))
        else {
            continue;
        };
        let Some(history) = &sla.history else {
            continue;
        };
        let second = |second: Option<usize>| {
            second.map_or_else(Cell::not_run, |second| Cell::plain(second.to_string()))
        };
        let worst = history.worst_response.as_ref();
        let cells = vec![
            rate(sla.target),
            Cell::plain(fixed(history.met_pct, 1)),
            Cell::plain((history.seconds - history.met_seconds).to_string()),
            second(history.first_missed_second),
            Cell::plain(history.longest_miss_seconds.to_string()),
            second(history.longest_miss_from),
            rate(history.worst_second),
            seconds_of(worst.map(|worst| worst.us)),
            second(worst.map(|worst| worst.second)),
        ];
        table.rows.push(listed(matrix, line, row, cells));
    }
    (!table.rows.is_empty()).then(|| table.with_legend())
}

/// When each client had done its work.
fn ends(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let of = |line: &Line<'_>| line.row(step.name)?.fairness.clone();
    let clients = matrix.lines.iter().filter_map(of);
    let clients = clients.map(|fairness| fairness.clients.len()).max()?;
    if clients == 0 {
        return None;
    }
    let told = if clients <= CLIENTS_MAX { clients } else { 0 };
    let mut table = Table {
        id: format!("ends-{}", anchor(step.name)),
        title: "Clients: when the first and the last had done their work, and each, in seconds"
            .to_string(),
        lead: matrix.lead(),
        columns: ["first\ns", "first\nis", "last\ns", "last\nis", "apart\npct"]
            .map(str::to_string)
            .to_vec(),
        ..Table::default()
    };
    table
        .columns
        .extend((0..told).map(|client| format!("client\n{client}")));
    for line in &matrix.lines {
        let Some(row) = line.row(step.name) else {
            continue;
        };
        let Some(fairness) = &row.fairness else {
            continue;
        };
        let mut cells = vec![
            Cell::plain(fixed(fairness.fastest_seconds, 1)),
            Cell::plain(fairness.fastest_client.to_string()),
            Cell::plain(fixed(fairness.slowest_seconds, 1)),
            Cell::plain(fairness.slowest_client.to_string()),
            Cell::plain(fixed(fairness.pct, 1)),
        ];
        cells.extend((0..told).map(|client| {
            let end = fairness
                .clients
                .iter()
                .find(|end| end.client as usize == client);
            end.map_or_else(Cell::not_run, |end| Cell::plain(fixed(end.seconds, 1)))
        }));
        table.rows.push(listed(matrix, line, row, cells));
    }
    (!table.rows.is_empty()).then(|| table.with_legend())
}

/// What a debt is called, and where it is had.
struct Debt {
    name: &'static str,
    decimals: usize,
    of: fn(&Row) -> Option<f64>,
}

/// What was pending before settling began, of all tables.
fn pending(settled: &Settled, name: &str) -> Option<f64> {
    let is_of_table = |one: &&Pending| {
        let rest = one.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let values = settled.pending.iter().filter(is_of_table);
    let values: Vec<f64> = values.filter_map(|one| one.before).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

/// The debts of [`debt`] in their order.
const DEBTS: [Debt; 10] = [
    Debt {
        name: "settling, s",
        decimals: 1,
        of: |row| Some(row.settled.as_ref()?.seconds),
    },
    Debt {
        name: "written by it, MB",
        decimals: 1,
        of: |row| Some(row.settled.as_ref()?.written_bytes? / MIB),
    },
    Debt {
        name: "log before it, MB",
        decimals: 1,
        of: |row| {
            let settled = row.settled.as_ref()?;
            let log = pending(settled, "wal_since_checkpoint_bytes")
                .or_else(|| pending(settled, "wal_file_bytes"))?;
            Some(log / MIB)
        },
    },
    Debt {
        name: "memtables before it, MB",
        decimals: 1,
        of: |row| {
            let settled = row.settled.as_ref()?;
            let memtables = pending(settled, "memtable_bytes")
                .or_else(|| pending(settled, "rocksdb_memtable_bytes"))?;
            Some(memtables / MIB)
        },
    },
    Debt {
        name: "dirty pages before it",
        decimals: 0,
        of: |row| pending(row.settled.as_ref()?, "dirty_page_count"),
    },
    Debt {
        name: "dead rows",
        decimals: 0,
        of: |row| row.metric("debt_dead_rows"),
    },
    Debt {
        name: "history list",
        decimals: 0,
        of: |row| row.metric("debt_history_list"),
    },
    Debt {
        name: "dirty, MB",
        decimals: 1,
        of: |row| row.metric("debt_dirty_mb"),
    },
    Debt {
        name: "redo, MB",
        decimals: 1,
        of: |row| row.metric("debt_redo_mb"),
    },
    Debt {
        name: "compaction, MB",
        decimals: 1,
        of: |row| row.metric("debt_compaction_mb"),
    },
];

/// The debt that each step left, and what settling took, a row for each sort of it; `None` where no step was settled.
/// Steps that belong to groups of their benchmark are left out: there are too many of them.
pub(crate) fn debt(matrix: &Matrix<'_>) -> Option<Table> {
    let steps: Vec<StepHead<'_>> = matrix
        .steps
        .iter()
        .copied()
        .filter(|step| step.group.is_none())
        .collect();
    let rows = || steps.iter().flat_map(|step| matrix.rows_of(*step));
    if !rows().any(|row| row.settled.is_some()) {
        return None;
    }
    let is_owed = |debt: &&Debt| rows().any(|row| (debt.of)(row).is_some_and(|owed| owed > 0.0));
    let debts: Vec<&Debt> = DEBTS.iter().filter(is_owed).collect();
    let mut table = Table {
        id: "debt".to_string(),
        title: "Debt that each step left when it had ended, and what settling took".to_string(),
        lead: matrix.lead(),
        columns: steps.iter().map(|step| step_head(step.name)).collect(),
        ..Table::default()
    };
    table.lead.push("debt".to_string());
    for line in &matrix.lines {
        for debt in &debts {
            let cells: Vec<Cell> = steps
                .iter()
                .map(
                    |step| match line.row(step.name).map(|row| (row, (debt.of)(row))) {
                        Some((row, Some(owed))) if comparable(row) => {
                            Cell::plain(fixed(owed, debt.decimals))
                        }
                        Some((_, Some(owed))) => {
                            Cell::toned(fixed(owed, debt.decimals), Tone::Invalid)
                        }
                        _ => Cell::not_run(),
                    },
                )
                .collect();
            if cells.iter().all(|cell| cell.tone == Tone::Absent) {
                continue;
            }
            let mut lead = matrix.lead_of(line);
            lead.push(debt.name.to_string());
            table.rows.push(TableRow {
                lead,
                cells,
                target: false,
            });
        }
    }
    (!table.rows.is_empty()).then(|| table.with_legend())
}
