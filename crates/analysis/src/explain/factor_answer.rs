//! Summarizes the effects of factors, level by level.

use serde::Serialize;

use super::{Change, TargetAnswer};
use crate::compare::{Effect, Effects, THROUGHPUT};
use crate::order::{distinct, sort_largest_first};

/// The summary of a factor's level against the base's level, with all else equal.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FactorAnswer {
    /// The engine.
    pub engine: String,
    /// The name of the factor.
    pub factor: String,
    /// The base's value.
    pub base_level: String,
    /// The value whose effect this is.
    pub level: String,
    /// The settings that change with it, those that always do with their values:
    /// `compression=kZSTD`.
    pub with: Vec<String>,
    /// The number of shown effects that differ between combinations of the other factors.
    pub differing: usize,
    /// The effects. The name of the target is that of the change.
    #[serde(flatten)]
    pub outcome: TargetAnswer,
}

/// The summary of the levels of a design's factors that have no shown effect on any step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WithoutEffect {
    /// The number of these levels.
    pub level_count: usize,
    /// The comparisons that rule out an effect that matters.
    pub equal: usize,
    /// The comparisons that are too noisy to say.
    pub too_noisy: usize,
    /// The comparisons without a verdict: measured once, or not comparable.
    pub not_compared: usize,
}

impl FactorAnswer {
    /// Summarizes the effects of one level of a factor on throughput.
    fn new(effects: &Effects, factor: usize, level: usize) -> Self {
        let mut own: Vec<&Effect> = effects_on_throughput(effects).collect();
        own.retain(|effect| effect.factor == factor && effect.level == level);
        let shown = own.iter().filter(|effect| effect.compared.verdict.is_change());

        let factor = &effects.factors[factor];
        Self {
            engine: factor.engine.clone(),
            factor: factor.label().to_owned(),
            base_level: factor.levels[0].clone(),
            level: factor.levels[level].clone(),
            with: factor.settings_with(level),
            differing: shown.filter(|effect| effect.differs()).count(),
            outcome: TargetAnswer::new(
                &factor.change(level),
                own.iter().map(|effect| &effect.compared),
            ),
        }
    }
}

fn effects_on_throughput(effects: &Effects) -> impl Iterator<Item = &Effect> {
    effects.rows.iter().filter(|effect| effect.compared.metric == THROUGHPUT)
}

/// Returns all levels of factors but the base's.
fn all_levels(effects: &Effects) -> Vec<FactorAnswer> {
    let levels = effects_on_throughput(effects).map(|effect| (effect.factor, effect.level));
    let mut answers = Vec::new();
    for (factor, level) in distinct(levels) {
        answers.push(FactorAnswer::new(effects, factor, level));
    }
    answers
}

impl WithoutEffect {
    /// Counts the comparisons of levels without a shown effect.
    pub(super) fn of(effects: &Effects) -> Self {
        let mut levels = all_levels(effects);
        levels.retain(|level| level.outcome.largest().is_none());

        let mut summary = Self { level_count: levels.len(), ..Self::default() };
        for FactorAnswer { outcome, .. } in &levels {
            summary.equal += outcome.equal;
            summary.too_noisy += outcome.too_noisy;
            summary.not_compared += outcome.comparison_count();
        }
        summary.not_compared -= summary.equal + summary.too_noisy;
        summary
    }
}

/// Returns the levels with an effect that is shown, the largest effect first.
pub(super) fn shown_factors(effects: &Effects) -> Vec<FactorAnswer> {
    let mut answers = all_levels(effects);
    let size = |answer: &FactorAnswer| answer.outcome.largest().map_or(0.0, Change::size);
    answers.retain(|answer| answer.outcome.largest().is_some());
    sort_largest_first(&mut answers, |item| size(item));
    answers
}
