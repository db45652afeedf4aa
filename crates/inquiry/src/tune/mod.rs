//! Finds the smallest configuration that is shown to be better than the base.
//!
//! `analysis::tune` decides what is measured next. Here each phase is measured as a run, and logged
//! in `tune.json`, from which an interrupted tuning goes on. `docs/tune.md` has the rules.

mod log;
mod phase;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use analysis::tune::{Goal, Next, Outcome, Phase, PhaseResult, next};
use plan::{Designed, Plan};
use report::{TuneView, TunedFactor};
use runner::PlanRequest;
use runner::failure::usage;

use self::log::{Log, Question};
use self::phase::Measuring;
use crate::reading::unknown_step;
use crate::search::{
    Deadline, Measured, SearchLog, SearchPlace, SearchRuns, SearchedPlan, trust_option,
};

/// A configuration to search for.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// The plan, which has the factors.
    pub plan: PlanRequest,
    /// The step whose throughput is to grow, and those that must not suffer.
    pub goal: Goal,
    /// The repeats after which a race ends.
    pub repeats_max: u32,
}

/// A search for a configuration.
pub struct Tuning<'a> {
    directory: PathBuf,
    log: Log,
    plan: Plan,
    designed: Designed,
    place: SearchPlace<'a>,
}

impl<'a> Tuning<'a> {
    /// Begins a tuning: creates its directory and its log.
    ///
    /// # Errors
    /// The question has no answer in this plan, or the directory can't be written.
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
        let directory = log.create(&place.base.results, &name)?;
        Self::open(directory, log, place)
    }

    /// Goes on with a tuning.
    ///
    /// # Errors
    /// The log can't be read or is not trusted, or its plan has changed.
    pub fn resume(directory: &Path, place: SearchPlace<'a>) -> anyhow::Result<Self> {
        let log = Log::read(directory, place.is_trusted)?;
        Self::open(directory.to_owned(), log, place)
    }

    /// Returns a tuning whose plan has not changed since it began.
    fn open(directory: PathBuf, log: Log, place: SearchPlace<'a>) -> anyhow::Result<Self> {
        log.refuse_changed_plan()?;
        let plan = log.question.searched.parse()?;
        let Some(designed) = plan.designed.clone() else {
            return usage("the plan has no `[factors]`", "begin another tuning");
        };

        Ok(Self { directory, log, plan, designed, place })
    }

    /// Measures until there is a result; returns `None` if the time is up, or the operator
    /// interrupts it.
    ///
    /// # Errors
    /// A phase can't be measured, or the log can't be written.
    pub fn search(&mut self, deadline: Deadline) -> anyhow::Result<Option<Outcome>> {
        // A run watches for signals, too, but one may come between two runs.
        let stop = runner::stop::watch()?;
        loop {
            if stop.load(SeqCst) {
                return Ok(None);
            }
            let phase = match next(self.designed.factors.len(), &self.log.ended()) {
                Next::End(outcome) => return Ok(Some(outcome)),
                Next::Measure(phase) => phase,
            };

            (self.place.say)(&self.view().phase(&phase));
            let result = match self.measure(&phase, &stop, deadline)? {
                Measured::Interrupted => return Ok(None),
                Measured::Unusable(why) => anyhow::bail!(why),
                Measured::Judged(result) => result,
            };

            (self.place.say)(&self.view().result(&result));
            let index = self.log.begin(&phase);
            self.log.trials_mut()[index].result = Some(result);
            self.log.write(&self.directory)?;
        }
    }

    /// Returns the directory of the tuning.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the option, with a blank before it, without which this tuning is not resumed.
    pub fn trust_option(&self) -> &'static str {
        trust_option(&self.plan)
    }

    /// Returns what the tuning knows, to print it.
    pub fn view(&self) -> TuneView {
        let mut factors = Vec::new();
        for factor in &self.designed.factors {
            factors.push(TunedFactor { name: factor.name.clone(), levels: factor.levels.clone() });
        }

        TuneView {
            step: self.log.question.goal.step.clone(),
            factors,
            target_count: self.designed.targets.len(),
            ended: self.log.ended(),
        }
    }

    fn measure(
        &mut self,
        phase: &Phase,
        stop: &AtomicBool,
        deadline: Deadline,
    ) -> anyhow::Result<Measured<PhaseResult>> {
        let logged = self.log.begin(phase);
        let run = self.log.trials()[logged].run.clone();
        let question = self.log.question.clone();
        let measuring =
            Measuring { phase, question: &question, plan: &self.plan, designed: &self.designed };
        let runs = SearchRuns {
            place: self.place,
            directory: &self.directory,
            repeats_max: question.repeats_max,
            stop,
            deadline,
        };

        let log = &mut self.log;
        runs.measure(&measuring, run.as_deref(), |name| {
            log.trials_mut()[logged].run = Some(name.to_owned());
            log.write(&self.directory)
        })
    }
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
    // A rate is kept whatever the options are.
    if let Some(Some(_)) = workload.step_rate(step) {
        let message = format!("the step `{step}` has a rate, so its throughput can't grow");
        return usage(message, "remove the rate, or choose another step");
    }

    Ok(())
}
