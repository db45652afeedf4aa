//! The table of verdicts, which compares the targets of all cells.

use analysis::compare::Effects;
use inquiry::compare::Answer;
use inquiry::selection::Selection;
use report::{ComparedRun, Comparison, Form};

use super::output::Sink;
use crate::damages::say_damages;
use crate::output::print_note;

/// Compares the targets. Damage is printed if nothing else does that.
pub(super) fn read_verdicts(
    selection: &Selection,
    says_damages: bool,
) -> anyhow::Result<Vec<Answer>> {
    let answers = selection.answers(&print_note)?;
    if !says_damages {
        return Ok(answers);
    }

    for answer in &answers {
        say_damages(&answer.figures);
    }
    selection.note_damage(&answers);

    Ok(answers)
}

/// Writes the verdicts of all targets into a sink, or only those of one engine.
pub(super) fn write_verdicts(
    selection: &Selection,
    answers: &[Answer],
    engine: Option<&str>,
    form: Form,
    sink: Sink,
) -> anyhow::Result<Sink> {
    // The table has no column for the path of a run.
    let unnamed: Vec<_> =
        selection.runs.iter().map(|run| ComparedRun { name: String::new(), run }).collect();
    let effects = Effects::default();
    let comparisons = answers.iter().map(|answer| Comparison {
        run: &answer.shown,
        runs: &unnamed,
        figures: &answer.figures,
        compared: &answer.compared,
        effects: &effects,
        findings: &[],
    });
    let comparisons: Vec<Comparison<'_>> = comparisons.collect();

    Ok(report::verdict_table(&comparisons, engine, form, sink)?)
}
