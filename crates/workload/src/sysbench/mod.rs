//! The sysbench workload: sysbench's tables, and tests each of which is one kind of event.
//!
//! A test is data: statements with parameters that are drawn anew for each event ([`mod@test`]). What is known before a
//! step is worked out when its connections are opened; what remains is drawing numbers and sending them.

pub mod connection;
pub mod test;

mod compile;
mod data;
mod distribution;
mod expression;
mod found;
mod ledger;
mod mix;
mod text;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use engine::{
    Column, ColumnType, Dialect, Error, ErrorClass, Index, IndexStatements, ParamType, Session,
    SqlEngine, Statement, Table, TableFacts,
};

use crate::{Accounts, Check, Random, Schedule, Task};
use compile::{Event, Streams, Target};
use connection::{
    Batches, ByTable, Changes, Control, Indexer, Loader, OfTable, Runner, Transactions,
};
use data::Rows;
use expression::Environment;
pub use found::{Wanted, WantedIndex};
use ledger::Ledger;
use test::{Distribution, TableChoice, Test};

/// Purposes of random streams, the last part of their paths; 0 is the rows'.
const EVENTS: u64 = 1;
const SAMPLES: u64 = 2;
const TEXTS: u64 = 3;

/// What does not change from step to step.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all rows and random choices.
    pub seed: u64,
    /// Mixed into the texts that events write, and into nothing else. Another nonce does the same operations on the
    /// same keys, but writes other texts: tables that outlive a cell don't hold them already.
    pub nonce: u64,
    /// Clients: each is one connection.
    pub clients: u32,
    /// Tables.
    pub tables: u32,
    /// Rows of each, as it is loaded.
    pub rows: u64,
    /// Connections that load.
    pub load_connections: u32,
    /// Rows of a statement that loads.
    pub load_batch: u32,
    /// The key is a primary key; otherwise there is none, and an index on it.
    pub primary_key: bool,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its position in the plan: its random choices differ from those of others.
    pub number: u32,
    /// It is run to warm up for the step of the same number, with other random choices.
    pub is_warm_up: bool,
    /// What it does.
    pub kind: StepKind,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// Inserts all rows.
    Load,
    /// Creates the index on `k`.
    Index,
    /// Runs a test.
    Run {
        /// What an event is.
        test: Test,
        /// How keys are chosen.
        distribution: Distribution,
        /// Events per second and client; `None`: as fast as they go.
        rate: Option<f64>,
    },
}

/// One cell's benchmark: its tables and what is known of them.
pub struct Sysbench {
    options: Options,
    tables: Vec<Table>,
    ledgers: Vec<Ledger>,
}

impl Sysbench {
    /// A benchmark whose tables don't exist yet.
    pub fn new(options: Options) -> Self {
        let tables: Vec<Table> = (1..=options.tables)
            .map(|number| table(number, &options))
            .collect();
        Self {
            ledgers: vec![Ledger::default(); tables.len()],
            tables,
            options,
        }
    }

    /// Its tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Statements that create the tables.
    ///
    /// # Errors
    /// What was asked for is not applicable to this engine.
    pub fn create_statements(&self, dialect: &dyn Dialect) -> Result<Vec<String>, Error> {
        if !self.options.primary_key && dialect.assigned_keys_are_primary() {
            return Err(other(
                "a table without a primary key is not applicable: this engine assigns keys only where they are \
                 the primary key; leave out `primary-key = false`",
            ));
        }
        if !self.options.primary_key && data::is_wide(self.options.rows) {
            return Err(other(format!(
                "a table without a primary key has keys of 32 bits, too short for {} rows; \
                 take fewer rows or more tables",
                self.options.rows
            )));
        }
        Ok(self
            .tables
            .iter()
            .flat_map(|table| dialect.create_table(table))
            .collect())
    }

    /// Rows that should be in all tables now.
    pub fn rows(&self) -> u64 {
        self.ledgers.iter().map(|ledger| ledger.rows).sum()
    }

    /// Bytes of all values that should be there now.
    pub fn data_bytes(&self) -> u64 {
        self.rows() * self.row_bytes()
    }

    /// Bytes of a row's values.
    pub fn row_bytes(&self) -> u64 {
        data::row_bytes(self.options.rows)
    }

    /// Whether the secondary indexes exist.
    pub fn is_indexed(&self) -> bool {
        self.ledgers.iter().all(|ledger| ledger.is_indexed)
    }

    /// Opens the connections of a step and prepares their statements.
    ///
    /// # Errors
    /// The engine's own; what is wrong with a test.
    pub fn connections<E: SqlEngine>(&self, step: &Step, engine: &E) -> Result<Vec<Task>, Error> {
        match &step.kind {
            StepKind::Load => self.loaders(engine),
            StepKind::Index => self.indexers(engine),
            StepKind::Run {
                test,
                distribution,
                rate,
            } => (0..self.options.clients)
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

    /// All rows in the order of their tables and keys, in so many parts of equal length.
    fn loaders<E: SqlEngine>(&self, engine: &E) -> Result<Vec<Task>, Error> {
        let total = u128::from(self.options.rows) * u128::from(self.options.tables);
        let parts = self.options.load_connections.max(1);
        let mut tasks = Vec::new();
        for part in 0..parts {
            let edge = |part: u32| total * u128::from(part) / u128::from(parts);
            let (from, to) = (edge(part), edge(part + 1));
            if from == to {
                continue;
            }
            let client = part % self.options.clients.max(1);
            let loader = Box::new(self.loader(engine, from, to)?);
            tasks.push(Task::new(client, "insert", Schedule::Closed, loader)?);
        }
        Ok(tasks)
    }

    /// Loads the rows from number `from` until `to`, counted over all tables from 0.
    fn loader<E: SqlEngine>(
        &self,
        engine: &E,
        from: u128,
        to: u128,
    ) -> Result<Loader<E::Session>, Error> {
        let rows = self.options.rows;
        let batch = self.options.load_batch.max(1);
        let is_wide = data::is_wide(rows);
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
                // Keys are given: those that the server assigns later come after them.
                for sql in engine.dialect().assign_keys_above(table, rows) {
                    session.query(&sql)?;
                }
            }
            let whole = (last + 1 - first) / u64::from(batch) * u64::from(batch);
            let mut add = |size: u32, keys: RangeInclusive<u64>| -> Result<(), Error> {
                if keys.is_empty() {
                    return Ok(());
                }
                let key = if is_wide {
                    ParamType::Int8
                } else {
                    ParamType::Int4
                };
                let row = [key, ParamType::Int4, ParamType::Text, ParamType::Text];
                let sql = engine.dialect().insert_with_keys(table, size);
                let statement = session.prepare(&sql, &row.repeat(size as usize))?;
                batches.push(Batches {
                    statement,
                    rows: size,
                    keys,
                    source: Rows::new(self.options.seed, number, rows),
                    table: changes.len(),
                });
                Ok(())
            };
            add(batch, first..=first + whole - 1)?;
            add((last + 1 - first - whole) as u32, first + whole..=last)?;
            changes.push((number, Changes::default()));
        }
        batches.reverse();
        Ok(Loader {
            session,
            batches,
            is_wide,
            changes,
            current: (0, 0),
        })
    }

    fn indexers<E: SqlEngine>(&self, engine: &E) -> Result<Vec<Task>, Error> {
        let parts = self
            .options
            .load_connections
            .min(self.options.tables)
            .max(1) as usize;
        (0..parts)
            .map(|part| {
                let statements = self
                    .tables
                    .iter()
                    .skip(part)
                    .step_by(parts)
                    .flat_map(|table| {
                        engine
                            .dialect()
                            .create_indexes(table, IndexStatements::Usual)
                    })
                    .collect();
                let client = part as u32 % self.options.clients.max(1);
                let indexer = Indexer {
                    session: engine.connect()?,
                    statements,
                    next: 0,
                };
                Task::new(client, "index", Schedule::Closed, Box::new(indexer))
            })
            .collect()
    }

    fn runner<E: SqlEngine>(
        &self,
        step: &Step,
        test: &Test,
        distribution: Distribution,
        client: u32,
        engine: &E,
    ) -> Result<Runner<E::Session>, Error> {
        let dialect = engine.dialect();
        let target = Target {
            environment: Environment {
                rows: self.options.rows,
                tables: self.options.tables,
                thread: client,
            },
            distribution,
            dialect,
            may_miss: self.ledgers.iter().any(|ledger| !ledger.is_whole()),
            is_shared: self.options.clients > 1,
        };
        let event = Event::new(test, &target).map_err(other)?;
        let tables = match test.table {
            TableChoice::Random => 0..self.options.tables,
            TableChoice::Thread => {
                let table = client % self.options.tables;
                table..table + 1
            }
            TableChoice::First => 0..1,
        };
        let mut session = engine.connect()?;
        let mut of_tables = Vec::new();
        for number in tables {
            let name = &self.tables[number as usize].name;
            of_tables.push(OfTable {
                number,
                name: name.clone(),
                statements: prepare(&mut session, &event, test, name, dialect)?,
            });
        }
        let mut control = |sql| Control::new(&mut session, sql, event.is_plain());
        let transactions = match event.transaction {
            false => None,
            true => Some(Transactions {
                begin: control(dialect.begin_transaction(event.writes()))?,
                begin_reading: match event.writes_sometimes() {
                    false => None,
                    true => Some(control(dialect.begin_transaction(false))?),
                },
                commit: control(dialect.commit())?,
                rollback: control(dialect.rollback())?,
            }),
        };
        let path = [
            u64::from(step.number),
            u64::from(client),
            u64::from(step.is_warm_up),
        ];
        let stream =
            |purpose: &[u64]| Random::stream(self.options.seed, &[&path, purpose].concat());
        let streams = Streams {
            choices: stream(&[EVENTS]),
            texts: stream(&[self.options.nonce, TEXTS]),
        };
        Ok(Runner::new(
            session,
            event,
            streams,
            of_tables,
            transactions,
        ))
    }

    /// Takes in what the connections of a step did, whether or not it was completed; also of a warm-up.
    pub fn apply(&mut self, step: &Step, accounts: &Accounts) {
        // All together: one connection may have deleted what another inserted.
        let mut sums = vec![Changes::default(); self.ledgers.len()];
        for (_, account) in accounts {
            for (table, changes) in account.downcast_ref::<ByTable>().into_iter().flatten() {
                sums[*table as usize].add(*changes);
            }
        }
        for (ledger, sum) in self.ledgers.iter_mut().zip(sums) {
            ledger.apply(sum);
            match step.kind {
                StepKind::Load => ledger.end_load(self.options.rows),
                StepKind::Index => ledger.is_indexed = true,
                StepKind::Run { .. } => {}
            }
        }
    }

    /// Compares table number `table` with what the engine counted.
    pub fn check(&self, table: usize, facts: &TableFacts) -> Vec<Check> {
        self.ledgers[table].check(&self.tables[table], facts)
    }

    /// Compares the smallest and largest key of table number `table` alone.
    pub fn check_keys(
        &self,
        table: usize,
        key_min: Option<i64>,
        key_max: Option<i64>,
    ) -> Vec<Check> {
        self.ledgers[table].check_keys(&self.tables[table], key_min, key_max)
    }

    /// Reads so many rows of table number `table` and compares each with what was loaded: right until a test writes.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check_loaded<S: Session>(
        &self,
        table: usize,
        session: &mut S,
        samples: u64,
    ) -> Result<Check, Error> {
        let number = u32::try_from(table).unwrap_or(u32::MAX);
        let rows = Rows::new(self.options.seed, number, self.options.rows);
        let name = &self.tables[table].name;
        let path = [u64::from(number), SAMPLES];
        let mut random = Random::stream(self.options.seed, &path);
        let (mut wrong, mut first) = (0, None);
        for _ in 0..samples {
            let id = 1 + random.below(self.options.rows);
            let found = session.query(&format!("select k, c, pad from {name} where id = {id}"))?;
            // Some servers return the blanks that the columns are padded with.
            let found: Vec<&str> = found
                .iter()
                .flatten()
                .map(|value| value.as_deref().unwrap_or("NULL").trim_end())
                .collect();
            let row = rows.row(id);
            if found != [row.k.to_string().as_str(), row.c(), row.pad()] {
                wrong += 1;
                first
                    .get_or_insert_with(|| format!("row {id}: `{}`", excerpt(&found.join("`, `"))));
            }
        }
        Ok(Check::none_wrong(
            format!("rows of {name} as they were loaded"),
            samples,
            wrong,
            first,
        ))
    }
}

/// Prepares the statements of an event for a table, but for those that are sent as text.
fn prepare<S: Session>(
    session: &mut S,
    event: &Event,
    test: &Test,
    table: &str,
    dialect: &dyn Dialect,
) -> Result<Vec<Option<Statement>>, Error> {
    let mut statements = Vec::new();
    for (index, statement) in event.statements.iter().enumerate() {
        let Some(sql) = statement.sql(table, dialect) else {
            statements.push(None);
            continue;
        };
        let prepared = session.prepare(&sql, &statement.types);
        statements.push(Some(prepared.map_err(|error| Error {
            message: format!(
                "test `{}`, statement {}: `{}`: {}",
                test.name,
                index + 1,
                excerpt(&sql),
                error.message
            ),
            ..error
        })?));
    }
    Ok(statements)
}

/// Table number `number`, counted from 1, as sysbench 1.0 makes it.
fn table(number: u32, options: &Options) -> Table {
    let column = |name, kind| Column { name, kind };
    // More rows than keys of 32 bits: sysbench has no such table.
    let key = match data::is_wide(options.rows) && options.primary_key {
        true => ColumnType::AutoKey,
        false => ColumnType::AutoInt4 {
            primary: options.primary_key,
        },
    };
    Table {
        name: format!("sbtest{number}"),
        columns: vec![
            column("id", key),
            column("k", ColumnType::Int4OrZero),
            column("c", ColumnType::Char(120)),
            column("pad", ColumnType::Char(60)),
        ],
        indexes: vec![Index {
            name: "k",
            columns: vec!["k"],
        }],
        partitions: None,
    }
}

fn other(message: impl Into<String>) -> Error {
    Error::new(ErrorClass::Other, message)
}

/// The beginning of a text that may be long.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        None => text.into(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
