//! Planned cells, as far as they can be read.

use record::{Cell, CellRef, LogEvent, RecordError, Run, RunDir, Status, StepReader};

/// A planned cell, as far as it can be read.
pub(super) struct LoadedCell {
    /// The cell; the plan's if it has no record.
    pub cell: Cell,
    /// The events of the engine's log; `None` if there is no such log, or it cannot be read.
    pub events: Option<Vec<LogEvent>>,
    /// The reason why the events cannot be read. Nothing that was measured depends on them.
    pub events_error: Option<RecordError>,
    /// The cell has a readable record.
    pub is_begun: bool,
    /// The reason why its record cannot be read; nothing of its steps is then known to be right.
    pub error: Option<RecordError>,
    /// The recorded steps.
    pub steps: Vec<StepReader>,
    /// The planned steps without a record.
    pub missing: Vec<StepReader>,
}

impl LoadedCell {
    /// Reads a cell.
    ///
    /// # Errors
    /// The run or its directory cannot be read.
    pub fn read(directory: &RunDir, run: &Run, reference: &CellRef) -> Result<Self, RecordError> {
        let directory = directory.cell(reference)?;
        let (record, error) = match directory.exists().then(|| directory.read()).transpose() {
            Ok(record) => (record, None),
            Err(error) => (None, Some(error)),
        };
        let is_begun = record.is_some();
        let cell = record.unwrap_or_else(|| planned(run, reference));

        let (events, events_error) = match directory.read_log_events() {
            Ok(events) => (events, None),
            // Without a cell nobody misses its log.
            Err(error) => (None, Some(error).filter(|_| is_begun)),
        };

        let steps = if is_begun { directory.read_steps()? } else { Vec::new() };
        let missing = directory.missing_steps(&cell, &steps);
        Ok(Self { cell, events, events_error, is_begun, error, steps, missing })
    }

    /// Returns true if the cell ended as planned, with all steps.
    pub fn is_whole(&self) -> bool {
        self.cell.status == Status::Complete && self.missing.is_empty()
    }
}

/// Returns a planned cell without a record.
fn planned(run: &Run, reference: &CellRef) -> Cell {
    let mut cell = Cell {
        key: reference.key.clone(),
        workload: reference.workload.clone(),
        ..Cell::default()
    };
    if let Some(target) = run.targets.iter().find(|target| target.name == reference.key.target) {
        cell.build.clone_from(&target.build);
        cell.config.clone_from(&target.config);
        cell.engine.clone_from(&target.engine);
    }

    let workload = run.workloads.iter().find(|workload| {
        workload.workload == reference.workload && workload.variant == reference.key.variant
    });

    if let Some(workload) = workload {
        cell.steps.clone_from(&workload.steps);
    }

    cell
}

/// Returns the cells of a run round by round, with the targets of a round in the plan's order.
pub(super) fn in_round_order(run: &Run) -> Vec<&CellRef> {
    let mut cells: Vec<&CellRef> = run.cells.iter().collect();
    let rounds =
        cells.chunk_by_mut(|a, b| (a.key.load(), a.key.repeat) == (b.key.load(), b.key.repeat));
    for round in rounds {
        round.sort_by_key(|cell| {
            run.targets.iter().position(|target| target.name == cell.key.target)
        });
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_come_in_the_plans_order_though_they_were_run_in_another() {
        let cell =
            |target: &str, clients, repeat| CellRef::new(target, "insert", None, clients, repeat);
        let order = [("b", 1, 1), ("a", 1, 1), ("a", 4, 1), ("b", 4, 1), ("a", 1, 2), ("b", 1, 2)];
        let run = Run {
            targets: ["a", "b"]
                .map(|name| record::Target {
                    name: name.into(),
                    build: name.into(),
                    config: String::new(),
                    engine: "null".into(),
                    set: Vec::new(),
                    declared: Vec::new(),
                    factors: Vec::new(),
                    files: Vec::new(),
                })
                .into(),
            cells: order.map(|(target, clients, repeat)| cell(target, clients, repeat)).into(),
            ..Run::default()
        };
        let cells: Vec<_> = in_round_order(&run)
            .iter()
            .map(|cell| (cell.key.target.as_str(), cell.key.clients, cell.key.repeat))
            .collect();
        assert_eq!(
            cells,
            [("a", 1, 1), ("b", 1, 1), ("a", 4, 1), ("b", 4, 1), ("a", 1, 2), ("b", 1, 2)]
        );
    }
}
