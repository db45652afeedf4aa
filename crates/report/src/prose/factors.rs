//! Describes factors, and how their effects are computed.

use analysis::{
    compare::{Clarity, DesignedEffects, Effects},
    counted,
    settings::{Factor, Factors},
};

use crate::tables::compared::effects::has_combinations;

/// Returns the title of a report of effects.
pub(crate) fn title(effects: &Effects) -> String {
    match &effects.factors[..] {
        [factor] => format!("The effect of {}, all else equal", factor.label()),
        factors => format!("The effects of {} factors, all else equal", factors.len()),
    }
}

/// Lists all factors, and the settings that others determine.
pub(crate) fn list(known: &Factors) -> Vec<String> {
    let mut lines: Vec<String> = known.factors.iter().map(described).collect();
    for (name, by) in &known.determined {
        lines.push(format!("not a factor: {name} is determined by {}", by.join(", ")));
    }
    lines
}

/// Describes a factor and its levels: `synchronous_commit of postgres: on, off; in 2 combinations
/// of the others`.
pub(crate) fn described(factor: &Factor) -> String {
    let mut text = format!("{} of {}: {}", factor.name, factor.engine, factor.levels.join(", "));

    if factor.combinations.len() > 1 {
        let count = counted(factor.combinations.len(), "combination");
        text += &format!("; in {count} of the other factors");
    }

    if !factor.with.is_empty() {
        text += &format!("; changes together with {}", factor.with.join(", "));
    }

    text
}

/// Describes how effects are computed.
pub(crate) fn how(effects: &Effects) -> String {
    if let Some(design) = &effects.design {
        return how_in_design(design);
    }

    if has_combinations(effects) {
        "An effect is the geometric mean over all combinations of the other factors, with equal weights; each repeat \
         gives one value."
            .to_owned()
    } else {
        "There is only one combination of the other factors.".to_owned()
    }
}

/// Describes a design, and what it can tell.
fn how_in_design(design: &DesignedEffects) -> String {
    let targets = counted(design.target_count, "target");

    let mut text =
        format!("Each effect is measured by all {targets} of the design (`{}`)", design.kind);
    if design.folded_count > 0 {
        text += &format!(", {} of which were added to it", design.folded_count);
    }

    text += match design.clarity {
        Clarity::Mixed => {
            ". Where two factors interact, that may look like the effect of a third one: the table below lists which."
        }
        Clarity::EffectsClear => {
            ". Interactions of two factors change no effect, but some of them cannot be told from each other."
        }
        Clarity::AllClear => ". It also tells each interaction of two factors.",
    };

    text
}
