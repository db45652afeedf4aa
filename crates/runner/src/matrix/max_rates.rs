//! Rates that are shares of the highest one. Cells without such a rate measure the highest rates before
//! all others, and the slowest target decides: all that is compared then has the same load.
//!
//! The measured rates become a part of the recorded plan, as `measured-max` of a step. So a resumed run,
//! a process of its own and a load rank read the same rates from it.

use analysis::figures::Figures;
use analysis::search::achieved;
use plan::{Plan, ShareOfMax, Variant, key_part};
use record::{AchievedRate, CellRef, MaxRate};
use words::{CellKind, counted};

use super::growth::GrowingRun;
use super::only::CellFilters;
use super::repeats::raise_repeats;
use super::{Matrix, Task};
use crate::ground::events::Events;
use crate::prepare::plan_file::{self, PlanFile};

/// Takes the cells that need a highest rate which is not known yet out of a matrix.
pub(crate) fn take_waiting(plan: &Plan, matrix: &mut Matrix) -> Vec<CellRef> {
    let is_waiting = |task: &mut Task| !has_rates(plan, task.cell);
    let waiting = matrix.tasks.extract_if(.., is_waiting);
    waiting.map(|task| task.reference).collect()
}

/// Returns whether the rates of a cell are known.
fn has_rates(plan: &Plan, cell: plan::Cell) -> bool {
    let has_shares = match cell.kind {
        CellKind::Measured | CellKind::Profiled => true,
        // Counted work depends on no rate.
        CellKind::Unlimited | CellKind::Exact => false,
    };
    let shares = plan.variants[cell.variant].workload.shares_of_max();
    !has_shares || shares.iter().all(|(_, share)| share.max(cell.clients).is_some())
}

/// Adds the highest rates that were measured to the plan and to the record of a run. Returns those of
/// the `waiting` cells whose rates are then known.
pub(crate) fn fix(growing: GrowingRun<'_>, waiting: &[CellRef]) -> anyhow::Result<Matrix> {
    let GrowingRun { file, directory, run, events } = growing;
    let figures = analysis::figures::figures(std::slice::from_ref(directory))?;

    for (key, value) in newly_measured(&file.plan, &figures) {
        *file = plan_file::with_set_instead(file, &key, &value)?;
    }
    raise_repeats(&mut file.plan, &run.cells);

    run.plan = file.to_record();
    run.max_rates = all(&file.plan, &figures);
    directory.write_run(run)?;
    for rate in &run.max_rates {
        events.max_rate_known(rate);
    }

    let plan = &file.plan;
    let mut matrix = Matrix::resume(plan, &run.cells, directory, &CellFilters::default())?;
    matrix.tasks.retain(|task| waiting.contains(&task.reference));
    warn_of_unknown(plan, &matrix, events);
    matrix.tasks.retain(|task| has_rates(plan, task.cell));
    Ok(matrix)
}

/// Returns the rates of a plan whose highest rates it gives.
pub(crate) fn given(file: &PlanFile) -> Vec<MaxRate> {
    all(&file.plan, &Figures::default())
}

/// Returns the keys of the plan for highest rates that were measured, with their values: those of a step
/// for each number of clients.
fn newly_measured(plan: &Plan, figures: &Figures) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    for variant in plan.variants.iter().filter(|variant| variant.alone.is_none()) {
        for (step, share) in variant.workload.shares_of_max() {
            let mut maxima = Vec::new();
            for &clients in plan.clients.iter().filter(|clients| share.is_measured(**clients)) {
                // What is known stays: cells may have run with the rate.
                let known = share.max(clients);
                let max = known.or_else(|| slowest(&achieved_rates(figures, step, clients)));
                maxima.extend(max.map(|max| format!("{clients} = {max:.3}")));
            }
            if !maxima.is_empty() {
                let path = path_of(variant, step);
                keys.push((path, format!("{{ {} }}", maxima.join(", "))));
            }
        }
    }
    keys
}

/// Returns the key of the highest rates that were measured of a variant's step.
fn path_of(variant: &Variant, step: &str) -> String {
    let workload = variant.workload.name();
    let table = match &variant.name {
        Some(name) => format!("workload.{workload}.variant.{}", key_part(name)),
        None => format!("workload.{workload}"),
    };
    format!("{table}.step.{}.measured-max", key_part(step))
}

/// Returns what each cell achieved in a step without a rate.
fn achieved_rates(figures: &Figures, step: &str, clients: u32) -> Vec<AchievedRate> {
    let mut rates = Vec::new();
    for row in figures.unlimited.iter().filter(|row| row.step == step && row.valid) {
        let per_s = achieved(row).filter(|per_s| *per_s > 0.0 && row.cell.clients == clients);
        rates.extend(per_s.map(|per_s| AchievedRate {
            target: row.cell.target.clone(),
            variant: row.cell.variant.clone(),
            per_s,
        }));
    }
    rates
}

fn slowest(rates: &[AchievedRate]) -> Option<f64> {
    rates.iter().map(|rate| rate.per_s).reduce(f64::min)
}

/// Returns all rates of a plan that are shares of known highest rates.
fn all(plan: &Plan, figures: &Figures) -> Vec<MaxRate> {
    let mut rates = Vec::new();
    for variant in &plan.variants {
        for (step, share) in variant.workload.shares_of_max() {
            for &clients in &plan.clients {
                rates.extend(rate_of(variant, step, share, clients, figures));
            }
        }
    }
    rates
}

fn rate_of(
    variant: &Variant,
    step: &str,
    share: &ShareOfMax,
    clients: u32,
    figures: &Figures,
) -> Option<MaxRate> {
    let max = share.max(clients)?;
    let is_measured = share.is_measured(clients);
    let achieved = if is_measured { achieved_rates(figures, step, clients) } else { Vec::new() };
    Some(MaxRate {
        step: step.to_owned(),
        variant: variant.name.clone(),
        clients,
        max_per_s: max,
        percent: share.percent,
        rate_per_s: share.of(max),
        achieved,
    })
}

/// Warns of steps whose highest rates no cell could measure.
fn warn_of_unknown(plan: &Plan, matrix: &Matrix, events: &dyn Events) {
    let mut told = Vec::new();
    for cell in matrix.tasks.iter().map(|task| task.cell) {
        for (step, share) in plan.variants[cell.variant].workload.shares_of_max() {
            let place = (step, cell.clients);
            if share.max(cell.clients).is_none() && !told.contains(&place) {
                told.push(place);
                events.warn(
                    None,
                    &format!(
                        "no cell measured the highest rate of `{step}` with {}, so cells at a share of it were left \
                         out; `assay run --resume RUN` tries again",
                        counted(cell.clients as usize, "client")
                    ),
                );
            }
        }
    }
}
