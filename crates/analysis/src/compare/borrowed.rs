//! The noise of a comparison, as far as the others of its table know it.
//!
//! Three repeats say little about the spread of their own step: among 24 comparisons, the smallest
//! change that they show is 13 times the spread. But a target has many steps, and their spreads are
//! related. So each spread is *moderated* (Smyth 2004): it becomes the mean of its own variance and
//! of a prior variance, weighted by their degrees of freedom. Both come from the spreads of this
//! target:
//!
//! ```text
//! own variances, less what turns explain ──► how much do starts differ? ──► the prior's variance
//!            how much do the rest differ? ──► the prior's freedom
//!           are their repeats independent? ──► at most this much freedom
//! ```
//!
//! The turns of a step know a part of its noise: how much the ratio of one repeat would differ if
//! only its turns were measured again. Starts differ by more than that, in all steps alike. So the
//! prior's variance of a step is what its turns explain, and a part that all steps have in common.
//! Where the repeats of a step agree better than its turns can tell them apart, which few repeats
//! do by luck, the spread is moderated towards what the turns show.
//!
//! Two things keep this honest. Where spreads differ by more than turns explain, the prior has few
//! degrees of freedom, and little is borrowed. And where the steps of a cell share their noise, as
//! next to a noisy neighbor, ten spreads are one spread seen ten times: then nothing is borrowed,
//! however alike they look. `docs/statistics.md` has the formulas.

use std::collections::BTreeMap;

use statrs::function::gamma::digamma;

use super::draft::UndecidedRow;
use super::mean::{mean, variance};
use super::typical::NoiseWithin;
use super::{ModeratedSpread, Pairing, Sample, student};
use crate::order::distinct;

/// The fewest spreads from which a prior is estimated.
const SPREADS_MIN: usize = 4;

/// The fewest repeats of a comparison that takes part. The correlation of two comparisons with two
/// repeats is always 1 or -1, so nobody could tell whether they share their noise.
pub(super) const REPEATS_MIN: u32 = 3;

/// The fewest degrees of freedom of a correlation.
const CORRELATION_FREEDOM_MIN: usize = 2;

/// From this many spreads on, the widest tenth is checked for wild ones.
const SPREADS_WITH_WILD: usize = 8;

/// The probability, over all spreads, of calling wild a spread that follows the prior.
const WILD_LEVEL: f64 = 0.01;

/// The most degrees of freedom of a prior. More would change no figure.
const FREEDOM_MAX: f64 = 1000.0;

/// The weight of what turns know about the noise of a repeat, in degrees of freedom. It is small
/// because turns that follow each other closely are not quite independent: their error may be too
/// large by half, and many repeats know better.
const WEIGHT_OF_TURNS: f64 = 2.0;

/// The probability below which repeats do not agree by luck: turns then have an error that is too
/// large, such as that of a stall which each step has once.
const LUCK_LEVEL: f64 = 0.001;

/// A value of a comparison whose noise may be that of others too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RepeatKey {
    side: RepeatSide,
    run: usize,
    repeat: u32,
}

/// The side of a comparison that a value belongs to. The ratio of a pair belongs to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RepeatSide {
    Both,
    Base,
    Target,
}

impl RepeatSide {
    const ALL: [Self; 3] = [Self::Both, Self::Base, Self::Target];
}

/// The spread of one comparison.
#[derive(Clone, Debug)]
struct Spread {
    /// The variance of the logarithm of one repeat's ratio; above zero.
    variance: f64,
    /// The degrees of freedom of the variance.
    freedom: f64,
    /// The part of the variance that the step's turns explain; zero if it took no turns, or if its
    /// repeats contradict them.
    of_turns: f64,
    /// The logarithm of each repeat's ratio, or of each value of both sides.
    logarithms: BTreeMap<RepeatKey, f64>,
}

/// The variance of a comparison, as far as others know it than its own repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Prior {
    /// The variance of the logarithm of one repeat's ratio.
    pub variance: f64,
    /// The degrees of freedom of the variance.
    pub freedom: f64,
}

impl Prior {
    /// Returns the variance of a comparison, moderated by this prior.
    pub fn moderate(self, variance: f64, freedom: f64) -> f64 {
        (self.freedom * self.variance + freedom * variance) / (self.freedom + freedom)
    }

    /// Returns the variance of a comparison, moderated by this prior and by the variance `of_turns`
    /// that its turns show. Its repeats show `own` with some degrees of freedom.
    fn moderate_with_turns(self, of_turns: f64, own: f64, freedom: f64) -> f64 {
        let by_others = self.moderate(own, freedom);
        if own >= of_turns {
            return by_others;
        }

        // Repeats that agree better than their turns can tell do so by luck. Turns know nothing about
        // how starts differ, so they only make a spread larger, and lend no freedom. Nor do they know
        // whether other steps are alike, so the variance of the others keeps its own weight.
        let by_turns = Self { variance: of_turns, freedom: WEIGHT_OF_TURNS };
        by_others.max(by_turns.moderate(own, freedom))
    }
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
    /// Returns what it knows about noise, to lend it to others; `None` if it knows nothing.
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
            of_turns: explained_by_turns(self.noise_within, variance, freedom),
            logarithms: self.logarithms(),
        })
    }

    /// Returns the logarithms by which the noise of this comparison and of others is compared.
    fn logarithms(&self) -> BTreeMap<RepeatKey, f64> {
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

    /// Moderates its error by what other comparisons know, and its own turns.
    fn moderate(&mut self, of_others: Prior) {
        let Some(estimate) = &mut self.estimate else {
            return;
        };
        let Some(freedom) = estimate.spread_freedom() else {
            return;
        };

        let own = estimate.spread * estimate.spread;
        let of_turns = explained_by_turns(self.noise_within, own, freedom);
        if of_others.freedom == 0.0 && own >= of_turns {
            return;
        }

        let variance = of_others.moderate_with_turns(of_turns, own, freedom);
        estimate.moderate(variance, of_others.freedom);
        self.row.p_value = Some(estimate.p_value());
        self.row.moderated = Some(ModeratedSpread {
            spread: estimate.moderated_spread(),
            freedom: estimate.freedom(),
            borrowed_freedom: of_others.freedom,
        });
    }
}

impl RepeatKey {
    fn of(side: RepeatSide, sample: &Sample) -> Self {
        Self { side, run: sample.run, repeat: sample.repeat }
    }
}

/// Returns the part of the variance `own`, with some degrees of freedom, that turns explain: more
/// than all of it if repeats agree by luck, and zero if not even luck explains that they agree so
/// well.
fn explained_by_turns(noise_within: NoiseWithin, own: f64, freedom: f64) -> f64 {
    let of_turns = noise_within.error().map_or(0.0, |error| error * error);
    if luck_explains(of_turns, own, freedom) { of_turns } else { 0.0 }
}

/// Returns whether luck explains that repeats show the variance `own`, with some degrees of freedom,
/// where their turns show `of_turns`.
fn luck_explains(of_turns: f64, own: f64, freedom: f64) -> bool {
    // Turns have so many degrees of freedom that more would change nothing.
    student::f_tail(of_turns / own, [FREEDOM_MAX, freedom]) >= LUCK_LEVEL
}

/// Returns the prior of each spread, in their order; `None` for those that borrow nothing.
///
/// Steps whose turns explain a part of their spread are like each other in what is left. Of the
/// others, all of the spread is left. So the two lend each other nothing.
fn priors(spreads: &[Spread]) -> Vec<Option<Prior>> {
    let mut priors = vec![None; spreads.len()];
    for has_turns in [true, false] {
        let mut group: Vec<usize> = (0..spreads.len()).collect();
        group.retain(|&index| (spreads[index].of_turns > 0.0) == has_turns);
        let of_group: Vec<&Spread> = group.iter().map(|&index| &spreads[index]).collect();

        for (index, prior) in group.into_iter().zip(priors_of_like(&of_group)) {
            priors[index] = prior;
        }
    }
    priors
}

/// Returns the prior of each of these spreads, which are like each other, in their order.
fn priors_of_like(spreads: &[&Spread]) -> Vec<Option<Prior>> {
    let mut priors = vec![None; spreads.len()];
    if spreads.len() < SPREADS_MIN {
        return priors;
    }

    let of_starts = variance_of_starts(spreads);
    let unexplained = |index: usize| spreads[index].unexplained(of_starts);
    let mut order: Vec<usize> = (0..spreads.len()).collect();
    order.sort_by(|&a, &b| unexplained(a).total_cmp(&unexplained(b)));
    let sorted: Vec<&Spread> = order.iter().map(|&index| spreads[index]).collect();
    let like = without_wild(&sorted);

    let common = fit(like, Caution::Careful);

    // Spreads that depend on each other confirm each other less than they seem to.
    let freedom = mean(&sorted.iter().map(|spread| spread.freedom).collect::<Vec<f64>>());
    let others = independent_count(&sorted) - 1.0;
    let borrowed_freedom = common.freedom.min(freedom * others);
    if borrowed_freedom <= 0.0 {
        return priors;
    }

    // A wild spread is not one of those that the prior describes.
    for &index in &order[..like.len()] {
        let variance = common.variance_of(spreads[index]);
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

    /// Returns the logarithm of how much larger the variance is than that of its turns and of starts.
    fn unexplained(&self, of_starts: f64) -> f64 {
        self.log_variance() - (self.of_turns + of_starts).ln()
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

/// What spreads have in common.
struct Common {
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
        self.scale * (spread.of_turns + self.of_starts)
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
fn fit(spreads: &[&Spread], caution: Caution) -> Common {
    let of_starts = variance_of_starts(spreads);
    let logs: Vec<f64> = spreads.iter().map(|spread| spread.unexplained(of_starts)).collect();
    let by_chance: Vec<f64> = spreads.iter().map(|spread| trigamma(spread.freedom / 2.0)).collect();
    let (center, by_chance) = (mean(&logs), mean(&by_chance));

    let mut measured = variance(&logs);
    if caution == Caution::Careful {
        // What would be the standard error of the variance of normal values.
        let error = (2.0 / (logs.len() as f64 - 1.0)).sqrt();
        measured = measured.max(by_chance) * (1.0 + error);
    }

    let half = inverse_trigamma(measured - by_chance).min(FREEDOM_MAX / 2.0);
    let log_scale = match caution {
        Caution::Likely => center + digamma(half) - half.ln(),
        // The widest steps of a table whose spreads differ would borrow too much from the others.
        // And no step has less noise than its turns.
        Caution::Careful => 0.0,
    };
    Common { of_starts, scale: log_scale.exp(), freedom: 2.0 * half }
}

/// Returns the variance by which starts differ in all steps alike: the one with which the geometric
/// mean of the variances is that of what turns and starts explain; zero if turns alone explain more.
fn variance_of_starts(spreads: &[&Spread]) -> f64 {
    let logs: Vec<f64> = spreads.iter().map(|spread| spread.log_variance()).collect();
    let is_too_small = |of_starts: f64| {
        let unexplained = spreads.iter().map(|spread| spread.unexplained(of_starts));
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
fn without_wild<'s, 'a>(spreads: &'s [&'a Spread]) -> &'s [&'a Spread] {
    let count = spreads.len();
    let wild_max = if count < SPREADS_WITH_WILD { 0 } else { (count / 10).max(1) };
    let mut like = spreads;

    for _ in 0..wild_max {
        let Some((widest, others)) = like.split_last() else {
            break;
        };

        let common = fit(others, Caution::Likely);
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

/// Returns the second derivative of the logarithm of the gamma function, for x above zero: by
/// recurrence to 8 (Abramowitz and Stegun, 6.4.6), then by the asymptotic series (6.4.12).
fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 8.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }

    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + inverse + square / 2.0 + inverse * square * series
}

/// Returns the x with this trigamma; infinity for what is not above zero. Newton's method on
/// 1 / trigamma, which is nearly a line (Smyth 2004, appendix).
fn inverse_trigamma(value: f64) -> f64 {
    if value < 1e-6 {
        return f64::INFINITY;
    }

    let mut x = 0.5 + 1.0 / value;
    for _ in 0..50 {
        let step = 1e-5 * x;
        let slope = (trigamma(x + step) - trigamma(x - step)) / (2.0 * step);
        let at = trigamma(x);
        let change = at * (1.0 - at / value) / slope;
        x += change;
        if -change / x < 1e-10 {
            break;
        }
    }
    x
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

    /// Abramowitz and Stegun, table 6.1 (x = 1, 2) and 6.4.4 (x = 1/2).
    #[test]
    fn trigamma_is_that_of_the_published_table() {
        let pi_squared = std::f64::consts::PI.powi(2);
        for (x, expected) in
            [(0.5, pi_squared / 2.0), (1.0, pi_squared / 6.0), (2.0, pi_squared / 6.0 - 1.0)]
        {
            assert!((trigamma(x) - expected).abs() < 1e-10, "{x}");
            assert!((inverse_trigamma(expected) - x).abs() < 1e-8, "{x}");
        }
        assert_eq!(inverse_trigamma(-0.1), f64::INFINITY);
    }

    #[test]
    fn a_moderated_variance_is_the_mean_weighted_by_freedom() {
        let prior = Prior { variance: 4.0, freedom: 6.0 };
        assert!((prior.moderate(1.0, 2.0) - 26.0 / 8.0).abs() < 1e-12);
    }

    #[test]
    fn turns_make_a_spread_larger_and_never_smaller() {
        let nothing = Prior::default();
        assert!((nothing.moderate_with_turns(4.0, 1.0, 2.0) - 10.0 / 4.0).abs() < 1e-12);
        assert_eq!(nothing.moderate_with_turns(4.0, 5.0, 2.0), 5.0);

        // Others may know more than the turns do.
        let of_others = Prior { variance: 9.0, freedom: 8.0 };
        assert_eq!(of_others.moderate_with_turns(4.0, 1.0, 2.0), of_others.moderate(1.0, 2.0));
    }

    #[test]
    fn turns_give_no_weight_to_other_steps_that_are_not_alike() {
        let noisy_others = Prior { variance: 100.0, freedom: 0.5 };
        let moderated = |own: f64| noisy_others.moderate_with_turns(1.0, own, 9.0);

        // By hand: (0.5 x 100 + 9) / 9.5, whether repeats agree a little better than turns or not.
        assert!((moderated(1.0) - 59.0 / 9.5).abs() < 1e-12);
        assert!((moderated(0.999_999) - 59.0 / 9.5).abs() < 1e-5);

        // Others that lend next to nothing leave the weight of turns: (2 x 1 + 9 x 0.2) / 11.
        let far_others = Prior { freedom: 0.001, ..noisy_others };
        let lucky = far_others.moderate_with_turns(1.0, 0.2, 9.0);
        assert!((lucky - 3.8 / 11.0).abs() < 1e-12);
    }

    /// Of a chi-squared distribution with 4 degrees of freedom, 0.1 % is below 0.0908 (Abramowitz and
    /// Stegun, table 26.8, has it for 99.9 %).
    #[test]
    fn repeats_that_agree_too_well_for_luck_tell_that_the_error_of_turns_is_too_large() {
        assert!(!luck_explains(1.0, 0.9 * 0.0908 / 4.0, 4.0));
        assert!(luck_explains(1.0, 1.1 * 0.0908 / 4.0, 4.0));
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
        assert!((variance_of_starts(&spreads) - 3.0).abs() < 1e-9);
        assert!(variance_of_starts(&spreads[..1]) > 2.9);

        let common = fit(&spreads, Caution::Careful);
        assert!((common.variance_of(spreads[4]) - 19.0).abs() < 1e-8);
    }

    #[test]
    fn turns_that_explain_more_than_all_leave_nothing_to_starts() {
        let mut lucky = spread(&[1.0, 2.0, 3.0]);
        lucky.of_turns = 100.0;
        let spreads = [&lucky; 5];
        assert_eq!(variance_of_starts(&spreads), 0.0);
        assert_eq!(fit(&spreads, Caution::Careful).variance_of(&lucky), 100.0);
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
    fn steps_with_and_without_turns_lend_each_other_nothing() {
        let mut spreads = table(6, 5, 0.01, 0.0, 1);
        for spread in &mut spreads[..3] {
            spread.of_turns = 1e-4;
        }
        assert!(priors(&spreads).iter().all(Option::is_none));
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
