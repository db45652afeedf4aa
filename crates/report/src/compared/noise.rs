//! The noise of a machine: the difference of a target from itself in each step, and the changes
//! that could be detected.

use analysis::{Compared, DetectableEffect, NoiseFloor, counted};
use record::Run;

use super::words::percent;
use crate::matrix::Keys;
use crate::number::{fixed, ratio_text};
use crate::table::{Cell, STEP, Table};
use crate::terminal::{TableStyle, Text};

/// The numbers of repeats for which the table shows the detectable change.
const REPEATS: [u32; 4] = [3, 5, 10, 20];

/// Changes above this are not shown in detail.
const MOST: f64 = 1.0;

/// Formats the noise that a run of a target against itself shows.
pub fn noise_floor(compared: &Compared, style: TableStyle) -> String {
    let mut out = Text::new(style);
    write(&mut out, compared);
    out.finish()
}

/// Returns true if the run's plan compares a target with itself.
pub(super) fn is_against_itself(run: &Run) -> bool {
    let mut values = run.plan.resolved.iter();
    values.any(|value| value.key == "against-itself")
}

pub(super) fn write(out: &mut Text, compared: &Compared) {
    out.table(&table(compared, &analysis::noise_floor(compared)));
}

fn table(compared: &Compared, floor: &NoiseFloor) -> Table {
    let keys = Keys::among(floor.steps.iter().map(|step| &step.cell));
    let heads = ["repeats", "ratio", "furthest\nrepeat", "spread\n%"].map(str::to_string);
    let of_repeats = REPEATS.map(|repeats| format!("{repeats} repeats\nshow, %"));
    let mut table = Table::new(
        "noise-floor",
        format!("Noise of this machine: throughput of {} compared with itself", compared.base),
        keys.lead(STEP),
        heads.into_iter().chain(of_repeats),
    );
    for step in &floor.steps {
        let ratio = compared
            .rows
            .get(step.row)
            .map_or_else(|| Cell::plain(ratio_text(step.ratio)), super::relative::ratio_cell);
        let mut cells = vec![
            Cell::plain(step.repeats.to_string()),
            ratio,
            Cell::plain(ratio_text(step.largest)),
            Cell::number(step.spread.map(|spread| spread * 100.0), 2),
        ];
        cells.extend(REPEATS.map(|repeats| seen(&step.seen, repeats)));
        table.push(keys.lead_of(&step.step, &step.cell, 0), cells);
    }
    let of_all = counted(floor.steps.len(), "comparison");
    let expected = percent(compared.error_rate);
    table.notes.push(match floor.shown {
        0 => format!("none of {of_all} shows a difference"),
        shown => format!(
            "{shown} of {of_all} would show a difference; {expected} of such runs are expected to show any"
        ),
    });
    if let Some(spread) = floor.spread_median {
        let mut text = format!(
            "the spread (the standard deviation of one repeat's ratio) is {} in the median step",
            percent(spread)
        );
        let seen = floor.seen.iter().filter(|seen| seen.effect < MOST);
        let seen: Vec<String> = seen
            .map(|DetectableEffect { repeats, effect }| {
                format!("{} with {repeats}", percent(*effect))
            })
            .collect();
        if !seen.is_empty() {
            text += &format!(
                "; the smallest change that repeats would show there: {}",
                seen.join(", ")
            );
        }
        table.notes.push(text);
    }
    table.explained()
}

/// Returns the smallest change that this number of repeats would show.
fn seen(seen: &[DetectableEffect], repeats: u32) -> Cell {
    match seen.iter().find(|seen| seen.repeats == repeats) {
        None => Cell::not_applicable(),
        Some(seen) if seen.effect < MOST => Cell::plain(fixed(seen.effect * 100.0, 1)),
        Some(_) => Cell::plain(format!(">{}", fixed(MOST * 100.0, 0))),
    }
}
