//! The effects of factors as JSON.

use analysis::{
    compare::{CombinationEffect, Effect},
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
            "factors": effects.factors,
            "effect": effects.effect,
            "error_rate": effects.error_rate,
            "notes": effects.unfinished.iter().chain(&effects.notes).collect::<Vec<_>>(),
            "runs": runs_json(shown.runs),
            "rows": rows,
        },
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
