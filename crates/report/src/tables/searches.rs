//! The rates that a search for the highest rate tried, with the figures that it bounds.

use analysis::{
    distinct,
    figures::Figures,
    search::{MissedBound, RateTrial, SearchedTarget, TrialVerdict, rate_searches},
};
use record::{RateSearch, Run};

use crate::model::number::rate_text;
use crate::model::table::{Cell, Table};

/// A column of a figure of each trial.
struct TrialColumn {
    head: &'static str,
    figure: fn(&RateTrial) -> Option<f64>,
}

/// Returns the table of the rates that a run's search tried; `None` if the run has no search.
pub(crate) fn table(run: &Run, figures: &Figures) -> Option<Table> {
    let search = run.search.as_ref()?;
    let searched = rate_searches(run, figures);
    let columns = columns(search);
    let is_by_clients = has_several_clients(&searched);

    let mut lead = vec!["target".to_owned()];
    lead.extend(is_by_clients.then(|| "clients".to_owned()));

    let mut heads = vec!["rate"];
    heads.extend(columns.iter().map(|column| column.head));
    heads.push("bounds");

    let title = format!(
        "Highest rate of {} with {}, per second over all clients",
        search.step,
        bounds(search)
    );

    let mut table = Table::new("search", title, lead, heads);

    for target in &searched {
        for trial in &target.trials {
            let mut lead = vec![target.target.clone()];
            lead.extend(is_by_clients.then(|| target.clients.to_string()));
            table.push(lead, trial_cells(trial, &columns));
        }
    }
    Some(table)
}

/// Returns the columns of the achieved rate and of the figures that the search bounds.
fn columns(search: &RateSearch) -> Vec<TrialColumn> {
    let mut columns = vec![TrialColumn { head: "achieved", figure: |trial| trial.achieved }];
    if search.p99_ms.is_some() {
        columns.push(TrialColumn { head: "p99 ms", figure: |trial| trial.p99_ms });
    }
    if search.lag_ms.is_some() {
        columns.push(TrialColumn { head: "lag ms", figure: |trial| trial.lag_ms_max });
        columns.push(TrialColumn { head: "lag growth\nms/s", figure: |trial| trial.lag_ms_slope });
    }
    columns
}

fn trial_cells(trial: &RateTrial, columns: &[TrialColumn]) -> Vec<Cell> {
    let mut cells = vec![Cell::plain(trial.rate.map_or_else(|| "none".to_owned(), rate_text))];
    for column in columns {
        cells.push(match (column.figure)(trial) {
            Some(value) => Cell::plain(rate_text(value)),
            None => Cell::not_applicable(),
        });
    }

    cells.push(verdict(trial));
    cells
}

/// Returns the bounds of a search as text: `p99 of at most 20 ms`.
pub(crate) fn bounds(search: &RateSearch) -> String {
    let mut texts = Vec::new();
    for (what, bound_ms) in [("p99", search.p99_ms), ("lag", search.lag_ms)] {
        texts.extend(bound_ms.map(|ms| format!("{what} of at most {} ms", rate_text(ms))));
    }
    texts.join(" and ")
}

/// Returns true if targets were searched with several numbers of clients, so that names need them.
pub(crate) fn has_several_clients(searched: &[SearchedTarget]) -> bool {
    distinct(searched.iter().map(|target| target.clients)).len() > 1
}

/// Returns whether a trial met its bounds, and after how many tries.
fn verdict(trial: &RateTrial) -> Cell {
    match &trial.verdict {
        TrialVerdict::Sustained if trial.is_second_try => Cell::plain("met on the second try"),
        TrialVerdict::Sustained => Cell::plain("met"),
        TrialVerdict::Missed(bounds) => {
            let names: Vec<&str> = bounds.iter().map(bound_name).collect();
            let twice = if trial.is_second_try { ", twice" } else { "" };
            Cell::plain(format!("misses {}{twice}", names.join(", ")))
        }
        TrialVerdict::NotJudged(_) | TrialVerdict::NotMeasured => Cell::not_applicable(),
    }
}

fn bound_name(bound: &MissedBound) -> &'static str {
    match bound {
        MissedBound::Rate => "rate",
        MissedBound::ResponseTime => "p99",
        MissedBound::Lag => "lag",
        MissedBound::UndecidedLag => "lag (undecided)",
    }
}
