//! The highest rates that were measured, and the rates that are shares of them.

use analysis::distinct;
use record::{AchievedRate, MaxRate, Run};

use crate::model::number::rate_text;
use crate::model::table::{Cell, Table};

/// Returns the rates that are shares of highest rates, with what each target achieved; `None` if the
/// run has none.
pub(crate) fn table(run: &Run) -> Option<Table> {
    if run.max_rates.is_empty() {
        return None;
    }

    let achieved = run.max_rates.iter().flat_map(|rate| &rate.achieved);
    let targets = distinct(achieved.map(label));
    let mut heads = targets.clone();
    heads.extend(["highest", "share", "rate"].map(str::to_owned));

    let lead = ["step", "clients"].map(str::to_owned).to_vec();
    let title = "Rates that are shares of the highest rate, per second over all clients";
    let mut table = Table::new("max-rates", title, lead, heads);
    for rate in &run.max_rates {
        table.push(vec![rate.place(), rate.clients.to_string()], cells(rate, &targets));
    }
    if targets.len() > 1 {
        table.notes.push("the slowest decides, so that all have the same load".to_owned());
    }
    Some(table)
}

fn cells(rate: &MaxRate, targets: &[String]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for target in targets {
        let achieved = rate.achieved.iter().find(|achieved| label(achieved) == *target);
        cells.push(match achieved {
            Some(achieved) => Cell::plain(rate_text(achieved.per_s)),
            None => Cell::not_applicable(),
        });
    }
    cells.push(Cell::plain(rate_text(rate.max_per_s)));
    cells.push(Cell::plain(format!("{}%", rate.percent)));
    cells.push(Cell::plain(rate_text(rate.rate_per_s)));
    cells
}

/// Returns the name of a target, with its variant.
fn label(achieved: &AchievedRate) -> String {
    match &achieved.variant {
        Some(variant) => format!("{} {variant}", achieved.target),
        None => achieved.target.clone(),
    }
}
