//! The order of cells whose database another target loads.

use plan::Plan;

use crate::matrix::Task;

/// Moves each cell whose database another target loads after the first cell of that target.
pub(crate) fn after_loaders(plan: &Plan, tasks: &mut Vec<Task>) {
    let mut waiting = std::mem::take(tasks);
    while !waiting.is_empty() {
        let is_ready = |task: &Task| {
            let Some(loader) = plan.targets[task.cell.target].load_with else {
                return true;
            };
            let loads = |other: &Task| {
                other.cell.target == loader
                    && other.cell.variant == task.cell.variant
                    && other.cell.clients == task.cell.clients
            };
            tasks.iter().any(loads) || !waiting.iter().any(loads)
        };
        let next = waiting.iter().position(is_ready).unwrap_or(0);
        tasks.push(waiting.remove(next));
    }
}
