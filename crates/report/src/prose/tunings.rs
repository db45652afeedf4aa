//! The text of a tuning: its phases, their results, and the answer.

use std::fmt::Write as _;

use analysis::tune::{Contender, EndedPhase, Levels, Phase, PhaseResult, TuneOutcome};

use super::SECOND_TRIAL;
use crate::model::text::terminal_text;

/// A tuning, with what is known so far.
#[derive(Clone, Debug)]
pub struct TuneView {
    /// The step whose throughput is to grow.
    pub step: String,
    /// The factors of the plan.
    pub factors: Vec<TunedFactor>,
    /// The number of targets of the plan's design.
    pub target_count: usize,
    /// The phases that have ended.
    pub ended: Vec<EndedPhase>,
}

/// A factor of a tuning.
#[derive(Clone, Debug)]
pub struct TunedFactor {
    /// The name.
    pub name: String,
    /// The levels; the first one is the base's.
    pub levels: Vec<String>,
}

impl TuneView {
    /// Returns the phase that is measured next.
    pub fn phase(&self, phase: &Phase) -> String {
        match phase {
            Phase::Screening => {
                let factors = analysis::counted(self.factors.len(), "factor");
                let targets = analysis::counted(self.target_count, "target");
                format!("screening: {factors} in {targets}")
            }
            Phase::Race(levels) => format!("race: {}", self.named(levels)),
            Phase::Verification(levels) => {
                format!("verification: {} against the base, once more", self.named(levels))
            }
        }
    }

    /// Returns what a phase showed.
    pub fn result(&self, result: &PhaseResult) -> String {
        let mut lines = Vec::new();
        match result {
            PhaseResult::Screened(levels) => {
                for level in levels.iter().filter(|level| level.helps) {
                    let name = self.level_name(level.factor, level.level);
                    let bound = if level.breaks_bound {
                        ", but breaks the bound of a kept step"
                    } else {
                        ""
                    };
                    lines.push(format!("  {name} helps: {:.2}x{bound}", level.ratio));
                }

                if lines.is_empty() {
                    lines.push("  nothing is shown to help".to_owned());
                }
            }
            PhaseResult::Raced(race) => {
                for contender in &race.without {
                    let name = &self.factors[contender.factor].name;
                    let verdict =
                        if contender.is_better { "matters" } else { "is not shown to matter" };
                    lines.push(format!("  {} {verdict}: {}", terminal_text(name), size(contender)));
                }

                if let Some(factor) = race.worst_for_bound {
                    let name = terminal_text(&self.factors[factor].name);
                    lines.push(format!("  a kept step is below its bound, most of all by {name}"));
                }
            }
            PhaseResult::Verified(gain) => lines.push(format!("  gain: {}", size(gain))),
        }

        lines.join("\n")
    }

    /// Returns the answer.
    pub fn answer(&self, outcome: &TuneOutcome) -> String {
        let step = terminal_text(&self.step);
        let (levels, gain) = match outcome {
            TuneOutcome::NothingHelps => {
                return format!("No level of any factor is shown to help {step}.\n");
            }
            TuneOutcome::Better { levels, gain } | TuneOutcome::NotConfirmed { levels, gain } => {
                (levels, gain)
            }
        };

        let options = self.named(levels);
        let confirmation = if matches!(outcome, TuneOutcome::Better { .. }) {
            "confirms it"
        } else {
            "does not confirm it"
        };
        let size_of_gain = size(gain);
        let mut text = format!(
            "With {options}, {step} is {size_of_gain} of the base. {SECOND_TRIAL} {confirmation}.\n"
        );

        for contender in self.contributions(levels) {
            let name = self.level_name(contender.factor, levels[contender.factor]);
            let _ = writeln!(text, "  {name}: {} of the same without it", size(contender));
        }

        if gain.breaks_bound {
            text.push_str("A kept step is below its bound.\n");
        } else if gain.is_better && !gain.keeps_bounds {
            text.push_str("A kept step is not shown to be above its bound.\n");
        }

        text
    }

    /// Returns what each level of a combination contributes, by its race.
    fn contributions(&self, levels: &Levels) -> &[Contender] {
        let race = self.ended.iter().rev().find(|ended| ended.phase == Phase::Race(levels.clone()));
        match race.map(|ended| &ended.result) {
            Some(PhaseResult::Raced(race)) => &race.without,
            _ => &[],
        }
    }

    /// Returns a combination: `wal_compression=lz4, max_wal_size=4GB`.
    fn named(&self, levels: &Levels) -> String {
        let changed = (0..levels.len()).filter(|factor| levels[*factor] > 0);
        let names: Vec<String> =
            changed.map(|factor| self.level_name(factor, levels[factor])).collect();
        names.join(", ")
    }

    fn level_name(&self, factor: usize, level: usize) -> String {
        let factor = &self.factors[factor];
        terminal_text(&format!("{}={}", factor.name, factor.levels[level]))
    }
}

/// Returns a ratio with its interval: `1.32x (1.21 to 1.44)`.
fn size(contender: &Contender) -> String {
    match contender.interval {
        Some(interval) => {
            format!("{:.2}x ({:.2} to {:.2})", contender.ratio, interval.low, interval.high)
        }
        None => format!("{:.2}x, without an interval", contender.ratio),
    }
}
