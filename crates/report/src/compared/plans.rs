//! The statements whose plans differ between a target and its base.

use analysis::{Compared, PlanDifference};

use crate::export::cell_name;
use crate::plans::shortened;
use crate::table::{Cell, STEP, Table};

/// The number of lines of each plan that the table lists.
const LISTED: usize = 4;

/// Returns a table of the lines that only one of two plans has. It has no rows if there are none.
pub(super) fn table(compared: &Compared) -> Table {
    let mut table = Table::new(
        "compared-plans",
        format!("Plans that differ from {}", compared.base),
        ["target", STEP, "plan of", "statement, and lines of one plan only"]
            .map(str::to_owned)
            .to_vec(),
        [""],
    );
    for step in &compared.plans {
        for difference in &step.statements {
            let PlanDifference { statement, .. } = difference;
            let statement = ("", vec![shortened(statement)]);
            let [base, target] = difference.lines();
            let lines = |lines: Vec<&str>| lines.into_iter().take(LISTED).map(shortened).collect();
            for (of, lines) in [statement, ("base", lines(base)), ("target", lines(target))] {
                for line in lines {
                    let lead = [cell_name(&step.cell), step.step.clone(), of.to_owned(), line];
                    table.push(lead.to_vec(), vec![Cell::default()]);
                }
            }
        }
    }
    table.notes.push(format!(
        "Estimates, numbers and values are not compared; the first {LISTED} lines of each plan are listed, and `assay show RUN --table plans` prints all"
    ));
    table
}
