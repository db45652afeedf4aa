//! Tables of a history: changes of levels, and the newest points that may become one.

use analysis::compare::metric_label;
use analysis::history::{Change, SeriesHistory};

use crate::model::history::{HistoryView, change_text, load_text, plan_text};
use crate::model::number::{rate_text, ratio_text};
use crate::model::table::{Cell, Table, Tone};

/// The heads of the columns that name a series.
const LEAD: [&str; 5] = ["plan", "target", "load", "step", "metric"];

/// Returns all changes, those that fail the gate first and then the largest.
pub(crate) fn changes(view: &HistoryView<'_>) -> Table {
    let columns = ["change", "before", "after", "p", "runs", "since (UTC)", "put down to"];
    let mut table = Table::new("changes", "Changes of level, new / old", lead(), heads(&columns));
    for (series, change) in view.history.changes() {
        table.push(names(series), cells(view, series, change));
    }
    table
}

/// Returns the series whose newest points are far off, but too few to be a level.
pub(crate) fn pending(view: &HistoryView<'_>) -> Table {
    let columns = ["off by", "runs", "runs that confirm"];
    let mut table = Table::new(
        "pending",
        "Not confirmed: the newest runs are far off",
        lead(),
        heads(&columns),
    );
    for series in &view.history.series {
        let Some(pending) = series.levels.pending else {
            continue;
        };
        let needed = series.levels.confirming.map_or("more".to_owned(), |runs| runs.to_string());
        let off = format!("{}x", ratio_text(pending.ratio));
        let cells = [off, pending.points.to_string(), needed];
        table.push(names(series), cells.into_iter().map(Cell::plain).collect());
    }
    table
}

fn heads(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|head| (*head).to_owned()).collect()
}

fn lead() -> Vec<String> {
    heads(&LEAD)
}

fn names(series: &SeriesHistory) -> Vec<String> {
    vec![
        plan_text(series),
        series.key.target.clone(),
        load_text(series),
        series.key.step.clone(),
        metric_label(&series.key.metric).to_owned(),
    ]
}

fn cells(view: &HistoryView<'_>, series: &SeriesHistory, change: &Change) -> Vec<Cell> {
    let level_after =
        series.levels.levels.iter().find(|level| level.points.start == change.level.at);
    let after = level_after.map_or(0.0, |level| level.mean);
    let runs = level_after.map_or(0, |level| level.points.len());
    let texts = [
        rate_text(after / change.level.ratio),
        rate_text(after),
        p_text(change.level.p),
        runs.to_string(),
        view.since(series, change),
        change.cause.text().to_owned(),
    ];
    let mut cells = vec![Cell::toned(change_text(change), tone(change))];
    cells.extend(texts.into_iter().map(Cell::plain));
    cells
}

fn tone(change: &Change) -> Tone {
    match (change.cause, change.is_worse) {
        (analysis::history::Cause::Target, true) => Tone::Slower,
        (analysis::history::Cause::Target, false) => Tone::Faster,
        _ => Tone::Plain,
    }
}

/// Formats a probability: `0.012`, `<0.001`.
pub(crate) fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}
