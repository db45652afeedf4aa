//! Selects what an answer says about typical turns: what throughput leaves open, and the changes that
//! stalls make.

use super::answer::TargetAnswer;
use crate::compare::{Compared, ComparedStep, OWN_CPU, THROUGHPUT, Verdict};
use crate::figures::{STEADINESS, TYPICAL_CPU, TYPICAL_RATE};

/// Returns the targets of which a typical rate says more than throughput: that it changed, where
/// throughput does not show that, or that it is equal, where throughput is too noisy.
pub(super) fn rates(compared: &Compared, targets: &[TargetAnswer]) -> Vec<TargetAnswer> {
    let throughput = rows_of(compared, THROUGHPUT);
    let mut rows = rows_of(compared, TYPICAL_RATE);
    rows.retain(|row| {
        let of_step = throughput.iter().find(|other| other.compares_the_same(row));
        of_step.is_some_and(|other| match other.verdict {
            Verdict::Faster | Verdict::Slower => false,
            Verdict::TooNoisy => row.verdict.is_change() || row.verdict == Verdict::Equal,
            _ => row.verdict.is_change(),
        })
    });
    answers(&rows, targets)
}

/// Returns the targets whose CPU in a typical turn is shown to differ where own CPU over all turns is
/// not.
pub(super) fn cpu(compared: &Compared, targets: &[TargetAnswer]) -> Vec<TargetAnswer> {
    let mut own = rows_of(compared, OWN_CPU);
    own.retain(|row| row.verdict.is_change());

    let mut rows = rows_of(compared, TYPICAL_CPU);
    rows.retain(|row| {
        row.verdict.is_change() && !own.iter().any(|other| other.compares_the_same(row))
    });
    answers(&rows, targets)
}

/// Returns the targets whose steadiness is shown to differ in some step.
pub(super) fn steadiness(compared: &Compared, targets: &[TargetAnswer]) -> Vec<TargetAnswer> {
    let mut rows = rows_of(compared, STEADINESS);
    rows.retain(|row| row.verdict.is_change());
    answers(&rows, targets)
}

fn rows_of<'c>(compared: &'c Compared, metric: &str) -> Vec<&'c ComparedStep> {
    compared.rows.iter().filter(|row| row.metric == metric).collect()
}

/// Returns the summaries of those targets that have any of these comparisons.
fn answers(rows: &[&ComparedStep], targets: &[TargetAnswer]) -> Vec<TargetAnswer> {
    let mut answers = Vec::new();
    for TargetAnswer { target, .. } in targets {
        let of_target = rows.iter().copied().filter(|row| row.cell.target == *target);
        let answer = TargetAnswer::new(target, of_target);
        if answer.comparison_count() > 0 {
            answers.push(answer);
        }
    }
    answers
}
