//! A comparison as JSON; `docs/compare.md` describes the keys. Keys may be added but are never
//! renamed.

use analysis::compare::{ComparedStep, Interval, RequirementResult, Sample};
use analysis::explain::Answer;
use serde_json::{Value, json};

use super::board::mean_of;
use super::noise::is_against_itself;
use super::verdicts::{pairing, unit_of};
use super::{ComparedRun, Comparison};
use crate::answer::sentences;

/// Returns `{"answer": {...}, "compared": {..., "rows": [...]}, "findings": [...], "profiles":
/// [...], "waits": [...], "plans": [...], "requirements": [...], "noise_floor": ...}`. Only a target
/// against itself has a noise floor.
pub fn compared_json(comparison: &Comparison<'_>) -> Value {
    let compared = comparison.compared;
    let mut all = comparison.runs.iter();
    let noise =
        all.all(|it| is_against_itself(it.run)).then(|| analysis::compare::noise_floor(compared));
    let findings = comparison.findings;
    let mut answer = json!(Answer::new(comparison.figures, compared, findings));
    answer["text"] = sentences(comparison).join(" ").into();
    json!({
        "answer": answer,
        "compared": {
            "base": compared.base,
            "effect": compared.effect,
            "error_rate": compared.error_rate,
            "comparison_count": compared.comparison_count,
            "notes": compared.unfinished.iter().chain(&compared.notes).collect::<Vec<_>>(),
            "runs": runs_json(comparison.runs),
            "rows": compared.rows.iter().map(row_json).collect::<Vec<_>>(),
            "missing": analysis::missing_json(comparison.figures),
            "unfinished": comparison.figures.unfinished,
        },
        "findings": findings,
        "profiles": compared.profiles,
        "waits": compared.waits,
        "plans": compared.plans,
        "requirements": compared.requirements.iter().map(requirement_json).collect::<Vec<_>>(),
        "noise_floor": noise,
    })
}

pub(super) fn runs_json(runs: &[ComparedRun<'_>]) -> Value {
    let runs = runs.iter().map(|it| {
        json!({
            "directory": it.name,
            "name": it.run.name,
            "started_unix_ns": it.run.started_unix_ns,
            "status": it.run.status,
            "assay": it.run.assay,
        })
    });
    runs.collect()
}

pub(super) fn interval_json(interval: Interval) -> Value {
    let Interval { low, high, confidence } = interval;
    json!({"low": low, "high": high, "confidence": confidence})
}

fn requirement_json(result: &RequirementResult) -> Value {
    let requirement = &result.requirement;
    json!({
        "requirement": requirement.text,
        "target": result.cell.target,
        "workload": result.workload,
        "variant": result.cell.variant,
        "clients": result.cell.clients,
        "step": requirement.step,
        "metric": requirement.metric,
        "unit": unit_of(&requirement.metric),
        "comparison": requirement.bound.to_string(),
        "bound": requirement.value,
        "values": values_json(&result.values),
        "mean": result.mean,
        "interval": result.interval.map(interval_json),
        "verdict": result.verdict.to_string(),
        "reasons": result.reasons,
    })
}

fn values_json(samples: &[Sample]) -> Vec<Value> {
    let values = samples.iter();
    values.map(|it| json!({"run": it.run, "repeat": it.repeat, "value": it.value})).collect()
}

pub(super) fn row_json(row: &ComparedStep) -> Value {
    json!({
        "target": row.cell.target,
        "workload": row.workload,
        "variant": row.cell.variant,
        "clients": row.cell.clients,
        "group": row.group,
        "step": row.step,
        "metric": row.metric,
        "unit": unit_of(&row.metric),
        "more_is_better": row.more_is_better,
        "base_mean": mean_of(&row.base_values),
        "mean": mean_of(&row.values),
        "base_values": values_json(&row.base_values),
        "values": values_json(&row.values),
        "ratio": row.ratio,
        "interval": row.interval.map(interval_json),
        "pairing": pairing(row.pairing),
        "machines": row.machines,
        "verdict": row.verdict.to_string(),
        "p_value": row.p_value,
        "spread": row.spread,
        "detectable": row.detectable(),
        "repeats_needed": row.repeats_needed,
        "reasons": row.reasons,
    })
}
