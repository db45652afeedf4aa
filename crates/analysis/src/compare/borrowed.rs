//! The noise of a comparison, and what the others of its table tell about it.
//!
//! Three repeats say little about the spread of their own step: among 24 comparisons, the smallest
//! change that they show is 13 times the spread. But a target has many steps, and their spreads are
//! related. So each spread is *moderated* (Smyth 2004): it becomes the mean of its own variance and
//! of a [prior](super::prior) variance, weighted by their degrees of freedom. Both come from the
//! spreads of this target.
//!
//! Where the repeats of a step agree better than its turns can tell them apart, which few repeats do
//! by luck, the spread is moderated toward what the turns show. `docs/statistics.md` has the
//! formulas.

use super::draft::UndecidedRow;
use super::prior::{Prior, SPREADS_MIN, Spread, priors};
use super::shared_noise::{RepeatKey, RepeatSide, RepeatValues};
use super::typical::NoiseWithin;
use super::{ModeratedSpread, Pairing, student};
use crate::order::distinct;

/// The fewest repeats of a comparison that takes part. The correlation of two comparisons with two
/// repeats is always 1 or -1, so nobody could tell whether they share their noise.
pub(super) const REPEATS_MIN: u32 = 3;

/// The weight of what turns show about the noise of a repeat, in degrees of freedom. The weight is
/// small because turns that follow each other closely are not quite independent: their error may be
/// too large by half, and many repeats tell better.
const WEIGHT_OF_TURNS: f64 = 2.0;

/// The probability below which repeats do not agree by luck: turns then have an error that is too
/// large, such as that of a stall which each step has once.
const LUCK_LEVEL: f64 = 0.001;

/// The reason why a comparison borrows nothing about its spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBorrowed {
    /// Fewer than three repeats count.
    FewRepeats,
    /// Base and target have different numbers of repeats.
    UnequalSizes,
    /// Some repeat has too few turns to show its noise.
    FewTurns,
    /// The figures are rounded or all equal, or the ratio differs between machines.
    NoSample,
    /// Too few comparisons of its metric and target can lend.
    FewLenders,
    /// The spreads of the others differ too much, depend on each other, or are unlike its own.
    Unlike,
}

/// Moderates the error of each comparison by the spreads of those of the same metric, and by what its
/// own turns show.
pub(super) fn moderate_spreads(comparisons: &mut [&mut UndecidedRow]) {
    let metrics = distinct(comparisons.iter().map(|draft| draft.row.metric.as_str()));
    let metrics: Vec<String> = metrics.into_iter().map(str::to_owned).collect();

    for metric in metrics {
        let mut lenders = Vec::new();
        let mut spreads = Vec::new();
        for draft in comparisons.iter_mut().filter(|draft| draft.row.metric == metric) {
            let Some(spread) = draft.spread() else {
                draft.row.not_borrowed = Some(NotBorrowed::NoSample);
                continue;
            };
            let has_turns = draft.row.error_within.is_some_and(|error| error > 0.0);
            draft.row.contradicts_turns = has_turns && spread.turn_variance == 0.0;
            if let Some(reason) = draft.reason_not_to_lend() {
                draft.row.not_borrowed = Some(reason);
                draft.moderate(&spread, Prior::default());
            } else {
                lenders.push(draft);
                spreads.push(spread);
            }
        }

        let has_few_lenders = spreads.len() < SPREADS_MIN;
        let priors = priors(&spreads);
        for ((draft, spread), prior) in lenders.into_iter().zip(&spreads).zip(priors) {
            if prior.is_none() {
                let reason =
                    if has_few_lenders { NotBorrowed::FewLenders } else { NotBorrowed::Unlike };
                draft.row.not_borrowed = Some(reason);
            }
            draft.moderate(spread, prior.unwrap_or_default());
        }
    }
}

impl UndecidedRow {
    /// Returns the spread of the comparison; `None` if its repeats don't tell.
    fn spread(&self) -> Option<Spread> {
        let estimate = self.estimate.as_ref()?;
        let variance = estimate.spread * estimate.spread;
        let freedom = estimate.spread_freedom()?;
        Some(Spread {
            variance,
            freedom,
            turn_variance: explained_by_turns(self.noise_within, variance, freedom),
            logarithms: self.logarithms(),
        })
    }

    /// Returns the reason why the spread tells nothing about the noise of other comparisons; `None`
    /// if it does.
    fn reason_not_to_lend(&self) -> Option<NotBorrowed> {
        if self.row.repeats() < REPEATS_MIN {
            return Some(NotBorrowed::FewRepeats);
        }

        // The error of two samples of unequal size is no multiple of their common spread.
        if self.row.base_values.len() != self.row.values.len() {
            return Some(NotBorrowed::UnequalSizes);
        }

        // Of a step that is too short to show its own noise, nobody can tell whether its spread is
        // like the others.
        let is_too_short = self.noise_within == NoiseWithin::TooFewTurns;
        is_too_short.then_some(NotBorrowed::FewTurns)
    }

    /// Returns the logarithms by which the noise of this comparison and of others is compared.
    fn logarithms(&self) -> RepeatValues {
        let mut logarithms = RepeatValues::new();
        if self.row.pairing == Pairing::Paired {
            for (base, value) in self.row.base_values.iter().zip(&self.row.values) {
                let key = RepeatKey::of(RepeatSide::Both, value);
                logarithms.insert(key, (value.value / base.value).ln());
            }
            return logarithms;
        }

        // What makes the base slower makes the target look faster.
        for base in &self.row.base_values {
            logarithms.insert(RepeatKey::of(RepeatSide::Base, base), -base.value.ln());
        }
        for value in &self.row.values {
            logarithms.insert(RepeatKey::of(RepeatSide::Target, value), value.value.ln());
        }
        logarithms
    }

    /// Moderates the error by what other comparisons tell, and by what the step's own turns do.
    fn moderate(&mut self, own: &Spread, of_others: Prior) {
        let Some(estimate) = &mut self.estimate else {
            return;
        };
        if of_others.freedom == 0.0 && own.variance >= own.turn_variance {
            return;
        }

        estimate.moderate(moderated_variance(own, of_others), of_others.freedom);
        self.row.p_value = Some(estimate.p_value());
        self.row.moderated = Some(ModeratedSpread {
            spread: estimate.moderated_spread(),
            freedom: estimate.freedom(),
            borrowed_freedom: of_others.freedom,
        });
    }
}

/// Returns the variance of a comparison's own spread, moderated by what others tell and by what the
/// step's turns show.
fn moderated_variance(own: &Spread, of_others: Prior) -> f64 {
    let by_others = of_others.moderate(own.variance, own.freedom);
    if own.variance >= own.turn_variance {
        return by_others;
    }

    // Repeats that agree better than their turns can tell do so by luck. Turns tell nothing about
    // how starts differ, so they only make a spread larger here, and lend no freedom. Nor do they
    // tell whether other steps are alike, so the variance of the others keeps its own weight.
    let of_turns = Prior { variance: own.turn_variance, freedom: WEIGHT_OF_TURNS };
    by_others.max(of_turns.moderate(own.variance, own.freedom))
}

/// Returns the part of the variance `own`, with some degrees of freedom, that turns explain: more
/// than all of it if repeats agree by luck, and zero if not even luck explains that they agree so
/// well.
fn explained_by_turns(noise_within: NoiseWithin, own: f64, freedom: f64) -> f64 {
    let turn_variance = noise_within.error().map_or(0.0, |error| error * error);
    if luck_explains(turn_variance, own, freedom) { turn_variance } else { 0.0 }
}

/// Returns whether luck explains that repeats show the variance `own`, with some degrees of freedom,
/// where their turns show `turn_variance`.
fn luck_explains(turn_variance: f64, own: f64, freedom: f64) -> bool {
    // Turns have so many degrees of freedom that more would change nothing.
    student::f_tail(turn_variance / own, [Prior::FREEDOM_MAX, freedom]) >= LUCK_LEVEL
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(variance: f64, freedom: f64, turn_variance: f64) -> Spread {
        Spread { variance, freedom, turn_variance, logarithms: RepeatValues::new() }
    }

    #[test]
    fn turns_make_a_spread_larger_and_never_smaller() {
        let nothing = Prior::default();
        let [narrow, wide] = [1.0, 5.0].map(|variance| spread(variance, 2.0, 4.0));
        assert!((moderated_variance(&narrow, nothing) - 10.0 / 4.0).abs() < 1e-12);
        assert_eq!(moderated_variance(&wide, nothing), 5.0);

        // Others may tell more than the turns do.
        let of_others = Prior { variance: 9.0, freedom: 8.0 };
        assert_eq!(moderated_variance(&narrow, of_others), of_others.moderate(1.0, 2.0));
    }

    #[test]
    fn turns_give_no_weight_to_other_steps_that_are_not_alike() {
        let noisy_others = Prior { variance: 100.0, freedom: 0.5 };
        let moderated = |own: f64| moderated_variance(&spread(own, 9.0, 1.0), noisy_others);

        // By hand: (0.5 x 100 + 9) / 9.5, whether repeats agree a little better than turns or not.
        assert!((moderated(1.0) - 59.0 / 9.5).abs() < 1e-12);
        assert!((moderated(0.999_999) - 59.0 / 9.5).abs() < 1e-5);

        // Others that lend next to nothing leave the weight of turns: (2 x 1 + 9 x 0.2) / 11.
        let far_others = Prior { freedom: 0.001, ..noisy_others };
        let lucky = moderated_variance(&spread(0.2, 9.0, 1.0), far_others);
        assert!((lucky - 3.8 / 11.0).abs() < 1e-12);
    }

    /// Of a chi-squared distribution with 4 degrees of freedom, 0.1% is below 0.0908 (Abramowitz and
    /// Stegun, table 26.8, has it for 99.9%).
    #[test]
    fn repeats_that_agree_too_well_for_luck_tell_that_the_error_of_turns_is_too_large() {
        assert!(!luck_explains(1.0, 0.9 * 0.0908 / 4.0, 4.0));
        assert!(luck_explains(1.0, 1.1 * 0.0908 / 4.0, 4.0));
    }
}
