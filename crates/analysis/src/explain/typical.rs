//! Selects what an answer says about typical turns: changes that throughput does not show, and those
//! that stalls make.

use super::answer::TargetAnswer;
use super::finding::place;
use crate::compare::{Compared, ComparedStep, THROUGHPUT};
use crate::figures::{STEADINESS, TYPICAL_RATE};

/// Returns the targets whose typical rate is shown to differ in a step whose throughput is not, with
/// the comparisons of such steps.
pub(super) fn changed_rates(compared: &Compared, targets: &[TargetAnswer]) -> Vec<TargetAnswer> {
    let mut rows = rows_of(compared, TYPICAL_RATE);
    let changed: Vec<&ComparedStep> = rows_of(compared, THROUGHPUT)
        .into_iter()
        .filter(|throughput| throughput.verdict.is_change())
        .collect();

    rows.retain(|row| !changed.iter().any(|other| is_same(other, row)));
    with_changes(&rows, targets)
}

/// Returns the targets whose steadiness is shown to differ in some step.
pub(super) fn changed_steadiness(
    compared: &Compared,
    targets: &[TargetAnswer],
) -> Vec<TargetAnswer> {
    with_changes(&rows_of(compared, STEADINESS), targets)
}

fn rows_of<'c>(compared: &'c Compared, metric: &str) -> Vec<&'c ComparedStep> {
    compared.rows.iter().filter(|row| row.metric == metric).collect()
}

/// Returns whether two comparisons are of the same step of the same target.
fn is_same(a: &ComparedStep, b: &ComparedStep) -> bool {
    a.cell.target == b.cell.target && place(a) == place(b)
}

/// Returns the targets of which some comparison shows a change.
fn with_changes(rows: &[&ComparedStep], targets: &[TargetAnswer]) -> Vec<TargetAnswer> {
    let mut answers = Vec::new();
    for TargetAnswer { target, .. } in targets {
        let of_target = rows.iter().copied().filter(|row| row.cell.target == *target);
        let answer = TargetAnswer::new(target, of_target);
        if answer.largest().is_some() {
            answers.push(answer);
        }
    }
    answers
}
