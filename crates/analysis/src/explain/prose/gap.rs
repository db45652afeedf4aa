//! Differences in cost of targets that were measured once, in words.

use super::amount::AmountChange;
use super::numbers::{figure, list};
use crate::explain::gap::{Cost, CostGaps, Gap};

/// Returns a difference in a cost as a clause.
pub(in crate::explain) fn clause(gap: &Gap<'_>) -> String {
    format!("{}, at {}x the throughput", first(gap), ratio(gap.case.ratio))
}

/// Names the other targets that differ in a cost; `None` if there are none.
pub(in crate::explain) fn also(of_cost: &CostGaps<'_>) -> Option<String> {
    let others: Vec<String> = of_cost.gaps.iter().skip(1).map(other).collect();
    (!others.is_empty()).then(|| list(&others))
}

/// Returns all differences in a cost as a sentence.
pub(in crate::explain) fn sentence(of_cost: &CostGaps<'_>) -> Option<String> {
    let largest = clause(of_cost.gaps.first()?);
    let also = also(of_cost).map(|others| format!("; also {others}"));
    Some(format!("{largest}{}.", also.unwrap_or_default()))
}

/// Formats a ratio with the digits that tables have: `0.084`, `1.22`, `24.0`, `312`.
fn ratio(ratio: f64) -> String {
    let decimals = match ratio {
        ratio if ratio < 0.1 => 3,
        ratio if ratio < 10.0 => 2,
        ratio if ratio < 100.0 => 1,
        _ => 0,
    };
    format!("{ratio:.decimals$}")
}

/// Returns the difference of the target with the largest one.
fn first(gap: &Gap<'_>) -> String {
    let (who, base) = (gap.case.who(), gap.case.base_name());
    let (place, noun) = (gap.case.place(), gap.case.noun());
    let [of_base, value] = [gap.figures.base, gap.figures.value].map(figure);

    match gap.cost {
        Cost::Cpu => {
            let change = AmountChange::new(gap.figures.value / gap.figures.base, None);
            let (amount, than) = (change.text(), change.than());
            format!(
                "{who} uses {amount} CPU per {noun} {than} {base} in {place} ({of_base} -> {value} us)"
            )
        }
        Cost::Reads if gap.metric == "rpq" => {
            format!(
                "{who} reads from storage {value} times per {noun} in {place}, {base} {of_base} times"
            )
        }
        Cost::Reads => {
            format!(
                "{who} reads {value} KB from storage per {noun} in {place}, {base} {of_base} KB"
            )
        }
        Cost::Writes => {
            format!("{who} writes {value} KB to storage per {noun} in {place}, {base} {of_base} KB")
        }
        Cost::Fsyncs => {
            format!("{who} needs {value} fsyncs per commit in {place}, {base} {of_base}")
        }
    }
}

/// Returns the difference of another target: `mysql.innodb (2.46 in qr100)`.
fn other(gap: &Gap<'_>) -> String {
    let unit = match gap.cost {
        Cost::Cpu => " us",
        Cost::Reads if gap.metric == "rpq" => "",
        Cost::Reads | Cost::Writes => " KB",
        Cost::Fsyncs => "",
    };
    format!("{} ({}{unit} in {})", gap.case.who(), figure(gap.figures.value), gap.case.place())
}
