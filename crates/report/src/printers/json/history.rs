//! A history as JSON.

use analysis::history::{Change, SeriesHistory};
use serde_json::{Value, json};

use crate::model::history::HistoryView;

/// Returns a history with all of its points.
pub fn history_json(view: &HistoryView<'_>) -> Value {
    let runs = view.runs.iter().zip(view.names).map(|(run, name)| {
        json!({
            "name": name,
            "id": run.id,
            "plan": run.plan,
            "started_unix_ns": run.started_unix_ns,
            "assay": run.assay,
        })
    });

    json!({
        "error_rate": view.error_rate,
        "effect": view.effect,
        "runs": runs.collect::<Value>(),
        "series": view.history.series.iter().map(|series| series_json(view, series)).collect::<Value>(),
    })
}

fn series_json(view: &HistoryView<'_>, series: &SeriesHistory) -> Value {
    let key = &series.key;

    let points = series.points.iter().map(|point| {
        json!({
            "run": point.run,
            "mean": point.mean,
            "low": point.low,
            "high": point.high,
            "repeats": point.repeats,
        })
    });

    let levels = series.levels.levels.iter().map(|level| {
        json!({ "first": level.points.start, "runs": level.points.len(), "mean": level.mean })
    });

    let pending = series
        .levels
        .pending
        .map(|pending| json!({ "runs": pending.points, "ratio": pending.ratio }));

    json!({
        "plan": key.plan,
        "work": key.work,
        "target": key.target,
        "variant": key.variant,
        "clients": key.clients,
        "step": key.step,
        "metric": key.metric,
        "unit": series.unit,
        "points": points.collect::<Value>(),
        "levels": levels.collect::<Value>(),
        "changes": series.changes.iter().map(|change| change_json(view, series, change)).collect::<Value>(),
        "spread": series.levels.spread,
        "pending": pending,
        "confirming_runs": series.levels.confirming,
        "visible_change": series.levels.visible,
    })
}

fn change_json(view: &HistoryView<'_>, series: &SeriesHistory, change: &Change) -> Value {
    let level = change.level;
    let name = |at: usize| &view.names[series.points[at].run];
    let around = &change.circumstances;

    let references = around.references.iter().map(|reference| {
        json!({
            "target": reference.target,
            "ratio": reference.ratio,
            "low": reference.low,
            "high": reference.high,
        })
    });

    json!({
        "at": level.at,
        "run": name(level.at),
        "earliest_run": name(level.earliest),
        "latest_run": name(level.latest),
        "ratio": level.ratio,
        "low": level.low,
        "high": level.high,
        "p": level.p,
        "is_worse": change.is_worse,
        "is_recent": change.is_recent,
        "fails_gate": change.fails_gate(),
        "cause": change.cause.name(),
        "build": around.build,
        "config": around.config,
        "machine": around.machine,
        "assay": around.assay,
        "references": references.collect::<Value>(),
    })
}
