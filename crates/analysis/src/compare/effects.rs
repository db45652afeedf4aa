//! Computes the effect of a factor: each of its levels against the base's, with all else equal. In
//! each repeat the geometric means over all combinations of the other factors are compared as if
//! they were two targets. Each combination is also compared by itself, and with that mean. The
//! assumptions are in `docs/statistics.md`.

use serde::Serialize;

use super::estimate::Estimate;
use super::metric::{families, family_of};
use super::samples::{Place, Samples, Side, deviations};
use super::verdict::{
    HIDDEN_DRIFT, Measured, UndecidedRow, decide, draft, notes_of_repeats, unfinished,
};
use super::{CompareOptions, ComparedStep, Interval, Pairing, Verdict};
use crate::counted;
use crate::figures::Figures;
use crate::order::distinct;
use crate::settings::Factor;

/// The effects of some factors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Effects {
    /// The factors.
    pub factors: Vec<Factor>,
    /// One for each step, metric, factor and level but the base's: by variant and clients, then
    /// factor, then level, then step, then metric.
    pub rows: Vec<Effect>,
    /// The metrics whose effects are computed: [`super::VERDICT_METRICS`] and those that the
    /// caller asks for.
    pub metrics: Vec<String>,
    /// The least relative change that matters.
    pub effect: f64,
    /// The rate of errors over all effects of a family, as in [`super::Compared`].
    pub error_rate: f64,
    /// The cells that are missing or failed; `None`: all are complete.
    pub unfinished: Option<String>,
    /// Notes that concern all of them.
    pub notes: Vec<String>,
}

/// The effect of one level of a factor on one metric of one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Effect {
    /// The index of the factor.
    pub factor: usize,
    /// The index of its level, from 1: 0 is the base's.
    pub level: usize,
    /// The level against the base's. Its target is what the change is called, and its values are
    /// geometric means over the combinations.
    pub compared: ComparedStep,
    /// The same in each combination of the other factors, in their order.
    pub combinations: Vec<CombinationEffect>,
}

impl Effect {
    /// Returns whether any combination is shown to differ from the mean of all.
    pub fn differs(&self) -> bool {
        let mut combinations = self.combinations.iter();
        combinations.any(|it| it.deviation.is_some_and(|it| it.is_shown))
    }
}

/// The effect of a level in one combination of the other factors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CombinationEffect {
    /// The index of the combination among those of the factor.
    pub index: usize,
    /// The target of the level against that of the base level.
    pub compared: ComparedStep,
    /// The deviation of its ratio from the mean of all; `None` without repeats in turns, and if
    /// there is only one combination.
    pub deviation: Option<Deviation>,
}

/// The ratio of a combination relative to that of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// The measured ratio.
    pub ratio: f64,
    /// The interval of the true ratio.
    pub interval: Interval,
    /// The p-value, before the number of comparisons is taken into account.
    pub p_value: f64,
    /// The interval excludes 1: the factors interact.
    pub is_shown: bool,
}

/// An effect whose verdict may depend on those of others.
struct UndecidedEffect {
    factor: usize,
    level: usize,
    all: UndecidedRow,
    each: Vec<(usize, UndecidedRow, Option<UndecidedRow>)>,
}

/// Computes the effects of factors, each of which has a target for each level in each of its
/// combinations.
pub fn effects(figures: &Figures, factors: Vec<Factor>, options: &CompareOptions) -> Effects {
    let samples = Samples::new(figures);
    let metrics = options.all_metrics(&[]);
    let mut drafts = Vec::new();
    for group in samples.groups() {
        for (index, factor) in factors.iter().enumerate() {
            for level in 1..factor.levels.len() {
                for step in samples.steps() {
                    let place = Place { step, ..group };
                    let of = (index, factor, level);
                    let made = metrics
                        .iter()
                        .filter_map(|metric| drafted(&samples, place, of, metric, options));
                    drafts.extend(made);
                }
            }
        }
    }
    let mut notes = Vec::new();
    for family in families() {
        let mut of_family: Vec<&mut UndecidedEffect> = drafts.iter_mut().collect();
        of_family.retain(|it| family_of(&it.all.row.metric) == family);
        notes.extend(decide_all(of_family, family, options));
    }
    let has_hidden_drift = drafts.iter().any(|it| it.all.has_hidden_drift);
    let mut repeats = notes_of_repeats(drafts.iter().map(|it| &it.all.row));
    repeats.extend(has_hidden_drift.then(|| HIDDEN_DRIFT.to_owned()));
    let rows = drafts.into_iter().map(|it| Effect {
        factor: it.factor,
        level: it.level,
        compared: it.all.row,
        combinations: it.each.into_iter().map(in_combination).collect(),
    });
    Effects {
        rows: rows.collect(),
        metrics: metrics.into_iter().map(str::to_owned).collect(),
        factors,
        effect: options.effect,
        error_rate: options.error_rate,
        unfinished: unfinished(figures),
        notes: repeats.into_iter().chain(notes).collect(),
    }
}

/// Decides the effects of a family, those in each combination, and the differences between
/// combinations: a family each.
fn decide_all(
    of_family: Vec<&mut UndecidedEffect>,
    family: &str,
    options: &CompareOptions,
) -> Vec<String> {
    let (mut all, mut in_combinations, mut deviations) = (Vec::new(), Vec::new(), Vec::new());
    for it in of_family {
        all.push(&mut it.all);
        for (_, own, deviation) in &mut it.each {
            in_combinations.push(own);
            deviations.extend(deviation.as_mut());
        }
    }
    let of_all = decide(all, options).note(family);
    decide(in_combinations, options);
    let of_deviations = decide(deviations, options);
    let of_deviations = (of_deviations.count > 0).then(|| {
        format!(
            "{}: a combination differs from the mean of all in {} of {}",
            family,
            of_deviations.shown,
            counted(of_deviations.count, "comparison")
        )
    });
    of_all.into_iter().chain(of_deviations).collect()
}

/// Returns one effect, before its family is decided; `None` if none of its targets has the metric.
fn drafted(
    samples: &Samples<'_>,
    place: Place<'_>,
    (index, factor, level): (usize, &Factor, usize),
    metric: &str,
    options: &CompareOptions,
) -> Option<UndecidedEffect> {
    let mut each = Vec::new();
    let mut sides: Vec<(Side, Side)> = Vec::new();
    let combinations = factor.combinations.iter();
    let targets = combinations.flat_map(|it| [it.targets.first(), it.targets.get(level)]);
    let targets: Vec<&str> = targets.flatten().filter_map(|target| target.as_deref()).collect();
    let measured = Measured::new(samples, place, &targets, metric);
    for (number, combination) in factor.combinations.iter().enumerate() {
        let target = |level: usize| combination.targets.get(level)?.as_deref();
        let (base, target) = (target(0)?, target(level)?);
        each.extend(draft(samples, place, [base, target], metric, options).map(|it| (number, it)));
        let side = |target: &str| samples.side(place, target, measured.metric);
        sides.push((side(base), side(target)));
    }
    if each.is_empty() {
        return None;
    }
    let mut all = UndecidedRow::new(place, &factor.change(level), metric);
    all.row.group = each.iter().find_map(|(_, it)| it.row.group.clone());
    let (of_base, of_level): (Vec<Side>, Vec<Side>) = sides.iter().cloned().unzip();
    let [base, side] = [of_base, of_level].map(|sides| Side::mean_of(&sides));
    let name = |level: usize| format!("{}={}", factor.name, factor.levels[level]);
    all.fill(samples, [(&name(0), &base), (&name(level), &side)], options);
    let reasons = each.iter().flat_map(|(_, it)| it.row.reasons.iter().cloned());
    all.row.reasons = distinct(reasons.chain(std::mem::take(&mut all.row.reasons)));
    let apart = match all.row.pairing {
        Pairing::Paired if sides.len() > 1 && all.estimate.is_some() => {
            deviations(&all.row.values, &sides)
        }
        _ => None,
    };
    let apart = apart.into_iter().flatten().map(Some).chain(std::iter::repeat(None));
    // A combination without a draft has no pairs.
    let each = each.into_iter().zip(apart).map(|((number, own), pairs)| {
        let deviation = pairs.map(|pairs| {
            let mut draft = UndecidedRow::new(place, &own.row.cell.target, metric);
            let rounding = own.rounding.hypot(all.rounding);
            let estimate = Estimate::of_pairs(&pairs, rounding, options.resamples, options.seed);
            draft.row.ratio = Some(estimate.ratio());
            draft.row.p_value = Some(estimate.p_value());
            draft.estimate = Some(estimate);
            draft
        });
        (number, own, deviation)
    });
    Some(UndecidedEffect { factor: index, level, each: each.collect(), all })
}

fn in_combination(
    (index, own, deviation): (usize, UndecidedRow, Option<UndecidedRow>),
) -> CombinationEffect {
    let deviation = deviation.map(|draft| draft.row);
    CombinationEffect {
        index,
        compared: own.row,
        deviation: deviation.and_then(|row| {
            Some(Deviation {
                ratio: row.ratio?,
                interval: row.interval?,
                p_value: row.p_value?,
                is_shown: matches!(row.verdict, Verdict::Faster | Verdict::Slower),
            })
        }),
    }
}
