//! The effects of factors as JSON.

use analysis::{
    compare::{CombinationEffect, DesignedEffects, Effect, MixedInteraction},
    settings::Factor,
};
use serde_json::{Value as Json, json};

use super::{interval_json, row_json, runs_json};
use crate::model::comparison::FactorEffects;

/// Returns `{"effects": {...}}`; `docs/compare.md` describes the keys.
pub fn effects_json(shown: &FactorEffects<'_>) -> Json {
    let effects = shown.effects;
    let rows: Vec<Json> = effects
        .rows
        .iter()
        .map(|effect| effect_json(&effects.factors[effect.factor], effect))
        .collect();

    json!({
        "effects": {
            "design": effects.design.as_ref().map(|design| design_json(&effects.factors, design)),
            "factors": effects.factors,
            "effect": effects.effect,
            "error_rate": effects.error_rate,
            "notes": effects.unfinished.iter().chain(&effects.notes).collect::<Vec<_>>(),
            "runs": runs_json(shown.runs),
            "rows": rows,
        },
    })
}

fn design_json(factors: &[Factor], design: &DesignedEffects) -> Json {
    let name = |factor: usize| &factors[factor].name;
    let mixed = |mixed: &MixedInteraction| json!({ "interaction": mixed.factors.map(name), "share": mixed.share });

    let confounded = factors.iter().zip(&design.mixed).map(|(factor, of_factor)| {
        let may_be: Vec<Json> = of_factor.iter().map(mixed).collect();
        json!({ "factor": factor.name, "may_also_be": may_be })
    });

    let interactions = design.interactions.iter().map(|interaction| {
        let mut json = row_json(&interaction.compared);
        json["interactions"] =
            json!(interaction.pairs.iter().map(|pair| pair.map(name)).collect::<Vec<_>>());
        json
    });

    json!({
        "kind": design.kind,
        "targets": design.target_count,
        "folded": design.folded_count,
        "clarity": design.clarity,
        "confounding": confounded.collect::<Vec<_>>(),
        "interactions": interactions.collect::<Vec<_>>(),
    })
}

fn effect_json(factor: &Factor, effect: &Effect) -> Json {
    let combinations =
        effect.combinations.iter().map(|combination| combination_json(factor, combination));

    let mut json = row_json(&effect.compared);

    json["engine"] = json!(factor.engine);
    json["factor"] = json!(factor.name);
    json["base_level"] = json!(factor.levels[0]);
    json["level"] = json!(factor.levels[effect.level]);
    json["differs"] = json!(effect.differs());
    json["combinations"] = combinations.collect();

    json
}

fn combination_json(factor: &Factor, combination: &CombinationEffect) -> Json {
    let detail = &factor.combinations[combination.index];

    let deviation = combination.deviation.map(|deviation| {
        json!({
            "ratio": deviation.ratio,
            "interval": interval_json(deviation.interval),
            "p_value": deviation.p_value,
            "differs": deviation.is_shown,
        })
    });

    let mut json = row_json(&combination.compared);
    json["others"] = json!(detail.others);
    json["base_target"] = json!(detail.targets[0]);
    json["deviation"] = json!(deviation);

    json
}
