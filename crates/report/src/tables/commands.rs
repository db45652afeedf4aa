//! The commands around a step, with what they printed.

use super::plans::shortened;
use crate::model::matrix::{Matrix, StepHead};
use crate::model::number::duration;
use crate::model::table::{Cell, Table, anchor};

/// The most lines of a command's output in a table; the record has more.
const LINES_MAX: usize = 40;

/// Returns the commands around one step, with the end of what each printed. `None` if the plan has
/// none.
pub(crate) fn commands(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let mut table = Table::new(
        format!("commands-{}", anchor(step.name)),
        "Commands before and after the step",
        [matrix.lead(), vec!["command and output".to_owned()]].concat(),
        [""],
    );

    for (line, row) in matrix.lines_in(step) {
        for command in &row.commands {
            let took = duration(command.took_ns as f64 / 1e9);
            let head = format!("{}, {took}: {}", command.key, command.ended);

            let printed: Vec<&str> = command.output.lines().collect();
            let start = printed.len().saturating_sub(LINES_MAX);
            let left_out = (start > 0).then(|| format!("  ({start} lines before these)"));
            let end = printed[start..].iter().map(|text| format!("  {}", shortened(text)));
            for text in [head].into_iter().chain(left_out).chain(end) {
                table.push([matrix.lead_of(line), vec![text]].concat(), vec![Cell::default()]);
            }
        }
    }

    (!table.is_empty()).then_some(table)
}
