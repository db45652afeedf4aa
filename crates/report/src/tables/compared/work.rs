//! Exact work: instructions per operation, relative to the base.

use analysis::{
    compare::{ComparedWork, TargetWork, WorkVerdict, target_work},
    distinct,
};

use crate::model::comparison::Comparison;
use crate::model::names::cell_name;
use crate::model::number::{fixed, whole};
use crate::model::table::{Cell, STEP, Table, Tone};
use crate::model::worth::Footnotes;

/// What work does not tell, where the table is.
const LIMITS: &str = "Instructions say nothing of waits, I/O, cache misses, atomics and the layout of code: times can change without them";

/// Returns the table of work and its changes; without anything to compare, that of each target.
/// Without exact cells, there is none.
pub(super) fn tables(comparison: &Comparison<'_>) -> Vec<Table> {
    let compared = comparison.compared;
    if compared.work.is_empty() {
        return own(&target_work(comparison.figures));
    }

    let targets = distinct(compared.work.iter().map(|work| cell_name(&work.cell)));
    let mut lead = vec![STEP.to_owned(), "connection".to_owned()];
    lead.extend((targets.len() > 1).then(|| "target".to_owned()));
    let mut table = Table::new(
        "work",
        format!("Work per operation: instructions, relative to {}", compared.base),
        lead,
        ["base", "target", "ratio", "floor\n%", "shown\nfrom %", "verdict"],
    );

    let mut reasons = Footnotes::default();
    for work in &compared.work {
        let name = work.part.name().to_owned();
        let mut row_lead = vec![work.step.clone(), name.clone()];
        row_lead.extend((targets.len() > 1).then(|| cell_name(&work.cell)));

        let mut cells = cells(work);
        if let Some(verdict) = cells.last_mut() {
            let place = format!("{} {} {name}", work.cell.target, work.step);
            reasons.mark(verdict, &work.reasons, place);
        }
        table.push(row_lead, cells);
    }

    table.names = vec![
        "floor: the largest range of a target's exact cells".to_owned(),
        "shown from: the least change that these cells show".to_owned(),
    ];
    table.notes.push(LIMITS.to_owned());
    table.notes.extend(reasons.notes_in("[", "]"));
    vec![table]
}

fn cells(work: &ComparedWork) -> Vec<Cell> {
    let tone = tone(work.verdict);
    let ratio = match work.ratio {
        Some(ratio) => Cell::toned(fixed(ratio, 4), tone),
        None => Cell::not_applicable(),
    };
    vec![
        instructions(work.base_mean()),
        instructions(work.target_mean()),
        ratio,
        percent(work.floor),
        percent(work.shown_from),
        Cell::plain(work.verdict.to_string()),
    ]
}

fn tone(verdict: WorkVerdict) -> Tone {
    match verdict {
        WorkVerdict::More => Tone::WorkGrew,
        WorkVerdict::Less => Tone::WorkShrank,
        WorkVerdict::NoChangeShown | WorkVerdict::NotDeterministic => Tone::Plain,
        WorkVerdict::Single => Tone::Unjudged,
        WorkVerdict::NotComparable => Tone::Absent,
    }
}

/// Returns the table of targets that are compared with nothing.
fn own(targets: &[TargetWork]) -> Vec<Table> {
    let lead = [STEP, "connection", "target"].map(str::to_owned).to_vec();
    let mut table =
        Table::new("work", "Work per operation: instructions", lead, ["instructions", "floor\n%"]);
    let mut reasons = Footnotes::default();
    for work in targets {
        let name = work.part.name().to_owned();
        let mut cell = instructions(work.per_operation);
        let place = format!("{} {} {name}", work.cell.target, work.step);
        reasons.mark(&mut cell, &work.reasons, place);
        let row_lead = vec![work.step.clone(), name, cell_name(&work.cell)];
        table.push(row_lead, vec![cell, percent(work.floor)]);
    }
    if table.is_empty() {
        return Vec::new();
    }

    table.names = vec!["floor: the range of a target's exact cells".to_owned()];
    table.notes.push(LIMITS.to_owned());
    table.notes.extend(reasons.notes_in("[", "]"));
    vec![table]
}

/// Returns a number of instructions, with decimals if there are few.
fn instructions(count: Option<f64>) -> Cell {
    match count {
        Some(count) if count >= 100.0 => Cell::plain(whole(count.round() as u64)),
        _ => Cell::number(count, 2),
    }
}

fn percent(share: Option<f64>) -> Cell {
    Cell::number(share.map(|share| share * 100.0), 3)
}
