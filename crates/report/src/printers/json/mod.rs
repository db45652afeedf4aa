//! A comparison as JSON; `docs/compare.md` describes the keys.
//!
//! Scripts read it, so keys may be added but are never renamed, and each figure has all its digits.
//! The answer is both: fields for scripts, and the text that other printers show.

mod effects;
mod history;
mod run;
mod run_list;
mod text;

use analysis::{
    compare::{ComparedStep, Interval, Overall, RequirementResult, Sample, mean_of_samples},
    explain::{Answer, Finding, statement::CostGaps},
};
use serde_json::{Value, json};

pub use effects::effects_json;
pub use history::history_json;
pub use run::run_json;
pub use run_list::run_list_json;
pub use text::json_text;

use crate::model::comparison::{ComparedRun, Comparison, pairing_name};
use crate::model::metric::unit_of;
use crate::prose::answer;
use crate::prose::findings::cause::in_brief;
use crate::prose::findings::gap;
use crate::prose::findings::wording::{Wording, caveats};
use crate::tables::compared::noise::is_against_itself;

/// Returns `{"answer": {...}, "compared": {..., "rows": [...]}, "findings": [...], "profiles":
/// [...], "waits": [...], "system_calls": [...], "plans": [...], "work": [...], "requirements": [...], "noise_floor":
/// ...}`. Only a target against itself has a noise floor.
pub fn compared_json(comparison: &Comparison<'_>) -> Value {
    let Comparison { figures, compared, effects, findings, .. } = *comparison;

    let is_of_noise = comparison.runs.iter().all(|compared| is_against_itself(compared.run));
    let noise = is_of_noise.then(|| analysis::compare::noise_floor(compared));

    let mut json_answer = answer_json(&Answer::new(figures, compared, effects, findings));
    json_answer["text"] = answer::passage(comparison).whole().into();

    json!({
        "answer": json_answer,
        "compared": {
            "base": compared.base,
            "effect": compared.effect,
            "error_rate": compared.error_rate,
            "comparison_count": compared.comparison_count,
            "looks": compared.looks,
            "notes": compared.unfinished.iter().chain(&compared.notes).collect::<Vec<_>>(),
            "runs": runs_json(comparison.runs),
            "rows": compared.rows.iter().map(row_json).collect::<Vec<_>>(),
            "overall": compared.overall.iter().map(overall_json).collect::<Vec<_>>(),
            "missing": analysis::missing_json(figures),
            "unfinished": figures.unfinished,
        },
        "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
        "profiles": compared.profiles,
        "waits": compared.waits,
        "system_calls": compared.system_calls,
        "plans": compared.plans,
        "work": compared.work,
        "requirements": compared.requirements.iter().map(requirement_json).collect::<Vec<_>>(),
        "noise_floor": noise,
    })
}

/// Returns an answer with the words of its parts.
fn answer_json(answer: &Answer) -> Value {
    let mut object = json!(answer);
    object["cause"] = json!(answer.cause.map(in_brief));
    object["hidden_cost"] = json!(answer.hidden_cost.as_ref().map(title));
    object["gaps"] = answer.gaps.iter().map(gaps_json).collect();
    object
}

/// Returns the largest difference in a cost, and the other targets that differ in it.
fn gaps_json(of_cost: &CostGaps) -> Value {
    let largest = &of_cost.gaps[0];

    json!({
        "cost": largest.cost,
        "target": largest.case.target,
        "step": largest.case.step,
        "metric": largest.metric,
        "base": largest.figures.base,
        "value": largest.figures.value,
        "size": largest.size,
        "text": gap::clause(largest),
        "also": gap::also(of_cost),
    })
}

fn title(finding: &Finding) -> String {
    Wording::of(finding).title
}

/// Returns a finding with its words.
fn finding_json(finding: &Finding) -> Value {
    let wording = Wording::of(finding);

    json!({
        "kind": finding.kind,
        "target": finding.target,
        "targets": finding.targets,
        "base": finding.base,
        "workload": finding.workload,
        "variant": finding.variant,
        "clients": finding.clients,
        "step": finding.step,
        "steps": finding.steps,
        "title": wording.title,
        "cause": finding.cause.map(in_brief),
        "text": wording.text(),
        "evidence": finding.evidence,
        "caveats": caveats(finding),
        "weight": finding.weight,
    })
}

fn runs_json(runs: &[ComparedRun<'_>]) -> Value {
    runs.iter()
        .map(|ComparedRun { name, run }| {
            json!({
                "directory": name,
                "name": run.name,
                "started_unix_ns": run.started_unix_ns,
                "status": run.status,
                "assay": run.assay,
            })
        })
        .collect()
}

fn interval_json(interval: Interval) -> Value {
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
    samples
        .iter()
        .map(|Sample { run, repeat, value }| json!({"run": run, "repeat": repeat, "value": value}))
        .collect()
}

/// Returns the mean ratio of a target over all steps.
fn overall_json(overall: &Overall) -> Value {
    let row = &overall.compared;

    json!({
        "target": row.cell.target,
        "steps": overall.step_count,
        "all_steps": overall.all_step_count,
        "repeats": row.values.len(),
        "ratio": row.ratio,
        "interval": row.interval.map(interval_json),
        "pairing": pairing_name(row.pairing),
        "verdict": row.verdict.to_string(),
        "reasons": row.reasons,
    })
}

fn row_json(row: &ComparedStep) -> Value {
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
        "base_mean": mean_of_samples(&row.base_values),
        "mean": mean_of_samples(&row.values),
        "base_values": values_json(&row.base_values),
        "values": values_json(&row.values),
        "ratio": row.ratio,
        "interval": row.interval.map(interval_json),
        "pairing": pairing_name(row.pairing),
        "machines": row.machines,
        "verdict": row.verdict.to_string(),
        "p_value": row.p_value,
        "spread": row.spread,
        "error_within": row.error_within,
        "moderated": row.moderated,
        "detectable": row.detectable(),
        "repeats_needed": row.repeats_needed,
        "reasons": row.reasons,
    })
}
