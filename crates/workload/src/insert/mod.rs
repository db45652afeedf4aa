//! The Insert Benchmark: a table or several that grow at the head and shrink at the tail, with three secondary
//! indexes, and range and point queries beside the writes.
//!
//! Loading in key order (`l.i0`), creating the indexes (`l.x`), writing with large and with small transactions (`l.i1`,
//! `l.i2`), then queries as fast as they go with writes at a rate (`qr100`, `qp100`, ...).

pub mod connection;
mod ledger;
mod pace;
mod rows;
mod schema;

use std::sync::Arc;

use engine::{
    BulkLoad, Dialect, Engine, Error, IndexStatements, ParamType, Partitions, RangeScan, Session,
    Table, TableFacts,
};

use connection::{
    Connection, Deleter, Holder, Indexer, Inserter, KeyMin, PointReader, PreparedRange, RangeReader,
};
pub use ledger::Check;
use ledger::{Inserted, Ledger};
use pace::Pace;
pub use rows::RowSource;
pub use schema::IndexSet;
use schema::{POINT_COLUMNS, POINT_KEYS, RANGE_LIMIT};

use crate::{Program, Random};

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

/// The work of one connection in one step.
pub struct Work<S> {
    /// Its client, from 0.
    pub client: u32,
    /// What it does, for the record.
    pub role: &'static str,
    /// Operations per second; `None`: as fast as they go.
    pub rate: Option<f64>,
    /// The step ends without waiting for it.
    pub background: bool,
    /// Its table's number.
    pub table: u32,
    /// What it does.
    pub program: Connection<S>,
}

/// What one connection did, as [`Insert::apply`] wants to know it.
pub struct Done<'a, S> {
    /// Its table's number.
    pub table: u32,
    /// Its program, with its session still open.
    pub program: &'a mut Connection<S>,
    /// Rows of all its successful operations.
    pub rows: u64,
    /// No operation failed or was tried again.
    pub flawless: bool,
}

/// One cell's benchmark: its tables and what is known of them.
pub struct Insert {
    options: Options,
    tables: Vec<Table>,
    ledgers: Vec<Ledger>,
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
    pub fn connections<E: Engine>(
        &self,
        step: &Step,
        engine: &E,
    ) -> Result<Vec<Work<E::Session>>, Error> {
        let mut works = Vec::new();
        for client in 0..self.options.clients {
            let table = if self.options.shared_table { 0 } else { client };
            let published = Arc::new(KeyMin::default());
            let mut add = |role, rate, background, program| {
                works.push(Work {
                    client,
                    role,
                    rate,
                    background,
                    table,
                    program,
                });
            };
            let rows_per_commit = step.kind.rows_per_commit();
            match step.kind {
                StepKind::Load { rows, .. } => {
                    let mut inserter = self.inserter(engine, step, client, Some(rows))?;
                    if let Some(bulk) = self.bulk_load(engine.dialect()) {
                        inserter.begin_bulk_load(bulk)?;
                    }
                    add("insert", None, false, Connection::Inserter(inserter));
                }
                StepKind::Index { rows, .. } => {
                    let inserter = self.inserter(engine, step, client, Some(rows))?;
                    // Clients that share a table share its indexes: the first creates them.
                    let statements = if self.options.shared_table && client > 0 {
                        Vec::new()
                    } else {
                        engine.dialect().create_indexes(
                            &self.tables[table as usize],
                            self.options.index_statements,
                        )
                    };
                    let indexer = Indexer {
                        inserter,
                        statements,
                        next: 0,
                        creating: false,
                    };
                    add("index", None, false, Connection::Indexer(indexer));
                }
                StepKind::Write { rows, .. } => {
                    let mut inserter = self.inserter(engine, step, client, Some(rows))?;
                    let mut deleter = None;
                    if self.options.delete_per_insert {
                        let [ours, theirs] = Pace::pair();
                        inserter.pace = Some(ours);
                        let commits = inserter.commits;
                        deleter = Some(self.deleter(
                            engine,
                            step,
                            client,
                            commits,
                            &published,
                            Some(theirs),
                        )?);
                    }
                    add("insert", None, false, Connection::Inserter(inserter));
                    if let Some(deleter) = deleter {
                        add("delete", None, false, Connection::Deleter(deleter));
                    }
                }
                StepKind::Query { point, rate, .. } => {
                    let reader = if point {
                        Connection::PointReader(
                            self.point_reader(engine, step, client, &published)?,
                        )
                    } else {
                        Connection::RangeReader(self.range_reader(engine, step, client)?)
                    };
                    add("query", None, false, reader);
                    let commits_per_s = Some(rate / f64::from(rows_per_commit));
                    let inserter = self.inserter(engine, step, client, None)?;
                    add(
                        "insert",
                        commits_per_s,
                        false,
                        Connection::Inserter(inserter),
                    );
                    if self.options.delete_per_insert {
                        let deleter = self.deleter(engine, step, client, None, &published, None)?;
                        add("delete", commits_per_s, false, Connection::Deleter(deleter));
                    }
                }
            }
            if let Some(seconds) = self.options.long_transaction_seconds
                && !matches!(step.kind, StepKind::Load { .. } | StepKind::Index { .. })
            {
                let dialect = engine.dialect();
                let holder = Holder {
                    session: engine.connect()?,
                    begin: dialect.begin(),
                    commit: dialect.commit(),
                    read: dialect.min_key(&self.tables[table as usize]),
                    open: false,
                };
                add(
                    "long-transaction",
                    Some(1.0 / seconds),
                    true,
                    Connection::Holder(holder),
                );
            }
        }
        Ok(works)
    }

    /// Takes in what a step did, whether or not it was completed.
    ///
    /// # Errors
    /// The engine's own, when a session can't say which keys it was given.
    pub fn apply<S: Session>(
        &mut self,
        step: &Step,
        done: &mut [Done<'_, S>],
    ) -> Result<(), Error> {
        for (number, (ledger, table)) in self.ledgers.iter_mut().zip(&self.tables).enumerate() {
            let mut next_row = ledger.next_row;
            let (mut inserted, mut deleted, mut key_min) = (Vec::new(), 0, None);
            for Done {
                program,
                rows,
                flawless,
                ..
            } in done.iter_mut().filter(|done| done.table as usize == number)
            {
                match program {
                    Connection::Inserter(inserter)
                    | Connection::Indexer(Indexer { inserter, .. }) => {
                        let last_key = match *rows {
                            0 => None,
                            _ => inserter.session.last_key(table)?,
                        };
                        inserted.push(Inserted {
                            rows: *rows,
                            last_key,
                            gapless: *flawless,
                        });
                        if inserter.begun > 0 {
                            let end = inserter.next_row - inserter.stride
                                + u64::from(inserter.rows_per_commit);
                            next_row = next_row.max(end);
                        }
                    }
                    Connection::Deleter(deleter) => {
                        deleted += *rows;
                        // Several deleters of one table advance their bounds by what they deleted themselves: each
                        // bound holds, and the largest too.
                        key_min = key_min.max(Some(deleter.key_min));
                    }
                    Connection::RangeReader(_)
                    | Connection::PointReader(_)
                    | Connection::Holder(_) => {}
                }
            }
            ledger.apply(&inserted, deleted, key_min);
            ledger.next_row = next_row;
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
        })
    }

    /// How `l.i0` loads faster than by inserts alone, if it is to and can.
    pub fn bulk_load(&self, dialect: &dyn Dialect) -> Option<BulkLoad> {
        let may = self.options.bulk_load && !self.options.shared_table;
        dialect.bulk_load().filter(|_| may)
    }

    fn inserter<E: Engine>(
        &self,
        engine: &E,
        step: &Step,
        client: u32,
        rows: Option<u64>,
    ) -> Result<Inserter<E::Session>, Error> {
        let shared = self.options.shared_table;
        let number = if shared { 0 } else { client };
        let table = &self.tables[number as usize];
        let rows_per_commit = step.kind.rows_per_commit();
        let per_commit = u64::from(rows_per_commit);
        let mut session = engine.connect()?;
        let params: Vec<ParamType> = (0..rows_per_commit)
            .flat_map(|_| rows::ROW_PARAMS)
            .collect();
        let statement =
            session.prepare(&engine.dialect().insert(table, rows_per_commit), &params)?;
        let (position, of) = if shared {
            (u64::from(client), u64::from(self.options.clients))
        } else {
            (0, 1)
        };
        let commits = rows.map(|rows| {
            let all = rows.div_ceil(per_commit);
            all / of + u64::from(position < all % of)
        });
        let (shortest, longest) = self.options.data_length;
        Ok(Inserter {
            session,
            statement,
            rows: RowSource::new(self.options.seed, number, shortest, longest),
            rows_per_commit,
            next_row: self.ledgers[number as usize].next_row + position * per_commit,
            stride: of * per_commit,
            commits,
            begun: 0,
            pace: None,
            is_bulk_load: false,
            last_statements: &[],
            is_ending: false,
        })
    }

    fn deleter<E: Engine>(
        &self,
        engine: &E,
        step: &Step,
        client: u32,
        commits: Option<u64>,
        published: &Arc<KeyMin>,
        pace: Option<Pace>,
    ) -> Result<Deleter<E::Session>, Error> {
        let shared = self.options.shared_table;
        let table = &self.tables[if shared { 0 } else { client as usize }];
        let rows_per_commit = step.kind.rows_per_commit();
        let dialect = engine.dialect();
        let mut session = engine.connect()?;
        let statement = session.prepare(
            &dialect.delete_oldest(table, rows_per_commit, shared),
            &[ParamType::Int8],
        )?;
        let get_min = session.prepare(&dialect.min_key(table), &[])?;
        Ok(Deleter {
            session,
            statement,
            get_min,
            rows_per_commit,
            commits,
            begun: 0,
            key_min: 0,
            min_due: 0,
            asking: false,
            published: Arc::clone(published),
            pace,
        })
    }

    fn range_reader<E: Engine>(
        &self,
        engine: &E,
        step: &Step,
        client: u32,
    ) -> Result<RangeReader<E::Session>, Error> {
        let number = if self.options.shared_table {
            0
        } else {
            client as usize
        };
        let (table, rows) = (&self.tables[number], self.ledgers[number].rows);
        let mut session = engine.connect()?;
        let mut prepare = |query: schema::RangeQuery| -> Result<PreparedRange, Error> {
            let scan = RangeScan {
                index: &table.indexes[query.index],
                comparison: query.comparison,
                limit: RANGE_LIMIT,
            };
            let statement = session.prepare(
                &engine.dialect().range_scan(table, scan),
                &[ParamType::Int4],
            )?;
            // With 100 rows to be expected behind a key, fewer than ten are out of the question (Poisson: 1e-30).
            let margin = u64::from(query.domain) * 100 / rows.max(1) + 2;
            let short_from = u64::from(query.domain).saturating_sub(margin) as u32;
            Ok(PreparedRange {
                statement,
                domain: query.domain,
                short_from,
            })
        };
        let [market, register, pdc] = self.options.indexes.range_queries();
        let queries = [prepare(market)?, prepare(register)?, prepare(pdc)?];
        let random = Random::stream(
            self.options.seed,
            &[u64::from(step.number), u64::from(client), 2],
        );
        Ok(RangeReader {
            session,
            queries,
            random,
            may_fall_short: false,
        })
    }

    fn point_reader<E: Engine>(
        &self,
        engine: &E,
        step: &Step,
        client: u32,
        published: &Arc<KeyMin>,
    ) -> Result<PointReader<E::Session>, Error> {
        let table = &self.tables[if self.options.shared_table {
            0
        } else {
            client as usize
        }];
        let dialect = engine.dialect();
        let mut session = engine.connect()?;
        let params = [ParamType::Int8; POINT_KEYS as usize];
        let statement = session.prepare(
            &dialect.point_lookup(table, &POINT_COLUMNS, POINT_KEYS),
            &params,
        )?;
        let get_max = session.prepare(&dialect.max_key(table), &[])?;
        let key_min = session.query_i64(&dialect.min_key(table))?.unwrap_or(0);
        published
            .0
            .store(key_min, std::sync::atomic::Ordering::Relaxed);
        let random = Random::stream(
            self.options.seed,
            &[u64::from(step.number), u64::from(client), 3],
        );
        Ok(PointReader {
            session,
            statement,
            get_max,
            random,
            published: Arc::clone(published),
            key_min,
            key_max: key_min,
            max_due: 0,
            asking: false,
        })
    }
}

impl<S: Session> Work<S> {
    /// A handle that ends what this connection waits for.
    ///
    /// # Errors
    /// The engine's own.
    pub fn interrupt(&self) -> Result<engine::Interrupt, Error> {
        match &self.program {
            Connection::Inserter(inserter) | Connection::Indexer(Indexer { inserter, .. }) => {
                inserter.session.interrupt()
            }
            Connection::Deleter(deleter) => deleter.session.interrupt(),
            Connection::RangeReader(reader) => reader.session.interrupt(),
            Connection::PointReader(reader) => reader.session.interrupt(),
            Connection::Holder(holder) => holder.session.interrupt(),
        }
    }

    /// The kinds of operation it does, the main one first.
    pub fn kinds(&self) -> &'static [crate::Kind] {
        self.program.kinds()
    }
}
