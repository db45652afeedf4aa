//! The notes below a table of ratios: the changes that could be shown, and the repeats that more
//! would need.

use analysis::{
    compare::{ComparedStep, REPEATS_CAP, Verdict},
    counted,
};

use super::board::Board;
use crate::model::number::percent;

/// The maximum number of places whose needed repeats are listed.
const PLACES_MAX: usize = 4;

/// Changes above this are not shown in detail.
const LARGE: f64 = 1.0;

/// Returns the smallest change that the comparisons of a table can show: the median, and the range.
pub(super) fn detectable<'a>(rows: impl Iterator<Item = &'a ComparedStep>) -> Option<String> {
    let mut changes: Vec<DetectableChange<'_>> = rows
        .filter_map(|row| Some(DetectableChange { size: row.detectable()?, step: &row.step }))
        .collect();
    changes.sort_by(|a, b| a.size.total_cmp(&b.size));

    let (least, most) = (changes.first()?, changes.last()?);
    let median = changes[changes.len() / 2].text();
    let mut text = format!("the smallest change that could be shown here: {median}");
    if least.text() != most.text() {
        text += &format!(
            " in the median step, from {} in {} to {} in {}",
            least.text(),
            least.step,
            most.text(),
            most.step
        );
    }
    Some(text)
}

/// The smallest change that a step can show.
struct DetectableChange<'a> {
    size: f64,
    step: &'a str,
}

impl DetectableChange<'_> {
    fn text(&self) -> String {
        if self.size > LARGE { format!("more than {}", percent(LARGE)) } else { percent(self.size) }
    }
}

/// Returns the number of repeats that would show a change as small as the effect, if there are too
/// few.
pub(super) fn repeats_needed(board: &Board<'_>, metric: &str) -> Option<String> {
    let mut needs = needs(board, metric);
    if needs.is_empty() {
        return None;
    }

    let count = needs.len();
    needs.retain(|need| need.repeats < REPEATS_CAP);
    let impractical = count - needs.len();
    // The largest numbers first; equal numbers keep the order of the tables.
    needs.sort_by_key(|need| std::cmp::Reverse(need.repeats));

    let mut texts: Vec<String> = needs
        .iter()
        .take(PLACES_MAX)
        .map(|need| format!("{} for {}", need.repeats, need.place))
        .collect();
    let fewer = needs.len().saturating_sub(PLACES_MAX);
    if fewer > 0 {
        texts.push(format!("fewer for {}", counted(fewer, "other")));
    }
    if impractical > 0 {
        let steps = counted(impractical, "step");
        texts.push(format!("{REPEATS_CAP} or more for {steps}, too noisy for such small changes"));
    }
    Some(format!(
        "total repeats needed to show a change of {}: {}",
        percent(board.comparison.compared.effect),
        texts.join(", ")
    ))
}

/// The repeats that a line would need in a step.
struct Need {
    repeats: u32,
    /// The line and the step.
    place: String,
}

/// Returns the needs of all comparisons that are too noisy, in the order of the tables.
fn needs(board: &Board<'_>, metric: &str) -> Vec<Need> {
    let mut needs = Vec::new();
    for line in &board.lines {
        for step in board.matrix.measured() {
            let row = board.row(line, step.name, metric);
            let noisy = row.filter(|row| row.verdict == Verdict::TooNoisy);
            if let Some(repeats) = noisy.and_then(|row| row.repeats_needed) {
                needs.push(Need { repeats, place: format!("{} {}", board.label(line), step.name) });
            }
        }
    }
    needs
}
