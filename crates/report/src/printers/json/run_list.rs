//! The runs of a folder as JSON.

use serde_json::{Value, json};

use crate::model::outline::{ListedRun, Outline};

/// Returns an object for each run: its outline and its result, or why they cannot be read.
pub fn run_list_json(runs: &[ListedRun]) -> Value {
    runs.iter().map(run_json).collect()
}

fn run_json(run: &ListedRun) -> Value {
    json!({
        "name": run.name,
        "path": run.path.display().to_string(),
        "run": run.outline.as_ref().ok().map(outline_json),
        "result": run.result.as_ref().ok(),
        "error": run.result.as_ref().err(),
    })
}

fn outline_json(outline: &Outline) -> Value {
    json!({
        "plan": outline.plan,
        "started_unix_ns": outline.started_unix_ns,
        "state": outline.state.text(),
        "engines": outline.engines,
        "targets": outline.targets,
        "base": outline.base,
        "steps": outline.steps,
        "repeats": outline.repeats,
    })
}
