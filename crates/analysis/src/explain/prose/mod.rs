//! Puts findings in words. All sentences of findings are made here, from values.

pub(super) mod amount;
mod cause;
pub(super) mod caveat;
mod change;
mod clients;
mod difference;
mod disk_floor;
pub(super) mod gap;
mod hidden_cost;
mod machines;
pub(super) mod numbers;
mod sequence;
mod setting;
mod single;
mod swing;
mod witnesses;

use super::Finding;
use super::explanation::Explanation;
use super::statement::{CaseFacts, Statement};
use crate::compare::Interval;
use crate::counted;
use numbers::{pace, range};

/// The words of a statement.
struct Wording {
    /// One line: the change, its size, and its cause.
    title: String,
    /// At most three sentences.
    sentences: Vec<String>,
}

/// Returns an explanation as a finding against the base; `None` if the explanation names no step.
pub(super) fn finding(base: &str, explanation: &Explanation<'_>) -> Option<Finding> {
    let mut finding = explanation.finding(base)?;
    finding.caveats = explanation.caveats.iter().map(caveat::text).collect();

    let wording = wording(&explanation.statement, &finding);
    finding.title = wording.title;
    finding.text = wording.sentences.join(" ");
    Some(finding)
}

fn wording(statement: &Statement, about: &Finding) -> Wording {
    match statement {
        Statement::Change(change) => change::wording(change, about),
        Statement::ClientBound(cases) => clients::bound(cases, about),
        Statement::AtFloor(at_floor) => disk_floor::wording(at_floor, about),
        Statement::Sequence(step) => sequence::wording(step),
        Statement::Unfair(step) => clients::unfair(step, about),
        Statement::Swings(targets) => swing::wording(targets, about),
        Statement::SlaMissed(rates) => clients::missed_rates(rates, about),
        Statement::NoEffect(no_effect) => setting::without_effect(no_effect, about),
        Statement::HiddenCost(hidden) => hidden_cost::wording(hidden, about),
        Statement::Facts(differences) => single::wording(differences),
        Statement::Machines(variance) => machines::wording(variance),
        Statement::Work(steps) => witnesses::wording(steps, about),
    }
}

/// Returns the place of a finding: `q100`, or `3 steps`.
fn place(about: &Finding) -> String {
    match &about.step {
        Some(step) => step.clone(),
        None => counted(about.steps.len(), "step"),
    }
}

/// Returns the change of a case's throughput: `1.20x slower`.
fn pace_of(case: &CaseFacts) -> String {
    pace(case.ratio, case.interval)
}

/// Returns the interval of a ratio: ` (1.16x to 1.25x over 5 repeats)`.
fn interval_text(interval: Option<Interval>, repeat_count: usize) -> String {
    match interval {
        Some(interval) => {
            format!(" ({} over {})", range(interval), counted(repeat_count, "repeat"))
        }
        None => String::new(),
    }
}
