//! The tables of log-structured merge trees: write stalls and their reasons, amplification, the
//! shape of the tree, and the columns of db_bench's summaries.

use std::collections::{BTreeMap, BTreeSet};

use analysis::figures::{COARSE_SHARE, Level, Row};
use words::metric::{
    Columns, LSM_SETTLED, LSM_STALLS, LSM_STATE, LSM_SUMMARY, LSM_WORK, LSM_WORK_IDLE,
};

use crate::model::grid;
use crate::model::matrix::{Matrix, StepHead};
use crate::model::number::fixed;
use crate::model::operations::{noun, time_of};
use crate::model::table::{Cell, Table, TableHeading, Tone, anchor};
use crate::model::worth::{ended_row, marked_if_invalid};
use crate::tables::metrics::{Column, figure_table};

/// The reasons of stalls and their totals: the library's name, and the column header.
const REASONS: [(&str, &str); 4] = [
    ("l0-file-count-limit", "\nl0-file-\ncount-limit"),
    ("memtable-limit", "\nmemtable-\nlimit"),
    ("pending-compaction-bytes", "pending-\ncompaction-\nbytes"),
    ("total", "\n\ntotal"),
];

/// Figures by the library's clock, which runs on while other targets have their turns.
const CLOCK_FIGURES: [&str; 3] = ["c_wsecs", "c_wsecs_settled", "uptime"];

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
    const WORK: [&str; 6] =
        ["c_wgb", "c_wgb_settled", "compaction_read_gb", "wal_gb", "stall_s", "Nstall"];
    let is_written = row.ops.iter().any(|(kind, op)| row.role_of(kind).writes() && op.count > 0);
    let has_grown = |name: &str| metric(row, name).is_some_and(|value| value > 0.0);
    !is_written && !WORK.into_iter().any(has_grown)
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
        let is_reported = matrix.rows_of(*step).any(|row| metric(row, NAME).is_some());
        is_reported && !all_idle(matrix, *step)
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

    let tables = [
        work(matrix, step, is_idle),
        Some(state(matrix, step, is_idle)),
        stalls(matrix, step),
        stall_seconds(matrix, step),
        levels(matrix, step),
        Some(summary(matrix, step)),
    ];
    tables.into_iter().flatten().collect()
}

/// Returns the amplification; `None` if trees were idle and no engine reports the cost of reading.
fn work(matrix: &Matrix<'_>, step: StepHead<'_>, is_idle: bool) -> Option<Table> {
    if !is_idle {
        let title = "LSM tree: amplification, and what flushes and compactions did";
        return Some(columns_table(matrix, step, "lsm-work", title, &[LSM_WORK]));
    }

    // If trees were only read, zeros for writes say nothing, but the cost of reading matters.
    let is_read = matrix
        .rows_of(step)
        .any(|row| metric(row, "r_amp").is_some() || metric(row, "cache_hit%").is_some());
    let title = "LSM tree: amplification";
    is_read.then(|| columns_table(matrix, step, "lsm-work", title, &[LSM_WORK_IDLE]))
}

fn state(matrix: &Matrix<'_>, step: StepHead<'_>, is_idle: bool) -> Table {
    if is_idle {
        let title = "LSM tree: pending compaction, and its shape";
        columns_table(matrix, step, "lsm-state", title, &[LSM_STATE])
    } else {
        let title = "LSM tree: write stalls, pending compaction, and its shape";
        columns_table(matrix, step, "lsm-state", title, &[LSM_STALLS, LSM_STATE])
    }
}

fn columns_table(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    id: &str,
    title: &str,
    parts: &[&Columns],
) -> Table {
    let columns: Vec<Column> = parts.iter().flat_map(|names| Column::all(names)).collect();
    figure_table(matrix, step, TableHeading { id, title }, &columns, metric)
}

/// A column of the number of stalls with one reason.
struct StallColumn {
    /// The name of the count, as the library reports it.
    name: String,
    head: String,
}

/// Returns the number of times that writes were delayed and stopped, by reason; `None` if they
/// never were, or if no engine counts.
fn stalls(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    let mut is_any_above_zero = false;
    for (name, count) in
        matrix.rows_of(step).filter_map(|row| row.lsm.as_ref()).flat_map(|lsm| &lsm.stalls)
    {
        reported.insert(name);
        is_any_above_zero |= *count > 0.0;
    }
    if !is_any_above_zero {
        return None;
    }

    let columns = stall_columns(&reported);
    let heading = TableHeading {
        id: "lsm-stalls",
        title: "Write stalls by reason: how often writes were delayed and stopped",
    };
    let heads = columns.iter().map(|column| column.head.clone());
    let mut table = table_of_trees(matrix, step, heading, heads, |row| {
        columns.iter().map(|column| Cell::number(stall_count(row, &column.name), 0)).collect()
    });

    // The other reasons are not part of the totals, and mostly zero.
    for name in reported {
        if !columns.iter().any(|column| column.name == name) {
            table.notes.extend(other_stalls(matrix, step, name));
        }
    }
    Some(table)
}

/// Returns the columns of the reasons that any line reports, delays before stops.
fn stall_columns(reported: &BTreeSet<&str>) -> Vec<StallColumn> {
    let mut columns = Vec::new();
    for event in ["delays", "stops"] {
        for (reason, head) in REASONS {
            let name = format!("{reason}-{event}");
            if reported.contains(name.as_str()) {
                columns.push(StallColumn { name, head: format!("{head}\n{event}") });
            }
        }
    }
    columns
}

/// Returns the note about a reason without a column; `None` if it stalled nothing.
fn other_stalls(matrix: &Matrix<'_>, step: StepHead<'_>, name: &str) -> Option<String> {
    let mut counts = Vec::new();
    for (line, row) in matrix.lines_in(step) {
        if let Some(count) = stall_count(row, name).filter(|count| *count > 0.0) {
            counts.push(format!("{} {}", matrix.label(line), fixed(count, 0)));
        }
    }
    (!counts.is_empty()).then(|| format!("not in the totals, `{name}`: {}", counts.join(", ")))
}

fn stall_count(row: &Row, name: &str) -> Option<f64> {
    row.lsm.as_ref()?.stalls.get(name).copied()
}

/// Returns the time that each reason stalled writes; `None` if nothing did, or if no engine reports
/// it.
fn stall_seconds(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let reasons: BTreeSet<&String> =
        matrix.rows_of(step).filter_map(seconds_of).flat_map(BTreeMap::keys).collect();
    if reasons.is_empty() {
        return None;
    }

    let heads = reasons.iter().map(|reason| format!("{reason}\ns"));
    let mut table = table_of_trees(
        matrix,
        step,
        TableHeading {
            id: "lsm-stall-time",
            title: "Write stalls by reason: how long writes were stalled",
        },
        heads.chain(["total\ns".to_string()]),
        |row| {
            // An engine that reports any reason had none of the others.
            let of_row = seconds_of(row);
            let seconds = reasons
                .iter()
                .map(|reason| of_row.map(|all| all.get(*reason).copied().unwrap_or(0.0)));
            let total = metric(row, "stall_s");
            seconds.chain([total]).map(|seconds| Cell::number(seconds, 1)).collect()
        },
    );
    table.notes.push(
        "the stalled time of a second is divided among its reasons in proportion to their counts; `unknown`: no reason counted"
            .to_string(),
    );
    Some(table)
}

/// Returns the stalled time by reason; `None` if nothing stalled, or if the engine does not report
/// it.
fn seconds_of(row: &Row) -> Option<&BTreeMap<String, f64>> {
    let seconds = &row.lsm.as_ref()?.stall_seconds;
    (!seconds.is_empty()).then_some(seconds)
}

/// Returns the levels at the end of the step, and the flushes and compactions into them; `None` if
/// no engine reports them.
fn levels(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let all = || matrix.rows_of(step).flat_map(levels_of);
    let used: BTreeSet<u32> =
        all().filter(|level| is_used(level)).map(|level| level.number).collect();
    if used.is_empty() {
        return None;
    }

    let shown: Vec<&LevelFigure> = LEVEL_FIGURES
        .iter()
        .filter(|figure| all().any(|level| (figure.value)(level).is_some()))
        .collect();

    let mut lead = vec!["level".to_string()];
    lead.extend(matrix.lead());

    let mut table = Table::new(
        format!("lsm-levels-{}", anchor(step.name)),
        "LSM tree: levels at the end of the step, and flushes and compactions into them",
        lead,
        shown.iter().map(|figure| figure.head),
    );

    for &number in &used {
        for (line, row) in matrix.lines_in(step).filter(|(_, row)| row.lsm.is_some()) {
            let mut lead = vec![format!("L{number}")];
            lead.extend(matrix.lead_of(line));
            let cells = shown.iter().map(|figure| figure.cell(levels_of(row), number)).collect();
            table.push(lead, marked_if_invalid(row, cells, 0));
        }
    }

    table.names = [
        "`score`: from 1 on the level needs compaction",
        "`read`, `written`, `time`, `jobs`: of flushes and compactions into the level",
    ]
    .map(str::to_string)
    .into();
    table.notes.extend(clock_note(matrix, step, "`time`"));
    Some(table)
}

/// Returns the note about figures that do not exist in turns; `None` if no target of the step took
/// turns.
fn clock_note(matrix: &Matrix<'_>, step: StepHead<'_>, figures: &str) -> Option<String> {
    let is_any_in_turns = matrix.rows_of(step).any(|row| row.turns.is_some());
    is_any_in_turns.then(|| {
        format!(
            "{figures} is n/a in turns: the library's clock runs on while other targets have their turns"
        )
    })
}

/// A figure of each level of a tree.
struct LevelFigure {
    head: &'static str,
    decimals: usize,
    value: fn(&Level) -> Option<f64>,
    /// True if the figure is a sum of rounded sizes.
    is_rounded: bool,
}

const LEVEL_FIGURES: [LevelFigure; 7] = {
    const fn exact(
        head: &'static str,
        decimals: usize,
        value: fn(&Level) -> Option<f64>,
    ) -> LevelFigure {
        LevelFigure { head, decimals, value, is_rounded: false }
    }
    const fn rounded_gb(head: &'static str, value: fn(&Level) -> Option<f64>) -> LevelFigure {
        LevelFigure { head, decimals: 1, value, is_rounded: true }
    }
    [
        exact("files", 0, |level| level.files),
        exact("size\nMB", 1, |level| Some(level.bytes? / MIB)),
        exact("score", 2, |level| level.score),
        rounded_gb("read\nGB", |level| Some(level.read_bytes? / GIB)),
        rounded_gb("written\nGB", |level| Some(level.written_bytes? / GIB)),
        exact("time\ns", 1, |level| level.compaction_seconds),
        exact("jobs", 0, |level| level.compaction_count),
    ]
};

impl LevelFigure {
    fn cell(&self, levels: &[Level], number: u32) -> Cell {
        let Some(level) = levels.iter().find(|level| level.number == number) else {
            // A level that the engine omits was never used.
            let is_reported = levels.iter().any(|level| (self.value)(level).is_some());
            return Cell::number(is_reported.then_some(0.0), self.decimals);
        };

        let value = (self.value)(level);
        let rounded_gb = level.rounding_bytes / GIB;
        match value {
            Some(value) if self.is_rounded && value > 0.0 && rounded_gb > COARSE_SHARE * value => {
                Cell::toned(fixed(value, self.decimals), Tone::Coarse)
            }
            value => Cell::number(value, self.decimals),
        }
    }
}

fn levels_of(row: &Row) -> &[Level] {
    row.lsm.as_ref().map_or(&[], |lsm| &lsm.levels)
}

/// Returns true for the first level, and for levels that have files or had compactions.
fn is_used(level: &Level) -> bool {
    level.number == 0
        || level.files.is_none_or(|files| files > 0.0)
        || level.compaction_count.is_some_and(|count| count > 0.0)
}

/// Returns a table with one row for each line that ran the step and whose engine has a tree.
fn table_of_trees(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    heading: TableHeading<'_>,
    heads: impl IntoIterator<Item = String>,
    cells: impl Fn(&Row) -> Vec<Cell>,
) -> Table {
    let id = format!("{}-{}", heading.id, anchor(step.name));
    let mut table = Table::new(id, heading.title, matrix.lead(), heads);
    for (line, row) in matrix.lines_in(step).filter(|(_, row)| row.lsm.is_some()) {
        table.push(matrix.lead_of(line), marked_if_invalid(row, cells(row), 0));
    }
    table
}

/// Returns the columns of db_bench's summaries, corrected.
fn summary(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let is_settled = matrix.rows_of(step).any(|row| {
        let has_settled = row.lsm.as_ref().is_some_and(|lsm| lsm.settled);
        has_settled && metric(row, "c_wgb_settled").is_some()
    });

    let mut columns = Column::all(LSM_SUMMARY);
    if is_settled {
        for column in &mut columns {
            if let Some((_, settled)) = LSM_SETTLED.iter().find(|(own, _)| *own == column.name) {
                column.name = settled;
            }
        }
    }

    let value = |row: &Row, name: &str| {
        if name.starts_with("service_us_") {
            time_of(row.ops.get(step.main_op?.kind)?, name)
        } else {
            row.metric(name)
        }
    };

    let note_in_turns =
        clock_note(matrix, step, "time by the library's clock (`c_wsecs`, `uptime`)");
    if note_in_turns.is_some() {
        columns.retain(|column| {
            !CLOCK_FIGURES.contains(&column.name)
                || matrix.rows_of(step).any(|row| value(row, column.name).is_some())
        });
    }

    let title = format!(
        "Summary as in db_bench: sizes in GB, times of a {} in microseconds from sending to reply, CPU in seconds",
        noun(step)
    );

    let heading = TableHeading { id: "lsm-summary", title: &title };
    let mut table = figure_table(matrix, step, heading, &columns, value);

    if is_settled {
        let names: Vec<&str> = LSM_SETTLED
            .iter()
            .filter(|(_, settled)| columns.iter().any(|column| column.name == *settled))
            .map(|(name, _)| *name)
            .collect();
        table.notes.push(format!(
            "{} include the settling after the step, as in db_bench; the others are only of the step itself",
            names.join(", ")
        ));
    }
    table.notes.extend(note_in_turns);
    table
}
