//! The statements whose plans differ between a target and its base.

use analysis::compare::{Compared, ComparedPlans, PlanDifference};

use crate::model::names::cell_name;
use crate::model::table::{Cell, STEP, Table};
use crate::tables::plans::shortened;

/// The number of lines of each plan that the table lists.
const LISTED: usize = 4;

/// Returns a table of the lines that only one of two plans has. It has no rows if there are none.
pub(super) fn table(compared: &Compared) -> Table {
    let lead = ["target", STEP, "plan of", "statement, and lines of one plan only"];

    let mut table = Table::new(
        "compared-plans",
        format!("Plans that differ from {}", compared.base),
        lead.map(str::to_owned).to_vec(),
        [""],
    );

    for step in &compared.plans {
        for difference in &step.statements {
            add_difference(&mut table, step, difference);
        }
    }

    table.notes.push(format!(
        "Estimates, numbers and values are not compared; the first {LISTED} lines of each plan are listed, and `assay show RUN --table plans` prints all"
    ));
    table
}

/// Adds a row for the statement, and one for each line that only one plan has.
fn add_difference(table: &mut Table, step: &ComparedPlans, difference: &PlanDifference) {
    let [base, target] = difference.lines();
    let of_base = base.into_iter().take(LISTED).map(|line| ("base", line));
    let of_target = target.into_iter().take(LISTED).map(|line| ("target", line));
    let statement = std::iter::once(("", difference.statement.as_str()));

    for (plan_of, text) in statement.chain(of_base).chain(of_target) {
        let lead =
            vec![cell_name(&step.cell), step.step.clone(), plan_of.to_owned(), shortened(text)];

        // The text is the last column on the left; there are no figures.
        table.push(lead, vec![Cell::default()]);
    }
}
