//! Finds the version or the commit that changed a step.
//!
//! `analysis::bisect` decides what is measured next. Here each trial is measured as a run, and
//! logged in `bisect.json`, from which an interrupted search continues. `docs/bisect.md` has the
//! rules.

mod candidates;
mod log;
mod trial;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use analysis::bisect::{BisectOutcome, Link, MeasuredBy, Next, Trial, TrialKind, TrialResult};
use analysis::compare::{CompareOptions, compare};
use builds::Spec;
use plan::Plan;
use record::RunDir;
use report::{BisectView, ComparedRun, Comparison, RunState, SearchOutline, TableStyle};
use runner::PlanRequest;
use runner::failure::usage;
use runner::prepare::fetching::fetch_each;
use runner::prepare::target_builds::find_all;

use self::log::{Log, Question, Source};
use self::trial::{Measuring, in_one_line};
use crate::reading::unknown_step;
use crate::search::{
    Deadline, OpenSearch, RUNS, SearchLog, SearchPlace, SearchedPlan, TrialEnd, TrialLimits,
    first_line, trust_option,
};

pub use self::candidates::Candidates;

/// The log in the directory of a search.
pub(crate) const FILE: &str = Log::FILE;

/// The file with the chart of the candidates, in the directory of a search.
const DRAWING: &str = "bisect.svg";

/// A change to search for.
#[derive(Clone, Debug)]
pub struct BisectRequest {
    /// The plan; the candidates take the place of its builds.
    pub plan: PlanRequest,
    /// The candidates.
    pub candidates: Candidates,
    /// The step that changed.
    pub step: String,
    /// The measure that is compared: `throughput`, the name of a metric, `work` or
    /// `background-work`.
    pub metric: String,
    /// The config of all candidates; `None`: the plan's only one.
    pub config: Option<String>,
    /// The smallest change to find, as a share; `None`: it depends on that between the ends.
    pub threshold: Option<f64>,
    /// Measures the middle even if the ends do not differ.
    pub explores: bool,
    /// The repeats after which a candidate that is not decided is skipped.
    pub repeats_max: u32,
}

/// A search for a change.
pub struct Bisection<'a> {
    opened: OpenSearch<'a, Log>,
    plan: Plan,
}

impl<'a> Bisection<'a> {
    /// Begins a search: creates its directory and its log.
    ///
    /// # Errors
    /// The question has no answer in this plan, or the directory cannot be written.
    pub fn begin(request: &BisectRequest, place: SearchPlace<'a>) -> anyhow::Result<Self> {
        let Some(path) = &request.plan.plan else {
            return usage("a search needs a plan", "`assay init ENGINE` writes one");
        };

        let mut question = Question {
            searched: SearchedPlan::read(path, &request.plan.sets)?,
            step: request.step.clone(),
            metric: request.metric.clone(),
            config: request.config.clone().unwrap_or_default(),
            threshold: request.threshold,
            explores: request.explores,
            repeats_max: request.repeats_max,
        };

        // Everything that can be refused is, before a directory is created.
        let plan = question.searched.parse()?;
        check(&question, &plan)?;
        question.config = only_config(&plan, request.config.as_deref())?;
        let candidates = request.candidates.list(&plan, place.say)?;

        let log = Log::new(question, candidates);
        let name = format!("bisect-{}", log.question.step);
        Ok(Self { opened: OpenSearch::begin(log, &name, place)?, plan })
    }

    /// Continues a search.
    ///
    /// # Errors
    /// The log cannot be read or is not trusted, or its plan has changed.
    pub fn resume(directory: &Path, place: SearchPlace<'a>) -> anyhow::Result<Self> {
        let opened: OpenSearch<'a, Log> = OpenSearch::resume(directory, place)?;
        let plan = opened.log.question.searched.parse()?;
        Ok(Self { opened, plan })
    }

    /// Measures until there is a result; returns `None` if the operator interrupts it.
    ///
    /// # Errors
    /// A trial cannot be measured, and no candidate is the reason; or the log cannot be written.
    pub fn search(&mut self) -> anyhow::Result<Option<BisectOutcome>> {
        // A run watches for signals, too, but one may come between two runs.
        let stop = runner::stop::watch()?;
        loop {
            if stop.load(SeqCst) {
                return Ok(None);
            }
            let trial = match self.opened.log.search().next() {
                Next::End(outcome) => return Ok(Some(outcome)),
                Next::Measure(trial) => trial,
            };

            (self.opened.place.say)(&self.view().trial(&trial));
            if !self.fetch(&trial)? {
                continue;
            }

            match self.measure(&trial, &stop)? {
                TrialEnd::Interrupted | TrialEnd::TimeUp(_) => return Ok(None),
                TrialEnd::Unusable(why) => self.skip_or_fail(&trial, anyhow::Error::msg(why))?,
                TrialEnd::Judged(result) => self.add(&trial, result)?,
            }
        }
    }

    /// Returns the directory of the search.
    pub fn directory(&self) -> &Path {
        &self.opened.directory
    }

    /// Returns the option, with a space before it, without which this search is not resumed.
    pub fn trust_option(&self) -> &'static str {
        trust_option(&self.plan)
    }

    /// Returns what the search has found out, for printing.
    pub fn view(&self) -> BisectView {
        self.opened.log.view()
    }

    /// Returns the first comparison of the first trial, if that has a result.
    pub fn first_link(&self) -> Option<Link> {
        let result = self.opened.log.trials.first()?.result.as_ref()?;
        result.links.first().copied()
    }

    /// Draws the table of candidates as a file, and returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn draw(&self) -> anyhow::Result<PathBuf> {
        let drawing = self.view().drawing(self.threshold());
        record::replace_file(&self.opened.directory, DRAWING, drawing.as_bytes())?;
        Ok(self.opened.directory.join(DRAWING))
    }

    /// Returns what `assay compare` says of each change, and how the settings of its targets differ.
    ///
    /// # Errors
    /// A run cannot be read.
    pub fn explanations(
        &self,
        outcome: &BisectOutcome,
        style: TableStyle,
    ) -> anyhow::Result<Vec<String>> {
        let runs = self.runs_of_changes(outcome);
        runs.iter().map(|run| explanation(run, &self.opened.log.question.step, style)).collect()
    }

    /// Downloads the builds of a trial that are missing. Returns false if a candidate cannot be
    /// downloaded, which is then skipped.
    fn fetch(&mut self, trial: &Trial) -> anyhow::Result<bool> {
        let mut missing: Vec<Spec> = Vec::new();
        for index in trial.candidates() {
            let Source::Build(source) = &self.opened.log.candidates[index].source else {
                continue;
            };
            let found = find_all(std::slice::from_ref(source))?;
            missing.extend(found.iter().filter_map(|build| build.missing()).cloned());
        }
        if missing.is_empty() {
            return Ok(true);
        }

        let mut failed = None;

        // Only the first failure is reported; the other builds are fetched all the same.
        fetch_each(&missing, None, self.opened.place.say, |fetched| {
            failed = failed.take().or(fetched.err());
            Ok(())
        })?;
        match failed {
            None => Ok(true),
            Some(error) => self.skip_or_fail(trial, error).map(|()| false),
        }
    }

    /// Measures a trial. A candidate that cannot be measured is skipped.
    fn measure(
        &mut self,
        trial: &Trial,
        stop: &AtomicBool,
    ) -> anyhow::Result<TrialEnd<TrialResult>> {
        let question = self.opened.log.question.clone();
        let candidates = trial.candidates();
        let measuring = Measuring {
            trial: *trial,
            candidates: candidates
                .iter()
                .map(|at| self.opened.log.candidates[*at].clone())
                .collect(),
            question: &question,
            by: MeasuredBy::named(&question.metric),
            engine: candidates::engine(&self.plan)?,
            steps: steps_until(&self.plan, &question.step),
            workload: self.plan.variants[0].workload.name(),
            threshold: self.threshold(),
        };
        let limits = TrialLimits {
            repeats_max: question.repeats_max,
            stop,
            deadline: Deadline::after(None),
        };

        let measured = self.opened.measure(trial, &measuring, limits);
        let (Err(error), Some(middle)) = (&measured, trial.middle()) else {
            return measured;
        };

        let why = in_one_line(error);
        // Any other error, such as a full disk, would skip each candidate in turn.
        let build = format!("build `{}`", self.opened.log.candidates[middle].build);
        if why.contains(&build) { Ok(TrialEnd::Unusable(why)) } else { measured }
    }

    /// Returns the smallest change to find.
    fn threshold(&self) -> f64 {
        let question = &self.opened.log.question;
        if let Some(given) = question.threshold {
            return given;
        }

        // Half of the change between the ends, so that two equal steps are found.
        let ends =
            self.opened.log.trials.iter().find(|logged| logged.trial.kind == TrialKind::Ends);
        let result = ends.and_then(|logged| logged.result.as_ref());
        let least = question.least();
        result.map_or(least, |result| result.links[0].threshold_between(least))
    }

    fn add(&mut self, trial: &Trial, result: TrialResult) -> anyhow::Result<()> {
        let view = self.view();
        for (pair, link) in trial.pairs().iter().zip(&result.links) {
            (self.opened.place.say)(&format!("  {}", view.link(pair.older, pair.newer, link)));
        }

        self.opened.end(trial, result)
    }

    /// Skips the candidate of a trial. The ends of an interval cannot be skipped.
    fn skip_or_fail(&mut self, trial: &Trial, error: anyhow::Error) -> anyhow::Result<()> {
        let Some(candidate) = trial.middle() else {
            return Err(error.context("the ends of the search cannot be measured"));
        };

        let why = in_one_line(&error);
        (self.opened.place.say)(&self.view().skipped(candidate, &why));
        self.opened.log.unusable.insert(candidate, why);
        self.opened.log.write(&self.opened.directory)
    }

    /// Returns the runs that compared the neighbors of the changes.
    fn runs_of_changes(&self, outcome: &BisectOutcome) -> Vec<PathBuf> {
        let BisectOutcome::Changes(changes) = outcome else {
            return Vec::new();
        };
        let mut runs = Vec::new();
        for change in changes {
            // The ends of a change may have been compared several times: the last run says most.
            let ends = (change.older, change.newer);
            let with_run = self.opened.log.trials.iter().filter(|logged| {
                let trial = logged.trial;
                (trial.low, trial.high) == ends && trial.middle().is_none()
            });
            let run = with_run.filter_map(|logged| logged.run.as_ref()).next_back();
            runs.extend(run.map(|run| self.opened.directory.join(RUNS).join(run)));
        }
        runs
    }
}

/// Reads what a list shows of the search in a directory.
///
/// # Errors
/// The log cannot be read, or is damaged.
pub(crate) fn outline(directory: &Path) -> anyhow::Result<SearchOutline> {
    // Nothing that the log names is run.
    let view = Log::read(directory, true)?.view();
    let (state, result) = match view.search.next() {
        Next::Measure(trial) => (RunState::Incomplete, view.trial(&trial)),
        Next::End(outcome) => (RunState::Complete, first_line(&view.answer(&outcome))),
    };
    Ok(SearchOutline { step: view.step, target_count: view.titles.len(), state, result })
}

/// Returns the steps of a plan until this one: those after it would only take time.
fn steps_until<'p>(plan: &'p Plan, last: &str) -> Vec<&'p str> {
    let mut steps = Vec::new();
    for step in plan.variants[0].workload.steps() {
        steps.push(step.name);
        if *step.name == *last {
            break;
        }
    }
    steps
}

/// Refuses a plan in which the question has no answer, or several.
fn check(question: &Question, plan: &Plan) -> anyhow::Result<()> {
    Log::refuse_several_loads(plan)?;

    let steps = plan.variants[0].workload.steps();
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    if !names.contains(&question.step.as_str()) {
        return Err(unknown_step(&question.step, names).into());
    }

    Ok(())
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
            format!("the plan has no config `{name}`"),
            format!("its configs are `{}`", names.join("`, `")),
        ),
        (None, _) => usage(
            "the plan has several configs",
            format!("choose one with `--config`: `{}`", names.join("`, `")),
        ),
    }
}

/// Returns what `assay compare` says of the step in a run, and how the settings of its targets
/// differ.
fn explanation(run: &Path, step: &str, style: TableStyle) -> anyhow::Result<String> {
    let directory = RunDir::open(run)?;
    let record = directory.read_run()?;

    let mut figures = analysis::figures::figures(std::slice::from_ref(&directory))?;
    figures.retain_steps(&[step.to_owned()]);

    let options = CompareOptions { base: record.base.clone(), ..CompareOptions::default() };
    let compared = compare(&figures, &options);
    let effects = report::effects_of_matrices(&figures, &options);
    let findings = analysis::explain::explain(&figures, &compared);

    let comparison = Comparison {
        run: &record,
        runs: &[ComparedRun { name: run.display().to_string(), run: &record }],
        figures: &figures,
        compared: &compared,
        effects: &effects,
        findings: &findings,
    };
    Ok(format!("\n{}", report::compared(&comparison, style)))
}
