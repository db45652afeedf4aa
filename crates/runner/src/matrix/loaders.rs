//! The cells whose database another target loads, and their order.

use plan::{Cell, Plan, Reuse};

use super::Task;

/// Moves each cell whose database another target loads after the first cell of that target; after the
/// first one of its repeat, if only the cells of a repeat share a load.
pub fn after_loaders(plan: &Plan, tasks: &mut Vec<Task>) {
    let mut waiting = std::mem::take(tasks);
    while !waiting.is_empty() {
        // The first one continues if all wait for each other.
        let is_ready = |task: &Task| is_after_loader(plan, tasks, &waiting, task);
        let next = waiting.iter().position(is_ready).unwrap_or(0);
        tasks.push(waiting.remove(next));
    }
}

/// Returns whether the cell that loads the database of `task` comes before it, or not at all.
fn is_after_loader(plan: &Plan, ordered: &[Task], waiting: &[Task], task: &Task) -> bool {
    let Some(loader) = plan.targets[task.cell.target].load_with else {
        return true;
    };

    let loads = |other: &Task| {
        let is_of_repeat = plan.reuse != Reuse::Repeat || other.cell.repeat == task.cell.repeat;
        other.cell.target == loader
            && other.cell.variant == task.cell.variant
            && other.cell.clients == task.cell.clients
            && is_of_repeat
    };
    ordered.iter().any(loads) || !waiting.iter().any(loads)
}

/// Returns a cell, and the one that would load its database if that is another target's: its build
/// belongs to the database's key, whether or not it is measured.
pub fn with_loader(plan: &Plan, cell: Cell) -> impl Iterator<Item = Cell> {
    let loader = plan.targets[cell.target].load_with;
    std::iter::once(cell).chain(loader.map(|target| Cell { target, ..cell }))
}

#[cfg(test)]
mod tests {
    use crate::matrix::{Matrix, references};

    #[test]
    fn a_cell_comes_after_the_first_one_of_the_target_that_loads_its_database() {
        let upgraded = "new.default-from-old.default";
        assert_eq!(
            ordered("order = \"grouped\"\nreuse = \"run\""),
            ["old.default", upgraded, upgraded, "old.default"]
        );
        // Each repeat has a load of its own.
        assert_eq!(
            ordered("reuse = \"repeat\""),
            ["old.default", upgraded, "old.default", upgraded]
        );
    }

    /// Returns the names of the targets in the order in which their cells run.
    fn ordered(keys: &str) -> Vec<String> {
        let text = format!(
            "repeats = 2\n{keys}\n[workload.insert]\n\
             [build.old]\nsqlite = \"bundled\"\n[build.new]\nsqlite = \"bundled\"\n\
             [[target]]\nbuilds = [\"new\"]\nload-with = \"old.default\"\n\
             [[target]]\nbuilds = [\"old\"]\n"
        );
        let (plan, _) = plan::parse("plan.toml", &text, &[]).unwrap();
        let tasks = Matrix::begin(&plan, &references(&plan)).unwrap().tasks;
        tasks.iter().map(|task| plan.targets[task.cell.target].name.clone()).collect()
    }
}
