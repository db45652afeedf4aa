//! Compares amounts per operation that have names, such as waits and system calls: the amounts of all
//! steps are one family of the error rate.

use super::mean::{Mean, difference_of, mean, mean_of};
use super::student::{quantile, tails};
use super::{ComparedStep, Pairing, Sample, THROUGHPUT, family};
use crate::figures::Row;
use crate::figures::index::RowIndex;

/// Amounts of one sort, by their names.
pub(super) trait AmountReader {
    /// The name of an amount.
    type Name;

    /// Returns the amounts that can be compared in the repeats of a step.
    fn read(repeats: &ComparedRepeats<'_>) -> Vec<NamedAmount<Self::Name>>;

    /// Returns true if two means differ by more than a little.
    fn is_large(_base: f64, _target: f64) -> bool {
        true
    }
}

/// An amount in each repeat of two targets.
pub(super) struct NamedAmount<N> {
    pub name: N,
    pub base: Vec<Amount>,
    pub target: Vec<Amount>,
}

/// An amount in one repeat.
pub(super) struct Amount {
    pub per_operation: f64,
    /// The variance by counting alone.
    pub variance: f64,
}

/// The amounts of a step of a target, relative to its base.
pub(super) struct StepAmounts<'c, N> {
    pub step: &'c ComparedStep,
    /// First those whose change is shown, the largest change first; at least one.
    pub differences: Vec<AmountDifference<N>>,
}

/// The means of an amount per operation in two targets.
pub(super) struct AmountDifference<N> {
    pub name: N,
    pub base: f64,
    pub target: f64,
    /// The difference, from the repeats that are compared with each other.
    pub difference: f64,
    /// Half the width of the interval around the difference.
    pub margin: f64,
    /// The interval excludes zero, and the means differ by more than a little.
    pub is_shown: bool,
}

/// Compares the amounts of all targets with those of `base`, step by step. `compared` says which
/// repeats count, and how they are paired. Steps without amounts are left out.
pub(super) fn compare_amounts<'c, R: AmountReader>(
    index: &RowIndex<'_>,
    compared: &'c [ComparedStep],
    base: &str,
    error_rate: f64,
) -> Vec<StepAmounts<'c, R::Name>> {
    let mut estimated = Vec::new();
    for step in compared.iter().filter(|step| step.metric == THROUGHPUT) {
        if let Some(repeats) = ComparedRepeats::of(index, step, base) {
            let amounts = R::read(&repeats).into_iter();
            let estimates: Vec<_> = amounts.map(|amount| repeats.estimate(amount)).collect();
            estimated.push((step, estimates));
        }
    }

    let estimates = estimated.iter().flat_map(|(_, estimates)| estimates);
    let p_values: Vec<f64> = estimates.map(Estimate::p_value).collect();
    let level = family::level(&p_values, error_rate);

    let mut all = Vec::new();
    for (step, estimates) in estimated {
        let decided = estimates.into_iter().map(|estimate| estimate.at::<R>(level));
        let mut differences: Vec<_> = decided.collect();
        differences.sort_by(|a, b| {
            let by_shown = b.is_shown.cmp(&a.is_shown);
            by_shown.then(b.difference.abs().total_cmp(&a.difference.abs()))
        });

        if !differences.is_empty() {
            all.push(StepAmounts { step, differences });
        }
    }
    all
}

/// The difference of an amount, before the family is decided.
struct Estimate<N> {
    name: N,
    base: f64,
    target: f64,
    difference: Mean,
}

impl<N> Estimate<N> {
    fn p_value(&self) -> f64 {
        tails(self.difference.t(), self.difference.freedom)
    }

    fn at<R: AmountReader<Name = N>>(self, level: f64) -> AmountDifference<N> {
        let Mean { center, error, freedom } = self.difference;
        AmountDifference {
            is_shown: self.p_value() <= level && R::is_large(self.base, self.target),
            name: self.name,
            base: self.base,
            target: self.target,
            difference: center,
            margin: quantile(level, freedom) * error,
        }
    }
}

/// The repeats of a step that are compared with each other.
pub(super) struct ComparedRepeats<'a> {
    pub base: Vec<&'a Row>,
    pub target: Vec<&'a Row>,
    pairing: Pairing,
}

impl<'a> ComparedRepeats<'a> {
    /// Returns the repeats of a step; `None` if there is only one, or a row is missing.
    fn of(index: &RowIndex<'a>, step: &ComparedStep, base: &str) -> Option<Self> {
        let target = &step.cell.target;
        let of_target = match step.pairing {
            Pairing::Single => return None,
            // Pairs are of the same run and repeat.
            Pairing::Paired => &step.base_values,
            Pairing::Independent => &step.values,
        };

        let repeats = Self {
            base: rows_of(index, step, base, &step.base_values)?,
            target: rows_of(index, step, target, of_target)?,
            pairing: step.pairing,
        };

        // Names have different meanings in two engines.
        let is_alike = repeats.base.first()?.engine == repeats.target.first()?.engine;
        is_alike.then_some(repeats)
    }

    /// Returns the repeats of both targets.
    pub fn all(&self) -> impl Iterator<Item = &'a Row> {
        self.target.iter().chain(&self.base).copied()
    }

    fn estimate<N>(&self, amount: NamedAmount<N>) -> Estimate<N> {
        // Repeats that happen to agree still have the error of counting.
        let variance = counting_variance(&amount.base) + counting_variance(&amount.target);
        let base: Vec<f64> = amount.base.iter().map(|amount| amount.per_operation).collect();
        let target: Vec<f64> = amount.target.iter().map(|amount| amount.per_operation).collect();

        Estimate {
            name: amount.name,
            base: mean(&base),
            target: mean(&target),
            difference: self.difference(&base, &target, variance.sqrt()),
        }
    }

    /// Returns the mean difference between the values of the target's repeats and of the base's, in
    /// pairs if the repeats are. Its standard error is at least `floor`.
    fn difference(&self, base: &[f64], target: &[f64], floor: f64) -> Mean {
        if self.pairing == Pairing::Paired {
            let pairs = base.iter().zip(target);
            let differences: Vec<f64> = pairs.map(|(base, target)| target - base).collect();
            mean_of(&differences, floor)
        } else {
            difference_of(base, target, floor)
        }
    }
}

/// Returns the rows of a target's repeats; `None` if one is missing.
fn rows_of<'a>(
    index: &RowIndex<'a>,
    step: &ComparedStep,
    target: &str,
    samples: &[Sample],
) -> Option<Vec<&'a Row>> {
    let rows = samples.iter().map(|sample| {
        let mut rows = index.rows(step.place(), target);
        rows.find(|row| sample.is_of(row))
    });
    rows.collect()
}

/// Returns the variance of the mean of repeats by counting alone.
fn counting_variance(amounts: &[Amount]) -> f64 {
    let repeats = amounts.len() as f64;
    amounts.iter().map(|amount| amount.variance).sum::<f64>() / repeats.powi(2)
}
