//! The sysbench microbenchmarks, as a plan has them, on an engine that speaks SQL.

use anyhow::Context;
use engine::{Session, SqlEngine, Table};
use plan::{Checks, SysbenchStepKind};
use record::{Step, StepKind};
use workload::sysbench::{self, Sysbench, Wanted, WantedIndex, test};
use workload::{Accounts, Check, Task};

use super::{Totals, WorkloadRunner};

/// Rows of each table that are compared with what was loaded.
const SAMPLES: u64 = 200;

/// The microbenchmarks on an engine that speaks SQL.
pub struct SysbenchRunner<'a, E> {
    engine: &'a E,
    workload: &'a mut Sysbench,
    plan: &'a plan::Sysbench,
    /// The last step loaded the tables.
    has_just_loaded: bool,
}

impl<'a, E: SqlEngine> SysbenchRunner<'a, E> {
    /// The microbenchmarks, whose tables are there.
    pub fn new(engine: &'a E, workload: &'a mut Sysbench, plan: &'a plan::Sysbench) -> Self {
        Self {
            engine,
            workload,
            plan,
            has_just_loaded: false,
        }
    }
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
        record.row_bytes_mean = Some(self.workload.row_bytes() as f64);
        let (kind, main_op) = match self.work(step, false).map(|step| step.kind) {
            None => return,
            Some(sysbench::StepKind::Load) => {
                record.rows_per_commit = Some(self.plan.load_batch);
                (StepKind::Load, "insert")
            }
            Some(sysbench::StepKind::Index) => (StepKind::Index, "insert"),
            Some(sysbench::StepKind::Run { test, .. }) => {
                record.queries_per_event = Some(test.queries_per_event());
                record.commits_per_event = Some(test.commits_per_event());
                record.group = Some(group_name(test.group).into());
                record.deletes_per_event = test.deletes_per_event();
                record.scanned_rows_per_event = (test.name == "scan").then_some(self.plan.rows);
                (StepKind::Query, "event")
            }
        };
        record.kind = kind;
        record.main_op = Some(main_op.into());
    }

    fn goal(&self, step: usize) -> u64 {
        match self.plan.steps[step].kind {
            SysbenchStepKind::Load => self.plan.rows * u64::from(self.plan.tables),
            _ => 0,
        }
    }

    fn tasks(&mut self, step: usize, is_warm_up: bool) -> anyhow::Result<Vec<Task>> {
        let Some(step) = self.work(step, is_warm_up) else {
            return Ok(Vec::new());
        };
        self.workload
            .connections(&step, self.engine)
            .context("the step's connections can't be opened")
    }

    fn apply(&mut self, step: usize, accounts: &Accounts, _: &Totals) -> Vec<Check> {
        if let Some(step) = self.work(step, false) {
            self.workload.apply(&step, accounts);
            self.has_just_loaded = matches!(step.kind, sysbench::StepKind::Load);
        }
        Vec::new()
    }

    fn check(&self) -> anyhow::Result<Vec<Check>> {
        let mut checks = Vec::new();
        let mut session = self.engine.connect()?;
        let indexed = self.workload.is_indexed();
        for (number, table) in self.workload.tables().iter().enumerate() {
            if self.plan.terms.checks == Checks::Full {
                let facts = self.engine.inspect(table, indexed)?;
                checks.extend(self.workload.check(number, &facts));
            } else {
                let dialect = self.engine.dialect();
                let key_min = session.query_i64(&dialect.min_key(table))?;
                let key_max = session.query_i64(&dialect.max_key(table))?;
                checks.extend(self.workload.check_keys(number, key_min, key_max));
            }
            if self.has_just_loaded {
                checks.push(self.workload.check_loaded(number, &mut session, SAMPLES)?);
            }
        }
        Ok(checks)
    }
}

impl<E> SysbenchRunner<'_, E> {
    /// What a step of the plan does; nothing where it only settles.
    fn work(&self, number: usize, is_warm_up: bool) -> Option<sysbench::Step> {
        let kind = match &self.plan.steps[number].kind {
            SysbenchStepKind::Load => sysbench::StepKind::Load,
            SysbenchStepKind::Index => sysbench::StepKind::Index,
            SysbenchStepKind::Settle => return None,
            SysbenchStepKind::Run {
                test,
                distribution,
                rate,
                ..
            } => sysbench::StepKind::Run {
                test: test_of(test),
                distribution: distribution_of(*distribution),
                rate: *rate,
            },
        };
        Some(sysbench::Step {
            number: number as u32,
            is_warm_up,
            kind,
        })
    }
}

/// The tables of the plan, loaded by no more connections than can write at once.
pub fn options(
    plan: &plan::Sysbench,
    clients: u32,
    (seed, nonce): (u64, u64),
    writers_max: u32,
) -> sysbench::Options {
    sysbench::Options {
        seed,
        nonce,
        clients,
        tables: plan.tables,
        rows: plan.rows,
        load_connections: plan.load_connections.min(writers_max),
        load_batch: plan.load_batch,
        primary_key: plan.primary_key,
    }
}

/// What the plan wants of tables that it does not load.
pub fn wanted(plan: &plan::Sysbench) -> Wanted {
    Wanted {
        index: match (plan.makes_indexes(), plan.secondary_index) {
            (true, _) => WantedIndex::Made,
            (false, true) => WantedIndex::There,
            (false, false) => WantedIndex::Absent,
        },
        counted: plan.terms.checks == Checks::Full,
    }
}

fn group_name(group: test::Group) -> &'static str {
    match group {
        test::Group::Point => "point",
        test::Group::RangeOne => "range-1",
        test::Group::RangeTwo => "range-2",
        test::Group::Write => "write",
    }
}

fn distribution_of(distribution: plan::Distribution) -> test::Distribution {
    match distribution {
        plan::Distribution::Uniform => test::Distribution::Uniform,
        plan::Distribution::Zipfian { exponent } => test::Distribution::Zipfian { exponent },
    }
}

fn test_of(planned: &plan::Test) -> test::Test {
    test::Test {
        name: planned.name.clone(),
        group: match planned.group {
            plan::Group::Point => test::Group::Point,
            plan::Group::Range1 => test::Group::RangeOne,
            plan::Group::Range2 => test::Group::RangeTwo,
            plan::Group::Write => test::Group::Write,
        },
        table: match planned.table {
            plan::TableChoice::Random => test::TableChoice::Random,
            plan::TableChoice::Thread => test::TableChoice::Thread,
            plan::TableChoice::First => test::TableChoice::First,
        },
        transaction: planned.transaction,
        parameters: planned.parameters.iter().map(parameter_of).collect(),
        statements: planned
            .statements
            .iter()
            .map(|statement| test::TestStatement {
                sql: statement.sql.clone(),
                weight: statement.weight,
                repeat: statement.repeat,
                prepared: statement.prepared,
                rows: statement
                    .rows
                    .as_ref()
                    .map(|(least, most)| (expression_of(least), expression_of(most))),
                parameters: statement.parameters.iter().map(parameter_of).collect(),
            })
            .collect(),
    }
}

fn parameter_of(planned: &plan::Parameter) -> test::Parameter {
    use test::Draw;
    let of = expression_of;
    test::Parameter {
        name: planned.name.clone(),
        draw: match &planned.draw {
            plan::Draw::Id => Draw::Id,
            plan::Draw::K => Draw::K,
            plan::Draw::C => Draw::C,
            plan::Draw::Pad => Draw::Pad,
            plan::Draw::Ids(count) => Draw::Ids(of(count)),
            plan::Draw::Ks(count) => Draw::Ks(of(count)),
            plan::Draw::Consecutive(first, count) => Draw::Consecutive(of(first), of(count)),
            plan::Draw::Uniform(least, most) => Draw::Uniform(of(least), of(most)),
            plan::Draw::Zipfian(least, most, exponent) => {
                Draw::Zipfian(of(least), of(most), *exponent)
            }
            plan::Draw::Value(value) => Draw::Value(of(value)),
        },
    }
}

fn expression_of(planned: &plan::Expression) -> test::Expression {
    use test::Expression;
    let of = |expression: &plan::Expression| Box::new(expression_of(expression));
    match planned {
        plan::Expression::Integer(value) => Expression::Integer(*value),
        plan::Expression::Rows => Expression::Rows,
        plan::Expression::Tables => Expression::Tables,
        plan::Expression::Thread => Expression::Thread,
        plan::Expression::Parameter(name) => Expression::Parameter(name.clone()),
        plan::Expression::Sum(a, b) => Expression::Sum(of(a), of(b)),
        plan::Expression::Difference(a, b) => Expression::Difference(of(a), of(b)),
        plan::Expression::Product(a, b) => Expression::Product(of(a), of(b)),
        plan::Expression::Quotient(a, b) => Expression::Quotient(of(a), of(b)),
    }
}
