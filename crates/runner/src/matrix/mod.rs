//! The cells of a run, and the cells that remain to be measured.
//!
//! A matrix has a cell for each target, variant, number of clients and repeat, in the plan's order.
//! The record names cells by their paths, so a run can be resumed with another plan than it began
//! with only if that plan has all of its cells ([`numbered`]).
//!
//! * [`pace`] estimates how long the rest takes, from the cells that were measured.
//! * `failures` says which cells are left out after a failure.
//! * `growth` adds cells while a search for a rate continues ([`find`]), or until all comparisons
//!   are decided (`decided`); [`against_itself`] adds those of a twin, and `repeats` more of the
//!   same.
//! * [`only`] selects cells, and `loaders` says which of them wait for another's database.
//! * `max_rates` measures the highest rates first, if the plan has shares of them.
//! * [`incomplete`] counts what is left for the next invocation, and [`known_times`] reads how long an
//!   earlier run took.

pub mod against_itself;
pub mod decided;
pub(crate) mod failures;
pub mod find;
pub(crate) mod growth;
pub mod incomplete;
pub mod known_times;
pub(crate) mod loaders;
pub(crate) mod max_rates;
pub mod only;
pub mod pace;
pub(crate) mod repeats;

use std::ops::Range;
use std::time::Duration;

use analysis::counted;
use anyhow::Context;
use plan::{Plan, Workload};
use record::{AloneStep, CellKey, CellRef, RunDir, Status, WorkloadSteps};
use words::CellKind;

use crate::prepare::estimate::{self, Estimate};
use only::CellFilters;
use pace::{Pace, about};

/// A cell to measure.
pub struct Task {
    /// The number in the run, from 1.
    pub number: usize,
    /// Identifies its record.
    pub reference: CellRef,
    /// The cell in the plan.
    pub cell: plan::Cell,
    /// The estimated time and space.
    pub estimate: Estimate,
}

/// The cells of a run that this invocation measures.
pub struct Matrix {
    /// The tasks, in the plan's order.
    pub tasks: Vec<Task>,
    /// The number of cells in the run.
    pub cell_count: usize,
    /// The number of cells that are already complete.
    pub complete_count: usize,
    /// The times of the complete cells.
    pub pace: Pace,
}

/// Returns the cells of a plan in order, as they are recorded.
pub fn references(plan: &Plan) -> Vec<CellRef> {
    let mut references = Vec::new();
    for cell in plan.cells() {
        let variant = &plan.variants[cell.variant];
        let key = CellKey {
            target: plan.targets[cell.target].name.clone(),
            variant: variant.name.clone(),
            clients: cell.clients,
            repeat: cell.repeat,
            kind: cell.kind,
        };
        references.push(CellRef::of(key, variant.workload.name()));
    }

    references
}

/// Returns the status of a cell; `None` if it was never started. A complete cell was measured to
/// its end and its record exists, whether its steps are valid or not.
pub fn status(directory: &RunDir, cell: &CellRef) -> anyhow::Result<Option<Status>> {
    let cell = directory.cell(cell)?;
    if !cell.exists() {
        return Ok(None);
    }

    let status = match cell.read() {
        Ok(record) if record.status != Status::Complete || cell.is_complete()? => record.status,
        // Its record is damaged.
        _ => Status::Incomplete,
    };
    Ok(Some(status))
}

/// Returns what the cells of all targets in a repeat have in common.
fn round_of(task: &Task) -> plan::Cell {
    plan::Cell { target: 0, ..task.cell }
}

impl Matrix {
    /// Returns the matrix of a new run: all `cells`, which belong to the plan.
    pub fn begin(plan: &Plan, cells: &[CellRef]) -> anyhow::Result<Self> {
        let mut tasks = numbered(plan, cells)?;
        loaders::after_loaders(plan, &mut tasks);
        Ok(Self { cell_count: tasks.len(), complete_count: 0, tasks, pace: Pace::default() })
    }

    /// Returns the matrix of a resumed run: the `cells` that match and are not complete.
    pub fn resume(
        plan: &Plan,
        cells: &[CellRef],
        directory: &RunDir,
        only: &CellFilters,
    ) -> anyhow::Result<Self> {
        let numbered = numbered(plan, cells)?;
        let rounds: Vec<plan::Cell> = numbered.iter().map(round_of).collect();

        let mut pace = Pace::default();
        let mut complete_count = 0;
        let mut tasks = Vec::new();
        for task in numbered {
            if status(directory, &task.reference)? != Some(Status::Complete) {
                if only.matches(&task.reference) {
                    tasks.push(task);
                }
                continue;
            }

            complete_count += 1;
            let cell = directory.cell(&task.reference)?.read()?;
            if let Some(ended) = cell.ended_unix_ns {
                let took = Duration::from_nanos(ended.saturating_sub(cell.started_unix_ns));
                // Cells that take turns share the time.
                let round = round_of(&task);
                let at_once = rounds.iter().filter(|other| **other == round).count() as u32;
                let sharers = if plan.turns.is_some() { at_once } else { 1 };
                pace.observe(task.cell, took / sharers, task.estimate.time);
            }
        }

        loaders::after_loaders(plan, &mut tasks);
        Ok(Self { tasks, cell_count: cells.len(), complete_count, pace })
    }

    /// Returns the tasks that are measured at the same time, from index `from` on: with turns, the
    /// targets of one variant, number of clients and repeat.
    pub fn group_at(&self, from: usize, takes_turns: bool) -> Range<usize> {
        let rest = &self.tasks[from..];
        // Counted work depends on nobody's turns.
        let takes_turns = takes_turns && rest[0].cell.kind != CellKind::Exact;

        let is_of_group = |task: &&Task| takes_turns && round_of(task) == round_of(&rest[0]);
        let others = rest.iter().skip(1).take_while(is_of_group).count();

        from..from + 1 + others
    }

    /// Returns whether the task after `index` is of another repeat than that one, or there is none.
    pub fn is_last_of_repeat(&self, index: usize) -> bool {
        let repeat_of = |task: &Task| (task.cell.kind, task.cell.repeat);
        let next = self.tasks.get(index + 1);
        next.map(repeat_of) != self.tasks.get(index).map(repeat_of)
    }

    /// Removes the tasks of a target from index `from` on, and returns their cells.
    pub fn leave_out(&mut self, target: &str, from: usize) -> Vec<CellKey> {
        let of_target = |task: &mut Task| task.reference.key.target == target;
        self.tasks.extract_if(from.., of_target).map(|task| task.reference.key).collect()
    }

    /// Returns the estimated time of the tasks from index `from` on.
    pub fn time_left(&self, from: usize) -> Duration {
        self.tasks[from..].iter().map(|task| self.pace.expect(task.cell, task.estimate.time)).sum()
    }

    /// Returns the matrix as one line.
    pub fn summary(&self, plan: &Plan) -> String {
        let mut text = factors(plan);
        if self.cell_count != plan.cells().len() {
            text += &format!(", {} of them in this run", self.cell_count);
        }

        if self.complete_count > 0 {
            text += &format!("; {} complete", self.complete_count);
        }

        let count = self.tasks.len();
        format!("{text}; {count} to be measured, {}", about(self.time_left(0)))
    }
}

/// Returns the factors of the matrix as text: `2 targets x 5 repeats = 10 cells`. Leaves out cells
/// that are not applicable.
pub fn factors(plan: &Plan) -> String {
    let variant_count = plan.variants.iter().filter(|variant| variant.name.is_some()).count();
    let is_open_ended = plan.until_decided.is_some();
    let factors = [
        (plan.targets.len(), "target", true),
        (variant_count, "variant", false),
        (plan.clients.len(), "client count", false),
        (plan.repeats as usize, "repeat", is_open_ended),
    ];

    let mut shown: Vec<String> = Vec::new();
    for (count, what, is_always_shown) in factors {
        // A factor of 1 changes nothing in the product.
        if is_always_shown || count > 1 {
            shown.push(counted(count, what));
        }
    }

    let product = plan.cells().len();
    let mut text = format!("{} = {}", shown.join(" x "), counted(product, "cell"));

    let left_out = plan.not_applicable().len() * plan.clients.len() * plan.repeats as usize;
    if left_out > 0 {
        text += &format!(" without {left_out} that are not applicable");
    }

    let unlimited = plan.cells().iter().filter(|cell| cell.kind == CellKind::Unlimited).count();
    if unlimited > 0 {
        let verb = if unlimited == 1 { "measures" } else { "measure" };
        text += &format!(", {unlimited} of which {verb} the highest rates");
    }

    if let Some(until_decided) = plan.until_decided {
        let time = about(until_decided.time);
        text += &format!("; more repeats until all is decided, {time} at most");
    }

    text
}

/// Returns the `cells` that match as tasks, measured or not; the plan must have all.
pub fn matching(plan: &Plan, cells: &[CellRef], only: &CellFilters) -> anyhow::Result<Vec<Task>> {
    let mut tasks = numbered(plan, cells)?;
    tasks.retain(|task| only.matches(&task.reference));
    Ok(tasks)
}

/// Returns all `cells` as tasks, measured or not; the plan must have them.
pub fn numbered(plan: &Plan, cells: &[CellRef]) -> anyhow::Result<Vec<Task>> {
    let known: Vec<(CellRef, plan::Cell)> =
        references(plan).into_iter().zip(plan.cells()).collect();

    let mut tasks = Vec::new();
    for (index, reference) in cells.iter().enumerate() {
        let found = known.iter().find(|(known, _)| known.path == reference.path);
        let (_, cell) = found.with_context(|| {
            format!("the record has a cell `{}` that its plan does not have", reference.path)
        })?;
        tasks.push(Task {
            number: index + 1,
            reference: reference.clone(),
            cell: *cell,
            estimate: estimate::of_cell(plan, cell, None),
        });
    }

    Ok(tasks)
}

/// Returns the names of a workload's steps.
pub fn step_names(workload: &Workload) -> Vec<String> {
    let steps = workload.steps();
    steps.iter().map(|step| step.name.to_owned()).collect()
}

/// Returns the steps of each variant of a plan.
pub fn steps_of_variants(plan: &Plan) -> Vec<WorkloadSteps> {
    let mut steps = Vec::new();
    for variant in &plan.variants {
        let alone = variant.alone.as_ref().map(|alone| AloneStep {
            step: alone.step.clone(),
            in_sequence: alone.in_sequence.clone(),
        });
        steps.push(WorkloadSteps {
            workload: variant.workload.name().into(),
            variant: variant.name.clone(),
            steps: step_names(&variant.workload),
            alone,
        });
    }

    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::preflight::not_applicable;

    const PLAN: &str = r#"
        clients = [1, 8]
        repeats = 2
        [workload.insert.variant.cached]
        initial-rows = 1000
        [workload.insert.variant.io]
        initial-rows = 5000
        [build.lite]
        sqlite = "bundled"
        [config.sqlite.a]
        [config.sqlite.b]
    "#;

    fn plan(text: &str) -> Plan {
        plan::parse("matrix.toml", text, &[]).unwrap().0
    }

    #[test]
    fn the_summary_has_every_factor_once() {
        let summary = |text: &str| {
            let plan = plan(text);
            let matrix = Matrix::begin(&plan, &references(&plan)).unwrap();
            matrix.summary(&plan)
        };
        let all = summary(PLAN);
        assert!(
            all.starts_with("2 targets x 2 variants x 2 client counts x 2 repeats = 16 cells; 16 to be measured, about "),
            "{all}"
        );
        let one = summary("[workload.insert]\n[build.lite]\nsqlite = \"bundled\"\n");
        assert!(one.starts_with("1 target = 1 cell; 1 to be measured, about "), "{one}");
    }

    #[test]
    fn unsupported_workloads_are_reported_for_the_selected_cells() {
        let plan = plan(
            "[workload.sysbench]\nprimary-key = false\n[build.lite]\nsqlite = \"bundled\"\n\
             [build.pg]\npostgres = \"15\"\n",
        );
        let cells = references(&plan);
        assert_eq!(cells.len(), 1, "only those of PostgreSQL");
        let messages = not_applicable(&plan, |_| true);
        let begin = "`lite.default` cannot be measured and is left out: SQLite ";
        assert!(messages.len() == 1 && messages[0].starts_with(begin), "{messages:?}");
        assert!(not_applicable(&plan, |cell| cell.key.target == "pg.default").is_empty());
    }

    #[test]
    fn a_part_of_the_cells_keeps_their_order() {
        let plan = plan(PLAN);
        let mut cells = references(&plan);
        cells.retain(|cell| cell.key.target == "lite.b" && cell.key.clients == 8);
        let matrix = Matrix::begin(&plan, &cells).unwrap();
        let numbers: Vec<usize> = matrix.tasks.iter().map(|task| task.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert!(matrix.summary(&plan).contains("= 16 cells, 4 of them in this run; 4 to be"));
        cells[0].path = "cells/other/c1/r1".into();
        assert!(Matrix::begin(&plan, &cells).is_err());
    }
}
