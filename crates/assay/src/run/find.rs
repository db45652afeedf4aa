//! `assay find`: searches for the highest rate at which a step meets its bounds. Each rate is a
//! variant of the workload, so its cells are recorded, resumed and shown like any others.

use analysis::figures::Figures;
use analysis::search::{SearchState, SearchedTarget, rate_variant};
use plan::{Plan, key_part};
use record::{CellKey, CellRef, RateSearch, Run, RunDir};

use super::matrix::{self, Matrix};
use super::{Display, resume, steps_of_variants};
use crate::cli::{FindArgs, RunArgs};
use crate::only::CellFilters;
use crate::outcome::{Exit, UsageError};
use crate::plan_file::{self, PlanFile};

/// The variant without a rate.
const UNLIMITED: &str = "unlimited";
/// The length of a step that would end after a number of rows: each rate is measured for the same
/// time.
const TIME: &str = "60s";

/// Begins a search and runs it to its end.
pub fn find(args: &FindArgs) -> anyhow::Result<Exit> {
    let ms = |bound: std::time::Duration| bound.as_nanos() as f64 / 1e6;
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
            // The plan has them.
            repeats: 0,
        }),
        ..RunArgs::default()
    })
}

/// Returns the plan with the first rate to try as its only variant, and without the steps after the
/// searched one.
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
        let can_be = steps.iter().filter(|name| workload.step_rate(name).is_some());
        let can_be: Vec<&str> = can_be.copied().collect();
        let help = if can_be.is_empty() {
            "`find` needs the Insert Benchmark or sysbench's tests".to_owned()
        } else {
            format!("steps that can have one: `{}`", can_be.join("`, `"))
        };
        return Err(error(format!("step `{step}` can't have a rate"), help).into());
    };
    if rate.is_some() && search.rate_max.is_none() {
        let message = format!("the plan gives step `{step}` a rate, so it can't run without one");
        let help = "give the highest rate to try, per second and client, with `--to`";
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

/// Refuses a bound on the lag of cells without a replica.
pub fn refuse_without_replicas(
    plan: &Plan,
    search: &RateSearch,
    cells: &[CellRef],
) -> Result<(), UsageError> {
    if search.lag_ms.is_none() {
        return Ok(());
    }
    let is_searched = |target: &str| cells.iter().any(|cell| cell.key.target == target);
    let mut without = plan
        .targets
        .iter()
        .filter(|target| !plan.has_replicas(target) && is_searched(&target.name));
    without.next().map_or(Ok(()), |target| {
        let message = format!(
            "`{}` has no replica whose lag could be bounded",
            target.name
        );
        let help = "add `replicas = 1` to its config, or `replica-url` to a build with a `url`, or leave it out with `--only`";
        Err(UsageError::new(message, Some(help.into())))
    })
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

/// Returns the targets of a search that goes on, each with the next rate to try per second and
/// client. Only those with a cell that matches.
pub fn next_rates(
    directory: &RunDir,
    run: &Run,
    only: &CellFilters,
) -> anyhow::Result<Vec<(SearchedTarget, f64)>> {
    if run.search.is_none() {
        return Ok(Vec::new());
    }
    let figures = analysis::figures::figures(std::slice::from_ref(directory))?;
    let is_wanted = |it: &SearchedTarget| {
        let mut cells = run.cells.iter();
        cells.any(|cell| is_of(it, cell) && only.matches(cell))
    };
    let searched = analysis::search::rate_searches(run, &figures).into_iter();
    let next = searched.filter_map(|it| match it.state {
        SearchState::Next(rate) if is_wanted(&it) => Some((it, rate)),
        _ => None,
    });
    Ok(next.collect())
}

/// Returns true if a cell is to be measured for the next try of a rate. The first try has so many
/// repeats.
fn is_part_of_next_try(
    searched: &SearchedTarget,
    rate: f64,
    first_try: u32,
    cell: &CellRef,
) -> bool {
    let variant = Some(rate_variant(rate));
    let mut trials = searched.trials.iter();
    let is_second_try = trials.any(|trial| trial.variant == variant);
    is_of(searched, cell)
        && cell.key.variant == variant
        && (cell.key.repeat > first_try) == is_second_try
}

fn is_of(searched: &SearchedTarget, cell: &CellRef) -> bool {
    cell.key.target == searched.target && cell.key.clients == searched.clients
}

/// Returns true if the search of a target with a measured cell has stopped without an answer.
pub fn has_no_answer(run: &Run, figures: &Figures, is_measured: impl Fn(&CellKey) -> bool) -> bool {
    let searched = analysis::search::rate_searches(run, figures);
    let mut stopped =
        searched.iter().filter(|searched| matches!(searched.state, SearchState::Stopped(_)));
    stopped.any(|searched| {
        let mut cells = run.cells.iter();
        cells.any(|cell| is_of(searched, cell) && is_measured(&cell.key))
    })
}

/// Adds the rates to try next to the plan and to the record of a run. Returns the cells to measure;
/// `None` if the search of all targets that match has ended.
pub fn extend(
    file: &mut PlanFile,
    directory: &RunDir,
    run: &mut Run,
    display: &Display,
    only: &[String],
) -> anyhow::Result<Option<Matrix>> {
    if run.search.is_none() {
        return Ok(None);
    }
    let next = next_rates(directory, run, &CellFilters::new(only, &run.cells)?)?;
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
    *file = plan_file::with_sets(file, sets)?;
    resume::raise_repeats(&mut file.plan, &run.cells);
    let first_try = if search.repeats > 0 { search.repeats } else { file.plan.repeats };
    file.plan.repeats = file.plan.repeats.max(2 * search.repeats);
    let is_next = |cell: &CellRef| {
        let mut next = next.iter();
        !cell.key.profiled && next.any(|(it, rate)| is_part_of_next_try(it, *rate, first_try, cell))
    };
    let mut new = matrix::references(&file.plan);
    new.retain(|cell| is_next(cell) && !run.cells.contains(cell));
    run.cells.extend(new);
    // Not those of a second try, which may be missing.
    file.plan.repeats = first_try;
    resume::raise_repeats(&mut file.plan, &run.cells);
    run.plan = file.to_record();
    run.workloads = steps_of_variants(&file.plan);
    directory.write_run(run)?;
    for (it, rate) in &next {
        let (sustained, missed) = analysis::search::bracket(&it.trials);
        let known = [(sustained, "meets the bounds"), (missed, "misses a bound")];
        let known = known.iter().filter_map(|(rate, what)| {
            let rate = report::rate_text((*rate)?);
            Some(format!("{rate}/s {what}, "))
        });
        let again = if it.trials.iter().any(|trial| trial.variant == Some(rate_variant(*rate))) {
            "once more "
        } else {
            ""
        };
        display.say(&format!(
            "{} with {}: {}next {again}{}/s, {} per client",
            it.target,
            analysis::counted(it.clients as usize, "client"),
            known.collect::<String>(),
            report::rate_text(rate * f64::from(it.clients)),
            report::rate_text(*rate)
        ));
    }
    let all = CellFilters::default();
    let mut matrix = Matrix::resume(&file.plan, &run.cells, directory, &all)?;
    // Not what failed before.
    matrix.tasks.retain(|task| is_next(&task.reference));
    Ok(Some(matrix).filter(|matrix| !matrix.tasks.is_empty()))
}
