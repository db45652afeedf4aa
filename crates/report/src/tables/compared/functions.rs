//! The functions whose cost changed, by the profiles of two targets.

use analysis::{
    compare::{ComparedProfile, CostDifference, FunctionDifference, ProfileTotals},
    figures::{Figures, Row, noun},
};
use record::CellKey;

use crate::model::names::cell_name;
use crate::model::number::{fixed, percent, whole};
use crate::model::table::{Cell, Table, Tone};

/// The number of functions that a table lists.
const LISTED: usize = 10;
/// From this share of samples without a symbol on, the table says so.
const UNKNOWN_SHARE: f64 = 0.05;

/// Returns a table for each step of a target that was profiled, as its base was.
pub(crate) fn tables(figures: &Figures, profiles: &[ComparedProfile]) -> Vec<Table> {
    profiles.iter().enumerate().map(|(number, profile)| table(figures, profile, number)).collect()
}

fn table(figures: &Figures, profile: &ComparedProfile, number: usize) -> Table {
    let (base, target) = (&profile.base, &profile.target);
    let operation = operation(figures, &profile.cell, &profile.step);

    let title = format!(
        "Functions: \u{b5}s of CPU per {operation}, {} in {}",
        cell_name(&profile.cell),
        profile.step
    );

    let mut table = Table::new(
        format!("functions-{}", number + 1),
        title,
        vec!["function".to_owned()],
        ["own\nbase", "own\ntarget", "own\nchange", "\u{b1}", "with callees\nchange", "\u{b1}"],
    );
    table.beside = vec![3, 5];

    let decimals = decimals(target.cpu_us_per_op.max(base.cpu_us_per_op));
    let number = |value: f64| Cell::plain(fixed(value, decimals));
    for FunctionDifference { name, own, inclusive } in profile.functions.iter().take(LISTED) {
        let cells = vec![
            number(own.base_us),
            number(own.target_us),
            change(own, decimals),
            number(own.margin_us),
            change(inclusive, decimals),
            number(inclusive.margin_us),
        ];
        table.push(vec![name.clone()], cells);
    }

    table.notes = notes(profile, operation, decimals);
    table
}

/// Returns the change of a cost in microseconds.
pub(super) fn change(cost: &CostDifference, decimals: usize) -> Cell {
    let text = format!("{:+.decimals$}", cost.difference_us);
    if !cost.is_shown {
        return Cell::plain(text);
    }
    let tone = if cost.difference_us > 0.0 { Tone::TimeGrew } else { Tone::TimeShrank };
    Cell::toned(text, tone)
}

/// Returns the noun for an operation of a cell's step: `row`.
pub(crate) fn operation<'f>(figures: &'f Figures, cell: &CellKey, step: &str) -> &'f str {
    let is_of_step = |row: &&Row| row.cell.is_repeat_of(cell) && row.step == step;
    let row = figures.rows.iter().find(is_of_step);
    row.map_or("operation", |row| noun(row.kind, row.main_operation()))
}

/// Returns the figures of a profile in a sentence.
pub(crate) fn facts(totals: &ProfileTotals) -> String {
    let mut facts = vec![format!(
        "{} samples of `{}`, {} of them in functions without a symbol",
        whole(totals.samples),
        totals.event,
        percent(totals.unknown_share)
    )];

    if totals.lost_share > 0.0 {
        facts.push(format!("{} more were dropped", percent(totals.lost_share)));
    }

    facts.push(format!("callers found by `{}`", totals.call_graph));
    if let Some(relative) = totals.relative_throughput {
        facts.push(format!("throughput with the profiler: {} of that without", percent(relative)));
    }

    facts.join("; ")
}

/// Returns the decimals that tell costs apart that are a hundredth of the CPU per operation.
pub(super) fn decimals(cpu_us: f64) -> usize {
    match cpu_us {
        us if us >= 1000.0 => 0,
        us if us >= 50.0 => 1,
        us if us >= 5.0 => 2,
        _ => 3,
    }
}

fn notes(profile: &ComparedProfile, operation: &str, decimals: usize) -> Vec<String> {
    let (base, target) = (&profile.base, &profile.target);
    let change_us = target.cpu_us_per_op - base.cpu_us_per_op;
    let change_percent = 100.0 * change_us / base.cpu_us_per_op;

    let mut total = format!(
        "CPU per {operation} changed by {change_us:+.decimals$} us ({change_percent:+.1}%), from {:.decimals$} to {:.decimals$}",
        base.cpu_us_per_op, target.cpu_us_per_op
    );

    if let Some(named) = &profile.named {
        total += &format!(": {:+.decimals$} us in `{}`", named.difference_us, named.name);
        if let Some(caller) = &named.caller {
            total += &format!(", called by `{caller}`");
        }
    }

    let mut notes = vec![
        total,
        format!(
            "{} of {} functions changed by more than the intervals, which hold for all of them together",
            profile.shown_count, profile.function_count
        ),
        format!("base: {}", facts(base)),
        format!("target: {}", facts(target)),
    ];
    if base.unknown_share.max(target.unknown_share) >= UNKNOWN_SHARE {
        notes.push("functions without a symbol are listed by their file as `[file]`; a build with symbols names them".to_owned());
    }

    notes
}
