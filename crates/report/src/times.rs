//! The tables of operations in one step: their outcomes, and their latencies in buckets and
//! percentiles.

use analysis::figures::{Buckets, OpFigures, Percentiles};
use analysis::{Shade, shade_max, shade_share};
use words::Decimals;

use crate::matrix::{Line, Matrix, StepHead};
use crate::number::{fixed, rate_text, share, whole};
use crate::operations::{PERCENTILES, kinds};
use crate::table::{Cell, Table, anchor};
use crate::worth::{comparable, marked_if_invalid};

/// The maximum number of lines and kinds whose errors are listed.
const ERRORS_MAX: usize = 8;

/// The upper bounds of the buckets of [`analysis::figures::Buckets`], and the longest latency.
const BUCKETS: [&str; 11] =
    ["256\u{b5}s", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "gt", "max"];

/// Returns true if this kind of operation has a schedule: only then response and service time
/// differ.
pub(crate) fn has_schedule(matrix: &Matrix<'_>, step: StepHead<'_>, kind: &str) -> bool {
    matrix.rows_of(step).any(|row| row.ops.get(kind).is_some_and(|op| op.scheduled))
}

/// Response or service time. They are equal without a schedule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    Response,
    Service,
}

impl Time {
    fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
        }
    }

    fn percentiles(self, op: &OpFigures) -> &Percentiles {
        match self {
            Self::Service => &op.service_us,
            Self::Response => &op.response_us,
        }
    }

    pub(crate) fn buckets(self, op: &OpFigures) -> &Buckets {
        match self {
            Self::Service => &op.service_buckets,
            Self::Response => &op.response_buckets,
        }
    }

    /// Returns the curve of percentiles: number of nines, and microseconds.
    pub(crate) fn curve(self, op: &OpFigures) -> &[(f64, f64)] {
        match self {
            Self::Service => &op.service_curve,
            Self::Response => &op.response_curve,
        }
    }

    /// Returns the different times of a kind of operation, with their names.
    fn of(matrix: &Matrix<'_>, step: StepHead<'_>, kind: &str) -> Vec<(Self, &'static str)> {
        if has_schedule(matrix, step, kind) {
            [Self::Response, Self::Service].map(|time| (time, time.name())).to_vec()
        } else {
            vec![(Self::Response, "both")]
        }
    }
}

/// Returns a table with one row per kind of operation, line and time. The column of times exists
/// only if a schedule makes two of them.
fn per_time(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    (id, title): (&str, &str),
    kinds: &[&str],
    columns: &[&str],
    cells: impl Fn(&OpFigures, Time) -> Vec<Cell>,
) -> Table {
    let has_two_times = kinds.iter().any(|kind| has_schedule(matrix, step, kind));
    let mut lead = vec!["kind".to_string()];
    lead.extend(matrix.lead());
    lead.extend(has_two_times.then(|| "time".to_string()));
    let title_of_times = if has_two_times { "Response and service time" } else { "Response time" };
    let mut table = Table::new(
        format!("{id}-{}", anchor(step.name)),
        format!("{title_of_times}: {title}"),
        lead,
        columns.iter().copied(),
    );
    for kind in kinds {
        let times = Time::of(matrix, step, kind);
        for (line, row) in matrix.lines_in(step) {
            let Some(op) = row.ops.get(*kind) else {
                continue;
            };
            for &(time, name) in &times {
                let cells = cells(op, time);
                let last = cells.len() - 1;
                let lead = lead_of_time(matrix, line, kind, has_two_times.then_some(name));
                table.push(lead, marked_if_invalid(row, cells, last));
            }
        }
    }
    table
}

fn lead_of_time(
    matrix: &Matrix<'_>,
    line: &Line<'_>,
    kind: &str,
    time: Option<&str>,
) -> Vec<String> {
    let mut lead = vec![kind.to_string()];
    lead.extend(matrix.lead_of(line));
    lead.extend(time.map(str::to_string));
    lead
}

/// Returns the shares of response times per bucket.
pub(crate) fn buckets(matrix: &Matrix<'_>, step: StepHead<'_>, kinds: &[&str]) -> Table {
    let title = "percent of operations in each bucket; max in seconds";
    let mut table = per_time(matrix, step, ("buckets", title), kinds, &BUCKETS, |op, time| {
        let buckets = time.buckets(op);
        let total: u64 = buckets.counts.iter().sum();
        let shares = buckets.counts.iter().map(|count| Cell {
            share: shade_share(*count as f64 / total.max(1) as f64 * 100.0),
            ..Cell::plain(share(*count, total))
        });
        let max = Cell::plain(match total {
            0 => String::new(),
            _ => fixed(buckets.max_seconds, 3),
        });
        shares.chain([max]).collect()
    });
    for kind in kinds {
        for (time, name) in Time::of(matrix, step, kind) {
            shade_longest(matrix, step, kind, (time, name), &mut table);
        }
    }
    table
}

/// Colors the longest latencies of one kind, among lines that are compared with each other.
fn shade_longest(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    kind: &str,
    (time, name): (Time, &str),
    table: &mut Table,
) {
    let has_two_times = table.lead.last().is_some_and(|head| head == "time");
    for group in matrix.groups() {
        let lines: Vec<_> = group
            .iter()
            .filter_map(|line| {
                let row = line.row(step.name).filter(|row| comparable(row))?;
                let op = row.ops.get(kind).filter(|op| op.count > 0)?;
                let lead = lead_of_time(matrix, line, kind, has_two_times.then_some(name));
                Some((lead, Some(time.buckets(op).max_seconds)))
            })
            .collect();
        let values: Vec<_> = lines.iter().map(|(_, value)| *value).collect();
        for ((lead, _), shade) in lines.iter().zip(shade_max(&values)) {
            let row = table.rows.iter_mut().find(|row| row.lead == *lead);
            if let (true, Some(cell)) =
                (shade != Shade::None, row.and_then(|row| row.cells.last_mut()))
            {
                *cell = Cell::toned(std::mem::take(&mut cell.text), shade.into());
            }
        }
    }
}

/// Returns percentiles of the same times.
pub(crate) fn percentiles(matrix: &Matrix<'_>, step: StepHead<'_>, kinds: &[&str]) -> Table {
    let ops = || {
        let ops =
            matrix.rows_of(step).flat_map(|row| kinds.iter().filter_map(|kind| row.ops.get(*kind)));
        ops.filter(|op| op.count > 0)
    };
    let decimals: [usize; PERCENTILES.len()] = std::array::from_fn(|column| {
        let both = ops().flat_map(|op| [&op.service_us, &op.response_us]);
        Decimals::Microseconds.of(both.map(|times| times.values()[column]))
    });
    let id_and_title = ("percentiles", "percentiles in microseconds");
    per_time(matrix, step, id_and_title, kinds, &PERCENTILES, |op, time| {
        if op.count == 0 {
            return vec![Cell::default(); decimals.len()];
        }
        let values = time.percentiles(op).values().into_iter().zip(decimals);
        values.map(|(value, decimals)| Cell::plain(fixed(value, decimals))).collect()
    })
}

/// A column: its head and its cell.
type Head = (&'static str, fn(&OpFigures) -> String);

/// The outcomes of operations.
const ACCOUNTS: [Head; 8] = [
    ("offered", |op| whole(op.offered)),
    ("skipped", |op| whole(op.skipped)),
    ("ok", |op| whole(op.count)),
    ("failed", |op| whole(op.failed)),
    ("retried", |op| whole(op.retried)),
    ("rows", |op| whole(op.rows)),
    ("per_s", |op| rate_text(op.per_second)),
    ("rows_per_s", |op| rate_text(op.rows_per_second)),
];

/// Returns the outcomes of operations.
pub(crate) fn accounting(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let mut lead = vec!["kind".to_string()];
    lead.extend(matrix.lead());
    let mut table = Table::new(
        format!("operations-{}", anchor(step.name)),
        "Operations: offered = skipped + ok + failed",
        lead,
        ACCOUNTS.map(|(head, _)| head),
    );
    let mut errors = Vec::new();
    for kind in kinds(matrix, step) {
        for (line, row) in matrix.lines_in(step) {
            let Some(op) = row.ops.get(kind) else {
                continue;
            };
            let cells = ACCOUNTS.map(|(_, text)| Cell::plain(text(op)));
            table.push(lead_of_time(matrix, line, kind, None), cells.into());
            let classes = op.errors.iter();
            let classes: Vec<_> =
                classes.map(|(class, count)| format!("{count} {class}")).collect();
            if !classes.is_empty() {
                let label = matrix.label(line);
                errors.push(format!("{label} {kind} {}", classes.join(", ")));
            }
        }
    }
    if !errors.is_empty() {
        let (shown, more) = errors.split_at(errors.len().min(ERRORS_MAX));
        let more = match more.len() {
            0 => String::new(),
            count => format!("; and {count} more"),
        };
        table.notes.push(format!(
            "errors, including those of retried attempts: {}{more}",
            shown.join("; ")
        ));
    }
    table
}
