//! Computes the effect of a factor: each of its levels against the base's, with all else equal. In
//! each repeat the geometric means over all combinations of the other factors are compared as if
//! they were two targets. Each combination is also compared by itself, and with that mean. The
//! assumptions are in `docs/statistics.md`.

use serde::Serialize;

use super::designed::DesignedEffects;
use super::draft::{ComparedFigure, TargetPair, UndecidedRow, draft};
use super::estimate::Estimate;
use super::matching::{BothSides, NamedSide, deviations};
use super::metric::{families, family_of};
use super::note::Note;
use super::samples::{Samples, Side};
use super::typical::NoiseWithin;
use super::verdict::{decide, notes_on_repeats, unfinished};
use super::{CompareOptions, ComparedStep, Interval, Pairing};
use crate::figures::Figures;
use crate::figures::index::StepPlace;
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
    /// The design of which they are the effects; `None` if each factor has all combinations of the
    /// others.
    pub design: Option<DesignedEffects>,
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

impl Effects {
    /// Leaves only the factors of which `are_wanted` is true. Those of a design stay beside the rows
    /// that are left, because effects may be interactions with them.
    pub fn retain_factors(&mut self, are_wanted: &[bool]) {
        self.rows.retain(|row| are_wanted[row.factor]);
        if self.design.is_some() {
            return;
        }

        for row in &mut self.rows {
            row.factor = are_wanted[..row.factor].iter().filter(|is_wanted| **is_wanted).count();
        }
        let all = std::mem::take(&mut self.factors).into_iter().zip(are_wanted);
        self.factors = all.filter(|(_, is_wanted)| **is_wanted).map(|(factor, _)| factor).collect();
    }
}

impl Effect {
    /// Returns whether any combination is shown to differ from the mean of all.
    pub fn differs(&self) -> bool {
        let mut combinations = self.combinations.iter();
        combinations
            .any(|combination| combination.deviation.is_some_and(|deviation| deviation.is_shown))
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
    each: Vec<UndecidedCombination>,
}

struct UndecidedCombination {
    /// The index among the combinations of the factor.
    index: usize,
    own: UndecidedRow,
    /// The ratio relative to that of all combinations; see [`CombinationEffect::deviation`].
    deviation: Option<UndecidedRow>,
}

/// A level of a factor that is compared with the base's.
#[derive(Clone, Copy)]
struct FactorLevel<'f> {
    /// The index of the factor.
    index: usize,
    factor: &'f Factor,
    level: usize,
}

/// Computes the effects of factors, each of which has a target for each level in each of its
/// combinations.
pub fn effects(figures: &Figures, factors: Vec<Factor>, options: &CompareOptions) -> Effects {
    let samples = Samples::new(figures);
    let metrics = options.all_metrics(&[]);
    let mut drafts = Vec::new();

    for group in samples.groups() {
        for level in levels(&factors) {
            for step in samples.steps() {
                let place = StepPlace { step, ..group };
                for metric in &metrics {
                    drafts.extend(draft_effect(&samples, place, level, metric));
                }
            }
        }
    }

    let mut family_notes = Vec::new();
    for family in families(metrics.iter().copied()) {
        let mut members: Vec<&mut UndecidedEffect> = drafts.iter_mut().collect();
        members.retain(|effect| family_of(&effect.all.row.metric) == family);
        family_notes.extend(decide_all(&family, members, options));
    }

    // The steps that are not shown had their part in the decisions.
    drafts.retain(|effect| options.shows(&effect.all.row.step));
    let has_hidden_drift = drafts.iter().any(|effect| effect.all.has_hidden_drift);
    let rows: Vec<&ComparedStep> = drafts.iter().map(|effect| &effect.all.row).collect();
    let mut notes = notes_on_repeats(&rows, has_hidden_drift);
    notes.extend(family_notes);

    Effects {
        rows: drafts.into_iter().map(UndecidedEffect::decided).collect(),
        metrics: metrics.into_iter().map(str::to_owned).collect(),
        factors,
        effect: options.effect,
        error_rate: options.error_rate,
        unfinished: unfinished(figures),
        notes: notes.iter().map(Note::to_string).collect(),
        design: None,
    }
}

/// Returns all levels but those of the base.
fn levels(factors: &[Factor]) -> Vec<FactorLevel<'_>> {
    let mut all = Vec::new();
    for (index, factor) in factors.iter().enumerate() {
        for level in 1..factor.levels.len() {
            all.push(FactorLevel { index, factor, level });
        }
    }
    all
}

/// Decides the effects of a family, those in each combination, and the differences between
/// combinations: a family each.
fn decide_all(
    family: &str,
    members: Vec<&mut UndecidedEffect>,
    options: &CompareOptions,
) -> Vec<Note> {
    let (mut all, mut in_combinations, mut deviations) = (Vec::new(), Vec::new(), Vec::new());
    for effect in members {
        all.push(&mut effect.all);
        for combination in &mut effect.each {
            in_combinations.push(&mut combination.own);
            deviations.extend(combination.deviation.as_mut());
        }
    }

    let of_all = decide(family, all, options);
    decide(family, in_combinations, options);
    let of_deviations = decide(family, deviations, options);

    let mut notes = Vec::from_iter(of_all.note());
    if of_deviations.comparison_count() > 0 {
        notes.push(Note::Interactions {
            family: family.to_owned(),
            comparison_count: of_deviations.comparison_count(),
            shown_count: of_deviations.shown_count(),
        });
    }
    notes
}

/// Returns one effect, before its family is decided; `None` if none of its targets has the metric,
/// or a combination lacks a target.
fn draft_effect(
    samples: &Samples<'_>,
    place: StepPlace<'_>,
    level: FactorLevel<'_>,
    metric: &str,
) -> Option<UndecidedEffect> {
    let pairs = target_pairs(place, level)?;
    let targets: Vec<&str> = pairs.iter().flat_map(|pair| [pair.base, pair.target]).collect();
    let measured = ComparedFigure::new(samples, place, &targets, metric);

    let mut each = Vec::new();
    let mut sides = Vec::new();
    for (index, pair) in pairs.into_iter().enumerate() {
        if let Some(own) = draft(samples, pair, metric) {
            each.push(UndecidedCombination { index, own, deviation: None });
        }
        sides.push(BothSides {
            base: samples.side(place, pair.base, measured.metric),
            target: samples.side(place, pair.target, measured.metric),
        });
    }
    if each.is_empty() {
        return None;
    }

    let all = draft_of_all(samples, place, level, metric, &each, &sides);

    // Only pairs of repeats say how far a combination is from the mean of the others.
    if all.row.pairing == Pairing::Paired && sides.len() > 1 && all.estimate.is_some() {
        let deviations = deviations(&all.row.values, &sides).unwrap_or_default();
        // A combination may have values and no draft: where its targets never took turns.
        for combination in &mut each {
            let Some(pairs) = deviations.get(combination.index) else {
                continue;
            };
            let rounding = combination.own.rounding.hypot(all.rounding);
            let target = &combination.own.row.cell.target;
            let empty = UndecidedRow::new(place, target, metric);
            let estimate = Estimate::of_pairs(pairs, rounding);
            combination.deviation = Some(with_ratio(empty, estimate.for_looks(samples.looks())));
        }
    }

    Some(UndecidedEffect { factor: level.index, level: level.level, all, each })
}

/// Returns the target of a level and that of the base's level in each combination.
fn target_pairs<'t>(place: StepPlace<'t>, level: FactorLevel<'t>) -> Option<Vec<TargetPair<'t>>> {
    let combinations = level.factor.combinations.iter();
    let pairs = combinations.map(|combination| {
        let base = combination.targets.first()?.as_deref()?;
        let target = combination.targets.get(level.level)?.as_deref()?;
        Some(TargetPair { place, base, target })
    });
    pairs.collect()
}

/// Returns a level against the base's, each by its mean over all combinations.
fn draft_of_all(
    samples: &Samples<'_>,
    place: StepPlace<'_>,
    level: FactorLevel<'_>,
    metric: &str,
    each: &[UndecidedCombination],
    sides: &[BothSides],
) -> UndecidedRow {
    let mut all = UndecidedRow::new(place, &level.factor.change(level.level), metric);
    all.row.group = each.iter().find_map(|combination| combination.own.row.group.clone());

    let of_base: Vec<&Side> = sides.iter().map(|sides| &sides.base).collect();
    let of_level: Vec<&Side> = sides.iter().map(|sides| &sides.target).collect();
    all.fill(
        samples,
        NamedSide { name: &level.factor.named(0), side: &Side::mean_of(&of_base) },
        NamedSide { name: &level.factor.named(level.level), side: &Side::mean_of(&of_level) },
    );

    if all.row.pairing == Pairing::Paired {
        let of_each: Vec<NoiseWithin> =
            each.iter().map(|combination| combination.own.noise_within).collect();
        all.noise_within = NoiseWithin::of_mean(&of_each);
    }

    // What a combination lacks, the mean lacks as well.
    let of_each = each.iter().flat_map(|combination| &combination.own.row.reasons);
    all.row.reasons = distinct(of_each.chain(&all.row.reasons).cloned());
    all
}

/// Fills in the ratio of pairs alone: the interval and the verdict follow from it.
fn with_ratio(mut draft: UndecidedRow, estimate: Estimate) -> UndecidedRow {
    draft.row.ratio = Some(estimate.ratio());
    draft.row.p_value = Some(estimate.p_value());
    draft.estimate = Some(estimate);
    draft
}

impl UndecidedEffect {
    fn decided(self) -> Effect {
        Effect {
            factor: self.factor,
            level: self.level,
            compared: self.all.row,
            combinations: self.each.into_iter().map(UndecidedCombination::decided).collect(),
        }
    }
}

impl UndecidedCombination {
    fn decided(self) -> CombinationEffect {
        CombinationEffect {
            index: self.index,
            compared: self.own.row,
            deviation: self.deviation.and_then(|draft| Deviation::of(&draft.row)),
        }
    }
}

impl Deviation {
    fn of(row: &ComparedStep) -> Option<Self> {
        Some(Self {
            ratio: row.ratio?,
            interval: row.interval?,
            p_value: row.p_value?,
            is_shown: row.verdict.is_change(),
        })
    }
}
