//! Estimates the time, the disk space and the connections that a run needs.

use std::time::Duration;

use engine::Needs;
use plan::{BuildSource, Plan, Reuse, Variant};
use words::CellKind;

use super::known_times::{CellOfPlan, KnownTimes};

/// A server's logs and system tables.
const SERVER_BYTES: u64 = 1_500_000_000;
/// The time of a measured step of an exact cell, in which an engine runs about 50 times slower.
const COUNTED_STEP: Duration = Duration::from_secs(10);
/// The time of a cell besides its steps: start, stop, checks.
const CELL_OVERHEAD: Duration = Duration::from_secs(5);

/// The estimated needs of a run.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The time of all cells, which run one after the other.
    pub time: Duration,
    /// The space of the largest cell with its replicas; each cell removes its data.
    pub disk_bytes: u64,
    /// The maximum number of connections at a time.
    pub connections: u32,
    /// The maximum number of connections that work at a time in a measured step.
    pub working: u32,
}

/// Returns the maximum number of connections that a cell opens at a time, with a reserve for
/// observers.
pub fn connections(variant: &Variant, clients: u32) -> u32 {
    let needs = variant.workload.needs();
    needs.connections(clients) + needs.observers()
}

/// Returns the needs of a cell from a server that assay did not start.
pub fn needs(variant: &Variant, clients: u32) -> Needs {
    let needs = variant.workload.needs();

    Needs {
        // Two more connections observe.
        connections: needs.connections(clients) + 2,
        makes_tables: needs.makes_tables(),
    }
}

/// Returns the estimate of a run of `plan`.
pub fn of_plan(plan: &Plan) -> Estimate {
    of_cells(plan, &plan.cells(), None)
}

/// Returns the estimate of some cells of `plan`, by the times of an earlier run as far as there is
/// one. Targets that take turns have their databases at the same time.
pub fn of_cells<'c>(
    plan: &Plan,
    cells: impl IntoIterator<Item = &'c plan::Cell>,
    known: Option<&KnownTimes>,
) -> Estimate {
    let together = sum(cells.into_iter().map(|cell| of_cell(plan, cell, known)));
    if plan.turns.is_none() {
        return together;
    }
    Estimate { disk_bytes: together.disk_bytes * plan.targets.len() as u64, ..together }
}

/// Returns the estimate of several cells together.
pub fn sum(cells: impl IntoIterator<Item = Estimate>) -> Estimate {
    let nothing = Estimate { time: Duration::ZERO, disk_bytes: 0, connections: 0, working: 0 };
    cells.into_iter().fold(nothing, |sum, cell| Estimate {
        time: sum.time + cell.time,
        disk_bytes: sum.disk_bytes.max(cell.disk_bytes),
        connections: sum.connections.max(cell.connections),
        working: sum.working.max(cell.working),
    })
}

/// Returns the estimate of one cell, by the times of an earlier run as far as there is one.
pub fn of_cell(plan: &Plan, cell: &plan::Cell, known: Option<&KnownTimes>) -> Estimate {
    let variant = &plan.variants[cell.variant];
    let needs = variant.workload.needs();
    let target = &plan.targets[cell.target];
    let build = &plan.builds[target.build];
    let copies = 1 + u64::from(plan.configs[target.config].replicas);
    let facts = build.engine.facts();

    // A server that assay does not start keeps its data where it wants.
    let is_elsewhere = matches!(build.source, BuildSource::Url(_));
    let server_bytes = if facts.is_server() && !is_elsewhere { SERVER_BYTES } else { 0 };

    let mut stored_bytes = data_bytes(plan, cell) as f64;
    if let Some(known) = known {
        stored_bytes *= known.size_factor(&cell_of_plan(plan, cell)).unwrap_or(1.0);
    }

    // A database that cells share is kept beside that of the cell.
    let copies = if plan.reuse == Reuse::Off { copies } else { copies + 1 };
    let times = step_times(plan, cell, known).into_iter().map(|step| step.time);

    Estimate {
        time: times.sum::<Duration>() + CELL_OVERHEAD,
        disk_bytes: copies * (stored_bytes as u64 + server_bytes),
        connections: connections(variant, cell.clients),
        working: needs.working_connections(cell.clients),
    }
}

/// Returns the estimated size of a cell's tables or keys in bytes; 0 if assay does not store them.
pub fn data_bytes(plan: &Plan, cell: &plan::Cell) -> u64 {
    let build = &plan.builds[plan.targets[cell.target].build];
    if !build.engine.facts().stores_data || matches!(build.source, BuildSource::Url(_)) {
        return 0;
    }
    plan.variants[cell.variant].workload.needs().stored_bytes(cell.clients)
}

/// The estimated time of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTime {
    /// The name of the step.
    pub name: String,
    /// The time, with its warm-up.
    pub time: Duration,
    /// The basis of the time.
    pub basis: Basis,
}

/// The basis of an estimated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The plan gives it.
    Plan,
    /// A step of the same name took this time in an earlier run, for as much work.
    Run,
    /// The speed that assay assumes of any engine.
    Assumed,
}

/// Returns the estimated time of each step that a cell runs.
pub fn step_times(plan: &Plan, cell: &plan::Cell, known: Option<&KnownTimes>) -> Vec<StepTime> {
    let workload = &plan.variants[cell.variant].workload;
    let of_plan = cell_of_plan(plan, cell);
    let is_exact = cell.kind == CellKind::Exact;

    // Only the first repeat loads a database that all repeats share.
    let shares_load = matches!(plan.reuse, Reuse::Run | Reuse::Always);
    let first_step = if shares_load && cell.repeat > 1 { workload.steps_that_load() } else { 0 };

    let mut times = Vec::new();
    for (number, step) in workload.steps().iter().enumerate().skip(first_step) {
        let (mut time, mut basis) = match (step.time, step.measures) {
            (_, true) if is_exact => (COUNTED_STEP, Basis::Assumed),
            (Some(time), _) => (time + step.warmup, Basis::Plan),
            (None, true) => (workload.needs().work_time(number, cell.clients), Basis::Assumed),
            (None, false) => {
                let least = workload.policy().settle_at_least;
                (least.max(Duration::from_secs(1)), Basis::Assumed)
            }
        };

        // Work that is counted takes its own time.
        let factor = known.and_then(|known| known.time_factor(&of_plan, step.name));
        if let Some(factor) = factor.filter(|_| basis == Basis::Assumed && !is_exact) {
            (time, basis) = (time.mul_f64(factor), Basis::Run);
        }

        times.push(StepTime { name: step.name.to_owned(), time, basis });
    }
    times
}

/// Returns a cell as an earlier run may know it.
fn cell_of_plan<'p>(plan: &'p Plan, cell: &plan::Cell) -> CellOfPlan<'p> {
    let target = &plan.targets[cell.target];
    CellOfPlan {
        target: &target.name,
        engine: plan.builds[target.build].engine,
        clients: cell.clients,
    }
}
