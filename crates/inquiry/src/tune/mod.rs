//! Finds the smallest configuration that is shown to be better than the base.
//!
//! `analysis::tune` decides what is measured next. Here each phase is measured as a run, and logged
//! in `tune.json`, from which an interrupted tuning continues. `docs/tune.md` has the rules.

mod log;
mod phase;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use analysis::tune::{Goal, Next, Phase, PhaseResult, TuneOutcome, next};
use anyhow::Context as _;
use plan::{Designed, Plan, StepRate};
use report::{RunState, SearchOutline, TuneView};
use runner::PlanRequest;
use runner::failure::usage;

use self::log::{Log, Question};
use self::phase::Measuring;
use crate::reading::unknown_step;
use crate::search::{
    Deadline, OpenSearch, RUNS, SearchLog, SearchPlace, SearchedPlan, TrialEnd, TrialLimits,
    first_line, trust_option,
};

/// The log in the directory of a tuning.
pub(crate) const FILE: &str = Log::FILE;

/// A configuration to search for.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// The plan, which has the factors.
    pub plan: PlanRequest,
    /// The step whose throughput is to grow, and those that must not suffer.
    pub goal: Goal,
    /// The repeats after which a phase ends.
    pub repeats_max: u32,
}

/// A search for a configuration.
pub struct Tuning<'a> {
    opened: OpenSearch<'a, Log>,
    plan: Plan,
    designed: Designed,
}

impl<'a> Tuning<'a> {
    /// Begins a tuning: creates its directory and its log.
    ///
    /// # Errors
    /// The question has no answer in this plan, or the directory cannot be written.
    pub fn begin(request: &TuneRequest, place: SearchPlace<'a>) -> anyhow::Result<Self> {
        let Some(path) = &request.plan.plan else {
            let help = "`assay init ENGINE` writes one; add `[factors]`";
            return usage("a tuning needs a plan", help);
        };

        let question = Question {
            searched: SearchedPlan::read(path, &request.plan.sets)?,
            goal: request.goal.clone(),
            repeats_max: request.repeats_max,
        };
        check(&question, &question.searched.parse()?)?;

        let log = Log::new(question);
        let name = format!("tune-{}", log.question.goal.step);
        Self::of(OpenSearch::begin(log, &name, place)?)
    }

    /// Continues a tuning.
    ///
    /// # Errors
    /// The log cannot be read or is not trusted, or its plan has changed.
    pub fn resume(directory: &Path, place: SearchPlace<'a>) -> anyhow::Result<Self> {
        Self::of(OpenSearch::resume(directory, place)?)
    }

    fn of(opened: OpenSearch<'a, Log>) -> anyhow::Result<Self> {
        let plan = opened.log.question.searched.parse()?;
        let Some(designed) = plan.designed.clone() else {
            return usage("the plan has no `[factors]`", "begin another tuning");
        };

        Ok(Self { opened, plan, designed })
    }

    /// Measures until there is a result; returns `None` if the time is up, or the operator
    /// interrupts it.
    ///
    /// # Errors
    /// A phase cannot be measured, or the log cannot be written.
    pub fn search(&mut self, deadline: Deadline) -> anyhow::Result<Option<TuneOutcome>> {
        // A run watches for signals, too, but one may come between two runs.
        let stop = runner::stop::watch()?;
        loop {
            if stop.load(SeqCst) {
                return Ok(None);
            }
            let phase = match next(self.designed.factors.len(), &self.opened.log.ended()) {
                Next::End(outcome) => return Ok(Some(outcome)),
                Next::Measure(phase) => phase,
            };

            (self.opened.place.say)(&self.view().phase(&phase));
            let result = match self.measure(&phase, &stop, deadline)? {
                TrialEnd::Interrupted => return Ok(None),
                TrialEnd::TimeUp(result) => {
                    (self.opened.place.say)(&self.view().result(&result));
                    return Ok(None);
                }
                TrialEnd::Unusable(why) => anyhow::bail!(why),
                TrialEnd::Judged(result) => result,
            };

            (self.opened.place.say)(&self.view().result(&result));
            self.opened.end(&phase, result)?;
        }
    }

    /// Returns the directory of the tuning.
    pub fn directory(&self) -> &Path {
        &self.opened.directory
    }

    /// Returns the run of the screening, which has the effects of all levels; `None` before its
    /// first repeat has ended.
    pub fn screening_run(&self) -> Option<PathBuf> {
        let mut phases = self.opened.log.trials().iter();
        let screening = phases.find(|logged| logged.trial == Phase::Screening)?;
        let run = screening.run.as_deref()?;
        Some(self.opened.directory.join(RUNS).join(run))
    }

    /// Returns the option, with a space before it, without which this tuning is not resumed.
    pub fn trust_option(&self) -> &'static str {
        trust_option(&self.plan)
    }

    /// Returns what the tuning has found out, for printing.
    pub fn view(&self) -> TuneView {
        self.opened.log.view(&self.designed)
    }

    fn measure(
        &mut self,
        phase: &Phase,
        stop: &AtomicBool,
        deadline: Deadline,
    ) -> anyhow::Result<TrialEnd<PhaseResult>> {
        let question = self.opened.log.question.clone();
        let measuring =
            Measuring { phase, question: &question, plan: &self.plan, designed: &self.designed };
        let limits = TrialLimits { repeats_max: question.repeats_max, stop, deadline };
        self.opened.measure(phase, &measuring, limits)
    }
}

/// Reads what a list shows of the tuning in a directory.
///
/// # Errors
/// The log cannot be read, or is damaged.
pub(crate) fn outline(directory: &Path) -> anyhow::Result<SearchOutline> {
    // Nothing that the log names is run.
    let log = Log::read(directory, true)?;
    let designed = log.question.searched.parse()?.designed.context("its plan has no factors")?;

    let view = log.view(&designed);
    let (state, result) = match next(designed.factors.len(), &view.ended) {
        Next::Measure(phase) => (RunState::Incomplete, view.phase(&phase)),
        Next::End(outcome) => (RunState::Complete, first_line(&view.answer(&outcome))),
    };
    Ok(SearchOutline { step: view.step, target_count: view.target_count, state, result })
}

/// Refuses a plan in which the question has no answer, or several.
fn check(question: &Question, plan: &Plan) -> anyhow::Result<()> {
    Log::refuse_several_loads(plan)?;
    if plan.designed.is_none() {
        let help = "name options with their levels: `docs/designs.md`";
        return usage("the plan has no `[factors]` to choose from", help);
    }

    let workload = &plan.variants[0].workload;
    let steps = workload.steps();
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    for step in question.goal.steps() {
        if !names.contains(&step) {
            return Err(unknown_step(step, names).into());
        }
    }

    let step = &question.goal.step;
    // With a rate, throughput is the same whatever the options are.
    if let StepRate::Given(_) = workload.step_rate(step) {
        let message = format!("the step `{step}` has a rate, so its throughput cannot grow");
        return usage(message, "remove the rate, or choose another step");
    }

    Ok(())
}
