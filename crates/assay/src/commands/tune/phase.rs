//! Measures a phase of a tuning: as a run of the plan with other targets, to which repeats are added
//! until all is decided.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use analysis::figures::{Figures, Looks};
use analysis::tune::{Contender, Levels, Phase, PhaseResult, without};
use anyhow::Context as _;
use inquiry::reading::retain_steps;
use plan::{Designed, Plan};
use record::{Run, RunDir, Status};
use runner::{PlanRequest, Repeats, RunRequest};

use super::log::{Question, RUNS};
use crate::cli::PlaceArgs;
use crate::run_view::RunView;

/// The fewest repeats of a screening: one has no error of its own.
const SCREENING_REPEATS_MIN: u32 = 2;
/// The repeats after which a race is judged for the first time: fewer have no intervals that hold at
/// any time.
const REPEATS_FIRST: u32 = 3;

/// The time at which no further repeat begins; never if there is none.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Option<Instant>);

#[expect(
    clippy::disallowed_methods,
    reason = "it limits the time of a tuning, and is not measured"
)]
impl Deadline {
    pub(super) fn after(time: Option<Duration>) -> Self {
        Self(time.map(|time| Instant::now() + time))
    }

    fn has_passed(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}

/// A phase to measure.
pub(super) struct Measuring<'a> {
    pub phase: &'a Phase,
    pub question: &'a Question,
    pub plan: &'a Plan,
    pub designed: &'a Designed,
    /// The directory of the tuning.
    pub directory: &'a Path,
    pub place: &'a PlaceArgs,
    pub view: &'a RunView,
    pub deadline: Deadline,
    /// The operator trusts the records of an earlier invocation.
    pub is_trusted: bool,
}

/// What a phase came to.
pub(super) enum Measured {
    Judged(PhaseResult),
    /// The operator interrupted it.
    Interrupted,
    /// The time is up before it was decided.
    TimeIsUp,
}

impl Measuring<'_> {
    /// Measures the phase, or goes on with its run. Calls `begun` with the name of the run's folder
    /// as soon as there is one.
    pub(super) fn measure(
        &self,
        run: Option<&str>,
        begun: &mut dyn FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Measured> {
        let mut request = match run {
            Some(name) => {
                let path = self.directory.join(RUNS).join(name);
                RunRequest { is_trusted: self.is_trusted, ..self.resumed(&path, None) }
            }
            None => self.first(),
        };
        loop {
            let outcome =
                runner::run(&request, self.view)?.context("a tuning runs without load ranks")?;
            let path = outcome.directory.path().to_path_buf();
            begun(&path.file_name().unwrap_or_default().to_string_lossy())?;
            if outcome.run.status == Status::Interrupted {
                return Ok(Measured::Interrupted);
            }

            let result = self.judge(&outcome.directory, &outcome.run)?;
            let repeats = repeat_count(&outcome.run);
            if is_decided(&result) || repeats >= self.question.repeats_max {
                return Ok(Measured::Judged(result));
            }

            if self.deadline.has_passed() {
                return Ok(Measured::TimeIsUp);
            }

            // The run is locked until its outcome is dropped.
            drop(outcome);
            // This invocation has written the record.
            let more = self.resumed(&path, Some(Repeats::Count(repeats + 1)));
            request = RunRequest { is_trusted: true, ..more };
        }
    }

    /// Returns the request for a new run.
    fn first(&self) -> RunRequest {
        let mut sets = self.question.sets.clone();
        sets.push(self.steps());

        let repeats = match self.phase {
            Phase::Screening => self.plan.repeats.max(SCREENING_REPEATS_MIN),
            Phase::Race(levels) | Phase::Verification(levels) => {
                // The plan's own design is of all factors: a race has combinations of its own.
                sets.retain(|set| !set.starts_with("design."));
                sets.push("design.kind=\"listed\"".to_owned());
                sets.push(self.combinations(levels));
                REPEATS_FIRST
            }
        };

        RunRequest {
            plan: PlanRequest { plan: Some(self.question.plan.clone()), sets },
            repeats: Some(Repeats::Count(repeats)),
            results: self.directory.join(RUNS),
            ..self.place.request()
        }
    }

    /// Returns the change of the plan by which it ends with the last step that decides.
    fn steps(&self) -> String {
        let workload = &self.plan.variants[0].workload;
        let steps = workload.steps();
        let deciding = self.question.goal.steps();
        let last = steps.iter().rposition(|step| deciding.contains(&step.name));

        let kept = steps.iter().take(last.map_or(steps.len(), |last| last + 1));
        let names: Vec<&str> = kept.map(|step| step.name).collect();
        format!("workload.{}.steps=[\"{}\"]", workload.name(), names.join("\",\""))
    }

    /// Returns the change of the plan that lists the combinations of the phase.
    fn combinations(&self, levels: &Levels) -> String {
        let mut all = vec![levels.clone()];
        // Each level proves that it is needed by what its removal costs.
        if matches!(self.phase, Phase::Race(_)) {
            for factor in (0..levels.len()).filter(|factor| levels[*factor] > 0) {
                all.push(without(levels, factor));
            }
        }

        // The base is always a target.
        all.retain(|combination| combination.iter().any(|level| *level > 0));

        let tables: Vec<String> = all.iter().map(|levels| self.table(levels)).collect();
        format!("design.combinations=[{}]", tables.join(", "))
    }

    /// Writes a combination as a table: `{ wal_compression = "lz4" }`.
    fn table(&self, levels: &Levels) -> String {
        let mut entries = Vec::new();
        for (factor, level) in self.designed.factors.iter().zip(levels) {
            if *level > 0 {
                let value = plan::quoted(&factor.levels[*level]);
                entries.push(format!("{} = {value}", plan::key_part(&factor.name)));
            }
        }

        format!("{{ {} }}", entries.join(", "))
    }

    fn resumed(&self, run: &Path, repeats: Option<Repeats>) -> RunRequest {
        RunRequest {
            resume: Some(PathBuf::from(run)),
            repeats,
            results: self.directory.join(RUNS),
            ..self.place.request()
        }
    }

    /// Judges what was measured so far.
    fn judge(&self, directory: &RunDir, run: &Run) -> anyhow::Result<PhaseResult> {
        let mut figures: Figures = analysis::figures::figures(std::slice::from_ref(directory))?;

        let goal = &self.question.goal;
        let steps: Vec<String> = goal.steps().into_iter().map(str::to_owned).collect();
        retain_steps(&mut figures, &steps);
        // A race is judged after each repeat, and a screening once.
        figures.looks = match self.phase {
            Phase::Screening => Looks::Once,
            Phase::Race(_) | Phase::Verification(_) => Looks::AnyTime,
        };

        let design = run.design.as_ref().context("the run has no design")?;
        let result = match self.phase {
            Phase::Screening => goal.screened(&figures).map(PhaseResult::Screened),
            Phase::Race(levels) => goal.raced(&figures, design, levels).map(PhaseResult::Raced),
            Phase::Verification(levels) => {
                goal.verified(&figures, design, levels).map(PhaseResult::Verified)
            }
        };
        result.context("the combinations were not measured: see the run's report")
    }
}

/// Returns whether more repeats would change nothing.
fn is_decided(result: &PhaseResult) -> bool {
    match result {
        PhaseResult::Screened(_) => true,
        PhaseResult::Raced(race) => {
            race.worst_for_bound.is_some() || race.without.iter().all(Contender::is_decided)
        }
        PhaseResult::Verified(gain) => gain.is_verified(),
    }
}

/// Returns the most repeats of a target.
fn repeat_count(run: &Run) -> u32 {
    let measured = run.cells.iter().filter(|cell| cell.key.kind.is_measured());
    measured.map(|cell| cell.key.repeat).max().unwrap_or(0)
}
