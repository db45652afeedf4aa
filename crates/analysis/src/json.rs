//! The figures of a run as JSON: the contract for scripts. Keys are added freely and never renamed.

use record::Run;
use serde_json::{Map, Value, json};

use crate::{Figures, Row, Settings};

/// What differs between targets, as in [`json()`].
pub fn settings_json(settings: &Settings) -> Value {
    json!({"differences": settings.differences, "settings": settings.targets})
}

/// `{"run": {...}, "rows": [...], "missing": [...], "unfinished": [...], "differences": [...], "settings": [...]}`: the
/// last two are [`crate::Settings`]. Metrics that are not applicable are left out of `metrics` and
/// listed in `not_applicable`. Series are left out: they are long, and in the record as Parquet.
pub fn json(run: &Run, figures: &Figures) -> Value {
    json!({
        "run": run,
        "rows": figures.rows.iter().map(row).collect::<Vec<_>>(),
        "missing": missing_json(figures),
        "unfinished": figures.unfinished,
        "differences": figures.settings.differences,
        "settings": figures.settings.targets,
    })
}

/// Which steps the plan asks for and the record does not have.
pub fn missing_json(figures: &Figures) -> Value {
    let which = |row: &Row| {
        json!({
            "run": row.run,
            "target": row.cell.target,
            "variant": row.cell.variant,
            "clients": row.cell.clients,
            "repeat": row.cell.repeat,
            "step": row.step,
        })
    };
    figures.missing.iter().map(which).collect()
}

fn row(row: &Row) -> Value {
    let mut metrics = Map::new();
    let mut not_applicable = Vec::new();
    for (&name, value) in &row.metrics {
        match value {
            Some(value) => {
                metrics.insert(name.to_owned(), json!(value));
            }
            None => not_applicable.push(name),
        }
    }
    json!({
        "run": row.run,
        "target": row.cell.target,
        "build": row.build,
        "config": row.config,
        "engine": row.engine,
        "engine_version": row.engine_version,
        "workload": row.workload,
        "variant": row.cell.variant,
        "clients": row.cell.clients,
        "repeat": row.cell.repeat,
        "step": row.step,
        "kind": row.kind,
        "main_op": row.main_op,
        "queries_per_event": row.queries_per_event,
        "group": row.group,
        "reported": row.reported,
        "status": row.status,
        "seconds": row.seconds,
        "valid": row.valid,
        "reasons": row.reasons,
        "damaged": row.damaged,
        "ops": row.ops,
        "metrics": metrics,
        "not_applicable": not_applicable,
        "lsm": row.lsm,
        "sla": row.sla,
        "fairness": row.fairness,
        "quality": row.quality,
        "settled": row.settled,
        "counters": row.counters,
        "fsync_us": row.fsync_us,
        "warnings": row.warnings,
        "remarks": row.remarks,
    })
}
