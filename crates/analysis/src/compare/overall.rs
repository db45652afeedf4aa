//! The geometric mean of a target's ratios over all steps, by which targets are ranked.

use serde::Serialize;

use super::draft::{TargetPair, UndecidedRow};
use super::matching::NamedSide;
use super::metric::THROUGHPUT;
use super::samples::{Samples, Side, TargetStep};
use super::typical::NoiseWithin;
use super::verdict::decide;
use super::{CompareOptions, ComparedStep, Pairing};
use crate::figures::index::StepPlace;
use crate::order::distinct;

/// The error rate of the means of all targets together, as a share of that of a family. A mean is one
/// more chance to claim something that is not true, so it has to be a small one.
const SHARE_OF_ERROR_RATE: f64 = 0.2;

/// The mean ratio of a target over all steps, variants and numbers of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overall {
    /// The comparison of the means of all steps in each repeat. It has no step of its own.
    pub compared: ComparedStep,
    /// The number of steps that count.
    pub step_count: usize,
    /// The number of steps that base or target have.
    pub all_step_count: usize,
}

/// The values of both targets in a step.
struct StepSides<'t> {
    targets: TargetPair<'t>,
    base: Side,
    target: Side,
}

impl StepSides<'_> {
    /// Returns the number of repeats that both have.
    fn common_repeats(&self) -> usize {
        let base_values = self.base.values.iter();
        base_values.filter(|value| self.target.of_repeat(&value.sample).is_some()).count()
    }

    /// Returns true if the values have logarithms.
    fn is_above_zero(&self) -> bool {
        let mut values = self.base.values.iter().chain(&self.target.values);
        values.all(|value| value.sample.value > 0.0)
    }
}

/// Compares the means of each target with those of the base, in the order of the figures. A target
/// without any step in common with the base is left out.
pub(super) fn overall(
    samples: &Samples<'_>,
    comparisons: &[TargetStep<'_>],
    options: &CompareOptions,
) -> Vec<Overall> {
    let targets = distinct(comparisons.iter().map(|compared| compared.target));
    let error_rate = options.error_rate * SHARE_OF_ERROR_RATE / targets.len().max(1) as f64;
    let options = CompareOptions { error_rate, ..options.clone() };

    let mut means = Vec::new();
    for target in targets {
        let of_target = comparisons.iter().filter(|compared| compared.target == target);
        let places = of_target.map(|compared| compared.place).collect();
        means.extend(of_steps(samples, target, places, &options));
    }
    means
}

/// Returns the mean ratio of a target in some steps; `None` if the base has none of them.
fn of_steps(
    samples: &Samples<'_>,
    target: &str,
    places: Vec<StepPlace<'_>>,
    options: &CompareOptions,
) -> Option<Overall> {
    let all_step_count = places.len();
    let first = *places.first()?;

    let mut steps = Vec::new();
    for place in places {
        steps.push(StepSides {
            targets: TargetPair { place, base: &options.base, target },
            base: samples.side(place, &options.base, THROUGHPUT),
            target: samples.side(place, target, THROUGHPUT),
        });
    }

    // Runs that are compared have no common repeats, but each side has values.
    steps.retain(|sides| !sides.base.values.is_empty() && !sides.target.values.is_empty());
    steps.retain(StepSides::is_above_zero);
    let most = steps.iter().map(StepSides::common_repeats).max()?;
    steps.retain(|sides| 2 * sides.common_repeats() >= most);

    let of_base: Vec<&Side> = steps.iter().map(|sides| &sides.base).collect();
    let of_target: Vec<&Side> = steps.iter().map(|sides| &sides.target).collect();
    let mut mean = UndecidedRow::new(first.without_step(), target, THROUGHPUT);
    mean.fill(
        samples,
        NamedSide { name: &options.base, side: &Side::mean_of(&of_base) },
        NamedSide { name: target, side: &Side::mean_of(&of_target) },
    );

    if mean.row.pairing == Pairing::Paired {
        let of_step =
            |step: &StepSides<'_>| NoiseWithin::of_pairs(samples, step.targets, &mean.row);
        let of_steps: Vec<NoiseWithin> = steps.iter().map(of_step).collect();
        mean.noise_within = NoiseWithin::of_mean(&of_steps);
    }

    // Each target has one mean, so it is a family of its own.
    decide(THROUGHPUT, vec![&mut mean], options);
    Some(Overall { compared: mean.row, step_count: steps.len(), all_step_count })
}
