//! The Insert Benchmark: one or more tables that grow at the head and shrink at the tail, with up
//! to three secondary indexes, and range and point queries during writes.
//!
//! The steps load rows in key order (`l.i0`), create the indexes (`l.x`), and write with large and
//! with small transactions (`l.i1`, `l.i2`). Then clients query as fast as possible, during writes
//! at a rate (`qr100`, `qp100`, ...).
//!
//! The programs of connections are the same on SQL engines ([`sql`]) and key-value engines
//! ([`keyed`]); only the operations differ. So both kinds of engine do the same work, and their
//! results can be compared.

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

use crate::{Check, ClientShare, OpKind, Program, Random, Schedule, Summaries, Summary, Task};
use choices::{MAX_KEY_INTERVAL, OldestRows, PointChoices, RangeChoices};
pub use ledger::Ledger;
use pace::{CommitQuota, Pace};
use programs::{
    BULK_LOAD_END, CREATE_INDEX, Connection, DELETE, Deleter, Inserter, PointReader, RangeReader,
};
pub use programs::{INSERT, QUERY};
use rows::{InserterTurn, RowBatches, RowSource};
use schema::{POINT_KEYS, range_queries};
use shared::SharedKeys;
use sql::LONG_TRANSACTION;

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

    /// Returns why the engine cannot run a step at all; `None` if it can.
    fn refuses(&self, _step: &InsertStep) -> Option<String> {
        None
    }

    /// Returns the parts of the step's plan that this engine does not support.
    fn not_applicable(&self, insert: &Insert, step: &InsertStep) -> Option<String>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Insert,
    /// The connection inserts, and then creates the indexes if `creates`.
    Index {
        creates: bool,
    },
    Delete,
    ReadRanges,
    ReadPoints,
}

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

struct ClientStep<'a> {
    insert: &'a Insert,
    step: &'a InsertStep,
    client: u32,
    /// The number of the client's table.
    table: usize,
    /// The keys that the client shares with the other connections to that table.
    shared: Arc<SharedKeys>,
}

/// The commits of a client's inserter and of its deleter.
struct WriteQuotas {
    inserts: CommitQuota,
    deletes: CommitQuota,
}

impl ClientStep<'_> {
    fn tasks<O: Connector>(&self, on: &O) -> Result<Vec<Task>, Error> {
        match self.step.kind {
            InsertStepKind::Settle => Ok(Vec::new()),
            InsertStepKind::Load { rows } => {
                let quota = CommitQuota::new(self.commits(rows), None);
                let inserter = self.inserter(on, Purpose::Insert, quota)?;
                Ok(vec![self.task(INSERT, None, inserter)?])
            }
            InsertStepKind::Index { rows } => {
                // Each table's indexes are created once: by its only client, or by the first of
                // those that share it.
                let creates = self.client as usize == self.table;
                let quota = CommitQuota::new(self.commits(rows), None);
                let inserter = self.inserter(on, Purpose::Index { creates }, quota)?;
                Ok(vec![self.task(CREATE_INDEX, None, inserter)?])
            }
            InsertStepKind::Write { until, rate } => {
                let commits = match until {
                    WriteEnd::Rows(rows) => self.commits(rows),
                    WriteEnd::Time(_) => None,
                };
                self.write_tasks(on, rate, self.paced_quotas(commits))
            }
            InsertStepKind::Query { query, rate, .. } => {
                let mut tasks = vec![self.task(QUERY, None, self.reader(on, query)?)?];
                if rate != 0.0 {
                    // The rate keeps inserts and deletes in step, without a pace.
                    let quotas = WriteQuotas {
                        inserts: CommitQuota::new(None, None),
                        deletes: CommitQuota::new(None, None),
                    };
                    tasks.extend(self.write_tasks(on, Some(rate), quotas)?);
                }
                Ok(tasks)
            }
        }
    }

    /// Opens the connections that insert, delete, and hold a transaction open, as far as the plan
    /// has them. Inserts and deletes have the rate `rows_per_s` each.
    fn write_tasks<O: Connector>(
        &self,
        on: &O,
        rows_per_s: Option<f64>,
        quotas: WriteQuotas,
    ) -> Result<Vec<Task>, Error> {
        let plan = &self.insert.plan;
        let commits_per_s = rows_per_s.map(|rate| rate / f64::from(self.step.rows_per_commit));

        let inserter = self.inserter(on, Purpose::Insert, quotas.inserts)?;
        let mut tasks = vec![self.task(INSERT, commits_per_s, inserter)?];

        if plan.delete_per_insert {
            let deleter = self.deleter(on, quotas.deletes)?;
            tasks.push(self.task(DELETE, commits_per_s, deleter)?);
        }

        if let Some(hold) = plan.long_transaction
            && let Some(long_transaction) = on.long_transaction(self)?
        {
            let per_s = 1.0 / hold.as_secs_f64();
            let mut task = self.task(LONG_TRANSACTION, Some(per_s), long_transaction)?;
            task.background = true;
            tasks.push(task);
        }
        Ok(tasks)
    }

    /// Returns the task of one of the client's connections, which is made for operations of `kind`
    /// and has a schedule if it has a rate.
    fn task(
        &self,
        kind: OpKind,
        ops_per_s: Option<f64>,
        program: Box<dyn Program>,
    ) -> Result<Task, Error> {
        let schedule = match ops_per_s {
            None => Schedule::Closed,
            Some(rate) => Schedule::rate(rate, self.client, self.insert.clients),
        };
        Task::new(self.client, kind, schedule, program)
    }

    fn inserter<O: Connector>(
        &self,
        on: &O,
        purpose: Purpose,
        quota: CommitQuota,
    ) -> Result<Box<dyn Program>, Error> {
        let connection = on.open(self, purpose)?;
        let kinds: &[OpKind] = match self.step.kind {
            InsertStepKind::Index { .. } => &[INSERT, CREATE_INDEX],
            _ if connection.final_ops() > 0 => &[INSERT, BULK_LOAD_END],
            _ => &[INSERT],
        };
        let batches = RowBatches::new(
            self.insert.row_source(self.table),
            self.step.rows_per_commit,
            self.insert.ledgers[self.table].next_row,
            self.turn(),
        );
        Ok(Box::new(Inserter { connection, kinds, batches, quota, final_ops: 0 }))
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
        match query {
            Query::Range => {
                let plan = &self.insert.plan;
                let queries = &range_queries(plan.indexes)[..plan.secondary_indexes as usize];
                let rows = self.insert.ledgers[self.table].rows;
                Ok(Box::new(RangeReader {
                    connection: on.open(self, Purpose::ReadRanges)?,
                    choices: RangeChoices::new(self.random(RANGES), queries, rows),
                }))
            }
            Query::Point => {
                let mut connection = on.open(self, Purpose::ReadPoints)?;
                let mut choices = PointChoices::new(self.random(POINTS), &self.shared);
                choices.start(on.key_min(self, &mut connection)?.unwrap_or(0));
                Ok(Box::new(PointReader { connection, choices }))
            }
        }
    }

    /// Returns the quotas of `commits` commits each, in step with each other if the client deletes.
    fn paced_quotas(&self, commits: Option<u64>) -> WriteQuotas {
        let [for_inserts, for_deletes] =
            if self.insert.plan.delete_per_insert { Pace::pair().map(Some) } else { [None, None] };
        WriteQuotas {
            inserts: CommitQuota::new(commits, for_inserts),
            deletes: CommitQuota::new(commits, for_deletes),
        }
    }

    /// Returns the client's share of the commits that insert `rows` rows into its table.
    fn commits(&self, rows: u64) -> Option<u64> {
        let turn = self.turn();
        let all = rows.div_ceil(self.step.rows_per_commit.into());
        Some(all / turn.of + u64::from(turn.number < all % turn.of))
    }

    /// Returns the client's turn among those that insert into its table.
    fn turn(&self) -> InserterTurn {
        if self.insert.is_shared() {
            InserterTurn { number: self.client.into(), of: self.insert.clients.into() }
        } else {
            InserterTurn { number: 0, of: 1 }
        }
    }

    fn random(&self, purpose: u64) -> Random {
        let path = [self.step.number.into(), self.client.into(), purpose];
        Random::stream(self.insert.seed, &path)
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
    /// The rows that the last step deleted from all tables.
    deleted_rows: u64,
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
        let index_count = plan.secondary_indexes as usize;
        let (_, data_length_max) = plan.data_length;
        let tables: Vec<Table> = (0..count)
            .map(|number| {
                schema::table(number, plan.indexes, index_count, data_length_max, partitions)
            })
            .collect();

        Self {
            ledgers: vec![Ledger::new(); tables.len()],
            tables,
            deleted_rows: 0,
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

    /// Returns the workload's part of the plan.
    pub fn plan(&self) -> &plan::Insert {
        &self.plan
    }

    /// Returns the number of clients.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// Returns the benchmark's tables.
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

    /// Returns what is known of the tables.
    pub fn ledgers(&self) -> &[Ledger] {
        &self.ledgers
    }

    /// Takes over what another process knew of the same tables. Returns `false` if it knew other
    /// tables.
    pub fn restore(&mut self, ledgers: Vec<Ledger>) -> bool {
        if ledgers.len() != self.tables.len() {
            return false;
        }
        self.ledgers = ledgers;
        true
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
        let shared: Vec<Arc<SharedKeys>> = self
            .ledgers
            .iter()
            .map(|ledger| Arc::new(SharedKeys::new(ledger.next_key, ledger.key_min())))
            .collect();

        let mut tasks = Vec::new();
        for client in (0..self.clients).filter(|client| self.share.has(*client)) {
            let table = self.table_of(client);
            let shared = Arc::clone(&shared[table]);
            tasks.extend(ClientStep { insert: self, step, client, table, shared }.tasks(on)?);
        }
        Ok(tasks)
    }

    /// Applies what the connections of a step did, complete or not. `is_flawless`: no insert failed
    /// or was retried.
    pub fn apply(&mut self, step: &InsertStep, summaries: &Summaries, is_flawless: bool) {
        let mut inserted = vec![Vec::new(); self.tables.len()];
        let mut deleted = vec![Vec::new(); self.tables.len()];
        self.deleted_rows = 0;
        for (client, summary) in summaries {
            let table = self.table_of(*client);
            match summary {
                Summary::Inserted(rows) => inserted[table].push(*rows),
                Summary::Deleted(connection) => {
                    deleted[table].push(*connection);
                    self.deleted_rows += connection.rows;
                }
                _ => {}
            }
        }

        for (table, ledger) in self.ledgers.iter_mut().enumerate() {
            ledger.apply(&inserted[table], &deleted[table], is_flawless);
            ledger.is_indexed |= matches!(step.kind, InsertStepKind::Index { .. });
        }
    }

    /// Compares the rows that point queries found in the last step with the share of existing keys;
    /// `None` for other steps, and if there are too few queries to tell.
    ///
    /// A tenth may be missing, besides the rows that were deleted meanwhile and those missed by chance.
    pub fn check_point_queries(&self, step: &InsertStep, queries: u64, rows: u64) -> Option<Check> {
        let is_point_step = matches!(step.kind, InsertStepKind::Query { query: Query::Point, .. });
        if !is_point_step || queries == 0 {
            return None;
        }

        let densities = self.ledgers.iter().filter_map(|ledger| ledger.density_least);
        let density = 0.9 * densities.fold(1.0, f64::min) * self.share_kept_between_looks(queries);
        let least = point_rows_least(density, queries);
        if least <= 0.0 {
            return None;
        }

        let found = rows as f64 / queries as f64;
        Some(Check::new(
            "rows per point query",
            format!(">= {least:.2}"),
            format!("{found:.2}"),
            found >= least,
        ))
    }

    /// Returns the share of a table's rows that the last step did not delete between two looks of a
    /// reader at the largest key. Until the next look, a reader does not ask for the rows that replace
    /// them.
    fn share_kept_between_looks(&self, queries: u64) -> f64 {
        let queries_each = queries as f64 / f64::from(self.clients);
        let looks = (queries_each / MAX_KEY_INTERVAL as f64).max(1.0);
        let deleted_rows = self.deleted_rows as f64 / looks;
        1.0 - deleted_rows / self.rows().max(1) as f64
    }
}

/// Returns the fewest rows that point queries find on average, if `density` is the share of existing
/// keys: five standard deviations of the binomial distribution below the mean. Zero or less if there
/// are too few queries to tell.
fn point_rows_least(density: f64, queries: u64) -> f64 {
    let keys = f64::from(POINT_KEYS);
    let variance = keys * density * (1.0 - density) / queries as f64;
    keys * density - 5.0 * variance.max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::summary::{Deleted, Inserted};
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

    /// A reader that hardly gets a processor asks for keys of rows that are gone, and its few queries
    /// find more or fewer by chance.
    #[test]
    fn few_point_queries_do_not_tell_whether_rows_are_missing() {
        let mut insert = Insert::new(&plan(), 1, 1);
        let load = step(0, InsertStepKind::Write { until: WriteEnd::Rows(1), rate: None }, 1);
        let rows = |rows, last_key| {
            let summary = Inserted { rows, last_key: Some(last_key), ..Inserted::default() };
            (0, Summary::Inserted(summary))
        };
        insert.apply(&load, &vec![rows(100_000, 100_000)], true);

        let query = Query::Point;
        let kind = InsertStepKind::Query { query, rate: 500.0, time: Duration::from_secs(1) };
        let point_step = step(1, kind, 1);
        let deleted =
            Deleted { rows: 50_000, key_min: 50_001, covers_old_rows_only: true, left: None };
        let written = vec![rows(50_000, 150_000), (0, Summary::Deleted(deleted))];
        insert.apply(&point_step, &written, true);

        let holds = |queries: u64, rows_each: u64| -> Option<bool> {
            let check = insert.check_point_queries(&point_step, queries, queries * rows_each)?;
            Some(check.holds)
        };
        assert_eq!(holds(7, 2), Some(true));
        assert_eq!(holds(1, 0), None);
        // With many, each asks for rows of which hardly one has been deleted.
        assert_eq!(holds(100_000, 9), Some(true));
        assert_eq!(holds(100_000, 4), Some(false));
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
