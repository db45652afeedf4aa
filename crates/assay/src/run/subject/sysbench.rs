//! The sysbench microbenchmarks, as a plan has them, on an engine that speaks SQL.

use std::sync::atomic::AtomicBool;

use anyhow::Context;
use engine::{Engine, Error, Observer, SettleLimits, Settled, SqlEngine};
use plan::{SysbenchStep, SysbenchStepKind};
use record::{Check, Step, StepKind};
use workload::Task;
use workload::sysbench::{self, Sysbench};

use super::{Done, Planned, Rest, Subject, keep_server_threads, recorded};
use crate::run::display::Goal;

/// The microbenchmarks on an engine that speaks SQL, whose tables are there.
pub struct SqlSysbench<'a, E> {
    /// The engine.
    pub engine: &'a E,
    /// The microbenchmarks.
    pub workload: &'a mut Sysbench,
}

impl<E: SqlEngine> Subject for SqlSysbench<'_, E> {
    type Step = sysbench::Step;

    fn engine(&self) -> &dyn Engine {
        self.engine
    }

    fn observer(&self) -> Result<Box<dyn Observer>, Error> {
        self.engine.observer(self.workload.tables())
    }

    fn rows(&self) -> u64 {
        self.workload.rows()
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.workload.data_bytes())
    }

    fn describe(&self, step: &sysbench::Step, record: &mut Step) {
        record.row_bytes_mean = Some(self.workload.row_bytes() as f64);
        let (kind, main_op) = match self.workload.kind(*step) {
            SysbenchStepKind::Load => {
                record.rows_per_commit = Some(self.workload.plan().load_batch);
                (StepKind::Load, "insert")
            }
            SysbenchStepKind::Index => (StepKind::Index, "insert"),
            SysbenchStepKind::Settle => return,
            SysbenchStepKind::Run { test, .. } => {
                record.queries_per_event = Some(test.queries_per_event());
                record.commits_per_event = Some(test.commits_per_event());
                record.group = Some(test.group.name().into());
                record.deletes_per_event = test.deletes_per_event();
                let rows = self.workload.plan().rows;
                record.scanned_rows_per_event = (test.name == "scan").then_some(rows);
                (StepKind::Query, "event")
            }
        };
        record.kind = kind;
        record.main_op = Some(main_op.into());
    }

    fn goal(&self, step: &sysbench::Step) -> Goal {
        let plan = self.workload.plan();
        match self.workload.kind(*step) {
            SysbenchStepKind::Load => Goal::Rows(plan.rows * u64::from(plan.tables)),
            _ => Goal::Rows(0),
        }
    }

    fn tasks(&mut self, step: &sysbench::Step) -> anyhow::Result<Vec<Task>> {
        let mut tasks = self
            .workload
            .connections(*step, self.engine)
            .context("the step's connections can't be opened")?;
        keep_server_threads(self.engine, &mut tasks);
        Ok(tasks)
    }

    fn apply(&mut self, step: &sysbench::Step, done: Done<'_>) -> anyhow::Result<Vec<Check>> {
        let programs = done.worked.iter_mut().map(|worked| &mut worked.program);
        self.workload.apply(*step, programs)?;
        Ok(Vec::new())
    }

    fn check(&self) -> anyhow::Result<Vec<Check>> {
        let checks = self.workload.check(self.engine)?;
        Ok(checks.into_iter().map(recorded).collect())
    }

    fn settle(&self, _: Rest, limits: SettleLimits, stop: &AtomicBool) -> Result<Settled, Error> {
        self.engine.settle(self.workload.tables(), limits, stop)
    }
}

/// The steps of the plan.
pub fn steps(plan: &plan::Sysbench) -> Vec<Planned<sysbench::Step>> {
    let planned = |(number, step): (usize, &SysbenchStep)| {
        let work = |is_warm_up| sysbench::Step { number, is_warm_up };
        let planned = Planned {
            work: Some(work(false)),
            ..Planned::new(&step.name)
        };
        match &step.kind {
            SysbenchStepKind::Load | SysbenchStepKind::Index => planned,
            SysbenchStepKind::Settle => Planned {
                work: None,
                rest: Some(Rest::Usual),
                ..planned
            },
            SysbenchStepKind::Run {
                time,
                warmup,
                reported,
                ..
            } => Planned {
                time: Some(*time),
                warm_up: (!warmup.is_zero()).then(|| (work(true), *warmup)),
                is_shown: *reported,
                ..planned
            },
        }
    };
    plan.steps.iter().enumerate().map(planned).collect()
}
