//! The noise of a machine: what a target differs by from itself, step by step, and what change could be seen above it.

use std::collections::BTreeSet;

use analysis::{Compared, NoiseFloor, Seen, counted};
use record::Run;

use super::words::percent;
use crate::number::fixed;
use crate::table::{Cell, STEP, Table, TableRow};
use crate::terminal::{TableStyle, Text};

/// Repeats for which it is told what change would be seen.
const REPEATS: [u32; 4] = [3, 5, 10, 20];

/// A change beyond which it is of no use to know how large it would have to be.
const MOST: f64 = 1.0;

/// What a run of a target against itself says of the machine.
pub fn noise_floor(compared: &Compared, style: TableStyle) -> String {
    let mut out = Text::new(style);
    write(&mut out, compared);
    out.finish()
}

/// Whether a run is of a target against itself: its plan says so.
pub(super) fn is_against_itself(run: &Run) -> bool {
    let mut values = run.plan.resolved.iter();
    values.any(|value| value.key == "against-itself")
}

pub(super) fn write(out: &mut Text, compared: &Compared) {
    let floor = analysis::noise_floor(compared);
    out.table(&table(compared, &floor));
}

fn table(compared: &Compared, floor: &NoiseFloor) -> Table {
    let variants: BTreeSet<_> = floor.steps.iter().map(|step| &step.cell.variant).collect();
    let clients: BTreeSet<_> = floor.steps.iter().map(|step| step.cell.clients).collect();
    let (has_variants, has_clients) = (variants.len() > 1, clients.len() > 1);
    let mut lead = vec![STEP.to_string()];
    lead.extend(has_variants.then(|| "variant".to_string()));
    lead.extend(has_clients.then(|| "clients".to_string()));
    let mut columns = vec![
        "repeats".to_string(),
        "ratio".to_string(),
        "furthest\nrepeat".to_string(),
        "spread\n%".to_string(),
    ];
    columns.extend(REPEATS.map(|repeats| format!("{repeats} repeats\nshow, %")));
    let rows = floor.steps.iter().map(|step| {
        let mut lead = vec![step.step.clone()];
        lead.extend(has_variants.then(|| step.cell.variant.clone().unwrap_or_default()));
        lead.extend(has_clients.then(|| step.cell.clients.to_string()));
        let ratio = compared.rows.get(step.row).map_or_else(
            || Cell::plain(fixed(step.ratio, 3)),
            |row| super::relative::ratio_cell(row, 3),
        );
        let spread = step.spread.map_or_else(Cell::not_applicable, |spread| {
            Cell::plain(fixed(spread * 100.0, 2))
        });
        let mut cells = vec![
            Cell::plain(step.repeats.to_string()),
            ratio,
            Cell::plain(fixed(step.largest, 3)),
            spread,
        ];
        cells.extend(REPEATS.map(|repeats| seen(&step.seen, repeats)));
        TableRow {
            lead,
            cells,
            target: false,
        }
    });
    let mut table = Table {
        id: "noise-floor".to_string(),
        title: format!(
            "Noise of this machine: throughput of {} against itself",
            compared.base
        ),
        lead,
        columns,
        rows: rows.collect(),
        ..Table::default()
    };
    let of_all = counted(floor.steps.len(), "comparison");
    let expected = percent(compared.error_rate);
    table.notes.push(match floor.shown {
        0 => format!("of {of_all} none is called different"),
        shown => format!(
            "of {of_all} {shown} would be called different: anything is, in {expected} of all such runs"
        ),
    });
    if let Some(spread) = floor.spread_median {
        let mut text = format!(
            "the spread, the standard deviation of one repeat's ratio, is {} in the median step",
            percent(spread)
        );
        let seen = floor.seen.iter().filter(|seen| seen.effect < MOST);
        let seen: Vec<String> = seen
            .map(|Seen { repeats, effect }| format!("{} by {repeats}", percent(*effect)))
            .collect();
        if !seen.is_empty() {
            text += &format!(", where repeats would show a change of {}", seen.join(", "));
        }
        table.notes.push(text);
    }
    table.with_legend()
}

/// The least change that so many repeats would show.
fn seen(seen: &[Seen], repeats: u32) -> Cell {
    match seen.iter().find(|seen| seen.repeats == repeats) {
        None => Cell::not_applicable(),
        Some(seen) if seen.effect < MOST => Cell::plain(fixed(seen.effect * 100.0, 1)),
        Some(_) => Cell::plain(format!(">{}", fixed(MOST * 100.0, 0))),
    }
}
