//! Decides what a tuning measures next: which options to screen, which combinations to race, and
//! what to verify. It measures nothing itself, so simulations can take the place of engines.
//!
//! `docs/tune.md` has the rules.

mod judge;
mod race;

pub use design::Levels;
use serde::{Deserialize, Serialize};

pub use judge::{Goal, Keep, target_of};
pub use race::{Contender, RaceResult, RatioInterval};

/// The effect of a level of a factor, as the screening shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScreenedLevel {
    /// The index of the factor.
    pub factor: usize,
    /// The level, from 1.
    pub level: usize,
    /// The ratio to the base's level in the tuned step.
    pub ratio: f64,
    /// The interval of the ratio. `None`: nothing can be compared, or the log is an earlier one.
    #[serde(default)]
    pub interval: Option<RatioInterval>,
    /// The level is shown to be better in that step.
    pub helps: bool,
    /// A gain that matters is ruled out in that step.
    #[serde(default)]
    pub is_ruled_out: bool,
    /// In a step that must not suffer, the level alone is shown to be below the bound.
    pub breaks_bound: bool,
}

/// A part of a tuning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The plan's design.
    Screening,
    /// The best combination so far, against each combination that lacks one of its levels.
    Race(Levels),
    /// The best combination against the base, on new instances.
    Verification(Levels),
}

/// The result of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseResult {
    /// The effects of all levels.
    Screened(Vec<ScreenedLevel>),
    /// The result of a combination's race.
    Raced(RaceResult),
    /// The comparison of the combination with the base.
    Verified(Contender),
}

/// A phase that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedPhase {
    /// The phase.
    pub phase: Phase,
    /// The result.
    pub result: PhaseResult,
}

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Measure a phase.
    Measure(Phase),
    /// The tuning has ended.
    End(TuneOutcome),
}

/// The result of a tuning.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneOutcome {
    /// No level is shown to help, or none that helps remained.
    NothingHelps,
    /// This combination is shown to be better than the base, by new instances.
    Better {
        /// The levels.
        levels: Levels,
        /// The comparison with the base.
        gain: Contender,
    },
    /// The combination won the race, but new instances do not show that it is better.
    NotConfirmed {
        /// The levels.
        levels: Levels,
        /// The comparison with the base.
        gain: Contender,
    },
}

/// Returns what to do after these phases. A screening chooses the best level of each factor that is
/// shown to help; races drop the levels that are not shown to matter, one by one; and what is left
/// is verified.
pub fn next(factor_count: usize, ended: &[EndedPhase]) -> Next {
    let Some(last) = ended.last() else {
        return Next::Measure(Phase::Screening);
    };

    let levels = match (&last.phase, &last.result) {
        (_, PhaseResult::Screened(screened)) => best_levels(factor_count, screened),
        (Phase::Race(levels), PhaseResult::Raced(result)) => match result.to_drop() {
            Some(factor) => without(levels, factor),
            None => return Next::Measure(Phase::Verification(levels.clone())),
        },
        (Phase::Verification(levels), PhaseResult::Verified(gain)) => {
            let (levels, gain) = (levels.clone(), gain.clone());
            return Next::End(if gain.is_better && gain.keeps_bounds {
                TuneOutcome::Better { levels, gain }
            } else {
                TuneOutcome::NotConfirmed { levels, gain }
            });
        }
        // A log of another order of phases begins anew.
        _ => return Next::Measure(Phase::Screening),
    };

    if levels.iter().all(|level| *level == 0) {
        return Next::End(TuneOutcome::NothingHelps);
    }

    Next::Measure(Phase::Race(levels))
}

/// Returns the best level of each factor that is shown to help and breaks no bound.
fn best_levels(factor_count: usize, screened: &[ScreenedLevel]) -> Levels {
    let mut levels = vec![0; factor_count];
    for (factor, chosen) in levels.iter_mut().enumerate() {
        let usable = screened
            .iter()
            .filter(|level| level.factor == factor && level.helps && !level.breaks_bound);
        let best = usable.max_by(|a, b| a.ratio.total_cmp(&b.ratio));
        *chosen = best.map_or(0, |best| best.level);
    }
    levels
}

/// Returns a combination with the base's level of a factor.
pub fn without(levels: &Levels, factor: usize) -> Levels {
    let mut fewer = levels.clone();
    fewer[factor] = 0;
    fewer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a tuning in which the levels of factors have these effects: the logarithms of their
    /// ratios. An effect below 0.01 is not shown.
    fn play(effects: &[f64], screened_as: &[f64]) -> (TuneOutcome, Vec<Phase>) {
        let shown = |effect: f64| effect > 0.01;
        let mut ended: Vec<EndedPhase> = Vec::new();
        let mut phases = Vec::new();
        loop {
            let phase = match next(effects.len(), &ended) {
                Next::End(outcome) => return (outcome, phases),
                Next::Measure(phase) => phase,
            };
            phases.push(phase.clone());
            let sum = |levels: &Levels| -> f64 {
                levels.iter().zip(effects).map(|(level, effect)| *level as f64 * effect).sum()
            };
            let contender = |factor: usize, effect: f64| Contender {
                factor,
                ratio: effect.exp(),
                interval: None,
                is_better: shown(effect),
                breaks_bound: false,
                keeps_bounds: true,
            };
            let result = match &phase {
                Phase::Screening => {
                    let levels = screened_as.iter().enumerate().map(|(factor, effect)| {
                        let ratio = effect.exp();
                        ScreenedLevel {
                            factor,
                            level: 1,
                            ratio,
                            helps: shown(*effect),
                            ..ScreenedLevel::default()
                        }
                    });
                    PhaseResult::Screened(levels.collect())
                }
                Phase::Race(levels) => {
                    let present = (0..effects.len()).filter(|factor| levels[*factor] > 0);
                    let rivals = present.map(|factor| contender(factor, effects[factor]));
                    PhaseResult::Raced(RaceResult {
                        without: rivals.collect(),
                        worst_for_bound: None,
                    })
                }
                Phase::Verification(levels) => PhaseResult::Verified(contender(0, sum(levels))),
            };
            ended.push(EndedPhase { phase, result });
        }
    }

    #[test]
    fn levels_that_help_are_found_and_verified() {
        let effects = [0.3, 0.0, 0.1];
        let (outcome, phases) = play(&effects, &effects);
        assert!(matches!(outcome, TuneOutcome::Better { levels, .. } if levels == [1, 0, 1]));
        let race = Phase::Race(vec![1, 0, 1]);
        let verification = Phase::Verification(vec![1, 0, 1]);
        assert_eq!(phases, [Phase::Screening, race, verification]);
    }

    #[test]
    fn a_level_that_only_seemed_to_help_is_dropped_in_the_race() {
        let (outcome, phases) = play(&[0.3, 0.0, 0.1], &[0.3, 0.2, 0.1]);
        assert!(matches!(outcome, TuneOutcome::Better { levels, .. } if levels == [1, 0, 1]));
        assert_eq!(phases[1..3], [Phase::Race(vec![1, 1, 1]), Phase::Race(vec![1, 0, 1])]);
    }

    #[test]
    fn where_nothing_helps_the_tuning_ends_after_the_screening() {
        let (outcome, phases) = play(&[0.0, -0.2], &[0.0, -0.2]);
        assert_eq!((outcome, phases.len()), (TuneOutcome::NothingHelps, 1));
        let (outcome, phases) = play(&[0.0, 0.0], &[0.1, 0.0]);
        assert_eq!((outcome, phases.len()), (TuneOutcome::NothingHelps, 2));
    }

    #[test]
    fn of_several_levels_the_best_is_chosen_and_none_that_breaks_a_bound() {
        let level = |factor, level, ratio, breaks_bound| ScreenedLevel {
            factor,
            level,
            ratio,
            helps: true,
            breaks_bound,
            ..ScreenedLevel::default()
        };
        let screened = [level(0, 1, 1.2, false), level(0, 2, 1.5, false), level(1, 1, 3.0, true)];
        assert_eq!(best_levels(2, &screened), [2, 0]);
    }
}
