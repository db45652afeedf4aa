//! Waits of sessions that changed between a target and its base.

use analysis::compare::{CostDifference, StateDifference};
use words::WaitView;

use super::functions::{change, decimals, operation};
use crate::model::comparison::Comparison;
use crate::model::names::cell_name;
use crate::model::number::fixed;
use crate::model::table::{Cell, STEP, Table};

/// The number of states that the table lists of one view of a step of a target.
const LISTED: usize = 3;

/// Returns a table of the states of sessions whose change is shown. It has no rows if there are
/// none.
pub(super) fn table(comparison: &Comparison<'_>) -> Table {
    let compared = comparison.compared;
    let mut table = Table::new(
        "compared-waits",
        format!("Waits: \u{b5}s per operation, relative to {}", compared.base),
        ["target", STEP, "view", "state", "operation"].map(str::to_owned).to_vec(),
        ["base", "target", "change", "\u{b1}"],
    );
    table.beside = vec![4];

    let (mut shown_count, mut count) = (0, 0);
    for step in &compared.waits {
        let shown: Vec<_> = step.states.iter().filter(|state| state.time.is_shown).collect();
        count += step.states.len();
        shown_count += shown.len();

        let operation = operation(comparison.figures, &step.cell, &step.step);
        for view in WaitView::ALL {
            let of_view = shown.iter().filter(|state| state.view == view);
            for StateDifference { view, name, time } in of_view.take(LISTED) {
                let lead = vec![
                    cell_name(&step.cell),
                    step.step.clone(),
                    view.name().to_owned(),
                    name.clone(),
                    operation.to_owned(),
                ];
                table.push(lead, cells(time));
            }
        }
    }

    table.notes.push(format!(
        "{shown_count} of {count} states changed by more than their intervals, which are corrected for the number of states; the largest {LISTED} of each view of a step are listed. Views overlap in time: don't add them up"
    ));
    table
}

fn cells(time: &CostDifference) -> Vec<Cell> {
    // `decimals` tells a hundredth of its argument apart; a tenth of a state's time is enough.
    let decimals = decimals(10.0 * time.base_us.max(time.target_us));

    let number = |value: f64| Cell::plain(fixed(value, decimals));

    vec![
        number(time.base_us),
        number(time.target_us),
        change(time, decimals),
        number(time.margin_us),
    ]
}
