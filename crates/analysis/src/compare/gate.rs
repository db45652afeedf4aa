//! Decides whether a build passes: it tells a regression from a comparison that is too noisy.

use std::collections::BTreeMap;

use serde::Serialize;

use super::metric::{THROUGHPUT, has_verdict};
use super::power::REPEATS_CAP;
use super::{Compared, ComparedStep, ComparedWork, Interval, Verdict, WorkVerdict, equality};

/// The name of exact work among the metrics that have a threshold.
pub const WORK: &str = "work";

/// The changes that count as regressions.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// The allowed relative change for the worse of each of [`super::VERDICT_METRICS`]: 0.05 is 5
    /// % less throughput, or 5% more of a cost.
    pub default: f64,
    /// The same for single metrics: it replaces the default, and adds metrics to the gate.
    pub by_metric: BTreeMap<String, f64>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { default: 0.03, by_metric: BTreeMap::new() }
    }
}

impl Thresholds {
    /// Returns the threshold of a metric; `None`: the gate ignores it.
    pub fn of(&self, metric: &str) -> Option<f64> {
        let own = self.by_metric.get(metric).copied();
        // Typical turns are not judged by default. Throughput already has in it what they gain and what
        // stalls take: a steadier target that is slower in a typical turn may still be faster.
        own.or(has_verdict(metric).then_some(self.default))
    }

    /// Returns the threshold of the exact work of connections: without one of its own, any change
    /// that is shown exceeds it.
    pub fn of_work(&self) -> f64 {
        self.by_metric.get(WORK).copied().unwrap_or(0.0)
    }

    /// Returns whether a metric that cannot be judged makes the gate doubtful. Any of
    /// [`super::VERDICT_METRICS`] can be a regression, but only throughput and the metrics with
    /// a threshold of their own have to rule one out.
    fn has_to_be_known(&self, metric: &str) -> bool {
        metric == THROUGHPUT || self.by_metric.contains_key(metric)
    }

    /// Returns the metrics with a threshold that no comparison has.
    pub fn without_rows<'a>(&'a self, compared: &'a Compared) -> impl Iterator<Item = &'a str> {
        let names = self.by_metric.keys().map(String::as_str);
        names.filter(|&name| {
            if name == WORK {
                return compared.work.is_empty();
            }
            compared.rows.iter().all(|row| row.metric != name)
        })
    }
}

/// The decision of the gate. Rows are indexes in [`Compared::rows`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Throughput and the metrics with a threshold of their own rule out a change for the worse
    /// beyond it, and no other metric shows one.
    Pass,
    /// These are shown to be worse, by more than the threshold as measured.
    Regressed(Vec<usize>),
    /// These may be worse by more than the threshold: they are invalid, measured once, or their
    /// interval goes beyond it. Empty: there was nothing to judge, or a metric with a threshold
    /// was not measured.
    Doubtful(Vec<usize>),
}

/// Judges a comparison. A change for the worse passes if its interval stays within the threshold. A
/// regression outweighs a doubt.
pub fn gate(compared: &Compared, thresholds: &Thresholds) -> Gate {
    gate_of(&judged(compared, thresholds), compared, thresholds)
}

/// Returns the decision of [`gate()`] on a comparison with these judgments, which are those of
/// [`judged`].
pub fn gate_of(judged: &[(usize, Judged)], compared: &Compared, thresholds: &Thresholds) -> Gate {
    let those = |wanted: Judged| -> Vec<usize> {
        let found = judged.iter().filter(|(_, judged)| *judged == wanted);
        found.map(|(index, _)| *index).collect()
    };

    let (regressed, doubtful) = (those(Judged::Regressed), those(Judged::Doubtful));

    if !regressed.is_empty() {
        Gate::Regressed(regressed)
    } else if !doubtful.is_empty()
        || (judged.is_empty() && !compared.is_work_alone())
        || thresholds.without_rows(compared).next().is_some()
    {
        Gate::Doubtful(doubtful)
    } else {
        Gate::Pass
    }
}

/// Returns the judgment of each comparison that the gate rests on, with its index in
/// [`Compared::rows`].
pub fn judged(compared: &Compared, thresholds: &Thresholds) -> Vec<(usize, Judged)> {
    let mut judged = Vec::new();
    for (index, row) in compared.rows.iter().enumerate() {
        let Some(threshold) = thresholds.of(&row.metric) else {
            continue;
        };

        let outcome = judge(row, threshold);
        if outcome == Judged::Regressed || thresholds.has_to_be_known(&row.metric) {
            judged.push((index, outcome));
        }
    }
    judged
}

/// Returns the judgment of the exact work of each connection that the gate rests on, with its
/// index in [`Compared::work`]. The work of the background depends on timers, so it is not judged.
///
/// Work that is shown to be more than its threshold is a regression. Only with a threshold of its
/// own does it have to rule one out.
pub fn judged_work(compared: &Compared, thresholds: &Thresholds) -> Vec<(usize, Judged)> {
    let has_to_be_known = thresholds.by_metric.contains_key(WORK);
    let mut judged = Vec::new();
    for (index, work) in compared.work.iter().enumerate() {
        if work.part.connection.is_none() {
            continue;
        }

        let outcome = judge_work(work, thresholds.of_work());
        if outcome == Judged::Regressed || has_to_be_known {
            judged.push((index, outcome));
        }
    }
    judged
}

fn judge_work(work: &ComparedWork, threshold: f64) -> Judged {
    let (Some(change), Some(shown_from)) = (work.change(), work.shown_from) else {
        return Judged::Doubtful;
    };

    match work.verdict {
        WorkVerdict::More if change > threshold => Judged::Regressed,
        WorkVerdict::More | WorkVerdict::Less => Judged::Passed,
        // A regression beyond the threshold would have been shown.
        _ if shown_from <= threshold => Judged::Passed,
        _ => Judged::Doubtful,
    }
}

/// The judgment of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// A change for the worse beyond the threshold is ruled out.
    Passed,
    /// The target is worse by more than the threshold.
    Regressed,
    /// Neither is certain.
    Doubtful,
}

fn judge(row: &ComparedStep, threshold: f64) -> Judged {
    match row.verdict {
        Verdict::Faster => Judged::Passed,
        Verdict::Slower if is_measured_beyond(row, threshold) => Judged::Regressed,
        // Two values of zero have a ratio of 1 and no interval.
        Verdict::Slower | Verdict::Equal | Verdict::TooNoisy => {
            match room_to_threshold(row, threshold) {
                Some(room) if room < 0.0 => Judged::Doubtful,
                _ => Judged::Passed,
            }
        }
        Verdict::Single | Verdict::Invalid | Verdict::NotComparable => Judged::Doubtful,
    }
}

/// Returns whether a comparison is worse than its threshold as measured, or has no ratio.
fn is_measured_beyond(row: &ComparedStep, threshold: f64) -> bool {
    row.ratio.is_none_or(|ratio| room_of(row, ratio, threshold) < 0.0)
}

/// Returns how much worse than `ratio` a comparison could be without going beyond its threshold, as
/// a share of the base.
fn room_of(row: &ComparedStep, ratio: f64, threshold: f64) -> f64 {
    if row.more_is_better { threshold - (1.0 - ratio) } else { threshold - (ratio - 1.0) }
}

/// Returns the interval by which the gate decides whether a comparison may be worse than its
/// threshold; `None` if its verdict alone decides, or if it has no interval.
pub fn gate_interval(row: &ComparedStep, threshold: f64) -> Option<Interval> {
    match row.verdict {
        Verdict::Slower if is_measured_beyond(row, threshold) => None,
        Verdict::Slower | Verdict::Equal | Verdict::TooNoisy => row.equality,
        _ => None,
    }
}

/// Returns the distance from the worse end of [`gate_interval`] to the threshold, as a share of the
/// base: it is negative if the interval reaches beyond. `None` without that interval.
pub fn room_to_threshold(row: &ComparedStep, threshold: f64) -> Option<f64> {
    let interval = gate_interval(row, threshold)?;
    let worst = if row.more_is_better { interval.low } else { interval.high };
    Some(room_of(row, worst, threshold))
}

/// Returns the total repeats per target, if they are added to these, that tell in [`super::POWER`]
/// of all cases whether a comparison is worse by more than its threshold. It is more than were
/// measured, and at most [`REPEATS_CAP`], which means that or more. `None`: unknown without an
/// interval, or if the figures are too coarse for any number of repeats.
///
/// That many repeats show a change as large as the threshold. A smaller change that is shown must
/// be distinguished from the threshold.
pub fn repeats_to_judge(row: &ComparedStep, threshold: f64) -> Option<u32> {
    row.repeats_needed?;

    let limit = if row.more_is_better { 1.0 - threshold } else { 1.0 + threshold };
    let from = match row.verdict {
        Verdict::Slower => row.ratio?,
        _ => 1.0,
    };

    // On a logarithmic scale a change has one size in both directions.
    let apart = (limit.max(0.0).ln() - from.ln()).abs();
    let there = row.values.len().max(row.base_values.len()) as u32;

    // That a regression is ruled out is a claim of each comparison by itself.
    let power = row.power(equality::LEVEL).with_added_repeats();
    let needed = row.repeats_for(apart.exp_m1(), power)?;
    Some(needed.max(there + 1).min(REPEATS_CAP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Pairing, Sample};

    fn row(metric: &str, verdict: Verdict, values: Option<(f64, f64, f64)>) -> ComparedStep {
        ComparedStep {
            cell: record::CellKey::new("new.base", None, 1, 0),
            step: "scan".into(),
            metric: metric.into(),
            more_is_better: metric == THROUGHPUT,
            ratio: values.map(|(_, ratio, _)| ratio),
            equality: values.map(|(low, _, high)| Interval { low, high, confidence: 0.9 }),
            pairing: Pairing::Paired,
            verdict,
            ..ComparedStep::default()
        }
    }

    fn judged(rows: Vec<ComparedStep>, own: &[(&str, f64)]) -> Gate {
        let compared = Compared { rows, ..Compared::default() };
        let thresholds = Thresholds {
            default: 0.05,
            by_metric: own.iter().map(|(name, t)| ((*name).into(), *t)).collect(),
        };
        gate(&compared, &thresholds)
    }

    #[test]
    fn a_regression_is_shown_and_exceeds_the_threshold() {
        let slower = |low, ratio, high| row(THROUGHPUT, Verdict::Slower, Some((low, ratio, high)));
        assert_eq!(judged(vec![slower(0.90, 0.94, 0.98)], &[]), Gate::Regressed(vec![0]));
        assert_eq!(judged(vec![slower(0.955, 0.96, 0.98)], &[]), Gate::Pass);
    }

    #[test]
    fn what_is_shown_to_be_worse_and_may_be_so_by_more_than_the_threshold_is_as_doubtful_as_noise()
    {
        let with = |verdict, high| row(THROUGHPUT, verdict, Some((0.94, 0.96, high)));
        for row in [with(Verdict::Slower, 0.98), with(Verdict::TooNoisy, 1.02)] {
            assert_eq!(judged(vec![row], &[]), Gate::Doubtful(vec![0]));
        }
        let cost = row("cpupq", Verdict::Slower, Some((1.02, 1.06, 1.11)));
        assert_eq!(judged(vec![cost], &[("cpupq", 0.1)]), Gate::Doubtful(vec![0]));
    }

    #[test]
    fn a_metric_with_a_threshold_that_nothing_has_is_doubtful() {
        let same = row(THROUGHPUT, Verdict::Equal, Some((0.99, 1.0, 1.01)));
        let rows = vec![same, row("cpupq", Verdict::Faster, Some((0.8, 0.9, 0.95)))];
        assert_eq!(judged(rows.clone(), &[("cpupq", 0.1)]), Gate::Pass);
        assert_eq!(judged(rows, &[("cpupq", 0.1), ("w_amp", 0.1)]), Gate::Doubtful(Vec::new()));
    }

    #[test]
    fn repeats_are_for_the_threshold_and_not_for_the_effect() {
        let five = |verdict, values| {
            let value = Sample { run: 0, repeat: 1, value: 1.0 };
            ComparedStep {
                values: vec![value; 5],
                base_values: vec![value; 5],
                spread: Some(0.1),
                repeats_needed: Some(REPEATS_CAP),
                ..row(THROUGHPUT, verdict, Some(values))
            }
        };
        let noisy = five(Verdict::TooNoisy, (0.77, 0.947, 1.14));
        // One-sided, two standard deviations take 4 pairs, and half of one takes 27, as power tables
        // have it. Repeats that are added after a look need more.
        let size = |sizes: f64| 1.0 - (-0.1 * sizes).exp();
        assert_eq!(repeats_to_judge(&noisy, size(2.0)), Some(8));
        let half = repeats_to_judge(&noisy, size(0.5)).unwrap();
        assert!((70..95).contains(&half), "{half}");
        assert_eq!(repeats_to_judge(&noisy, 0.001), Some(REPEATS_CAP));
        // What is shown must be distinguished from the threshold, which is half of one further
        // away.
        let shown = five(Verdict::Slower, (0.7, (-0.2_f64).exp(), 0.95));
        assert_eq!(repeats_to_judge(&shown, size(2.5)), Some(half));
        let coarse = ComparedStep { repeats_needed: None, ..noisy };
        assert_eq!(repeats_to_judge(&coarse, 0.1), None);
    }

    #[test]
    fn what_may_hide_a_regression_is_doubtful() {
        let noisy = |low, high| row(THROUGHPUT, Verdict::TooNoisy, Some((low, 1.0, high)));
        assert_eq!(judged(vec![noisy(0.94, 1.06)], &[]), Gate::Doubtful(vec![0]));
        // Too noisy to rule out 3%, but not 5%; or noisy toward the better.
        assert_eq!(judged(vec![noisy(0.955, 1.045), noisy(0.99, 1.2)], &[]), Gate::Pass);
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
    fn a_threshold_below_the_effect_applies_too() {
        let same = row(THROUGHPUT, Verdict::Equal, Some((0.98, 1.0, 1.02)));
        assert_eq!(judged(vec![same.clone()], &[]), Gate::Pass);
        assert_eq!(judged(vec![same], &[(THROUGHPUT, 0.01)]), Gate::Doubtful(vec![0]));
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
    fn the_interval_that_decides_is_that_of_equality_unless_the_verdict_does() {
        let noisy = row(THROUGHPUT, Verdict::TooNoisy, Some((0.96, 1.0, 1.04)));
        assert_eq!(gate_interval(&noisy, 0.05), noisy.equality);
        assert!((room_to_threshold(&noisy, 0.05).unwrap() - 0.01).abs() < 1e-9);
        assert!((room_to_threshold(&noisy, 0.03).unwrap() + 0.01).abs() < 1e-9);

        let cost = row("cpupq", Verdict::Equal, Some((0.96, 1.0, 1.02)));
        assert!((room_to_threshold(&cost, 0.05).unwrap() - 0.03).abs() < 1e-9);

        let slower = row(THROUGHPUT, Verdict::Slower, Some((0.7, 0.8, 0.9)));
        assert_eq!(gate_interval(&slower, 0.05), None);
        assert_eq!(gate_interval(&slower, 0.25), slower.equality);
        let faster = row(THROUGHPUT, Verdict::Faster, Some((1.1, 1.2, 1.3)));
        assert_eq!(gate_interval(&faster, 0.05), None);
    }

    #[test]
    fn costs_count_where_they_have_a_threshold_and_more_is_worse() {
        let rows = vec![
            row(THROUGHPUT, Verdict::Equal, Some((0.99, 1.0, 1.01))),
            row("cpupq", Verdict::Slower, Some((1.1, 1.2, 1.3))),
            row("rpq", Verdict::TooNoisy, Some((0.5, 1.0, 2.0))),
        ];
        assert_eq!(judged(rows.clone(), &[]), Gate::Pass);
        assert_eq!(judged(rows.clone(), &[("cpupq", 0.35)]), Gate::Pass);
        assert_eq!(judged(rows.clone(), &[("cpupq", 0.1)]), Gate::Regressed(vec![1]));
        assert_eq!(judged(rows, &[("rpq", 0.5)]), Gate::Doubtful(vec![2]));
    }

    #[test]
    fn own_cpu_shows_regressions_and_leaves_doubts_to_throughput() {
        let own = |verdict, values| row("own_cpu_us_per_op", verdict, values);
        let same = || row(THROUGHPUT, Verdict::Equal, Some((0.99, 1.0, 1.01)));
        let noisy = || row(THROUGHPUT, Verdict::TooNoisy, Some((0.7, 1.0, 1.4)));
        let more = || own(Verdict::Slower, Some((1.1, 1.2, 1.3)));
        let unknown = || own(Verdict::TooNoisy, Some((0.7, 1.0, 1.4)));
        let equal = || own(Verdict::Equal, Some((0.99, 1.0, 1.01)));
        assert_eq!(judged(vec![same(), more()], &[]), Gate::Regressed(vec![1]));
        assert_eq!(judged(vec![noisy(), more()], &[]), Gate::Regressed(vec![1]));
        assert_eq!(judged(vec![same(), unknown()], &[]), Gate::Pass);
        assert_eq!(judged(vec![noisy(), equal()], &[]), Gate::Doubtful(vec![0]));
        assert_eq!(judged(vec![equal()], &[]), Gate::Doubtful(Vec::new()));
        // Whoever asks for it wants to know.
        let asked = [("own_cpu_us_per_op", 0.05)];
        assert_eq!(judged(vec![same(), unknown()], &asked), Gate::Doubtful(vec![1]));
        assert_eq!(judged(vec![same(), more()], &[("own_cpu_us_per_op", 0.5)]), Gate::Pass);
    }

    fn work(connection: Option<&str>, change: f64, verdict: WorkVerdict) -> ComparedWork {
        ComparedWork {
            part: crate::compare::ComparedPart {
                connection: connection.map(str::to_owned),
                operations: Vec::new(),
            },
            ratio: Some(1.0 + change),
            shown_from: Some(0.005),
            verdict,
            ..ComparedWork::default()
        }
    }

    fn work_judged(work: Vec<ComparedWork>, own: &[(&str, f64)]) -> Vec<(usize, Judged)> {
        let compared = Compared { work, ..Compared::default() };
        let by_metric = own.iter().map(|(name, t)| ((*name).into(), *t)).collect();
        judged_work(&compared, &Thresholds { by_metric, ..Thresholds::default() })
    }

    #[test]
    fn more_work_that_is_shown_is_a_regression_beyond_its_threshold() {
        let more = || vec![work(Some("query"), 0.02, WorkVerdict::More)];
        assert_eq!(work_judged(more(), &[]), [(0, Judged::Regressed)]);
        assert_eq!(work_judged(more(), &[(WORK, 0.01)]), [(0, Judged::Regressed)]);
        assert_eq!(work_judged(more(), &[(WORK, 0.03)]), [(0, Judged::Passed)]);
        let background = vec![work(None, 0.2, WorkVerdict::More)];
        assert_eq!(work_judged(background, &[]), []);
    }

    #[test]
    fn work_has_to_be_known_only_where_it_has_a_threshold() {
        let wild = || {
            let wild = work(Some("query"), 0.02, WorkVerdict::NotDeterministic);
            vec![ComparedWork { shown_from: Some(0.04), ..wild }]
        };
        assert_eq!(work_judged(wild(), &[]), []);
        assert_eq!(work_judged(wild(), &[(WORK, 0.01)]), [(0, Judged::Doubtful)]);
        assert_eq!(work_judged(wild(), &[(WORK, 0.05)]), [(0, Judged::Passed)]);
        let same = vec![work(Some("query"), 0.001, WorkVerdict::NoChangeShown)];
        assert_eq!(work_judged(same, &[(WORK, 0.01)]), [(0, Judged::Passed)]);

        let missing = Thresholds { default: 0.03, by_metric: [(WORK.into(), 0.01)].into() };
        let compared = Compared::default();
        assert_eq!(missing.without_rows(&compared).collect::<Vec<_>>(), [WORK]);
    }

    #[test]
    fn none_of_it_on_either_side_passes() {
        let mut none = row("rpq", Verdict::Equal, None);
        none.ratio = Some(1.0);
        assert_eq!(judged(vec![none], &[("rpq", 0.1)]), Gate::Pass);
    }
}
