//! The tables of operations in one step: their outcomes, and their latencies in buckets and
//! percentiles.

use analysis::{
    Shade,
    figures::{Buckets, OpFigures, Percentiles},
    shade_max, shade_share,
};
use words::Decimals;

use crate::model::matrix::{CellLine, Matrix, StepHead};
use crate::model::number::{fixed, rate_text, share, whole};
use crate::model::operations::kinds;
use crate::model::table::{Cell, Table, TableHeading, anchor};
use crate::model::worth::{comparable, marked_if_invalid};

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

    /// Returns the statistics of [`Percentiles::NAMES`]. `None`: there were too few operations.
    fn statistics(self, op: &OpFigures) -> [Option<f64>; Percentiles::NAMES.len()] {
        let times = match self {
            Self::Service => &op.service_us,
            Self::Response => &op.response_us,
        };
        Percentiles::NAMES.map(|name| times.of_operations(name, op.count))
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
}

/// A time with the name by which a row calls it.
#[derive(Clone, Copy)]
struct NamedTime {
    time: Time,
    name: &'static str,
}

impl NamedTime {
    /// Returns the different times of a kind of operation.
    fn all(matrix: &Matrix<'_>, step: StepHead<'_>, kind: &str) -> Vec<Self> {
        if !has_schedule(matrix, step, kind) {
            return vec![Self { time: Time::Response, name: "both" }];
        }
        [Time::Response, Time::Service].map(|time| Self { time, name: time.name() }).to_vec()
    }
}

/// A table with one row per kind of operation, line and time. The column of times exists only if a
/// schedule makes two of them.
struct TimeTable<'a> {
    matrix: &'a Matrix<'a>,
    step: StepHead<'a>,
    kinds: &'a [&'a str],
    has_two_times: bool,
}

impl<'a> TimeTable<'a> {
    fn of(matrix: &'a Matrix<'a>, step: StepHead<'a>, kinds: &'a [&'a str]) -> Self {
        let has_two_times = kinds.iter().any(|kind| has_schedule(matrix, step, kind));
        Self { matrix, step, kinds, has_two_times }
    }

    fn table(
        &self,
        heading: TableHeading<'_>,
        columns: &[&str],
        cells: impl Fn(&OpFigures, Time) -> Vec<Cell>,
    ) -> Table {
        let mut lead = vec!["kind".to_string()];
        lead.extend(self.matrix.lead());
        lead.extend(self.has_two_times.then(|| "time".to_string()));

        let times = if self.has_two_times { "Response and service time" } else { "Response time" };

        let mut table = Table::new(
            format!("{}-{}", heading.id, anchor(self.step.name)),
            format!("{times}: {}", heading.title),
            lead,
            columns.iter().copied(),
        );

        for kind in self.kinds {
            let times = NamedTime::all(self.matrix, self.step, kind);
            for (line, row) in self.matrix.lines_in(self.step) {
                let Some(op) = row.ops.get(*kind) else {
                    continue;
                };

                for &time in &times {
                    let cells = cells(op, time.time);
                    let last = cells.len() - 1;
                    let lead = self.lead_of(line, kind, time);
                    table.push(lead, marked_if_invalid(row, cells, last));
                }
            }
        }
        table
    }

    fn lead_of(&self, line: &CellLine<'_>, kind: &str, time: NamedTime) -> Vec<String> {
        let mut lead = lead_of_kind(self.matrix, line, kind);
        lead.extend(self.has_two_times.then(|| time.name.to_string()));
        lead
    }

    /// Colors the longest latencies of one kind, among lines that are compared with each other.
    fn shade_longest(&self, kind: &str, time: NamedTime, table: &mut Table) {
        for group in self.matrix.groups() {
            let mut leads: Vec<Vec<String>> = Vec::new();
            let mut longest: Vec<Option<f64>> = Vec::new();
            for line in group {
                let row = line.row(self.step.name).filter(|row| comparable(row));
                let op = row.and_then(|row| row.ops.get(kind)).filter(|op| op.count > 0);
                if let Some(op) = op {
                    leads.push(self.lead_of(line, kind, time));
                    longest.push(Some(time.time.buckets(op).max_seconds));
                }
            }

            for (lead, shade) in leads.iter().zip(shade_max(&longest)) {
                let row = table.rows.iter_mut().find(|row| row.lead == *lead);
                if let Some(cell) = row.and_then(|row| row.cells.last_mut())
                    && shade != Shade::None
                {
                    *cell = Cell::toned(std::mem::take(&mut cell.text), shade.into());
                }
            }
        }
    }
}

/// Returns the texts on the left of a kind's row.
fn lead_of_kind(matrix: &Matrix<'_>, line: &CellLine<'_>, kind: &str) -> Vec<String> {
    let mut lead = vec![kind.to_string()];
    lead.extend(matrix.lead_of(line));
    lead
}

/// Returns the shares of response times per bucket.
pub(crate) fn buckets(matrix: &Matrix<'_>, step: StepHead<'_>, kinds: &[&str]) -> Table {
    let of_times = TimeTable::of(matrix, step, kinds);
    let heading = TableHeading {
        id: "buckets",
        title: "percent of operations in each bucket; max in seconds",
    };
    let mut table = of_times.table(heading, &BUCKETS, |op, time| bucket_cells(time.buckets(op)));

    for kind in kinds {
        for time in NamedTime::all(matrix, step, kind) {
            of_times.shade_longest(kind, time, &mut table);
        }
    }
    table
}

fn bucket_cells(buckets: &Buckets) -> Vec<Cell> {
    let total: u64 = buckets.counts.iter().sum();
    let mut cells: Vec<Cell> = buckets
        .counts
        .iter()
        .map(|count| Cell {
            share: shade_share(*count as f64 / total.max(1) as f64 * 100.0),
            ..Cell::plain(share(*count, total))
        })
        .collect();

    let longest = if total == 0 { String::new() } else { fixed(buckets.max_seconds, 3) };
    cells.push(Cell::plain(longest));
    cells
}

/// Returns percentiles of the same times, as far as there were enough operations for them.
pub(crate) fn percentiles(matrix: &Matrix<'_>, step: StepHead<'_>, kinds: &[&str]) -> Table {
    let mut all = Vec::new();
    for row in matrix.rows_of(step) {
        let ops = kinds.iter().filter_map(|kind| row.ops.get(*kind));
        all.extend(
            ops.flat_map(|op| [Time::Service, Time::Response].map(|time| time.statistics(op))),
        );
    }

    // All rows of a column have the same decimals.
    let decimals: [usize; Percentiles::NAMES.len()] = std::array::from_fn(|column| {
        Decimals::Microseconds.of(all.iter().filter_map(|statistics| statistics[column]))
    });

    let heading = TableHeading { id: "percentiles", title: "percentiles in microseconds" };
    TimeTable::of(matrix, step, kinds).table(heading, &Percentiles::NAMES, |op, time| {
        if op.count == 0 {
            return vec![Cell::default(); decimals.len()];
        }

        let statistics = time.statistics(op).into_iter().zip(decimals);
        statistics.map(|(value, decimals)| Cell::number(value, decimals)).collect()
    })
}

/// A column of the outcomes of operations.
struct OutcomeColumn {
    head: &'static str,
    text: fn(&OpFigures) -> String,
}

/// The column of rollbacks, where an operation has some.
const ROLLED_BACK: OutcomeColumn =
    OutcomeColumn { head: "rolled back", text: |op| whole(op.rolled_back) };

const OUTCOMES: [OutcomeColumn; 8] = [
    OutcomeColumn { head: "offered", text: |op| whole(op.offered) },
    OutcomeColumn { head: "skipped", text: |op| whole(op.skipped) },
    OutcomeColumn { head: "ok", text: |op| whole(op.count) },
    OutcomeColumn { head: "failed", text: |op| whole(op.failed) },
    OutcomeColumn { head: "retried", text: |op| whole(op.retried) },
    OutcomeColumn { head: "rows", text: |op| whole(op.rows) },
    OutcomeColumn { head: "per_s", text: |op| rate_text(op.per_second) },
    OutcomeColumn { head: "rows_per_s", text: |op| rate_text(op.rows_per_second) },
];

/// Returns the outcomes of operations.
pub(crate) fn accounting(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let mut lead = vec!["kind".to_string()];
    lead.extend(matrix.lead());

    let mut columns: Vec<&OutcomeColumn> = OUTCOMES.iter().collect();
    let rolls_back = |op: &OpFigures| op.rolled_back > 0;
    if matrix.lines_in(step).any(|(_, row)| row.ops.values().any(rolls_back)) {
        let after_ok = columns.iter().position(|column| column.head == "failed");
        columns.insert(after_ok.unwrap_or(0), &ROLLED_BACK);
    }

    let mut table = Table::new(
        format!("operations-{}", anchor(step.name)),
        "Operations: offered = skipped + ok + failed",
        lead,
        columns.iter().map(|column| column.head),
    );

    let mut errors = Vec::new();
    for kind in kinds(matrix, step) {
        for (line, row) in matrix.lines_in(step) {
            let Some(op) = row.ops.get(kind) else {
                continue;
            };

            let cells = columns.iter().map(|column| Cell::plain((column.text)(op)));
            table.push(lead_of_kind(matrix, line, kind), cells.collect());

            if let Some(classes) = error_classes(op) {
                errors.push(format!("{} {kind} {classes}", matrix.label(line)));
            }
        }
    }

    table.notes.extend(errors_note(&errors));
    table
}

/// Lists the errors of a kind of operation by their classes.
fn error_classes(op: &OpFigures) -> Option<String> {
    let classes: Vec<String> =
        op.errors.iter().map(|(class, count)| format!("{count} {class}")).collect();
    (!classes.is_empty()).then(|| classes.join(", "))
}

fn errors_note(errors: &[String]) -> Option<String> {
    if errors.is_empty() {
        return None;
    }

    let (shown, others) = errors.split_at(errors.len().min(ERRORS_MAX));
    let more = match others.len() {
        0 => String::new(),
        count => format!("; and {count} more"),
    };

    Some(format!("errors, including those of retried attempts: {}{more}", shown.join("; ")))
}
