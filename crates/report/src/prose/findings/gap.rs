//! Differences in cost of targets that were measured once, in words.

use crate::model::number::ratio_text;
use crate::prose::amount::AmountChange;
use crate::prose::numbers::{figure, list_any};
use analysis::explain::Cost;
use analysis::explain::statement::{CaseFacts, CostGap, CostGaps};

/// Returns a difference in a cost as a clause.
pub(crate) fn clause(gap: &CostGap) -> String {
    format!("{}, at {}x the throughput", first(gap), ratio_text(gap.case.ratio))
}

/// Names the other targets that differ in a cost; `None` if there are none.
pub(crate) fn also(of_cost: &CostGaps) -> Option<String> {
    list_any(of_cost.gaps[1..].iter().map(other))
}

/// Returns all differences in a cost as a sentence.
pub(crate) fn sentence(of_cost: &CostGaps) -> String {
    let largest = clause(&of_cost.gaps[0]);
    match also(of_cost) {
        Some(others) => format!("{largest}; also {others}."),
        None => format!("{largest}."),
    }
}

/// Returns the difference of the target with the largest one.
fn first(gap: &CostGap) -> String {
    let CaseFacts { who, base, place, operation, .. } = &gap.case;
    let (of_base, value) = (figure(gap.figures.base), figure(gap.figures.value));

    match gap.cost {
        Cost::Cpu => {
            let change = AmountChange::new(gap.figures.value / gap.figures.base, None);
            let (amount, than) = (change.text(), change.than());
            format!(
                "{who} uses {amount} CPU per {operation} {than} {base} in {place} ({of_base} -> {value} us)"
            )
        }
        Cost::Reads if gap.metric == "rpq" => {
            format!(
                "{who} reads from storage {value} times per {operation} in {place}, compared with {of_base} times for {base}"
            )
        }
        Cost::Reads => {
            format!(
                "{who} reads {value} KB from storage per {operation} in {place}, compared with {of_base} KB for {base}"
            )
        }
        Cost::Writes => {
            format!(
                "{who} writes {value} KB to storage per {operation} in {place}, compared with {of_base} KB for {base}"
            )
        }
        Cost::Fsyncs => {
            format!(
                "{who} needs {value} fsyncs per commit in {place}, compared with {of_base} for {base}"
            )
        }
    }
}

/// Returns the difference of another target: `mysql.innodb (2.46 in qr100)`.
fn other(gap: &CostGap) -> String {
    let unit = match gap.cost {
        Cost::Cpu => " us",
        Cost::Reads if gap.metric == "rpq" => "",
        Cost::Reads | Cost::Writes => " KB",
        Cost::Fsyncs => "",
    };
    format!("{} ({}{unit} in {})", gap.case.who, figure(gap.figures.value), gap.case.place)
}
