//! Estimates the time, the disk space and the connections that a run needs.

use std::time::Duration;

use engine::Needs;
use plan::{BuildSource, Plan, Rates, Reuse, SpeedBasis, StepRun, Variant};
use words::{CellKind, Engine};

use super::known_times::{CellOfPlan, KnownTimes};

/// A server's logs and system tables.
const SERVER_BYTES: u64 = 1_500_000_000;
/// The time of a measured step of an exact cell, in which an engine runs about 50 times slower.
const COUNTED_STEP: Duration = Duration::from_secs(10);
/// The time of a cell besides its steps: start, stop, checks.
pub const CELL_OVERHEAD: Duration = Duration::from_secs(5);
/// The longest time of a step that an estimate says, a thousand years: any sum of such times is a
/// `Duration`.
const TIME_MAX_S: f64 = 1_000.0 * 365.25 * 86_400.0;

/// The estimated needs of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    /// The time of all cells, which run one after the other.
    pub time: Duration,
    /// The space of the cells that have their data at the same time, with their replicas; each cell
    /// removes its data.
    pub disk_bytes: u64,
    /// The part of that space that loads write for sure.
    pub loaded_bytes: u64,
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

/// Returns the needs of a cell from a server that Assay did not start.
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
    let mut all = Estimate::default();
    let mut before: Option<&plan::Cell> = None;
    // The space of the cells that have their data at the same time as the last one.
    let mut disk_bytes = 0_u64;
    let mut loaded_bytes = 0_u64;
    for cell in cells {
        if !before.is_some_and(|other| take_turns(plan, other, cell)) {
            disk_bytes = 0;
            loaded_bytes = 0;
        }

        let needs = of_cell(plan, cell, known);
        disk_bytes = disk_bytes.saturating_add(needs.disk_bytes);
        loaded_bytes = loaded_bytes.saturating_add(needs.loaded_bytes);
        all = Estimate {
            time: all.time + needs.time,
            disk_bytes: all.disk_bytes.max(disk_bytes),
            loaded_bytes: all.loaded_bytes.max(loaded_bytes),
            connections: all.connections.max(needs.connections),
            working: all.working.max(needs.working),
        };
        before = Some(cell);
    }
    all
}

/// Returns whether two cells, one after the other, are measured at the same time. Counted work
/// depends on nobody's turns.
fn take_turns(plan: &Plan, one: &plan::Cell, other: &plan::Cell) -> bool {
    let is_of_round = plan::Cell { target: other.target, ..*one } == *other;
    plan.turns.is_some() && is_of_round && other.kind != CellKind::Exact
}

/// Returns the estimate of one cell, by the times of an earlier run as far as there is one.
pub fn of_cell(plan: &Plan, cell: &plan::Cell, known: Option<&KnownTimes>) -> Estimate {
    let variant = &plan.variants[cell.variant];
    let needs = variant.workload.needs();
    let target = &plan.targets[cell.target];
    let build = &plan.builds[target.build];
    let replicas = u64::from(plan.configs[target.config].replicas);
    let facts = build.engine.facts();

    // A server that Assay does not start keeps its data where it wants.
    let is_elsewhere = matches!(build.source, BuildSource::Url(_));
    let server_bytes = if facts.is_server() && !is_elsewhere { SERVER_BYTES } else { 0 };

    let size_factor = known.and_then(|known| known.size_factor(&cell_of_plan(plan, cell)));
    let stored_bytes = match size_factor {
        Some(factor) => (assumed_bytes(plan, cell) as f64 * factor) as u64,
        None => data_bytes(plan, cell, &plan.rates),
    };

    // A database that cells share is kept beside that of the cell, and one for each step after which
    // the plan keeps one.
    let is_shared = plan.reuse != Reuse::Off || plan.from.is_some();
    let copies = 1 + replicas + u64::from(is_shared) + plan.keep_after.len() as u64;
    let times = step_times(plan, cell, known).into_iter().map(|step| step.time);

    Estimate {
        time: times.sum::<Duration>() + CELL_OVERHEAD,
        disk_bytes: stored_bytes.saturating_add(server_bytes).saturating_mul(copies),
        loaded_bytes: loaded_bytes(plan, cell).saturating_mul(1 + replicas),
        connections: connections(variant, cell.clients),
        working: needs.working_connections(cell.clients),
    }
}

/// Returns the size of a cell's tables or keys in bytes by Assay's own constants; 0 if Assay does not
/// store them.
pub fn assumed_bytes(plan: &Plan, cell: &plan::Cell) -> u64 {
    data_bytes(plan, cell, &Rates::default())
}

/// Returns the size of a cell's tables or keys in bytes as the plan expects it; 0 if Assay does not
/// store them.
pub fn expected_bytes(plan: &Plan, cell: &plan::Cell) -> u64 {
    data_bytes(plan, cell, &plan.rates)
}

/// Returns the estimated size of a cell's tables or keys in bytes, with these rates of writing.
fn data_bytes(plan: &Plan, cell: &plan::Cell, rates: &Rates) -> u64 {
    if !stores_data(plan, cell) {
        return 0;
    }
    let needs = plan.variants[cell.variant].workload.needs();
    needs.stored_bytes(cell.clients, rates, compresses(plan, cell))
}

/// Returns the part of [`data_bytes`] that loads write for sure.
fn loaded_bytes(plan: &Plan, cell: &plan::Cell) -> u64 {
    if !stores_data(plan, cell) {
        return 0;
    }
    let needs = plan.variants[cell.variant].workload.needs();
    needs.loaded_bytes(cell.clients, &plan.rates, compresses(plan, cell))
}

/// Returns whether a cell stores its data on this host: a server that Assay does not start keeps its
/// data where it wants.
fn stores_data(plan: &Plan, cell: &plan::Cell) -> bool {
    let build = &plan.builds[plan.targets[cell.target].build];
    build.engine.facts().stores_data && !matches!(build.source, BuildSource::Url(_))
}

/// Returns whether the engine of a cell compresses what it stores: RocksDB does unless a config says
/// otherwise.
fn compresses(plan: &Plan, cell: &plan::Cell) -> bool {
    let target = &plan.targets[cell.target];
    let config = &plan.configs[target.config];
    let last = config.set.iter().rfind(|(option, _)| option == "compression");
    let is_off = last.is_some_and(|(_, value)| value == "kNoCompression");
    plan.builds[target.build].engine == Engine::RocksDb && !is_off
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
    /// The step ends after a time that the plan gives.
    pub is_timed: bool,
}

/// The basis of an estimated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The plan gives it, or the rate at which the step writes.
    Plan,
    /// A step of the same name took this time in an earlier run, for as much work.
    Run,
    /// The plan's `rates`.
    Rates,
    /// The speed that Assay assumes of any engine.
    Assumed,
}

/// Returns the estimated time of each step that a cell runs: by an earlier run as far as there is
/// one, else by the plan's rates, else by Assay's constants.
pub fn step_times(plan: &Plan, cell: &plan::Cell, known: Option<&KnownTimes>) -> Vec<StepTime> {
    let mut times = times_at(plan, cell, &plan.rates);
    let Some(known) = known.filter(|_| cell.kind != CellKind::Exact) else {
        return times;
    };

    // Both lists have the same steps.
    let of_plan = cell_of_plan(plan, cell);
    for (step, assumed) in times.iter_mut().zip(assumed_step_times(plan, cell)) {
        let factor = known.time_factor(&of_plan, &step.name);
        if let Some(factor) = factor.filter(|_| !step.is_timed) {
            let seconds = (assumed.time.as_secs_f64() * factor).min(TIME_MAX_S);
            (step.time, step.basis) = (Duration::from_secs_f64(seconds), Basis::Run);
        }
    }
    times
}

/// Returns the time of each step that a cell runs by Assay's own constants, which runs are compared
/// with.
pub fn assumed_step_times(plan: &Plan, cell: &plan::Cell) -> Vec<StepTime> {
    times_at(plan, cell, &Rates::default())
}

/// Returns the time of each step that a cell runs, if the engine works at these rates.
fn times_at(plan: &Plan, cell: &plan::Cell, rates: &Rates) -> Vec<StepTime> {
    let workload = &plan.variants[cell.variant].workload;

    // Only the first repeat loads a database that all repeats share.
    let shares_load = matches!(plan.reuse, Reuse::Run | Reuse::Always);
    let first_step = match &plan.from {
        Some(step) => workload.steps_up_to(step).unwrap_or(0),
        None if shares_load && cell.repeat > 1 => workload.steps_that_load(),
        None => 0,
    };

    let mut times = Vec::new();
    for (number, step) in workload.steps().iter().enumerate().skip(first_step) {
        times.push(step_time(plan, cell, (number, step), rates));
    }
    times
}

/// Returns the time of a step, with its number in the workload.
fn step_time(
    plan: &Plan,
    cell: &plan::Cell,
    (number, step): (usize, &StepRun<'_>),
    rates: &Rates,
) -> StepTime {
    let workload = &plan.variants[cell.variant].workload;
    let is_exact = cell.kind == CellKind::Exact;

    let (time, basis) = match (step.time, step.measures) {
        (_, true) if is_exact => (COUNTED_STEP, Basis::Assumed),
        (Some(time), _) => (time + step.warmup, Basis::Plan),
        (None, false) => {
            let least = workload.policy().settle_at_least;
            (least.max(Duration::from_secs(1)), Basis::Assumed)
        }
        (None, true) => {
            let work = workload.needs().work_time(number, cell.clients, rates);
            let basis = match work.basis {
                SpeedBasis::Step => Basis::Plan,
                SpeedBasis::Rates => Basis::Rates,
                SpeedBasis::Assumed => Basis::Assumed,
            };
            (work.time + step.warmup, basis)
        }
    };

    StepTime { name: step.name.to_owned(), time, basis, is_timed: step.time.is_some() }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the space of a plan with two targets whose databases have one size, in bytes.
    fn disk_bytes(keys: &str) -> u64 {
        let text = format!(
            "{keys}\nrepeats = 3\n[workload.insert]\ninitial-rows = 1000000\n[build.lite]\n\
             sqlite = \"bundled\"\n[config.sqlite.a]\n[config.sqlite.b]\n"
        );
        of_plan(&plan::parse("plan.toml", &text, &[]).unwrap().0).disk_bytes
    }

    #[test]
    fn targets_in_turns_have_their_databases_at_the_same_time() {
        assert_eq!(disk_bytes("turns = \"100ms\""), 2 * disk_bytes(""));
    }
}
