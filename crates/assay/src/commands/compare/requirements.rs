//! `--require`: reports which targets miss a bound, in words and as an exit code.

use analysis::{
    compare::{Requirement, RequirementResult, RequirementVerdict, THROUGHPUT},
    distinct,
    figures::{Figures, Row},
};
use inquiry::reading::unknown_step;
use report::terminal_text;
use runner::failure::UsageError;

use super::lacking_metric;
use crate::exit::Exit;
use crate::output::eprint_line;

/// Refuses requirements for a step that was not run, or for a metric that the step does not have.
pub fn check(figures: &Figures, requirements: &[Requirement]) -> Result<(), UsageError> {
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

/// Returns the result of a requirement as a sentence.
pub fn sentence(result: &RequirementResult) -> String {
    let target = result.cell.target_and_load();
    format!("{}: {} for {target}", result.verdict, result.requirement.text)
}

/// Judges the results of all requirements, and prints those that are not met to stderr.
pub fn judge(results: &[RequirementResult]) -> Exit {
    let not_met = results.iter().filter(|result| result.verdict != RequirementVerdict::Met);
    for result in not_met {
        eprint_line!("{}", terminal_text(&sentence(result)));
    }

    let has = |verdict| results.iter().any(|result| result.verdict == verdict);
    if has(RequirementVerdict::Missed) {
        Exit::Regressed
    } else if results.iter().any(|result| result.verdict != RequirementVerdict::Met) {
        Exit::Invalid
    } else {
        Exit::Ok
    }
}
