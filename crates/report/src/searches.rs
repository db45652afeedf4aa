//! The highest rate at which a step meets its bounds, and the rates that the search for it tried.

use analysis::figures::Figures;
use analysis::search::{
    MissedBound, RateTrial, SearchState, SearchedTarget, TrialVerdict, rate_searches,
};
use analysis::{counted, distinct};
use record::{RateSearch, Run};

use crate::number::rate_text;
use crate::table::{Cell, Table, Tone};

/// Returns the table of the rates that a run's search tried; `None` if the run has no search.
pub(crate) fn table(run: &Run, figures: &Figures) -> Option<Table> {
    let search = run.search.as_ref()?;
    let searched = rate_searches(run, figures);
    let has_several_clients = distinct(searched.iter().map(|it| it.clients)).len() > 1;
    let lead = |target: String, clients: String| {
        if has_several_clients { vec![target, clients] } else { vec![target] }
    };
    let figures: [(&str, Option<Figure>); 4] = [
        ("achieved", Some(|it| it.achieved)),
        ("p99 ms", search.p99_ms.map(|_| -> Figure { |it| it.p99_ms })),
        ("lag ms", search.lag_ms.map(|_| -> Figure { |it| it.lag_ms_max })),
        ("lag growth\nms/s", search.lag_ms.map(|_| -> Figure { |it| it.lag_ms_slope })),
    ];
    let figures: Vec<(&str, Figure)> =
        figures.into_iter().filter_map(|(head, figure)| Some((head, figure?))).collect();
    let heads = figures.iter().map(|(head, _)| *head);
    let heads: Vec<&str> = ["rate"].into_iter().chain(heads).chain(["bounds"]).collect();
    let mut table = Table::new(
        "search",
        format!(
            "Highest rate of {} with {}, per second over all clients",
            search.step,
            bounds(search)
        ),
        lead("target".into(), "clients".into()),
        heads,
    );
    for it in &searched {
        for trial in &it.trials {
            let rate = trial.rate.map_or_else(|| "none".to_owned(), rate_text);
            let cells = figures.iter().map(|(_, figure)| {
                figure(trial)
                    .map_or_else(Cell::not_applicable, |value| Cell::plain(rate_text(value)))
            });
            let cells = [Cell::plain(rate)].into_iter().chain(cells).chain([verdict(trial)]);
            table.push(lead(it.target.clone(), it.clients.to_string()), cells.collect());
        }
    }
    Some(table)
}

/// Returns the result for each target and number of clients as a sentence.
pub(crate) fn results(run: &Run, figures: &Figures) -> Vec<String> {
    let Some(search) = &run.search else {
        return Vec::new();
    };
    let searched = rate_searches(run, figures);
    let has_several_clients = distinct(searched.iter().map(|it| it.clients)).len() > 1;
    let sentence = |it: &SearchedTarget| result(search, it, &name(it, has_several_clients));
    searched.iter().map(sentence).collect()
}

/// A figure of a trial.
type Figure = fn(&RateTrial) -> Option<f64>;

fn name(searched: &SearchedTarget, with_clients: bool) -> String {
    if with_clients {
        format!("{} with {}", searched.target, counted(searched.clients as usize, "client"))
    } else {
        searched.target.clone()
    }
}

/// Returns the bounds of a search as text: `p99 of at most 20 ms`.
fn bounds(search: &RateSearch) -> String {
    let bound = |what: &str, ms: Option<f64>| {
        ms.map(|ms| format!("{what} of at most {} ms", rate_text(ms)))
    };
    let bounds = [bound("p99", search.p99_ms), bound("lag", search.lag_ms)];
    bounds.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn verdict(trial: &RateTrial) -> Cell {
    let missed = |bound: &MissedBound| match bound {
        MissedBound::Rate => "rate",
        MissedBound::ResponseTime => "p99",
        MissedBound::Lag => "lag",
        MissedBound::UndecidedLag => "lag (undecided)",
    };
    match &trial.verdict {
        TrialVerdict::Sustained if trial.is_second_try => {
            Cell::toned("met on the second try", Tone::Plain)
        }
        TrialVerdict::Sustained => Cell::toned("met", Tone::Plain),
        TrialVerdict::Missed(bounds) => {
            let bounds: Vec<&str> = bounds.iter().map(missed).collect();
            let twice = if trial.is_second_try { ", twice" } else { "" };
            Cell::plain(format!("misses {}{twice}", bounds.join(", ")))
        }
        TrialVerdict::NotJudged(_) | TrialVerdict::NotMeasured => Cell::not_applicable(),
    }
}

/// Returns the result of a search in a sentence about the target of that name.
fn result(search: &RateSearch, searched: &SearchedTarget, name: &str) -> String {
    let what = format!("in {} with {}", search.step, bounds(search));
    match &searched.state {
        SearchState::Next(_) | SearchState::Unfinished => {
            format!("The search for {name} has not ended: `assay run --resume RUN` continues it.")
        }
        SearchState::Found { sustained, missed } => {
            let is_tried = searched.trials.iter().any(|it| it.rate == Some(*missed));
            let (sustained, missed) = (rate_text(*sustained), rate_text(*missed));
            if is_tried {
                format!("{name} sustains {sustained}/s {what}, but not {missed}/s.")
            } else {
                format!(
                    "{name} sustains {sustained}/s {what}; without a rate it achieves {missed}/s."
                )
            }
        }
        SearchState::NotLimited(rate) => {
            let (rate, why) = (
                rate_text(*rate),
                match search.rate_max {
                    Some(_) => "the highest rate allowed by `--to`",
                    None => "the most that its clients can send",
                },
            );
            format!("{name} sustains {rate}/s {what}, {why}.")
        }
        SearchState::NoneSustained(rate) => {
            let lowest = rate_text(*rate);
            format!("{name} sustains no rate {what}; the lowest one tried is {lowest}/s.")
        }
        SearchState::Stopped(reason) => format!("The search for {name} stopped: {reason}."),
    }
}
