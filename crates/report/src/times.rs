//! The tables of operations in one step: what became of them, and how long they took, in buckets and in percentiles.

use analysis::{Buckets, OpFigures, Percentiles, Shade, shade_max, shade_share};
use words::Decimals;

use crate::classic::{anchor, comparable};
use crate::matrix::{Line, Matrix, StepHead};
use crate::number::{fixed, share};
use crate::operations::kinds;
use crate::table::{Cell, Table, TableRow, Tone};

/// Lines and kinds beyond which errors are counted.
const ERRORS_MAX: usize = 8;

/// Upper bounds of the buckets of [`analysis::Buckets`].
const BUCKETS: [&str; 10] = [
    "256us", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "gt",
];

/// Whether a rate was asked for this kind of operation: only then do its two times differ.
pub(crate) fn has_schedule(matrix: &Matrix<'_>, step: StepHead<'_>, kind: &str) -> bool {
    matrix
        .rows_of(step)
        .any(|row| row.ops.get(kind).is_some_and(|op| op.scheduled))
}

/// One of the two times of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Service,
    Response,
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

    fn buckets(self, op: &OpFigures) -> &Buckets {
        match self {
            Self::Service => &op.service_buckets,
            Self::Response => &op.response_buckets,
        }
    }

    /// The times of one kind of operation that differ, each with what it is called.
    fn of(matrix: &Matrix<'_>, step: StepHead<'_>, kind: &str) -> Vec<(Self, &'static str)> {
        if has_schedule(matrix, step, kind) {
            [Self::Response, Self::Service]
                .map(|time| (time, time.name()))
                .to_vec()
        } else {
            vec![(Self::Response, "both")]
        }
    }
}

/// One row per kind of operation, line and time, kinds outermost. The column that says which time it is exists where
/// a schedule makes two of them.
fn per_time(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    kinds: &[&str],
    mut cells: impl FnMut(&OpFigures, Time) -> Vec<Cell>,
) -> Table {
    let two = kinds.iter().any(|kind| has_schedule(matrix, step, kind));
    let mut table = Table {
        lead: vec!["kind".to_string()],
        ..Table::default()
    };
    table.lead.extend(matrix.lead());
    table.lead.extend(two.then(|| "time".to_string()));
    for kind in kinds {
        let times = Time::of(matrix, step, kind);
        for line in &matrix.lines {
            let Some(row) = line.row(step.name) else {
                continue;
            };
            let Some(op) = row.ops.get(*kind) else {
                continue;
            };
            for &(time, name) in &times {
                let mut cells = cells(op, time);
                if !comparable(row) {
                    cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
                    if let Some(last) = cells.last_mut() {
                        last.mark = Tone::Invalid.mark().to_string();
                    }
                }
                table.rows.push(TableRow {
                    lead: lead_of_time(matrix, line, kind, two.then_some(name)),
                    cells,
                    target: false,
                });
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

/// What the rows of a table of times are, in its title.
fn times_named(table: &Table) -> &'static str {
    if table.lead.last().is_some_and(|head| head == "time") {
        "Response and service time"
    } else {
        "Response time"
    }
}

/// (e) Shares of response times per bucket.
pub(crate) fn buckets(matrix: &Matrix<'_>, step: StepHead<'_>, kinds: &[&str]) -> Table {
    let mut table = per_time(matrix, step, kinds, |op, time| {
        let buckets = time.buckets(op);
        let total: u64 = buckets.counts.iter().sum();
        let max = if total == 0 {
            Cell::default()
        } else {
            Cell::plain(fixed(buckets.max_seconds, 3))
        };
        let shares = buckets.counts.iter().map(|count| Cell {
            share: shade_share(*count as f64 / total.max(1) as f64 * 100.0),
            ..Cell::plain(share(*count, total))
        });
        shares.chain([max]).collect()
    });
    for kind in kinds {
        for (time, name) in Time::of(matrix, step, kind) {
            shade_longest(matrix, step, kind, (time, name), &mut table);
        }
    }
    table.id = format!("buckets-{}", anchor(step.name));
    table.title = format!(
        "{}: percent of operations in each bucket; max in seconds",
        times_named(&table)
    );
    table.columns = BUCKETS
        .iter()
        .map(|bound| bound.to_string())
        .chain(["max".to_string()])
        .collect();
    table.with_legend()
}

/// Colours the column of the longest times of one sort, among lines that are compared with each other.
fn shade_longest(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    kind: &str,
    (time, name): (Time, &str),
    table: &mut Table,
) {
    let two = table.lead.last().is_some_and(|head| head == "time");
    for group in matrix.groups() {
        let lines: Vec<_> = group
            .iter()
            .filter_map(|line| {
                let row = line.row(step.name).filter(|row| comparable(row))?;
                let op = row.ops.get(kind).filter(|op| op.count > 0)?;
                let lead = lead_of_time(matrix, line, kind, two.then_some(name));
                Some((lead, Some(time.buckets(op).max_seconds)))
            })
            .collect();
        let values: Vec<_> = lines.iter().map(|(_, value)| *value).collect();
        for ((lead, _), shade) in lines.iter().zip(shade_max(&values)) {
            let row = table.rows.iter_mut().find(|row| row.lead == *lead);
            if let (true, Some(cell)) = (
                shade != Shade::None,
                row.and_then(|row| row.cells.last_mut()),
            ) {
                *cell = Cell::toned(std::mem::take(&mut cell.text), shade.into());
            }
        }
    }
}

/// (e) Percentiles of the same times.
pub(crate) fn percentiles(matrix: &Matrix<'_>, step: StepHead<'_>, kinds: &[&str]) -> Table {
    let ops = || {
        matrix
            .rows_of(step)
            .flat_map(|row| kinds.iter().filter_map(|kind| row.ops.get(*kind)))
            .filter(|op| op.count > 0)
    };
    let decimals: Vec<usize> = (0..8)
        .map(|column| {
            let both = ops().flat_map(|op| {
                [
                    op.service_us.values()[column],
                    op.response_us.values()[column],
                ]
            });
            Decimals::Microseconds.of(both)
        })
        .collect();
    let mut table = per_time(matrix, step, kinds, |op, time| {
        if op.count == 0 {
            return vec![Cell::default(); decimals.len()];
        }
        time.percentiles(op)
            .values()
            .iter()
            .zip(&decimals)
            .map(|(value, decimals)| Cell::plain(fixed(*value, *decimals)))
            .collect()
    });
    table.id = format!("percentiles-{}", anchor(step.name));
    table.title = format!("{}: percentiles in microseconds", times_named(&table));
    table.columns = ["p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "mean"]
        .map(str::to_string)
        .to_vec();
    table.with_legend()
}

/// What became of the operations that were asked for.
pub(crate) fn accounting(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let mut lead = vec!["kind".to_string()];
    lead.extend(matrix.lead());
    let mut table = Table {
        id: format!("operations-{}", anchor(step.name)),
        title: "Operations: offered = skipped + ok + failed".to_string(),
        lead,
        columns: [
            "offered",
            "skipped",
            "ok",
            "failed",
            "retried",
            "rows",
            "per_s",
            "rows_per_s",
        ]
        .map(str::to_string)
        .to_vec(),
        ..Table::default()
    };
    let mut errors = Vec::new();
    for kind in kinds(matrix, step) {
        for line in &matrix.lines {
            let Some(op) = line.row(step.name).and_then(|row| row.ops.get(kind)) else {
                continue;
            };
            let rate = |value: f64| Cell::plain(fixed(value, Decimals::Rate.of([value])));
            let counts = [
                op.offered, op.skipped, op.count, op.failed, op.retried, op.rows,
            ];
            let mut cells: Vec<Cell> = counts
                .iter()
                .map(|count| Cell::plain(count.to_string()))
                .collect();
            cells.extend([rate(op.per_second), rate(op.rows_per_second)]);
            table.rows.push(TableRow {
                lead: lead_of_time(matrix, line, kind, None),
                cells,
                target: false,
            });
            if !op.errors.is_empty() {
                let classes: Vec<_> = op
                    .errors
                    .iter()
                    .map(|(class, count)| format!("{count} {class}"))
                    .collect();
                errors.push(format!(
                    "{} {kind} {}",
                    matrix.label(line),
                    classes.join(", ")
                ));
            }
        }
    }
    if !errors.is_empty() {
        let (shown, more) = errors.split_at(errors.len().min(ERRORS_MAX));
        let more = if more.is_empty() {
            String::new()
        } else {
            format!("; and of {} more", more.len())
        };
        table.notes.push(format!(
            "errors, those of attempts that were tried again included: {}{more}",
            shown.join("; ")
        ));
    }
    table
}
