//! The answer's sentences about costs that are shown to differ.

use analysis::compare::{Interval, metric_label};
use analysis::explain::ShownCost;
use words::Metric;

use super::{AnswerWriter, NAMED};
use crate::model::number::{listed, ratio_text};

/// The maximum number of kinds of costs that are named.
const COSTS_NAMED: usize = 3;

impl AnswerWriter<'_> {
    /// Returns a sentence for each kind of cost that says most, and counts the other costs.
    pub(super) fn shown_costs(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut unnamed_count = 0;

        // The costs of a metric follow each other.
        let same_metric = |a: &ShownCost, b: &ShownCost| a.metric == b.metric;
        for costs in self.answer.shown_costs.chunk_by(same_metric) {
            if sentences.len() < COSTS_NAMED {
                let of_targets: Vec<String> =
                    costs.iter().map(|cost| self.shown_cost(cost)).collect();
                sentences.push(format!("{}.", listed(&of_targets, NAMED, "; ")));
            } else {
                unnamed_count += costs.len();
            }
        }

        if unnamed_count > 0 {
            let verb = if unnamed_count == 1 { "is" } else { "are" };
            sentences.push(format!("{unnamed_count} more {verb} in the tables of costs."));
        }
        sentences
    }

    /// Returns `b.x has 0.49x the fsyncs per commit of a.x in l.i1 (0.38x to 0.63x), 0.66x in l.i0`.
    fn shown_cost(&self, cost: &ShownCost) -> String {
        let base = &self.answer.base;
        let what = what(&cost.metric);

        let mut parts = Vec::new();
        for change in cost.changes.faster.iter().chain(&cost.changes.slower) {
            let (ratio, place) = (ratio_text(change.ratio), self.place(change));
            if parts.is_empty() {
                let range = change.interval.map(range_in_brackets).unwrap_or_default();
                parts.push(format!("{ratio}x the {what} of {base} in {place}{range}"));
            } else {
                parts.push(format!("{ratio}x in {place}"));
            }
        }

        format!("{} has {}", cost.changes.target, listed(&parts, NAMED, ", "))
    }
}

/// Returns ` (0.38x to 0.63x)`.
fn range_in_brackets(interval: Interval) -> String {
    format!(" ({}x to {}x)", ratio_text(interval.low), ratio_text(interval.high))
}

/// Returns what a metric is: `disk reads per operation (r/o)`.
pub(super) fn what(metric: &str) -> String {
    match Metric::named(metric).filter(|metric| !metric.meaning.is_empty()) {
        // Some names say nothing beside their meaning.
        Some(metric) if metric.meaning.contains(metric.head) => metric.meaning.to_owned(),
        Some(metric) => format!("{} ({})", metric.meaning, metric.head),
        None => metric_label(metric).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use analysis::explain::{Answer, Change, TargetAnswer};
    use analysis::figures::Figures;

    use super::*;

    fn cost(metric: &str, ratios: &[f64]) -> ShownCost {
        let interval = Interval { low: 0.38, high: 0.63, confidence: 0.99 };
        let mut changes = TargetAnswer { target: "b.x".to_owned(), ..TargetAnswer::default() };
        for (number, &ratio) in ratios.iter().enumerate() {
            changes.faster.push(Change {
                step: format!("l.i{number}"),
                clients: 1,
                ratio,
                interval: Some(interval),
                repeats: 3,
                ..Change::default()
            });
        }
        ShownCost { metric: metric.to_owned(), changes }
    }

    fn said(costs: Vec<ShownCost>) -> Vec<String> {
        let answer = Answer { base: "a.x".to_owned(), shown_costs: costs, ..Answer::default() };
        AnswerWriter::new(&answer, &Figures::default()).shown_costs()
    }

    #[test]
    fn costs_are_named_with_their_steps_and_the_rest_is_counted() {
        assert_eq!(
            said(vec![cost("fsyncs_per_commit", &[0.49, 0.66]), cost("rareqsz", &[0.25])]),
            [
                "b.x has 0.49x the fsyncs per commit of a.x in l.i0 (0.38x to 0.63x), 0.66x in l.i1.",
                "b.x has 0.25x the size of a read (rareqsz) of a.x in l.i0 (0.38x to 0.63x)."
            ]
        );
        let many = ["fsyncs_per_commit", "r/o", "rareqsz", "cs/o", "cs/o", "w_amp"];
        let many = many.map(|metric| cost(metric, &[0.25])).to_vec();
        assert_eq!(said(many).last().unwrap(), "3 more are in the tables of costs.");
    }

    #[test]
    fn one_sentence_has_the_same_cost_of_several_targets() {
        let mut of_others = cost("rareqsz", &[0.5]);
        of_others.changes.target = "c.x".to_owned();
        assert_eq!(
            said(vec![cost("rareqsz", &[0.25]), of_others]),
            ["b.x has 0.25x the size of a read (rareqsz) of a.x in l.i0 (0.38x to 0.63x); \
                 c.x has 0.50x the size of a read (rareqsz) of a.x in l.i0 (0.38x to 0.63x)."]
        );
    }
}
