//! Differences in cost of targets that were measured once, in words.

use super::numbers::{factor, figure, list, times};
use crate::explain::gap::{Cost, CostGaps, Gap};

/// Returns the largest difference in a cost as a clause, with the other targets that differ in it.
pub(in crate::explain) fn clause(of_cost: &CostGaps<'_>) -> String {
    let Some((gap, others)) = of_cost.gaps.split_first() else {
        return String::new();
    };
    let also: Vec<String> = others.iter().map(|gap| other(gap)).collect();
    let also = if also.is_empty() { String::new() } else { format!("; also {}", list(&also)) };
    format!("{}, at {} the throughput{also}", first(gap), times(gap.case.ratio))
}

/// Returns the difference of the target with the largest one.
fn first(gap: &Gap<'_>) -> String {
    let (who, base) = (gap.case.who(), gap.case.base_name());
    let (place, noun) = (gap.case.place(), gap.case.noun());
    let [of_base, value] = [gap.figures.base, gap.figures.value].map(figure);
    match gap.cost {
        Cost::Cpu => {
            let growth = gap.figures.value / gap.figures.base;
            let less = if growth < 1.0 { "less" } else { "more" };
            let factor = factor(growth);
            format!(
                "{who} uses {factor} {less} CPU per {noun} than {base} in {place} ({of_base} -> {value} us)"
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
