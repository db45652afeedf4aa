//! The runs and searches of a folder as JSON.

use record::moment_of_name;
use serde_json::{Value, json};

use crate::model::outline::{ListedEntry, ListedRun, ListedSearch, Outline, SearchOutline};

/// Returns an object for each entry: its outline and its result, or why they cannot be read. A run has
/// the key `run`, and a tuning or a bisection the key `search`.
pub fn run_list_json(entries: &[ListedEntry]) -> Value {
    entries.iter().map(entry_json).collect()
}

fn entry_json(entry: &ListedEntry) -> Value {
    match entry {
        ListedEntry::Run(run) => run_json(run),
        ListedEntry::Search(search) => search_json(search),
    }
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

fn search_json(search: &ListedSearch) -> Value {
    let outline = search.outline.as_ref();
    json!({
        "name": search.name,
        "path": search.path.display().to_string(),
        "search": outline.ok().map(|known| search_outline_json(search, known)),
        "result": outline.ok().map(|known| &known.result),
        "error": outline.err(),
    })
}

fn search_outline_json(search: &ListedSearch, outline: &SearchOutline) -> Value {
    json!({
        "kind": search.kind,
        "started_unix_ns": moment_of_name(&search.name),
        "state": outline.state.text(),
        "step": outline.step,
        "target_count": outline.target_count,
    })
}
