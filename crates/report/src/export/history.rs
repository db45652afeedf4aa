//! The changes of a history as CSV.

use analysis::history::{Change, SeriesHistory};

use super::sheet::{SheetLine, SheetValue, fixed};
use super::verdicts::written;
use crate::model::history::{HistoryView, differing};

/// Formats the changes of a history as CSV with all digits, one line for each.
pub fn history_csv(view: &HistoryView<'_>) -> String {
    let changes = view.history.changes();
    let lines: Vec<SheetLine> =
        changes.iter().map(|(series, change)| line(view, series, Some(change))).collect();
    // The column headers, even if there are no lines.
    let like = line(view, &SeriesHistory::default(), None);
    written(&like, &lines)
}

fn line(view: &HistoryView<'_>, series: &SeriesHistory, change: Option<&Change>) -> SheetLine {
    let key = &series.key;
    let run = |at: fn(&Change) -> usize| {
        let found = change.map(|change| view.names[series.points[at(change)].run].clone());
        SheetValue::text(found.unwrap_or_default())
    };
    let number = |value: fn(&Change) -> f64| SheetValue::number(change.map(value));

    fixed([
        ("plan", SheetValue::text(&key.plan)),
        ("work", SheetValue::count(key.work as u64)),
        ("target", SheetValue::text(&key.target)),
        ("variant", SheetValue::Text(key.variant.clone())),
        ("clients", SheetValue::count(key.clients)),
        ("step", SheetValue::text(&key.step)),
        ("metric", SheetValue::text(&key.metric)),
        ("unit", SheetValue::text(&series.unit)),
        ("run", run(|change| change.level.at)),
        ("earliest_run", run(|change| change.level.earliest)),
        ("latest_run", run(|change| change.level.latest)),
        ("ratio", number(|change| change.level.ratio)),
        ("ratio_low", number(|change| change.level.low)),
        ("ratio_high", number(|change| change.level.high)),
        ("p", number(|change| change.level.p)),
        ("is_worse", SheetValue::Boolean(change.map(|change| change.is_worse))),
        ("fails_gate", SheetValue::Boolean(change.map(Change::fails_gate))),
        ("cause", SheetValue::text(change.map_or("", |change| change.cause.name()))),
        (
            "changed_with_it",
            SheetValue::text(
                change.map_or(String::new(), |change| differing(&change.circumstances).join("; ")),
            ),
        ),
    ])
}
