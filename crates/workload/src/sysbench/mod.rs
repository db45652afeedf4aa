//! The sysbench workload: sysbench's tables, and tests that each run one kind of event.
//!
//! The tests come from the plan ([`plan::sysbench`]). Clients send events as fast as the server
//! answers, so whatever is known before a step is computed when its connections are opened.
//! Events only draw values and send them.

mod connection;
mod data;
pub(crate) mod distribution;
mod event;
mod existing;
mod ledger;
mod text;

#[cfg(test)]
mod tests;

use std::ops::Range;

use engine::{
    Column, ColumnType, Dialect, Error, ErrorClass, Index, IndexStatements, ParamType, Session,
    SqlEngine, Statement, StatementPlan, Table, TableFacts,
};
use plan::sysbench::{TableChoice, Test};
use plan::{Checks, Distribution, SysbenchStep, SysbenchStepKind, TestRate};
use words::excerpt;

use crate::check::ValueCheck;
use crate::program::plans_of_first_ops;
use crate::summary::RowChanges;
use crate::{Check, ClientShare, Random, Schedule, Summaries, Summary, Task};
use connection::CREATE_INDEX;
pub(crate) use connection::TransactionStatement;
use connection::{CurrentBatch, Indexer, LoadBatches, Loader, Runner, RunnerTable, Transactions};
pub use connection::{EVENT, INSERT};
use data::{LoadedRows, ROW_BYTES};
use distribution::Sampler;
use event::{Event, EventOptions, Streams};
pub use ledger::Ledger;

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
    /// The cell measures highest rates, so shares of them are left out.
    pub is_unlimited: bool,
}

impl Options {
    /// Returns the schedule of a client of a test; `None` without a rate.
    pub(crate) fn schedule(&self, rate: Option<&TestRate>, client: u32) -> Option<Schedule> {
        let rate = rate.filter(|rate| !(self.is_unlimited && matches!(rate, TestRate::OfMax(_))));
        let per_client = rate?.per_client(self.clients)?;
        Some(Schedule::rate(per_client, client, self.clients))
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The step's position in the plan, which also seeds its random choices.
    pub number: usize,
    /// This is the warm-up of the step of that number, with other random choices.
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
        Self {
            ledgers: vec![Ledger::default(); plan.tables as usize],
            tables: (1..=plan.tables).map(|number| table(number, plan.primary_key)).collect(),
            plan: plan.clone(),
            options,
            has_just_loaded: false,
        }
    }

    /// Returns the workload's part of the plan.
    pub fn plan(&self) -> &plan::Sysbench {
        &self.plan
    }

    /// Returns the benchmark's tables.
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

    /// Returns what is known of the tables.
    pub fn ledgers(&self) -> &[Ledger] {
        &self.ledgers
    }

    /// Takes over what another process knew of the same tables after the first `done` steps. Returns
    /// `false` if it knew other tables.
    pub fn restore(&mut self, ledgers: Vec<Ledger>, done: usize) -> bool {
        if ledgers.len() != self.tables.len() {
            return false;
        }
        self.ledgers = ledgers;
        let is_run = |step: &SysbenchStep| matches!(step.kind, SysbenchStepKind::Run { .. });
        self.has_just_loaded = !self.plan.steps[..done].iter().any(is_run);
        true
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
            SysbenchStepKind::Run { test, distribution, rate, .. } => {
                let mut tasks = Vec::new();
                let clients = self.options.clients;
                for client in (0..clients).filter(|client| self.options.share.has(*client)) {
                    let program = self.runner(step, test, *distribution, client, engine)?;
                    let schedule = self.options.schedule(rate.as_ref(), client);
                    let schedule = schedule.unwrap_or(Schedule::Closed);
                    tasks.push(Task::new(client, EVENT, schedule, Box::new(program))?);
                }
                Ok(tasks)
            }
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
            let from = total * u128::from(part) / u128::from(parts);
            let to = total * u128::from(part + 1) / u128::from(parts);
            let client = self.client_of_part(part);
            if from == to || !self.options.share.has(client) {
                continue;
            }

            let loader = Box::new(self.loader(engine, from, to)?);
            tasks.push(Task::new(client, INSERT, Schedule::Closed, loader)?);
        }
        Ok(tasks)
    }

    /// Returns the client of one of the connections that load, of which there may be more than
    /// clients.
    fn client_of_part(&self, part: u32) -> u32 {
        part % self.options.clients.max(1)
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
        let mut session = engine.connect()?;
        let mut batches = Vec::new();
        let mut changes = Vec::new();
        let first_table = (from / u128::from(rows)) as u32;
        let last_table = ((to - 1) / u128::from(rows)) as u32;
        for table in first_table..=last_table {
            let rows_before = u128::from(table) * u128::from(rows);
            let first = (from.max(rows_before) - rows_before) as u64 + 1;
            let last = (to.min(rows_before + u128::from(rows)) - rows_before) as u64;
            if first == 1 {
                // Keys are explicit: the server must assign larger ones later.
                let described = &self.tables[table as usize];
                for sql in engine.dialect().assign_keys_above(described, rows) {
                    session.query(&sql)?;
                }
            }

            // The rest of the rows takes a smaller statement.
            let batch = self.plan.load_batch;
            let whole = (last + 1 - first) / u64::from(batch) * u64::from(batch);
            let rest = (last + 1 - first - whole) as u32;
            for (size, keys) in [(batch, first..=first + whole - 1), (rest, first + whole..=last)] {
                if !keys.is_empty() {
                    let statement = self.prepare_load(engine, &mut session, table, size)?;
                    batches.push(LoadBatches {
                        statement,
                        rows: size,
                        keys,
                        source: LoadedRows::new(self.options.seed, table, rows),
                        table: changes.len(),
                    });
                }
            }
            changes.push((table, RowChanges::default()));
        }

        // The loader takes them from the end.
        batches.reverse();
        Ok(Loader { session, batches, changes, current: CurrentBatch::default() })
    }

    /// Prepares the statement that loads `rows` rows of a table.
    fn prepare_load<E: SqlEngine>(
        &self,
        engine: &E,
        session: &mut E::Session,
        table: u32,
        rows: u32,
    ) -> Result<Statement, Error> {
        let sql = engine.dialect().insert_with_keys(&self.tables[table as usize], rows);
        let row = [ParamType::Int4, ParamType::Int4, ParamType::Text, ParamType::Text];
        session.prepare(&sql, &row.repeat(rows as usize))
    }

    /// Returns the tasks that create all indexes, with the tables dealt in turn.
    fn indexers<E: SqlEngine>(&self, engine: &E) -> Result<Vec<Task>, Error> {
        let parts = self.load_connections().min(self.plan.tables);
        let dialect = engine.dialect();
        let mut tasks = Vec::new();
        for part in 0..parts {
            let client = self.client_of_part(part);
            if !self.options.share.has(client) {
                continue;
            }

            let tables = self.tables.iter().skip(part as usize).step_by(parts as usize);
            let statements = tables
                .flat_map(|table| dialect.create_indexes(table, IndexStatements::Usual))
                .collect();
            let indexer = Indexer { session: engine.connect()?, statements, next: 0 };
            tasks.push(Task::new(client, CREATE_INDEX, Schedule::Closed, Box::new(indexer))?);
        }
        Ok(tasks)
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

        let mut session =
            if test.only_reads() { engine.connect_to_read()? } else { engine.connect()? };
        let mut tables = Vec::new();
        for number in self.tables_of(test, client) {
            let name = &self.tables[number as usize].name;
            tables.push(RunnerTable {
                number,
                name: name.clone(),
                statements: prepare(&mut session, &event, name, dialect)?,
            });
        }
        let transactions = if test.transaction {
            Some(Transactions::new(&mut session, &event, dialect)?)
        } else {
            None
        };

        let seed = self.options.seed;
        let [step_number, client] = [step.number as u64, client.into()];
        let is_warm_up = u64::from(step.is_warm_up);
        // Another nonce must not change the operations, so only the texts depend on it.
        let choices_path = [step_number, client, is_warm_up, EVENTS];
        let texts_path = [step_number, client, is_warm_up, self.options.nonce, TEXTS];
        let streams = Streams {
            choices: Random::stream(seed, &choices_path),
            texts: Random::stream(seed, &texts_path),
        };
        Ok(Runner::new(session, event, streams, tables, transactions))
    }

    /// Returns the numbers of the tables that a client's events run on.
    fn tables_of(&self, test: &Test, client: u32) -> Range<u32> {
        match test.table {
            TableChoice::Random => 0..self.plan.tables,
            TableChoice::Thread => {
                let table = client % self.plan.tables;
                table..table + 1
            }
            TableChoice::First => 0..1,
        }
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
        for (number, table) in self.tables.iter().enumerate() {
            if self.plan.policy.checks == Checks::Full {
                let facts = engine.inspect(table, self.is_indexed())?;
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
            // Some servers return the spaces that the columns are padded with.
            let values: Vec<&str> = found
                .iter()
                .flatten()
                .map(|value| value.as_deref().unwrap_or("NULL").trim_end())
                .collect();

            let row = rows.row(id);
            let is_wrong = values != [row.k.to_string().as_str(), row.c(), row.pad()];
            compared.add(
                is_wrong.then(|| {
                    format!("row {id}: `{}`", excerpt(&values.join("`, `"), EXCERPT_CHARS))
                }),
            );
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
        let statement = session.prepare(&sql, &types).map_err(|error| Error {
            message: format!(
                "test `{}`, statement {}: `{}`: {}",
                event.test.name,
                index + 1,
                excerpt(&sql, EXCERPT_CHARS),
                error.message
            ),
            ..error
        })?;
        statements.push(Some(statement));
    }
    Ok(statements)
}

fn column(name: &'static str, kind: ColumnType) -> Column {
    Column { name, kind }
}

/// Returns table number `number`, from 1, as sysbench 1.0 creates it.
fn table(number: u32, primary: bool) -> Table {
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
