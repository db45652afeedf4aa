//! The words of a finding: a title, sentences, and the reasons to doubt it.

use analysis::compare::Interval;
use analysis::explain::Finding;
use analysis::explain::statement::{CaseFacts, Statement};
use analysis::{counted, distinct};

use super::{
    caveat, change, clients, disk_floor, hidden_cost, machines, response, sequence, setting,
    single, swing, witnesses,
};
use crate::prose::numbers::{pace, range};

/// The words of the statement of a finding.
pub(crate) struct Wording {
    /// One line: the change, its size, and its cause.
    pub title: String,
    /// At most three sentences: the change with its size and certainty; the cause; the other places,
    /// and the differences.
    pub sentences: Vec<String>,
}

impl Wording {
    /// Returns the words of a finding.
    pub(crate) fn of(finding: &Finding) -> Self {
        match &finding.statement {
            Statement::Change(change) => change::wording(change, finding),
            Statement::ClientBound(cases) => clients::bound(cases, finding),
            Statement::AtFloor(at_floor) => disk_floor::wording(at_floor, finding),
            Statement::Sequence(step) => sequence::wording(step),
            Statement::Unfair(step) => clients::unfair(step, finding),
            Statement::Swings(targets) => swing::wording(targets, finding),
            Statement::SlaMissed(rates) => clients::missed_rates(rates, finding),
            Statement::NoEffect(no_effect) => setting::without_effect(no_effect, finding),
            Statement::Response(response) => response::wording(response, finding),
            Statement::HiddenCost(hidden) => hidden_cost::wording(hidden, finding),
            Statement::Facts(differences) => single::wording(differences),
            Statement::Machines(variance) => machines::wording(variance),
            Statement::Work(steps) => witnesses::wording(steps, finding),
        }
    }

    /// Returns the sentences as one paragraph.
    pub(crate) fn text(&self) -> String {
        self.sentences.join(" ")
    }
}

/// Returns the reasons to doubt a finding, each a part of a sentence.
pub(crate) fn caveats(finding: &Finding) -> Vec<String> {
    finding.caveats.iter().map(caveat::text).collect()
}

/// Returns the place of a finding: `q100`, or `3 steps`.
pub(super) fn place(about: &Finding) -> String {
    match &about.step {
        Some(step) => step.clone(),
        None => counted(about.steps.len(), "step"),
    }
}

/// Returns the operation that all cases have, or else `operation`.
pub(super) fn shared_operation<'a>(cases: impl Iterator<Item = &'a CaseFacts>) -> &'a str {
    let mut operations = distinct(cases.map(|case| case.operation.as_str()));
    if operations.len() == 1 { operations.remove(0) } else { "operation" }
}

/// Returns the change of a case's throughput: `1.20x slower`.
pub(super) fn pace_of(case: &CaseFacts) -> String {
    pace(case.ratio, case.interval)
}

/// Returns the interval of a ratio: ` (1.16x to 1.25x over 5 repeats)`.
pub(super) fn interval_text(interval: Option<Interval>, repeat_count: usize) -> String {
    match interval {
        Some(interval) => {
            format!(" ({} over {})", range(interval), counted(repeat_count, "repeat"))
        }
        None => String::new(),
    }
}
