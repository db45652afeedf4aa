//! The tables of log-structured merge trees: write stalls and their reasons, amplification, the
//! shape of the tree, and the columns of db_bench's summaries.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{COARSE_SHARE, Level, Row};
use words::metric::{
    Columns, LSM_SETTLED, LSM_STALLS, LSM_STATE, LSM_SUMMARY, LSM_WORK, LSM_WORK_IDLE,
};

use crate::grid;
use crate::matrix::{Matrix, StepHead};
use crate::metrics::{Column, figure_table};
use crate::number::fixed;
use crate::operations::{noun, time_of};
use crate::table::{Cell, Table, Tone, anchor};
use crate::worth::{ended_row, marked_if_invalid};

/// The reasons of stalls and their totals: the library's name, and the head of the column.
const REASONS: [(&str, &str); 4] = [
    ("l0-file-count-limit", "\nl0-file-\ncount-limit"),
    ("memtable-limit", "\nmemtable-\nlimit"),
    ("pending-compaction-bytes", "pending-\ncompaction-\nbytes"),
    ("total", "\n\ntotal"),
];

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1024.0 * MIB;

/// Returns true if any line's engine has such a tree.
pub(crate) fn is_lsm(matrix: &Matrix<'_>, step: StepHead<'_>) -> bool {
    matrix.rows_of(step).any(|row| row.lsm.is_some())
}

/// Returns true if more than 5% of a figure may be rounding.
pub(crate) fn is_coarse(row: &Row, name: &str) -> bool {
    row.lsm.as_ref().is_some_and(|lsm| lsm.coarse.contains(name))
}

/// Returns true if a tree was only read: nothing was written, flushed or compacted.
fn is_idle(row: &Row) -> bool {
    let is_written = |kind: &&str| row.ops.get(*kind).is_some_and(|op| op.count > 0);
    let has_grown = |name: &&str| metric(row, name).is_some_and(|value| value > 0.0);
    !["insert", "put", "delete"].iter().any(is_written)
        && !["c_wgb", "c_wgb_settled", "compaction_read_gb", "wal_gb", "stall_s", "Nstall"]
            .iter()
            .any(has_grown)
}

/// Returns true if all trees of a step were only read.
fn all_idle(matrix: &Matrix<'_>, step: StepHead<'_>) -> bool {
    let mut rows = matrix.rows_of(step).filter(|row| row.lsm.is_some());
    rows.all(is_idle)
}

fn metric(row: &Row, name: &str) -> Option<f64> {
    row.lsm.as_ref()?;
    row.metric(name)
}

/// Returns the share of each step in which writes were stalled; empty if no engine reports it.
pub(crate) fn stalled(matrix: &Matrix<'_>) -> Table {
    const NAME: &str = "stall%";
    let has_stalls = |step: &StepHead<'_>| {
        let mut rows = matrix.rows_of(*step);
        rows.any(|row| metric(row, NAME).is_some()) && !all_idle(matrix, *step)
    };
    let steps = matrix.measured().filter(has_stalls).collect();
    let mut table = grid::of_lines(matrix, None, steps).table("stalled", |line, step| {
        let row = match ended_row(matrix, line, step) {
            Ok(row) => row,
            Err(cell) => return cell,
        };
        let Some(value) = metric(row, NAME) else {
            return Cell::not_applicable();
        };
        let cell = Cell::plain(fixed(value, 1));
        marked_if_invalid(row, vec![cell], 0).remove(0)
    });
    table.title = "Write stalls: percent of each step's time".to_string();
    table
}

/// Returns the tables of one step in their order; empty if no engine has such a tree.
pub(crate) fn tables(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    if !is_lsm(matrix, step) {
        return Vec::new();
    }
    let is_idle = all_idle(matrix, step);
    // If trees were only read, zeros for writes say nothing, but the cost of reading matters.
    let is_read = matrix
        .rows_of(step)
        .any(|row| ["r_amp", "cache_hit%"].iter().any(|name| metric(row, name).is_some()));
    let columns_table = |id: &str, title: &str, columns: &[&Columns]| {
        let columns: Vec<Column> = columns.iter().flat_map(|it| Column::all(it)).collect();
        figure_table(matrix, step, (id, title), &columns, metric)
    };
    let work = if is_idle {
        is_read.then(|| columns_table("lsm-work", "LSM tree: amplification", &[LSM_WORK_IDLE]))
    } else {
        let title = "LSM tree: amplification, and what flushes and compactions did";
        Some(columns_table("lsm-work", title, &[LSM_WORK]))
    };
    let state = if is_idle {
        let title = "LSM tree: pending compaction, and its shape";
        columns_table("lsm-state", title, &[LSM_STATE])
    } else {
        let title = "LSM tree: write stalls, pending compaction, and its shape";
        columns_table("lsm-state", title, &[LSM_STALLS, LSM_STATE])
    };
    let others = [
        Some(state),
        stalls(matrix, step),
        stall_seconds(matrix, step),
        levels(matrix, step),
        Some(summary(matrix, step)),
    ];
    work.into_iter().chain(others.into_iter().flatten()).collect()
}

/// Returns the number of times that writes were delayed and stopped, by reason; `None` if they
/// never were, or if no engine counts.
fn stalls(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let counts = || {
        let lsm = matrix.rows_of(step).filter_map(|row| row.lsm.as_ref());
        lsm.flat_map(|lsm| &lsm.stalls)
    };
    if !counts().any(|(_, &count)| count > 0.0) {
        return None;
    }
    let reported: BTreeSet<&str> = counts().map(|(reason, _)| reason.as_str()).collect();
    let mut columns: Vec<(String, String)> = Vec::new();
    for event in ["delays", "stops"] {
        for (reason, head) in REASONS {
            columns.push((format!("{reason}-{event}"), format!("{head}\n{event}")));
        }
    }
    columns.retain(|(name, _)| reported.contains(name.as_str()));
    let is_summed = |name: &str| columns.iter().any(|(known, _)| known == name);
    let others: Vec<&str> = reported.iter().copied().filter(|name| !is_summed(name)).collect();
    let count = |row: &Row, name: &str| row.lsm.as_ref()?.stalls.get(name).copied();
    let mut table = rows_of(
        matrix,
        step,
        ("lsm-stalls", "Write stalls by reason: how often writes were delayed and stopped"),
        columns.iter().map(|(_, head)| head.clone()),
        |row| {
            let counts = columns.iter().map(|(name, _)| count(row, name));
            counts.map(|count| Cell::number(count, 0)).collect()
        },
    );
    // These reasons are not part of the totals, and mostly zero.
    for name in others {
        let lines = matrix.lines_in(step).filter_map(|(line, row)| {
            let count = count(row, name).filter(|&count| count > 0.0)?;
            Some(format!("{} {}", matrix.label(line), fixed(count, 0)))
        });
        let lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            let lines = lines.join(", ");
            table.notes.push(format!("not in the totals, `{name}`: {lines}"));
        }
    }
    Some(table)
}

/// Returns the time that each reason stalled writes; `None` if nothing did, or if no engine reports
/// it.
fn stall_seconds(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    fn of(row: &Row) -> Option<&BTreeMap<String, f64>> {
        let lsm = row.lsm.as_ref()?;
        Some(&lsm.stall_seconds).filter(|seconds| !seconds.is_empty())
    }
    let reasons: BTreeSet<&String> =
        matrix.rows_of(step).filter_map(of).flat_map(BTreeMap::keys).collect();
    if reasons.is_empty() {
        return None;
    }
    let heads = reasons.iter().map(|reason| format!("{reason}\ns"));
    let title = "Write stalls by reason: how long writes were stalled";
    let mut table = rows_of(
        matrix,
        step,
        ("lsm-stall-time", title),
        heads.chain(["total\ns".to_string()]),
        |row| {
            let seconds =
                |reason: &&String| of(row).map(|all| all.get(*reason).copied().unwrap_or(0.0));
            let cells = reasons.iter().map(seconds).chain([metric(row, "stall_s")]);
            cells.map(|seconds| Cell::number(seconds, 1)).collect()
        },
    );
    table.notes.push(
        "the stalled time of a second is divided among its reasons in proportion to their counts; `unknown`: no reason counted"
            .to_string(),
    );
    Some(table)
}

/// Returns the levels at the end of the step, and the flushes and compactions into them; `None` if
/// no engine reports them.
fn levels(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    type Figure = fn(&Level) -> Option<f64>;
    const FIGURES: [(&str, usize, Figure); 7] = [
        ("files", 0, |level| level.files),
        ("size\nMB", 1, |level| Some(level.bytes? / MIB)),
        ("score", 2, |level| level.score),
        ("read\nGB", 1, |level| Some(level.read_bytes? / GIB)),
        ("written\nGB", 1, |level| Some(level.written_bytes? / GIB)),
        ("time\ns", 1, |level| level.compaction_seconds),
        ("jobs", 0, |level| level.compaction_count),
    ];
    let levels = |row: &Row| row.lsm.clone().map(|lsm| lsm.levels).unwrap_or_default();
    let is_used = |level: &Level| {
        level.number == 0
            || level.files.is_none_or(|files| files > 0.0)
            || level.compaction_count.is_some_and(|count| count > 0.0)
    };
    let all: Vec<Level> = matrix.rows_of(step).flat_map(levels).collect();
    let used: BTreeSet<u32> =
        all.iter().filter(|level| is_used(level)).map(|level| level.number).collect();
    if used.is_empty() {
        return None;
    }
    let shown: Vec<_> =
        FIGURES.iter().filter(|(.., of)| all.iter().any(|level| of(level).is_some())).collect();
    let mut lead = vec!["level".to_string()];
    lead.extend(matrix.lead());
    let mut table = Table::new(
        format!("lsm-levels-{}", anchor(step.name)),
        "LSM tree: levels at the end of the step, and flushes and compactions into them",
        lead,
        shown.iter().map(|(head, ..)| *head),
    );
    for &number in &used {
        for (line, row) in matrix.lines_in(step).filter(|(_, row)| row.lsm.is_some()) {
            let levels = levels(row);
            let level = levels.iter().find(|level| level.number == number);
            // A level that the engine omits was never used.
            let unused = |of: Figure| levels.iter().find_map(of).map(|_| 0.0);
            let cells = shown.iter().map(|(head, decimals, of)| {
                let value = level.map_or_else(|| unused(*of), of);
                let rounded = level.map_or(0.0, |level| level.rounding_bytes) / GIB;
                match value {
                    Some(value)
                        if head.ends_with("GB")
                            && value > 0.0
                            && rounded > COARSE_SHARE * value =>
                    {
                        Cell::toned(fixed(value, *decimals), Tone::Coarse)
                    }
                    value => Cell::number(value, *decimals),
                }
            });
            let mut lead = vec![format!("L{number}")];
            lead.extend(matrix.lead_of(line));
            table.push(lead, marked_if_invalid(row, cells.collect(), 0));
        }
    }
    table.names = [
        "`score`: from 1 on the level needs compaction",
        "`read`, `written`, `time`, `jobs`: of flushes and compactions into the level",
    ]
    .map(str::to_string)
    .into();
    Some(table)
}

/// Returns a table with one row for each line that ran the step and whose engine has a tree.
fn rows_of(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    (id, title): (&str, &str),
    heads: impl IntoIterator<Item = String>,
    cells: impl Fn(&Row) -> Vec<Cell>,
) -> Table {
    let id = format!("{id}-{}", anchor(step.name));
    let mut table = Table::new(id, title, matrix.lead(), heads);
    for (line, row) in matrix.lines_in(step).filter(|(_, row)| row.lsm.is_some()) {
        table.push(matrix.lead_of(line), marked_if_invalid(row, cells(row), 0));
    }
    table
}

/// Returns the columns of db_bench's summaries, corrected.
fn summary(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let is_settled = matrix.rows_of(step).any(|row| {
        let lsm = row.lsm.as_ref();
        lsm.is_some_and(|lsm| lsm.settled) && metric(row, "c_wgb_settled").is_some()
    });
    let mut columns = Column::all(LSM_SUMMARY);
    for column in columns.iter_mut().filter(|_| is_settled) {
        let mut settled = LSM_SETTLED.iter();
        if let Some((_, settled)) = settled.find(|(own, _)| *own == column.name) {
            column.name = settled;
        }
    }
    let value = |row: &Row, name: &str| {
        if name.starts_with("service_us_") {
            time_of(row.ops.get(step.main_op?)?, name)
        } else {
            row.metric(name)
        }
    };
    let title = format!(
        "Summary as in db_bench: sizes in GB, times of a {} in microseconds from sending to reply, CPU in seconds",
        noun(step)
    );
    let mut table = figure_table(matrix, step, ("lsm-summary", &title), &columns, value);
    if is_settled {
        let names: Vec<&str> = LSM_SETTLED.iter().map(|(name, _)| *name).collect();
        table.notes.push(format!(
            "{} include the settling after the step, as in db_bench; the others are only of the step itself",
            names.join(", ")
        ));
    }
    table
}
