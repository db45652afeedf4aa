//! Says what a gate that passes rules out, and which comparisons are the closest to their thresholds.

use analysis::compare::{Judged, room_to_threshold};
use report::ruled_out_sentence;

use super::judged_steps::JudgedSteps;

/// The comparison of a metric that passes and is the closest to its threshold.
struct Closest {
    /// The index in [`Compared::rows`](analysis::compare::Compared::rows).
    index: usize,
    /// The distance to the threshold, as a share of the base.
    room: f64,
}

/// Returns the indexes of the comparisons that pass and are, of their metric, the closest to its
/// threshold.
pub(super) fn closest(steps: &JudgedSteps<'_>) -> Vec<usize> {
    let JudgedSteps { compared, thresholds, judged, .. } = steps;

    let mut all: Vec<Closest> = Vec::new();
    for &(index, outcome) in judged {
        let row = &compared.rows[index];
        let threshold = thresholds.of(&row.metric).unwrap_or_default();
        let room = room_to_threshold(row, threshold).filter(|_| outcome == Judged::Passed);
        let Some(room) = room else {
            continue;
        };

        match all.iter_mut().find(|known| compared.rows[known.index].metric == row.metric) {
            Some(known) if known.room <= room => {}
            Some(known) => *known = Closest { index, room },
            None => all.push(Closest { index, room }),
        }
    }
    all.iter().map(|closest| closest.index).collect()
}

/// Returns a sentence for each metric that had to rule out a regression, where the gate passes.
pub(super) fn sentences(steps: &JudgedSteps<'_>) -> Vec<String> {
    let JudgedSteps { compared, thresholds, judged, .. } = steps;

    let mut sentences = Vec::new();
    for index in closest(steps) {
        let row = &compared.rows[index];
        let of_metric =
            judged.iter().filter(|(other, _)| compared.rows[*other].metric == row.metric);
        let count = of_metric.count();
        let threshold = thresholds.of(&row.metric).unwrap_or_default();
        sentences.extend(ruled_out_sentence(row, threshold, count));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use analysis::compare::{Compared, ComparedStep, Interval, Thresholds, Verdict};

    use super::super::tests::row;
    use super::*;

    #[test]
    fn a_gate_that_passes_says_what_it_rules_out_and_which_comparison_is_the_closest() {
        let passing = |step: &str, low| ComparedStep {
            step: step.into(),
            ratio: Some(1.02),
            equality: Some(Interval { low, high: 1.05, confidence: 0.9 }),
            ..row(Verdict::TooNoisy, None)
        };
        let rows = vec![passing("scan", 1.003), passing("query", 0.98), passing("load", 1.01)];
        let compared = Compared { rows, ..Compared::default() };
        let steps = JudgedSteps::of(&compared, Thresholds::default());

        assert_eq!(closest(&steps), [1]);
        assert_eq!(
            sentences(&steps),
            [
                "throughput: a loss of more than 3% is ruled out in all 3 comparisons (closest: pg.next c8 query, 90% \
                 interval 0.980-1.050)"
            ]
        );
    }
}
