//! The notes below a table of ratios: the changes that could be shown, and what more repeats would
//! show.

use std::collections::BTreeMap;

use analysis::compare::{ComparedStep, Verdict};

use super::board::Board;
use crate::model::number::{enumerated, listed, percent};

/// The number of lines up to which a note names them.
const LINES_MAX: usize = 4;

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
        size_text(self.size)
    }
}

/// Formats the size of a change.
fn size_text(size: f64) -> String {
    if size > LARGE { format!("more than {}", percent(LARGE)) } else { percent(size) }
}

/// Returns which repeats have not begun: `repeats 2 and 3 have not begun; repeat 4 of pg.b has not
/// begun`. `None` if all have.
pub(super) fn not_begun(board: &Board<'_>) -> Option<String> {
    // The repeats of a run by the lines that lack them; a line may be a load of a target.
    let mut of_repeats: BTreeMap<(usize, u32), Vec<String>> = BTreeMap::new();
    for line in &board.lines {
        for unfinished in &board.comparison.figures.unfinished {
            let cell = &unfinished.cell;
            if unfinished.status.is_none() && cell.is_repeat_of(&line.cell) {
                let lines = of_repeats.entry((unfinished.run, cell.repeat)).or_default();
                lines.push(board.label(line));
            }
        }
    }

    let mut all: Vec<Unbegun> = Vec::new();
    for ((run, repeat), lines) in of_repeats {
        match all.iter_mut().find(|known| known.run == run && known.lines == lines) {
            Some(known) => known.repeats.push(repeat.to_string()),
            None => all.push(Unbegun { run, lines, repeats: vec![repeat.to_string()] }),
        }
    }

    let sentences: Vec<String> =
        all.iter().map(|unbegun| unbegun.sentence(board.lines.len())).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Repeats of a run that have not begun.
struct Unbegun {
    run: usize,
    /// The labels of the lines that lack them.
    lines: Vec<String>,
    repeats: Vec<String>,
}

impl Unbegun {
    /// Returns what is said of them, if there are `line_count` lines in all.
    fn sentence(&self, line_count: usize) -> String {
        let (repeats, have) =
            if self.repeats.len() > 1 { ("repeats", "have") } else { ("repeat", "has") };
        let mut text = format!("{repeats} {}", enumerated(&self.repeats));
        if self.lines.len() < line_count {
            text += &format!(" of {}", listed(&self.lines, LINES_MAX, ", "));
        }
        if self.run > 0 {
            text += &format!(" of run {}", self.run + 1);
        }
        format!("{text} {have} not begun")
    }
}

/// The total repeats of which [`more_repeats`] says what they would show.
const REPEATS: [u32; 4] = [5, 10, 20, 40];

/// The advice where no number of [`REPEATS`] would do.
const USELESS: &str = "where it is too noisy to say, more repeats would not help: even 40 would only \
                       show a change of more than 100%; measure longer steps, in turns, or on a \
                       quieter machine";

/// Returns what more repeats would show where it is too noisy to say, and the command that adds
/// them.
pub(super) fn more_repeats(board: &Board<'_>, metric: &str) -> Option<String> {
    let noisy = noisy_rows(board, metric);
    let measured = noisy.iter().map(|row| row.repeats()).max()?;

    let mut texts = Vec::new();
    let mut advised = None;
    let mut is_known = false;
    for repeats in REPEATS.into_iter().filter(|repeats| *repeats > measured) {
        let mut sizes: Vec<f64> =
            noisy.iter().filter_map(|row| row.detectable_with(repeats)).collect();
        sizes.sort_by(f64::total_cmp);

        let Some(median) = sizes.get(sizes.len() / 2) else {
            continue;
        };

        is_known = true;

        // A number of repeats that shows nothing but the largest changes is no advice.
        if *median <= LARGE {
            texts.push(format!("{} with {repeats}", percent(*median)));
            advised = advised.or(Some(repeats));
        }
    }
    let Some(advised) = advised else {
        return is_known.then(|| USELESS.to_owned());
    };

    let which = if noisy.len() == 1 { "" } else { " in the median step" };
    let mut text = format!(
        "where it is too noisy to say, more repeats would show smaller changes{which}: {}",
        texts.join(", ")
    );

    if let [run] = board.comparison.runs {
        text += &format!(" (`assay run --resume {} --repeats {advised}`)", run.name);
    }
    Some(text + "; longer steps help as well")
}

/// Returns the comparisons that are too noisy to say, in the order of the tables.
fn noisy_rows<'a>(board: &'a Board<'_>, metric: &str) -> Vec<&'a ComparedStep> {
    let mut noisy = Vec::new();
    for line in &board.lines {
        for step in board.matrix.measured() {
            let row = board.row(line, step.name, metric);
            noisy.extend(row.filter(|row| row.verdict == Verdict::TooNoisy));
        }
    }
    noisy
}
