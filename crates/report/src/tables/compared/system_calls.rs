//! System calls whose number per operation changed between a target and its base.

use analysis::compare::SystemCallDifference;

use super::functions::operation;
use crate::model::comparison::Comparison;
use crate::model::names::cell_name;
use crate::model::table::{Cell, STEP, Table, Tone};

/// The number of kinds that the table lists of one step of a target.
const LISTED: usize = 8;

/// The decimals of a number of calls.
const DECIMALS: usize = 3;

/// Returns a table of the kinds whose change is shown. It has no rows if there are none.
pub(super) fn table(comparison: &Comparison<'_>) -> Table {
    let compared = comparison.compared;
    let mut table = Table::new(
        "compared-system-calls",
        format!("System calls of the engine per operation, relative to {}", compared.base),
        ["target", STEP, "call", "operation"].map(str::to_owned).to_vec(),
        ["base", "target", "change", "\u{b1}"],
    );
    table.beside = vec![4];

    let (mut shown_count, mut count) = (0, 0);
    for step in &compared.system_calls {
        let shown: Vec<_> = step.kinds.iter().filter(|kind| kind.is_shown).collect();
        count += step.kinds.len();
        shown_count += shown.len();

        let operation = operation(comparison.figures, &step.cell, &step.step);
        for kind in shown.into_iter().take(LISTED) {
            let lead = vec![
                cell_name(&step.cell),
                step.step.clone(),
                kind.name.clone(),
                operation.to_owned(),
            ];
            table.push(lead, cells(kind));
        }
    }

    table.notes.push(format!(
        "{shown_count} of {count} numbers changed by more than 1%, 0.01 per operation and their intervals, which are corrected for the number of kinds; the largest {LISTED} of each step are listed"
    ));
    table
}

fn cells(kind: &SystemCallDifference) -> Vec<Cell> {
    let tone = if kind.difference > 0.0 { Tone::WorkGrew } else { Tone::WorkShrank };
    vec![
        Cell::number(Some(kind.base), DECIMALS),
        Cell::number(Some(kind.target), DECIMALS),
        Cell::toned(format!("{:+.DECIMALS$}", kind.difference), tone),
        Cell::number(Some(kind.margin), DECIMALS),
    ]
}
