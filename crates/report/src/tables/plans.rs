//! The plans of a step's statements.

use record::CellKey;
use words::{excerpt, shape_of};

use crate::model::matrix::{Matrix, StepHead};
use crate::model::table::{Cell, Table, anchor};

/// The maximum length of a statement or a line of a plan in a table, in characters.
const CHARS: usize = 100;

/// Returns a statement or a line of a plan, shortened if it is long.
pub(crate) fn shortened(text: &str) -> String {
    excerpt(text, CHARS)
}

/// Returns the plans of the statements in one step: of the first repeat, and of others whose plans
/// are not the same. `None` if no engine has plans.
pub(crate) fn plans(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let mut table = Table::new(
        format!("plans-{}", anchor(step.name)),
        "Plans of statements after the step",
        [matrix.lead(), vec!["statement and plan".to_owned()]].concat(),
        [""],
    );

    // Repeats whose plans differ only in estimates would fill the table with the same lines.
    let mut known: Vec<(&CellKey, String)> = Vec::new();
    for (line, row) in matrix.lines_in(step) {
        for plan in &row.plans {
            let text = plan.error.as_ref().unwrap_or(&plan.plan);
            let shape = plan.key() + &shape_of(text);
            let is_known =
                known.iter().any(|(cell, known)| cell.is_repeat_of(line.cell) && *known == shape);
            if is_known {
                continue;
            }
            known.push((line.cell, shape));

            let lines = text.lines().map(|line| format!("  {}", shortened(line)));
            for text in std::iter::once(shortened(&plan.statement)).chain(lines) {
                table.push([matrix.lead_of(line), vec![text]].concat(), vec![Cell::default()]);
            }
        }
    }

    (!table.is_empty()).then_some(table)
}
