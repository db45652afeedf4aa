//! The sysbench microbenchmarks on SQL engines.

use engine::{SqlEngine, Table};
use plan::SysbenchStepKind;
use record::{StatementPlan, Step, StepKind};
use workload::sysbench::{self, Sysbench};
use workload::{Check, DataState, Summaries, Task};

use super::{Totals, WorkloadRunner, cannot_begin};

/// Runs the sysbench microbenchmarks; their tables exist.
pub struct SysbenchRunner<'a, E> {
    /// The engine.
    pub engine: &'a E,
    /// The microbenchmarks.
    pub workload: &'a mut Sysbench,
}

impl<E: SqlEngine> WorkloadRunner for SysbenchRunner<'_, E> {
    fn tables(&self) -> &[Table] {
        self.workload.tables()
    }

    fn rows(&self) -> u64 {
        self.workload.rows()
    }

    fn data_bytes(&self) -> u64 {
        self.workload.data_bytes()
    }

    fn describe(&self, step: usize, record: &mut Step) {
        let plan = self.workload.plan();
        record.row_bytes_mean = Some(self.workload.row_bytes() as f64);

        let (kind, main_operation) = match &plan.steps[step].kind {
            SysbenchStepKind::Settle => return,
            SysbenchStepKind::Load => {
                record.rows_per_commit = Some(plan.load_batch);
                (StepKind::Load, sysbench::INSERT)
            }
            SysbenchStepKind::Index => (StepKind::Index, sysbench::INSERT),
            SysbenchStepKind::Run { test, .. } => {
                record.queries_per_event = Some(test.queries_per_event());
                record.commits_per_event = Some(test.commits_per_event());
                record.group = Some(test.group.name().into());
                record.deletes_per_event = test.deletes_per_event();
                record.scanned_rows_per_event = (test.name == "scan").then_some(plan.rows);
                (StepKind::Query, sysbench::EVENT)
            }
        };

        record.kind = kind;
        record.set_main_operation(main_operation);
    }

    fn planned_rows(&self, step: usize) -> u64 {
        let plan = self.workload.plan();
        match plan.steps[step].kind {
            SysbenchStepKind::Load => plan.rows * u64::from(plan.tables),
            _ => 0,
        }
    }

    fn tasks(&mut self, number: usize, is_warm_up: bool) -> anyhow::Result<Vec<Task>> {
        let step = sysbench::Step { number, is_warm_up };
        self.workload.connections(step, self.engine).map_err(cannot_begin)
    }

    fn apply(&mut self, step: usize, summaries: &Summaries, _: &Totals) -> Vec<Check> {
        self.workload.apply(step, summaries);
        Vec::new()
    }

    fn state(&self) -> Option<DataState> {
        Some(DataState::Sysbench(self.workload.ledgers().to_vec()))
    }

    fn restore(&mut self, state: DataState, done: usize) -> bool {
        match state {
            DataState::Sysbench(ledgers) => self.workload.restore(ledgers, done),
            _ => false,
        }
    }

    fn plans(&self, number: usize) -> anyhow::Result<Vec<StatementPlan>> {
        let step = sysbench::Step { number, is_warm_up: false };
        Ok(self.workload.plans(step, self.engine)?)
    }

    fn check(&self) -> anyhow::Result<Vec<Check>> {
        Ok(self.workload.check(self.engine)?)
    }
}
