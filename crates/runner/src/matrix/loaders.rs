//! The cells whose database another target loads, and their order.

use plan::{Cell, Plan};

use super::Task;

/// Moves each cell whose database another target loads after the first cell of that target.
pub fn after_loaders(plan: &Plan, tasks: &mut Vec<Task>) {
    let mut waiting = std::mem::take(tasks);
    while !waiting.is_empty() {
        // The first one goes on if all wait for each other.
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
        other.cell.target == loader
            && other.cell.variant == task.cell.variant
            && other.cell.clients == task.cell.clients
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
    use super::after_loaders;
    use crate::matrix::{Matrix, references};

    #[test]
    fn a_cell_comes_after_the_first_one_of_the_target_that_loads_its_database() {
        let text = "repeats = 2\norder = \"grouped\"\nreuse = \"run\"\n[workload.insert]\n\
                    [build.old]\nsqlite = \"bundled\"\n[build.new]\nsqlite = \"bundled\"\n\
                    [[target]]\nbuilds = [\"new\"]\nload-with = \"old.default\"\n\
                    [[target]]\nbuilds = [\"old\"]\n";
        let (plan, _) = plan::parse("plan.toml", text, &[]).unwrap();
        let mut tasks = Matrix::begin(&plan, &references(&plan)).unwrap().tasks;
        after_loaders(&plan, &mut tasks);
        let names = tasks.iter().map(|task| plan.targets[task.cell.target].name.as_str());
        let upgraded = "new.default-from-old.default";
        assert_eq!(names.collect::<Vec<_>>(), ["old.default", upgraded, upgraded, "old.default"]);
    }
}
