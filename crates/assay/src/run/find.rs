//! `assay find`: searches for the highest rate at which a step meets its bounds. Each rate is a variant of the workload, so its
//! cells are recorded, resumed and shown like any others.

use analysis::{SearchState, SearchedTarget};
use plan::key_part;
use record::{RateSearch, Run, RunDir};

use super::matrix::{self, Matrix};
use super::{Display, steps_of_variants};
use crate::cli::{FindArgs, RunArgs};
use crate::only::CellFilters;
use crate::outcome::{Exit, UsageError};
use crate::plan_file::{self, PlanFile};

/// The variant without a rate.
const UNLIMITED: &str = "unlimited";
/// The length of a step that would end after a number of rows: each rate is measured for the same time.
const TIME: &str = "60s";

/// Begins a search and runs it to its end.
pub fn find(args: &FindArgs) -> anyhow::Result<Exit> {
    let ms = |bound: std::time::Duration| bound.as_secs_f64() * 1e3;
    super::run(&RunArgs {
        plan: args.plan.clone(),
        only: args.only.clone(),
        place: args.place.clone(),
        search: Some(RateSearch {
            step: args.step.clone(),
            p99_ms: args.p99.map(ms),
            lag_ms: args.lag.map(ms),
            rate_max: args.to,
            tolerance: args.tolerance / 100.0,
        }),
        ..RunArgs::default()
    })
}

/// Returns the plan with the first rate to try as its only variant, and without the steps after the searched one.
pub fn first_plan(file: &PlanFile, search: &RateSearch) -> anyhow::Result<PlanFile> {
    let error = |message: String, help: String| UsageError::new(message, Some(help));
    let [variant] = &file.plan.variants[..] else {
        return Err(has_variants().into());
    };
    if variant.name.is_some() {
        return Err(has_variants().into());
    }
    let workload = &variant.workload;
    let steps: Vec<&str> = workload.steps().iter().map(|step| step.name).collect();
    let step = search.step.as_str();
    let Some(at) = steps.iter().position(|name| *name == step) else {
        let message = format!("the plan has no step `{step}`");
        return Err(error(message, format!("its steps are `{}`", steps.join("`, `"))).into());
    };
    let Some(rate) = workload.step_rate(step) else {
        let can_be = steps
            .iter()
            .filter(|name| workload.step_rate(name).is_some());
        let can_be: Vec<&str> = can_be.copied().collect();
        let help = match can_be.is_empty() {
            true => "`find` needs the Insert Benchmark or sysbench's tests".to_owned(),
            false => format!("steps that can have one: `{}`", can_be.join("`, `")),
        };
        return Err(error(format!("step `{step}` can't have a rate"), help).into());
    };
    if rate.is_some() && search.rate_max.is_none() {
        let message = format!("the plan gives step `{step}` a rate, so it can't run without one");
        let help = "give the highest rate to try, per second and client, with `--to`";
        return Err(error(message, help.into()).into());
    }
    if search.lag_ms.is_some()
        && let Some(target) =
            (file.plan.targets.iter()).find(|target| !file.plan.has_replicas(target))
    {
        let message = format!(
            "`{}` has no replica whose lag could be bounded",
            target.name
        );
        let help = "add `replicas = 1` to its config, or `replica-url` to a build with a `url`, or leave it out with `--only`";
        return Err(error(message, help.into()).into());
    }
    let path = format!("workload.{}", workload.name());
    let mut sets = Vec::new();
    if at + 1 < steps.len() {
        sets.push(format!("{path}.steps=[\"{}\"]", steps[..=at].join("\",\"")));
    }
    if let Some(ms) = search.lag_ms {
        sets.push(format!("{path}.lag-at-most={ms}ms"));
    }
    let of_step = format!("{path}.step.{}", key_part(step));
    let is_given = |key: &str| {
        let key = format!("{of_step}.{key}");
        let mut values = file.plan.resolved.iter();
        values.any(|value| value.key == key && value.origin != "default")
    };
    if workload.steps()[at].time.is_none() && !is_given("rows") {
        sets.push(format!("{of_step}.time={TIME}"));
    }
    sets.push(match search.rate_max {
        None => format!("{path}.variant.{UNLIMITED}={{}}"),
        Some(rate) => rate_set(&path, step, rate),
    });
    plan_file::with_sets(file, sets)
}

fn has_variants() -> UsageError {
    UsageError::new(
        "the plan has variants, and `find` makes one for each rate",
        Some("remove the variants from the plan".into()),
    )
}

/// Returns the `--set` argument of the variant with a rate.
fn rate_set(path: &str, step: &str, rate: f64) -> String {
    let (variant, step) = (variant_of(rate), key_part(step));
    format!("{path}.variant.{variant}.step.{step}.rate={rate}")
}

/// Returns the name of the variant with a rate per second and client.
fn variant_of(rate: f64) -> String {
    // A name can't have a point.
    format!("rate-{rate}").replace('.', "_")
}

/// Returns the targets of a search that has not ended, each with the next rate to try per second and client.
pub fn next_rates(directory: &RunDir, run: &Run) -> anyhow::Result<Vec<(SearchedTarget, f64)>> {
    if run.search.is_none() {
        return Ok(Vec::new());
    }
    let figures = analysis::figures(std::slice::from_ref(directory))?;
    let searched = analysis::rate_searches(run, &figures).into_iter();
    let next = searched.filter_map(|it| match it.state {
        SearchState::Next(Some(rate)) => Some((it, rate)),
        _ => None,
    });
    Ok(next.collect())
}

/// Adds the rates to try next to the plan and to the record of a run. Returns the cells to measure; `None` if the search has
/// ended.
pub fn extend(
    file: &mut PlanFile,
    directory: &RunDir,
    run: &mut Run,
    display: &Display,
) -> anyhow::Result<Option<Matrix>> {
    let next = next_rates(directory, run)?;
    let Some(search) = run.search.as_ref().filter(|_| !next.is_empty()) else {
        return Ok(None);
    };
    let path = format!("workload.{}", file.plan.variants[0].workload.name());
    let mut sets: Vec<String> = Vec::new();
    for (_, rate) in &next {
        let set = rate_set(&path, &search.step, *rate);
        if !file.sets.contains(&set) && !sets.contains(&set) {
            sets.push(set);
        }
    }
    let repeats = file.plan.repeats;
    *file = plan_file::with_sets(file, sets)?;
    file.plan.repeats = repeats;
    let is_next = |cell: &record::CellRef| {
        next.iter().any(|(it, rate)| {
            cell.key.target == it.target
                && cell.key.clients == it.clients
                && cell.key.variant == Some(variant_of(*rate))
                && !cell.key.profiled
        })
    };
    let cells = matrix::references(&file.plan).into_iter();
    run.cells.extend(cells.filter(is_next));
    run.plan = file.to_record();
    run.workloads = steps_of_variants(&file.plan);
    directory.write_run(run)?;
    for (it, rate) in &next {
        let total = rate * f64::from(it.clients);
        display.say(&format!(
            "next: {} at {total}/s with {}",
            it.target,
            analysis::counted(it.clients as usize, "client")
        ));
    }
    let all = CellFilters::default();
    Matrix::resume(&file.plan, &run.cells, directory, &all).map(Some)
}
