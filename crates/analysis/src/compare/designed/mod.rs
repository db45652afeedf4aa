//! Computes the effects of the factors of a design: of all targets together, since no two of them
//! differ in one factor alone. `docs/statistics.md` says how, and what it rests on.

mod fit;
mod half_normal;

use design::{Confounding, Design, Effect as DesignEffect, Levels, Mixed, Resolution};
use serde::Serialize;

use super::draft::{ComparedFigure, UndecidedRow};
use super::effects::{Effect, Effects};
use super::estimate::Estimate;
use super::metric::{families, family_of};
use super::note::Note;
use super::reason::Reason;
use super::samples::{Samples, Side, TimedSample};
use super::verdict::{decide, unfinished};
use super::{CompareOptions, ComparedStep, ModeratedSpread, Pairing, Sample, Verdict};
use crate::figures::Figures;
use crate::figures::index::StepPlace;
use crate::order::distinct;
use crate::settings::Factor;
use fit::{FittedEffect, Value, Values};
pub use half_normal::HalfNormal;

/// A design, and the effects that it estimates.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DesignedEffects {
    /// The kind: `screening`, `full` or `one-at-a-time`.
    pub kind: String,
    /// The number of targets.
    pub target_count: usize,
    /// The number of them that a fold-over added.
    pub folded_count: usize,
    /// The effects that the design keeps apart.
    pub clarity: Clarity,
    /// For each factor, the interactions of two others that its effect may be instead.
    pub mixed: Vec<Vec<MixedInteraction>>,
    /// The interactions that the design can tell from all effects.
    pub interactions: Vec<InteractionEffect>,
}

/// The effects that a design keeps apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clarity {
    /// Effects may be interactions of two other factors instead.
    #[default]
    Mixed,
    /// Effects are clear of interactions of two factors, but some of these are mixed with each
    /// other.
    EffectsClear,
    /// Effects and interactions of two factors are clear.
    AllClear,
}

/// An interaction of two factors that is a part of the estimate of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MixedInteraction {
    /// The indexes of the factors.
    pub factors: [usize; 2],
    /// The share of the interaction in the estimate, with its sign.
    pub share: f64,
}

/// The effect of an interaction of two factors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InteractionEffect {
    /// The pairs of factors, by their indexes: the design cannot tell their interactions apart.
    pub pairs: Vec<[usize; 2]>,
    /// Half of the change of one factor's effect that the other makes, as a ratio.
    pub compared: ComparedStep,
}

/// A design as it was recorded.
struct RecordedDesign<'r> {
    record: &'r record::Design,
    design: Design,
    confounding: Confounding,
    factors: Vec<Factor>,
}

/// Computes the effects of the factors of the figures' design; `None` if they have none, or its
/// targets cannot tell the effects apart.
pub fn designed_effects(figures: &Figures, options: &CompareOptions) -> Option<Effects> {
    let recorded = RecordedDesign::of(figures)?;
    let samples = Samples::new(figures);
    let metrics = options.all_metrics(&[]);

    let mut effects = Vec::new();
    let mut interactions = Vec::new();
    for group in samples.groups() {
        for step in samples.steps() {
            let place = StepPlace { step, ..group };
            for metric in &metrics {
                let drafts = recorded.drafts(&samples, place, metric);
                effects.extend(drafts.effects);
                interactions.extend(drafts.interactions);
            }
        }
    }

    // A factor has its steps in a row.
    effects.sort_by_key(|draft| (draft.factor, draft.level));

    let notes = decide_all(&mut effects, &mut interactions, options);
    effects.retain(|draft| options.shows(&draft.undecided.row.step));
    interactions.retain(|draft| options.shows(&draft.undecided.row.step));

    let rows = effects.into_iter().map(|draft| Effect {
        factor: draft.factor,
        level: draft.level,
        compared: draft.undecided.row,
        combinations: Vec::new(),
    });

    Some(Effects {
        rows: rows.collect(),
        metrics: metrics.into_iter().map(str::to_owned).collect(),
        effect: options.effect,
        error_rate: options.error_rate,
        unfinished: unfinished(figures),
        notes: notes.iter().map(Note::to_string).collect(),
        design: Some(recorded.said(interactions)),
        factors: recorded.factors,
    })
}

/// Decides effects and interactions: a family each, for each family of metrics.
fn decide_all(
    effects: &mut [EffectDraft],
    interactions: &mut [InteractionDraft],
    options: &CompareOptions,
) -> Vec<Note> {
    // The noise of an effect rests on all targets already.
    let options = CompareOptions { moderate_spreads: false, ..options.clone() };
    let mut notes = Vec::new();

    let metrics: Vec<String> =
        effects.iter().map(|draft| draft.undecided.row.metric.clone()).collect();
    for family in families(metrics.iter().map(String::as_str)) {
        let all_effects = effects.iter_mut().map(|draft| &mut draft.undecided);
        let of_effects = all_effects.filter(|draft| family_of(&draft.row.metric) == family);
        notes.extend(decide(&family, of_effects.collect(), &options).note());

        let all_pairs = interactions.iter_mut().map(|draft| &mut draft.undecided);
        let of_pairs = all_pairs.filter(|draft| family_of(&draft.row.metric) == family);
        let decided = decide(&family, of_pairs.collect(), &options);
        if decided.comparison_count() > 0 {
            notes.push(Note::DesignInteractions {
                family: family.clone(),
                comparison_count: decided.comparison_count(),
                shown_count: decided.shown_count(),
            });
        }
    }

    let drafts = effects.iter().map(|draft| &draft.undecided.row);
    let counts: Vec<usize> =
        drafts.map(|row| row.values.len()).filter(|count| *count > 0).collect();

    if counts.contains(&1) {
        notes.push(Note::SingleRepeatOfDesign);
    }
    notes
}

/// An effect of a level, before its family is decided.
struct EffectDraft {
    factor: usize,
    level: usize,
    undecided: UndecidedRow,
}

/// An interaction, before its family is decided.
struct InteractionDraft {
    /// The index of its group.
    group: usize,
    undecided: UndecidedRow,
}

/// The drafts of one metric in one step.
#[derive(Default)]
struct Drafts {
    effects: Vec<EffectDraft>,
    interactions: Vec<InteractionDraft>,
}

/// The values of all targets for one metric of one step.
struct MeasuredTargets<'d> {
    values: Values<'d>,
    /// The run and the repeat of each repeat.
    repeats: Vec<Sample>,
    /// The geometric mean of each repeat's values.
    means: Vec<f64>,
    /// The standard deviation that rounding adds to the logarithm of a value.
    rounding: f64,
    reasons: Vec<Reason>,
}

impl<'r> RecordedDesign<'r> {
    /// Returns the design of figures.
    fn of(figures: &'r Figures) -> Option<Self> {
        let record = figures.design.as_ref()?;
        let level_counts: Vec<usize> =
            record.factors.iter().map(|factor| factor.levels.len()).collect();
        let targets: Vec<Levels> =
            record.targets.iter().map(|target| target.levels.clone()).collect();

        // A record may come from a stranger.
        let is_sound = targets.iter().all(|levels| {
            let pairs = levels.iter().zip(&level_counts);
            levels.len() == level_counts.len() && pairs.clone().all(|(level, count)| level < count)
        });
        if !is_sound || targets.len() > 2 * design::TARGETS_MAX {
            return None;
        }

        let blocks: Vec<usize> =
            record.targets.iter().map(|target| usize::from(target.is_folded)).collect();
        let design = Design { level_counts, targets };
        let confounding = Confounding::of(&design, &blocks)?;

        let engine = figures.settings.profiles.first().map(|profile| profile.engine.clone());
        let factors = record.factors.iter().map(|factor| Factor {
            engine: engine.clone().unwrap_or_default(),
            name: factor.name.clone(),
            levels: factor.levels.clone(),
            ..Factor::default()
        });

        Some(Self { record, factors: factors.collect(), design, confounding })
    }

    /// Returns the effects and the interactions of one metric in one step; none if no target has
    /// the metric.
    fn drafts(&self, samples: &Samples<'_>, place: StepPlace<'_>, metric: &str) -> Drafts {
        let Some(measured) = self.measured(samples, place, metric) else {
            return Drafts::default();
        };

        let mut drafts = Drafts::default();
        for fitted in measured.values.effects() {
            let DesignEffect::Level { factor, level } = fitted.effect else {
                continue;
            };

            let described = &self.factors[factor];
            let change = described.change(level);
            let mut undecided = measured.draft(samples, place, &change, metric, &fitted);
            undecided.names = [described.named(0), described.named(level)];
            drafts.effects.push(EffectDraft { factor, level, undecided });
        }

        // Without any repeat that tells them apart, the reasons remain.
        if drafts.effects.is_empty() {
            drafts.effects = self.without_values(place, metric, &measured.reasons);
        }

        for (group, of_group) in self.confounding.groups.iter().enumerate() {
            let fitted = of_group.pairs.first().and_then(|pair| measured.values.interaction(*pair));
            let Some(fitted) = fitted else {
                continue;
            };

            let name = self.named_pairs(&of_group.pairs);
            let undecided = measured.draft(samples, place, &name, metric, &fitted);
            drafts.interactions.push(InteractionDraft { group, undecided });
        }
        drafts
    }

    /// Returns a row for each effect that says why there is no figure.
    fn without_values(
        &self,
        place: StepPlace<'_>,
        metric: &str,
        reasons: &[Reason],
    ) -> Vec<EffectDraft> {
        let mut drafts = Vec::new();
        for (factor, described) in self.factors.iter().enumerate() {
            for level in 1..described.levels.len() {
                let mut undecided = UndecidedRow::new(place, &described.change(level), metric);
                undecided.add_reasons(reasons);
                drafts.push(EffectDraft { factor, level, undecided });
            }
        }
        drafts
    }

    /// Returns the values of all targets; `None` if none has the metric.
    fn measured(
        &self,
        samples: &Samples<'_>,
        place: StepPlace<'_>,
        metric: &str,
    ) -> Option<MeasuredTargets<'_>> {
        let names: Vec<&str> =
            self.record.targets.iter().map(|target| target.target.as_str()).collect();
        let measured = ComparedFigure::new(samples, place, &names, metric);
        let sides: Vec<Side> =
            names.iter().map(|name| samples.side(place, name, measured.metric)).collect();
        if sides.iter().all(Side::has_nothing) {
            return None;
        }

        let mut reasons = Vec::from_iter(measured.reason);
        reasons.extend(sides.iter().flat_map(|side| side.reasons.iter().cloned()));
        let all: Vec<&TimedSample> = sides.iter().flat_map(|side| &side.values).collect();
        if all.iter().any(|value| value.sample.value <= 0.0) {
            reasons.push(Reason::NotAboveZero);
        }

        let mut repeats: Vec<Sample> = Vec::new();
        for value in &all {
            if !repeats.iter().any(|repeat| repeat.is_of_repeat_of(&value.sample)) {
                repeats.push(value.sample);
            }
        }
        repeats.sort_by_key(|repeat| (repeat.run, repeat.repeat));

        let rows: Vec<Vec<Option<Value>>> =
            repeats.iter().map(|repeat| values_of(repeat, &sides)).collect();
        let means = rows.iter().map(|row| mean_of(row)).collect();
        let rounding = all.iter().map(|value| value.rounding).fold(0.0, f64::max);
        let level_counts = &self.design.level_counts;
        let values = Values { level_counts, targets: &self.design.targets, repeats: rows };
        Some(MeasuredTargets { values, repeats, means, rounding, reasons })
    }

    /// Returns the names of pairs: `a × b or c × d`.
    fn named_pairs(&self, pairs: &[[usize; 2]]) -> String {
        let names = pairs.iter().map(|pair| {
            let [a, b] = pair.map(|factor| self.factors[factor].label());
            format!("{a} × {b}")
        });
        names.collect::<Vec<_>>().join(" or ")
    }

    /// Returns what the design says about the effects.
    fn said(&self, interactions: Vec<InteractionDraft>) -> DesignedEffects {
        let mut mixed: Vec<Vec<MixedInteraction>> = vec![Vec::new(); self.factors.len()];
        for (effect, interactions) in &self.confounding.of_effects {
            let DesignEffect::Level { factor, .. } = *effect else {
                continue;
            };
            for Mixed { factors, share } in interactions {
                let is_known = mixed[factor].iter().any(|known| known.factors == *factors);
                if !is_known {
                    mixed[factor].push(MixedInteraction { factors: *factors, share: *share });
                }
            }
        }

        let effects = interactions.into_iter().map(|draft| InteractionEffect {
            pairs: self.confounding.groups[draft.group].pairs.clone(),
            compared: draft.undecided.row,
        });

        DesignedEffects {
            kind: self.record.kind.clone(),
            target_count: self.record.targets.len(),
            folded_count: self.record.targets.iter().filter(|target| target.is_folded).count(),
            clarity: match self.confounding.resolution {
                Resolution::MainWithInteractions => Clarity::Mixed,
                Resolution::MainClear => Clarity::EffectsClear,
                Resolution::InteractionsClear => Clarity::AllClear,
            },
            mixed,
            interactions: effects.collect(),
        }
    }
}

/// Returns the value of each target in a repeat. Values that have no logarithm don't count.
fn values_of(repeat: &Sample, sides: &[Side]) -> Vec<Option<Value>> {
    let values: Vec<Option<TimedSample>> =
        sides.iter().map(|side| side.of_repeat(repeat)).collect();

    // Parts of a repeat that different invocations measured have levels of their own.
    let blocks = distinct(values.iter().flatten().map(|value| value.block));

    values
        .iter()
        .map(|value| {
            let value = value.as_ref().filter(|value| value.sample.value > 0.0)?;
            let block = blocks.iter().position(|block| *block == value.block)?;
            Some(Value { ln: value.sample.value.ln(), block })
        })
        .collect()
}

/// Returns the mean of the logarithms of a repeat.
fn mean_of(row: &[Option<Value>]) -> f64 {
    let logarithms: Vec<f64> = row.iter().flatten().map(|value| value.ln).collect();
    super::mean::mean(&logarithms)
}

impl MeasuredTargets<'_> {
    /// Returns the row of an effect.
    fn draft(
        &self,
        samples: &Samples<'_>,
        place: StepPlace<'_>,
        change: &str,
        metric: &str,
        fitted: &FittedEffect,
    ) -> UndecidedRow {
        let mut draft = UndecidedRow::new(place, change, metric);
        draft.add_reasons(&distinct(self.reasons.iter().cloned()));
        draft.rounding = self.rounding * fitted.scale;

        let row = &mut draft.row;
        row.looks = samples.looks();
        row.pairing = Pairing::Paired;
        row.machines.count = 1;
        row.ratio = Some(fitted.center.exp());
        row.verdict = Verdict::Single;

        // The two sides of a repeat are as far apart as the effect, around the mean of all targets.
        for (index, logarithm) in &fitted.of_repeats {
            let (repeat, middle) = (self.repeats[*index], self.means[*index]);
            let side = |ln: f64| Sample { value: ln.exp(), ..repeat };
            row.base_values.push(side(middle - logarithm / 2.0));
            row.values.push(side(middle + logarithm / 2.0));
        }

        let Some(measured) = fitted.measured else {
            return draft;
        };
        let repeat_count = fitted.of_repeats.len();
        let spread = measured.error * (repeat_count as f64).sqrt();
        let estimate = Estimate::of_known(measured, spread, draft.rounding, repeat_count);
        let estimate = estimate.for_looks(samples.looks());
        row.p_value = Some(estimate.p_value());
        row.spread = Some(spread);
        let own_freedom = repeat_count as f64 - 1.0;
        row.moderated = Some(ModeratedSpread {
            spread,
            freedom: measured.freedom,
            borrowed_freedom: measured.freedom - own_freedom,
        });
        draft.estimate = Some(estimate);
        draft
    }
}
