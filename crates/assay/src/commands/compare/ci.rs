//! What systems of continuous integration read of a comparison: the judgements of `--gate` and
//! `--require`, as files and as annotations.

use std::path::Path;

use analysis::compare::{
    Compared, Judged, RequirementResult, RequirementVerdict, THROUGHPUT, Thresholds, judged,
    judged_work, metric_label,
};
use analysis::figures::Figures;
use anyhow::Context;
use report::{Judgement, JudgementOutcome};
use runner::failure::UsageError;

use super::gate;
use super::lines::Line;
use crate::cli::{AnnotationFormat, Annotations, CompareArgs};
use crate::output::print;

/// Refuses files that would have no judgements.
pub(super) fn check(args: &CompareArgs) -> Result<(), UsageError> {
    if args.gate || !args.requirements.is_empty() {
        return Ok(());
    }

    let option = if args.junit.is_some() {
        "--junit"
    } else if args.annotations.is_some() {
        "--annotations"
    } else {
        return Ok(());
    };
    let message = format!("`{option}` needs judgements");
    Err(UsageError::new(message, Some("add `--gate`, or a bound with `--require`".into())))
}

/// Writes the files and annotations that the arguments ask for. `markdown` is the comparison.
pub(super) fn write(
    args: &CompareArgs,
    plan: Plan<'_>,
    judgements: &[Judgement],
    markdown: &str,
) -> anyhow::Result<()> {
    if let Some(path) = &args.junit {
        write_file(path, &report::junit(plan.name, judgements))?;
    }

    if let Some(path) = &args.markdown {
        let summary = match judgements {
            // Without judgements, the file is the comparison alone.
            [] => String::new(),
            some => report::judgements_markdown(some),
        };
        write_file(path, &(summary + markdown))?;
    }

    match &args.annotations {
        Some(Annotations { format: AnnotationFormat::Github, file }) => {
            let lines = report::github_annotations(judgements);
            match file {
                Some(path) => write_file(path, &lines)?,
                None => print(&lines)?,
            }
        }
        Some(Annotations { format: AnnotationFormat::Gitlab, file }) => {
            let path = file.as_deref().unwrap_or(Path::new("gl-code-quality-report.json"));
            write_file(path, &report::gitlab_report(plan.path, judgements))?;
        }
        None => {}
    }

    Ok(())
}

/// The plan of the first run.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) name: &'a str,
    pub(super) path: &'a str,
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    fs_err::write(path, text).context("cannot write the result of the comparison")
}

/// Returns the judgements of the gate: of each comparison, and what is missing.
pub(super) fn of_gate(
    args: &CompareArgs,
    figures: &Figures,
    compared: &Compared,
    lines: &[Line<'_>],
) -> Vec<Judgement> {
    let thresholds = gate::thresholds(args, compared.effect);

    let mut judgements = Vec::new();
    for (index, outcome) in judged(compared, &thresholds) {
        let row = &compared.rows[index];
        let threshold = thresholds.of(&row.metric).unwrap_or_default();
        judgements.push(Judgement {
            subject: row.cell.target_and_load(),
            what: format!("{}: {}", row.step, metric_label(&row.metric)),
            outcome: judgement_outcome(outcome),
            sentence: gate::sentence(row, &compared.base, threshold),
        });
    }

    for (index, outcome) in judged_work(compared, &thresholds) {
        let work = &compared.work[index];
        judgements.push(Judgement {
            subject: work.cell.target_and_load(),
            what: format!("{}: exact work of {}", work.step, work.part.name()),
            outcome: judgement_outcome(outcome),
            sentence: gate::work::sentence(work, &compared.base, thresholds.of_work()),
        });
    }

    judgements.extend(missing(figures, compared, &thresholds, lines));
    // A file without judgements would look as if all had passed.
    if judgements.is_empty() {
        judgements.push(undecided("all targets", "throughput", "nothing was compared"));
    }

    judgements
}

fn judgement_outcome(outcome: Judged) -> JudgementOutcome {
    match outcome {
        Judged::Passed => JudgementOutcome::Passed,
        Judged::Regressed => JudgementOutcome::Failed,
        Judged::Doubtful => JudgementOutcome::Undecided,
    }
}

/// Returns a judgement for each measurement that is missing.
fn missing(
    figures: &Figures,
    compared: &Compared,
    thresholds: &Thresholds,
    lines: &[Line<'_>],
) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for sentence in gate::missing(compared, lines) {
        judgements.push(undecided(&compared.base, "same loads as the base", &sentence));
    }

    for metric in thresholds.without_rows(compared) {
        let sentence = "it has a threshold, but none of the compared steps has this metric";
        judgements.push(undecided("all targets", metric, sentence));
    }

    for cell in &figures.unfinished {
        let what = format!("{} in repeat {}", THROUGHPUT, cell.cell.repeat);
        let sentence = match cell.causes.first() {
            Some(cause) => format!("the cell is not complete: {cause}"),
            None => "the cell is not complete".to_owned(),
        };
        judgements.push(undecided(&cell.cell.target_and_load(), &what, &sentence));
    }

    judgements
}

fn undecided(subject: &str, what: &str, sentence: &str) -> Judgement {
    Judgement {
        subject: subject.to_owned(),
        what: what.to_owned(),
        outcome: JudgementOutcome::Undecided,
        sentence: sentence.to_owned(),
    }
}

/// Returns the judgements of requirements.
pub(super) fn of_requirements(results: &[RequirementResult]) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for result in results {
        let outcome = match result.verdict {
            RequirementVerdict::Met => JudgementOutcome::Passed,
            RequirementVerdict::Missed => JudgementOutcome::Failed,
            _ => JudgementOutcome::Undecided,
        };
        judgements.push(Judgement {
            subject: result.cell.target_and_load(),
            what: result.requirement.text.clone(),
            outcome,
            sentence: super::requirements::sentence(result),
        });
    }

    judgements
}
