//! What a row's figures are worth: whether they may be compared, what stands in their place if there are none, and why they are
//! invalid.

use analysis::Row;
use record::Status;

use crate::matrix::{Line, Matrix, StepHead};
use crate::number::listed;
use crate::table::{Cell, Tone};

/// Places that a footnote names.
const PLACES_MAX: usize = 4;

/// Why figures are invalid, each reason under a letter.
#[derive(Default)]
pub(crate) struct Footnotes {
    /// The reasons, and where they hold.
    notes: Vec<(String, Vec<String>)>,
}

impl Footnotes {
    /// The letter for the reasons of `row`: the same reasons share one.
    pub(crate) fn letter(&mut self, matrix: &Matrix<'_>, line: &Line<'_>, row: &Row) -> String {
        let place = format!("{} {}", matrix.label(line), row.step);
        self.letter_of(&row.reasons, place)
    }

    /// The same for reasons that hold at `place`.
    pub(crate) fn letter_of(&mut self, reasons: &[String], place: String) -> String {
        let reasons = match reasons {
            [] => "no reason recorded".to_string(),
            reasons => reasons.join("; "),
        };
        let known = self.notes.iter().position(|(text, _)| *text == reasons);
        let index = known.unwrap_or_else(|| {
            self.notes.push((reasons, Vec::new()));
            self.notes.len() - 1
        });
        let places = &mut self.notes[index].1;
        if !places.contains(&place) {
            places.push(place);
        }
        letters(index)
    }

    pub(crate) fn into_notes(self) -> impl Iterator<Item = String> {
        self.notes_in(Tone::Invalid.mark(), "")
    }

    /// The notes, where letters have these before and after them.
    pub(crate) fn notes_in(self, before: &str, after: &str) -> impl Iterator<Item = String> {
        let notes = self.notes.into_iter().enumerate();
        notes.map(move |(index, (reasons, places))| {
            let letter = letters(index);
            let places = listed(&places, PLACES_MAX, ", ");
            format!("`{before}{letter}{after}` {reasons} ({places})")
        })
    }
}

/// a b ... z aa ab ...
fn letters(index: usize) -> String {
    let last = char::from(b'a' + (index % 26) as u8);
    if index < 26 {
        last.to_string()
    } else {
        format!("{}{last}", letters(index / 26 - 1))
    }
}

/// Whether a row's figures may be compared with others.
pub(crate) fn comparable(row: &Row) -> bool {
    row.valid && row.status == Status::Complete
}

/// The figures of a row: grey if they may not be compared, and then one of them marked.
pub(crate) fn doubted(row: &Row, mut cells: Vec<Cell>, marked: usize) -> Vec<Cell> {
    if !comparable(row) {
        cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
        if let Some(cell) = cells.get_mut(marked) {
            cell.mark = Tone::Invalid.mark().to_string();
        }
    }
    cells
}

/// The figures of a row: in their place how the step ended, if not as planned; grey and with a footnote if they are invalid.
pub(crate) fn footnoted(
    matrix: &Matrix<'_>,
    line: &Line<'_>,
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

/// What stands in the place of the figure of a step that did not end as planned.
pub(crate) fn ended_early(status: Status) -> Option<Cell> {
    let text = match status {
        Status::Complete => return None,
        Status::Failed => "failed",
        Status::Interrupted => "interrupted",
        Status::Incomplete => "incomplete",
    };
    Some(Cell::toned(text, Tone::Failed))
}

/// A cell that failed between two steps shows it at the first step that it has not done.
pub(crate) fn missing_step(matrix: &Matrix<'_>, line: &Line<'_>, step: StepHead<'_>) -> Cell {
    let first = matrix
        .measured()
        .find(|candidate| line.row(candidate.name).is_none());
    let told = line
        .rows
        .iter()
        .any(|row| row.status != Status::Complete && matrix.shows(&row.step));
    match line.unfinished.flatten().and_then(ended_early) {
        Some(cell) if !told && first.is_some_and(|first| first.name == step.name) => cell,
        _ if line.missing.contains(&step.name) => Cell::toned("missing", Tone::Absent),
        _ => Cell::not_run(),
    }
}

/// The row of a step that ended as planned, or what stands in the place of its figure.
pub(crate) fn ended<'a>(
    matrix: &Matrix<'a>,
    line: &Line<'a>,
    step: StepHead<'_>,
) -> Result<&'a Row, Cell> {
    let Some(row) = line.row(step.name) else {
        return Err(missing_step(matrix, line, step));
    };
    ended_early(row.status).map_or(Ok(row), Err)
}

/// What stands where the figure of an invalid step would be compared.
pub(crate) fn not_compared() -> Cell {
    Cell::toned("", Tone::Invalid)
}

/// The rows of a step by target, in the order of the lines: those that may be compared with others.
pub(crate) fn comparable_by_target<'a>(
    lines: &[Line<'a>],
    step: StepHead<'_>,
) -> Vec<(&'a str, Vec<&'a Row>)> {
    let rows = |lines: &[Line<'a>]| {
        let rows = lines.iter().filter_map(|line| line.row(step.name));
        rows.filter(|row| comparable(row)).collect()
    };
    lines
        .chunk_by(|a, b| a.cell.target == b.cell.target)
        .map(|lines| (lines[0].cell.target.as_str(), rows(lines)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footnote_letters_go_on_after_z() {
        assert_eq!(
            [0, 25, 26, 51, 52].map(letters),
            ["a", "z", "aa", "az", "ba"]
        );
    }
}
