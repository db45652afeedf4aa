//! The Insert Benchmark on an engine that speaks SQL: prepared statements.

use engine::{
    BulkLoad, Dialect, Error, Interrupt, ParamType, RangeScan, Session, SqlEngine, Statement, Table,
};
use plan::Checks;

use super::choices::Oldest;
use super::programs::Connection;
use super::rows::{Feed, ROW_PARAMS};
use super::schema::{POINT_COLUMNS, POINT_KEYS, RANGE_LIMIT, range_queries};
use super::{Database, Insert, Open, Part, Purpose};
use crate::{Check, Executed, Kind, Next, Program, Task};

/// The end of one long transaction and the beginning of the next.
const LONG_TRANSACTION: Kind = Kind("long_transaction");

/// An engine that speaks SQL, for the benchmark.
pub struct Sql<'a, E>(pub &'a E);

impl<E: SqlEngine> Database for Sql<'_, E> {
    fn tasks(&self, insert: &Insert, step: &plan::InsertStep) -> Result<Vec<Task>, Error> {
        insert.tasks_on(step, self)
    }

    fn check(&self, insert: &Insert, table: usize) -> Result<Vec<Check>, Error> {
        let ledger = &insert.ledgers[table];
        let table = &insert.tables[table];
        if insert.plan.policy.checks == Checks::Full {
            let facts = self.0.inspect(table, ledger.indexed)?;
            return Ok(ledger.check(table, &facts));
        }
        let (mut session, dialect) = (self.0.connect()?, self.0.dialect());
        let key_min = session.query_i64(&dialect.min_key(table))?;
        let key_max = session.query_i64(&dialect.max_key(table))?;
        Ok(ledger.check_keys(table, key_min, key_max))
    }

    fn not_applicable(&self, insert: &Insert, step: &plan::InsertStep) -> Option<String> {
        let is_asked = step.kind.is_load() && insert.plan.bulk_load;
        let why = "`bulk-load`: this engine has no such way, or clients share a table";
        (is_asked && bulk_load(insert, self.0.dialect()).is_none()).then(|| why.to_owned())
    }
}

/// Returns how `l.i0` loads faster than by inserts alone, if it is to and can: not into a table that clients share.
fn bulk_load(insert: &Insert, dialect: &dyn Dialect) -> Option<BulkLoad> {
    let may = insert.plan.bulk_load && !insert.is_shared();
    dialect.bulk_load().filter(|_| may)
}

impl<E: SqlEngine> Open for Sql<'_, E> {
    type Connection = SqlConnection<E::Session>;

    fn open(&self, part: &Part<'_>, purpose: Purpose) -> Result<Self::Connection, Error> {
        let insert = part.insert;
        let table = &insert.tables[part.table];
        let rows = part.step.rows_per_commit;
        let dialect = self.0.dialect();
        let mut session = self.0.connect()?;
        let (statements, params, edge) = match purpose {
            Purpose::Insert | Purpose::Index { .. } => {
                let params = ROW_PARAMS.repeat(rows as usize);
                (vec![dialect.insert(table, rows)], params, None)
            }
            Purpose::Delete => {
                let delete = dialect.delete_oldest(table, rows, insert.is_shared());
                let key_min = Some(dialect.min_key(table));
                (vec![delete], vec![ParamType::Int8], key_min)
            }
            Purpose::ReadRanges => {
                let scans = range_queries(insert.plan.indexes);
                let scans = scans.iter().zip(&table.indexes).map(|(query, index)| {
                    let scan = RangeScan {
                        index,
                        comparison: query.comparison,
                        limit: RANGE_LIMIT,
                    };
                    dialect.range_scan(table, scan)
                });
                (scans.collect(), vec![ParamType::Int4], None)
            }
            Purpose::ReadPoints => {
                let lookup = dialect.point_lookup(table, &POINT_COLUMNS, POINT_KEYS);
                let params = vec![ParamType::Int8; POINT_KEYS as usize];
                (vec![lookup], params, Some(dialect.max_key(table)))
            }
        };
        let statements = statements
            .iter()
            .map(|sql| session.prepare(sql, &params))
            .collect::<Result<_, _>>()?;
        let edge = edge.map(|sql| session.prepare(&sql, &[])).transpose()?;
        let mut endings = Vec::new();
        if let Some(bulk) = bulk_load(insert, dialect)
            && part.step.kind.is_load()
        {
            for sql in bulk.begin {
                session.query(sql)?;
            }
            endings.extend(bulk.end.iter().map(|&sql| sql.to_owned()));
        }
        if let Purpose::Index { creates: true } = purpose {
            endings = dialect.create_indexes(table, insert.plan.index_statements);
        }
        Ok(SqlConnection {
            session,
            table: table.clone(),
            statements,
            edge,
            endings,
            rows_per_commit: rows,
        })
    }

    fn key_min(&self, part: &Part<'_>, on: &mut Self::Connection) -> Result<Option<i64>, Error> {
        let table = &part.insert.tables[part.table];
        on.session.query_i64(&self.0.dialect().min_key(table))
    }

    fn holder(&self, part: &Part<'_>) -> Result<Option<Box<dyn Program>>, Error> {
        let dialect = self.0.dialect();
        Ok(Some(Box::new(Holder {
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

/// A session with the statements of its part prepared.
pub(super) struct SqlConnection<S> {
    session: S,
    table: Table,
    /// The insert, the delete, the point query or the three range queries.
    statements: Vec<Statement>,
    /// Asks for the smallest or the largest key.
    edge: Option<Statement>,
    endings: Vec<String>,
    rows_per_commit: u32,
}

impl<S: Session> SqlConnection<S> {
    fn ask(&mut self) -> Result<Option<i64>, Error> {
        let Some(edge) = self.edge else {
            return Ok(None);
        };
        self.session.start(edge);
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

    fn prepare_insert(&mut self, feed: &mut Feed) {
        self.session.start(self.statements[0]);
        for row in feed.next_commit() {
            feed.source.push(row, &mut self.session);
        }
    }

    fn insert(&mut self) -> Result<u64, Error> {
        Ok(self.session.execute()?.rows)
    }

    fn last_keys(&mut self, rows: u64) -> Result<(Option<i64>, Option<i64>), Error> {
        let last_key = match rows {
            0 => None,
            _ => self.session.last_key(&self.table)?,
        };
        Ok((last_key, None))
    }

    fn endings(&self) -> usize {
        self.endings.len()
    }

    fn end(&mut self, number: usize) -> Result<(), Error> {
        self.session.query(&self.endings[number]).map(|_| ())
    }

    fn prepare_delete(&mut self, oldest: &Oldest) {
        self.session.start(self.statements[0]);
        self.session.int8(oldest.key_min);
    }

    fn delete(&mut self, oldest: &mut Oldest) -> Result<u64, Error> {
        let rows = self.session.execute()?.rows;
        oldest.deleted(rows);
        Ok(rows)
    }

    fn expected_deletes(&self) -> (u64, u64) {
        (self.rows_per_commit.into(), self.rows_per_commit.into())
    }

    fn key_min(&mut self, known: i64) -> Result<i64, Error> {
        Ok(self.ask()?.unwrap_or(known))
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
        self.ask()
    }
}

/// Holds a transaction that has read one row, and begins a new one when the schedule says so.
struct Holder<S> {
    session: S,
    begin: &'static str,
    commit: &'static str,
    read: String,
    is_open: bool,
}

impl<S: Session> Program for Holder<S> {
    fn kinds(&self) -> &'static [Kind] {
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
