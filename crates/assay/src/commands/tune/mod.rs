//! `assay tune`: finds the smallest configuration that is shown to be better than the base.
//!
//! `analysis::tune` decides what is measured next. Here each phase is measured as a run, and logged
//! in `tune.json`, from which an interrupted tuning goes on. `docs/tune.md` has the rules.

mod log;
mod phase;
mod printed;

use std::path::PathBuf;

use analysis::tune::{Goal, Next, Outcome, Phase, next};
use fs_err as fs;
use inquiry::reading::unknown_step;
use plan::{Designed, Plan};
use runner::failure::UsageError;

use self::log::{Log, Question, RUNS};
use self::phase::{Deadline, Measured, Measuring};
use crate::cli::TuneArgs;
use crate::commands::own_log;
use crate::exit::Exit;
use crate::output::{eprint_line, print};
use crate::run_view::RunView;

/// Begins a tuning, or goes on with one.
pub fn tune(args: &TuneArgs) -> anyhow::Result<Exit> {
    let deadline = Deadline::after(args.time);
    let (directory, log) = match &args.resume {
        Some(directory) => (directory.clone(), Log::read(directory, args.trust)?),
        None => begin(args)?,
    };

    let mut tuning = Tuning::open(directory, log, args, deadline)?;
    let Some(outcome) = tuning.search()? else {
        let directory = tuning.directory.display();
        let trust = own_log::trust_option(&tuning.plan);
        eprint_line!("not finished; `assay tune --resume {directory}{trust}` goes on");
        return Ok(Exit::Interrupted);
    };

    print(&printed::answer(&tuning.log, &tuning.designed, &outcome))?;
    print(&format!("{}\n", tuning.directory.display()))?;
    Ok(if matches!(outcome, Outcome::Better { .. }) { Exit::Ok } else { Exit::Invalid })
}

/// Creates the directory and the log of a tuning.
fn begin(args: &TuneArgs) -> anyhow::Result<(PathBuf, Log)> {
    let Some(path) = &args.plan.plan else {
        return usage("a tuning needs a plan", "`assay init ENGINE` writes one; add `[factors]`");
    };
    let path = fs::canonicalize(path).map_err(|error| UsageError::new(error.to_string(), None))?;

    let question = Question {
        plan_text: fs::read_to_string(&path)?,
        plan: path,
        sets: args.plan.sets.clone(),
        goal: Goal { step: args.step.clone().unwrap_or_default(), keeps: args.keep.clone() },
        repeats_max: args.repeats_max,
    };
    check(&question, &question.plan()?)?;

    let name = format!("tune-{}", question.goal.step);
    let directory = args.place.results.join(record::name_with_moment(&name));
    fs::create_dir_all(directory.join(RUNS))?;

    let log = Log::new(question);
    log.write(&directory)?;
    Ok((directory, log))
}

/// Refuses a plan in which the question has no answer, or several.
fn check(question: &Question, plan: &Plan) -> anyhow::Result<()> {
    let [variant] = &plan.variants[..] else {
        return usage("the plan has variants", "a tuning measures one: remove the others");
    };
    if plan.clients.len() > 1 {
        let help = "choose one: `--set clients=[8]`";
        return usage("the plan has several numbers of clients", help);
    }
    if plan.designed.is_none() {
        let help = "name options with their levels: `docs/designs.md`";
        return usage("the plan has no `[factors]` to choose from", help);
    }

    let steps = variant.workload.steps();
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    for step in question.goal.steps() {
        if !names.contains(&step) {
            return Err(unknown_step(step, names).into());
        }
    }

    let step = &question.goal.step;
    // A rate is kept whatever the options are.
    if let Some(Some(_)) = variant.workload.step_rate(step) {
        let message = format!("the step `{step}` has a rate, so its throughput can't grow");
        return usage(&message, "remove the rate, or choose another step");
    }

    Ok(())
}

fn usage<T>(message: &str, help: &str) -> anyhow::Result<T> {
    Err(UsageError::new(message, Some(help.into())).into())
}

/// A tuning that goes on.
struct Tuning<'a> {
    directory: PathBuf,
    log: Log,
    plan: Plan,
    designed: Designed,
    args: &'a TuneArgs,
    view: RunView,
    deadline: Deadline,
}

impl<'a> Tuning<'a> {
    /// Returns a tuning whose plan has not changed since it began.
    fn open(
        directory: PathBuf,
        log: Log,
        args: &'a TuneArgs,
        deadline: Deadline,
    ) -> anyhow::Result<Self> {
        let path = &log.question.plan;
        if fs::read_to_string(path)? != log.question.plan_text {
            let message = format!("`{}` has changed since the tuning began", path.display());
            return usage(&message, "begin another tuning: phases of two plans can't be joined");
        }

        let plan = log.question.plan()?;
        let Some(designed) = plan.designed.clone() else {
            return usage("the plan has no `[factors]`", "begin another tuning");
        };

        let view = RunView::of_series(&args.place);
        Ok(Self { directory, log, plan, designed, args, view, deadline })
    }

    /// Measures until there is a result; returns `None` if the time is up, or the operator
    /// interrupts it.
    fn search(&mut self) -> anyhow::Result<Option<Outcome>> {
        loop {
            let phase = match next(self.designed.factors.len(), &self.log.ended()) {
                Next::End(outcome) => return Ok(Some(outcome)),
                Next::Measure(phase) => phase,
            };
            eprint_line!("{}", printed::phase(&self.designed, &phase));
            match self.measure(&phase)? {
                Measured::Interrupted | Measured::TimeIsUp => return Ok(None),
                Measured::Judged(result) => {
                    eprint_line!("{}", printed::result(&self.designed, &result));
                    let index = self.log.begun(&phase);
                    self.log.phases[index].result = Some(result);
                    self.log.write(&self.directory)?;
                }
            }
        }
    }

    fn measure(&mut self, phase: &Phase) -> anyhow::Result<Measured> {
        let index = self.log.begun(phase);
        let run = self.log.phases[index].run.clone();
        let question = self.log.question.clone();
        let measuring = Measuring {
            phase,
            question: &question,
            plan: &self.plan,
            designed: &self.designed,
            directory: &self.directory,
            place: &self.args.place,
            view: &self.view,
            deadline: self.deadline,
            is_trusted: self.args.trust,
        };

        // The name of the run is kept as soon as there is one, so that a killed tuning goes on with
        // it.
        let (log, directory) = (&mut self.log, &self.directory);
        measuring.measure(run.as_deref(), &mut |name| {
            log.phases[index].run = Some(name.to_owned());
            log.write(directory)
        })
    }
}
