//! Converts the figures of a run to JSON, the contract for scripts. Keys may be added, and are
//! never renamed.

use record::Run;
use serde_json::{Value, json};

use crate::figures::{ExactStep, Figures, ProfiledStep, Row};
use crate::search::rate_searches;
use crate::settings::Settings;

/// Returns the differences between targets, as in [`json()`].
pub fn settings_json(settings: &Settings) -> Value {
    json!({"differences": settings.differences, "settings": settings.targets})
}

/// Returns `{"run": {...}, "rows": [...], "missing": [...], "unfinished": [...], "differences":
/// [...], "settings": [...], "searches": [...]}`.
///
/// `differences` and `settings` are [`crate::settings::Settings`], `searches` are
/// [`crate::search::SearchedTarget`]. Rows of profiled cells have `"cell_kind": "profiled"` and a
/// `profile`, and those of exact cells `"cell_kind": "exact"`, `"exact": true` and a `work`.
/// Metrics that are not applicable are not in `metrics` but in `not_applicable`. Series
/// are left out: they are long, and the record has them as Parquet. Remarks have words, so that the
/// crate `report` adds them.
pub fn json(run: &Run, figures: &Figures) -> Value {
    let mut rows: Vec<Value> = figures.rows.iter().map(row).collect();
    rows.extend(figures.profiled.iter().map(profiled));
    rows.extend(figures.exact.iter().map(exact));

    json!({
        "run": run,
        "rows": rows,
        "missing": missing_json(figures),
        "unfinished": figures.unfinished,
        "differences": figures.settings.differences,
        "settings": figures.settings.targets,
        "searches": rate_searches(run, figures),
    })
}

/// Returns the steps of the plan that the record lacks.
pub fn missing_json(figures: &Figures) -> Value {
    let object = |row: &Row| {
        let mut object = json!(row.cell);
        (object["run"], object["step"]) = (json!(row.run), json!(row.step));
        object
    };
    figures.missing.iter().map(object).collect()
}

fn profiled(step: &ProfiledStep) -> Value {
    let mut value = row(&step.row);
    value["profile"] = json!(step.profile);
    value
}

fn exact(step: &ExactStep) -> Value {
    let mut value = row(&step.row);
    (value["exact"], value["work"]) = (json!(true), json!(step.work));
    value
}

fn row(row: &Row) -> Value {
    let mut value = json!(row);
    let (known, missing): (Vec<_>, Vec<_>) =
        row.metrics.iter().partition(|(_, value)| value.is_some());
    value["metrics"] = known.into_iter().map(|(&name, value)| (name, *value)).collect();
    value["not_applicable"] = missing.into_iter().map(|(&name, _)| name).collect();
    value
}
