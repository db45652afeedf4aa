//! The results of a search for the highest rate, in sentences.

use analysis::{
    counted,
    figures::Figures,
    search::{SearchState, SearchedTarget, rate_searches},
};
use record::{RateSearch, Run};

use super::Passage;
use crate::model::number::rate_text;
use crate::tables::searches::{bounds, has_several_clients};

/// Returns the result for each target and number of clients as a sentence.
pub(crate) fn results(run: &Run, figures: &Figures) -> Passage {
    let Some(search) = &run.search else {
        return Passage::default();
    };

    let searched = rate_searches(run, figures);
    let is_by_clients = has_several_clients(&searched);

    let mut sentences =
        searched.iter().map(|target| result(search, target, &subject(target, is_by_clients)));

    Passage {
        heading: sentences.next().unwrap_or_default(),
        sentences: sentences.collect(),
        ..Passage::default()
    }
}

/// Returns the target that a sentence is about, with its clients if there are several numbers of
/// them.
fn subject(searched: &SearchedTarget, is_by_clients: bool) -> String {
    if is_by_clients {
        format!("{} with {}", searched.target, counted(searched.clients as usize, "client"))
    } else {
        searched.target.clone()
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
            // The upper end of the search may be a rate that was achieved but not requested.
            let is_tried = searched.trials.iter().any(|trial| trial.rate == Some(*missed));
            let highest = rate_text(*sustained);
            let above = rate_text(*missed);
            if is_tried {
                format!("{name} sustains {highest}/s {what}, but not {above}/s.")
            } else {
                format!("{name} sustains {highest}/s {what}; without a rate it achieves {above}/s.")
            }
        }

        SearchState::NotLimited(rate) => {
            let highest = rate_text(*rate);
            let why = match search.rate_max {
                Some(_) => "the highest rate allowed by `--to`",
                None => "the most that its clients can send",
            };
            format!("{name} sustains {highest}/s {what}, {why}.")
        }

        SearchState::NoneSustained(rate) => {
            let lowest = rate_text(*rate);
            format!("{name} sustains no rate {what}; the lowest one tried is {lowest}/s.")
        }
        SearchState::Stopped(reason) => format!("The search for {name} stopped: {reason}."),
    }
}
