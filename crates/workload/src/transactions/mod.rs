//! Transactions on tables of a script.
//!
//! A script comes from the plan ([`plan::transactions`]). Whatever is known before a step is computed
//! and prepared when its connections are opened. A connection draws the input of a transaction before
//! it is sent, so that a retry has the same input.

mod compiled;
mod connection;
mod distribution;
mod lasting;
mod literal;
mod load;
mod procedure;
mod terminal;
mod values;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use engine::{
    Column, ColumnType, DefinedType, Dialect, Error, Index, IndexStatements, Session, SqlEngine,
    StatementPlan, Table,
};
use plan::transactions::{Form, Isolation, Pause, ScriptTable, ScriptType};
use plan::{TransactionsStep, TransactionsStepKind};

use crate::numbers::{ClientNumbers, SharedNumbers};
use crate::program::plans_of_first_ops;
use crate::summary::{Commits, RowNumbers, Summaries, Summary};
use crate::sysbench::{Options, Step};
use crate::{Check, DataState, Program, Random, Schedule, Task};
use compiled::{Compiler, Statements};
use connection::{Body, Boundaries, CREATE_INDEX, ClientWork, Indexer, MixPart, Pace, Runner};
pub use load::INSERT;
use load::{Loader, RowWriter, TablePart};
pub use procedure::Procedure;
use procedure::{Block, Call, session_settings};
use terminal::Terminal;
use values::{ClientOfMany, Constants, Values};

/// Purposes of random streams, the last part of their paths.
const CHOICES: u64 = 12;
const TEXTS: u64 = 13;
const PAUSES: u64 = 15;

/// One cell's benchmark: its tables and what is known about them.
pub struct Transactions {
    plan: plan::Transactions,
    options: Options,
    tables: Vec<Table>,
    /// The commits since the load.
    commits: Commits,
    /// The numbers of each table's rows, including those that transactions inserted.
    numbers: Vec<RowNumbers>,
    /// The last step loaded the tables.
    has_just_loaded: bool,
}

impl Transactions {
    /// Returns a benchmark whose tables don't exist yet.
    pub fn new(plan: &plan::Transactions, options: Options) -> Self {
        Self {
            tables: plan.script.tables.iter().map(table).collect(),
            numbers: numbers_after_load(plan),
            plan: plan.clone(),
            options,
            commits: Commits::default(),
            has_just_loaded: false,
        }
    }

    /// Returns the workload's part of the plan.
    pub fn plan(&self) -> &plan::Transactions {
        &self.plan
    }

    /// Returns the benchmark's tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the procedures that the transactions call on an engine.
    pub fn procedures(&self, dialect: &dyn Dialect) -> Vec<Procedure> {
        let plan = &self.plan;
        let Some(engine) = dialect.engine().filter(|_| plan.form == Form::Procedure) else {
            return Vec::new();
        };
        let transactions = plan.script.transactions.iter();
        transactions
            .filter_map(|transaction| Procedure::new(engine, plan.statements, transaction))
            .collect()
    }

    /// Returns the kind of operation that a test is about: its first transaction.
    pub fn main_kind(&self, test: usize) -> crate::OpKind {
        self.kinds(test)[0]
    }

    fn kinds(&self, test: usize) -> &'static [crate::OpKind] {
        let script = &self.plan.script;
        let parts = script.tests[test].parts.iter();
        lasting::kinds(parts.map(|(index, _)| script.transactions[*index].name.as_str()))
    }

    /// Returns what is known of the tables.
    pub fn state(&self) -> DataState {
        let has_new_rows = self.numbers != numbers_after_load(&self.plan);
        DataState::Transactions {
            rows: self.loaded_rows(),
            commits: self.commits.clone(),
            numbers: if has_new_rows { self.numbers.clone() } else { Vec::new() },
        }
    }

    fn loaded_rows(&self) -> Vec<u64> {
        self.plan.script.tables.iter().map(|table| table.rows).collect()
    }

    /// Takes over what another process knew of the same tables after the first `done` steps. Returns
    /// `false` if it knew other tables.
    pub fn restore(&mut self, state: DataState, done: usize) -> bool {
        let DataState::Transactions { rows, commits, numbers } = state else {
            return false;
        };
        if rows != self.loaded_rows() {
            return false;
        }

        self.commits = commits;
        self.numbers =
            if numbers.len() == rows.len() { numbers } else { numbers_after_load(&self.plan) };
        let is_run =
            |step: &TransactionsStep| matches!(step.kind, TransactionsStepKind::Run { .. });
        self.has_just_loaded = !self.plan.steps[..done].iter().any(is_run);
        true
    }

    /// Opens the connections of a step and prepares their statements.
    ///
    /// # Errors
    /// The engine's own; a statement of the script that it refuses.
    pub fn connections<E: SqlEngine>(&self, step: Step, engine: &E) -> Result<Vec<Task>, Error> {
        match &self.plan.steps[step.number].kind {
            TransactionsStepKind::Settle => Ok(Vec::new()),
            TransactionsStepKind::Load => self.loaders(engine),
            TransactionsStepKind::Index => self.indexers(engine),
            TransactionsStepKind::Run { test, length, home, isolation, rate, pauses, .. } => {
                let clients = self.options.clients;
                let kind = self.main_kind(*test);
                let shared = self.shared_numbers(*test);
                let mut tasks = Vec::new();
                for client in (0..clients).filter(|client| self.options.share.has(*client)) {
                    let mut values = self.values(step, client);
                    values.numbers = self.client_numbers(&shared, client);

                    let is_scheduled = rate.is_some() || !pauses.is_empty();
                    let mut pace = Pace { is_scheduled, ..Pace::default() };
                    if !step.is_warm_up {
                        pace.left = length.transactions_of(client, clients);
                    }
                    if !pauses.is_empty() {
                        pace.terminal = Some(self.terminal(step, *test, pauses, client));
                    }

                    let of_many = ClientOfMany { number: client, count: clients, rule: *home };
                    let work = ClientWork { client: of_many, values, pace };
                    let program = self.program(*test, *isolation, work, engine)?;
                    let schedule = match self.options.schedule(rate.as_ref(), client) {
                        Some(schedule) => schedule,
                        None if !pauses.is_empty() => Schedule::Paused,
                        None => Schedule::Closed,
                    };
                    tasks.push(Task::new(client, kind, schedule, program)?);
                }
                Ok(tasks)
            }
        }
    }

    /// Returns the row numbers of each table for the clients of a step; none if its test asks for none.
    fn shared_numbers(&self, test: usize) -> Vec<Arc<SharedNumbers>> {
        if !self.plan.script.shares_numbers(test) {
            return Vec::new();
        }
        let clients = self.options.clients;
        self.numbers.iter().map(|table| Arc::new(SharedNumbers::new(table, clients))).collect()
    }

    fn client_numbers(&self, shared: &[Arc<SharedNumbers>], client: u32) -> Vec<ClientNumbers> {
        let tables = shared.iter().zip(&self.numbers);
        tables.map(|(shared, before)| ClientNumbers::new(shared, before, client)).collect()
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

    /// Returns the tasks that load all rows. Each loads an equal part of every table, since rows of
    /// different tables take different times.
    fn loaders<E: SqlEngine>(&self, engine: &E) -> Result<Vec<Task>, Error> {
        let mut tasks = Vec::new();
        for part in 0..self.load_connections() {
            let client = part % self.options.clients.max(1);
            if !self.options.share.has(client) {
                continue;
            }

            let table_parts = self.table_parts(engine, part);
            if table_parts.is_empty() {
                continue;
            }
            let session = engine.connect()?;
            let loader = Loader::new(session, table_parts, self.plan.load_batch.into());
            tasks.push(Task::new(client, INSERT, Schedule::Closed, Box::new(loader))?);
        }
        Ok(tasks)
    }

    /// Returns the rows that one connection loads, of all tables.
    fn table_parts<E: SqlEngine>(&self, engine: &E, connection: u32) -> Vec<TablePart> {
        // The product of rows and connections may need more than 64 bits.
        let connections = u128::from(self.load_connections());
        let [before, after] = [connection, connection + 1].map(u128::from);
        let mut parts = Vec::new();
        for (number, table) in self.plan.script.tables.iter().enumerate() {
            let rows = u128::from(table.rows);
            let first = (rows * before / connections) as u64;
            let end = (rows * after / connections) as u64;
            if first < end {
                let dialect = engine.dialect().engine();
                let writer = RowWriter::new(table, number, self.options.seed, dialect);
                parts.push(TablePart { writer, rows: first + 1..end + 1 });
            }
        }
        parts
    }

    /// Returns the tasks that create all indexes, with the tables dealt in turn.
    fn indexers<E: SqlEngine>(&self, engine: &E) -> Result<Vec<Task>, Error> {
        let indexed = self.tables.iter().filter(|table| !table.indexes.is_empty());
        let indexed: Vec<&Table> = indexed.collect();
        let parts = (self.load_connections() as usize).min(indexed.len());
        let mut tasks = Vec::new();
        for part in 0..parts {
            let client = part as u32 % self.options.clients.max(1);
            if !self.options.share.has(client) {
                continue;
            }

            let tables = indexed.iter().skip(part).step_by(parts);
            let dialect = engine.dialect();
            let statements = tables
                .flat_map(|table| dialect.create_indexes(table, IndexStatements::Usual))
                .collect();
            let indexer = Indexer { session: engine.connect()?, statements, next: 0 };
            tasks.push(Task::new(client, CREATE_INDEX, Schedule::Closed, Box::new(indexer))?);
        }
        Ok(tasks)
    }

    /// Opens a connection of a test, and prepares its transactions in their form.
    fn program<E: SqlEngine>(
        &self,
        test: usize,
        isolation: Isolation,
        work: ClientWork,
        engine: &E,
    ) -> Result<Box<dyn Program>, Error> {
        let dialect = engine.dialect();
        let mut session = engine.connect()?;
        if let Some(level) = isolation.sql()
            && let Some(sql) = dialect.set_isolation(level)
        {
            session.query(&sql)?;
        }

        if self.plan.form != Form::Statements {
            for sql in session_settings(dialect.engine()) {
                session.query(sql)?;
            }
        }

        match self.plan.form {
            Form::Statements => self.runner::<_, Statements>(test, session, dialect, work),
            Form::Procedure => self.runner::<_, Call>(test, session, dialect, work),
            Form::Block => self.runner::<_, Block>(test, session, dialect, work),
        }
    }

    /// Prepares the transactions of a test.
    fn runner<S: Session, B: Body<S> + 'static>(
        &self,
        test: usize,
        mut session: S,
        dialect: &dyn Dialect,
        work: ClientWork,
    ) -> Result<Box<dyn Program>, Error> {
        let script = &self.plan.script;
        let statements = self.plan.statements;
        let constants = Constants { seed: self.options.seed, client: work.client };
        let mut parts = Vec::new();
        for (index, weight) in &script.tests[test].parts {
            let mut compiler = Compiler { session: &mut session, dialect, statements, constants };
            let transaction = compiler.transaction::<B>(*index, &script.transactions[*index])?;
            parts.push(MixPart { transaction, weight: (*weight).into() });
        }

        let boundaries = Boundaries::new(&mut session, dialect)?;
        let (kinds, count) = (self.kinds(test), script.transactions.len());
        Ok(Box::new(Runner::new(session, kinds, parts, boundaries, work, count)))
    }

    /// Returns the values of a client in a step, with the streams of its random numbers.
    fn values(&self, step: Step, client: u32) -> Values {
        let seed = self.options.seed;
        let [number, of_client] = [step.number as u64, client.into()];
        let is_warm_up = u64::from(step.is_warm_up);
        // Another nonce must not change the operations, so only the texts depend on it.
        let texts_path = [number, of_client, is_warm_up, self.options.nonce, TEXTS];
        Values {
            integers: vec![client.into()],
            texts: Vec::new(),
            choices: Random::stream(seed, &[number, of_client, is_warm_up, CHOICES]),
            letters: Random::stream(seed, &texts_path),
            keyed: Random::stream(seed, &[]),
            numbers: Vec::new(),
        }
    }

    /// Returns the waits of a client.
    fn terminal(&self, step: Step, test: usize, pauses: &[Pause], client: u32) -> Terminal {
        let parts = self.plan.script.tests[test].parts.iter();
        let of_parts = parts.map(|(transaction, _)| pauses[*transaction]).collect();
        let path = [step.number as u64, client.into(), u64::from(step.is_warm_up), PAUSES];
        Terminal::new(of_parts, Random::stream(self.options.seed, &path))
    }

    /// Applies what the connections of a step or its warm-up did, complete or not.
    pub fn apply(&mut self, step: usize, summaries: &Summaries) {
        // Clients share a table's numbers, so what is left of them takes the summaries of all clients.
        let mut numbers = vec![Vec::new(); self.numbers.len()];
        for (_, summary) in summaries {
            match summary {
                Summary::Commits(commits) => self.commits.add(commits),
                Summary::CommitsOfNumberedRows(commits, tables) => {
                    self.commits.add(commits);
                    for (numbers, of_client) in numbers.iter_mut().zip(tables) {
                        numbers.push(of_client.clone());
                    }
                }
                _ => {}
            }
        }
        for (table, of_clients) in self.numbers.iter_mut().zip(numbers) {
            if !of_clients.is_empty() {
                *table = RowNumbers::of_clients(&of_clients);
            }
        }

        let kind = &self.plan.steps[step].kind;
        match kind {
            TransactionsStepKind::Load => self.has_just_loaded = true,
            TransactionsStepKind::Run { .. } => self.has_just_loaded = false,
            TransactionsStepKind::Index | TransactionsStepKind::Settle => {}
        }
    }

    /// Runs the checks of the script. After the load, also counts the rows of each table.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check<E: SqlEngine>(&self, engine: &E) -> Result<Vec<Check>, Error> {
        let mut session = engine.connect_to_inspect()?;
        let mut checks = Vec::new();
        if self.has_just_loaded {
            let tables = self.plan.script.tables.iter();
            for table in tables.filter(|table| table.condition.is_none()) {
                let found = session.query_i64(&format!("select count(*) from {}", table.name))?;
                let found = found.unwrap_or(0).unsigned_abs();
                checks.push(Check::equal(format!("rows of {}", table.name), table.rows, found));
            }
        }

        let checks_now = self.plan.script.checks.iter();
        for check in checks_now.filter(|check| self.has_just_loaded || !check.only_after_load) {
            if self.commits.is_uncertain && !check.expected.committed.is_empty() {
                let why = "a commit was not answered";
                checks.push(Check::left_out(check.name.clone(), why));
                continue;
            }

            let mut expected = check.expected.constant;
            for (transaction, times) in &check.expected.committed {
                let count = self.commits.counts.get(*transaction).copied().unwrap_or(0);
                expected += times * i64::try_from(count).unwrap_or(i64::MAX);
            }
            let found = first_value(&mut session, &check.sql)?;
            let holds = is_number(&found, expected);
            checks.push(Check::new(check.name.clone(), expected, found, holds));
        }
        Ok(checks)
    }
}

/// Returns the first value that a query returns, as text.
fn first_value<S: Session>(session: &mut S, sql: &str) -> Result<String, Error> {
    let rows = session.query(sql)?;
    let first = rows.into_iter().next().and_then(|row| row.into_iter().next());
    Ok(match first {
        None => "no row".to_owned(),
        Some(None) => "NULL".to_owned(),
        Some(Some(value)) => value,
    })
}

/// Returns whether a text is this number, perhaps with decimals that are 0.
fn is_number(text: &str, expected: i64) -> bool {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    whole.parse() == Ok(expected) && decimals.bytes().all(|digit| digit == b'0')
}

/// Returns the numbers of each table's rows after the load.
fn numbers_after_load(plan: &plan::Transactions) -> Vec<RowNumbers> {
    let tables = plan.script.tables.iter();
    tables.map(|table| RowNumbers { next: table.rows + 1, unused: Vec::new() }).collect()
}

/// Returns the description of a script's table.
fn table(table: &ScriptTable) -> Table {
    let mut columns = Vec::new();
    for column in &table.columns {
        let kind = match column.kind {
            ScriptType::Int => DefinedType::Int4,
            ScriptType::Bigint => DefinedType::Int8,
            ScriptType::Decimal { digits, decimals } => DefinedType::Decimal { digits, decimals },
            ScriptType::Char(length) => DefinedType::Char(length),
            ScriptType::Varchar(length) => DefinedType::Text(length),
            ScriptType::Timestamp => DefinedType::Timestamp,
        };
        let key_place = table.key.iter().position(|name| *name == column.name);
        let kind = ColumnType::Defined { kind, nullable: column.nullable, key_place };
        columns.push(Column { name: lasting::name(&column.name), kind });
    }

    let index = |(name, columns): &(String, Vec<String>)| Index {
        name: lasting::name(name),
        columns: columns.iter().map(|column| lasting::name(column)).collect(),
    };
    Table {
        name: table.name.clone(),
        columns,
        indexes: table.indexes.iter().map(index).collect(),
        partitions: None,
    }
}
