//! The tables of the field: throughput per step, relative to a base, the insert rate that was asked for and had, and
//! per step the cost per operation, response-time buckets and percentiles; and how far apart clients ended.

use std::collections::BTreeSet;

use analysis::{
    Buckets, Fairness, OpFigures, Percentiles, Row, Shade, relative as ratio_to, shade_max,
    shade_relative, shade_share, shade_summary,
};
use record::{Status, StepKind};

use crate::matrix::{Line, Matrix, StepHead};
use crate::number::{Figure, fixed, share};
use crate::table::{Cell, Table, TableRow, Tone};

/// The metrics of the field in its order (methodology a8), each with its unit.
const FIELD: [(&str, &str); 21] = [
    ("ips", "rows/s"),
    ("dps", "rows/s"),
    ("qps", "/s"),
    ("rps", "/s"),
    ("rmbps", "MB/s"),
    ("wps", "/s"),
    ("wmbps", "MB/s"),
    ("rpq", "/op"),
    ("rkbpq", "KB/op"),
    ("wpi", "/row"),
    ("wkbpi", "KB/row"),
    ("csps", "/s"),
    ("cpups", "%"),
    ("cspq", "/op"),
    ("cpupq", "us/op"),
    ("dbgb1", "GB"),
    ("dbgb2", "GB"),
    ("rss", "GB"),
    ("maxop", "s"),
    ("p50", "/s"),
    ("p99", "/s"),
];

/// What an operation costs: the metric, its name in this table and its unit. The host's CPU is `cpupq`: client and
/// server are parts of it.
const COSTS: [(&str, &str, &str); 10] = [
    ("client_cpu_us_per_op", "client_cpu", "us/op"),
    ("server_cpu_us_per_op", "server_cpu", "us/op"),
    ("cpupq", "host_cpu", "us/op"),
    ("cs/o", "cs/o", "/op"),
    ("r/o", "r/o", "/op"),
    ("rKB/o", "rKB/o", "KB/op"),
    ("wKB/o", "wKB/o", "KB/op"),
    ("client_cpu_us_per_row_inserted", "client_cpu", "us/insert"),
    ("client_cpu_us_per_row_deleted", "client_cpu", "us/delete"),
    ("client_cpu_us_per_query", "client_cpu", "us/query"),
];

/// What an engine does beside answering: the metric, its name in this table and its unit.
const UPKEEP: [(&str, &str, &str); 10] = [
    ("fsyncs_per_commit", "fsyncs", "/commit"),
    ("log_fsyncs_per_commit", "log_fsyncs", "/commit"),
    ("data_fsyncs_per_commit", "data_fsyncs", "/commit"),
    ("binlog_syncs_per_commit", "binlog_syncs", "/commit"),
    ("write_amplification", "write_amp", "B/B"),
    ("debt_dead_rows", "dead_rows", "debt"),
    ("debt_history_list", "history_list", "debt"),
    ("debt_dirty_mb", "dirty", "debt, MB"),
    ("debt_redo_mb", "redo", "debt, MB"),
    ("debt_compaction_mb", "compaction", "debt, MB"),
];

/// Names of figures that stand in a table already under another name: `cpu/o` is `cpupq` in units that no two hosts
/// share.
const OTHER_NAMES: [&str; 2] = ["cpu/o", "o/s"];

/// Kinds of operation that connections need to know where they are. They are counted like all others; nobody compares
/// engines by them.
const BOOKKEEPING: [&str; 2] = ["get_min", "get_max"];

/// Lines and kinds beyond which errors are counted.
const ERRORS_MAX: usize = 8;

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
        for (text, head) in lead.iter_mut().zip(matrix.lead()) {
            if matches!(head.as_str(), "repeat" | "run") {
                text.clear();
            }
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

/// (d) The metrics of the field in one step, one row per line.
pub(crate) fn metrics(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let columns = FIELD.map(|(name, unit)| (name, format!("{name}\n{unit}")));
    let mut table = metric_table(matrix, step, &columns);
    table.id = format!("metrics-{}", anchor(step.name));
    table.title = format!("Metrics; an operation is a {}", operation(step));
    table
}

/// (d) What an operation costs in one step, whose processor time it is, and what each sort of row costs the client.
pub(crate) fn costs(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let mut columns: Vec<(&str, String)> = COSTS
        .iter()
        .map(|(name, head, unit)| (*name, format!("{head}\n{unit}")))
        .collect();
    // What this table does not know by name is not lost.
    let known = |name: &str| {
        FIELD.iter().any(|(field, _)| *field == name)
            || OTHER_NAMES.contains(&name)
            || UPKEEP.iter().any(|(upkeep, ..)| *upkeep == name)
            || COSTS.iter().any(|(cost, ..)| *cost == name)
    };
    let others: BTreeSet<&str> = rows_of(matrix, step)
        .flat_map(|row| row.metrics.keys().copied())
        .filter(|name| !known(name))
        .collect();
    columns.extend(others.into_iter().map(|name| (name, name.to_string())));
    let mut table = metric_table(matrix, step, &columns);
    table.id = format!("costs-{}", anchor(step.name));
    table.title = format!(
        "Cost per {}; host includes client and server",
        operation(step)
    );
    table
}

/// How often commits were made durable, how much more was written than was inserted, and what work the engine had put
/// off when the step ended; `None` where no target tells any of it.
pub(crate) fn upkeep(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let has = |name: &str| {
        rows_of(matrix, step).any(|row| row.metrics.get(name).copied().flatten().is_some())
    };
    let columns: Vec<(&str, String)> = UPKEEP
        .iter()
        .filter(|(name, ..)| has(name))
        .map(|(name, head, unit)| (*name, format!("{head}\n{unit}")))
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut table = metric_table(matrix, step, &columns);
    table.id = format!("upkeep-{}", anchor(step.name));
    table.title = "Durability, write amplification, and debt when the step ended".to_string();
    Some(table)
}

/// What is counted as an operation in a step.
fn operation(step: StepHead<'_>) -> &'static str {
    match step.kind {
        StepKind::Load => "row inserted",
        StepKind::Index => "row indexed",
        StepKind::Query => "query",
        StepKind::Settle => "step",
    }
}

/// The rows of all lines that did a step.
fn rows_of<'m, 'a>(
    matrix: &'m Matrix<'a>,
    step: StepHead<'a>,
) -> impl Iterator<Item = &'a Row> + 'm {
    matrix
        .lines
        .iter()
        .filter_map(move |line| line.row(step.name))
}

/// Some metrics of one step, one row per line. What applies to no line is named below instead of taking a column.
fn metric_table(matrix: &Matrix<'_>, step: StepHead<'_>, columns: &[(&str, String)]) -> Table {
    let values = |name: &str| -> Vec<f64> {
        rows_of(matrix, step)
            .filter_map(|row| row.metrics.get(name).copied().flatten())
            .collect()
    };
    let (mut shown, absent): (Vec<_>, Vec<_>) = columns
        .iter()
        .partition(|(name, _)| !values(name).is_empty());
    if shown.is_empty() {
        shown.extend(columns.first());
    }
    let decimals: Vec<usize> = shown
        .iter()
        .map(|(name, _)| Figure::of_metric(name).decimals(values(name)))
        .collect();
    let mut footnotes = Footnotes::default();
    let mut table = Table {
        lead: matrix.lead(),
        columns: shown.iter().map(|(_, head)| head.clone()).collect(),
        ..Table::default()
    };
    for line in &matrix.lines {
        let Some(row) = line.row(step.name) else {
            continue;
        };
        let mut cells: Vec<Cell> = shown
            .iter()
            .zip(&decimals)
            .map(
                |((name, _), decimals)| match row.metrics.get(name).copied().flatten() {
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
    if !absent.is_empty() && rows_of(matrix, step).any(|row| row.status == Status::Complete) {
        let names: Vec<_> = absent.iter().map(|(name, _)| *name).collect();
        table.notes.push(format!("n/a: {}", names.join(", ")));
    }
    table.with_legend()
}

/// The kinds of operation of a step, inserts first.
pub(crate) fn kinds<'a>(matrix: &Matrix<'a>, step: StepHead<'a>) -> Vec<&'a str> {
    let mut kinds: Vec<&str> = Vec::new();
    for row in rows_of(matrix, step) {
        kinds.extend(row.ops.keys().map(String::as_str));
        kinds.extend(row.series.ops.keys().map(String::as_str));
    }
    let order = ["insert", "delete", "query"];
    let place = |kind: &str| {
        let known = order.iter().position(|known| *known == kind);
        known.unwrap_or(order.len() + usize::from(BOOKKEEPING.contains(&kind)))
    };
    kinds.sort_by_key(|kind| (place(kind), *kind));
    kinds.dedup();
    kinds
}

/// The same in two lists: what the step is about, and what its connections do beside it.
pub(crate) fn kinds_apart<'a>(
    matrix: &Matrix<'a>,
    step: StepHead<'a>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    kinds(matrix, step)
        .into_iter()
        .partition(|kind| !BOOKKEEPING.contains(kind))
}

/// Whether a rate was asked for this kind of operation: only then do its two times differ.
pub(crate) fn has_schedule(matrix: &Matrix<'_>, step: StepHead<'_>, kind: &str) -> bool {
    rows_of(matrix, step).any(|row| row.ops.get(kind).is_some_and(|op| op.scheduled))
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
        rows_of(matrix, step)
            .flat_map(|row| kinds.iter().filter_map(|kind| row.ops.get(*kind)))
            .filter(|op| op.count > 0)
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
    let mut table = per_time(matrix, step, kinds, |op, time| {
        if op.count == 0 {
            return vec![Cell::default(); decimals.len()];
        }
        values(time.percentiles(op))
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
            let rate = |value: f64| Cell::plain(fixed(value, Figure::PerSecond.decimals([value])));
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

/// (f) How far apart the clients of a step ended.
pub(crate) fn fairness(matrix: &Matrix<'_>) -> Option<Table> {
    fn of<'a>(line: &Line<'a>, step: &StepHead<'_>) -> Option<(&'a Row, &'a Fairness)> {
        let row = line.row(step.name)?;
        Some((row, row.fairness.as_ref()?))
    }
    let steps: Vec<StepHead<'_>> = matrix
        .measured()
        .filter(|step| matrix.lines.iter().any(|line| of(line, step).is_some()))
        .collect();
    if steps.is_empty() {
        return None;
    }
    let mut table = Table {
        id: "fairness".to_string(),
        title: "Fairness: how long after the first client the last had done its work, in seconds and in percent of the first's time"
            .to_string(),
        lead: matrix.lead(),
        columns: steps
            .iter()
            .flat_map(|step| [format!("{}\napart", step.name), format!("{}\npct", step.name)])
            .collect(),
        ..Table::default()
    };
    for line in &matrix.lines {
        let cells = steps.iter().flat_map(|step| {
            let Some((row, fairness)) = of(line, step) else {
                return [Cell::not_run(), Cell::not_run()];
            };
            let mut cells = [
                Cell::plain(fixed(fairness.abs_seconds, 3)),
                Cell::plain(fixed(fairness.pct, 1)),
            ];
            if !comparable(row) {
                cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
                cells[1].mark = Tone::Invalid.mark().to_string();
            }
            cells
        });
        let cells: Vec<Cell> = cells.collect();
        if cells.iter().any(|cell| cell.tone != Tone::Absent) {
            table.rows.push(TableRow {
                lead: matrix.lead_of(line),
                cells,
                target: false,
            });
        }
    }
    Some(table.with_legend())
}

/// What the engine's counters did in a step: one row per counter, one column per line.
pub(crate) fn counters(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let lines: Vec<_> = matrix
        .lines
        .iter()
        .filter_map(|line| Some((line, line.row(step.name)?)))
        .collect();
    let names: BTreeSet<&str> = lines
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
        title: "Counters of the engine: what they did in the step".to_string(),
        lead: vec!["counter".to_string()],
        columns: lines.iter().map(|(line, _)| matrix.label(line)).collect(),
        rows: rows.collect(),
        notes: Vec::new(),
    })
}

/// How long each step was, settle steps included.
pub(crate) fn lengths(matrix: &Matrix<'_>) -> Table {
    let steps = &matrix.steps;
    let mut table = per_step(matrix, steps, |line, step| match line.row(step.name) {
        None => missing_step(matrix, line, step),
        Some(row) => ended_early(row.status).unwrap_or_else(|| Cell::plain(fixed(row.seconds, 1))),
    });
    table.id = "lengths".to_string();
    table.title = "Length of each step in seconds".to_string();
    table
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
