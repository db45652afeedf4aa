//! Judges what the phases of a tuning measured.

use record::Design;

use super::{Contender, Levels, RaceResult, RatioInterval, ScreenedLevel, without};
use crate::compare::{
    CompareOptions, Compared, ComparedStep, EFFECT, THROUGHPUT, Verdict, compare, designed_effects,
};
use crate::figures::Figures;

/// A step whose throughput must not fall below a share of the base's.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Keep {
    /// The step.
    pub step: String,
    /// The share: 0.95 lets it lose 5%.
    pub share: f64,
}

/// The goal of a tuning.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Goal {
    /// The step whose throughput is to grow.
    pub step: String,
    /// The steps that must not suffer.
    pub keeps: Vec<Keep>,
}

impl Goal {
    /// Returns the steps that decide.
    pub fn steps(&self) -> Vec<&str> {
        let kept = self.keeps.iter().map(|keep| keep.step.as_str());
        std::iter::once(self.step.as_str()).chain(kept).collect()
    }

    /// Judges a screening. `None` if its targets cannot tell the effects of the factors.
    pub fn screened(&self, figures: &Figures) -> Option<Vec<ScreenedLevel>> {
        let effects = designed_effects(figures, &CompareOptions::default())?;
        let rows = || effects.rows.iter().filter(|row| row.compared.metric == THROUGHPUT);
        let mut levels = Vec::new();

        for effect in rows().filter(|row| row.compared.step == self.step) {
            let of_level =
                || rows().filter(|row| (row.factor, row.level) == (effect.factor, effect.level));

            let breaks_bound = self.keeps.iter().any(|keep| {
                let mut kept = of_level().filter(|row| row.compared.step == keep.step);
                kept.any(|row| is_below(&row.compared, keep.share))
            });

            let compared = &effect.compared;
            let interval = compared
                .interval
                .map(|interval| RatioInterval { low: interval.low, high: interval.high });
            levels.push(ScreenedLevel {
                factor: effect.factor,
                level: effect.level,
                ratio: compared.ratio.unwrap_or(1.0),
                interval,
                helps: compared.verdict == Verdict::Faster,
                is_ruled_out: matches!(compared.verdict, Verdict::Equal | Verdict::Slower)
                    || interval.is_some_and(RatioInterval::rules_out_gain),
                breaks_bound,
            });
        }
        Some(levels)
    }

    /// Judges a race of a combination. `None` if it was not measured.
    pub fn raced(&self, figures: &Figures, design: &Design, levels: &Levels) -> Option<RaceResult> {
        let combination = target_of(design, levels)?;
        let base = &design.targets.first()?.target;
        let compared = relative_to(figures, combination);

        let mut result = RaceResult::default();
        for factor in (0..levels.len()).filter(|factor| levels[*factor] > 0) {
            let rival = target_of(design, &without(levels, factor))?;
            result.without.push(self.contender(&compared, rival, factor));
        }

        let broken = self.keeps.iter().find(|keep| self.is_broken(&compared, base, keep));
        result.worst_for_bound = broken.and_then(|keep| {
            let gains = result.without.iter().filter_map(|contender| {
                let rival = target_of(design, &without(levels, contender.factor))?;
                let ratio = row_of(&compared, rival, &keep.step)?.ratio?;

                Some((contender.factor, ratio))
            });
            let best = gains.max_by(|(_, a), (_, b)| a.total_cmp(b));
            best.map(|(factor, _)| factor)
        });
        Some(result)
    }

    /// Judges a combination against the base. `None` if one of them was not measured.
    pub fn verified(
        &self,
        figures: &Figures,
        design: &Design,
        levels: &Levels,
    ) -> Option<Contender> {
        let combination = target_of(design, levels)?;
        let base = &design.targets.first()?.target;
        let compared = relative_to(figures, combination);
        row_of(&compared, base, &self.step)?;
        let breaks_bound = self.keeps.iter().any(|keep| self.is_broken(&compared, base, keep));
        let keeps_bounds = self.keeps.iter().all(|keep| self.is_kept(&compared, base, keep));
        Some(Contender { breaks_bound, keeps_bounds, ..self.contender(&compared, base, 0) })
    }

    /// Returns how the combination that is the base of `compared` does against another target.
    fn contender(&self, compared: &Compared, rival: &str, factor: usize) -> Contender {
        let row = row_of(compared, rival, &self.step);
        let ratio = row.and_then(|row| row.ratio).unwrap_or(1.0);
        let interval = row.and_then(|row| row.interval);

        Contender {
            factor,
            ratio: 1.0 / ratio,
            interval: interval.map(|interval| RatioInterval {
                low: 1.0 / interval.high,
                high: 1.0 / interval.low,
            }),
            is_better: row.is_some_and(|row| row.verdict == Verdict::Slower),
            breaks_bound: false,
            keeps_bounds: false,
        }
    }

    /// Returns whether the combination is shown to be below its bound relative to the base.
    fn is_broken(&self, compared: &Compared, base: &str, keep: &Keep) -> bool {
        let row = row_of(compared, base, &keep.step);
        // The ratio is that of the base to the combination.
        row.and_then(|row| row.interval).is_some_and(|interval| 1.0 / interval.low < keep.share)
    }

    /// Returns whether the combination is shown to be above its bound relative to the base. That it is
    /// not shown to be below would be no more than a lack of repeats.
    fn is_kept(&self, compared: &Compared, base: &str, keep: &Keep) -> bool {
        let row = row_of(compared, base, &keep.step);
        let lower_end = row.and_then(|row| row.equality).map(|interval| 1.0 / interval.high);
        lower_end.is_some_and(|share| share >= keep.share)
    }
}

impl RatioInterval {
    /// Returns whether a gain that matters is ruled out.
    fn rules_out_gain(self) -> bool {
        self.high <= 1.0 + EFFECT
    }
}

impl ScreenedLevel {
    /// Returns whether more repeats would change nothing: the level is shown to help, a gain that
    /// matters is ruled out, or the level cannot be used.
    pub fn is_decided(&self) -> bool {
        self.helps || self.is_ruled_out || self.breaks_bound
    }
}

impl Contender {
    /// Returns whether more repeats would change nothing: the gain is shown, or a gain that matters
    /// is ruled out.
    pub fn is_decided(&self) -> bool {
        let is_ruled_out = self.interval.is_some_and(RatioInterval::rules_out_gain);
        self.is_better || self.breaks_bound || is_ruled_out
    }

    /// Returns whether more repeats would change nothing about a combination and the base: it is also
    /// known of each step that must not suffer whether it does.
    pub fn is_verified(&self) -> bool {
        let is_only_better = self.is_better && !self.keeps_bounds && !self.breaks_bound;
        self.is_decided() && !is_only_better
    }
}

/// Compares all targets with a combination.
fn relative_to(figures: &Figures, combination: &str) -> Compared {
    let options = CompareOptions { base: combination.to_owned(), ..CompareOptions::default() };
    compare(figures, &options)
}

/// Returns the name of the target with these levels.
pub fn target_of<'d>(design: &'d Design, levels: &Levels) -> Option<&'d str> {
    let target = design.targets.iter().find(|target| target.levels == *levels)?;
    Some(&target.target)
}

/// Returns the comparison of throughput of a target in a step.
fn row_of<'c>(compared: &'c Compared, target: &str, step: &str) -> Option<&'c ComparedStep> {
    let mut rows = compared.rows.iter().filter(|row| row.metric == THROUGHPUT);
    rows.find(|row| row.cell.target == target && row.step == step)
}

fn is_below(row: &ComparedStep, share: f64) -> bool {
    row.interval.is_some_and(|interval| interval.high < share)
}
