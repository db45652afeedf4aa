//! Transactions on tables of a script, on SQL engines.

use std::collections::BTreeMap;

use engine::{SqlEngine, Table};
use plan::TransactionsStepKind;
use plan::transactions::{HomeRule, Pause, Script};
use record::{HomeRows, OpPause, StatementPlan, Step, StepKind};
use workload::sysbench;
use workload::transactions::{self, Transactions};
use workload::{Check, DataState, Summaries, Task};

use super::{Totals, WorkloadRunner, cannot_begin};

/// The groups of results of tests that only read, and of those that write.
const READING: &str = "point";
const WRITING: &str = "write";

/// Runs the transactions of a script; its tables exist.
pub struct TransactionsRunner<'a, E> {
    /// The engine.
    pub engine: &'a E,
    /// The transactions.
    pub workload: &'a mut Transactions,
}

impl<E: SqlEngine> WorkloadRunner for TransactionsRunner<'_, E> {
    fn tables(&self) -> &[Table] {
        self.workload.tables()
    }

    fn rows(&self) -> u64 {
        self.workload.plan().script.rows()
    }

    fn data_bytes(&self) -> u64 {
        self.workload.plan().script.value_bytes()
    }

    fn describe(&self, step: usize, record: &mut Step) {
        let plan = self.workload.plan();
        let script = &plan.script;
        let rows = script.rows().max(1);
        record.row_bytes_mean = Some(script.value_bytes() as f64 / rows as f64);

        let (kind, main_operation) = match &plan.steps[step].kind {
            TransactionsStepKind::Settle => return,
            TransactionsStepKind::Load => {
                record.rows_per_commit = Some(plan.load_batch);
                (StepKind::Load, transactions::INSERT)
            }
            TransactionsStepKind::Index => (StepKind::Index, transactions::INSERT),
            TransactionsStepKind::Run { test, home, pauses, .. } => {
                record.homes = homes(script, *test, *home, record.clients);
                record.per_minute.clone_from(&script.tests[*test].per_minute);
                record.pauses = pauses_of_parts(script, *test, pauses);
                let mut parts = script.tests[*test].parts.iter();
                let writes = parts.any(|(part, _)| script.transactions[*part].writes());
                record.group = Some(if writes { WRITING } else { READING }.to_owned());
                (StepKind::Query, self.workload.main_kind(*test))
            }
        };

        record.kind = kind;
        record.set_main_operation(main_operation);
    }

    fn planned_rows(&self, step: usize) -> u64 {
        let plan = self.workload.plan();
        match plan.steps[step].kind {
            TransactionsStepKind::Load => plan.script.rows(),
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
        Some(self.workload.state())
    }

    fn restore(&mut self, state: DataState, done: usize) -> bool {
        self.workload.restore(state, done)
    }

    fn plans(&self, number: usize) -> anyhow::Result<Vec<StatementPlan>> {
        let step = sysbench::Step { number, is_warm_up: false };
        Ok(self.workload.plans(step, self.engine)?)
    }

    fn check(&self) -> anyhow::Result<Vec<Check>> {
        Ok(self.workload.check(self.engine)?)
    }
}

/// Returns the rows of tables for which the clients of a test work.
fn homes(script: &Script, test: usize, rule: HomeRule, clients: u32) -> Vec<HomeRows> {
    let mut homes = Vec::new();
    for table in script.home_tables(test) {
        let rows = i64::try_from(table.rows).unwrap_or(i64::MAX);
        let of_client = |client| rule.homes(rows, client, clients).count().unsigned_abs();
        homes.push(HomeRows {
            table: table.name.clone(),
            rows: table.rows,
            rule: rule.name().to_owned(),
            least_per_client: (0..clients).map(of_client).min().unwrap_or(0),
            most_per_client: (0..clients).map(of_client).max().unwrap_or(0),
        });
    }
    homes
}

/// Returns the waits around each transaction of a test, by its name. `pauses` are those of the
/// script's transactions, or empty.
fn pauses_of_parts(script: &Script, test: usize, pauses: &[Pause]) -> BTreeMap<String, OpPause> {
    let mut of_parts = BTreeMap::new();
    for (transaction, _) in &script.tests[test].parts {
        if let Some(pause) = pauses.get(*transaction) {
            let of_part = OpPause {
                think_ns_mean: pause.think_mean.as_nanos() as u64,
                keying_ns: pause.keying.as_nanos() as u64,
            };
            of_parts.insert(script.transactions[*transaction].name.clone(), of_part);
        }
    }
    of_parts
}
