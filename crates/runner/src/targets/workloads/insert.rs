//! The Insert Benchmark, on SQL and key-value engines.

use anyhow::Context;
use engine::Table;
use plan::{InsertStepKind, WriteEnd};
use record::{StatementPlan, Step, StepKind, Warning};
use workload::insert::{self, Database, Insert};
use workload::{Check, DataState, Summaries, Task};

use super::{Totals, WorkloadRunner, none_failed};

/// Runs the Insert Benchmark; its tables exist.
pub struct InsertRunner<'a> {
    pub database: Box<dyn Database + 'a>,
    pub workload: &'a mut Insert,
}

impl InsertRunner<'_> {
    fn step(&self, number: usize) -> &plan::InsertStep {
        &self.workload.plan().steps[number]
    }
}

impl WorkloadRunner for InsertRunner<'_> {
    fn tables(&self) -> &[Table] {
        self.workload.tables()
    }

    fn rows(&self) -> u64 {
        self.workload.rows()
    }

    fn data_bytes(&self) -> u64 {
        (self.workload.rows() as f64 * self.workload.row_bytes_mean()) as u64
    }

    fn not_applicable(&self, step: usize) -> Option<String> {
        self.database.refuses(self.step(step))
    }

    fn describe(&self, step: usize, record: &mut Step) {
        let step = self.step(step);
        record.rows_per_commit = Some(step.rows_per_commit).filter(|rows| *rows > 0);
        record.row_bytes_mean = Some(self.workload.row_bytes_mean());

        let of_all = |rate: f64| rate * f64::from(self.workload.clients());
        let (kind, main_operation) = match step.kind {
            InsertStepKind::Settle => return,
            InsertStepKind::Load { .. } => (StepKind::Load, insert::INSERT),
            InsertStepKind::Write { rate, .. } => {
                record.insert_rate_target_rows_per_s = rate.map(of_all);
                (StepKind::Load, insert::INSERT)
            }
            InsertStepKind::Index { .. } => (StepKind::Index, insert::INSERT),
            InsertStepKind::Query { rate, .. } => {
                record.insert_rate_target_rows_per_s = (rate > 0.0).then(|| of_all(rate));
                (StepKind::Query, insert::QUERY)
            }
        };

        record.kind = kind;
        record.set_main_operation(main_operation);

        // The step still runs, and its record says what is missing.
        let why = self.database.not_applicable(self.workload, step);
        let warning = why.map(|text| Warning::new("workload::not-applicable", text));
        record.warnings.extend(warning);
    }

    fn planned_rows(&self, step: usize) -> u64 {
        match self.step(step).kind {
            InsertStepKind::Load { rows }
            | InsertStepKind::Write { until: WriteEnd::Rows(rows), .. } => {
                rows * self.workload.tables().len() as u64
            }
            _ => 0,
        }
    }

    fn tasks(&mut self, step: usize, _: bool) -> anyhow::Result<Vec<Task>> {
        self.database
            .tasks(self.workload, self.step(step))
            .context("the step's connections cannot be opened")
    }

    fn apply(&mut self, step: usize, summaries: &Summaries, totals: &Totals) -> Vec<Check> {
        let step = &self.workload.plan().steps[step].clone();

        let inserts = totals.get(insert::INSERT.name);
        // A try that seemed to fail may have inserted all the same.
        let is_flawless = none_failed(totals, insert::INSERT)
            && inserts.is_none_or(|inserts| inserts.retried == 0);

        self.workload.apply(step, summaries, is_flawless);

        let mut checks = Vec::new();
        if let Some(queries) = totals.get(insert::QUERY.name) {
            checks.extend(self.workload.check_point_queries(step, queries.ok, queries.rows));
        }
        checks
    }

    fn state(&self) -> Option<DataState> {
        Some(DataState::Insert(self.workload.ledgers().to_vec()))
    }

    fn restore(&mut self, state: DataState, _: usize) -> bool {
        match state {
            DataState::Insert(ledgers) => self.workload.restore(ledgers),
            _ => false,
        }
    }

    fn plans(&self, step: usize) -> anyhow::Result<Vec<StatementPlan>> {
        Ok(self.database.plans(self.workload, self.step(step))?)
    }

    fn check(&self) -> anyhow::Result<Vec<Check>> {
        let mut checks = Vec::new();
        for table in 0..self.workload.tables().len() {
            checks.extend(self.database.check(self.workload, table)?);
        }
        Ok(checks)
    }
}
