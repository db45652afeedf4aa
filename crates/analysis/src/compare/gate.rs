//! May this build go out? Regressed is told from too noisy to say.

use std::collections::BTreeMap;

use serde::Serialize;

use super::metric::THROUGHPUT;
use super::{Compared, ComparedStep, Verdict};

/// What counts as a regression.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// The relative change for the worse of throughput that counts: 0.05 is 5 % less.
    pub default: f64,
    /// The same by metric: [`THROUGHPUT`] instead of the default, and metrics of which the gate would know nothing
    /// otherwise. Of a cost 0.1 is 10 % more.
    pub by_metric: BTreeMap<String, f64>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            default: 0.03,
            by_metric: BTreeMap::new(),
        }
    }
}

impl Thresholds {
    /// That of a metric; `None`: the gate does not look at it.
    pub fn of(&self, metric: &str) -> Option<f64> {
        let own = self.by_metric.get(metric).copied();
        own.or((metric == THROUGHPUT).then_some(self.default))
    }
}

/// What the gate says. Rows are named by their index in [`Compared::rows`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Changes for the worse beyond the threshold are ruled out everywhere, or are there for the better.
    Pass,
    /// These are shown to be worse, by more than the threshold as measured.
    Regressed(Vec<usize>),
    /// These may be worse by more than the threshold: they are invalid, measured once, or too noisy to say. None of
    /// them: there was nothing to judge.
    Doubtful(Vec<usize>),
}

/// Judges a comparison. What is shown to be worse by less than the threshold passes; a regression counts for more than
/// a doubt.
pub fn gate(compared: &Compared, thresholds: &Thresholds) -> Gate {
    let judged: Vec<(usize, Judged)> = compared
        .rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| Some((index, judge(row, thresholds.of(&row.metric)?))))
        .collect();
    let those = |wanted: Judged| -> Vec<usize> {
        let found = judged.iter().filter(|(_, judged)| *judged == wanted);
        found.map(|(index, _)| *index).collect()
    };
    let (regressed, doubtful) = (those(Judged::Regressed), those(Judged::Doubtful));
    if !regressed.is_empty() {
        Gate::Regressed(regressed)
    } else if !doubtful.is_empty() || judged.is_empty() {
        Gate::Doubtful(doubtful)
    } else {
        Gate::Pass
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Judged {
    Passed,
    Regressed,
    Doubtful,
}

fn judge(row: &ComparedStep, threshold: f64) -> Judged {
    let for_the_worse = |ratio: f64| {
        if row.more_is_better {
            1.0 - ratio
        } else {
            ratio - 1.0
        }
    };
    let worst = row.interval.map(|interval| {
        for_the_worse(if row.more_is_better {
            interval.low
        } else {
            interval.high
        })
    });
    match row.verdict {
        Verdict::Faster => Judged::Passed,
        Verdict::Slower => match row.ratio.map(for_the_worse) {
            Some(change) if change <= threshold => Judged::Passed,
            _ => Judged::Regressed,
        },
        // Both without any of it have a ratio of 1 and no interval.
        Verdict::NoChangeShown | Verdict::TooNoisy => match worst {
            Some(worst) if worst > threshold => Judged::Doubtful,
            _ => Judged::Passed,
        },
        Verdict::Single | Verdict::Invalid | Verdict::NotComparable => Judged::Doubtful,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Interval, Pairing};

    fn row(metric: &str, verdict: Verdict, values: Option<(f64, f64, f64)>) -> ComparedStep {
        ComparedStep {
            target: "new.base".into(),
            workload: "sysbench".into(),
            variant: None,
            clients: 1,
            step: "scan".into(),
            group: None,
            metric: metric.into(),
            more_is_better: metric == THROUGHPUT,
            base_values: Vec::new(),
            values: Vec::new(),
            ratio: values.map(|(_, ratio, _)| ratio),
            interval: values.map(|(low, _, high)| Interval {
                low,
                high,
                confidence: 0.95,
            }),
            pairing: Pairing::Paired,
            verdict,
            p_value: None,
            spread: None,
            repeats_needed: None,
            reasons: Vec::new(),
        }
    }

    fn judged(rows: Vec<ComparedStep>, own: &[(&str, f64)]) -> Gate {
        let compared = Compared {
            rows,
            ..Compared::default()
        };
        let thresholds = Thresholds {
            default: 0.05,
            by_metric: own.iter().map(|(name, t)| ((*name).into(), *t)).collect(),
        };
        gate(&compared, &thresholds)
    }

    #[test]
    fn a_regression_is_one_that_is_shown_and_beyond_the_threshold() {
        let slower = |low, ratio, high| row(THROUGHPUT, Verdict::Slower, Some((low, ratio, high)));
        assert_eq!(
            judged(vec![slower(0.90, 0.94, 0.98)], &[]),
            Gate::Regressed(vec![0])
        );
        // Shown, and small: also where it may be larger.
        assert_eq!(judged(vec![slower(0.94, 0.96, 0.98)], &[]), Gate::Pass);
    }

    #[test]
    fn what_may_hide_a_regression_is_doubtful() {
        let noisy = |low, high| row(THROUGHPUT, Verdict::TooNoisy, Some((low, 1.0, high)));
        assert_eq!(
            judged(vec![noisy(0.94, 1.06)], &[]),
            Gate::Doubtful(vec![0])
        );
        // Too noisy to rule out 3 %, but not 5 %; or noisy towards the better.
        assert_eq!(
            judged(vec![noisy(0.955, 1.045), noisy(0.99, 1.2)], &[]),
            Gate::Pass
        );
        for verdict in [Verdict::Single, Verdict::Invalid, Verdict::NotComparable] {
            let rows = vec![
                row(THROUGHPUT, Verdict::Faster, Some((1.1, 1.2, 1.3))),
                row(THROUGHPUT, verdict, None),
            ];
            assert_eq!(judged(rows, &[]), Gate::Doubtful(vec![1]));
        }
        assert_eq!(judged(Vec::new(), &[]), Gate::Doubtful(Vec::new()));
    }

    #[test]
    fn a_threshold_finer_than_the_effect_is_held_to_as_well() {
        let same = row(THROUGHPUT, Verdict::NoChangeShown, Some((0.98, 1.0, 1.02)));
        assert_eq!(judged(vec![same.clone()], &[]), Gate::Pass);
        assert_eq!(
            judged(vec![same], &[(THROUGHPUT, 0.01)]),
            Gate::Doubtful(vec![0])
        );
    }

    #[test]
    fn a_regression_counts_for_more_than_a_doubt() {
        let rows = vec![
            row(THROUGHPUT, Verdict::Invalid, None),
            row(THROUGHPUT, Verdict::Slower, Some((0.7, 0.8, 0.9))),
        ];
        assert_eq!(judged(rows, &[]), Gate::Regressed(vec![1]));
    }

    #[test]
    fn costs_count_where_they_have_a_threshold_and_more_is_worse() {
        let rows = vec![
            row(THROUGHPUT, Verdict::NoChangeShown, Some((0.99, 1.0, 1.01))),
            row("cpupq", Verdict::Slower, Some((1.1, 1.2, 1.3))),
            row("rpq", Verdict::TooNoisy, Some((0.5, 1.0, 2.0))),
        ];
        assert_eq!(judged(rows.clone(), &[]), Gate::Pass);
        assert_eq!(judged(rows.clone(), &[("cpupq", 0.25)]), Gate::Pass);
        assert_eq!(
            judged(rows.clone(), &[("cpupq", 0.1)]),
            Gate::Regressed(vec![1])
        );
        assert_eq!(judged(rows, &[("rpq", 0.5)]), Gate::Doubtful(vec![2]));
    }

    #[test]
    fn none_of_it_on_either_side_passes() {
        let mut none = row("rpq", Verdict::NoChangeShown, None);
        none.ratio = Some(1.0);
        assert_eq!(judged(vec![none], &[("rpq", 0.1)]), Gate::Pass);
    }
}
