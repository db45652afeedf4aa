//! The mean of all steps of each target, which ends a table of throughput.

use analysis::compare::{Overall, Verdict};

use super::board::{Board, RepeatedLine};
use super::relative::ratio_cell;
use crate::model::grid::Grid;
use crate::model::number::{fixed, listed};
use crate::model::table::Cell;
use crate::model::worth::Footnotes;

/// The head of the row, or of the column if targets are rows.
pub(super) const ALL_STEPS: &str = "all steps";

/// The note below a table that has these means.
pub(super) const MEANING: &str =
    "all steps: the geometric mean of their ratios, with equal weights";

/// The number of steps that a footnote names.
const STEPS_NAMED: usize = 3;

/// Returns the mean of each line of a grid. `None` if the grid is only a part of what the means are
/// of, or if no line has one.
pub(super) fn cells(
    board: &Board<'_>,
    grid: &Grid<'_, &RepeatedLine>,
    reasons: &mut Footnotes,
) -> Option<Vec<Cell>> {
    // A mean is of all steps and loads.
    let has_one_load = board.compared_groups().count() == 1;
    if !has_one_load || grid.steps.len() < board.matrix.measured().count() {
        return None;
    }

    let mut cells = Vec::new();
    let mut has_any = false;
    for named in &grid.lines {
        let line = named.line;
        let overall = shown_mean(board, line);
        has_any |= overall.is_some();
        cells.push(match overall {
            Some(overall) => cell(board, line, overall, reasons),
            None if line.cell.target == board.base => Cell::plain(fixed(1.0, 2)),
            None => Cell::not_applicable(),
        });
    }
    has_any.then_some(cells)
}

/// Returns the mean of a line's target if it is of several steps, all of which are shown.
fn shown_mean<'a>(board: &Board<'a>, line: &RepeatedLine) -> Option<&'a Overall> {
    let overall = board.overall(&line.cell.target)?;
    // A comparison of chosen steps has the mean of all.
    let shown = board.throughput_of(line).filter(|row| row.ratio.is_some()).count();
    (overall.step_count > 1 && overall.step_count <= shown).then_some(overall)
}

/// Returns a mean, with a footnote if it lacks steps, or if some of them say something else.
fn cell(
    board: &Board<'_>,
    line: &RepeatedLine,
    overall: &Overall,
    reasons: &mut Footnotes,
) -> Cell {
    let Overall { compared, step_count, all_step_count } = overall;
    let mut said = Vec::new();
    if step_count < all_step_count {
        said.push(format!("the mean of {step_count} of {all_step_count} steps"));
    }

    // A mean that is too noisy, or was measured once, says nothing that a step could contradict.
    if compared.verdict.is_change() || compared.verdict == Verdict::Equal {
        let others = other_changes(board, line, compared.verdict);
        if !others.is_empty() {
            said.push(format!("its steps differ: {}", others.join(" and ")));
        }
    }

    let mut cell = ratio_cell(compared);
    reasons.mark(&mut cell, &said, format!("{} {ALL_STEPS}", board.label(line)));
    cell
}

/// Lists the steps of a line that are shown to change in another direction than the mean: `slower in
/// l.i0, l.x`.
fn other_changes(board: &Board<'_>, line: &RepeatedLine, of_mean: Verdict) -> Vec<String> {
    let mut texts = Vec::new();
    for (verdict, word) in [(Verdict::Slower, "slower"), (Verdict::Faster, "faster")] {
        let changed = board.throughput_of(line).filter(|row| row.verdict == verdict);
        let steps: Vec<&str> = changed.map(|row| row.step.as_str()).collect();
        if verdict != of_mean && !steps.is_empty() {
            texts.push(format!("{word} in {}", listed(&steps, STEPS_NAMED, ", ")));
        }
    }
    texts
}
