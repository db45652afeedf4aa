//! The Insert Benchmark: a table or several that grow at the head and shrink at the tail, with three secondary
//! indexes, and range and point queries beside the writes.
//!
//! Loading in key order (`l.i0`), creating the indexes (`l.x`), writing with large and with small transactions (`l.i1`,
//! `l.i2`), then queries as fast as they go with writes at a rate (`qr100`, `qp100`, ...).

//!
//! What is done to which rows is the same on an engine that speaks SQL ([`connection`]) and on one of keys and values
//! ([`keyed`]).

pub mod connection;
pub mod keyed;

mod choices;
mod ledger;
mod pace;
mod rows;
mod schema;
mod statements;

use std::sync::Arc;

use engine::{
    BulkLoad, Dialect, Durability, Error, IndexStatements, Partitions, SqlEngine, Table, TableFacts,
};

use choices::{KeyMin, PointChoices, RangeChoices};
pub use ledger::Check;
use ledger::{Deleted, Inserted, Ledger};
use pace::{Pace, Turns};
use rows::Feed;
pub use rows::RowSource;
pub use schema::IndexSet;
use schema::POINT_KEYS;
use statements::Statements;

use crate::{Program, Random, Schedule, Task};

/// What does not change from step to step.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all rows and random choices.
    pub seed: u64,
    /// Clients.
    pub clients: u32,
    /// All clients share one table; otherwise each has its own.
    pub shared_table: bool,
    /// Every insert comes with a delete of as many of the oldest rows, but in `l.i0` and `l.x`.
    pub delete_per_insert: bool,
    /// The definition of the secondary indexes.
    pub indexes: IndexSet,
    /// Shortest and longest value of the column `data`.
    pub data_length: (u32, u32),
    /// Range partitions of each table.
    pub partitions: Option<Partitions>,
    /// How the indexes are made.
    pub index_statements: IndexStatements,
    /// Whether `l.i0` uses what the engine has to load many rows at once. Clients that share a table can't.
    pub bulk_load: bool,
    /// Each client has a connection that holds a transaction open for so many seconds, and again.
    pub long_transaction_seconds: Option<f64>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its position in the plan: its random choices differ from those of others.
    pub number: u32,
    /// What it does.
    pub kind: StepKind,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepKind {
    /// Inserts without deletes.
    Load {
        /// Rows per table, rounded up to whole commits.
        rows: u64,
        /// Rows per commit.
        rows_per_commit: u32,
    },
    /// Inserts, then creates the indexes.
    Index {
        /// Rows per table inserted first, rounded up to whole commits.
        rows: u64,
        /// Rows per commit.
        rows_per_commit: u32,
    },
    /// Inserts and, if asked for, deletes.
    Write {
        /// Rows per table, rounded up to whole commits.
        rows: u64,
        /// Rows per commit.
        rows_per_commit: u32,
    },
    /// Queries as fast as they go, with inserts and deletes at a rate.
    Query {
        /// Lookups by key instead of scans of indexes.
        point: bool,
        /// Rows inserted per second and client.
        rate: f64,
        /// Rows per commit.
        rows_per_commit: u32,
    },
}

impl StepKind {
    /// Rows per commit.
    pub fn rows_per_commit(&self) -> u32 {
        match *self {
            Self::Load {
                rows_per_commit, ..
            }
            | Self::Index {
                rows_per_commit, ..
            }
            | Self::Write {
                rows_per_commit, ..
            }
            | Self::Query {
                rows_per_commit, ..
            } => rows_per_commit,
        }
    }
}

/// What one connection did, as [`Insert::apply`] wants to know it.
pub struct Done<'a> {
    /// Its client, from 0.
    pub client: u32,
    /// Its program, with its session still open.
    pub program: &'a mut dyn Program,
    /// Rows of all its successful operations.
    pub rows: u64,
    /// No operation failed or was tried again.
    pub flawless: bool,
}

/// What a connection knows at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// It inserted.
    Inserted {
        /// The largest key of its rows.
        last_key: Option<i64>,
        /// The number of the row after the last one that it made, if it made any.
        end_row: Option<u64>,
        /// The key after the last one that was given, where no server gives them.
        next_key: Option<i64>,
    },
    /// It deleted.
    Deleted {
        /// No key is smaller.
        key_min: i64,
        /// That is said of the rows that were there before the step alone: others insert too, and a server may give one of
        /// them smaller keys than those that it gave before.
        is_of_old: bool,
        /// But for these, from here on, which it failed to delete.
        left: Option<i64>,
    },
}

/// One client in one step.
#[derive(Clone, Copy)]
struct Part<'a> {
    step: &'a Step,
    client: u32,
    /// Its table's number.
    table: usize,
}

/// Makes the programs of connections, each with a session of its own.
trait Programs {
    fn inserter(
        &mut self,
        part: Part<'_>,
        feed: Feed,
        turns: Turns,
    ) -> Result<Box<dyn Program>, Error>;

    /// An inserter that then creates the indexes, if that is this client's to do.
    fn indexer(
        &mut self,
        part: Part<'_>,
        feed: Feed,
        turns: Turns,
        creates: bool,
    ) -> Result<Box<dyn Program>, Error>;

    fn deleter(
        &mut self,
        part: Part<'_>,
        turns: Turns,
        published: &Arc<KeyMin>,
    ) -> Result<Box<dyn Program>, Error>;

    fn range_reader(
        &mut self,
        part: Part<'_>,
        choices: RangeChoices,
    ) -> Result<Box<dyn Program>, Error>;

    fn point_reader(
        &mut self,
        part: Part<'_>,
        choices: PointChoices,
    ) -> Result<Box<dyn Program>, Error>;

    /// Holds long transactions; `None` where there are none.
    fn holder(&mut self, part: Part<'_>) -> Result<Option<Box<dyn Program>>, Error>;
}

/// One cell's benchmark: its tables and what is known of them.
pub struct Insert {
    options: Options,
    tables: Vec<Table>,
    ledgers: Vec<Ledger>,
    /// What writes leave behind on an engine of keys and values.
    durability: Durability,
}

impl Insert {
    /// A benchmark whose tables don't exist yet.
    pub fn new(options: Options) -> Self {
        let count = if options.shared_table {
            1
        } else {
            options.clients
        };
        let tables: Vec<Table> = (0..count)
            .map(|number| {
                schema::table(
                    number,
                    options.indexes,
                    options.data_length.1,
                    options.partitions,
                )
            })
            .collect();
        Self {
            ledgers: vec![Ledger::new(); tables.len()],
            tables,
            options,
            durability: Durability::Log,
        }
    }

    /// Its tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Statements that create the tables.
    pub fn create_statements(&self, dialect: &dyn Dialect) -> Vec<String> {
        self.tables
            .iter()
            .flat_map(|table| dialect.create_table(table))
            .collect()
    }

    /// Rows that should be in all tables now.
    pub fn rows(&self) -> u64 {
        self.ledgers.iter().map(|ledger| ledger.rows).sum()
    }

    /// What the values of a row take in bytes, on average.
    pub fn row_bytes_mean(&self) -> f64 {
        rows::bytes_mean(self.options.data_length)
    }

    /// Whether the secondary indexes exist.
    pub fn is_indexed(&self) -> bool {
        self.ledgers.iter().all(|ledger| ledger.indexed)
    }

    /// Opens the connections of a step and prepares their statements.
    ///
    /// # Errors
    /// The engine's own.
    pub fn connections<E: SqlEngine>(&self, step: &Step, engine: &E) -> Result<Vec<Task>, Error> {
        let programs = Statements {
            insert: self,
            engine,
        };
        self.tasks(step, programs)
    }

    fn tasks(&self, step: &Step, mut programs: impl Programs) -> Result<Vec<Task>, Error> {
        let mut tasks = Vec::new();
        let key_mins: Vec<Arc<KeyMin>> = self.tables.iter().map(|_| Arc::default()).collect();
        for client in 0..self.options.clients {
            let table = self.table_of(client);
            let part = Part {
                step,
                client,
                table,
            };
            let published = &key_mins[part.table];
            let clients = self.options.clients;
            let mut add = |role, rate: Option<f64>, background, program| {
                let schedule = rate.map_or(Schedule::Closed, |rate| {
                    Schedule::rate(rate, client, clients)
                });
                let task = Task::new(client, role, schedule, program)?;
                tasks.push(Task { background, ..task });
                Ok::<(), Error>(())
            };
            let feed = self.feed(part);
            match step.kind {
                StepKind::Load { rows, .. } => {
                    let turns = Turns::new(self.commits(part, rows), None);
                    add("insert", None, false, programs.inserter(part, feed, turns)?)?;
                }
                StepKind::Index { rows, .. } => {
                    let turns = Turns::new(self.commits(part, rows), None);
                    // Clients that share a table share its indexes: the first creates them.
                    let creates = client as usize == table;
                    let indexer = programs.indexer(part, feed, turns, creates)?;
                    add("index", None, false, indexer)?;
                }
                StepKind::Write { rows, .. } => {
                    let commits = self.commits(part, rows);
                    let [ours, theirs] = match self.options.delete_per_insert {
                        true => Pace::pair().map(Some),
                        false => [None, None],
                    };
                    let deletes = theirs.is_some();
                    let inserter = programs.inserter(part, feed, Turns::new(commits, ours))?;
                    add("insert", None, false, inserter)?;
                    if deletes {
                        let turns = Turns::new(commits, theirs);
                        let deleter = programs.deleter(part, turns, published)?;
                        add("delete", None, false, deleter)?;
                    }
                }
                StepKind::Query {
                    point,
                    rate,
                    rows_per_commit,
                } => {
                    let random = |purpose| {
                        let path = [u64::from(step.number), u64::from(client), purpose];
                        Random::stream(self.options.seed, &path)
                    };
                    let reader = if point {
                        programs.point_reader(part, PointChoices::new(random(3), published))?
                    } else {
                        let queries = self.options.indexes.range_queries();
                        let rows = self.ledgers[part.table].rows;
                        let choices = RangeChoices::new(random(2), &queries, rows);
                        programs.range_reader(part, choices)?
                    };
                    add("query", None, false, reader)?;
                    let commits_per_s = Some(rate / f64::from(rows_per_commit));
                    let inserter = programs.inserter(part, feed, Turns::new(None, None))?;
                    add("insert", commits_per_s, false, inserter)?;
                    if self.options.delete_per_insert {
                        let turns = Turns::new(None, None);
                        let deleter = programs.deleter(part, turns, published)?;
                        add("delete", commits_per_s, false, deleter)?;
                    }
                }
            }
            if let Some(seconds) = self.options.long_transaction_seconds
                && !matches!(step.kind, StepKind::Load { .. } | StepKind::Index { .. })
                && let Some(holder) = programs.holder(part)?
            {
                add("long-transaction", Some(1.0 / seconds), true, holder)?;
            }
        }
        Ok(tasks)
    }

    /// The number of the table that a client works on.
    fn table_of(&self, client: u32) -> usize {
        match self.options.shared_table {
            true => 0,
            false => client as usize,
        }
    }

    /// Which of how many connections inserts into its table.
    fn position(&self, client: u32) -> (u64, u64) {
        match self.options.shared_table {
            true => (client.into(), self.options.clients.into()),
            false => (0, 1),
        }
    }

    fn feed(&self, part: Part<'_>) -> Feed {
        Feed::new(
            self.row_source(part.table),
            part.step.kind.rows_per_commit(),
            self.ledgers[part.table].next_row,
            self.position(part.client),
        )
    }

    fn row_source(&self, table: usize) -> RowSource {
        let (shortest, longest) = self.options.data_length;
        RowSource::new(self.options.seed, table as u32, shortest, longest)
    }

    /// A connection's share of the commits that insert so many rows into its table.
    fn commits(&self, part: Part<'_>, rows: u64) -> Option<u64> {
        let (position, of) = self.position(part.client);
        let all = rows.div_ceil(part.step.kind.rows_per_commit().into());
        Some(all / of + u64::from(position < all % of))
    }

    /// Takes in what a step did, whether or not it was completed.
    ///
    /// # Errors
    /// The engine's own, when a session can't say which keys it was given.
    pub fn apply(&mut self, step: &Step, done: &mut [Done<'_>]) -> Result<(), Error> {
        for number in 0..self.tables.len() {
            let (mut inserted, mut deleted) = (Vec::new(), Deleted::default());
            let of_table = |done: &&mut Done<'_>| self.table_of(done.client) == number;
            let done: Vec<_> = done.iter_mut().filter(of_table).collect();
            let ledger = &mut self.ledgers[number];
            for Done {
                program,
                rows,
                flawless,
                ..
            } in done
            {
                let account = program.account(*rows)?;
                match account.downcast_ref().copied() {
                    Some(Account::Inserted {
                        last_key,
                        end_row,
                        next_key,
                    }) => {
                        inserted.push(Inserted {
                            rows: *rows,
                            last_key,
                            gapless: *flawless,
                        });
                        ledger.next_row = ledger.next_row.max(end_row.unwrap_or(0));
                        ledger.next_key = ledger.next_key.max(next_key.unwrap_or(0));
                    }
                    Some(Account::Deleted {
                        key_min,
                        is_of_old,
                        left,
                    }) => {
                        deleted.rows += *rows;
                        // Several deleters of one table each know a bound: each holds, and the largest too.
                        let holds_to = if is_of_old {
                            ledger.end_key()
                        } else {
                            i64::MAX
                        };
                        deleted.key_min = deleted.key_min.max(Some(key_min.min(holds_to)));
                        deleted.left = [deleted.left, left].into_iter().flatten().min();
                    }
                    None => {}
                }
            }
            ledger.apply(&inserted, deleted);
            ledger.indexed |= matches!(step.kind, StepKind::Index { .. });
        }
        Ok(())
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

    /// Compares the rows that point queries found with the share of keys that exist; nothing for other steps.
    ///
    /// Keys that were deleted after the reader had last asked for the smallest one are missed: a tenth is allowed.
    pub fn check_point_queries(&self, step: &Step, queries: u64, rows: u64) -> Option<Check> {
        let StepKind::Query { point: true, .. } = step.kind else {
            return None;
        };
        if queries == 0 {
            return None;
        }
        let density: f64 = self
            .ledgers
            .iter()
            .filter_map(Ledger::density_least)
            .fold(1.0, f64::min);
        let least = 0.9 * density * f64::from(POINT_KEYS);
        let found = rows as f64 / queries as f64;
        Some(Check {
            what: "rows per point query".into(),
            expected: format!(">= {least:.2}"),
            found: format!("{found:.2}"),
            holds: found >= least,
            left_out: None,
        })
    }

    /// How `l.i0` loads faster than by inserts alone, if it is to and can.
    pub fn bulk_load(&self, dialect: &dyn Dialect) -> Option<BulkLoad> {
        let may = self.options.bulk_load && !self.options.shared_table;
        dialect.bulk_load().filter(|_| may)
    }
}

#[cfg(test)]
mod tests {
    use engine::Outcome;

    use super::*;
    use crate::{Kind, Next};

    pub(super) fn options() -> Options {
        Options {
            seed: 1,
            clients: 2,
            shared_table: false,
            delete_per_insert: true,
            indexes: IndexSet::Current,
            data_length: (10, 20),
            partitions: None,
            index_statements: IndexStatements::Usual,
            bulk_load: false,
            long_transaction_seconds: None,
        }
    }

    /// What a connection is to say that it did.
    struct Says(Account);

    impl Program for Says {
        fn kinds(&self) -> &'static [Kind] {
            &[]
        }
        fn prepare(&mut self) -> Next {
            Next::Done
        }
        fn execute(&mut self) -> Result<Outcome, Error> {
            Ok(Outcome::default())
        }
        fn expected_rows(&self) -> (u64, u64) {
            (0, 0)
        }
        fn account(&mut self, _: u64) -> Result<Box<dyn std::any::Any>, Error> {
            Ok(Box::new(self.0))
        }
    }

    fn step(insert: &mut Insert, did: &[(Account, u64)]) {
        let kind = StepKind::Write {
            rows: 1,
            rows_per_commit: 1,
        };
        let mut programs: Vec<Says> = did.iter().map(|(account, _)| Says(*account)).collect();
        let mut done: Vec<_> = programs
            .iter_mut()
            .zip(did)
            .map(|(program, &(_, rows))| Done {
                client: 0,
                program,
                rows,
                flawless: true,
            })
            .collect();
        insert.apply(&Step { number: 0, kind }, &mut done).unwrap();
    }

    #[test]
    fn a_key_below_those_that_a_deleter_found_in_a_shared_table_may_come_later() {
        let mut insert = Insert::new(Options {
            shared_table: true,
            ..options()
        });
        let inserted = |last_key| Account::Inserted {
            last_key: Some(last_key),
            end_row: None,
            next_key: None,
        };
        let deleted = |key_min| Account::Deleted {
            key_min,
            is_of_old: true,
            left: None,
        };
        step(&mut insert, &[(inserted(100), 100), (inserted(1100), 100)]);
        // One has 1101 to 2100 for itself; 2101 was the smallest key when a deleter looked.
        let came = [(inserted(1600), 500), (inserted(3100), 1000)];
        let went = [(deleted(2101), 600), (deleted(301), 300)];
        step(&mut insert, &[came, went].concat());
        let smallest = &insert.check_keys(0, Some(1591), None)[0];
        assert!(smallest.holds, "{smallest:?}");
        assert_eq!(smallest.expected, ">= 1101");
    }
}
