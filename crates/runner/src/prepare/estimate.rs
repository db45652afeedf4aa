//! Estimates the time, the disk space and the connections that a run needs.

use std::time::Duration;

use engine::Needs;
use plan::{BuildSource, Plan, Reuse, Variant};
use words::CellKind;

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
    of_cells(plan, &plan.cells())
}

/// Returns the estimate of some cells of `plan`. Targets that take turns have their databases at
/// the same time.
pub fn of_cells<'c>(plan: &Plan, cells: impl IntoIterator<Item = &'c plan::Cell>) -> Estimate {
    let together = sum(cells.into_iter().map(|cell| of_cell(plan, cell)));
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

/// Returns the estimate of one cell.
pub fn of_cell(plan: &Plan, cell: &plan::Cell) -> Estimate {
    let variant = &plan.variants[cell.variant];
    let needs = variant.workload.needs();
    let target = &plan.targets[cell.target];
    let build = &plan.builds[target.build];
    let copies = 1 + u64::from(plan.configs[target.config].replicas);
    let facts = build.engine.facts();

    // A server that assay does not start keeps its data where it wants.
    let is_elsewhere = matches!(build.source, BuildSource::Url(_));
    let server_bytes = if facts.is_server() && !is_elsewhere { SERVER_BYTES } else { 0 };
    let stored_bytes =
        if facts.stores_data && !is_elsewhere { needs.stored_bytes(cell.clients) } else { 0 };

    // Only the first repeat loads a database that cells share; it is kept beside that of the cell.
    let shares_load = plan.reuse != Reuse::Off;
    let first_step = match variant.workload.steps_that_load() {
        loaded if shares_load && cell.repeat > 1 => loaded,
        _ => 0,
    };
    let copies = if shares_load { copies + 1 } else { copies };

    let settling = variant.workload.policy().settle_at_least;
    let steps = variant.workload.steps();

    let run_steps = steps.iter().enumerate().skip(first_step);
    let is_exact = cell.kind == CellKind::Exact;
    let times = run_steps.map(|(number, step)| match (step.time, step.measures) {
        (_, true) if is_exact => COUNTED_STEP,
        (Some(time), _) => time + step.warmup,
        (None, true) => needs.work_time(number, cell.clients),
        (None, false) => settling.max(Duration::from_secs(1)),
    });

    Estimate {
        time: times.sum::<Duration>() + CELL_OVERHEAD,
        disk_bytes: copies * (stored_bytes + server_bytes),
        connections: connections(variant, cell.clients),
        working: needs.working_connections(cell.clients),
    }
}
