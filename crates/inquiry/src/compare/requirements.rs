//! Requirements: which targets miss a bound.

use analysis::{
    compare::{Requirement, RequirementResult, RequirementVerdict, THROUGHPUT},
    distinct,
    figures::{Figures, Row},
};
use report::{Judgement, JudgementOutcome, requirement_sentence, terminal_text};
use runner::failure::UsageError;

use super::{Judged, lacking_metric};
use crate::reading::unknown_step;

/// Refuses requirements for a step that was not run, or for a metric that the step does not have.
pub(super) fn check(figures: &Figures, requirements: &[Requirement]) -> Result<(), UsageError> {
    for Requirement { step, metric, .. } in requirements {
        let rows = figures.rows.iter().chain(&figures.missing);
        let steps = distinct(rows.map(|row| row.step.as_str()));
        if !steps.contains(&step.as_str()) {
            return Err(unknown_step(step, steps));
        }

        let of_step: Vec<&Row> = figures.rows.iter().filter(|row| row.step == *step).collect();
        let has = |row: &&Row| match metric.as_str() {
            THROUGHPUT => analysis::figures::throughput(row).is_some(),
            name => row.metric(name).is_some(),
        };
        let has_figures = of_step.iter().any(|row| !row.ops.is_empty());
        // Without any operation there is nothing that could lack the metric.
        if has_figures && !of_step.iter().any(has) {
            let message = format!("the step `{step}` does not have the metric `{metric}`");
            return Err(UsageError::new(message, lacking_metric(&of_step, metric)));
        }
    }
    Ok(())
}

/// Judges the results of all requirements, and says which are not met.
pub fn judge(results: &[RequirementResult]) -> Judged {
    let mut lines = Vec::new();
    for result in results.iter().filter(|result| result.verdict != RequirementVerdict::Met) {
        lines.push(terminal_text(&requirement_sentence(result)));
    }

    let outcomes = results.iter().map(|result| outcome_of(result.verdict));
    Judged { outcome: outcomes.min().unwrap_or(JudgementOutcome::Passed), lines }
}

/// Returns the judgments of requirements.
pub fn judgements(results: &[RequirementResult]) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for result in results {
        judgements.push(Judgement {
            subject: result.cell.target_and_load(),
            what: result.requirement.text.clone(),
            outcome: outcome_of(result.verdict),
            sentence: requirement_sentence(result),
            is_closest: false,
        });
    }

    judgements
}

fn outcome_of(verdict: RequirementVerdict) -> JudgementOutcome {
    match verdict {
        RequirementVerdict::Met => JudgementOutcome::Passed,
        RequirementVerdict::Missed => JudgementOutcome::Failed,
        _ => JudgementOutcome::Undecided,
    }
}
