//! The legend of the charts: a color for each target. All repeats of a target under one load share
//! an entry, because readers compare targets and not repeats.

use analysis::counted;
use analysis::figures::{Row, throughput};
use maud::{Markup, PreEscaped, html as markup};
use record::CellKey;
use serde_json::Value;

use crate::model::matrix::{Keys, Matrix, StepHead};
use crate::model::text::clean;
use crate::model::worth::comparable;
use crate::plot::{COLOR_COUNT, DASHES};
use crate::printers::page::{NamedMatrix, encode};

/// The maximum number of entries that all have a color.
const COLORED_MAX: usize = 8;

/// Fewer entries need no buttons that show all or none.
const MANY_BUTTONS: usize = 4;

/// All repeats of a target under one load.
pub(super) struct LegendEntry {
    /// The key of all repeats.
    pub cell: CellKey,
    /// The numbers of the matrix's lines: its repeats.
    lines: Vec<usize>,
    /// The indexes of its color and its dashes.
    color: usize,
    dash: usize,
}

/// The entries of all charts of a page, in the order of the matrix's lines.
pub(super) struct Legend {
    entries: Vec<LegendEntry>,
}

impl Legend {
    /// Returns the legend of the matrix's lines. Targets have colors, and loads have dashes. The
    /// loads of a single target have colors.
    pub(super) fn of(matrix: &Matrix<'_>) -> Self {
        let mut entries: Vec<LegendEntry> = Vec::new();
        let mut targets: Vec<&str> = Vec::new();
        let mut loads: Vec<(Option<&str>, u32)> = Vec::new();

        for (number, line) in matrix.lines.iter().enumerate() {
            let cell = line.cell.all_repeats();
            if let Some(known) = entries.iter_mut().find(|entry| entry.cell == cell) {
                known.lines.push(number);
                continue;
            }

            let target = position_or_push(&mut targets, &line.cell.target);
            let load = position_or_push(&mut loads, line.cell.load());
            entries.push(LegendEntry { cell, lines: vec![number], color: target, dash: load });
        }

        for entry in &mut entries {
            if targets.len() == 1 {
                (entry.color, entry.dash) = (entry.dash, entry.color);
            }
            // From the eleventh color on, dashes tell colors apart.
            entry.dash = (entry.dash + entry.color / COLOR_COUNT) % DASHES.len();
            entry.color %= COLOR_COUNT;
        }

        Self { entries }
    }

    /// Returns the number of the entry of a line.
    fn number_of(&self, line: usize) -> Option<usize> {
        self.entries.iter().position(|entry| entry.lines.contains(&line))
    }

    /// Returns the entries that ran a step, with their rows.
    fn in_step<'m>(&self, matrix: &Matrix<'m>, step: StepHead<'_>) -> Vec<StepEntry<'_, 'm>> {
        let mut found = Vec::new();

        for (number, entry) in self.entries.iter().enumerate() {
            let lines = entry.lines.iter().map(|line| &matrix.lines[*line]);
            let rows: Vec<&Row> = lines.filter_map(|line| line.row(step.name)).collect();

            if !rows.is_empty() {
                found.push(StepEntry { number, entry, rows });
            }
        }
        found
    }

    /// Returns the labels of lines and entries, for the scripts: of each line its label, its target
    /// and its entry; of each entry its label, its color and its dashes.
    pub(super) fn data(&self, named: NamedMatrix<'_>) -> Markup {
        let lines: Vec<Value> = named
            .matrix
            .lines
            .iter()
            .enumerate()
            .map(|(number, line)| {
                let entry = self.number_of(number).unwrap_or_default();
                serde_json::json!([named.short_label(line), clean(&line.cell.target), entry])
            })
            .collect();

        let keys = self.keys();
        let entries: Vec<Value> = self
            .entries
            .iter()
            .map(|entry| {
                let label = clean(&named.names.short(&keys.label(&entry.cell, 0)));
                serde_json::json!([label, entry.color, entry.dash])
            })
            .collect();

        markup! {
            script type="application/json" id="lines" { (PreEscaped(encode::json(lines))) }
            script type="application/json" id="legend" { (PreEscaped(encode::json(entries))) }
        }
    }

    /// Returns the buttons of a step's charts, one for each entry. Of many entries, only those that
    /// stand out have colors at first.
    pub(super) fn buttons(&self, named: NamedMatrix<'_>, step: StepHead<'_>) -> Markup {
        let entries = self.in_step(named.matrix, step);
        let standing_out = standing_out(named.matrix, &entries);

        let are_many = standing_out.is_some();

        let reasons = |number: usize| {
            let of_entry = standing_out.iter().flatten().filter(|entry| entry.number == number);
            of_entry.map(|entry| entry.reason).collect::<Vec<_>>().join(", ")
        };
        let repeats_max = entries.iter().map(|entry| entry.rows.len()).max().unwrap_or_default();

        markup! {
            div.lines.many[are_many] role="toolbar" aria-label={ "targets in the charts of " (clean(step.name)) } {
                @for entry in &entries {
                    (button(named, self.keys(), entry, &reasons(entry.number), are_many))
                }

                @if entries.len() >= MANY_BUTTONS {
                    button.all type="button" { "all" }
                    button.none type="button" { "none" }
                }

                button.whole type="button" hidden { "show all seconds" }
                @if repeats_max > 1 { small { "bold: median of repeats · thin: each repeat" } }
            }
        }
    }

    fn keys(&self) -> Keys {
        Keys::among(self.entries.iter().map(|entry| &entry.cell))
    }
}

/// Returns the position of an item in a list, after adding it if it is missing.
fn position_or_push<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// An entry that ran a step, with the rows of its repeats.
struct StepEntry<'l, 'm> {
    number: usize,
    entry: &'l LegendEntry,
    rows: Vec<&'m Row>,
}

impl StepEntry<'_, '_> {
    /// Returns the mean throughput of the repeats that may be compared.
    fn throughput(&self) -> Option<f64> {
        let comparable_rows = self.rows.iter().filter(|row| comparable(row));
        let rates: Vec<f64> = comparable_rows.filter_map(|row| throughput(row)).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }
}

/// An entry that stands out among many.
struct StandingOut {
    number: usize,
    reason: &'static str,
}

/// Returns the entries that stand out; `None` if so few ran the step that all have colors.
fn standing_out(matrix: &Matrix<'_>, entries: &[StepEntry<'_, '_>]) -> Option<Vec<StandingOut>> {
    if entries.len() <= COLORED_MAX {
        return None;
    }

    let base = entries.iter().find(|entry| entry.entry.cell.target == matrix.base);
    let rates: Vec<(usize, f64)> =
        entries.iter().filter_map(|entry| Some((entry.number, entry.throughput()?))).collect();
    let fastest = rates.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let slowest = rates.iter().min_by(|a, b| a.1.total_cmp(&b.1));

    let found = [
        (base.map(|entry| entry.number), "base"),
        (fastest.map(|(number, _)| *number), "fastest"),
        (slowest.map(|(number, _)| *number), "slowest"),
    ];
    let standing_out = found
        .into_iter()
        .filter_map(|(number, reason)| Some(StandingOut { number: number?, reason }));
    Some(standing_out.collect())
}

/// Returns the button of an entry, with the reasons for which it stands out.
fn button(
    NamedMatrix { names, .. }: NamedMatrix<'_>,
    keys: Keys,
    StepEntry { number, entry, rows }: &StepEntry<'_, '_>,
    reasons: &str,
    are_many: bool,
) -> Markup {
    let label = keys.label(&entry.cell, 0);
    let subject = names.target_in(&label);
    let invalid: Vec<&Row> = rows.iter().copied().filter(|row| !comparable(row)).collect();
    let is_on = !are_many || !reasons.is_empty();

    let mut tooltip: Vec<String> = Vec::new();
    if subject.as_ref().is_some_and(|subject| subject.is_short) {
        tooltip.push(clean(&label));
    }
    for row in &invalid {
        tooltip.push(clean(&row.reasons.join("; ")));
    }
    let tooltip = (!tooltip.is_empty()).then(|| tooltip.join(": "));

    markup! {
        button.line.invalid[!invalid.is_empty()] type="button" aria-pressed=(is_on) data-entry=(number)
            data-of=(clean(&entry.cell.target)) title=[tooltip] {
            svg class={ "c" (entry.color) } width="24" height="8" aria-hidden="true" {
                line x1="0" y1="4" x2="24" y2="4" stroke-dasharray=(DASHES[entry.dash]) {}
            }
            (clean(&subject.map_or(label, |subject| subject.text)))
            @if !reasons.is_empty() { small { (reasons) } }
            @if invalid.len() == rows.len() { " ! invalid" }
            @else if !invalid.is_empty() { " ! " (invalid.len()) " of " (counted(rows.len(), "repeat")) " invalid" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::figures::Figures;

    /// Returns the color and the dashes of each entry of these cells.
    fn looks(cells: &[CellKey]) -> Vec<(usize, usize)> {
        let row = |cell: &CellKey| Row {
            cell: cell.clone(),
            step: "read".into(),
            reported: true,
            ..Row::default()
        };
        let figures = Figures { rows: cells.iter().map(row).collect(), ..Figures::default() };
        let run = record::Run::default();
        let matrix = Matrix::new(&run, &figures);
        let legend = Legend::of(&matrix);
        legend.entries.iter().map(|entry| (entry.color, entry.dash)).collect()
    }

    #[test]
    fn repeats_of_a_target_have_one_color() {
        let mut cells = Vec::new();
        for target in ["pg.a", "pg.b"] {
            cells.extend((1..=5).map(|repeat| CellKey::new(target, None, 1, repeat)));
        }
        assert_eq!(looks(&cells), [(0, 0), (1, 0)]);
    }

    #[test]
    fn a_target_keeps_its_color_under_each_load() {
        let mut cells = Vec::new();
        for clients in [1, 4] {
            cells.extend(["pg.a", "pg.b"].map(|target| CellKey::new(target, None, clients, 1)));
        }
        assert_eq!(looks(&cells), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    }

    #[test]
    fn the_loads_of_a_single_target_have_colors() {
        let cells = [1, 4, 16].map(|clients| CellKey::new("pg.a", None, clients, 1));
        assert_eq!(looks(&cells), [(0, 0), (1, 0), (2, 0)]);
    }

    #[test]
    fn the_eleventh_target_differs_from_the_first_by_its_dashes() {
        let cells: Vec<CellKey> =
            (0..11).map(|at| CellKey::new(&format!("pg.{at:02}"), None, 1, 1)).collect();
        assert_eq!((looks(&cells)[0], looks(&cells)[10]), ((0, 0), (0, 1)));
    }
}
