//! The Insert Benchmark, as a plan has it, and on an engine that speaks SQL.

use std::sync::atomic::AtomicBool;

use anyhow::Context;
use engine::{
    Engine, Error, IndexStatements, Observer, Partitions, Session, SettleLimits, Settled, SqlEngine,
};
use plan::{Checks, IndexSet, InsertStep, InsertStepKind, Query, Tables};
use record::{Check, Step, StepKind, Warning};
use workload::Task;
use workload::insert::{self, Insert};

use super::{Done, Planned, Rest, Subject, keep_server_threads, recorded};
use crate::run::display::Goal;

/// The Insert Benchmark on an engine that speaks SQL.
pub struct SqlInsert<'a, E> {
    engine: &'a E,
    workload: &'a mut Insert,
    plan: &'a plan::Insert,
    clients: u32,
}

impl<'a, E: SqlEngine> SqlInsert<'a, E> {
    /// The benchmark, whose tables have been made.
    pub fn new(
        engine: &'a E,
        workload: &'a mut Insert,
        plan: &'a plan::Insert,
        clients: u32,
    ) -> Self {
        Self {
            engine,
            workload,
            plan,
            clients,
        }
    }
}

impl<E: SqlEngine> Subject for SqlInsert<'_, E> {
    type Step = insert::Step;

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
        Some(data_bytes(self.workload))
    }

    fn describe(&self, step: &insert::Step, record: &mut Step) {
        describe(self.workload, step, self.clients, record);
        let is_load = matches!(step.kind, insert::StepKind::Load { .. });
        if is_load
            && self.plan.bulk_load
            && self.workload.bulk_load(self.engine.dialect()).is_none()
        {
            record.warnings.push(Warning {
                code: "workload::no-bulk-load".into(),
                text: "`bulk-load` is not applicable: this engine has no such way, or clients share a table".into(),
            });
        }
    }

    fn goal(&self, step: &insert::Step) -> Goal {
        goal(self.workload, step)
    }

    fn tasks(&mut self, step: &insert::Step) -> anyhow::Result<Vec<Task>> {
        let mut tasks = self
            .workload
            .connections(step, self.engine)
            .context("the step's connections can't be opened")?;
        keep_server_threads(self.engine, &mut tasks);
        Ok(tasks)
    }

    fn apply(&mut self, step: &insert::Step, done: Done<'_>) -> anyhow::Result<Vec<Check>> {
        let checks = apply(self.workload, self.plan, step, done)?;
        let stores_data = self.engine.capabilities().stores_data;
        Ok(checks.into_iter().filter(|_| stores_data).collect())
    }

    fn check(&self) -> anyhow::Result<Vec<Check>> {
        if !self.engine.capabilities().stores_data {
            return Ok(Vec::new());
        }
        let mut checks: Vec<insert::Check> = Vec::new();
        let indexed = self.workload.is_indexed();
        for (number, table) in self.workload.tables().iter().enumerate() {
            match self.plan.terms.checks {
                Checks::Off => {}
                Checks::Keys => {
                    let mut session = self.engine.connect()?;
                    let dialect = self.engine.dialect();
                    let key_min = session.query_i64(&dialect.min_key(table))?;
                    let key_max = session.query_i64(&dialect.max_key(table))?;
                    checks.extend(self.workload.check_keys(number, key_min, key_max));
                }
                Checks::Full => {
                    let facts = self.engine.inspect(table, indexed)?;
                    checks.extend(self.workload.check(number, &facts));
                }
            }
        }
        Ok(checks.into_iter().map(recorded).collect())
    }

    fn settle(&self, _: Rest, limits: SettleLimits, stop: &AtomicBool) -> Result<Settled, Error> {
        self.engine.settle(self.workload.tables(), limits, stop)
    }
}

/// The values of all rows that should be there, on average.
pub fn data_bytes(workload: &Insert) -> u64 {
    (workload.rows() as f64 * workload.row_bytes_mean()) as u64
}

/// Takes in what the connections of a step did.
pub fn apply(
    workload: &mut Insert,
    plan: &plan::Insert,
    step: &insert::Step,
    done: Done<'_>,
) -> anyhow::Result<Vec<Check>> {
    let flawless = done.is_flawless("insert");
    let totals = done.totals;
    let mut of_connections: Vec<_> = done
        .worked
        .iter_mut()
        .map(|worked| insert::Done {
            client: worked.client,
            program: &mut *worked.program,
            rows: worked.rows,
            flawless,
        })
        .collect();
    workload
        .apply(step, &mut of_connections)
        .context("the keys that were given can't be asked for")?;
    if plan.terms.checks == Checks::Off {
        return Ok(Vec::new());
    }
    let query = totals.get("query");
    let check = query.and_then(|query| workload.check_point_queries(step, query.ok, query.rows));
    Ok(check.into_iter().map(recorded).collect())
}

/// Says in the record what a step is.
pub fn describe(workload: &Insert, step: &insert::Step, clients: u32, record: &mut Step) {
    record.rows_per_commit = Some(step.kind.rows_per_commit());
    record.row_bytes_mean = Some(workload.row_bytes_mean());
    let (kind, main_op) = match step.kind {
        insert::StepKind::Load { .. } | insert::StepKind::Write { .. } => {
            (StepKind::Load, "insert")
        }
        insert::StepKind::Index { .. } => (StepKind::Index, "insert"),
        insert::StepKind::Query { .. } => (StepKind::Query, "query"),
    };
    record.kind = kind;
    record.main_op = Some(main_op.into());
    if let insert::StepKind::Query { rate, .. } = step.kind {
        record.insert_rate_target_rows_per_s = Some(rate * f64::from(clients));
    }
}

/// How far a step has to go.
pub fn goal(workload: &Insert, step: &insert::Step) -> Goal {
    match step.kind {
        insert::StepKind::Load { rows, .. } | insert::StepKind::Write { rows, .. } => {
            Goal::Rows(rows * workload.tables().len() as u64)
        }
        insert::StepKind::Index { .. } | insert::StepKind::Query { .. } => Goal::Rows(0),
    }
}

/// The steps of the plan.
pub fn steps(plan: &plan::Insert) -> Vec<Planned<insert::Step>> {
    let planned = |(number, step): (usize, &InsertStep)| {
        let work = work(number, step);
        Planned {
            time: match step.kind {
                InsertStepKind::Query { time, .. } => Some(time),
                _ => None,
            },
            rest: work.is_none().then_some(Rest::Usual),
            work,
            ..Planned::new(&step.name)
        }
    };
    plan.steps.iter().enumerate().map(planned).collect()
}

fn work(number: usize, step: &InsertStep) -> Option<insert::Step> {
    let kind = match step.kind {
        InsertStepKind::Load {
            rows,
            rows_per_commit,
        } => insert::StepKind::Load {
            rows,
            rows_per_commit,
        },
        InsertStepKind::Index {
            rows,
            rows_per_commit,
        } => insert::StepKind::Index {
            rows,
            rows_per_commit,
        },
        InsertStepKind::Write {
            rows,
            rows_per_commit,
        } => insert::StepKind::Write {
            rows,
            rows_per_commit,
        },
        InsertStepKind::Query {
            query,
            rate,
            rows_per_commit,
            ..
        } => insert::StepKind::Query {
            point: query == Query::Point,
            rate,
            rows_per_commit,
        },
        InsertStepKind::Settle => return None,
    };
    Some(insert::Step {
        number: number as u32,
        kind,
    })
}

/// The benchmark's options, from the plan.
pub fn options(plan: &plan::Insert, clients: u32, seed: u64) -> insert::Options {
    insert::Options {
        seed,
        clients,
        shared_table: plan.tables == Tables::Shared,
        delete_per_insert: plan.delete_per_insert,
        indexes: match plan.indexes {
            IndexSet::Current => insert::IndexSet::Current,
            IndexSet::Before2023Dec => insert::IndexSet::Before2023Dec,
        },
        data_length: plan.data_length,
        partitions: (plan.partitions > 0).then(|| Partitions {
            count: plan.partitions,
            rows_each: (rows_per_table(plan, clients) / u64::from(plan.partitions)).max(1),
        }),
        index_statements: match plan.index_statements {
            plan::IndexStatements::Usual => IndexStatements::Usual,
            plan::IndexStatements::One => IndexStatements::One,
            plan::IndexStatements::Each => IndexStatements::Each,
        },
        bulk_load: plan.bulk_load,
        long_transaction_seconds: plan.long_transaction.map(|hold| hold.as_secs_f64()),
    }
}

/// Keys that each table gets in the whole of a cell (methodology a12 of the Insert Benchmark's scripts: all rows of
/// all steps).
fn rows_per_table(plan: &plan::Insert, clients: u32) -> u64 {
    let writers = if plan.tables == Tables::Shared {
        f64::from(clients)
    } else {
        1.0
    };
    let rows = |step: &InsertStep| match step.kind {
        InsertStepKind::Load { rows, .. }
        | InsertStepKind::Index { rows, .. }
        | InsertStepKind::Write { rows, .. } => rows,
        InsertStepKind::Query { rate, time, .. } => (rate * time.as_secs_f64() * writers) as u64,
        InsertStepKind::Settle => 0,
    };
    plan.steps.iter().map(rows).sum()
}
