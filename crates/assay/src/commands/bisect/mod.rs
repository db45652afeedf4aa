//! `assay bisect`: finds the version or the commit that changed a step.
//!
//! `analysis::bisect` decides what is measured next. Here each trial is measured as a run, and
//! logged in `bisect.json`, from which an interrupted search goes on. `docs/bisect.md` has the
//! rules.

mod candidates;
mod log;
mod printed;
mod trial;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use analysis::bisect::{Finding, MeasuredBy, Next, Outcome, Trial, TrialKind, TrialResult};
use anyhow::Context as _;
use builds::Spec;
use fs_err as fs;
use inquiry::reading::unknown_step;
use plan::Plan;
use runner::events::PlanDiagnostics;
use runner::failure::{PlanRefused, UsageError};
use runner::prepare::fetching::fetch_each;

use self::log::{Log, LoggedTrial, Question, RUNS, Source};
use self::trial::{Measured, Measuring, in_one_line};
use crate::cli::BisectArgs;
use crate::commands::own_log;
use crate::commands::versus::target_builds::find_all;
use crate::exit::{Exit, report_error};
use crate::output::{eprint_line, print};
use crate::run_view::RunView;

/// The file with the chart of the candidates, in the directory of a search.
const DRAWING: &str = "bisect.svg";

/// The smallest change to find, where nothing is known about its size.
const THRESHOLD_MIN: f64 = 0.03;

/// Begins a search, or goes on with one.
pub fn bisect(args: &BisectArgs) -> anyhow::Result<Exit> {
    let found = match &args.resume {
        Some(directory) => Log::read(directory, args.trust).map(|log| (directory.clone(), log)),
        None => begin(args),
    };
    let searched = found.and_then(|(directory, log)| Bisection::open(directory, log, args));
    if args.predicate {
        return Ok(judge_candidate(searched));
    }

    let mut bisection = searched?;
    let Some(outcome) = bisection.search()? else {
        bisection.say_how_to_resume();
        return Ok(Exit::Interrupted);
    };
    bisection.print(&outcome)?;
    Ok(printed::exit(&outcome))
}

/// Creates the directory and the log of a search.
fn begin(args: &BisectArgs) -> anyhow::Result<(PathBuf, Log)> {
    let Some(path) = &args.plan.plan else {
        let help = "`assay init ENGINE` writes one";
        return Err(UsageError::new("a search needs a plan", Some(help.into())).into());
    };
    let path = fs::canonicalize(path).map_err(|error| UsageError::new(error.to_string(), None))?;

    let mut question = Question {
        plan_text: fs::read_to_string(&path)?,
        plan: path,
        sets: args.plan.sets.clone(),
        step: args.step.clone().unwrap_or_default(),
        metric: args.metric.clone(),
        config: args.config.clone().unwrap_or_default(),
        threshold: args.threshold.map(|percent| percent / 100.0),
        explores: args.explore,
        repeats_max: args.repeats_max,
    };

    let plan = question.plan()?;
    // Everything that can be refused is, before a directory is created.
    question.check(&plan)?;
    question.config = only_config(&plan, args.config.as_deref())?;
    let log = Log::new(question, candidates::candidates(args, &plan)?);

    let name = format!("bisect-{}", log.question.step);
    let directory = args.place.results.join(record::name_with_moment(&name));
    fs::create_dir_all(directory.join(RUNS))?;
    log.write(&directory)?;
    Ok((directory, log))
}

/// Judges the candidate of `--predicate` for `git bisect run`.
fn judge_candidate(searched: anyhow::Result<Bisection<'_>>) -> Exit {
    let mut bisection = match searched {
        Ok(bisection) => bisection,
        Err(error) => {
            report_error(&error);
            return Exit::Aborted;
        }
    };

    let result = match bisection.search() {
        Ok(Some(_)) => bisection.log.trials.first().and_then(|logged| logged.result.clone()),
        Ok(None) => return Exit::Interrupted,
        Err(error) => {
            report_error(&error);
            None
        }
    };

    let Some(link) = result.and_then(|result| result.links.first().copied()) else {
        return Exit::Skipped;
    };
    eprint_line!("{}", printed::link(&bisection.log, 0, 1, &link));
    match link.finding {
        Finding::Same => Exit::Ok,
        // The worse of two commits that differ, for git.
        Finding::Differs => Exit::Failed,
        Finding::Undecided => Exit::Skipped,
    }
}

/// A search that goes on.
struct Bisection<'a> {
    directory: PathBuf,
    log: Log,
    plan: Plan,
    args: &'a BisectArgs,
    view: RunView,
}

impl<'a> Bisection<'a> {
    /// Returns a search whose plan has not changed since it began.
    fn open(directory: PathBuf, log: Log, args: &'a BisectArgs) -> anyhow::Result<Self> {
        let path = &log.question.plan;
        if fs::read_to_string(path)? != log.question.plan_text {
            let message = format!("`{}` has changed since the search began", path.display());
            let help = "begin another search: trials of two plans can't be joined";
            return Err(UsageError::new(message, Some(help.into())).into());
        }
        let plan = log.question.plan()?;
        Ok(Self { directory, log, plan, args, view: RunView::of_series(&args.place) })
    }

    /// Measures until there is a result; returns `None` if the operator interrupts it.
    fn search(&mut self) -> anyhow::Result<Option<Outcome>> {
        // A run watches for signals, too, but one may come between two runs.
        let stop = runner::stop::watch()?;
        loop {
            if stop.load(SeqCst) {
                return Ok(None);
            }
            let trial = match self.log.search().next() {
                Next::End(outcome) => return Ok(Some(outcome)),
                Next::Measure(trial) => trial,
            };

            eprint_line!("{}", printed::trial(&self.log, &trial));
            if !self.fetch(&trial)? {
                continue;
            }

            match self.measure(&trial, &stop)? {
                Measured::Interrupted => return Ok(None),
                Measured::Unusable(why) => self.skip(&trial, why)?,
                Measured::Judged(result) => self.add(&trial, result)?,
            }
        }
    }

    /// Downloads the builds of a trial that are missing. Returns false if a candidate can't be
    /// downloaded, which is then skipped.
    fn fetch(&mut self, trial: &Trial) -> anyhow::Result<bool> {
        let mut missing: Vec<Spec> = Vec::new();
        for index in trial.candidates() {
            let Source::Build(source) = &self.log.candidates[index].source else {
                continue;
            };
            let found = find_all(std::slice::from_ref(source))?;
            missing.extend(found.iter().filter_map(|build| build.missing()).cloned());
        }
        if missing.is_empty() {
            return Ok(true);
        }

        let mut failed = None;

        // The first failure is told, and the other builds are fetched all the same.
        let say = |line: &str| eprintln!("{line}");
        fetch_each(&missing, None, &say, |fetched| {
            failed = failed.take().or(fetched.err());
            Ok(())
        })?;
        match failed {
            None => Ok(true),
            Some(error) => self.skip_or_fail(trial, error).map(|()| false),
        }
    }

    /// Measures a trial. A candidate that can't be measured is skipped.
    fn measure(&mut self, trial: &Trial, stop: &AtomicBool) -> anyhow::Result<Measured> {
        let logged = match self.log.begun(trial) {
            Some(index) => index,
            None => {
                self.log.trials.push(LoggedTrial { trial: *trial, run: None, result: None });
                self.log.trials.len() - 1
            }
        };

        // The name of the run is kept as soon as there is one, so that a killed search goes on with
        // it.
        let run = self.log.trials[logged].run.clone();
        let mut log = self.log.clone();
        let directory = self.directory.clone();
        let mut begun = |name: &str| {
            log.trials[logged].run = Some(name.to_owned());
            log.write(&directory)
        };

        let measured = self.measuring(trial)?.measure(run.as_deref(), stop, &mut begun);
        self.log = log;
        let (Err(error), Some(middle)) = (&measured, trial.middle()) else {
            return measured;
        };

        let why = in_one_line(error);
        // Any other error, such as a full disk, would skip each candidate in turn.
        let build = format!("build `{}`", self.log.candidates[middle].build);
        if why.contains(&build) { Ok(Measured::Unusable(why)) } else { measured }
    }

    fn measuring(&self, trial: &Trial) -> anyhow::Result<Measuring<'_>> {
        let question = &self.log.question;
        let variant = &self.plan.variants[0];

        // The steps after the one that is searched would only take time.
        let mut steps = Vec::new();
        for step in variant.workload.steps() {
            steps.push(step.name);
            if *step.name == *question.step {
                break;
            }
        }

        Ok(Measuring {
            trial: *trial,
            candidates: trial.candidates().iter().map(|at| &self.log.candidates[*at]).collect(),
            question,
            by: MeasuredBy::named(&question.metric),
            engine: candidates::engine(&self.plan)?,
            steps,
            workload: variant.workload.name(),
            threshold: self.threshold(),
            directory: &self.directory,
            place: &self.args.place,
            view: &self.view,
            is_trusted: self.args.trust,
        })
    }

    /// Returns the smallest change to find.
    fn threshold(&self) -> f64 {
        if let Some(given) = self.log.question.threshold {
            return given;
        }

        // Half of the change between the ends, so that two equal steps are found.
        let ends = self.log.trials.iter().find(|logged| logged.trial.kind == TrialKind::Ends);
        let result = ends.and_then(|logged| logged.result.as_ref());
        result.map_or(THRESHOLD_MIN, |result| result.links[0].threshold_between(THRESHOLD_MIN))
    }

    fn add(&mut self, trial: &Trial, result: TrialResult) -> anyhow::Result<()> {
        for (pair, link) in trial.pairs().iter().zip(&result.links) {
            eprint_line!("  {}", printed::link(&self.log, pair.older, pair.newer, link));
        }

        let index = self.log.begun(trial).context("the trial was not begun")?;
        self.log.trials[index].result = Some(result);
        self.log.write(&self.directory)
    }

    /// Skips the candidate of a trial. The ends of an interval can't be skipped.
    fn skip(&mut self, trial: &Trial, why: String) -> anyhow::Result<()> {
        self.skip_or_fail(trial, anyhow::Error::msg(why))
    }

    fn skip_or_fail(&mut self, trial: &Trial, error: anyhow::Error) -> anyhow::Result<()> {
        let Some(candidate) = trial.middle() else {
            return Err(error.context("the ends of the search can't be measured"));
        };

        let why = in_one_line(&error);
        let title = &self.log.candidates[candidate].title;
        eprint_line!(
            "  skipped `{}`: {}",
            report::terminal_text(title),
            report::terminal_text(&why)
        );
        self.log.unusable.insert(candidate, why);
        self.log.write(&self.directory)
    }

    fn say_how_to_resume(&self) {
        let trust = own_log::trust_option(&self.plan);
        eprint_line!(
            "interrupted; `assay bisect --resume {}{trust}` goes on",
            self.directory.display()
        );
    }

    /// Prints the table of all candidates, the answer, and the directory. Draws the table as a file.
    fn print(&self, outcome: &Outcome) -> anyhow::Result<()> {
        print(&printed::table(&self.log))?;
        print(&printed::answer(&self.log, outcome))?;
        for run in self.runs_of_changes(outcome) {
            print(&printed::explanation(&run, &self.log.question.step)?)?;
        }

        let drawing = printed::drawing(&self.log, self.threshold());
        record::replace_file(&self.directory, DRAWING, drawing.as_bytes())?;
        let chart = self.directory.join(DRAWING);
        print(&format!("chart: {}\n{}\n", chart.display(), self.directory.display()))
    }

    /// Returns the runs that compared the neighbors of the changes.
    fn runs_of_changes(&self, outcome: &Outcome) -> Vec<PathBuf> {
        let Outcome::Changes(changes) = outcome else {
            return Vec::new();
        };
        let mut runs = Vec::new();
        for change in changes {
            // The ends of a change may have been compared several times: the last run says most.
            let ends = (change.older, change.newer);
            let with_run = self.log.trials.iter().filter(|logged| {
                let trial = logged.trial;
                (trial.low, trial.high) == ends && trial.middle().is_none()
            });
            let run = with_run.filter_map(|logged| logged.run.as_ref()).next_back();
            runs.extend(run.map(|run| self.directory.join(RUNS).join(run)));
        }
        runs
    }
}

impl Question {
    /// Returns the plan with its changes.
    fn plan(&self) -> anyhow::Result<Plan> {
        let name = self.plan.display().to_string();
        match plan::parse(&name, &self.plan_text, &self.sets) {
            Ok((plan, _)) => Ok(plan),
            Err(errors) => {
                Err(PlanRefused(PlanDiagnostics::new(&errors, name, &self.plan_text, &self.sets))
                    .into())
            }
        }
    }

    /// Refuses a plan in which the question has no answer, or several.
    fn check(&self, plan: &Plan) -> anyhow::Result<()> {
        let [variant] = &plan.variants[..] else {
            return usage("the plan has variants", "a search measures one: remove the others");
        };
        if plan.clients.len() > 1 {
            let help = "choose one: `--set clients=[8]`";
            return usage("the plan has several numbers of clients", help);
        }

        let steps = variant.workload.steps();
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        if !names.contains(&self.step.as_str()) {
            return Err(unknown_step(&self.step, names).into());
        }

        Ok(())
    }
}

/// Returns the name of the config of all candidates: the chosen one, or the plan's only one.
fn only_config(plan: &Plan, chosen: Option<&str>) -> anyhow::Result<String> {
    let engine = candidates::engine(plan)?;
    let configs = plan.configs.iter().filter(|config| config.engine.name() == engine);
    let names: Vec<&str> = configs.map(|config| config.name.as_str()).collect();

    match (chosen, &names[..]) {
        (Some(name), _) if names.contains(&name) => Ok(name.to_owned()),
        (None, [only]) => Ok((*only).to_owned()),
        (Some(name), _) => usage(
            &format!("the plan has no config `{name}`"),
            &format!("its configs are `{}`", names.join("`, `")),
        ),
        (None, _) => usage(
            "the plan has several configs",
            &format!("choose one with `--config`: `{}`", names.join("`, `")),
        ),
    }
}

fn usage<T>(message: &str, help: &str) -> anyhow::Result<T> {
    Err(UsageError::new(message, Some(help.into())).into())
}
