//! The prior variance of a comparison: what the spreads of the other steps lead one to expect.
//!
//! ```text
//! own variances, less what turns explain ──► how much do starts differ? ──► the prior's variance
//!            how much do the rest differ? ──► the prior's freedom
//!           are their repeats independent? ──► at most this much freedom
//! ```
//!
//! The turns of a step know a part of its noise: how much the ratio of one repeat would differ if
//! only its turns were measured again. Starts differ by more than that, often in all steps alike. So
//! the prior's variance of a step is what its turns explain, and a part that all steps have in
//! common; or, where the spreads are alike whatever turns say, their geometric mean.
//!
//! Two things keep this honest. Where spreads differ for no known reason, the prior has few degrees
//! of freedom, and little is borrowed. And where the steps of a cell share their noise, as next to a
//! noisy neighbor, ten spreads are one spread seen ten times: then nothing is borrowed, however alike
//! they look. `docs/statistics.md` has the formulas.

use std::collections::BTreeMap;

use statrs::function::gamma::digamma;

use super::mean::{mean, variance};
use super::trigamma::{inverse_trigamma, trigamma};
use super::{Sample, student};
use crate::order::distinct;

/// The fewest spreads from which a prior is estimated.
const SPREADS_MIN: usize = 4;

/// The fewest degrees of freedom of a correlation.
const CORRELATION_FREEDOM_MIN: usize = 2;

/// From this many spreads on, the widest tenth is checked for wild ones.
const SPREADS_WITH_WILD: usize = 8;

/// The probability, over all spreads, of calling wild a spread that follows the prior.
const WILD_LEVEL: f64 = 0.01;

/// The variance of a comparison, as far as others know it than its own repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Prior {
    /// The variance of the logarithm of one repeat's ratio.
    pub variance: f64,
    /// The degrees of freedom of the variance.
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

/// The way in which the spreads of steps are like each other.
#[derive(Clone, Copy, PartialEq)]
enum Likeness {
    /// All of a spread has the same size in each step.
    Whole,
    /// What the turns of a step don't explain has the same size in each step.
    BeyondTurns,
}

/// A value of a comparison whose noise may be that of others too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RepeatKey {
    side: RepeatSide,
    run: usize,
    repeat: u32,
}

/// The side of a comparison that a value belongs to. The ratio of a pair belongs to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RepeatSide {
    Both,
    Base,
    Target,
}

impl RepeatSide {
    const ALL: [Self; 3] = [Self::Both, Self::Base, Self::Target];
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
    pub of_turns: f64,
    /// The logarithm of each repeat's ratio, or of each value of both sides.
    pub logarithms: BTreeMap<RepeatKey, f64>,
}

impl RepeatKey {
    /// Returns the key of a value on a side.
    pub fn of(side: RepeatSide, sample: &Sample) -> Self {
        Self { side, run: sample.run, repeat: sample.repeat }
    }
}

/// Returns the prior of each spread, in their order; `None` for those that borrow nothing.
///
/// Each step borrows from those that are like it in the way in which they know more about it. Steps
/// whose turns explain nothing are like others in all of their spread only.
pub(super) fn priors(spreads: &[Spread]) -> Vec<Option<Prior>> {
    let all: Vec<&Spread> = spreads.iter().collect();
    let mut priors = priors_of_like(&all, Likeness::Whole);

    let with_turns: Vec<usize> =
        (0..spreads.len()).filter(|&index| spreads[index].of_turns > 0.0).collect();
    let of_turns: Vec<&Spread> = with_turns.iter().map(|&index| &spreads[index]).collect();
    let beyond_turns = priors_of_like(&of_turns, Likeness::BeyondTurns);
    for (index, prior) in with_turns.into_iter().zip(beyond_turns) {
        let freedom = |prior: Option<Prior>| prior.map_or(0.0, |prior| prior.freedom);
        if freedom(prior) >= freedom(priors[index]) {
            priors[index] = prior;
        }
    }
    priors
}

/// Returns the prior of each of these spreads, which are like each other, in their order.
fn priors_of_like(spreads: &[&Spread], likeness: Likeness) -> Vec<Option<Prior>> {
    let mut priors = vec![None; spreads.len()];
    if spreads.len() < SPREADS_MIN {
        return priors;
    }

    let of_starts = variance_of_starts(spreads, likeness);
    let unexplained = |index: usize| spreads[index].unexplained(likeness, of_starts);
    let mut order: Vec<usize> = (0..spreads.len()).collect();
    order.sort_by(|&a, &b| unexplained(a).total_cmp(&unexplained(b)));
    let sorted: Vec<&Spread> = order.iter().map(|&index| spreads[index]).collect();
    let like = without_wild(&sorted, likeness);

    let common = fit(like, likeness, Caution::Careful);

    // Spreads that depend on each other confirm each other less than they seem to.
    let freedom = mean(&sorted.iter().map(|spread| spread.freedom).collect::<Vec<f64>>());
    let others = independent_count(&sorted) - 1.0;
    let borrowed_freedom = common.freedom.min(freedom * others);
    if borrowed_freedom <= 0.0 {
        return priors;
    }

    // A wild spread is not one of those that the prior describes. And no step has less noise than
    // its turns, whatever the others have.
    for &index in &order[..like.len()] {
        let variance = common.variance_of(spreads[index]).max(spreads[index].of_turns);
        priors[index] = Some(Prior { variance, freedom: borrowed_freedom });
    }
    priors
}

impl Spread {
    /// Returns the logarithm of the variance, corrected so that its expectation is the logarithm
    /// of the true variance (Smyth 2004, section 6.2).
    fn log_variance(&self) -> f64 {
        let half = self.freedom / 2.0;
        self.variance.ln() - digamma(half) + half.ln()
    }

    /// Returns the part of its variance in which it is not like the others.
    fn explained(&self, likeness: Likeness) -> f64 {
        match likeness {
            Likeness::Whole => 0.0,
            Likeness::BeyondTurns => self.of_turns,
        }
    }

    /// Returns the logarithm of how much larger the variance is than what explains it, with that of
    /// starts.
    fn unexplained(&self, likeness: Likeness, of_starts: f64) -> f64 {
        self.log_variance() - (self.explained(likeness) + of_starts).ln()
    }

    /// Returns how dependent its repeats are on those of another spread: the squared correlation
    /// over the repeats that both have, less what chance alone makes of independent ones. `None`
    /// if both have too few to say anything.
    fn dependence(&self, other: &Self) -> Option<f64> {
        let common: Vec<RepeatKey> = self
            .logarithms
            .keys()
            .filter(|key| other.logarithms.contains_key(key))
            .copied()
            .collect();
        let sides = distinct(common.iter().map(|key| key.side)).len();
        let freedom = common.len().saturating_sub(sides);
        if freedom < CORRELATION_FREEDOM_MIN {
            return None;
        }

        let own = centered(&self.logarithms, &common);
        let others = centered(&other.logarithms, &common);
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (own_square, other_square) = (product(&own, &own), product(&others, &others));
        if own_square <= 0.0 || other_square <= 0.0 {
            return None;
        }

        let squared = product(&own, &others).powi(2) / (own_square * other_square);
        let by_chance = 1.0 / freedom as f64;
        Some((squared.min(1.0) - by_chance) / (1.0 - by_chance))
    }
}

/// Returns the logarithms of these repeats, relative to their mean on each side.
fn centered(logarithms: &BTreeMap<RepeatKey, f64>, repeats: &[RepeatKey]) -> Vec<f64> {
    let mut centered: Vec<f64> = repeats.iter().map(|repeat| logarithms[repeat]).collect();
    for side in RepeatSide::ALL {
        let mut places: Vec<usize> = (0..repeats.len()).collect();
        places.retain(|&place| repeats[place].side == side);

        let values: Vec<f64> = places.iter().map(|&place| centered[place]).collect();
        let center = mean(&values);
        for place in places {
            centered[place] -= center;
        }
    }
    centered
}

/// The noise that spreads have in common.
struct Common {
    likeness: Likeness,
    /// The variance by which starts differ, beyond what turns explain.
    of_starts: f64,
    /// The factor of the variances that is typical of these spreads.
    scale: f64,
    /// The degrees of freedom of such a variance; few if spreads differ in ways that nothing
    /// explains.
    freedom: f64,
}

impl Common {
    /// Returns the variance that the others expect of a spread.
    fn variance_of(&self, spread: &Spread) -> f64 {
        self.scale * (spread.explained(self.likeness) + self.of_starts)
    }
}

/// The caution of an estimate about its own uncertainty.
#[derive(Clone, Copy, PartialEq)]
enum Caution {
    /// The estimate is the most likely value.
    Likely,
    /// The estimate assumes that spreads differ more, by one standard error, and that the typical
    /// variance is their geometric mean, which is above the most likely value, or what turns
    /// explain if that is more.
    Careful,
}

/// Returns what spreads have in common, by the mean and the variance of their logarithms (Smyth
/// 2004, section 6.2), after subtracting what their turns and the common variance of starts
/// explain. The part of this variance that chance does not explain belongs to the prior.
fn fit(spreads: &[&Spread], likeness: Likeness, caution: Caution) -> Common {
    let of_starts = variance_of_starts(spreads, likeness);
    let logs: Vec<f64> =
        spreads.iter().map(|spread| spread.unexplained(likeness, of_starts)).collect();
    let by_chance: Vec<f64> = spreads.iter().map(|spread| trigamma(spread.freedom / 2.0)).collect();
    let (center, by_chance) = (mean(&logs), mean(&by_chance));

    let mut measured = variance(&logs);
    if caution == Caution::Careful {
        // What would be the standard error of the variance of normal values.
        let error = (2.0 / (logs.len() as f64 - 1.0)).sqrt();
        measured = measured.max(by_chance) * (1.0 + error);
    }

    let half = inverse_trigamma(measured - by_chance).min(Prior::FREEDOM_MAX / 2.0);
    let log_scale = match caution {
        Caution::Likely => center + digamma(half) - half.ln(),
        // The widest steps of a table whose spreads differ would borrow too much from the others.
        Caution::Careful => 0.0,
    };
    Common { likeness, of_starts, scale: log_scale.exp(), freedom: 2.0 * half }
}

/// Returns the variance by which starts differ in all steps alike: the one with which the geometric
/// mean of the variances is that of what turns and starts explain; zero if turns alone explain more.
fn variance_of_starts(spreads: &[&Spread], likeness: Likeness) -> f64 {
    let logs: Vec<f64> = spreads.iter().map(|spread| spread.log_variance()).collect();
    let is_too_small = |of_starts: f64| {
        let unexplained = spreads.iter().map(|spread| spread.unexplained(likeness, of_starts));
        unexplained.sum::<f64>() > 0.0
    };

    if !is_too_small(0.0) {
        return 0.0;
    }

    // With the largest variance, too much is explained. Halving an interval of floating-point
    // numbers ends when nothing is between its ends.
    let (mut low, mut high) = (0.0, logs.iter().copied().fold(f64::MIN, f64::max).exp());
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

/// Returns the spreads, sorted by how much of them is unexplained, without the widest ones that the
/// prior of the others can't explain: one wild repeat must not make the whole table's prior
/// worthless.
fn without_wild<'s, 'a>(spreads: &'s [&'a Spread], likeness: Likeness) -> &'s [&'a Spread] {
    let count = spreads.len();
    let wild_max = if count < SPREADS_WITH_WILD { 0 } else { (count / 10).max(1) };
    let mut like = spreads;

    for _ in 0..wild_max {
        let Some((widest, others)) = like.split_last() else {
            break;
        };

        let common = fit(others, likeness, Caution::Likely);
        let ratio = widest.variance / common.variance_of(widest);
        let by_chance = student::f_tail(ratio, [widest.freedom, common.freedom]);
        if by_chance * count as f64 >= WILD_LEVEL {
            break;
        }

        like = others;
    }
    like
}

/// Returns the number of independent spreads that say as much about a common variance as these:
/// all of them if their repeats are independent, 1 if they are the same noise.
///
/// The variance of a mean of m variances is that of `m² / Σ ρ²` independent ones, where the sum is
/// over all pairs of them, each with itself included.
fn independent_count(spreads: &[&Spread]) -> f64 {
    let mut dependences = Vec::new();
    for (index, spread) in spreads.iter().enumerate() {
        for other in &spreads[..index] {
            // Without common repeats nothing is known, which is no sign of independence.
            dependences.push(spread.dependence(other).unwrap_or(1.0));
        }
    }
    if dependences.is_empty() {
        return 1.0;
    }

    let count = spreads.len() as f64;
    let shared = mean(&dependences).clamp(0.0, 1.0);
    count / (1.0 + (count - 1.0) * shared)
}

#[cfg(test)]
mod tests {
    use words::Random;

    use super::*;

    /// Returns the spread of pairs with these logarithms of ratios.
    fn spread(ratios: &[f64]) -> Spread {
        let mut logarithms = BTreeMap::new();
        for (repeat, ratio) in (1..).zip(ratios) {
            logarithms.insert(RepeatKey { side: RepeatSide::Both, run: 0, repeat }, *ratio);
        }
        Spread {
            variance: variance(ratios),
            freedom: ratios.len() as f64 - 1.0,
            of_turns: 0.0,
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
                spread.of_turns = of_turns;
                spread
            })
            .collect();
        let spreads: Vec<&Spread> = spreads.iter().collect();
        assert!((variance_of_starts(&spreads, Likeness::BeyondTurns) - 3.0).abs() < 1e-9);
        assert!(variance_of_starts(&spreads[..1], Likeness::BeyondTurns) > 2.9);

        let common = fit(&spreads, Likeness::BeyondTurns, Caution::Careful);
        assert!((common.variance_of(spreads[4]) - 19.0).abs() < 1e-8);
    }

    #[test]
    fn turns_that_explain_more_than_all_leave_nothing_to_starts() {
        let mut lucky = spread(&[1.0, 2.0, 3.0]);
        lucky.of_turns = 100.0;
        let spreads = [&lucky; 5];
        assert_eq!(variance_of_starts(&spreads, Likeness::BeyondTurns), 0.0);
        assert_eq!(
            fit(&spreads, Likeness::BeyondTurns, Caution::Careful).variance_of(&lucky),
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
                spread.of_turns = size * size;
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
            spread.of_turns = 1e-6;
        }
        // Three steps with turns are too few to lend each other anything by them.
        assert!(priors(&mixed).iter().all(|prior| *prior == Some(of_all)));
    }

    #[test]
    fn spreads_that_are_alike_whatever_turns_say_lend_as_such() {
        let mut spreads = table(12, 5, 0.01, 0.0, 1);
        let alike = priors(&spreads)[0].expect("a prior");
        for (index, spread) in spreads.iter_mut().enumerate() {
            spread.of_turns = if index % 2 == 0 { 1e-6 } else { 25e-4 };
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
