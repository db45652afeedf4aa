//! `--aa`: measures a target against itself. The differences show the noise of this machine.

use plan::{Order, Plan};
use record::CellRef;

use super::only::CellFilters;
use crate::ground::request::PlanRequest;
use crate::prepare::plan_file::{self, PlanFile};

/// The minimum number of repeats: fewer give no usable spread.
const REPEATS: u32 = 5;

/// Returns the plan of `file` for one of its targets against itself: the first of `planned` that
/// `only` matches. Changes are made as by `--set`, so that they are recorded and the run can be
/// resumed.
pub fn plan(
    file: &PlanFile,
    request: &PlanRequest,
    planned: &[CellRef],
    only: &CellFilters,
) -> anyhow::Result<PlanFile> {
    let mut sets = Vec::new();
    if let Some(cell) = planned.iter().find(|cell| only.matches(cell))
        && !file.plan.against_itself
    {
        sets.push(format!("against-itself=\"{}\"", cell.key.target));
    }

    let is_asked_for = |key: &str| {
        let keys = request.sets.iter().filter_map(|set| set.split_once('='));
        keys.into_iter().any(|(given, _)| given.trim() == key)
    };

    let is_fixed = file.plan.until_decided.is_none();
    if is_fixed && file.plan.repeats < REPEATS && !is_asked_for("repeats") {
        sets.push(format!("repeats={REPEATS}"));
    }

    if file.plan.order != Order::Interleaved && !is_asked_for("order") {
        sets.push("order=\"interleaved\"".to_owned());
    }

    plan_file::with_sets(file, sets)
}

/// Returns whether `only` matches a cell of a target against itself: a filter on the target also
/// matches its twin.
pub fn matches(only: &CellFilters, plan: &Plan, cell: &CellRef) -> bool {
    let [target, twin] = plan.targets.as_slice() else {
        return only.matches(cell);
    };

    let is_of_twin = cell.key.target == twin.name;
    let original = CellRef::of(cell.key.of_target(&target.name), &cell.workload);
    only.matches(cell) || is_of_twin && only.matches(&original)
}
