//! The data of the page's script.

use analysis::history::{Change, SeriesHistory};
use serde_json::{Value, json};

use crate::model::history::{HistoryView, cause_text, change_text, differing};
use crate::model::number::typeset;
use crate::model::text::clean;
use crate::printers::page::encode;

/// Returns JSON with the runs and all series. With the pages of `assay serve`, the script links to
/// them.
pub(super) fn of(view: &HistoryView<'_>, is_served: bool) -> String {
    let runs = view.runs.iter().enumerate().map(|(at, run)| {
        let machine = view.history.machines.get(at).map_or(0, |machine| machine + 1);
        json!([clean(&view.names[at]), view.started(at), machine, clean(&run.assay)])
    });

    let series =
        view.history.series.iter().map(|series| (super::id(series), series_data(view, series)));

    let mut data = json!({
        "runs": runs.collect::<Value>(),
        "series": series.collect::<serde_json::Map<_, _>>(),
    });
    if is_served {
        data["served"] = true.into();
    }

    encode::json(data)
}

fn series_data(view: &HistoryView<'_>, series: &SeriesHistory) -> Value {
    let mut versions: Vec<&str> = Vec::new();
    let mut points = Vec::new();

    for point in &series.points {
        let version = view.version(series, point.run);
        let known = versions.iter().rposition(|known| *known == version);
        let place = known.unwrap_or_else(|| {
            versions.push(version);
            versions.len() - 1
        });

        let [mean, low, high] = [point.mean, point.low, point.high].map(digits);
        points.push(json!([point.run, mean, low, high, point.repeats, place]));
    }

    let mut levels = Vec::new();
    for level in &series.levels.levels {
        levels.push(json!([level.points.start, level.points.end, digits(level.mean)]));
    }
    let clean_versions = versions.into_iter().map(|version| Value::from(clean(version)));

    json!({
        "target": clean(&series.key.target),
        "unit": unit(&series.unit),
        "spread": series.levels.spread,
        "visible": series.levels.visible,
        "confirming": series.levels.confirming,
        "versions": clean_versions.collect::<Value>(),
        "points": points,
        "levels": levels,
        "changes": series.changes.iter().map(change_data).collect::<Value>(),
    })
}

/// Returns a unit with the sign of microseconds.
fn unit(unit: &str) -> String {
    match unit.strip_prefix("us") {
        Some(rest) => format!("\u{b5}s{}", clean(rest)),
        None => clean(unit),
    }
}

fn change_data(change: &Change) -> Value {
    let level = change.level;
    let details = differing(&change.circumstances);

    json!({
        "at": level.at,
        "earliest": level.earliest,
        "latest": level.latest,
        "p": level.p,
        "text": typeset(&change_text(change)),
        "cause": cause_text(change.cause),
        "class": super::class(change),
        "details": details.iter().map(|text| typeset(&clean(text)).replace('`', "")).collect::<Value>(),
    })
}

/// Returns a value with six digits: more than a chart or a table shows.
fn digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
