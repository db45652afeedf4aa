//! The sysbench workload: sysbench's tables, and tests that each run one kind of event.
//!
//! Tests come from the plan ([`plan::sysbench`]). Facts known before a step are computed when its
//! connections are opened; events only draw values and send them.

mod connection;
mod data;
mod distribution;
mod event;
mod existing;
mod ledger;
mod text;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use engine::{
    Column, ColumnType, Dialect, Error, ErrorClass, Index, IndexStatements, ParamType, Session,
    SqlEngine, Statement, StatementPlan, Table, TableFacts,
};
use plan::sysbench::{TableChoice, Test};
use plan::{Checks, Distribution, SysbenchStepKind};
use words::excerpt;

use crate::check::ValueCheck;
use crate::program::plans_of_first_ops;
use crate::{Check, ClientShare, Random, Schedule, Summaries, Summary, Task};
pub use connection::TableChanges;
use connection::{
    Indexer, LoadBatches, Loader, RowChanges, Runner, RunnerTable, TransactionStatement,
    Transactions,
};
use data::{LoadedRows, ROW_BYTES};
use distribution::Sampler;
use event::{Event, EventOptions, Streams};
use ledger::Ledger;

/// Purposes of random streams, the last part of their paths; rows use 0.
const EVENTS: u64 = 1;
const SAMPLES: u64 = 2;
const TEXTS: u64 = 3;

/// Rows of each table that are compared with what was loaded.
const SAMPLE_COUNT: u64 = 200;
/// The maximum length of a statement or a row in a message, in characters.
const EXCERPT_CHARS: usize = 200;

/// Properties of the cell besides the plan's workload.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The seed of all rows and random choices.
    pub seed: u64,
    /// Mixed into the texts that events write, and nothing else. Another nonce does the same
    /// operations on the same keys, but writes other texts: tables that outlive a cell don't
    /// hold them already.
    pub nonce: u64,
    /// The number of clients, with one connection each.
    pub clients: u32,
    /// The clients that connect from this process.
    pub share: ClientShare,
    /// Connections that can write at once.
    pub writers_max: u32,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Its position in the plan, which also seeds its random choices.
    pub number: usize,
    /// It is the warm-up of the step of that number, with other random choices.
    pub is_warm_up: bool,
}

/// One cell's benchmark: its tables and what is known about them.
pub struct Sysbench {
    plan: plan::Sysbench,
    options: Options,
    tables: Vec<Table>,
    ledgers: Vec<Ledger>,
    /// The last step loaded the tables.
    has_just_loaded: bool,
}

impl Sysbench {
    /// Returns a benchmark whose tables don't exist yet.
    pub fn new(plan: &plan::Sysbench, options: Options) -> Self {
        let tables = (1..=plan.tables).map(|number| table(number, plan.primary_key));
        Self {
            ledgers: vec![Ledger::default(); plan.tables as usize],
            tables: tables.collect(),
            plan: plan.clone(),
            options,
            has_just_loaded: false,
        }
    }

    /// Returns the workload's part of the plan.
    pub fn plan(&self) -> &plan::Sysbench {
        &self.plan
    }

    /// Returns its tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the rows that all tables should have now.
    pub fn rows(&self) -> u64 {
        self.ledgers.iter().map(|ledger| ledger.rows).sum()
    }

    /// Returns the size of all values that should exist now, in bytes.
    pub fn data_bytes(&self) -> u64 {
        self.rows() * ROW_BYTES
    }

    /// Returns the size of a row's values in bytes.
    pub fn row_bytes(&self) -> u64 {
        ROW_BYTES
    }

    /// Returns whether the secondary indexes exist.
    pub fn is_indexed(&self) -> bool {
        self.ledgers.iter().all(|ledger| ledger.is_indexed)
    }

    /// Opens the connections of a step and prepares their statements.
    ///
    /// # Errors
    /// The engine's own; what is wrong with a test.
    pub fn connections<E: SqlEngine>(&self, step: Step, engine: &E) -> Result<Vec<Task>, Error> {
        match &self.plan.steps[step.number].kind {
            SysbenchStepKind::Settle => Ok(Vec::new()),
            SysbenchStepKind::Load => self.loaders(engine),
            SysbenchStepKind::Index => self.indexers(engine),
            SysbenchStepKind::Run { test, distribution, rate, .. } => (0..self.options.clients)
                .filter(|client| self.options.share.has(*client))
                .map(|client| {
                    let program = self.runner(step, test, *distribution, client, engine)?;
                    let schedule = rate.map_or(Schedule::Closed, |rate| {
                        Schedule::rate(rate, client, self.options.clients)
                    });
                    Task::new(client, "event", schedule, Box::new(program))
                })
                .collect(),
        }
    }

    /// Returns the plans of a step's statements; none from engines without plans.
    ///
    /// # Errors
    /// The engine's own.
    pub fn plans<E: SqlEngine>(&self, step: Step, engine: &E) -> Result<Vec<StatementPlan>, Error> {
        plans_of_first_ops(engine, |capture| self.connections(step, capture))
    }

    fn load_connections(&self) -> u32 {
        self.plan.load_connections.min(self.options.writers_max)
    }

    /// Returns the tasks that load all rows, divided into equal parts by table and key.
    fn loaders<E: SqlEngine>(&self, engine: &E) -> Result<Vec<Task>, Error> {
        let total = u128::from(self.plan.rows) * u128::from(self.plan.tables);
        let parts = self.load_connections();
        let mut tasks = Vec::new();
        for part in 0..parts {
            let edge = |part: u32| total * u128::from(part) / u128::from(parts);
            let (from, to) = (edge(part), edge(part + 1));
            if from == to {
                continue;
            }
            let client = part % self.options.clients.max(1);
            if !self.options.share.has(client) {
                continue;
            }
            let loader = Box::new(self.loader(engine, from, to)?);
            tasks.push(Task::new(client, "insert", Schedule::Closed, loader)?);
        }
        Ok(tasks)
    }

    /// Returns the loader of the rows from number `from` up to `to`, counted over all tables from
    /// 0.
    fn loader<E: SqlEngine>(
        &self,
        engine: &E,
        from: u128,
        to: u128,
    ) -> Result<Loader<E::Session>, Error> {
        let rows = self.plan.rows;
        let batch = self.plan.load_batch;
        let mut session = engine.connect()?;
        let (mut batches, mut changes) = (Vec::new(), Vec::new());
        let first_table = (from / u128::from(rows)) as u32;
        let last_table = ((to - 1) / u128::from(rows)) as u32;
        for number in first_table..=last_table {
            let table = &self.tables[number as usize];
            let before = u128::from(number) * u128::from(rows);
            let first = (from.max(before) - before) as u64 + 1;
            let last = (to.min(before + u128::from(rows)) - before) as u64;
            if first == 1 {
                // Keys are explicit: the server must assign larger ones later.
                for sql in engine.dialect().assign_keys_above(table, rows) {
                    session.query(&sql)?;
                }
            }
            let whole = (last + 1 - first) / u64::from(batch) * u64::from(batch);
            let mut add = |size: u32, keys: RangeInclusive<u64>| -> Result<(), Error> {
                if keys.is_empty() {
                    return Ok(());
                }
                let [integer, text] = [ParamType::Int4, ParamType::Text];
                let row = [integer, integer, text, text];
                let sql = engine.dialect().insert_with_keys(table, size);
                let statement = session.prepare(&sql, &row.repeat(size as usize))?;
                batches.push(LoadBatches {
                    statement,
                    rows: size,
                    keys,
                    source: LoadedRows::new(self.options.seed, number, rows),
                    table: changes.len(),
                });
                Ok(())
            };
            add(batch, first..=first + whole - 1)?;
            add((last + 1 - first - whole) as u32, first + whole..=last)?;
            changes.push((number, RowChanges::default()));
        }
        batches.reverse();
        Ok(Loader { session, batches, changes, current: (0, 0) })
    }

    fn indexers<E: SqlEngine>(&self, engine: &E) -> Result<Vec<Task>, Error> {
        let parts = self.load_connections().min(self.plan.tables) as usize;
        let dialect = engine.dialect();
        let create = |table| dialect.create_indexes(table, IndexStatements::Usual);
        let client = |part: usize| part as u32 % self.options.clients.max(1);
        (0..parts)
            .filter(|part| self.options.share.has(client(*part)))
            .map(|part| {
                let tables = self.tables.iter().skip(part).step_by(parts);
                let statements = tables.flat_map(create).collect();
                let indexer = Indexer { session: engine.connect()?, statements, next: 0 };
                Task::new(client(part), "index", Schedule::Closed, Box::new(indexer))
            })
            .collect()
    }

    fn runner<E: SqlEngine>(
        &self,
        step: Step,
        test: &Test,
        distribution: Distribution,
        client: u32,
        engine: &E,
    ) -> Result<Runner<E::Session>, Error> {
        let dialect = engine.dialect();
        let options = EventOptions {
            keys: Sampler::new(distribution, 1, self.plan.rows.cast_signed()),
            thread: client,
            dialect,
            may_miss: self.ledgers.iter().any(|ledger| !ledger.is_whole()),
            has_unique_ids: self.plan.primary_key,
            is_shared: self.options.clients > 1,
        };
        let event = Event::new(test, &options);
        let numbers = match test.table {
            TableChoice::Random => 0..self.plan.tables,
            TableChoice::Thread => {
                let table = client % self.plan.tables;
                table..table + 1
            }
            TableChoice::First => 0..1,
        };
        let mut session =
            if test.only_reads() { engine.connect_to_read()? } else { engine.connect()? };
        let mut tables = Vec::new();
        for number in numbers {
            let name = &self.tables[number as usize].name;
            tables.push(RunnerTable {
                number,
                name: name.clone(),
                statements: prepare(&mut session, &event, name, dialect)?,
            });
        }
        let mut control = |sql| TransactionStatement::new(&mut session, sql, event.is_plain());
        let transactions = if !test.transaction {
            None
        } else {
            Some(Transactions {
                begin: control(dialect.begin_transaction(event.writes()))?,
                begin_reading: if !event.writes_sometimes() {
                    None
                } else {
                    Some(control(dialect.begin_transaction(false))?)
                },
                commit: control(dialect.commit())?,
                rollback: control(dialect.rollback())?,
            })
        };
        let path = [step.number as u64, u64::from(client), u64::from(step.is_warm_up)];
        let stream =
            |purpose: &[u64]| Random::stream(self.options.seed, &[&path, purpose].concat());
        let streams =
            Streams { choices: stream(&[EVENTS]), texts: stream(&[self.options.nonce, TEXTS]) };
        Ok(Runner::new(session, event, streams, tables, transactions))
    }

    /// Applies what the connections of a step or its warm-up did, complete or not.
    pub fn apply(&mut self, step: usize, summaries: &Summaries) {
        // All together: one connection may have deleted what another inserted.
        let mut sums = vec![RowChanges::default(); self.ledgers.len()];
        for (_, summary) in summaries {
            let Summary::RowChanges(changes) = summary else {
                continue;
            };
            for (table, changes) in changes {
                sums[*table as usize].add(*changes);
            }
        }
        let kind = &self.plan.steps[step].kind;
        for (ledger, sum) in self.ledgers.iter_mut().zip(sums) {
            ledger.apply(sum);
            match kind {
                SysbenchStepKind::Load => ledger.end_load(self.plan.rows),
                SysbenchStepKind::Index => ledger.is_indexed = true,
                SysbenchStepKind::Run { .. } | SysbenchStepKind::Settle => {}
            }
        }
        self.has_just_loaded = *kind == SysbenchStepKind::Load;
    }

    /// Compares the tables with what is known about them, as far as the plan requires, and at least
    /// their keys.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check<E: SqlEngine>(&self, engine: &E) -> Result<Vec<Check>, Error> {
        let mut checks = Vec::new();
        let mut session = engine.connect()?;
        let indexed = self.is_indexed();
        for (number, table) in self.tables.iter().enumerate() {
            if self.plan.policy.checks == Checks::Full {
                let facts = engine.inspect(table, indexed)?;
                checks.extend(self.check_table(number, &facts));
            } else {
                let dialect = engine.dialect();
                let key_min = session.query_i64(&dialect.min_key(table))?;
                let key_max = session.query_i64(&dialect.max_key(table))?;
                checks.extend(self.ledgers[number].check_keys(table, key_min, key_max));
            }
            if self.has_just_loaded {
                checks.push(self.check_loaded(number, &mut session)?);
            }
        }
        Ok(checks)
    }

    fn check_table(&self, table: usize, facts: &TableFacts) -> Vec<Check> {
        self.ledgers[table].check(&self.tables[table], facts)
    }

    /// Compares a sample of rows of table number `table` with what was loaded; valid until a test
    /// writes.
    fn check_loaded<S: Session>(&self, table: usize, session: &mut S) -> Result<Check, Error> {
        let number = u32::try_from(table).unwrap_or(u32::MAX);
        let rows = LoadedRows::new(self.options.seed, number, self.plan.rows);
        let name = &self.tables[table].name;
        let path = [u64::from(number), SAMPLES];
        let mut random = Random::stream(self.options.seed, &path);
        let mut compared = ValueCheck::default();
        for _ in 0..SAMPLE_COUNT {
            let id = 1 + random.below(self.plan.rows);
            let found = session.query(&format!("select k, c, pad from {name} where id = {id}"))?;
            // Some servers return the blanks that the columns are padded with.
            let found: Vec<&str> = found
                .iter()
                .flatten()
                .map(|value| value.as_deref().unwrap_or("NULL").trim_end())
                .collect();
            let row = rows.row(id);
            let is_wrong = found != [row.k.to_string().as_str(), row.c(), row.pad()];
            let shown = || format!("row {id}: `{}`", excerpt(&found.join("`, `"), EXCERPT_CHARS));
            compared.add(is_wrong.then(shown));
        }
        Ok(compared.check(format!("rows of {name} as they were loaded")))
    }
}

/// Prepares the statements of an event for a table, except those that are sent as text.
fn prepare<S: Session>(
    session: &mut S,
    event: &Event,
    table: &str,
    dialect: &dyn Dialect,
) -> Result<Vec<Option<Statement>>, Error> {
    let mut statements = Vec::new();
    for index in 0..event.test.statements.len() {
        let Some((sql, types)) = event.sql(index, table, dialect) else {
            statements.push(None);
            continue;
        };
        let prepared = session.prepare(&sql, &types);
        statements.push(Some(prepared.map_err(|error| Error {
            message: format!(
                "test `{}`, statement {}: `{}`: {}",
                event.test.name,
                index + 1,
                excerpt(&sql, EXCERPT_CHARS),
                error.message
            ),
            ..error
        })?));
    }
    Ok(statements)
}

/// Returns table number `number`, from 1, as sysbench 1.0 creates it.
fn table(number: u32, primary: bool) -> Table {
    let column = |name, kind| Column { name, kind };
    Table {
        name: format!("sbtest{number}"),
        columns: vec![
            column("id", ColumnType::AutoInt4 { primary }),
            column("k", ColumnType::Int4OrZero),
            column("c", ColumnType::Char(120)),
            column("pad", ColumnType::Char(60)),
        ],
        indexes: vec![Index { name: "k", columns: vec!["k"] }],
        partitions: None,
    }
}

fn other(message: impl Into<String>) -> Error {
    Error::new(ErrorClass::Other, message)
}
