//! The noise of a comparison, and what the others of its table tell about it.
//!
//! Three repeats say little about the spread of their own step: among 24 comparisons, the smallest
//! change that they show is 13 times the spread. But a target has many steps, and their spreads are
//! related. So each spread is *moderated* (Smyth 2004): it becomes the mean of its own variance and
//! of a [prior](super::prior) variance, weighted by their degrees of freedom. Both come from the
//! spreads of this target.
//!
//! Where the repeats of a step agree better than its turns can tell them apart, which few repeats do
//! by luck, the spread is moderated towards what the turns show. `docs/statistics.md` has the
//! formulas.

use super::draft::UndecidedRow;
use super::prior::{Prior, Spread, priors};
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

/// Moderates the error of each comparison by the spreads of those of the same metric, and by what its
/// own turns show.
pub(super) fn moderate_spreads(comparisons: &mut [&mut UndecidedRow]) {
    let metrics = distinct(comparisons.iter().map(|draft| draft.row.metric.as_str()));
    let metrics: Vec<String> = metrics.into_iter().map(str::to_owned).collect();

    for metric in metrics {
        let mut lenders = Vec::new();
        let mut spreads = Vec::new();
        for draft in comparisons.iter_mut().filter(|draft| draft.row.metric == metric) {
            if let Some(spread) = draft.own_spread() {
                spreads.push(spread);
                lenders.push(draft);
            } else {
                draft.moderate(Prior::default());
            }
        }

        for (draft, prior) in lenders.into_iter().zip(priors(&spreads)) {
            draft.moderate(prior.unwrap_or_default());
        }
    }
}

impl UndecidedRow {
    /// Returns the spread that the comparison lends to others; `None` if it tells nothing about noise.
    fn own_spread(&self) -> Option<Spread> {
        let (base_count, count) = (self.row.base_values.len(), self.row.values.len());

        // The error of two samples of unequal size is no multiple of their common spread.
        if self.row.repeats() < REPEATS_MIN || base_count != count {
            return None;
        }

        // Of a step that is too short to show its own noise, nobody can tell whether its spread is
        // like the others.
        if self.noise_within == NoiseWithin::TooFewTurns {
            return None;
        }

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

    /// Returns the logarithms by which the noise of this comparison and of others is compared.
    fn logarithms(&self) -> RepeatValues {
        let (base, values) = (&self.row.base_values, &self.row.values);
        if self.row.pairing == Pairing::Paired {
            let pairs = values.iter().zip(base);
            return pairs
                .map(|(value, base)| {
                    (RepeatKey::of(RepeatSide::Both, value), (value.value / base.value).ln())
                })
                .collect();
        }

        // What makes the base slower makes the target look faster.
        let of_base =
            base.iter().map(|sample| (RepeatKey::of(RepeatSide::Base, sample), -sample.value.ln()));
        let of_target = values
            .iter()
            .map(|sample| (RepeatKey::of(RepeatSide::Target, sample), sample.value.ln()));
        of_base.chain(of_target).collect()
    }

    /// Moderates the error by what other comparisons and the step's own turns tell.
    fn moderate(&mut self, of_others: Prior) {
        let Some(estimate) = &mut self.estimate else {
            return;
        };
        let Some(freedom) = estimate.spread_freedom() else {
            return;
        };

        let own = estimate.spread * estimate.spread;
        let turn_variance = explained_by_turns(self.noise_within, own, freedom);
        if of_others.freedom == 0.0 && own >= turn_variance {
            return;
        }

        let variance = moderated_variance(of_others, turn_variance, own, freedom);
        estimate.moderate(variance, of_others.freedom);
        self.row.p_value = Some(estimate.p_value());
        self.row.moderated = Some(ModeratedSpread {
            spread: estimate.moderated_spread(),
            freedom: estimate.freedom(),
            borrowed_freedom: of_others.freedom,
        });
    }
}

/// Returns the variance `own`, which repeats show with some degrees of freedom, moderated by what others
/// tell and by the variance that the step's turns show.
fn moderated_variance(of_others: Prior, turn_variance: f64, own: f64, freedom: f64) -> f64 {
    let by_others = of_others.moderate(own, freedom);
    if own >= turn_variance {
        return by_others;
    }

    // Repeats that agree better than their turns can tell do so by luck. Turns tell nothing about
    // how starts differ, so they only make a spread larger here, and lend no freedom. Nor do they
    // tell whether other steps are alike, so the variance of the others keeps its own weight.
    let by_turns = Prior { variance: turn_variance, freedom: WEIGHT_OF_TURNS };
    by_others.max(by_turns.moderate(own, freedom))
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

    #[test]
    fn turns_make_a_spread_larger_and_never_smaller() {
        let nothing = Prior::default();
        assert!((moderated_variance(nothing, 4.0, 1.0, 2.0) - 10.0 / 4.0).abs() < 1e-12);
        assert_eq!(moderated_variance(nothing, 4.0, 5.0, 2.0), 5.0);

        // Others may tell more than the turns do.
        let of_others = Prior { variance: 9.0, freedom: 8.0 };
        assert_eq!(moderated_variance(of_others, 4.0, 1.0, 2.0), of_others.moderate(1.0, 2.0));
    }

    #[test]
    fn turns_give_no_weight_to_other_steps_that_are_not_alike() {
        let noisy_others = Prior { variance: 100.0, freedom: 0.5 };
        let moderated = |own: f64| moderated_variance(noisy_others, 1.0, own, 9.0);

        // By hand: (0.5 x 100 + 9) / 9.5, whether repeats agree a little better than turns or not.
        assert!((moderated(1.0) - 59.0 / 9.5).abs() < 1e-12);
        assert!((moderated(0.999_999) - 59.0 / 9.5).abs() < 1e-5);

        // Others that lend next to nothing leave the weight of turns: (2 x 1 + 9 x 0.2) / 11.
        let far_others = Prior { freedom: 0.001, ..noisy_others };
        let lucky = moderated_variance(far_others, 1.0, 0.2, 9.0);
        assert!((lucky - 3.8 / 11.0).abs() < 1e-12);
    }

    /// Of a chi-squared distribution with 4 degrees of freedom, 0.1% is below 0.0908 (Abramowitz and
    /// Stegun, table 26.8, has it for 99.9%).
    #[test]
    fn repeats_that_agree_too_well_for_luck_tell_that_the_error_turn_variance_is_too_large() {
        assert!(!luck_explains(1.0, 0.9 * 0.0908 / 4.0, 4.0));
        assert!(luck_explains(1.0, 1.1 * 0.0908 / 4.0, 4.0));
    }
}
