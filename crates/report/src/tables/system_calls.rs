//! The system calls of an operation, by kind.

use std::collections::BTreeMap;

use words::Decimals;

use crate::model::matrix::{Matrix, StepHead};
use crate::model::table::{Cell, Table, anchor};

/// The number of kinds that the table has columns for.
const KINDS: usize = 12;

/// Returns the engine's system calls per operation in one step, the most frequent kinds first.
/// `None` if none was counted.
pub(crate) fn system_calls(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for row in matrix.rows_of(step) {
        for (name, calls) in &row.system_calls {
            *totals.entry(name).or_default() += calls;
        }
    }
    if totals.is_empty() {
        return None;
    }

    let counted_kinds = totals.len();
    let mut kinds: Vec<(&str, f64)> =
        totals.into_iter().filter(|(_, total)| *total > 0.0).collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let made_kinds = kinds.len();
    kinds.truncate(KINDS);

    let heads = kinds.iter().map(|(name, _)| name.replacen('_', "_\n", 1));
    let mut table = Table::new(
        format!("system-calls-{}", anchor(step.name)),
        "System calls of the engine per operation",
        matrix.lead(),
        heads,
    );
    table.across = true;
    for (line, row) in matrix.lines_in(step) {
        let mut cells = Vec::new();
        for (name, _) in &kinds {
            let calls = row.system_calls.get(*name).copied();
            cells.push(Cell::number(calls, Decimals::PerOperation.of(calls)));
        }
        table.push(matrix.lead_of(line), cells);
    }

    let mut note = format!("{counted_kinds} kinds were counted; {made_kinds} of them were called");
    if made_kinds > KINDS {
        note.push_str(&format!(", of which the {KINDS} most frequent are listed"));
    }
    table.notes.push(note);
    Some(table)
}
