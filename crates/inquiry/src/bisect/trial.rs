//! Measures the candidates of a trial until all is decided.

use std::path::Path;

use analysis::bisect::{Judgement, MeasuredBy, Trial, TrialKind, TrialResult, judge};
use analysis::figures::{Figures, Looks};
use record::{Run, RunDir};
use runner::failure::{Errors, PlanRefused, error_text};
use runner::{ExactRequest, PlanRequest, RepeatsRequest, RunOutcome, RunRequest};

use super::log::{Candidate, Question};
use crate::search::{Judged, Measurement, REPEATS_FIRST};

/// The filter for cells of time.
const REPEATS: &str = "*/*/r*";

/// A trial to measure.
pub(super) struct Measuring<'a> {
    pub trial: Trial,
    /// The candidates of the trial, the oldest first.
    pub candidates: Vec<Candidate>,
    pub question: &'a Question,
    pub by: MeasuredBy,
    pub engine: &'a str,
    /// The names of the steps to run; the last one is that of the question.
    pub steps: Vec<&'a str>,
    /// The name of the workload.
    pub workload: &'a str,
    /// The smallest change to find.
    pub threshold: f64,
}

impl Measurement for Measuring<'_> {
    type Result = TrialResult;

    fn first(&self) -> anyhow::Result<RunRequest> {
        let mut sets = self.question.searched.sets.clone();
        for candidate in &self.candidates {
            sets.push(candidate.set(self.engine)?);
        }

        sets.push(self.target());
        sets.push(format!("workload.{}.steps=[\"{}\"]", self.workload, self.steps.join("\",\"")));
        // The base that the plan names may not be a candidate of this trial.
        let base = format!("{}.{}", self.candidates[0].build, self.question.config);
        sets.push(format!("base={}", plan::quoted(&base)));

        let repeats = if self.by.is_work() { 0 } else { REPEATS_FIRST };
        Ok(RunRequest {
            plan: PlanRequest { plan: Some(self.question.searched.plan.clone()), sets },
            repeats: Some(RepeatsRequest::Count(repeats)),
            exact: self.by.is_work().then_some(ExactRequest { simulate: None }),
            only: self.only(),
            ..RunRequest::default()
        })
    }

    // Cells with a profile and exact ones of the plan decide nothing about time, but explain the
    // answer.
    fn only(&self) -> Vec<String> {
        let explains = self.trial.kind == TrialKind::Confirmation;
        if explains || self.by.is_work() { Vec::new() } else { vec![REPEATS.to_owned()] }
    }

    fn judge(&self, outcome: &RunOutcome) -> anyhow::Result<Judged<TrialResult>> {
        let figures = self.figures(&outcome.directory)?;
        let result = self.result(&outcome.run, &figures);
        if result.links.iter().all(|link| link.ratio.is_none()) {
            let why = self.why_unusable(outcome.directory.path(), &outcome.run, &figures)?;
            return Ok(Judged::Unusable(why));
        }

        let is_decided = result.is_decided() || self.by.is_work();
        Ok(if is_decided { Judged::Decided(result) } else { Judged::Open(result) })
    }
}

impl Measuring<'_> {
    /// Returns the change of a plan by which the trial's candidates are its only targets.
    fn target(&self) -> String {
        let builds = self.candidates.iter().map(|candidate| plan::quoted(&candidate.build));
        let builds = builds.collect::<Vec<_>>().join(",");
        let config = plan::quoted(&self.question.config);
        format!("target=[{{builds=[{builds}],configs=[{config}]}}]")
    }

    /// Returns the figures of the step.
    fn figures(&self, directory: &RunDir) -> anyhow::Result<Figures> {
        let mut figures = analysis::figures::figures(std::slice::from_ref(directory))?;
        figures.retain_steps(std::slice::from_ref(&self.question.step));
        // The trial is judged after each repeat.
        figures.looks = Looks::AnyTime;
        Ok(figures)
    }

    /// Returns why a trial has nothing to compare.
    ///
    /// # Errors
    /// The candidate between the ends is not the reason.
    fn why_unusable(
        &self,
        directory: &Path,
        run: &Run,
        figures: &Figures,
    ) -> anyhow::Result<String> {
        let why = match self.trial.middle() {
            None => first_failure(figures, None),
            // An error of the candidate itself lets the search continue without it.
            Some(_) => {
                let own = first_failure(figures, target_of(run, &self.candidates[1]));
                if let (None, Some(other)) = (&own, first_failure(figures, None)) {
                    anyhow::bail!("a candidate that was measured before failed: {other}");
                }
                own
            }
        };

        let Question { step, metric, .. } = self.question;
        Ok(why.unwrap_or_else(|| {
            format!(
                "the trial ended without `{metric}` of `{step}` on both sides: `assay show {}` says what was measured",
                directory.display()
            )
        }))
    }

    fn result(&self, run: &Run, figures: &Figures) -> TrialResult {
        let names = self.candidates.iter().filter_map(|candidate| target_of(run, candidate));
        let targets: Vec<String> = names.map(str::to_owned).collect();

        let judgement = Judgement {
            step: &self.question.step,
            by: &self.by,
            targets: &targets,
            level: self.trial.level,
            threshold: self.threshold,
            least: self.question.least(),
        };
        judge(figures, &judgement)
    }
}

/// Returns the name of a candidate's target.
fn target_of<'r>(run: &'r Run, candidate: &Candidate) -> Option<&'r str> {
    let target = run.targets.iter().find(|target| target.build == candidate.build);
    target.map(|target| target.name.as_str())
}

/// Returns the first failure, or the first reason why a step is invalid: of one target, or of any.
fn first_failure(figures: &Figures, target: Option<&str>) -> Option<String> {
    let is_wanted = |name: &str| target.is_none_or(|target| target == name);
    let mut ends = figures.unfinished.iter();
    let failed = ends.find(|end| is_wanted(&end.cell.target) && !end.causes.is_empty());
    if let Some(end) = failed {
        return Some(format!("{}: {}", end.cell.target, end.causes.join(": ")));
    }

    let mut rows = figures.rows.iter();
    let invalid = rows.find(|row| is_wanted(&row.cell.target) && !row.reasons.is_empty());
    invalid.map(|row| format!("{}: {}", row.cell.target, row.reasons.join("; ")))
}

/// Returns an error in one line: the first of several, or the first of a plan.
pub(super) fn in_one_line(error: &anyhow::Error) -> String {
    if let Some(Errors(errors)) = error.downcast_ref()
        && let Some(first) = errors.first()
    {
        return in_one_line(first);
    }

    let refused = error.downcast_ref::<PlanRefused>();
    let text = match refused.and_then(|PlanRefused(diagnostics)| diagnostics.messages().next()) {
        Some(message) => message.to_owned(),
        None => error_text(error),
    };
    text.lines().next().unwrap_or_default().to_owned()
}
