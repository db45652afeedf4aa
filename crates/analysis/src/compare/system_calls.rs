//! Compares how many system calls of each kind an operation makes.

use std::collections::BTreeSet;

use record::CellKey;
use serde::Serialize;

use super::ComparedStep;
use super::amounts::{Amount, AmountReader, ComparedRepeats, NamedAmount, compare_amounts};
use super::work::numbers_differ;
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

/// Compares the numbers of system calls, step by step. `compared` says which repeats count, and how
/// they are paired. The kinds of all steps are one family of the error rate.
pub(super) fn compare_system_calls(
    index: &RowIndex<'_>,
    compared: &[ComparedStep],
    base: &str,
    error_rate: f64,
) -> Vec<ComparedSystemCalls> {
    let mut all = Vec::new();
    for amounts in compare_amounts::<CallCounts>(index, compared, base, error_rate) {
        let kinds = amounts.differences.into_iter().map(|amount| SystemCallDifference {
            name: amount.name,
            base: amount.base,
            target: amount.target,
            difference: amount.difference,
            margin: amount.margin,
            is_shown: amount.is_shown,
        });
        all.push(ComparedSystemCalls {
            cell: amounts.step.cell.clone(),
            workload: amounts.step.workload.clone(),
            step: amounts.step.step.clone(),
            kinds: kinds.collect(),
        });
    }
    all
}

/// The numbers of calls per operation, by the kernel's names.
struct CallCounts;

impl AmountReader for CallCounts {
    type Name = String;

    /// Returns the counts of all kinds that were counted in all repeats, and happened in one.
    fn read(repeats: &ComparedRepeats<'_>) -> Vec<NamedAmount<String>> {
        let counted = repeats.all().flat_map(|row| row.system_calls.keys());
        let names: BTreeSet<&String> = counted.collect();
        names.into_iter().filter_map(|name| counts_of(name, repeats)).collect()
    }

    fn is_large(base: f64, target: f64) -> bool {
        numbers_differ(base, target)
    }
}

fn counts_of(name: &str, repeats: &ComparedRepeats<'_>) -> Option<NamedAmount<String>> {
    let base = counts(&repeats.base, name)?;
    let target = counts(&repeats.target, name)?;

    let mut all = base.iter().chain(&target);
    let happened = all.any(|count| count.per_operation != 0.0);
    happened.then(|| NamedAmount { name: name.to_owned(), base, target })
}

fn counts(rows: &[&Row], name: &str) -> Option<Vec<Amount>> {
    rows.iter().map(|row| count_of(row, name)).collect()
}

/// Returns the calls of one kind in one repeat; `None` if that did not count them.
fn count_of(row: &Row, name: &str) -> Option<Amount> {
    let per_operation = *row.system_calls.get(name)?;
    let operations = throughput(row)? * row.seconds;
    if operations <= 0.0 {
        return None;
    }

    // A kind that did not happen may still have happened.
    let calls = per_operation * operations + 1.0;
    Some(Amount { per_operation, variance: calls / operations.powi(2) })
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
