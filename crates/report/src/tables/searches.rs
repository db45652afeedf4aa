//! The rates that a search for the highest rate tried, with the figures that it bounds.

use analysis::{
    distinct,
    figures::Figures,
    search::{MissedBound, RateTrial, SearchedTarget, TrialVerdict, TriedFigures, rate_searches},
};
use record::{RateSearch, Run};

use crate::model::number::rate_text;
use crate::model::table::{Cell, Table};

/// A column of a figure of each try.
struct TrialColumn {
    head: &'static str,
    figure: fn(&TriedFigures) -> Option<f64>,
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

    let mut trials = searched.iter().flat_map(|target| &target.trials);
    if trials.any(|trial| trial.tries.len() > 1) {
        table.notes.push("a rate that was tried several times has the figures of each try".into());
    }
    Some(table)
}

/// Returns the columns of the achieved rate and of the figures that the search bounds.
fn columns(search: &RateSearch) -> Vec<TrialColumn> {
    let mut columns = vec![TrialColumn { head: "achieved", figure: |one| one.achieved }];
    if search.p99_ms.is_some() {
        columns.push(TrialColumn { head: "p99 ms", figure: |one| one.p99_ms });
    }
    if search.lag_ms.is_some() {
        columns.push(TrialColumn { head: "lag ms", figure: |one| one.lag_ms_max });
        columns.push(TrialColumn { head: "lag growth\nms/s", figure: |one| one.lag_ms_slope });
    }
    columns
}

fn trial_cells(trial: &RateTrial, columns: &[TrialColumn]) -> Vec<Cell> {
    let mut cells = vec![Cell::plain(trial.rate.map_or_else(|| "none".to_owned(), rate_text))];
    for column in columns {
        cells.push(figures_of_tries(trial, column));
    }

    cells.push(verdict(trial));
    cells
}

/// Returns a figure of each try: `12 / 71`.
fn figures_of_tries(trial: &RateTrial, column: &TrialColumn) -> Cell {
    let mut texts = Vec::new();
    for one in &trial.tries {
        let figure = (column.figure)(&one.figures);
        texts.push(figure.map_or_else(|| "n/a".to_owned(), rate_text));
    }

    if texts.iter().all(|text| text == "n/a") {
        return Cell::not_applicable();
    }
    Cell::plain(texts.join(" / "))
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

/// Returns whether a trial met its bounds, and in how many tries.
fn verdict(trial: &RateTrial) -> Cell {
    match &trial.verdict {
        TrialVerdict::Sustained => {
            let times = in_tries(trial.met_count(), trial.tries.len());
            Cell::plain(format!("met{times}"))
        }
        TrialVerdict::Missed(bounds) => {
            let names: Vec<&str> = bounds.iter().map(bound_name).collect();
            let times = in_tries(trial.missed_count(), trial.tries.len());
            Cell::plain(format!("misses {}{times}", names.join(", ")))
        }
        TrialVerdict::NotJudged(_) | TrialVerdict::NotMeasured => Cell::not_applicable(),
    }
}

/// Returns how many of several tries agree with a verdict, to follow it.
fn in_tries(agreeing: usize, tries: usize) -> String {
    match (agreeing, tries) {
        (_, 0 | 1) => String::new(),
        (2, 2) => ", twice".to_owned(),
        _ => format!(" in {agreeing} of {tries} tries"),
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

#[cfg(test)]
mod tests {
    use analysis::search::RateTry;

    use super::*;

    #[test]
    fn a_rate_that_missed_its_bound_once_shows_each_try_and_how_many_met_it() {
        let of_try = |p99_ms: f64, verdict: TrialVerdict| RateTry {
            figures: TriedFigures { p99_ms: Some(p99_ms), ..TriedFigures::default() },
            verdict,
        };
        let missed = TrialVerdict::Missed(vec![MissedBound::ResponseTime]);
        let mut trial = RateTrial {
            variant: Some("rate-500".into()),
            rate: Some(1000.0),
            figures: TriedFigures::default(),
            verdict: missed.clone(),
            tries: vec![of_try(71.0, missed), of_try(12.0, TrialVerdict::Sustained)],
        };
        let p99 = TrialColumn { head: "p99 ms", figure: |one| one.p99_ms };
        assert_eq!(figures_of_tries(&trial, &p99).text, "71 / 12");
        assert_eq!(verdict(&trial).text, "misses p99 in 1 of 2 tries");

        trial.tries.push(of_try(13.0, TrialVerdict::Sustained));
        trial.verdict = TrialVerdict::Sustained;
        assert_eq!(figures_of_tries(&trial, &p99).text, "71 / 12 / 13");
        assert_eq!(verdict(&trial).text, "met in 2 of 3 tries");

        trial.tries.remove(0);
        assert_eq!(verdict(&trial).text, "met, twice");
        trial.tries.truncate(1);
        assert_eq!(verdict(&trial).text, "met");
        let lag = TrialColumn { head: "lag ms", figure: |one| one.lag_ms_max };
        assert_eq!(figures_of_tries(&trial, &lag).text, "n/a");
    }
}
