//! The prior variance of a comparison: what the spreads of the other steps lead one to expect.
//!
//! ```text
//! own variances, less what turns explain ──► how much do starts differ? ──► the prior's variance
//!       how much do the remainders differ? ──► the prior's freedom
//!           are their repeats independent? ──► at most this much freedom
//! ```
//!
//! The turns of a step show a part of its noise: how much the ratio of one repeat would differ if
//! only its turns were measured again. Starts differ by more than that, often in all steps alike. So
//! the prior's variance of a step is what its turns explain, and a part that all steps have in
//! common; or, where the spreads are alike whatever turns say, their geometric mean.
//!
//! Two things keep this honest. Where spreads differ for no known reason, the prior has few degrees
//! of freedom, and little is borrowed. And where the steps of a cell share their noise, as next to a
//! noisy neighbor, ten spreads are one spread seen ten times: then nothing is borrowed, however alike
//! they look. `docs/statistics.md` has the formulas.

use statrs::function::gamma::digamma;

use super::mean::{mean, variance};
use super::shared_noise::{RepeatValues, independent_count};
use super::student;
use super::trigamma::{inverse_trigamma, trigamma};

/// The fewest spreads from which a prior is estimated.
pub(super) const SPREADS_MIN: usize = 4;

/// From this many spreads on, the widest tenth is checked for wild ones.
const SPREADS_WITH_WILD: usize = 8;

/// The probability, over all spreads, of calling wild a spread that follows the prior.
const WILD_LEVEL: f64 = 0.01;

/// The variance of a comparison that the other steps lead one to expect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Prior {
    /// The variance of the logarithm of one repeat's ratio.
    pub variance: f64,
    /// The degrees of freedom that the expectation is worth.
    pub freedom: f64,
}

impl Prior {
    /// The most degrees of freedom of a prior. More would change no figure.
    pub const FREEDOM_MAX: f64 = 1000.0;

    /// Returns the variance of a comparison, moderated by this prior.
    pub fn moderate(self, variance: f64, freedom: f64) -> f64 {
        (self.freedom * self.variance + freedom * variance) / (self.freedom + freedom)
    }
}

/// The spread of one comparison.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// The variance of the logarithm of one repeat's ratio; above zero.
    pub variance: f64,
    /// The degrees of freedom of the variance.
    pub freedom: f64,
    /// The part of the variance that the step's turns explain; zero if it took no turns, or if its
    /// repeats contradict them.
    pub turn_variance: f64,
    /// The logarithm of each repeat's ratio, or of each value of both sides.
    pub logarithms: RepeatValues,
}

/// The way in which the spreads of steps are like each other.
#[derive(Clone, Copy, PartialEq)]
enum Likeness {
    /// All of a spread has the same size in each step.
    Whole,
    /// The part of a spread that turns don't explain has the same size in each step.
    BeyondTurns,
}

impl Spread {
    /// Returns the logarithm of the variance, corrected so that its expectation is the logarithm
    /// of the true variance (Smyth 2004, section 6.2).
    fn log_variance(&self) -> f64 {
        let half_freedom = self.freedom / 2.0;
        self.variance.ln() - digamma(half_freedom) + half_freedom.ln()
    }

    /// Returns the part of the variance that is particular to this step.
    fn own_part(&self, likeness: Likeness) -> f64 {
        match likeness {
            Likeness::Whole => 0.0,
            Likeness::BeyondTurns => self.turn_variance,
        }
    }

    /// Returns the logarithm of variance / expectation, where one expects the part of this step and
    /// the common part.
    fn log_excess(&self, likeness: Likeness, common_part: f64) -> f64 {
        self.log_variance() - (self.own_part(likeness) + common_part).ln()
    }
}

/// Returns the prior of each spread, in their order; `None` for those that borrow nothing.
///
/// Each step borrows under the likeness that gives its prior more degrees of freedom. A step whose
/// turns explain nothing is only like others in its whole spread.
pub(super) fn priors(spreads: &[Spread]) -> Vec<Option<Prior>> {
    let all: Vec<&Spread> = spreads.iter().collect();
    let freedom_of_all = freedom_of_others(&all);
    let mut priors = priors_by(Likeness::Whole, &all, freedom_of_all);

    let mut with_turns: Vec<usize> = (0..spreads.len()).collect();
    with_turns.retain(|&index| spreads[index].turn_variance > 0.0);
    let explained: Vec<&Spread> = with_turns.iter().map(|&index| &spreads[index]).collect();
    // Correlations of all steps take a while, and usually all took turns.
    let freedom_of_explained =
        if explained.len() == all.len() { freedom_of_all } else { freedom_of_others(&explained) };
    let beyond_turns = priors_by(Likeness::BeyondTurns, &explained, freedom_of_explained);

    let freedom = |prior: Option<Prior>| prior.map_or(0.0, |prior| prior.freedom);
    for (index, prior) in with_turns.into_iter().zip(beyond_turns) {
        // If both are worth as much, turns say more about this step.
        if freedom(prior) >= freedom(priors[index]) {
            priors[index] = prior;
        }
    }
    priors
}

/// Returns the prior of each spread under one likeness, in their order. `freedom_of_all` is the most
/// freedom that they can lend if none of them is wild.
fn priors_by(likeness: Likeness, spreads: &[&Spread], freedom_of_all: f64) -> Vec<Option<Prior>> {
    let mut priors = vec![None; spreads.len()];
    if spreads.len() < SPREADS_MIN {
        return priors;
    }

    let like = without_wild(likeness, spreads);
    let of_like: Vec<&Spread> = like.iter().map(|&index| spreads[index]).collect();
    let noise = CommonNoise::fit(likeness, &of_like, Caution::Careful);
    // A wild spread confirms nothing.
    let freedom_max =
        if of_like.len() == spreads.len() { freedom_of_all } else { freedom_of_others(&of_like) };
    let freedom = noise.freedom.min(freedom_max);
    if freedom <= 0.0 {
        return priors;
    }

    // A wild spread is not one of those that the prior describes. And no step has less noise than
    // its turns, whatever the others have.
    for index in like {
        let variance = noise.expected(spreads[index]).max(spreads[index].turn_variance);
        priors[index] = Some(Prior { variance, freedom });
    }
    priors
}

/// Returns the most degrees of freedom that other spreads can lend one of these. Those that depend on
/// each other confirm each other less than they seem to.
fn freedom_of_others(spreads: &[&Spread]) -> f64 {
    let each: Vec<f64> = spreads.iter().map(|spread| spread.freedom).collect();
    let repeats: Vec<&RepeatValues> = spreads.iter().map(|spread| &spread.logarithms).collect();
    mean(&each) * (independent_count(&repeats) - 1.0)
}

/// The noise that spreads have in common.
struct CommonNoise {
    likeness: Likeness,
    /// The part of the variance that is the same in all steps: all of it, or that by which starts
    /// differ beyond what turns explain.
    common_part: f64,
    /// The factor of each expected variance; 1 if the estimate is careful.
    scale: f64,
    /// The degrees of freedom of an expected variance; few if spreads differ in ways that nothing
    /// explains.
    freedom: f64,
}

/// The caution of an estimate about its own uncertainty.
#[derive(Clone, Copy, PartialEq)]
enum Caution {
    /// The estimate is the most likely value, to test whether a spread is one of the others.
    Likely,
    /// The estimate is for lending: it assumes that spreads differ more, by one standard error, and
    /// that the typical variance is their geometric mean, which is above the most likely value.
    Careful,
}

impl CommonNoise {
    /// Estimates the noise by the mean and the variance of the spreads' logarithms (Smyth 2004,
    /// section 6.2), after subtracting what is expected of each. The part of this variance that
    /// chance does not explain belongs to the prior.
    fn fit(likeness: Likeness, spreads: &[&Spread], caution: Caution) -> Self {
        let common_part = common_part(likeness, spreads);
        let excess: Vec<f64> =
            spreads.iter().map(|spread| spread.log_excess(likeness, common_part)).collect();
        let chance_of_each: Vec<f64> =
            spreads.iter().map(|spread| trigamma(spread.freedom / 2.0)).collect();
        let by_chance = mean(&chance_of_each);

        let mut measured = variance(&excess);
        if caution == Caution::Careful {
            // The relative standard error of a variance, as if the logarithms were normal.
            let error = (2.0 / (excess.len() as f64 - 1.0)).sqrt();
            measured = measured.max(by_chance) * (1.0 + error);
        }

        // Spreads that differ no more than by chance have a prior of infinite freedom.
        let half_freedom = inverse_trigamma(measured - by_chance).min(Prior::FREEDOM_MAX / 2.0);
        let log_scale = match caution {
            Caution::Likely => mean(&excess) + digamma(half_freedom) - half_freedom.ln(),
            // The most likely scale is below 1, and too small a variance for the widest steps.
            Caution::Careful => 0.0,
        };
        Self { likeness, common_part, scale: log_scale.exp(), freedom: 2.0 * half_freedom }
    }

    /// Returns the variance that the others lead one to expect of a spread.
    fn expected(&self, spread: &Spread) -> f64 {
        self.scale * (spread.own_part(self.likeness) + self.common_part)
    }
}

/// Returns the part of the variance that is the same in all steps: with it, the geometric mean of the
/// variances is that of the expected ones. Zero if the steps' own parts alone are more.
fn common_part(likeness: Likeness, spreads: &[&Spread]) -> f64 {
    let is_too_small = |common_part: f64| {
        let excess = spreads.iter().map(|spread| spread.log_excess(likeness, common_part));
        excess.sum::<f64>() > 0.0
    };

    // Without parts of their own, spreads exceed an expectation of zero infinitely.
    if !is_too_small(0.0) {
        return 0.0;
    }

    // The largest variance is more than any common part. Halving an interval of floating-point
    // numbers ends when nothing is between its ends.
    let largest = spreads.iter().map(|spread| spread.log_variance()).fold(f64::MIN, f64::max);
    let (mut low, mut high) = (0.0, largest.exp());
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return low;
        }

        if is_too_small(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Returns the indexes of all spreads but the wild ones: the widest ones, if the others cannot explain
/// them. One wild repeat must not make the whole table's prior worthless.
fn without_wild(likeness: Likeness, spreads: &[&Spread]) -> Vec<usize> {
    // Good enough for their order, although wild spreads have a part in it.
    let common_part = common_part(likeness, spreads);
    let excess = |index: usize| spreads[index].log_excess(likeness, common_part);
    let mut like: Vec<usize> = (0..spreads.len()).collect();
    like.sort_by(|&a, &b| excess(a).total_cmp(&excess(b)));

    let count = spreads.len();
    let wild_max = if count < SPREADS_WITH_WILD { 0 } else { (count / 10).max(1) };
    for _ in 0..wild_max {
        let Some((&widest, others)) = like.split_last() else {
            break;
        };

        let others: Vec<&Spread> = others.iter().map(|&index| spreads[index]).collect();
        let noise = CommonNoise::fit(likeness, &others, Caution::Likely);
        let widest = spreads[widest];
        let ratio = widest.variance / noise.expected(widest);
        let by_chance = student::f_tail(ratio, [widest.freedom, noise.freedom]);
        // The widest of all is tested, so each of them has a chance to be called wild (Bonferroni).
        if by_chance * count as f64 >= WILD_LEVEL {
            break;
        }

        like.pop();
    }
    like
}

#[cfg(test)]
mod tests {
    use words::Random;

    use crate::compare::shared_noise::{RepeatKey, RepeatSide};

    use super::*;

    /// Returns the spread of pairs with these logarithms of ratios.
    fn spread(ratios: &[f64]) -> Spread {
        let mut logarithms = RepeatValues::new();
        for (repeat, ratio) in (1..).zip(ratios) {
            logarithms.insert(RepeatKey { side: RepeatSide::Both, run: 0, repeat }, *ratio);
        }
        Spread {
            variance: variance(ratios),
            freedom: ratios.len() as f64 - 1.0,
            turn_variance: 0.0,
            logarithms,
        }
    }

    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0
    }

    /// Returns the spreads of a table whose repeats have noise of their own, and noise that all
    /// steps of a repeat share.
    fn table(steps: usize, repeats: usize, own: f64, shared: f64, seed: u64) -> Vec<Spread> {
        let mut random = Random::new(seed);
        let of_repeats: Vec<f64> = (0..repeats).map(|_| shared * normal(&mut random)).collect();
        let step = |_| {
            let ratios: Vec<f64> =
                of_repeats.iter().map(|shared| shared + own * normal(&mut random)).collect();
            spread(&ratios)
        };
        (0..steps).map(step).collect()
    }

    #[test]
    fn a_moderated_variance_is_the_mean_weighted_by_freedom() {
        let prior = Prior { variance: 4.0, freedom: 6.0 };
        assert!((prior.moderate(1.0, 2.0) - 26.0 / 8.0).abs() < 1e-12);
    }

    #[test]
    fn spreads_that_are_alike_lend_each_other_freedom() {
        let spreads = table(24, 3, 0.01, 0.0, 1);
        let priors = priors(&spreads);
        let prior = priors[0].expect("a prior");
        assert!(prior.freedom > 3.0, "{prior:?}");
        assert!((0.4e-4..2.5e-4).contains(&prior.variance), "{prior:?}");
        assert!(priors.iter().all(|other| *other == Some(prior)));
    }

    #[test]
    fn starts_differ_by_what_turns_do_not_explain() {
        let of_turns = [1.0, 2.0, 4.0, 8.0, 16.0];
        let spreads: Vec<Spread> = of_turns
            .iter()
            .map(|&of_turns| {
                let mut spread = spread(&[1.0, 2.0, 3.0]);
                // So that the corrected logarithm is that of the sum.
                let bias = (spread.log_variance() - spread.variance.ln()).exp();
                spread.variance = (of_turns + 3.0) / bias;
                spread.turn_variance = of_turns;
                spread
            })
            .collect();
        let spreads: Vec<&Spread> = spreads.iter().collect();
        assert!((common_part(Likeness::BeyondTurns, &spreads) - 3.0).abs() < 1e-9);
        assert!(common_part(Likeness::BeyondTurns, &spreads[..1]) > 2.9);

        let common = CommonNoise::fit(Likeness::BeyondTurns, &spreads, Caution::Careful);
        assert!((common.expected(spreads[4]) - 19.0).abs() < 1e-8);
    }

    #[test]
    fn turns_that_explain_more_than_all_leave_nothing_to_starts() {
        let mut lucky = spread(&[1.0, 2.0, 3.0]);
        lucky.turn_variance = 100.0;
        let spreads = [&lucky; 5];
        assert_eq!(common_part(Likeness::BeyondTurns, &spreads), 0.0);
        assert_eq!(
            CommonNoise::fit(Likeness::BeyondTurns, &spreads, Caution::Careful).expected(&lucky),
            100.0
        );
    }

    #[test]
    fn a_quiet_step_borrows_no_noise_of_turns_from_others() {
        let mut random = Random::new(5);
        let spreads: Vec<Spread> = (0..5)
            .map(|step| {
                let size = if step == 0 { 0.01 } else { 0.1 };
                let mut spread = spread(&[0; 5].map(|_| size * normal(&mut random)));
                spread.turn_variance = size * size;
                spread
            })
            .collect();
        let prior = priors(&spreads)[0].expect("a prior");

        // The geometric mean of all is forty times the variance of the quiet step.
        assert!(prior.variance < 4e-4, "{prior:?}");
        assert!(prior.freedom > 3.0, "{prior:?}");
    }

    #[test]
    fn steps_that_turns_explain_nothing_of_are_like_all_others() {
        let alike = table(6, 5, 0.01, 0.0, 1);
        let of_all = priors(&alike)[0].expect("a prior");

        let mut mixed = alike;
        for spread in &mut mixed[..3] {
            spread.turn_variance = 1e-6;
        }
        // Three steps with turns are too few to lend each other anything by them.
        assert!(priors(&mixed).iter().all(|prior| *prior == Some(of_all)));
    }

    #[test]
    fn spreads_that_are_alike_whatever_turns_say_lend_as_such() {
        let mut spreads = table(12, 5, 0.01, 0.0, 1);
        let alike = priors(&spreads)[0].expect("a prior");
        for (index, spread) in spreads.iter_mut().enumerate() {
            spread.turn_variance = if index % 2 == 0 { 1e-6 } else { 25e-4 };
        }

        let priors = priors(&spreads);
        assert_eq!(priors[0], Some(alike));
        let noisy = priors[1].expect("a prior");
        assert_eq!(noisy, Prior { variance: 25e-4, ..alike }, "no less noise than its turns");
    }

    #[test]
    fn noise_that_all_steps_share_lends_nothing() {
        for seed in 1..20 {
            let spreads = table(24, 3, 0.001, 0.1, seed);
            let freedom = priors(&spreads)[0].map_or(0.0, |prior| prior.freedom);
            assert!(freedom < 0.1, "seed {seed}: {freedom}");
        }
    }

    #[test]
    fn spreads_that_differ_wildly_lend_little() {
        let mut random = Random::new(3);
        let spreads: Vec<Spread> = (0..24)
            .map(|step| {
                let size = 10.0_f64.powi(step % 4 - 4);
                spread(&[0; 3].map(|_| size * normal(&mut random)))
            })
            .collect();
        let freedom = priors(&spreads)[0].map_or(0.0, |prior| prior.freedom);
        assert!(freedom < 1.0, "{freedom}");
    }

    #[test]
    fn one_wild_repeat_borrows_nothing_and_takes_nothing_from_the_others() {
        let mut spreads = table(24, 3, 0.01, 0.0, 1);
        let calm = priors(&spreads)[0].expect("a prior");
        spreads[7] = spread(&[0.0, 0.01, -0.7]);
        let priors = priors(&spreads);
        assert_eq!(priors[7], None);
        let prior = priors[0].expect("a prior");
        assert!(prior.freedom > calm.freedom / 2.0, "{prior:?}, without the wild one {calm:?}");
    }

    #[test]
    fn few_spreads_and_two_repeats_lend_nothing() {
        assert!(priors(&table(3, 5, 0.01, 0.0, 1)).iter().all(Option::is_none));
        assert!(priors(&table(24, 2, 0.01, 0.0, 1)).iter().all(Option::is_none));
        assert!(priors(&[]).is_empty());
    }
}
