//! Waits of sessions that changed between a target and its base.

use analysis::StateDifference;
use words::WaitView;

use super::Comparison;
use super::functions::{change, decimals, operation};
use crate::export::cell_name;
use crate::number::fixed;
use crate::table::{Cell, STEP, Table};

/// The number of states that the table lists of one view of a step of a target.
const LISTED: usize = 3;

/// Returns a table of the states of sessions whose change is shown. It has no rows if there are
/// none.
pub(super) fn table(comparison: &Comparison<'_>) -> Table {
    let compared = comparison.compared;
    let mut table = Table::new(
        "compared-waits",
        format!("Waits: us per operation, relative to {}", compared.base),
        ["target", STEP, "view", "state", "operation"].map(str::to_owned).to_vec(),
        ["base", "target", "change", "\u{b1}"],
    );
    table.beside = vec![4];
    let (mut shown, mut all) = (0, 0);
    for step in &compared.waits {
        all += step.states.len();
        let states = step.states.iter().filter(|it| it.time.is_shown);
        shown += states.clone().count();
        let listed = WaitView::ALL.into_iter().flat_map(|view| {
            let states = states.clone();
            states.filter(move |it| it.view == view).take(LISTED)
        });
        for StateDifference { view, name, time } in listed {
            let decimals = decimals(10.0 * time.base_us.max(time.target_us));
            let number = |value: f64| Cell::plain(fixed(value, decimals));
            let operation = operation(comparison.figures, &step.cell, &step.step);
            table.push(
                vec![
                    cell_name(&step.cell),
                    step.step.clone(),
                    view.name().to_owned(),
                    name.clone(),
                    operation.to_owned(),
                ],
                vec![
                    number(time.base_us),
                    number(time.target_us),
                    change(time, decimals),
                    number(time.margin_us),
                ],
            );
        }
    }
    table.notes.push(format!(
        "{shown} of {all} states changed by more than their intervals, which are corrected for the number of states; the largest {LISTED} of each view of a step are listed. Views overlap in time: don't add them up"
    ));
    table
}
