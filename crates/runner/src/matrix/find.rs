//! `assay find`: searches for the highest rate at which a step meets its bounds. Each rate is a
//! variant of the workload, so its cells are recorded, resumed and shown like any others.

use analysis::{
    figures::Figures,
    search::{SearchState, SearchedTarget, TRIES_MAX, rate_variant},
};
use plan::{Plan, StepRate, Variant, Workload, key_part};
use record::{CellKey, CellRef, RateSearch, Run, RunDir};

use super::Matrix;
use super::growth::GrowingRun;
use super::only::CellFilters;
use super::repeats::raise_repeats;
use crate::ground::events::{Events, NextRate};
use crate::ground::failure::UsageError;
use crate::prepare::plan_file::{self, PlanFile};

/// The variant without a rate.
const UNLIMITED: &str = "unlimited";
/// The length of a step that would end after a number of rows: each rate is measured for the same
/// time.
const TIME: &str = "60s";

/// Returns the plan with the first rate to try as its only variant, and without the steps after the
/// searched one.
pub fn first_plan(file: &PlanFile, search: &RateSearch) -> anyhow::Result<PlanFile> {
    let [Variant { name: None, workload, .. }] = &file.plan.variants[..] else {
        return Err(has_variants().into());
    };

    if file.plan.repeats == 0 {
        let message = "`find` measures time, so `repeats` cannot be 0";
        let help = "give the number of repeats: `--set repeats=1`";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    if file.plan.until_decided.is_some() {
        let message =
            "`find` compares nothing, so the plan's repeats cannot continue until all is decided";
        let help = "give the number of repeats: `--set repeats=1`";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    if let Some((step, _)) = workload.shares_of_max().first() {
        let message = format!("the rate of step `{step}` is a share of the highest one");
        let help = "`find` looks for a highest rate itself: remove the rate, or give it per second and client";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    let steps: Vec<&str> = workload.steps().iter().map(|step| step.name).collect();
    let step = search.step.as_str();
    let Some(at) = steps.iter().position(|name| *name == step) else {
        let help = format!("its steps are `{}`", steps.join("`, `"));
        return Err(UsageError::new(format!("the plan has no step `{step}`"), Some(help)).into());
    };
    refuse_unfit_rate(workload, &steps, search)?;

    // The search ends with the searched step, and a lag bound is also one of the plan.
    let path = format!("workload.{}", workload.name());
    let mut sets = Vec::new();
    if at + 1 < steps.len() {
        sets.push(format!("{path}.steps=[\"{}\"]", steps[..=at].join("\",\"")));
    }
    if let Some(ms) = search.lag_ms {
        sets.push(format!("{path}.lag-at-most={ms}ms"));
    }

    let step_path = format!("{path}.step.{}", key_part(step));
    let amounts = ["rows", "transactions"].map(|key| format!("{step_path}.{key}"));
    let mut values = file.plan.resolved.iter();
    let has_amount = values.any(|value| amounts.contains(&value.key) && value.origin != "default");
    if workload.steps()[at].time.is_none() && !has_amount {
        sets.push(format!("{step_path}.time={TIME}"));
    }

    sets.push(match search.rate_max {
        None => format!("{path}.variant.{UNLIMITED}={{}}"),
        Some(rate) => rate_set(&path, step, rate),
    });

    plan_file::with_sets(file, sets)
}

/// Refuses a step that cannot have a rate, and one whose rate the plan gives.
fn refuse_unfit_rate(
    workload: &Workload,
    steps: &[&str],
    search: &RateSearch,
) -> Result<(), UsageError> {
    let step = search.step.as_str();
    match workload.step_rate(step) {
        StepRate::CannotHave => {
            let mut fit = steps.to_vec();
            fit.retain(|name| workload.step_rate(name) != StepRate::CannotHave);
            let help = if fit.is_empty() {
                "list a step that runs for a time: `docs/find.md` has those that can have a rate"
                    .to_owned()
            } else {
                format!("steps that can have one: `{}`", fit.join("`, `"))
            };
            Err(UsageError::new(format!("step `{step}` cannot have a rate"), Some(help)))
        }
        StepRate::Given(_) if search.rate_max.is_none() => {
            let message =
                format!("the plan gives step `{step}` a rate, so it cannot run without one");
            let help = "give the highest rate to try, per second and client, with `--to`";
            Err(UsageError::new(message, Some(help.into())))
        }
        StepRate::Given(_) | StepRate::None => Ok(()),
    }
}

/// Refuses a bound on the lag of cells without a replica.
pub fn refuse_without_replicas(
    plan: &Plan,
    search: &RateSearch,
    cells: &[CellRef],
) -> Result<(), UsageError> {
    if search.lag_ms.is_none() {
        return Ok(());
    }

    for target in &plan.targets {
        let is_searched = cells.iter().any(|cell| cell.key.target == target.name);
        if is_searched && !plan.has_replicas(target) {
            let message = format!("`{}` has no replica whose lag could be bounded", target.name);
            let help = "add `replicas = 1` to its config, or `replica-url` to a build with a `url`, or leave it out with `--only`";
            return Err(UsageError::new(message, Some(help.into())));
        }
    }

    Ok(())
}

fn has_variants() -> UsageError {
    UsageError::new(
        "the plan has variants, but `find` creates its own, one for each rate",
        Some("remove them from the plan".into()),
    )
}

/// Returns the `--set` argument of the variant with a rate.
fn rate_set(path: &str, step: &str, rate: f64) -> String {
    let (variant, step) = (rate_variant(rate), key_part(step));
    format!("{path}.variant.{variant}.step.{step}.rate={rate}")
}

/// A target whose search continues.
pub struct NextTry {
    searched: SearchedTarget,
    /// The rate to try, per second and client.
    rate: f64,
}

impl NextTry {
    /// Returns the number of tries that the rate had before.
    fn tries_before(&self) -> u32 {
        let variant = Some(rate_variant(self.rate));
        let mut trials = self.searched.trials.iter();
        trials.find(|trial| trial.variant == variant).map_or(0, |trial| trial.tries.len() as u32)
    }

    /// Returns true if a cell is to be measured for this try. Each try has so many repeats, numbered
    /// after those of the tries before.
    fn has(&self, cell: &CellRef, repeats: u32) -> bool {
        let last_before = self.tries_before() * repeats;
        let is_of_try = cell.key.repeat > last_before && cell.key.repeat <= last_before + repeats;
        cell.key.kind.is_measured()
            && is_of(&self.searched, cell)
            && cell.key.variant == Some(rate_variant(self.rate))
            && is_of_try
    }

    /// Tells which rate is measured next, and what is known of others.
    fn tell(&self, events: &dyn Events) {
        let (sustained, missed) = analysis::search::bracket(&self.searched.trials);
        events.rate_chosen(&NextRate {
            target: &self.searched.target,
            clients: self.searched.clients,
            sustained,
            missed,
            is_again: self.tries_before() > 0,
            rate: self.rate,
        });
    }
}

/// Returns the targets of a search that continues, as far as they have a cell that matches.
pub fn next_rates(
    directory: &RunDir,
    run: &Run,
    only: &CellFilters,
) -> anyhow::Result<Vec<NextTry>> {
    if run.search.is_none() {
        return Ok(Vec::new());
    }

    let figures = analysis::figures::figures(std::slice::from_ref(directory))?;

    let mut next = Vec::new();
    for searched in analysis::search::rate_searches(run, &figures) {
        let SearchState::Next(rate) = searched.state else { continue };
        let mut cells = run.cells.iter();
        if cells.any(|cell| is_of(&searched, cell) && only.matches(cell)) {
            next.push(NextTry { searched, rate });
        }
    }

    Ok(next)
}

fn is_of(searched: &SearchedTarget, cell: &CellRef) -> bool {
    cell.key.target == searched.target && cell.key.clients == searched.clients
}

/// Returns true if the search of a target with a measured cell has stopped without an answer.
pub fn has_no_answer(run: &Run, figures: &Figures, is_measured: impl Fn(&CellKey) -> bool) -> bool {
    for searched in analysis::search::rate_searches(run, figures) {
        if !matches!(searched.state, SearchState::Stopped(_)) {
            continue;
        }
        let mut cells = run.cells.iter();
        if cells.any(|cell| is_of(&searched, cell) && is_measured(&cell.key)) {
            return true;
        }
    }

    false
}

/// Adds the rates to try next to the plan and to the record of a run. Returns the cells to measure;
/// `None` if the search of all targets that match has ended.
pub fn extend(
    mut growing: GrowingRun<'_>,
    search: &RateSearch,
    only: &CellFilters,
) -> anyhow::Result<Option<Matrix>> {
    let next = next_rates(growing.directory, growing.run, only)?;
    if next.is_empty() {
        return Ok(None);
    }

    *growing.file = plan_file::with_sets(growing.file, new_rate_sets(growing.file, search, &next))?;
    raise_repeats(&mut growing.file.plan, &growing.run.cells);

    let planned = growing.file.plan.repeats;
    let of_try = if search.repeats > 0 { search.repeats } else { planned };

    let is_next = |cell: &CellRef| next.iter().any(|next| next.has(cell, of_try));
    let round = growing.next_round(TRIES_MAX * search.repeats, is_next)?;

    for next in &next {
        next.tell(growing.events);
    }

    let matrix = growing.record(round)?;
    if matrix.tasks.is_empty() { Ok(None) } else { Ok(Some(matrix)) }
}

/// Returns the `--set` arguments of rates that the plan lacks.
fn new_rate_sets(file: &PlanFile, search: &RateSearch, next: &[NextTry]) -> Vec<String> {
    let path = format!("workload.{}", file.plan.variants[0].workload.name());
    let mut sets: Vec<String> = Vec::new();
    for NextTry { rate, .. } in next {
        let set = rate_set(&path, &search.step, *rate);
        if !file.sets.contains(&set) && !sets.contains(&set) {
            sets.push(set);
        }
    }

    sets
}
