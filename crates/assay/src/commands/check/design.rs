//! The report of `assay check` on the design of a plan: its targets, how precise it is, and what it
//! cannot tell apart.

use std::fmt::Write as _;

use analysis::counted;
use design::{Confounding, Design, Effect, Kind, Mixed, Resolution, weights};
use plan::Designed;

/// The most interactions that are listed for a factor.
const LISTED_MAX: usize = 6;

/// Returns the text about a design: a line for each factor, then the levels of each target.
pub(super) fn design_text(designed: &Designed) -> String {
    let level_counts = designed.factors.iter().map(|factor| factor.levels.len()).collect();
    let targets = designed.targets.iter().map(|target| target.levels.clone()).collect();
    let design = Design { level_counts, targets };
    let blocks: Vec<usize> =
        designed.targets.iter().map(|target| usize::from(target.is_folded)).collect();

    let factors = counted(designed.factors.len(), "factor");
    let targets = counted(designed.targets.len(), "target");
    let mut text = format!("\ndesign: {} of {factors} in {targets}\n", designed.kind.name());
    text.push_str(&precision(designed.kind, &design, &blocks));
    if let Some(confounding) = Confounding::of(&design, &blocks) {
        text.push_str(&confusions(designed, &confounding));
    }

    text.push_str(&levels(designed));
    text
}

/// Says how many repeats of two targets are as precise as one repeat of the design.
fn precision(kind: Kind, design: &Design, blocks: &[usize]) -> String {
    let Some(weights) = weights(&design.level_counts, &design.targets, blocks, &[]) else {
        return String::new();
    };

    // The ratio of two targets has the variance of two values.
    let pairs: Vec<f64> = weights.iter().map(|weights| 2.0 / weights.error().powi(2)).collect();
    let least = pairs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = pairs.iter().copied().fold(0.0, f64::max);

    let range = if most - least < 0.05 {
        format!("{least:.1}")
    } else {
        format!("{least:.1} to {most:.1}")
    };

    let mut text = format!(
        "  each repeat says as much about a factor as {range} repeats of two targets alone\n"
    );

    // A screening makes better use of as many targets.
    if kind == Kind::OneAtATime {
        let target_count = design.targets.len() as f64;
        let screening = target_count / 2.0;
        let _ = writeln!(
            text,
            "  a screening with as many targets would say as much as {screening:.1}: use `kind = \"screening\"`"
        );
    }

    text
}

/// Says which interactions may be mistaken for effects.
fn confusions(designed: &Designed, confounding: &Confounding) -> String {
    match confounding.resolution {
        Resolution::MainWithInteractions => mistakes(designed, confounding),
        Resolution::MainClear => {
            "  effects can be told from interactions of two factors, which cannot all be told from \
             each other\n"
                .to_owned()
        }
        Resolution::InteractionsClear => {
            "  effects and interactions of two factors can be told apart\n".to_owned()
        }
    }
}

fn mistakes(designed: &Designed, confounding: &Confounding) -> String {
    let mut text = "  an effect may be that of an interaction instead:\n".to_owned();
    for (effect, mixed) in &confounding.of_effects {
        let Effect::Level { factor, level: 1 } = *effect else {
            continue;
        };

        let what = if mixed.len() > LISTED_MAX {
            let largest = mixed.iter().map(|mixed| mixed.share.abs()).fold(0.0, f64::max);
            format!("up to {:.0}% of each of {} interactions", 100.0 * largest, mixed.len())
        } else {
            let mut names = Vec::new();
            for Mixed { factors, .. } in mixed {
                let [a, b] = factors.map(|factor| designed.factors[factor].name.as_str());
                names.push(format!("{a} x {b}"));
            }
            names.join(", ")
        };

        let _ = writeln!(text, "    {}: {what}", designed.factors[factor].name);
    }

    text.push_str("  `fold-over = true`, or `assay augment` after the run, tells them apart\n");
    text
}

/// Lists the levels of each target that are not the base's.
fn levels(designed: &Designed) -> String {
    let mut text = "targets:\n".to_owned();
    for target in &designed.targets {
        let mut changes = Vec::new();
        for (factor, level) in designed.factors.iter().zip(&target.levels) {
            if *level > 0 {
                changes.push(format!("{}={}", factor.name, factor.levels[*level]));
            }
        }

        let changes = if changes.is_empty() { "the base".to_owned() } else { changes.join(", ") };
        let _ = writeln!(text, "  {}: {changes}", target.target);
    }
    text
}
