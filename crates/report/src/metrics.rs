//! The tables of metrics in one step, one row per line: those of the field, what an operation costs, and what an engine
//! does beside answering.

use std::collections::BTreeSet;

use analysis::Row;
use record::Status;

use crate::classic::{Footnotes, anchor, ended_early};
use crate::lsm;
use crate::matrix::{Matrix, StepHead};
use crate::number::{Figure, fixed};
use crate::operations::noun;
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

/// What an operation costs, and what that is to be read by: the metric, its name in this table and its unit. The host's CPU is `cpupq`: client and
/// server are parts of it.
const COSTS: [(&str, &str, &str); 18] = [
    ("client_cpu_us_per_op", "client_cpu", "us/op"),
    ("server_cpu_us_per_op", "server_cpu", "us/op"),
    ("own_cpu_us_per_op", "own_cpu", "us/op"),
    ("instructions_per_op", "instructions", "/op"),
    ("cpupq", "host_cpu", "us/op"),
    ("cs/o", "cs/o", "/op"),
    ("r/o", "r/o", "/op"),
    ("rKB/o", "rKB/o", "KB/op"),
    ("wKB/o", "wKB/o", "KB/op"),
    ("client_cpu_us_per_row_inserted", "client_cpu", "us/insert"),
    ("client_cpu_us_per_row_deleted", "client_cpu", "us/delete"),
    ("client_cpu_us_per_query", "client_cpu", "us/query"),
    ("client_cpu_us_per_read", "client_cpu", "us/read"),
    ("client_cpu_us_per_write", "client_cpu", "us/write"),
    ("krows_sec", "scanned", "Krows/s"),
    ("rows/event", "deleted", "rows/event"),
    ("others%", "others", "% of CPUs"),
    ("cpu_mhz", "clock", "MHz"),
];

/// Where the time of an operation goes: the metric, its name in this table and its unit.
const TIME: [(&str, &str, &str); 16] = [
    ("op_time_us", "time", "us/op"),
    ("op_client_cpu_us", "client_cpu", "us/op"),
    ("op_server_cpu_us", "server_cpu", "us/op"),
    ("op_cpu_wait_us", "cpu_wait", "us/op"),
    ("op_steal_us", "steal", "us/op"),
    ("op_read_us", "reads", "us/op"),
    ("op_write_us", "writes", "us/op"),
    ("op_fsync_us", "fsyncs", "us/op"),
    ("op_lock_us", "locks", "us/op"),
    ("op_handover_us", "handover", "us/op"),
    ("op_overlap_us", "overlap", "us/op"),
    ("op_rest_us", "unexplained", "us/op"),
    ("op_rest%", "unexplained", "% of time"),
    ("background_cpu_us_per_op", "background_cpu", "us/op"),
    ("own_read_kb_per_op", "own_read", "KB/op"),
    ("own_write_kb_per_op", "own_write", "KB/op"),
];

/// It has the field's name wherever nothing is said of client and server.
const HOST_CPU: &str = "cpupq";

/// What an engine does beside answering: the metric, its name in this table and its unit.
const UPKEEP: [(&str, &str, &str); 11] = [
    ("fsyncs_per_commit", "fsyncs", "/commit"),
    ("log_fsyncs_per_commit", "log_fsyncs", "/commit"),
    ("data_fsyncs_per_commit", "data_fsyncs", "/commit"),
    ("binlog_syncs_per_commit", "binlog_syncs", "/commit"),
    ("flushes_per_commit", "disk_flushes", "/commit"),
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

/// What a metric is called where there is little room.
pub(crate) fn short(metric: &str) -> &str {
    let mut known = COSTS.iter().chain(&TIME).chain(&UPKEEP);
    let short = known.find(|(name, ..)| *name == metric && *name != HOST_CPU);
    short.map_or(metric, |(_, short, _)| short)
}

/// The unit of a metric; empty: it is a number of something, or not known here.
pub(crate) fn unit(metric: &str) -> &'static str {
    let field = FIELD.iter().map(|(name, unit)| (name, unit));
    let others = COSTS.iter().chain(&TIME).chain(&UPKEEP);
    let mut known = field.chain(others.map(|(name, _, unit)| (name, unit)));
    match known.find(|(name, _)| **name == metric) {
        // Of debts the table says that they are, and then in what.
        Some((_, unit)) => unit
            .strip_prefix("debt")
            .map_or(unit, |rest| rest.trim_start_matches(", ")),
        None => lsm::unit(metric),
    }
}

/// (d) The metrics of the field in one step, one row per line.
pub(crate) fn metrics(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let columns = FIELD.map(|(name, unit)| (name, format!("{name}\n{unit}")));
    let mut table = metric_table(matrix, step, &columns);
    table.id = format!("metrics-{}", anchor(step.name));
    table.title = format!("Metrics; an operation is a {}", noun(step));
    table
}

/// (d) Where the time of an operation goes in one step, of the connections that do it.
/// `None` where nothing of it was measured.
pub(crate) fn time(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let columns: Vec<(&str, String)> = TIME
        .iter()
        .filter(|(name, ..)| applies(matrix, step, name))
        .map(|(name, head, unit)| (*name, format!("{head}\n{unit}")))
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut table = metric_table(matrix, step, &columns);
    table.id = format!("time-{}", anchor(step.name));
    table.title = format!("Where the time of a {} goes", noun(step));
    Some(table)
}

/// (d) What an operation costs in one step, whose processor time it is, and what each sort of row costs the client.
pub(crate) fn costs(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    // Of sorts of operation that a step has not, nothing is missing.
    let mut columns: Vec<(&str, String)> = COSTS
        .iter()
        .filter(|(name, _, unit)| {
            let is_of_all = *unit == "us/op" || !name.contains("_us_per_");
            let is_of_some =
                ["krows_sec", "rows/event", "cpu_mhz", "instructions_per_op"].contains(name);
            (is_of_all && !is_of_some) || applies(matrix, step, name)
        })
        .map(|(name, head, unit)| (*name, format!("{head}\n{unit}")))
        .collect();
    // What this table does not know by name is not lost.
    let known = |name: &str| {
        FIELD.iter().any(|(field, _)| *field == name)
            || OTHER_NAMES.contains(&name)
            || TIME.iter().chain(&UPKEEP).any(|(other, ..)| *other == name)
            || lsm::is_told(name)
            || COSTS.iter().any(|(cost, ..)| *cost == name)
    };
    let others: BTreeSet<&str> = matrix
        .rows_of(step)
        .flat_map(|row| row.metrics.iter())
        .filter(|(name, value)| value.is_some() && !known(name))
        .map(|(name, _)| *name)
        .collect();
    columns.extend(others.into_iter().map(|name| (name, name.to_string())));
    let mut table = metric_table(matrix, step, &columns);
    table.id = format!("costs-{}", anchor(step.name));
    table.title = format!("Cost per {}; host includes client and server", noun(step));
    table
}

/// How often commits were made durable, how much more was written than was inserted, and what work the engine had put
/// off when the step ended; `None` where no target tells any of it.
pub(crate) fn upkeep(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let columns: Vec<(&str, String)> = UPKEEP
        .iter()
        .filter(|(name, ..)| applies(matrix, step, name))
        // Where it stands among what else is told of the tree, it is not told twice.
        .filter(|(name, ..)| !(lsm::is_lsm(matrix, step) && lsm::is_told(name)))
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

/// Whether any line has this metric in a step.
fn applies(matrix: &Matrix<'_>, step: StepHead<'_>, name: &str) -> bool {
    matrix
        .rows_of(step)
        .any(|row| row.metrics.get(name).copied().flatten().is_some())
}

/// Some metrics of one step, one row per line. What applies to no line is named below instead of taking a column.
fn metric_table(matrix: &Matrix<'_>, step: StepHead<'_>, columns: &[(&str, String)]) -> Table {
    figure_table(matrix, step, columns, |row, name| {
        row.metrics.get(name).copied().flatten()
    })
}

/// The same of figures that `value` takes from a row by their names.
pub(crate) fn figure_table(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    columns: &[(&str, String)],
    value: impl Fn(&Row, &str) -> Option<f64>,
) -> Table {
    let values = |name: &str| -> Vec<f64> {
        matrix
            .rows_of(step)
            .filter_map(|row| value(row, name))
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
            .map(|((name, _), decimals)| match value(row, name) {
                Some(value) if lsm::is_coarse(row, name) => {
                    Cell::toned(fixed(value, *decimals), Tone::Coarse)
                }
                Some(value) => Cell::plain(fixed(value, *decimals)),
                None => Cell::not_applicable(),
            })
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
    if !absent.is_empty()
        && matrix
            .rows_of(step)
            .any(|row| row.status == Status::Complete)
    {
        let names: Vec<_> = absent.iter().map(|(name, _)| *name).collect();
        table.notes.push(format!("n/a: {}", names.join(", ")));
    }
    table.with_legend()
}
