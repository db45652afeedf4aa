//! The tables of the field: throughput per step, relative to a base, the insert rate that was asked for and had, and
//! per step the cost per operation, response-time buckets and percentiles; and how far apart clients ended.

use analysis::{
    OpFigures, Percentiles, Row, Shade, relative as ratio_to, shade_max, shade_relative,
    shade_share, shade_summary,
};
use record::{Status, StepKind};

use crate::matrix::{Line, Matrix, StepHead};
use crate::number::{Figure, fixed, share};
use crate::table::{Cell, Table, TableRow, Tone};

/// The metrics in their order in the field (methodology a8); client and server CPU stand beside that of the host, of
/// which they are parts.
pub(crate) const METRICS: [&str; 23] = [
    "ips",
    "dps",
    "qps",
    "rps",
    "rmbps",
    "wps",
    "wmbps",
    "rpq",
    "rkbpq",
    "wpi",
    "wkbpi",
    "csps",
    "cpups",
    "cspq",
    "cpupq",
    "client_cpu_us_per_op",
    "server_cpu_us_per_op",
    "dbgb1",
    "dbgb2",
    "rss",
    "maxop",
    "p50",
    "p99",
];

/// The same figures under the names of the microbenchmarks: a table has one name for a thing.
const OTHER_NAMES: [&str; 6] = ["cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s"];

/// Upper bounds of the buckets of [`analysis::Buckets`].
const BUCKETS: [&str; 10] = [
    "256us", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "gt",
];

/// Why figures are invalid, each reason under a letter.
#[derive(Default)]
struct Footnotes {
    /// The reasons, and where they hold.
    notes: Vec<(String, Vec<String>)>,
}

impl Footnotes {
    /// The letter for the reasons of `row`: the same reasons share one.
    fn letter(&mut self, matrix: &Matrix<'_>, line: &Line<'_>, row: &Row) -> String {
        let reasons = if row.reasons.is_empty() {
            "no reason recorded".to_string()
        } else {
            row.reasons.join("; ")
        };
        let place = format!("{} {}", matrix.label(line), row.step);
        let index = match self.notes.iter().position(|(text, _)| *text == reasons) {
            Some(index) => {
                if !self.notes[index].1.contains(&place) {
                    self.notes[index].1.push(place);
                }
                index
            }
            None => {
                self.notes.push((reasons, vec![place]));
                self.notes.len() - 1
            }
        };
        letters(index)
    }

    fn into_notes(self) -> impl Iterator<Item = String> {
        self.notes
            .into_iter()
            .enumerate()
            .map(|(index, (reasons, places))| {
                let (shown, more) = places.split_at(places.len().min(4));
                let more = if more.is_empty() {
                    String::new()
                } else {
                    format!(" and {} more", more.len())
                };
                format!(
                    "`!{}` {reasons} ({}{more})",
                    letters(index),
                    shown.join(", ")
                )
            })
    }
}

/// a b ... z aa ab ...
fn letters(index: usize) -> String {
    let last = char::from(b'a' + (index % 26) as u8);
    if index < 26 {
        last.to_string()
    } else {
        format!("{}{last}", letters(index / 26 - 1))
    }
}

/// The figure that says how fast a step was.
pub(crate) fn throughput(row: &Row) -> Option<f64> {
    let name = match row.kind {
        StepKind::Load | StepKind::Index => "ips",
        StepKind::Query => "qps",
        StepKind::Settle => return None,
    };
    row.metrics.get(name).copied().flatten()
}

/// Whether a row's figures may be compared with others.
fn comparable(row: &Row) -> bool {
    row.valid && row.status == Status::Complete
}

/// What stands in the place of the figure of a step that did not end as planned.
fn ended_early(status: Status) -> Option<Cell> {
    match status {
        Status::Complete => None,
        Status::Failed => Some(Cell::toned("failed", Tone::Failed)),
        Status::Interrupted => Some(Cell::toned("interrupted", Tone::Failed)),
        Status::Incomplete => Some(Cell::toned("incomplete", Tone::Failed)),
    }
}

/// A cell that failed between two steps shows it at the first step that it has not done.
fn missing_step(matrix: &Matrix<'_>, line: &Line<'_>, step: StepHead<'_>) -> Cell {
    let first = matrix
        .measured()
        .find(|candidate| line.row(candidate.name).is_none());
    let told = line.rows.iter().any(|row| row.status != Status::Complete);
    match line.unfinished.flatten().and_then(ended_early) {
        Some(cell) if !told && first.is_some_and(|first| first.name == step.name) => cell,
        _ => Cell::not_run(),
    }
}

/// One table of which the columns are steps: `cell` says what stands where there is a figure to show.
fn per_step<'a>(
    matrix: &Matrix<'a>,
    steps: &[StepHead<'a>],
    mut cell: impl FnMut(&Line<'a>, StepHead<'a>) -> Cell,
) -> Table {
    let rows = matrix.lines.iter().map(|line| TableRow {
        lead: matrix.lead_of(line),
        cells: steps.iter().map(|step| cell(line, *step)).collect(),
        target: false,
    });
    Table {
        lead: matrix.lead(),
        columns: steps.iter().map(|step| step.name.to_string()).collect(),
        rows: rows.collect(),
        ..Table::default()
    }
}

/// (a) Throughput: one row per line, one column per step.
pub(crate) fn summary(matrix: &Matrix<'_>) -> Table {
    let steps: Vec<_> = matrix.measured().collect();
    let mut footnotes = Footnotes::default();
    let mut table = per_step(matrix, &steps, |line, step| {
        let Some(row) = line.row(step.name) else {
            return missing_step(matrix, line, step);
        };
        if let Some(cell) = ended_early(row.status) {
            return cell;
        }
        let all = matrix
            .lines
            .iter()
            .filter_map(|line| throughput(line.row(step.name)?));
        let decimals = Figure::PerSecond.decimals(all);
        match throughput(row) {
            None => Cell::not_applicable(),
            Some(value) if row.valid => Cell::plain(fixed(value, decimals)),
            Some(value) => Cell {
                text: fixed(value, decimals),
                mark: format!("!{}", footnotes.letter(matrix, line, row)),
                tone: Tone::Invalid,
                share: 0,
            },
        }
    });
    for (column, step) in steps.iter().enumerate() {
        let mut first = 0;
        for group in matrix.groups() {
            shade_column(
                &mut table.rows[first..first + group.len()],
                column,
                group,
                *step,
            );
            first += group.len();
        }
    }
    table.id = "summary".to_string();
    table.title =
        "Throughput: rows/s inserted in load steps, rows/s indexed in index steps, queries/s in query steps".to_string();
    table.notes.extend(footnotes.into_notes());
    table.with_legend()
}

/// Colours one column among lines that are compared with each other.
fn shade_column(rows: &mut [TableRow], column: usize, group: &[Line<'_>], step: StepHead<'_>) {
    let rows_of_step = || group.iter().map(|line| line.row(step.name));
    let values: Vec<Option<f64>> = rows_of_step()
        .map(|row| row.filter(|row| comparable(row)).and_then(throughput))
        .collect();
    let sla_met: Vec<bool> = rows_of_step()
        .map(|row| {
            row.and_then(|row| row.sla.as_ref())
                .is_none_or(|sla| sla.met)
        })
        .collect();
    let shades = shade_summary(&values, &sla_met);
    for (index, (row, shade)) in rows.iter_mut().zip(shades).enumerate() {
        let cell = &mut row.cells[column];
        if values[index].is_none() {
            continue;
        }
        *cell = Cell::toned(std::mem::take(&mut cell.text), shade.into());
        if !sla_met[index] && cell.tone != Tone::SlaMissed {
            cell.mark.push_str(Tone::SlaMissed.mark());
        }
    }
}

/// (b) Throughput relative to the base; `None` when there is nothing to compare.
pub(crate) fn relative(matrix: &Matrix<'_>) -> Option<Table> {
    let steps: Vec<_> = matrix.measured().collect();
    if !matrix
        .lines
        .iter()
        .any(|line| line.target != matrix.base && matrix.base_of(line).is_some())
    {
        return None;
    }
    let mut table = per_step(matrix, &steps, |line, step| {
        let Some(row) = line.row(step.name) else {
            return Cell::not_run();
        };
        if let Some(cell) = ended_early(row.status) {
            return cell;
        }
        if !row.valid {
            return Cell {
                text: String::new(),
                mark: Tone::Invalid.mark().to_string(),
                tone: Tone::Invalid,
                share: 0,
            };
        }
        let base = matrix
            .base_of(line)
            .and_then(|base| base.row(step.name))
            .filter(|row| comparable(row));
        match ratio_to(throughput(row), base.and_then(throughput)) {
            Some(ratio) => {
                let is_base = line.target == matrix.base;
                let shade = if is_base {
                    Shade::None
                } else {
                    shade_relative(ratio)
                };
                let mut cell = Cell::toned(fixed(ratio, 2), shade.into());
                if row.sla.as_ref().is_some_and(|sla| !sla.met) {
                    cell.mark.push_str(Tone::SlaMissed.mark());
                }
                cell
            }
            None if throughput(row).is_none() => Cell::not_applicable(),
            None => Cell::toned("no base", Tone::Absent),
        }
    });
    table.id = "relative".to_string();
    table.title = format!("Throughput relative to {}", matrix.base);
    Some(table.with_legend())
}

/// (c) The insert rate in steps that ask for one, and under each group of lines the rate that was asked for.
pub(crate) fn insert_rate(matrix: &Matrix<'_>) -> Option<Table> {
    let with_rate = |step: &StepHead<'_>| {
        matrix
            .lines
            .iter()
            .any(|line| line.row(step.name).is_some_and(|row| row.sla.is_some()))
    };
    let steps: Vec<_> = matrix.measured().filter(with_rate).collect();
    if steps.is_empty() {
        return None;
    }
    let decimals: Vec<usize> = steps
        .iter()
        .map(|step| {
            let slas = matrix
                .lines
                .iter()
                .filter_map(|line| line.row(step.name)?.sla.as_ref());
            Figure::PerSecond.decimals(slas.flat_map(|sla| [sla.target, sla.achieved]))
        })
        .collect();
    let mut footnotes = Footnotes::default();
    let mut table = Table {
        id: "insert-rate".to_string(),
        title: "Insert rate in steps that ask for one, rows/s over all clients".to_string(),
        lead: matrix.lead(),
        columns: steps.iter().map(|step| step.name.to_string()).collect(),
        ..Table::default()
    };
    for group in matrix.groups() {
        for line in group {
            let cells = steps.iter().zip(&decimals).map(|(step, decimals)| {
                let Some(row) = line.row(step.name) else {
                    return missing_step(matrix, line, *step);
                };
                if let Some(cell) = ended_early(row.status) {
                    return cell;
                }
                let Some(sla) = &row.sla else {
                    return Cell::not_applicable();
                };
                let text = fixed(sla.achieved, *decimals);
                let missed = if sla.met { "" } else { Tone::SlaMissed.mark() };
                if !row.valid {
                    let mark = format!("{missed}!{}", footnotes.letter(matrix, line, row));
                    return Cell {
                        text,
                        mark,
                        tone: Tone::Invalid,
                        share: 0,
                    };
                }
                Cell::toned(
                    text,
                    if sla.met {
                        Tone::Plain
                    } else {
                        Tone::SlaMissed
                    },
                )
            });
            table.rows.push(TableRow {
                lead: matrix.lead_of(line),
                cells: cells.collect(),
                target: false,
            });
        }
        let Some(line) = group.first() else { continue };
        let mut lead = matrix.lead_of(line);
        lead[0] = "target rate".to_string();
        if let Some(repeat) = matrix.lead().iter().position(|head| head == "repeat") {
            lead[repeat].clear();
        }
        let cells = steps.iter().zip(&decimals).map(|(step, decimals)| {
            let target = group
                .iter()
                .find_map(|line| Some(line.row(step.name)?.sla.as_ref()?.target));
            target.map_or_else(Cell::not_run, |target| {
                Cell::plain(fixed(target, *decimals))
            })
        });
        table.rows.push(TableRow {
            lead,
            cells: cells.collect(),
            target: true,
        });
    }
    table.notes.extend(footnotes.into_notes());
    Some(table.with_legend())
}

/// (d) The cost per operation and what else is measured in one step, one row per line.
pub(crate) fn metrics(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let rows = || matrix.lines.iter().filter_map(|line| line.row(step.name));
    let others: std::collections::BTreeSet<&str> = rows()
        .flat_map(|row| row.metrics.keys().copied())
        .filter(|name| !METRICS.contains(name) && !OTHER_NAMES.contains(name))
        .collect();
    let names: Vec<&str> = METRICS.into_iter().chain(others).collect();
    let decimals: Vec<usize> = names
        .iter()
        .map(|name| {
            Figure::of_metric(name)
                .decimals(rows().filter_map(|row| row.metrics.get(name).copied().flatten()))
        })
        .collect();
    let mut footnotes = Footnotes::default();
    let mut table = Table {
        id: format!("metrics-{}", anchor(step.name)),
        title: format!("{}: metrics", step.name),
        lead: matrix.lead(),
        columns: names.iter().map(|name| metric_head(name)).collect(),
        ..Table::default()
    };
    for line in &matrix.lines {
        let Some(row) = line.row(step.name) else {
            continue;
        };
        let mut cells: Vec<Cell> = names
            .iter()
            .zip(&decimals)
            .map(
                |(name, decimals)| match row.metrics.get(name).copied().flatten() {
                    Some(value) => Cell::plain(fixed(value, *decimals)),
                    None => Cell::not_applicable(),
                },
            )
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
    table.with_legend()
}

/// A metric's name as the head of a column: long ones in several lines.
fn metric_head(name: &str) -> String {
    match name.split_once("_us_per_") {
        Some((start, per)) => format!("{start}\nus_per_{}", per.replace("row_", "row\n")),
        None => name.to_string(),
    }
}

/// The kinds of operation of a step, inserts first.
pub(crate) fn kinds<'a>(matrix: &Matrix<'a>, step: StepHead<'_>) -> Vec<&'a str> {
    let mut kinds: Vec<&str> = Vec::new();
    for row in matrix.lines.iter().filter_map(|line| line.row(step.name)) {
        kinds.extend(row.ops.keys().map(String::as_str));
        kinds.extend(row.series.ops.keys().map(String::as_str));
    }
    let order = ["insert", "delete", "query"];
    kinds.sort_by_key(|kind| {
        (
            order
                .iter()
                .position(|known| known == kind)
                .unwrap_or(order.len()),
            *kind,
        )
    });
    kinds.dedup();
    kinds
}

/// A kind of operation of a step has a schedule when its rate is limited: only then do its two times differ.
pub(crate) fn has_schedule(matrix: &Matrix<'_>, step: StepHead<'_>, kind: &str) -> bool {
    matrix
        .lines
        .iter()
        .filter_map(|line| line.row(step.name))
        .any(|row| {
            let Some(op) = row.ops.get(kind) else {
                return false;
            };
            let limited = row.sla.is_some() && matches!(kind, "insert" | "delete");
            limited
                || op.service_buckets.counts != op.response_buckets.counts
                || op.service_us.max != op.response_us.max
                || op.service_us.p50 != op.response_us.p50
        })
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
}

/// One row per line and time of one kind of operation; without a schedule the two times are one.
fn per_time(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    kind: &str,
    mut cells: impl FnMut(&OpFigures, Time) -> Vec<Cell>,
) -> Table {
    let times: &[Time] = if has_schedule(matrix, step, kind) {
        &[Time::Response, Time::Service]
    } else {
        &[Time::Response]
    };
    let mut table = Table {
        lead: matrix.lead(),
        ..Table::default()
    };
    if times.len() > 1 {
        table.lead.push("time".to_string());
    }
    for line in &matrix.lines {
        let Some(row) = line.row(step.name) else {
            continue;
        };
        let Some(op) = row.ops.get(kind) else {
            continue;
        };
        for time in times {
            let mut lead = matrix.lead_of(line);
            if times.len() > 1 {
                lead.push(time.name().to_string());
            }
            let mut cells = cells(op, *time);
            if !comparable(row) {
                cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
                if let Some(last) = cells.last_mut() {
                    last.mark = Tone::Invalid.mark().to_string();
                }
            }
            table.rows.push(TableRow {
                lead,
                cells,
                target: false,
            });
        }
    }
    table
}

/// (e) Shares of response times per bucket.
pub(crate) fn buckets(matrix: &Matrix<'_>, step: StepHead<'_>, kind: &str) -> Table {
    let mut table = per_time(matrix, step, kind, |op, time| {
        let buckets = if time == Time::Service {
            &op.service_buckets
        } else {
            &op.response_buckets
        };
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
    for time in [Time::Service, Time::Response] {
        shade_longest(matrix, step, kind, time, &mut table);
    }
    table.id = format!("buckets-{}-{}", anchor(step.name), anchor(kind));
    table.title = format!(
        "{}: {kind}, percent of operations per bucket of time; max in seconds",
        step.name
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
    time: Time,
    table: &mut Table,
) {
    let both = has_schedule(matrix, step, kind);
    if !both && time == Time::Service {
        return;
    }
    for group in matrix.groups() {
        let lines: Vec<_> = group
            .iter()
            .filter_map(|line| {
                let row = line.row(step.name).filter(|row| comparable(row))?;
                let op = row.ops.get(kind).filter(|op| op.count > 0)?;
                let mut lead = matrix.lead_of(line);
                if both {
                    lead.push(time.name().to_string());
                }
                let buckets = if time == Time::Service {
                    &op.service_buckets
                } else {
                    &op.response_buckets
                };
                Some((lead, Some(buckets.max_seconds)))
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
pub(crate) fn percentiles(matrix: &Matrix<'_>, step: StepHead<'_>, kind: &str) -> Table {
    let values = |times: &Percentiles| {
        [
            times.p50,
            times.p90,
            times.p95,
            times.p99,
            times.p99_9,
            times.p99_99,
            times.max,
            times.mean,
        ]
    };
    let ops = || {
        matrix
            .lines
            .iter()
            .filter_map(|line| line.row(step.name)?.ops.get(kind))
    };
    let decimals: Vec<usize> = (0..8)
        .map(|column| {
            let both = ops().flat_map(|op| {
                [
                    values(&op.service_us)[column],
                    values(&op.response_us)[column],
                ]
            });
            Figure::Microseconds.decimals(both)
        })
        .collect();
    let mut table = per_time(matrix, step, kind, |op, time| {
        if op.count == 0 {
            return vec![Cell::default(); decimals.len()];
        }
        let times = if time == Time::Service {
            &op.service_us
        } else {
            &op.response_us
        };
        values(times)
            .iter()
            .zip(&decimals)
            .map(|(value, decimals)| Cell::plain(fixed(*value, *decimals)))
            .collect()
    });
    table.id = format!("percentiles-{}-{}", anchor(step.name), anchor(kind));
    table.title = format!("{}: {kind}, percentiles of time in microseconds", step.name);
    table.columns = ["p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "mean"]
        .map(str::to_string)
        .to_vec();
    table.with_legend()
}

/// What became of the operations that were asked for.
pub(crate) fn accounting(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let mut lead = matrix.lead();
    lead.push("kind".to_string());
    let mut table = Table {
        id: format!("operations-{}", anchor(step.name)),
        title: format!("{}: operations; offered = skipped + ok + failed", step.name),
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
    for line in &matrix.lines {
        let Some(row) = line.row(step.name) else {
            continue;
        };
        for kind in kinds(matrix, step) {
            let Some(op) = row.ops.get(kind) else {
                continue;
            };
            let rate = |value: f64| Cell::plain(fixed(value, Figure::PerSecond.decimals([value])));
            let counts = [
                op.offered, op.skipped, op.count, op.failed, op.retried, op.rows,
            ];
            let mut cells: Vec<Cell> = counts
                .iter()
                .map(|count| Cell::plain(count.to_string()))
                .collect();
            cells.extend([rate(op.per_second), rate(op.rows_per_second)]);
            let mut lead = matrix.lead_of(line);
            lead.push(kind.to_string());
            table.rows.push(TableRow {
                lead,
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
        table.notes.push(format!(
            "errors, those of attempts that were tried again included: {}",
            errors.join("; ")
        ));
    }
    table
}

/// (f) How far apart the clients of a step ended.
pub(crate) fn fairness(matrix: &Matrix<'_>) -> Option<Table> {
    let mut lead = vec!["step".to_string()];
    lead.extend(matrix.lead());
    let mut table = Table {
        id: "fairness".to_string(),
        title: "Fairness: when the first and the last client had done their work, in seconds"
            .to_string(),
        lead,
        columns: ["fastest", "slowest", "apart", "apart_pct"]
            .map(str::to_string)
            .to_vec(),
        ..Table::default()
    };
    for step in matrix.measured() {
        for line in &matrix.lines {
            let Some(row) = line.row(step.name) else {
                continue;
            };
            let Some(fairness) = &row.fairness else {
                continue;
            };
            let seconds = [
                fairness.fastest_seconds,
                fairness.slowest_seconds,
                fairness.abs_seconds,
            ];
            let mut cells: Vec<Cell> = seconds
                .iter()
                .map(|value| Cell::plain(fixed(*value, 3)))
                .collect();
            cells.push(Cell::plain(fixed(fairness.pct, 1)));
            if !comparable(row) {
                cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
                cells[3].mark = Tone::Invalid.mark().to_string();
            }
            let mut lead = vec![step.name.to_string()];
            lead.extend(matrix.lead_of(line));
            table.rows.push(TableRow {
                lead,
                cells,
                target: false,
            });
        }
    }
    if table.rows.is_empty() {
        None
    } else {
        Some(table.with_legend())
    }
}

/// What the engine's counters did in a step: one row per counter, one column per line.
pub(crate) fn counters(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let lines: Vec<_> = matrix
        .lines
        .iter()
        .filter_map(|line| Some((line, line.row(step.name)?)))
        .collect();
    let names: std::collections::BTreeSet<&str> = lines
        .iter()
        .flat_map(|(_, row)| row.counters.keys().map(String::as_str))
        .collect();
    if names.is_empty() {
        return None;
    }
    let rows = names.into_iter().map(|name| TableRow {
        lead: vec![name.to_string()],
        cells: lines
            .iter()
            .map(|(_, row)| match row.counters.get(name) {
                Some(value) if value.fract() == 0.0 => Cell::plain(fixed(*value, 0)),
                Some(value) => Cell::plain(fixed(*value, 3)),
                None => Cell::not_applicable(),
            })
            .collect(),
        target: false,
    });
    Some(Table {
        id: format!("counters-{}", anchor(step.name)),
        title: format!(
            "{}: counters of the engine, what they did in the step",
            step.name
        ),
        lead: vec!["counter".to_string()],
        columns: lines.iter().map(|(line, _)| matrix.label(line)).collect(),
        rows: rows.collect(),
        notes: Vec::new(),
    })
}

/// How long it took to bring the engines to rest.
pub(crate) fn settling(matrix: &Matrix<'_>) -> Option<Table> {
    let steps: Vec<_> = matrix
        .steps
        .iter()
        .copied()
        .filter(|step| step.kind == StepKind::Settle)
        .collect();
    if steps.is_empty() {
        return None;
    }
    let mut table = per_step(matrix, &steps, |line, step| match line.row(step.name) {
        None => Cell::not_run(),
        Some(row) => ended_early(row.status).unwrap_or_else(|| Cell::plain(fixed(row.seconds, 1))),
    });
    table.id = "settling".to_string();
    table.title = "Settling between steps: how long it took, in seconds".to_string();
    Some(table)
}

/// A name as part of an identifier; names that differ stay different.
pub(crate) fn anchor(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' => letter.to_string(),
            '.' => "-".to_string(),
            other => format!("-{:x}-", u32::from(other)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footnote_letters_go_on_after_z() {
        assert_eq!(
            [0, 25, 26, 51, 52].map(letters),
            ["a", "z", "aa", "az", "ba"]
        );
    }

    #[test]
    fn anchors_hold_only_what_an_identifier_may() {
        assert_eq!(anchor("l.i0"), "l-i0");
        assert_eq!(anchor("<b>"), "-3c-b-3e-");
    }
}
