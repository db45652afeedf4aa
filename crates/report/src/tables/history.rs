//! Tables of a history: changes of levels, and the newest points that may become one.

use analysis::compare::{metric_label, more_is_better};
use analysis::history::{Cause, Change, SeriesHistory};
use analysis::{counted, distinct};

use crate::model::history::{HistoryView, cause_text, change_text, load_text, plan_text};
use crate::model::number::{rate_text, ratio_text};
use crate::model::table::{Cell, Table, Tone};

/// The column headers that name a series, after the plan.
const LEAD: [&str; 4] = ["target", "load", "step", "metric"];

/// Returns the first changes: those that fail the gate, then those of targets, then others, the
/// largest first. The others are counted.
pub(crate) fn changes(view: &HistoryView<'_>, most: usize) -> Table {
    let columns = ["change", "before", "after", "p", "runs", "since (UTC)", "attributed to"];
    let mut table =
        Table::new("changes", "Changes of level, new / old", lead(view), heads(&columns));

    let changes = view.history.changes();
    for (series, change) in changes.iter().take(most) {
        table.push(names(view, series), cells(view, series, change));
    }

    if changes.len() > most {
        let more = counted(changes.len() - most, "more change");
        table.notes.push(format!("{more}: `--html FILE` and `--format json` have all of them"));
    }

    table
}

/// Returns the series whose newest points are far off, but too few to be a level.
pub(crate) fn pending(view: &HistoryView<'_>) -> Table {
    let columns = ["off by", "runs", "runs that confirm"];
    let mut table = Table::new(
        "pending",
        "Not confirmed: the newest runs are far off",
        lead(view),
        heads(&columns),
    );
    for series in &view.history.series {
        let Some(pending) = series.levels.pending else {
            continue;
        };

        let needed = series.levels.confirming.map_or("more".to_owned(), |runs| runs.to_string());
        let off = format!("{}x", ratio_text(pending.ratio));
        let cells = [off, pending.points.to_string(), needed];
        table.push(names(view, series), cells.into_iter().map(Cell::plain).collect());
    }

    table
}

fn heads(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|head| (*head).to_owned()).collect()
}

/// Returns the column headers that name a series. One plan needs no column.
fn lead(view: &HistoryView<'_>) -> Vec<String> {
    let plan = has_plans(view).then(|| "plan".to_owned());
    plan.into_iter().chain(heads(&LEAD)).collect()
}

fn has_plans(view: &HistoryView<'_>) -> bool {
    let plans = distinct(view.history.series.iter().map(plan_text));
    plans.len() > 1
}

fn names(view: &HistoryView<'_>, series: &SeriesHistory) -> Vec<String> {
    let plan = has_plans(view).then(|| plan_text(series));
    let own = [
        series.key.target.clone(),
        load_text(series),
        series.key.step.clone(),
        metric_label(&series.key.metric).to_owned(),
    ];
    plan.into_iter().chain(own).collect()
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
        cause_text(change.cause).to_owned(),
    ];

    let mut cells = vec![Cell::toned(change_text(change), tone(series, change))];
    cells.extend(texts.into_iter().map(Cell::plain));
    cells
}

fn tone(series: &SeriesHistory, change: &Change) -> Tone {
    if change.cause != Cause::Target {
        return Tone::Plain;
    }

    match (more_is_better(&series.key.metric), change.level.ratio > 1.0) {
        (true, true) => Tone::Faster,
        (true, false) => Tone::Slower,
        (false, true) => Tone::CostsMore,
        (false, false) => Tone::CostsLess,
    }
}

/// Formats a probability: `0.012`, `<0.001`.
pub(crate) fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}
