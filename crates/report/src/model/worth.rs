//! The worth of a row's figures: whether they may be compared, the reasons for which they are
//! invalid, and the text shown instead.

use std::slice;

use analysis::{distinct, figures::Row};
use record::Status;

use crate::model::matrix::{CellLine, Matrix, StepHead};
use crate::model::number::listed;
use crate::model::table::{Cell, Tone};

/// The maximum number of places that a footnote lists.
const PLACES_MAX: usize = 4;

/// The reasons why figures are invalid, each with a letter.
#[derive(Default)]
pub(crate) struct Footnotes {
    notes: Vec<Footnote>,
}

struct Footnote {
    reasons: String,
    /// The lines and steps that have these reasons.
    places: Vec<String>,
}

impl Footnotes {
    /// Returns the letter for the reasons of `row`; the same reasons share a letter.
    pub(crate) fn letter(&mut self, matrix: &Matrix<'_>, line: &CellLine<'_>, row: &Row) -> String {
        let place = format!("{} {}", matrix.label(line), row.step);
        self.letter_of(&row.reasons, place)
    }

    /// Returns the letter for reasons at `place`.
    fn letter_of(&mut self, reasons: &[String], place: String) -> String {
        let text = match reasons {
            [] => "no reason recorded".to_string(),
            reasons => reasons.join("; "),
        };

        let known = self.notes.iter().position(|note| note.reasons == text);
        let index = known.unwrap_or_else(|| {
            self.notes.push(Footnote { reasons: text, places: Vec::new() });
            self.notes.len() - 1
        });

        let places = &mut self.notes[index].places;
        if !places.contains(&place) {
            places.push(place);
        }
        letters(index)
    }

    /// Adds the letters for reasons at `place` to a cell's mark: `[a,c]`; nothing without reasons. Each
    /// reason has a letter of its own, since other cells may share one and not the other.
    pub(crate) fn mark(&mut self, cell: &mut Cell, reasons: &[String], place: String) {
        let mut letters = Vec::new();
        for reason in reasons {
            letters.push(self.letter_of(slice::from_ref(reason), place.clone()));
        }
        if !letters.is_empty() {
            cell.mark.push_str(&format!("[{}]", distinct(letters).join(",")));
        }
    }

    pub(crate) fn into_notes(self) -> impl Iterator<Item = String> {
        self.notes_in(Tone::Invalid.mark(), "")
    }

    /// Returns the notes, with `before` and `after` around the letters.
    pub(crate) fn notes_in(self, before: &str, after: &str) -> impl Iterator<Item = String> {
        self.notes.into_iter().enumerate().map(move |(index, Footnote { reasons, places })| {
            let letter = letters(index);
            let places = listed(&places, PLACES_MAX, ", ");
            format!("`{before}{letter}{after}` {reasons} ({places})")
        })
    }
}

/// Returns a, b ... z, aa, ab ...
fn letters(index: usize) -> String {
    let last = char::from(b'a' + (index % 26) as u8);
    if index < 26 { last.to_string() } else { format!("{}{last}", letters(index / 26 - 1)) }
}

/// Returns true if a row's figures may be compared with others.
pub(crate) fn comparable(row: &Row) -> bool {
    row.valid && row.status == Status::Complete
}

/// Makes the figures of a row gray if they must not be compared, and marks one of them.
pub(crate) fn marked_if_invalid(row: &Row, mut cells: Vec<Cell>, marked: usize) -> Vec<Cell> {
    if comparable(row) {
        return cells;
    }
    cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
    if let Some(cell) = cells.get_mut(marked) {
        cell.mark = Tone::Invalid.mark().to_string();
    }
    cells
}

/// Replaces the figures of a row if the step did not end as planned, or makes them gray with a
/// footnote if they are invalid.
pub(crate) fn footnoted(
    matrix: &Matrix<'_>,
    line: &CellLine<'_>,
    row: &Row,
    mut cells: Vec<Cell>,
    footnotes: &mut Footnotes,
) -> Vec<Cell> {
    let Some(first) = cells.first_mut() else {
        return cells;
    };

    if let Some(cell) = ended_early(row.status) {
        *first = cell;
        cells[1..].fill(Cell::default());
    } else if !row.valid {
        first.mark = format!("!{}", footnotes.letter(matrix, line, row));
        cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
    }
    cells
}

/// Returns the cell for a step that did not end as planned.
pub(crate) fn ended_early(status: Status) -> Option<Cell> {
    let text = match status {
        Status::Complete => return None,
        Status::Failed => "failed",
        Status::Interrupted => "interrupted",
        Status::Incomplete => "incomplete",
    };
    Some(Cell::toned(text, Tone::Failed))
}

/// Returns the cell for a step that a line lacks. A cell that failed between two steps shows it at
/// the next step.
pub(crate) fn missing_step(matrix: &Matrix<'_>, line: &CellLine<'_>, step: StepHead<'_>) -> Cell {
    let next = matrix.measured().find(|candidate| line.row(candidate.name).is_none());
    let is_next = next.is_some_and(|next| next.name == step.name);
    let is_shown_already =
        line.rows.iter().any(|row| row.status != Status::Complete && matrix.shows(&row.step));

    match line.unfinished.flatten().and_then(ended_early) {
        Some(cell) if is_next && !is_shown_already => cell,
        _ if line.missing.contains(&step.name) => Cell::toned("missing", Tone::Absent),
        _ => Cell::not_run(),
    }
}

/// Returns the row of a step that ended as planned, or the cell that replaces it.
pub(crate) fn ended_row<'a>(
    matrix: &Matrix<'a>,
    line: &CellLine<'a>,
    step: StepHead<'_>,
) -> Result<&'a Row, Cell> {
    let Some(row) = line.row(step.name) else {
        return Err(missing_step(matrix, line, step));
    };
    ended_early(row.status).map_or(Ok(row), Err)
}

/// Returns the cell for a comparison of an invalid step.
pub(crate) fn not_compared() -> Cell {
    Cell::toned("", Tone::Invalid)
}

/// Returns the rows of a step that may be compared, by target, in the order of the lines.
pub(crate) fn comparable_by_target<'a>(
    lines: &[CellLine<'a>],
    step: StepHead<'_>,
) -> Vec<(&'a str, Vec<&'a Row>)> {
    lines
        .chunk_by(|a, b| a.cell.target == b.cell.target)
        .map(|of_target| {
            let rows = of_target.iter().filter_map(|line| line.row(step.name));
            let compared = rows.filter(|row| comparable(row)).collect();
            (of_target[0].cell.target.as_str(), compared)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_share_one_of_their_reasons_share_its_footnote() {
        let [few, apart] = ["too few turns", "all are above"].map(str::to_owned);
        let mut footnotes = Footnotes::default();
        let mut marks = Vec::new();
        for (place, reasons) in [
            ("a.x scan", vec![few.clone()]),
            ("a.y scan", vec![few.clone(), apart]),
            ("a.z scan", vec![few]),
            ("a.z load", Vec::new()),
        ] {
            let mut cell = Cell::plain("1.00");
            footnotes.mark(&mut cell, &reasons, place.to_owned());
            marks.push(cell.mark);
        }
        assert_eq!(marks, ["[a]", "[a,b]", "[a]", ""]);
        assert_eq!(
            footnotes.notes_in("[", "]").collect::<Vec<_>>(),
            [
                "`[a]` too few turns (a.x scan, a.y scan, a.z scan)",
                "`[b]` all are above (a.y scan)"
            ]
        );
    }

    #[test]
    fn footnote_letters_go_on_after_z() {
        assert_eq!([0, 25, 26, 51, 52].map(letters), ["a", "z", "aa", "az", "ba"]);
    }
}
