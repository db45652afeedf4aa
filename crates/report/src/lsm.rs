//! Tables of what a log-structured merge tree did: how long it held writes up and why, how much more it wrote and holds
//! than it was given, its shape, and the columns of db_bench's summaries.

use std::collections::BTreeSet;

use analysis::Row;
use words::metric::{
    Columns, LSM_SETTLED, LSM_STALLS, LSM_STATE, LSM_SUMMARY, LSM_WORK, LSM_WORK_IDLE,
};

use crate::classic::{anchor, comparable, ended, per_step};
use crate::matrix::{Matrix, StepHead};
use crate::metrics::{Column, figure_table};
use crate::number::fixed;
use crate::operations::noun;
use crate::table::{Cell, Table, TableRow, Tone};

/// The reasons of stalls that add up to the totals, and the totals: the library's name, and what stands in a head.
const REASONS: [(&str, &str); 4] = [
    ("l0-file-count-limit", "\nl0-file-\ncount-limit"),
    ("memtable-limit", "\nmemtable-\nlimit"),
    ("pending-compaction-bytes", "pending-\ncompaction-\nbytes"),
    ("total", "\n\ntotal"),
];

/// Whether any line's engine has such a tree.
pub(crate) fn is_lsm(matrix: &Matrix<'_>, step: StepHead<'_>) -> bool {
    matrix.rows_of(step).any(|row| row.lsm.is_some())
}

/// Whether more than a twentieth of a figure may be rounding.
pub(crate) fn is_coarse(row: &Row, name: &str) -> bool {
    row.lsm
        .as_ref()
        .is_some_and(|lsm| lsm.coarse.contains(name))
}

/// Whether a tree had nothing to do but to be read: nothing was written to it, and nothing flushed or compacted.
fn is_idle(row: &Row) -> bool {
    let is_written = |kind: &&str| row.ops.get(*kind).is_some_and(|op| op.count > 0);
    let has_grown = |name: &&str| metric(row, name).is_some_and(|value| value > 0.0);
    !["insert", "put", "delete"].iter().any(is_written)
        && ![
            "c_wgb",
            "c_wgb_settled",
            "compaction_read_gb",
            "wal_gb",
            "stall_s",
            "Nstall",
        ]
        .iter()
        .any(has_grown)
}

/// Whether all trees of a step had nothing to do but to be read.
fn all_idle(matrix: &Matrix<'_>, step: StepHead<'_>) -> bool {
    let mut rows = matrix.rows_of(step).filter(|row| row.lsm.is_some());
    rows.all(is_idle)
}

fn metric(row: &Row, name: &str) -> Option<f64> {
    row.lsm.as_ref()?;
    row.metric(name)
}

/// How much of each step writes were held up; `None` where no engine tells.
pub(crate) fn stalled(matrix: &Matrix<'_>) -> Option<Table> {
    const NAME: &str = "stall%";
    let steps: Vec<_> = matrix
        .measured()
        .filter(|step| matrix.rows_of(*step).any(|row| metric(row, NAME).is_some()))
        .filter(|step| !all_idle(matrix, *step))
        .collect();
    if steps.is_empty() {
        return None;
    }
    let mut table = per_step(matrix, &steps, |line, step| {
        let row = match ended(matrix, line, step) {
            Ok(row) => row,
            Err(cell) => return cell,
        };
        match metric(row, NAME) {
            Some(value) => {
                let text = fixed(value, 1);
                if comparable(row) {
                    Cell::plain(text)
                } else {
                    Cell::toned(text, Tone::Invalid)
                }
            }
            None => Cell::not_applicable(),
        }
    });
    table.id = "stalled".to_string();
    table.title = "Write stalls: percent of each step's time".to_string();
    Some(table.with_legend())
}

/// The tables of one step, in the order in which they are shown; none where no engine has such a tree.
pub(crate) fn tables(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    if !is_lsm(matrix, step) {
        return Vec::new();
    }
    let is_idle = all_idle(matrix, step);
    // Of a tree that was only read, zeros of what it did not do say nothing; what reading it took does.
    let is_read = matrix.rows_of(step).any(|row| {
        ["r_amp", "cache_hit%"]
            .iter()
            .any(|name| metric(row, name).is_some())
    });
    let work = (!is_idle || is_read).then(|| match is_idle {
        true => named(
            matrix,
            step,
            ("lsm-work", "LSM tree: amplification"),
            &[LSM_WORK_IDLE],
        ),
        false => {
            let title = "LSM tree: amplification, and what flushes and compactions did";
            named(matrix, step, ("lsm-work", title), &[LSM_WORK])
        }
    });
    let state = match is_idle {
        true => {
            let title = "LSM tree: pending compaction, and its shape";
            named(matrix, step, ("lsm-state", title), &[LSM_STATE])
        }
        false => {
            let title = "LSM tree: write stalls, pending compaction, and its shape";
            named(matrix, step, ("lsm-state", title), &[LSM_STALLS, LSM_STATE])
        }
    };
    [
        work,
        Some(state),
        stalls(matrix, step),
        levels(matrix, step),
    ]
    .into_iter()
    .flatten()
    .chain([summary(matrix, step)])
    .collect()
}

fn named(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    (id, title): (&str, &str),
    columns: &[&Columns],
) -> Table {
    let columns: Vec<Column> = columns.iter().flat_map(|it| Column::all(it)).collect();
    let mut table = figure_table(matrix, step, &columns, metric);
    table.id = format!("{id}-{}", anchor(step.name));
    table.title = title.to_string();
    table
}

/// How often writes were delayed and stopped, by reason; `None` where nobody counts, and where they never were.
fn stalls(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let counts = || {
        let lsm = matrix.rows_of(step).filter_map(|row| row.lsm.as_ref());
        lsm.flat_map(|lsm| &lsm.stalls)
    };
    if !counts().any(|(_, &count)| count > 0.0) {
        return None;
    }
    let told: BTreeSet<&str> = counts().map(|(reason, _)| reason.as_str()).collect();
    let mut columns: Vec<(String, String)> = Vec::new();
    for sort in ["delays", "stops"] {
        for (reason, head) in REASONS {
            columns.push((format!("{reason}-{sort}"), format!("{head}\n{sort}")));
        }
    }
    columns.retain(|(name, _)| told.contains(name.as_str()));
    let is_summed = |name: &str| columns.iter().any(|(known, _)| known == name);
    let others: Vec<&str> = told
        .iter()
        .copied()
        .filter(|name| !is_summed(name))
        .collect();
    let count = |row: &Row, name: &str| row.lsm.as_ref()?.stalls.get(name).copied();
    let cell = |row: &Row, name: &str| match count(row, name) {
        Some(count) => Cell::plain(fixed(count, 0)),
        None => Cell::not_applicable(),
    };
    let mut table = rows_of(matrix, step, |row| {
        columns.iter().map(|(name, _)| cell(row, name)).collect()
    });
    table.id = format!("lsm-stalls-{}", anchor(step.name));
    table.title = "Write stalls by reason: how often writes were delayed and stopped".to_string();
    table.columns = columns.iter().map(|(_, head)| head.clone()).collect();
    // They are no part of the totals, and mostly nothing.
    for name in others {
        let lines = matrix.lines.iter().filter_map(|line| {
            let count = count(line.row(step.name)?, name).filter(|&count| count > 0.0)?;
            Some(format!("{} {}", matrix.label(line), fixed(count, 0)))
        });
        let lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            table
                .notes
                .push(format!("not in the totals, `{name}`: {}", lines.join(", ")));
        }
    }
    Some(table.with_legend())
}

/// Files and megabytes of each level when the step had ended; `None` where nobody tells.
fn levels(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let of = |row: &'_ Row| row.lsm.clone().map(|lsm| lsm.levels).unwrap_or_default();
    let used: BTreeSet<u32> = matrix
        .rows_of(step)
        .flat_map(of)
        .filter(|level| level.number == 0 || level.files.is_none_or(|files| files > 0.0))
        .map(|level| level.number)
        .collect();
    if used.is_empty() {
        return None;
    }
    let mut table = rows_of(matrix, step, |row| {
        let levels = of(row);
        let tells = row.lsm.is_some() && !levels.is_empty();
        used.iter()
            .flat_map(|&number| {
                let level = levels.iter().find(|level| level.number == number);
                let cell = |value: Option<f64>, decimals| match (value, level) {
                    (Some(value), _) => Cell::plain(fixed(value, decimals)),
                    // A level that was never used.
                    (None, None) if tells => Cell::plain(fixed(0.0, decimals)),
                    (None, _) => Cell::not_applicable(),
                };
                [
                    cell(level.and_then(|level| level.files), 0),
                    cell(level.and_then(|level| Some(level.bytes? / 1_048_576.0)), 1),
                ]
            })
            .collect()
    });
    table.id = format!("lsm-levels-{}", anchor(step.name));
    table.title = "LSM tree: levels when the step had ended".to_string();
    table.columns = used
        .iter()
        .flat_map(|number| [format!("L{number}\nfiles"), format!("L{number}\nMB")])
        .collect();
    Some(table.with_legend())
}

/// One row for each line that did the step and whose engine has a tree.
fn rows_of(matrix: &Matrix<'_>, step: StepHead<'_>, cells: impl Fn(&Row) -> Vec<Cell>) -> Table {
    let rows = matrix.lines.iter().filter_map(|line| {
        let row = line.row(step.name).filter(|row| row.lsm.is_some())?;
        let mut cells = cells(row);
        if !comparable(row) {
            cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
            if let Some(first) = cells.first_mut() {
                first.mark = Tone::Invalid.mark().to_string();
            }
        }
        Some(TableRow {
            lead: matrix.lead_of(line),
            cells,
            target: false,
        })
    });
    Table {
        lead: matrix.lead(),
        rows: rows.collect(),
        ..Table::default()
    }
}

/// The columns of db_bench's summaries, computed right.
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
    let value = |row: &Row, name: &str| match name.strip_prefix("service_us_") {
        Some(of) => {
            let op = row.ops.get(step.main_op?).filter(|op| op.count > 0)?;
            Some(match of {
                "p50" => op.service_us.p50,
                "p99" => op.service_us.p99,
                "p99_9" => op.service_us.p99_9,
                "p99_99" => op.service_us.p99_99,
                _ => op.service_us.max,
            })
        }
        None => row.metric(name),
    };
    let mut table = figure_table(matrix, step, &columns, value);
    table.id = format!("lsm-summary-{}", anchor(step.name));
    table.title = format!(
        "Summary as of db_bench: sizes in GB, times of a {} in microseconds from sending to reply, CPU in seconds",
        noun(step)
    );
    if is_settled {
        let names: Vec<&str> = LSM_SETTLED.iter().map(|(name, _)| *name).collect();
        table.notes.push(format!(
            "{} are until the settling that follows the step was over too, as db_bench has them; the others are of the \
             step itself",
            names.join(", ")
        ));
    }
    table
}
