//! The noise of a machine: the difference of a target from itself in each step, and the changes
//! that could be detected.

use analysis::{
    compare::{Compared, DetectableEffect, NoiseFloor, noise_floor},
    counted,
};
use record::Run;
use words::share_of;

use super::relative::ratio_cell;
use crate::model::matrix::Keys;
use crate::model::number::{fixed, percent, ratio_text};
use crate::model::table::{Cell, STEP, Table};

/// The numbers of repeats for which the table shows the detectable change.
const REPEATS: [u32; 4] = [3, 5, 10, 20];

/// Changes above this are not shown in detail.
const MOST: f64 = 1.0;

/// Returns true if the run's plan compares a target with itself.
pub(crate) fn is_against_itself(run: &Run) -> bool {
    run.plan.resolved.iter().any(|value| value.key == "against-itself")
}

/// Returns a table with a row for each step of a target that is compared with itself.
pub(crate) fn table(compared: &Compared) -> Table {
    let floor = noise_floor(compared);
    let keys = Keys::among(floor.steps.iter().map(|step| &step.cell));

    let heads = ["repeats", "ratio", "furthest\nrepeat", "spread\n%"].map(str::to_string);
    let heads_of_repeats = REPEATS.map(|repeats| format!("{repeats} repeats\nshow, %"));

    let mut table = Table::new(
        "noise-floor",
        format!("Noise of this machine: throughput of {} compared with itself", compared.base),
        keys.lead(STEP),
        heads.into_iter().chain(heads_of_repeats),
    );

    for step in &floor.steps {
        let ratio = match compared.rows.get(step.row) {
            Some(row) => ratio_cell(row),
            None => Cell::plain(ratio_text(step.ratio)),
        };
        let mut cells = vec![
            Cell::plain(step.repeats.to_string()),
            ratio,
            Cell::plain(ratio_text(step.largest)),
            Cell::number(step.spread.map(|spread| spread * 100.0), 2),
        ];
        cells.extend(REPEATS.map(|repeats| seen(&step.seen, repeats)));
        table.push(keys.lead_of(&step.step, &step.cell, 0), cells);
    }

    table.notes.push(shown_note(compared, &floor));
    table.notes.extend(floor.spread_median.map(|spread| spread_note(&floor, spread)));
    table.explained()
}

/// Compares the number of false verdicts with the number to be expected.
fn shown_note(compared: &Compared, floor: &NoiseFloor) -> String {
    let all = floor.steps.len();
    if floor.shown == 0 {
        return format!("none of {} shows a difference", counted(all, "comparison"));
    }

    format!(
        "{} would show a difference; {} of such runs are expected to show any",
        share_of(floor.shown, all, "comparison"),
        percent(compared.error_rate)
    )
}

/// Describes the spread of the median step, and the changes that could be seen there.
fn spread_note(floor: &NoiseFloor, spread: f64) -> String {
    let mut note = format!(
        "the spread (the standard deviation of one repeat's ratio) is {} in the median step",
        percent(spread)
    );

    let seen: Vec<String> = floor
        .seen
        .iter()
        .filter(|seen| seen.effect < MOST)
        .map(|DetectableEffect { repeats, effect }| format!("{} with {repeats}", percent(*effect)))
        .collect();

    if !seen.is_empty() {
        note +=
            &format!("; the smallest change that repeats would show there: {}", seen.join(", "));
    }

    note
}

/// Returns the smallest change that this number of repeats would show.
fn seen(seen: &[DetectableEffect], repeats: u32) -> Cell {
    match seen.iter().find(|seen| seen.repeats == repeats) {
        None => Cell::not_applicable(),
        Some(seen) if seen.effect < MOST => Cell::plain(fixed(seen.effect * 100.0, 1)),
        Some(_) => Cell::plain(format!(">{}", fixed(MOST * 100.0, 0))),
    }
}
