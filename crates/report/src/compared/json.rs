//! A comparison as JSON, for scripts: what its keys mean is in `docs/compare.md`. Keys are added freely and never renamed.

use analysis::{ComparedStep, Interval, Sample};
use serde_json::{Value, json};

use super::Comparison;
use super::board::mean;
use super::csv::{pairing, unit_of};
use super::noise::is_against_itself;

/// `{"compared": {..., "rows": [...]}, "findings": [...], "noise_floor": ...}`: the last of a target against itself alone.
pub fn compared_json(comparison: &Comparison<'_>) -> Value {
    let compared = comparison.compared;
    let runs = comparison.runs.iter().map(|it| {
        json!({
            "directory": it.name,
            "name": it.run.name,
            "started_unix_ns": it.run.started_unix_ns,
            "status": it.run.status,
            "assay": it.run.assay,
        })
    });
    let mut all = comparison.runs.iter();
    let noise = all
        .all(|it| is_against_itself(it.run))
        .then(|| analysis::noise_floor(compared));
    json!({
        "compared": {
            "base": compared.base,
            "effect": compared.effect,
            "error_rate": compared.error_rate,
            "comparison_count": compared.comparison_count,
            "notes": compared.unfinished.iter().chain(&compared.notes).collect::<Vec<_>>(),
            "runs": runs.collect::<Vec<_>>(),
            "rows": compared.rows.iter().map(row).collect::<Vec<_>>(),
            "missing": analysis::missing_json(comparison.figures),
            "unfinished": comparison.figures.unfinished,
        },
        "findings": comparison.findings,
        "noise_floor": noise,
    })
}

fn row(row: &ComparedStep) -> Value {
    let interval =
        |Interval {
             low,
             high,
             confidence,
         }: Interval| { json!({"low": low, "high": high, "confidence": confidence}) };
    let values = |samples: &[Sample]| -> Vec<Value> {
        let value = |it: &Sample| json!({"run": it.run, "repeat": it.repeat, "value": it.value});
        samples.iter().map(value).collect()
    };
    let of = |samples: &[Sample]| mean(samples.iter().map(|it| it.value));
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
        "base_mean": of(&row.base_values),
        "mean": of(&row.values),
        "base_values": values(&row.base_values),
        "values": values(&row.values),
        "ratio": row.ratio,
        "interval": row.interval.map(interval),
        "pairing": pairing(row.pairing),
        "verdict": row.verdict.to_string(),
        "p_value": row.p_value,
        "spread": row.spread,
        "detectable": row.detectable(),
        "repeats_needed": row.repeats_needed,
        "reasons": row.reasons,
    })
}
