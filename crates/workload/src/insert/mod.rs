//! The Insert Benchmark: one or more tables that grow at the head and shrink at the tail, with up
//! to three secondary indexes, and range and point queries during writes.
//!
//! Loading in key order (`l.i0`), creating the indexes (`l.x`), writing with large and with small
//! transactions (`l.i1`, `l.i2`), then queries as fast as possible, during writes at a rate
//! (`qr100`, `qp100`, ...).
//!
//! The programs of connections are the same on SQL engines ([`sql`]) and key-value engines
//! ([`keyed`]); only the operations differ.

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

use engine::{Error, Partitions, StatementPlan, Table};
use plan::{InsertStep, InsertStepKind, Query, Tables, WriteEnd};

use crate::program::{Summaries, Summary};
use crate::{Check, ClientShare, OpKind, Program, Random, Schedule, Task};
use choices::{OldestRows, PointChoices, RangeChoices};
use ledger::Ledger;
pub use ledger::{Deleted, Inserted};
use pace::{CommitQuota, Pace};
use programs::{
    BULK_LOAD_END, CREATE_INDEX, Connection, Deleter, INSERT, Inserter, PointReader, RangeReader,
};
use rows::{RowBatches, RowSource};
use schema::{POINT_KEYS, range_queries};
use shared::SharedKeys;

/// Purposes of random streams, the last part of their paths; rows use 0 and 1.
const RANGES: u64 = 2;
const POINTS: u64 = 3;

/// An engine that runs the Insert Benchmark.
pub trait Database {
    /// Opens the connections of a step and prepares them.
    ///
    /// # Errors
    /// The engine's own.
    fn tasks(&self, insert: &Insert, step: &InsertStep) -> Result<Vec<Task>, Error>;

    /// Compares a table with what the workload knows about it, as far as the plan requires.
    ///
    /// # Errors
    /// The engine's own.
    fn check(&self, insert: &Insert, table: usize) -> Result<Vec<Check>, Error>;

    /// Returns the plans of the step's statements; none from engines without plans.
    ///
    /// # Errors
    /// The engine's own.
    fn plans(&self, _insert: &Insert, _step: &InsertStep) -> Result<Vec<StatementPlan>, Error> {
        Ok(Vec::new())
    }

    /// Returns the parts of the step's plan that this engine does not support.
    fn not_applicable(&self, insert: &Insert, step: &InsertStep) -> Option<String>;
}

/// The purpose of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Insert,
    /// It inserts, and then creates the indexes if `creates`.
    Index {
        creates: bool,
    },
    Delete,
    ReadRanges,
    ReadPoints,
}

/// Opens connections to tables.
trait Connector {
    type Connection: Connection;

    fn open(&self, part: &ClientStep<'_>, purpose: Purpose) -> Result<Self::Connection, Error>;

    /// Returns the smallest key of a connection's table.
    fn key_min(
        &self,
        part: &ClientStep<'_>,
        on: &mut Self::Connection,
    ) -> Result<Option<i64>, Error>;

    /// Returns the program that holds long transactions open; `None` if the engine has none.
    fn long_transaction(&self, part: &ClientStep<'_>) -> Result<Option<Box<dyn Program>>, Error>;

    /// Returns whether the server assigns keys, and not the client.
    fn server_assigns_keys(&self) -> bool;
}

/// One client in one step.
struct ClientStep<'a> {
    insert: &'a Insert,
    step: &'a InsertStep,
    client: u32,
    /// The number of its table.
    table: usize,
    /// The keys that it shares with the other connections to that table.
    shared: Arc<SharedKeys>,
}

impl ClientStep<'_> {
    /// Returns its position among the connections that insert into its table, and their number.
    fn position(&self) -> (u64, u64) {
        if self.insert.is_shared() {
            (self.client.into(), self.insert.clients.into())
        } else {
            (0, 1)
        }
    }

    fn batches(&self) -> RowBatches {
        RowBatches::new(
            self.insert.row_source(self.table),
            self.step.rows_per_commit,
            self.insert.ledgers[self.table].next_row,
            self.position(),
        )
    }

    /// Returns its share of the commits that insert `rows` rows into its table.
    fn commits(&self, rows: u64) -> Option<u64> {
        let (position, count) = self.position();
        let all = rows.div_ceil(self.step.rows_per_commit.into());
        Some(all / count + u64::from(position < all % count))
    }

    fn random(&self, purpose: u64) -> Random {
        let path = [self.step.number.into(), self.client.into(), purpose];
        Random::stream(self.insert.seed, &path)
    }

    fn inserter<C: Connection>(&self, connection: C, quota: CommitQuota) -> Box<dyn Program> {
        let kinds: &[OpKind] = match self.step.kind {
            InsertStepKind::Index { .. } => &[INSERT, CREATE_INDEX],
            _ if connection.final_ops() > 0 => &[INSERT, BULK_LOAD_END],
            _ => &[INSERT],
        };
        Box::new(Inserter { connection, kinds, batches: self.batches(), quota, final_ops: 0 })
    }

    fn deleter<O: Connector>(&self, on: &O, quota: CommitQuota) -> Result<Box<dyn Program>, Error> {
        Ok(Box::new(Deleter {
            connection: on.open(self, Purpose::Delete)?,
            quota,
            oldest: OldestRows::new(&self.shared),
            covers_old_rows_only: on.server_assigns_keys() && self.insert.is_shared(),
            has_failed: false,
        }))
    }

    fn reader<O: Connector>(&self, on: &O, query: Query) -> Result<Box<dyn Program>, Error> {
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
                Box::new(PointReader { connection, choices })
            }
        })
    }
}

/// One cell's benchmark: its tables and what is known about them.
pub struct Insert {
    plan: plan::Insert,
    clients: u32,
    /// The clients that connect from this process.
    share: ClientShare,
    /// The seed of all rows and random choices.
    seed: u64,
    tables: Vec<Table>,
    ledgers: Vec<Ledger>,
}

impl Insert {
    /// Returns a benchmark whose tables don't exist yet.
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
            share: ClientShare::ALL,
            seed,
        }
    }

    /// Connects only these clients in [`Database::tasks`].
    pub fn set_share(&mut self, share: ClientShare) {
        self.share = share;
    }

    /// Returns its plan.
    pub fn plan(&self) -> &plan::Insert {
        &self.plan
    }

    /// Returns the number of clients.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// Returns its tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the rows that all tables should have now.
    pub fn rows(&self) -> u64 {
        self.ledgers.iter().map(|ledger| ledger.rows).sum()
    }

    /// Returns the mean size of a row's values in bytes.
    pub fn row_bytes_mean(&self) -> f64 {
        rows::bytes_mean(self.plan.data_length)
    }

    fn is_shared(&self) -> bool {
        self.plan.tables == Tables::Shared
    }

    /// Returns the number of the table that a client works on.
    fn table_of(&self, client: u32) -> usize {
        if self.is_shared() { 0 } else { client as usize }
    }

    fn row_source(&self, table: usize) -> RowSource {
        let (shortest, longest) = self.plan.data_length;
        RowSource::new(self.seed, table as u32, shortest, longest)
    }

    fn tasks_on<O: Connector>(&self, step: &InsertStep, on: &O) -> Result<Vec<Task>, Error> {
        let shared = |ledger: &Ledger| Arc::new(SharedKeys::new(ledger.next_key, ledger.key_min()));
        let shared: Vec<Arc<SharedKeys>> = self.ledgers.iter().map(shared).collect();
        let mut tasks = Vec::new();
        for client in (0..self.clients).filter(|client| self.share.has(*client)) {
            let table = self.table_of(client);
            let part = ClientStep {
                insert: self,
                step,
                client,
                table,
                shared: Arc::clone(&shared[table]),
            };
            let mut add = |role, rate: Option<f64>, program| -> Result<(), Error> {
                let schedule = rate
                    .map_or(Schedule::Closed, |rate| Schedule::rate(rate, client, self.clients));
                tasks.push(Task::new(client, role, schedule, program)?);
                Ok(())
            };
            let commits_per_s = |rate: f64| rate / f64::from(step.rows_per_commit);
            // For each client, the rate and the number of its inserts and deletes.
            let (rate, [inserts, deletes]) = match step.kind {
                InsertStepKind::Settle => continue,
                InsertStepKind::Load { rows } | InsertStepKind::Index { rows } => {
                    let (role, purpose) = if step.kind.is_load() {
                        ("insert", Purpose::Insert)
                    } else {
                        let creates = client as usize == table;
                        ("index", Purpose::Index { creates })
                    };
                    let quota = CommitQuota::new(part.commits(rows), None);
                    let connection = on.open(&part, purpose)?;
                    add(role, None, part.inserter(connection, quota))?;
                    continue;
                }
                InsertStepKind::Write { until, rate } => {
                    let commits = match until {
                        WriteEnd::Rows(rows) => part.commits(rows),
                        WriteEnd::Time(_) => None,
                    };
                    let paces = if self.plan.delete_per_insert {
                        Pace::pair().map(Some)
                    } else {
                        [None, None]
                    };
                    let quotas = paces.map(|pace| CommitQuota::new(commits, pace));
                    (rate.map(commits_per_s), quotas)
                }
                InsertStepKind::Query { query, rate, .. } => {
                    add("query", None, part.reader(on, query)?)?;
                    if rate == 0.0 {
                        continue;
                    }
                    let quotas = [(); 2].map(|()| CommitQuota::new(None, None));
                    (Some(commits_per_s(rate)), quotas)
                }
            };
            let connection = on.open(&part, Purpose::Insert)?;
            add("insert", rate, part.inserter(connection, inserts))?;
            if self.plan.delete_per_insert {
                add("delete", rate, part.deleter(on, deletes)?)?;
            }
            if let Some(hold) = self.plan.long_transaction
                && let Some(long_transaction) = on.long_transaction(&part)?
            {
                let every = Some(1.0 / hold.as_secs_f64());
                add("long-transaction", every, long_transaction)?;
                if let Some(task) = tasks.last_mut() {
                    task.background = true;
                }
            }
        }
        Ok(tasks)
    }

    /// Applies what the connections of a step did, complete or not. `is_flawless`: no insert failed
    /// or was retried.
    pub fn apply(&mut self, step: &InsertStep, summaries: &Summaries, is_flawless: bool) {
        let mut did = vec![(Vec::new(), Vec::new()); self.tables.len()];
        for (client, summary) in summaries {
            let (inserted, deleted) = &mut did[self.table_of(*client)];
            match summary {
                Summary::Inserted(rows) => inserted.push(*rows),
                Summary::Deleted(rows) => deleted.push(*rows),
                _ => {}
            }
        }
        for (ledger, (inserted, deleted)) in self.ledgers.iter_mut().zip(did) {
            ledger.apply(&inserted, &deleted, is_flawless);
            ledger.indexed |= matches!(step.kind, InsertStepKind::Index { .. });
        }
    }

    /// Compares the rows that point queries found with the share of existing keys; `None` for other
    /// steps.
    ///
    /// A tenth may be missing: keys that were deleted after the reader last asked for the smallest
    /// one.
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
        InsertStep { number, name: String::new(), kind, rows_per_commit }
    }

    #[test]
    fn a_key_below_those_that_a_deleter_found_in_a_shared_table_may_come_later() {
        let shared = plan::Insert { tables: Tables::Shared, ..plan() };
        let mut insert = Insert::new(&shared, 2, 1);
        let inserted = |rows, last_key| {
            Summary::Inserted(Inserted { rows, last_key: Some(last_key), ..Inserted::default() })
        };
        let deleted = |rows, key_min| {
            Summary::Deleted(Deleted { rows, key_min, covers_old_rows_only: true, left: None })
        };
        let step = step(0, InsertStepKind::Write { until: WriteEnd::Rows(1), rate: None }, 1);
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
