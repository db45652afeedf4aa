//! What a tuning prints: its phases, what each shows, and the answer.

use std::fmt::Write as _;

use analysis::tune::{Contender, Levels, Outcome, Phase, PhaseResult};
use plan::Designed;
use report::terminal_text;

use super::log::Log;

/// Returns the phase that is measured next.
pub(super) fn phase(designed: &Designed, phase: &Phase) -> String {
    match phase {
        Phase::Screening => {
            let factors = analysis::counted(designed.factors.len(), "factor");
            let targets = analysis::counted(designed.targets.len(), "target");
            format!("screening: {factors} in {targets}")
        }
        Phase::Race(levels) => format!("race: {}", named(designed, levels)),
        Phase::Verification(levels) => {
            format!("verification: {} against the base, once more", named(designed, levels))
        }
    }
}

/// Returns what a phase showed.
pub(super) fn result(designed: &Designed, result: &PhaseResult) -> String {
    let mut lines = Vec::new();
    match result {
        PhaseResult::Screened(levels) => {
            for level in levels.iter().filter(|level| level.helps) {
                let name = level_name(designed, level.factor, level.level);
                let bound =
                    if level.breaks_bound { ", but breaks the bound of a kept step" } else { "" };
                lines.push(format!("  {name} helps: {:.2}x{bound}", level.ratio));
            }

            if lines.is_empty() {
                lines.push("  nothing is shown to help".to_owned());
            }
        }
        PhaseResult::Raced(race) => {
            for contender in &race.without {
                let name = &designed.factors[contender.factor].name;
                let verdict =
                    if contender.is_better { "matters" } else { "is not shown to matter" };
                lines.push(format!("  {} {verdict}: {}", terminal_text(name), size(contender)));
            }

            if let Some(factor) = race.worst_for_bound {
                let name = terminal_text(&designed.factors[factor].name);
                lines.push(format!("  a kept step is below its bound, most of all by {name}"));
            }
        }
        PhaseResult::Verified(gain) => lines.push(format!("  gain: {}", size(gain))),
    }

    lines.join("\n")
}

/// Returns the answer.
pub(super) fn answer(log: &Log, designed: &Designed, outcome: &Outcome) -> String {
    let step = terminal_text(&log.question.goal.step);
    let (levels, gain) = match outcome {
        Outcome::NothingHelps => {
            return format!("No level of any factor is shown to help {step}.\n");
        }
        Outcome::Better { levels, gain } | Outcome::NotConfirmed { levels, gain } => (levels, gain),
    };

    let options = named(designed, levels);
    let confirmation = if matches!(outcome, Outcome::Better { .. }) {
        "New instances confirm it."
    } else {
        "New instances do not confirm it."
    };
    let size_of_gain = size(gain);
    let mut text = format!("{step} is {size_of_gain} of the base with {options}. {confirmation}\n");

    for contender in contributions(log, levels) {
        let name = level_name(designed, contender.factor, levels[contender.factor]);
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
fn contributions<'l>(log: &'l Log, levels: &Levels) -> &'l [Contender] {
    let race = log.phases.iter().rev().find(|logged| logged.phase == Phase::Race(levels.clone()));
    match race.and_then(|logged| logged.result.as_ref()) {
        Some(PhaseResult::Raced(race)) => &race.without,
        _ => &[],
    }
}

/// Returns a combination: `wal_compression=lz4, max_wal_size=4GB`.
fn named(designed: &Designed, levels: &Levels) -> String {
    let changed = (0..levels.len()).filter(|factor| levels[*factor] > 0);
    let names: Vec<String> =
        changed.map(|factor| level_name(designed, factor, levels[factor])).collect();
    names.join(", ")
}

fn level_name(designed: &Designed, factor: usize, level: usize) -> String {
    let factor = &designed.factors[factor];
    terminal_text(&format!("{}={}", factor.name, factor.levels[level]))
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
