//! The text of a tuning: its phases, their results, and the answer.

use std::fmt::Write as _;

use analysis::tune::{
    Contender, EndedPhase, Levels, Phase, PhaseResult, RatioInterval, ScreenedLevel, TuneOutcome,
};

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
                for level in levels {
                    lines.push(format!("  {}", self.effect(level)));
                }

                if !levels.iter().any(|level| level.helps) {
                    lines.push("  nothing is shown to help".to_owned());
                }
            }
            PhaseResult::Raced(race) => {
                for contender in &race.without {
                    let name = &self.factors[contender.factor].name;
                    let verdict =
                        if contender.is_better { "matters" } else { "is not shown to matter" };
                    let ratio = size(contender.ratio, contender.interval);
                    lines.push(format!("  {} {verdict}: {ratio}", terminal_text(name)));
                }

                if let Some(factor) = race.worst_for_bound {
                    let name = terminal_text(&self.factors[factor].name);
                    lines.push(format!("  a kept step is below its bound, most of all by {name}"));
                }
            }
            PhaseResult::Verified(gain) => {
                lines.push(format!("  gain: {}", size(gain.ratio, gain.interval)));
            }
        }

        lines.join("\n")
    }

    /// Returns the answer.
    pub fn answer(&self, outcome: &TuneOutcome) -> String {
        let step = terminal_text(&self.step);
        let (levels, gain) = match outcome {
            TuneOutcome::NothingHelps => {
                return format!(
                    "No level of any factor is shown to help {step}.{}\n",
                    self.left_open()
                );
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
        let size_of_gain = size(gain.ratio, gain.interval);
        let mut text = format!(
            "With {options}, {step} is {size_of_gain} of the base. {SECOND_TRIAL} {confirmation}.\n"
        );

        for contender in self.contributions(levels) {
            let name = self.level_name(contender.factor, levels[contender.factor]);
            let ratio = size(contender.ratio, contender.interval);
            let _ = writeln!(text, "  {name}: {ratio} of the same without it");
        }

        if gain.breaks_bound {
            text.push_str("A kept step is below its bound.\n");
        } else if gain.is_better && !gain.keeps_bounds {
            text.push_str("A kept step is not shown to be above its bound.\n");
        }

        text
    }

    /// Returns the effect of a level that was screened, and what is shown of it.
    fn effect(&self, level: &ScreenedLevel) -> String {
        let name = self.level_name(level.factor, level.level);
        let ratio = size(level.ratio, level.interval);

        if level.helps && level.breaks_bound {
            format!("{name} helps: {ratio}, but breaks the bound of a kept step")
        } else if level.helps {
            format!("{name} helps: {ratio}")
        } else if level.breaks_bound {
            format!("{name} breaks the bound of a kept step: {ratio}")
        } else if level.is_ruled_out {
            format!("{name} does not help: {ratio}")
        } else if level.interval.is_none() {
            format!("{name} is not shown to help: it has no interval")
        } else {
            format!("too noisy to say: {name} {ratio}")
        }
    }

    /// Returns what the screening left open, with a space before it; empty if that is nothing. More
    /// repeats would not help a level without an interval, so it is not open.
    fn left_open(&self) -> String {
        let mut results = self.ended.iter().rev().map(|ended| &ended.result);
        let screened = results.find_map(|result| match result {
            PhaseResult::Screened(levels) => Some(levels),
            PhaseResult::Raced(_) | PhaseResult::Verified(_) => None,
        });

        let mut open = Vec::new();
        for level in screened.into_iter().flatten() {
            if level.interval.is_some() && !level.is_decided() {
                let name = self.level_name(level.factor, level.level);
                open.push(format!("{name} {}", size(level.ratio, level.interval)));
            }
        }
        if open.is_empty() {
            return String::new();
        }

        format!(
            " Too noisy to say: {}. A larger `--repeats-max`, longer steps or a quieter machine may help.",
            open.join(", ")
        )
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
fn size(ratio: f64, interval: Option<RatioInterval>) -> String {
    match interval {
        Some(interval) => format!("{ratio:.2}x ({:.2} to {:.2})", interval.low, interval.high),
        None => format!("{ratio:.2}x, without an interval"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(levels: Vec<ScreenedLevel>) -> TuneView {
        let factor = |name: &str| TunedFactor {
            name: name.to_owned(),
            levels: vec!["2M".to_owned(), "16M".to_owned()],
        };
        TuneView {
            step: "overwrite".to_owned(),
            factors: vec![factor("write_buffer_size"), factor("block_cache")],
            target_count: 4,
            ended: vec![EndedPhase {
                phase: Phase::Screening,
                result: PhaseResult::Screened(levels),
            }],
        }
    }

    fn level(factor: usize, ratio: f64, low: f64, high: f64) -> ScreenedLevel {
        let interval = Some(RatioInterval { low, high });
        ScreenedLevel { factor, level: 1, ratio, interval, ..ScreenedLevel::default() }
    }

    #[test]
    fn what_is_too_noisy_to_say_is_told_from_what_does_not_help() {
        let open = level(0, 1.3, 0.47, 3.4);
        let ruled_out = ScreenedLevel { is_ruled_out: true, ..level(1, 1.01, 0.99, 1.02) };
        let screened = view(vec![open, ruled_out.clone()]);
        assert_eq!(
            screened.result(&screened.ended[0].result),
            "  too noisy to say: write_buffer_size=16M 1.30x (0.47 to 3.40)\n  \
             block_cache=16M does not help: 1.01x (0.99 to 1.02)\n  nothing is shown to help"
        );
        assert_eq!(
            screened.answer(&TuneOutcome::NothingHelps),
            "No level of any factor is shown to help overwrite. Too noisy to say: write_buffer_size=16M 1.30x (0.47 to 3.40). \
             A larger `--repeats-max`, longer steps or a quieter machine may help.\n"
        );

        let decided = view(vec![ruled_out]).answer(&TuneOutcome::NothingHelps);
        assert_eq!(decided, "No level of any factor is shown to help overwrite.\n");
    }

    #[test]
    fn a_level_without_an_interval_is_not_called_too_noisy() {
        let without = ScreenedLevel { interval: None, ..level(0, 1.0, 1.0, 1.0) };
        let screened = view(vec![without]);
        assert_eq!(
            screened.result(&screened.ended[0].result),
            "  write_buffer_size=16M is not shown to help: it has no interval\n  nothing is shown to help"
        );
        assert_eq!(
            screened.answer(&TuneOutcome::NothingHelps),
            "No level of any factor is shown to help overwrite.\n"
        );
    }
}
