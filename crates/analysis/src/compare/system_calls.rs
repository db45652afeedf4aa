//! Compares how many system calls of each kind an operation makes.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use record::CellKey;
use serde::Serialize;

use super::mean::{Mean, mean};
use super::student::{quantile, tails};
use super::waits::Repeats;
use super::work::numbers_differ;
use super::{ComparedStep, THROUGHPUT, family};
use crate::figures::index::RowIndex;
use crate::figures::{Row, throughput};

/// The system calls in one step of a target and of its base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedSystemCalls {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The workload.
    pub workload: String,
    /// The step.
    pub step: String,
    /// The kinds that were compared: first those whose change is shown, the largest change first.
    pub kinds: Vec<SystemCallDifference>,
}

/// The calls of one kind per operation, in two targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemCallDifference {
    /// The kernel's name.
    pub name: String,
    /// Calls per operation in the base.
    pub base: f64,
    /// Calls per operation in the target.
    pub target: f64,
    /// The difference, from the repeats that are compared with each other.
    pub difference: f64,
    /// Half the width of the interval around the difference.
    pub margin: f64,
    /// The interval excludes zero, and the numbers differ by more than a little.
    pub is_shown: bool,
}

impl SystemCallDifference {
    fn shown_and_large_first(&self, other: &Self) -> Ordering {
        let by_shown = other.is_shown.cmp(&self.is_shown);
        by_shown.then(other.difference.abs().total_cmp(&self.difference.abs()))
    }
}

/// Compares the numbers of system calls, step by step. `compared` says which repeats count, and how
/// they are paired. The kinds of all steps are one family of the error rate.
pub(super) fn compare_system_calls(
    index: &RowIndex<'_>,
    compared: &[ComparedStep],
    base: &str,
    error_rate: f64,
) -> Vec<ComparedSystemCalls> {
    let mut estimated = Vec::new();
    for step in compared.iter().filter(|step| step.metric == THROUGHPUT) {
        if let Some(repeats) = Repeats::of(index, step, base) {
            estimated.push((step, estimates(&repeats)));
        }
    }

    let kinds = estimated.iter().flat_map(|(_, kinds)| kinds);
    let p_values: Vec<f64> = kinds.map(KindEstimate::p_value).collect();
    let level = family::level(&p_values, error_rate);

    let mut all = Vec::new();
    for (step, estimates) in estimated {
        let mut kinds: Vec<SystemCallDifference> =
            estimates.into_iter().map(|kind| kind.at(level)).collect();
        kinds.sort_by(SystemCallDifference::shown_and_large_first);
        if !kinds.is_empty() {
            all.push(ComparedSystemCalls {
                cell: step.cell.clone(),
                workload: step.workload.clone(),
                step: step.step.clone(),
                kinds,
            });
        }
    }
    all
}

/// The difference of the calls of one kind, before the family is decided.
struct KindEstimate {
    name: String,
    base: f64,
    target: f64,
    difference: Mean,
}

impl KindEstimate {
    fn p_value(&self) -> f64 {
        tails(self.difference.t(), self.difference.freedom)
    }

    fn at(self, level: f64) -> SystemCallDifference {
        let Mean { center, error, freedom } = self.difference;
        SystemCallDifference {
            is_shown: self.p_value() <= level && numbers_differ(self.base, self.target),
            name: self.name,
            base: self.base,
            target: self.target,
            difference: center,
            margin: quantile(level, freedom) * error,
        }
    }
}

/// Returns the differences of all kinds that were counted in all repeats, and happened in one.
fn estimates(repeats: &Repeats<'_>) -> Vec<KindEstimate> {
    let all: BTreeSet<&str> =
        repeats.all().flat_map(|row| row.system_calls.keys().map(String::as_str)).collect();
    all.into_iter().filter_map(|name| estimate(repeats, name)).collect()
}

fn estimate(repeats: &Repeats<'_>, name: &str) -> Option<KindEstimate> {
    let of_base = counts_of(&repeats.base, name)?;
    let of_target = counts_of(&repeats.target, name)?;
    let mut all = of_base.iter().chain(&of_target);
    if all.all(|count| count.per_operation == 0.0) {
        return None;
    }

    // Repeats that happen to agree still have the error of counting.
    let floor = (counting_variance(&of_base) + counting_variance(&of_target)).sqrt();
    let base: Vec<f64> = of_base.iter().map(|count| count.per_operation).collect();
    let target: Vec<f64> = of_target.iter().map(|count| count.per_operation).collect();

    Some(KindEstimate {
        name: name.to_owned(),
        base: mean(&base),
        target: mean(&target),
        difference: repeats.difference(&base, &target, floor),
    })
}

/// The calls of one kind in one repeat.
struct CallCount {
    per_operation: f64,
    /// The variance by counting alone.
    variance: f64,
}

/// Returns the counts of a kind in each repeat; `None` if one did not count it.
fn counts_of(rows: &[&Row], name: &str) -> Option<Vec<CallCount>> {
    let mut counts = Vec::new();
    for row in rows {
        let per_operation = *row.system_calls.get(name)?;
        let operations = throughput(row)? * row.seconds;
        if operations <= 0.0 {
            return None;
        }
        // A kind that did not happen may still have happened.
        let calls = per_operation * operations + 1.0;
        counts.push(CallCount { per_operation, variance: calls / operations.powi(2) });
    }
    Some(counts)
}

/// Returns the variance of the mean of repeats by counting alone.
fn counting_variance(counts: &[CallCount]) -> f64 {
    let repeats = counts.len() as f64;
    counts.iter().map(|count| count.variance).sum::<f64>() / repeats.powi(2)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::{Status, StepKind};
    use words::Random;

    use super::*;
    use crate::compare::{CompareOptions, compare};
    use crate::figures::Figures;

    const OPERATIONS: f64 = 20_000.0;

    /// Returns a number of events of a Poisson process, by the normal approximation.
    fn events(expected: f64, random: &mut Random) -> f64 {
        let uniform: f64 = (0..12).map(|_| random.fraction()).sum();
        (expected + expected.sqrt() * (uniform - 6.0)).round().max(0.0)
    }

    /// Adds five repeats of a target that makes so many calls of each kind per operation: exactly,
    /// or give or take a share in each repeat.
    fn add(figures: &mut Figures, target: &str, calls: &[(&str, f64, f64)], random: &mut Random) {
        for repeat in 1..=5 {
            let mut system_calls = BTreeMap::new();
            for &(name, per_operation, spread) in calls {
                let expected = per_operation * OPERATIONS;
                let count = if spread == 0.0 {
                    expected
                } else {
                    let noise = 1.0 + spread * (2.0 * random.fraction() - 1.0);
                    events(expected * noise, random)
                };
                system_calls.insert(name.to_owned(), count / OPERATIONS);
            }
            figures.rows.push(Row {
                system_calls,
                cell: CellKey::new(target, None, 1, repeat),
                step: "l.i1".into(),
                valid: true,
                status: Status::Complete,
                reported: true,
                kind: StepKind::Load,
                seconds: 2.0,
                metrics: [("ips", Some(OPERATIONS / 2.0))].into(),
                ..Row::default()
            });
        }
    }

    fn kinds(figures: &Figures) -> Vec<SystemCallDifference> {
        let options = CompareOptions { base: "old".to_owned(), ..CompareOptions::default() };
        compare(figures, &options).system_calls.into_iter().flat_map(|step| step.kinds).collect()
    }

    #[test]
    fn a_kind_that_doubled_is_shown_first_and_its_interval_holds_the_truth() {
        let mut missed = 0;
        for seed in 0..100 {
            let (mut figures, mut random) = (Figures::default(), Random::new(seed));
            let base = [("fdatasync", 1.0, 0.0), ("futex", 0.5, 0.2), ("pread64", 3.0, 0.01)];
            add(&mut figures, "old", &base, &mut random);
            let target = [("fdatasync", 1.0, 0.0), ("futex", 0.5, 0.2), ("pread64", 6.0, 0.01)];
            add(&mut figures, "new", &target, &mut random);

            let kinds = kinds(&figures);
            assert_eq!(kinds[0].name, "pread64");
            assert!(kinds[0].is_shown, "{kinds:?}");
            missed += u32::from((kinds[0].difference - 3.0).abs() > kinds[0].margin);
            let same = kinds.iter().find(|kind| kind.name == "fdatasync").unwrap();
            assert!(!same.is_shown && same.difference == 0.0, "{kinds:?}");
        }
        // 5 are expected at most; more than 12 happen in one of 600 cases.
        assert!(missed <= 12, "{missed} of 100");
    }

    #[test]
    fn a_change_of_less_than_a_percent_is_not_shown_however_exact_it_is() {
        let (mut figures, mut random) = (Figures::default(), Random::new(1));
        add(&mut figures, "old", &[("recvfrom", 100.0, 0.0)], &mut random);
        add(&mut figures, "new", &[("recvfrom", 100.9, 0.0)], &mut random);
        assert!(!kinds(&figures)[0].is_shown);
    }

    #[test]
    fn repeats_that_agree_still_have_the_error_of_counting() {
        // Per repeat, one call in a few operations is chance, and one per operation is not.
        for (operations, is_shown) in [(90.0, false), (1.0, false), (20_000.0, true)] {
            let (mut figures, mut random) = (Figures::default(), Random::new(1));
            let calls = if is_shown { 1.0 } else { 1.0 / operations };
            add(&mut figures, "old", &[("openat", 0.0, 0.0)], &mut random);
            add(&mut figures, "new", &[("openat", calls, 0.0)], &mut random);
            for row in &mut figures.rows {
                row.metrics.insert("ips", Some(operations / row.seconds));
            }
            let kinds = kinds(&figures);
            assert_eq!(kinds[0].is_shown, is_shown, "{kinds:?}");
        }
    }

    #[test]
    fn a_kind_that_a_repeat_did_not_count_is_not_compared_and_not_zero() {
        let (mut figures, mut random) = (Figures::default(), Random::new(1));
        for target in ["old", "new"] {
            add(&mut figures, target, &[("read", 1.0, 0.0), ("poll", 1.0, 0.0)], &mut random);
        }
        figures.rows[7].system_calls.remove("poll");
        let names: Vec<String> = kinds(&figures).into_iter().map(|kind| kind.name).collect();
        assert_eq!(names, ["read"]);
    }

    #[test]
    fn equal_targets_show_a_kind_in_at_most_the_error_rate() {
        let mut shown = 0;
        for seed in 0..400 {
            let (mut figures, mut random) = (Figures::default(), Random::new(1000 + seed));
            let calls = [
                ("futex", 0.5, 0.3),
                ("pread64", 3.0, 0.05),
                ("epoll_wait", 0.05, 0.1),
                ("openat", 0.02, 0.2),
            ];
            add(&mut figures, "old", &calls, &mut random);
            add(&mut figures, "new", &calls, &mut random);
            shown += u32::from(kinds(&figures)[0].is_shown);
        }
        // 20 are expected at most; more than 32 happen in one of 200 cases.
        assert!(shown <= 32, "{shown} of 400");
    }
}
