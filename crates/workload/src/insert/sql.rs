//! The Insert Benchmark on SQL engines, with prepared statements.

use engine::{
    BulkLoad, Dialect, Error, Interrupt, ParamType, RangeScan, Session, SqlEngine, Statement,
    StatementPlan, Table,
};
use plan::Checks;

use super::choices::OldestRows;
use super::programs::{Connection, LastKeys};
use super::rows::{ROW_PARAMS, RowBatches};
use super::schema::{POINT_COLUMNS, POINT_KEYS, RANGE_LIMIT, range_queries};
use super::{ClientStep, Connector, Database, Insert, Purpose};
use crate::program::plans_of_first_ops;
use crate::{Check, Executed, Next, OpKind, OpRole, Program, Task};

/// The end of one long transaction and the beginning of the next.
pub(super) const LONG_TRANSACTION: OpKind =
    OpKind::new("long_transaction", OpRole::HoldTransaction);

/// A SQL engine for the benchmark.
pub struct Sql<'a, E>(pub &'a E);

impl<E: SqlEngine> Database for Sql<'_, E> {
    fn tasks(&self, insert: &Insert, step: &plan::InsertStep) -> Result<Vec<Task>, Error> {
        insert.tasks_on(step, self)
    }

    fn check(&self, insert: &Insert, table: usize) -> Result<Vec<Check>, Error> {
        let ledger = &insert.ledgers[table];
        let table = &insert.tables[table];
        if insert.plan.policy.checks == Checks::Full {
            let facts = self.0.inspect(table, ledger.is_indexed)?;
            return Ok(ledger.check(table, &facts));
        }

        let mut session = self.0.connect()?;
        let dialect = self.0.dialect();
        let key_min = session.query_i64(&dialect.min_key(table))?;
        let key_max = session.query_i64(&dialect.max_key(table))?;
        Ok(ledger.check_keys(table, key_min, key_max))
    }

    fn plans(&self, insert: &Insert, step: &plan::InsertStep) -> Result<Vec<StatementPlan>, Error> {
        plans_of_first_ops(self.0, |capture| insert.tasks_on(step, &Sql(capture)))
    }

    fn not_applicable(&self, insert: &Insert, step: &plan::InsertStep) -> Option<String> {
        let loads_in_bulk = step.kind.is_load() && insert.plan.bulk_load;
        if loads_in_bulk && bulk_load(insert, self.0.dialect()).is_none() {
            let why =
                "`bulk-load` is ignored: this engine does not support it, or clients share a table";
            return Some(why.to_owned());
        }

        let holds_transactions = !step.kind.is_load() && insert.plan.long_transaction.is_some();
        if holds_transactions && !self.0.capabilities().long_transactions {
            let why = "`long-transaction` is not applicable: the tables have no transactions";
            return Some(why.to_owned());
        }
        None
    }
}

/// Returns the bulk load of `l.i0` if the plan asks for one, the engine has one, and clients do not
/// share a table.
fn bulk_load(insert: &Insert, dialect: &dyn Dialect) -> Option<BulkLoad> {
    if !insert.plan.bulk_load || insert.is_shared() {
        return None;
    }
    dialect.bulk_load()
}

struct ConnectionSql {
    /// The insert, the delete, the point query or the three range queries.
    statements: Vec<String>,
    /// The types of the parameters of each statement.
    params: Vec<ParamType>,
    /// Asks for the smallest or the largest key.
    boundary_key: Option<String>,
}

impl ConnectionSql {
    fn new(part: &ClientStep<'_>, purpose: Purpose, dialect: &dyn Dialect) -> Self {
        let insert = part.insert;
        let table = &insert.tables[part.table];
        let rows = part.step.rows_per_commit;

        match purpose {
            Purpose::Insert | Purpose::Index { .. } => Self {
                statements: vec![dialect.insert(table, rows)],
                params: ROW_PARAMS.repeat(rows as usize),
                boundary_key: None,
            },
            Purpose::Delete => Self {
                statements: vec![dialect.delete_oldest(table, rows, insert.is_shared())],
                params: vec![ParamType::Int8],
                boundary_key: Some(dialect.min_key(table)),
            },
            Purpose::ReadRanges => {
                let mut statements = Vec::new();
                for (query, index) in range_queries(insert.plan.indexes).iter().zip(&table.indexes)
                {
                    let comparison = query.comparison;
                    let scan = RangeScan { index, comparison, limit: RANGE_LIMIT };
                    statements.push(dialect.range_scan(table, scan));
                }
                Self { statements, params: vec![ParamType::Int4], boundary_key: None }
            }
            Purpose::ReadPoints => Self {
                statements: vec![dialect.point_lookup(table, &POINT_COLUMNS, POINT_KEYS)],
                params: vec![ParamType::Int8; POINT_KEYS as usize],
                boundary_key: Some(dialect.max_key(table)),
            },
        }
    }
}

impl<E: SqlEngine> Connector for Sql<'_, E> {
    type Connection = SqlConnection<E::Session>;

    fn open(&self, part: &ClientStep<'_>, purpose: Purpose) -> Result<Self::Connection, Error> {
        let insert = part.insert;
        let table = &insert.tables[part.table];
        let dialect = self.0.dialect();
        let mut session = match purpose {
            Purpose::ReadRanges | Purpose::ReadPoints => self.0.connect_to_read()?,
            _ => self.0.connect()?,
        };

        let sql = ConnectionSql::new(part, purpose, dialect);
        let mut statements = Vec::new();
        for statement in &sql.statements {
            statements.push(session.prepare(statement, &sql.params)?);
        }
        let boundary_key = match &sql.boundary_key {
            Some(query) => Some(session.prepare(query, &[])?),
            None => None,
        };

        let mut final_ops = Vec::new();
        if let Some(bulk) = bulk_load(insert, dialect)
            && part.step.kind.is_load()
        {
            for statement in bulk.begin {
                session.query(statement)?;
            }
            final_ops.extend(bulk.end.iter().map(|&statement| statement.to_owned()));
        }
        if let Purpose::Index { creates: true } = purpose {
            final_ops = dialect.create_indexes(table, insert.plan.index_statements);
        }

        Ok(SqlConnection {
            session,
            table: table.clone(),
            statements,
            boundary_key,
            final_ops,
            rows_per_commit: part.step.rows_per_commit,
        })
    }

    fn key_min(
        &self,
        part: &ClientStep<'_>,
        on: &mut Self::Connection,
    ) -> Result<Option<i64>, Error> {
        let table = &part.insert.tables[part.table];
        on.session.query_i64(&self.0.dialect().min_key(table))
    }

    fn long_transaction(&self, part: &ClientStep<'_>) -> Result<Option<Box<dyn Program>>, Error> {
        if !self.0.capabilities().long_transactions {
            return Ok(None);
        }
        let dialect = self.0.dialect();
        Ok(Some(Box::new(LongTransaction {
            session: self.0.connect()?,
            begin: dialect.begin(),
            commit: dialect.commit(),
            read: dialect.min_key(&part.insert.tables[part.table]),
            is_open: false,
        })))
    }

    fn server_assigns_keys(&self) -> bool {
        true
    }
}

/// A session with the prepared statements of its part of the step.
pub(super) struct SqlConnection<S> {
    session: S,
    table: Table,
    /// See [`ConnectionSql::statements`].
    statements: Vec<Statement>,
    /// See [`ConnectionSql::boundary_key`].
    boundary_key: Option<Statement>,
    /// Statements that follow after all rows are inserted.
    final_ops: Vec<String>,
    rows_per_commit: u32,
}

impl<S: Session> SqlConnection<S> {
    fn query_boundary_key(&mut self) -> Result<Option<i64>, Error> {
        let Some(boundary_key) = self.boundary_key else {
            return Ok(None);
        };
        self.session.start(boundary_key);
        Ok(self.session.execute()?.value)
    }
}

impl<S: Session> Connection for SqlConnection<S> {
    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }

    fn prepare_insert(&mut self, batches: &mut RowBatches) {
        self.session.start(self.statements[0]);
        for row in batches.next_batch() {
            batches.source.push(row, &mut self.session);
        }
    }

    fn insert(&mut self) -> Result<u64, Error> {
        Ok(self.session.execute()?.rows)
    }

    fn last_keys(&mut self, rows: u64) -> Result<LastKeys, Error> {
        let inserted = if rows > 0 { self.session.last_key(&self.table)? } else { None };
        Ok(LastKeys { inserted, next: None })
    }

    fn final_ops(&self) -> usize {
        self.final_ops.len()
    }

    fn end(&mut self, number: usize) -> Result<(), Error> {
        self.session.query(&self.final_ops[number]).map(|_| ())
    }

    fn prepare_delete(&mut self, oldest: &OldestRows) {
        self.session.start(self.statements[0]);
        self.session.int8(oldest.key_min);
    }

    fn delete(&mut self, oldest: &mut OldestRows) -> Result<u64, Error> {
        let rows = self.session.execute()?.rows;
        oldest.deleted(rows);
        Ok(rows)
    }

    fn expected_deletes(&self) -> (u64, u64) {
        (self.rows_per_commit.into(), self.rows_per_commit.into())
    }

    fn key_min(&mut self, known: i64) -> Result<i64, Error> {
        Ok(self.query_boundary_key()?.unwrap_or(known))
    }

    fn prepare_range(&mut self, query: usize, first: i32) {
        self.session.start(self.statements[query]);
        self.session.int4(first);
    }

    fn read_range(&mut self) -> Result<u64, Error> {
        Ok(self.session.execute()?.rows)
    }

    fn prepare_points(&mut self, keys: impl Iterator<Item = i64>) {
        self.session.start(self.statements[0]);
        for key in keys {
            self.session.int8(key);
        }
    }

    fn read_points(&mut self) -> Result<u64, Error> {
        Ok(self.session.execute()?.rows)
    }

    fn key_max(&mut self) -> Result<Option<i64>, Error> {
        self.query_boundary_key()
    }
}

/// Holds open a transaction that has read one row, and replaces it when the schedule says so.
struct LongTransaction<S> {
    session: S,
    begin: &'static str,
    commit: &'static str,
    read: String,
    is_open: bool,
}

impl<S: Session> Program for LongTransaction<S> {
    fn kinds(&self) -> &'static [OpKind] {
        &[LONG_TRANSACTION]
    }

    fn prepare(&mut self) -> Next {
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        if self.is_open {
            self.session.query(self.commit)?;
            self.is_open = false;
        }

        // Some engines take the snapshot at the first query, not at the beginning.
        self.session.query(self.begin)?;
        self.is_open = true;
        let rows = self.session.query(&self.read)?.len() as u64;
        Ok(Executed::new(rows, (0, 1)))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }
}
