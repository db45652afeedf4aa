//! The Insert Benchmark: a table or several that grow at the head and shrink at the tail, with up to
//! three secondary indexes, and range and point queries beside the writes.
//!
//! Loading in key order (`l.i0`), creating the indexes (`l.x`), writing with large and with small transactions (`l.i1`,
//! `l.i2`), then queries as fast as they go with writes at a rate (`qr100`, `qp100`, ...).
//!
//! What each connection does is the same on an engine that speaks SQL ([`sql`]) and on one of keys and values
//! ([`keyed`]); these differ in the operations that it is made of.

pub mod keyed;
pub mod sql;

mod choices;
mod ledger;
mod pace;
mod programs;
mod rows;
mod schema;
mod shared;

use std::sync::Arc;

use engine::{Error, Partitions, Table};
use plan::{InsertStep, InsertStepKind, Query, Tables, WriteEnd};

use crate::program::Accounts;
use crate::{Check, Kind, Program, Random, Schedule, Task};
use choices::{Oldest, PointChoices, RangeChoices};
use ledger::{Deleted, Inserted, Ledger};
use pace::{Pace, Turns};
use programs::{
    BULK_LOAD_END, CREATE_INDEX, Connection, Deleter, INSERT, Inserter, PointReader, RangeReader,
};
use rows::{Feed, RowSource};
use schema::{POINT_KEYS, range_queries};
use shared::Shared;

/// Purposes of random streams, the last part of their paths; 0 and 1 are the rows'.
const RANGES: u64 = 2;
const POINTS: u64 = 3;

/// An engine, for the benchmark.
pub trait Database {
    /// Opens the connections of a step and prepares them.
    ///
    /// # Errors
    /// The engine's own.
    fn tasks(&self, insert: &Insert, step: &InsertStep) -> Result<Vec<Task>, Error>;

    /// Compares a table with what the workload knows of it, as far as the plan says.
    ///
    /// # Errors
    /// The engine's own.
    fn check(&self, insert: &Insert, table: usize) -> Result<Vec<Check>, Error>;

    /// Says what of the plan a step should do and this engine can't.
    fn not_applicable(&self, insert: &Insert, step: &InsertStep) -> Option<String>;
}

/// What a connection is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Insert,
    /// It inserts, and then creates the indexes if that is its client's to do.
    Index {
        creates: bool,
    },
    Delete,
    ReadRanges,
    ReadPoints,
}

/// Opens connections to tables.
trait Open {
    type Connection: Connection;

    fn open(&self, part: &Part<'_>, purpose: Purpose) -> Result<Self::Connection, Error>;

    /// Returns the smallest key of a connection's table.
    fn key_min(&self, part: &Part<'_>, on: &mut Self::Connection) -> Result<Option<i64>, Error>;

    /// Returns what holds long transactions; `None` where there are none.
    fn holder(&self, part: &Part<'_>) -> Result<Option<Box<dyn Program>>, Error>;

    /// Returns whether the server gives new rows their keys, and not the client.
    fn server_assigns_keys(&self) -> bool;
}

/// One client in one step.
struct Part<'a> {
    insert: &'a Insert,
    step: &'a InsertStep,
    client: u32,
    /// Its table's number.
    table: usize,
    /// What it shares with the other connections to that table.
    shared: Arc<Shared>,
}

impl Part<'_> {
    /// Returns which of how many connections inserts into its table.
    fn position(&self) -> (u64, u64) {
        match self.insert.is_shared() {
            true => (self.client.into(), self.insert.clients.into()),
            false => (0, 1),
        }
    }

    fn feed(&self) -> Feed {
        Feed::new(
            self.insert.row_source(self.table),
            self.step.rows_per_commit,
            self.insert.ledgers[self.table].next_row,
            self.position(),
        )
    }

    /// Its share of the commits that insert so many rows into its table.
    fn commits(&self, rows: u64) -> Option<u64> {
        let (position, of) = self.position();
        let all = rows.div_ceil(self.step.rows_per_commit.into());
        Some(all / of + u64::from(position < all % of))
    }

    fn random(&self, purpose: u64) -> Random {
        let path = [self.step.number.into(), self.client.into(), purpose];
        Random::stream(self.insert.seed, &path)
    }

    fn inserter<C: Connection>(&self, connection: C, turns: Turns) -> Box<dyn Program> {
        let kinds: &[Kind] = match self.step.kind {
            InsertStepKind::Index { .. } => &[INSERT, CREATE_INDEX],
            _ if connection.endings() > 0 => &[INSERT, BULK_LOAD_END],
            _ => &[INSERT],
        };
        Box::new(Inserter {
            connection,
            kinds,
            feed: self.feed(),
            turns,
            endings: 0,
        })
    }

    fn deleter<O: Open>(&self, on: &O, turns: Turns) -> Result<Box<dyn Program>, Error> {
        Ok(Box::new(Deleter {
            connection: on.open(self, Purpose::Delete)?,
            turns,
            oldest: Oldest::new(&self.shared),
            is_of_old: on.server_assigns_keys() && self.insert.is_shared(),
            has_failed: false,
        }))
    }

    fn reader<O: Open>(&self, on: &O, query: Query) -> Result<Box<dyn Program>, Error> {
        Ok(match query {
            Query::Range => {
                let plan = &self.insert.plan;
                let queries = &range_queries(plan.indexes)[..plan.secondary_indexes as usize];
                let rows = self.insert.ledgers[self.table].rows;
                Box::new(RangeReader {
                    connection: on.open(self, Purpose::ReadRanges)?,
                    choices: RangeChoices::new(self.random(RANGES), queries, rows),
                })
            }
            Query::Point => {
                let mut connection = on.open(self, Purpose::ReadPoints)?;
                let mut choices = PointChoices::new(self.random(POINTS), &self.shared);
                choices.start(on.key_min(self, &mut connection)?.unwrap_or(0));
                Box::new(PointReader {
                    connection,
                    choices,
                })
            }
        })
    }
}

/// One cell's benchmark: its tables and what is known of them.
pub struct Insert {
    plan: plan::Insert,
    clients: u32,
    /// The seed of all rows and random choices.
    seed: u64,
    tables: Vec<Table>,
    ledgers: Vec<Ledger>,
}

impl Insert {
    /// A benchmark whose tables don't exist yet.
    pub fn new(plan: &plan::Insert, clients: u32, seed: u64) -> Self {
        let count = match plan.tables {
            Tables::Shared => 1,
            Tables::PerClient => clients,
        };
        let partitions = (plan.partitions > 0).then(|| Partitions {
            count: plan.partitions,
            rows_each: (plan.rows_per_table(clients) / u64::from(plan.partitions)).max(1),
        });
        let indexes = (plan.indexes, plan.secondary_indexes as usize);
        let table = |number| schema::table(number, indexes, plan.data_length.1, partitions);
        let tables: Vec<Table> = (0..count).map(table).collect();
        Self {
            ledgers: vec![Ledger::new(); tables.len()],
            tables,
            plan: plan.clone(),
            clients,
            seed,
        }
    }

    /// The plan that it follows.
    pub fn plan(&self) -> &plan::Insert {
        &self.plan
    }

    /// Clients.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// Its tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Rows that should be in all tables now.
    pub fn rows(&self) -> u64 {
        self.ledgers.iter().map(|ledger| ledger.rows).sum()
    }

    /// What the values of a row take in bytes, on average.
    pub fn row_bytes_mean(&self) -> f64 {
        rows::bytes_mean(self.plan.data_length)
    }

    fn is_shared(&self) -> bool {
        self.plan.tables == Tables::Shared
    }

    /// The number of the table that a client works on.
    fn table_of(&self, client: u32) -> usize {
        match self.is_shared() {
            true => 0,
            false => client as usize,
        }
    }

    fn row_source(&self, table: usize) -> RowSource {
        let (shortest, longest) = self.plan.data_length;
        RowSource::new(self.seed, table as u32, shortest, longest)
    }

    fn tasks_on<O: Open>(&self, step: &InsertStep, on: &O) -> Result<Vec<Task>, Error> {
        let shared = |ledger: &Ledger| Arc::new(Shared::new(ledger.next_key, ledger.key_min()));
        let shared: Vec<Arc<Shared>> = self.ledgers.iter().map(shared).collect();
        let mut tasks = Vec::new();
        for client in 0..self.clients {
            let table = self.table_of(client);
            let part = Part {
                insert: self,
                step,
                client,
                table,
                shared: Arc::clone(&shared[table]),
            };
            let mut add = |role, rate: Option<f64>, program| -> Result<(), Error> {
                let schedule = rate.map_or(Schedule::Closed, |rate| {
                    Schedule::rate(rate, client, self.clients)
                });
                tasks.push(Task::new(client, role, schedule, program)?);
                Ok(())
            };
            // Of each client, how fast it inserts and deletes, and how often.
            let (rate, [inserts, deletes]) = match step.kind {
                InsertStepKind::Settle => continue,
                InsertStepKind::Load { rows } | InsertStepKind::Index { rows } => {
                    let (role, purpose) = match step.kind.is_load() {
                        true => ("insert", Purpose::Insert),
                        // Clients that share a table share its indexes: the first creates them.
                        false => {
                            let creates = client as usize == table;
                            ("index", Purpose::Index { creates })
                        }
                    };
                    let turns = Turns::new(part.commits(rows), None);
                    let connection = on.open(&part, purpose)?;
                    add(role, None, part.inserter(connection, turns))?;
                    continue;
                }
                InsertStepKind::Write { until } => {
                    let commits = match until {
                        WriteEnd::Rows(rows) => part.commits(rows),
                        WriteEnd::Time(_) => None,
                    };
                    let paces = match self.plan.delete_per_insert {
                        true => Pace::pair().map(Some),
                        false => [None, None],
                    };
                    (None, paces.map(|pace| Turns::new(commits, pace)))
                }
                InsertStepKind::Query { query, rate, .. } => {
                    add("query", None, part.reader(on, query)?)?;
                    if rate == 0.0 {
                        continue;
                    }
                    let commits_per_s = rate / f64::from(step.rows_per_commit);
                    (
                        Some(commits_per_s),
                        [(); 2].map(|()| Turns::new(None, None)),
                    )
                }
            };
            let connection = on.open(&part, Purpose::Insert)?;
            add("insert", rate, part.inserter(connection, inserts))?;
            if self.plan.delete_per_insert {
                add("delete", rate, part.deleter(on, deletes)?)?;
            }
            if let Some(hold) = self.plan.long_transaction
                && let Some(holder) = on.holder(&part)?
            {
                let every = Some(1.0 / hold.as_secs_f64());
                add("long-transaction", every, holder)?;
                if let Some(task) = tasks.last_mut() {
                    task.background = true;
                }
            }
        }
        Ok(tasks)
    }

    /// Takes in what the connections of a step did, whether or not it was completed. Without a flaw: no insert failed or
    /// was tried again.
    pub fn apply(&mut self, step: &InsertStep, accounts: &Accounts, is_flawless: bool) {
        let mut did = vec![(Vec::new(), Vec::new()); self.tables.len()];
        for (client, account) in accounts {
            let (inserted, deleted) = &mut did[self.table_of(*client)];
            inserted.extend(account.downcast_ref::<Inserted>());
            deleted.extend(account.downcast_ref::<Deleted>());
        }
        for (ledger, (inserted, deleted)) in self.ledgers.iter_mut().zip(did) {
            ledger.apply(&inserted, &deleted, is_flawless);
            ledger.indexed |= matches!(step.kind, InsertStepKind::Index { .. });
        }
    }

    /// Compares the rows that point queries found with the share of keys that exist; nothing for other steps.
    ///
    /// Keys that were deleted after the reader had last asked for the smallest one are missed: a tenth is allowed.
    pub fn check_point_queries(&self, step: &InsertStep, queries: u64, rows: u64) -> Option<Check> {
        let is_point = |query| query == Query::Point && queries > 0;
        if !matches!(step.kind, InsertStepKind::Query { query, .. } if is_point(query)) {
            return None;
        }
        let densities = self.ledgers.iter().filter_map(|it| it.density_least);
        let least = 0.9 * densities.fold(1.0, f64::min) * f64::from(POINT_KEYS);
        let found = rows as f64 / queries as f64;
        Some(Check::new(
            "rows per point query",
            format!(">= {least:.2}"),
            format!("{found:.2}"),
            found >= least,
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;

    use super::*;
    use crate::tests::planned;

    /// Two clients with a table each.
    pub(super) fn plan() -> plan::Insert {
        match planned("sqlite", "[workload.insert]") {
            plan::Workload::Insert(insert) => insert,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn step(number: u32, kind: InsertStepKind, rows_per_commit: u32) -> InsertStep {
        InsertStep {
            number,
            name: String::new(),
            kind,
            rows_per_commit,
        }
    }

    #[test]
    fn a_key_below_those_that_a_deleter_found_in_a_shared_table_may_come_later() {
        let shared = plan::Insert {
            tables: Tables::Shared,
            ..plan()
        };
        let mut insert = Insert::new(&shared, 2, 1);
        let inserted = |rows, last_key| -> Box<dyn Any> {
            Box::new(Inserted {
                rows,
                last_key: Some(last_key),
                ..Inserted::default()
            })
        };
        let deleted = |rows, key_min| -> Box<dyn Any> {
            Box::new(Deleted {
                rows,
                key_min,
                is_of_old: true,
                left: None,
            })
        };
        let step = step(
            0,
            InsertStepKind::Write {
                until: WriteEnd::Rows(1),
            },
            1,
        );
        let first = vec![(0, inserted(100, 100)), (1, inserted(100, 1100))];
        insert.apply(&step, &first, true);
        // One has 1101 to 2100 for itself; 2101 was the smallest key when a deleter looked.
        let second = vec![
            (0, inserted(500, 1600)),
            (1, inserted(1000, 3100)),
            (0, deleted(600, 2101)),
            (1, deleted(300, 301)),
        ];
        insert.apply(&step, &second, true);
        let smallest = &insert.ledgers[0].check_keys(&insert.tables[0], Some(1591), None)[0];
        assert!(smallest.holds, "{smallest:?}");
        assert_eq!(smallest.expected, ">= 1101");
    }
}
