//! What each kind of connection of the Insert Benchmark does.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use engine::{BulkLoad, Error, Outcome, Session, Statement};

use super::pace::Pace;
use super::rows::RowSource;
use super::schema::{POINT_KEYS, RANGE_LIMIT};
use crate::random::scale;
use crate::{Kind, Next, Program, Random};

/// The names of the kinds of operation, as they are recorded.
pub mod kinds {
    use crate::Kind;

    /// A statement that inserts rows and commits.
    pub const INSERT: Kind = Kind("insert");
    /// A statement that ends a bulk load.
    pub const BULK_LOAD_END: Kind = Kind("bulk_load_end");
    /// A statement that deletes the oldest rows and commits.
    pub const DELETE: Kind = Kind("delete");
    /// A range or point query.
    pub const QUERY: Kind = Kind("query");
    /// The deleter asks for the smallest key.
    pub const GET_MIN: Kind = Kind("get_min");
    /// The point reader asks for the largest key.
    pub const GET_MAX: Kind = Kind("get_max");
    /// A statement that creates an index, or several.
    pub const CREATE_INDEX: Kind = Kind("create_index");
    /// The end of one long transaction and the beginning of the next.
    pub const LONG_TRANSACTION: Kind = Kind("long_transaction");
}

/// The deleter learns the smallest key anew after so many deletes.
const MIN_EVERY: u64 = 1000;
/// The point reader learns the largest key anew after so many queries.
const MAX_EVERY: u64 = 100;

/// One connection: what it is decides what it does.
pub enum Connection<S> {
    /// Inserts rows.
    Inserter(Inserter<S>),
    /// Deletes the oldest rows.
    Deleter(Deleter<S>),
    /// Scans indexes.
    RangeReader(RangeReader<S>),
    /// Looks up keys.
    PointReader(PointReader<S>),
    /// Creates indexes.
    Indexer(Indexer<S>),
    /// Holds transactions open.
    Holder(Holder<S>),
}

macro_rules! each {
    ($connection:expr, $inner:ident => $body:expr) => {
        match $connection {
            Connection::Inserter($inner) => $body,
            Connection::Deleter($inner) => $body,
            Connection::RangeReader($inner) => $body,
            Connection::PointReader($inner) => $body,
            Connection::Indexer($inner) => $body,
            Connection::Holder($inner) => $body,
        }
    };
}

impl<S: Session> Program for Connection<S> {
    fn kinds(&self) -> &'static [Kind] {
        match self {
            Self::Inserter(Inserter {
                is_bulk_load: true, ..
            }) => &[kinds::INSERT, kinds::BULK_LOAD_END],
            Self::Inserter(_) => &[kinds::INSERT],
            Self::Deleter(_) => &[kinds::DELETE, kinds::GET_MIN],
            Self::RangeReader(_) => &[kinds::QUERY],
            Self::PointReader(_) => &[kinds::QUERY, kinds::GET_MAX],
            Self::Indexer(_) => &[kinds::CREATE_INDEX, kinds::INSERT],
            Self::Holder(_) => &[kinds::LONG_TRANSACTION],
        }
    }

    #[inline]
    fn prepare(&mut self) -> Next {
        each!(self, inner => inner.prepare())
    }

    fn wait(&self, at_most: Duration) {
        match self {
            Self::Inserter(Inserter {
                pace: Some(pace), ..
            })
            | Self::Deleter(Deleter {
                pace: Some(pace), ..
            }) => {
                pace.wait(at_most);
            }
            _ => {}
        }
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        each!(self, inner => inner.execute())
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        each!(self, inner => inner.expected_rows())
    }
}

/// Inserts rows of one table, a commit at a time.
pub struct Inserter<S> {
    pub(super) session: S,
    pub(super) statement: Statement,
    pub(super) rows: RowSource,
    pub(super) rows_per_commit: u32,
    /// The first row of the next commit.
    pub(super) next_row: u64,
    /// From one commit's first row to the next one's: other clients insert those between into the same table.
    pub(super) stride: u64,
    /// Commits to do; `None`: until the step ends.
    pub(super) commits: Option<u64>,
    /// Commits begun.
    pub(super) begun: u64,
    pub(super) pace: Option<Pace>,
    pub(super) is_bulk_load: bool,
    /// Statements still to be run when all rows are inserted.
    pub(super) last_statements: &'static [&'static str],
    /// The first of them is running.
    pub(super) is_ending: bool,
}

impl<S: Session> Inserter<S> {
    pub(super) fn begin_bulk_load(&mut self, bulk: BulkLoad) -> Result<(), Error> {
        self.is_bulk_load = true;
        self.last_statements = bulk.end;
        bulk.begin
            .iter()
            .try_for_each(|sql| self.session.query(sql).map(|_| ()))
    }

    #[inline]
    fn prepare(&mut self) -> Next {
        let done = self.commits == Some(self.begun);
        if let Some(pace) = &mut self.pace {
            if done {
                pace.end();
            } else if !pace.may_go_on(self.begun) {
                return Next::Later;
            }
        }
        if done {
            self.is_ending = !self.last_statements.is_empty();
            return if self.is_ending {
                Next::Ready(1)
            } else {
                Next::Done
            };
        }
        self.session.start(self.statement);
        for row in self.next_row..self.next_row + u64::from(self.rows_per_commit) {
            self.rows.push(row, &mut self.session);
        }
        self.next_row += self.stride;
        self.begun += 1;
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        if self.is_ending
            && let [first, rest @ ..] = self.last_statements
        {
            self.session.query(first)?;
            self.last_statements = rest;
            return Ok(Outcome::default());
        }
        self.session.execute()
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        if self.is_ending {
            return (0, 0);
        }
        (self.rows_per_commit.into(), self.rows_per_commit.into())
    }
}

/// Deletes the oldest rows of one table, as many a commit as its client's inserter inserts.
pub struct Deleter<S> {
    pub(super) session: S,
    pub(super) statement: Statement,
    pub(super) get_min: Statement,
    pub(super) rows_per_commit: u32,
    pub(super) commits: Option<u64>,
    pub(super) begun: u64,
    /// No key is smaller.
    pub(super) key_min: i64,
    /// Deletes until the smallest key is asked for again.
    pub(super) min_due: u64,
    pub(super) asking: bool,
    /// Where the point reader of the same table reads `key_min`.
    pub(super) published: Arc<KeyMin>,
    pub(super) pace: Option<Pace>,
}

impl<S: Session> Deleter<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        let done = self.commits == Some(self.begun);
        if let Some(pace) = &mut self.pace {
            if done {
                pace.end();
            } else if !pace.may_go_on(self.begun) {
                return Next::Later;
            }
        }
        if done {
            return Next::Done;
        }
        self.asking = self.min_due == 0;
        if self.asking {
            self.min_due = MIN_EVERY;
            self.session.start(self.get_min);
            return Next::Ready(1);
        }
        self.min_due -= 1;
        self.begun += 1;
        self.session.start(self.statement);
        self.session.int8(self.key_min);
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        let mut outcome = self.session.execute()?;
        if self.asking {
            self.key_min = outcome.value.unwrap_or(self.key_min);
            outcome.rows = 0; // It deleted none.
        } else {
            // Keys may have gaps, so this is a bound; it need not be more.
            self.key_min += outcome.rows as i64;
        }
        self.published.0.store(self.key_min, Relaxed);
        Ok(outcome)
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        let rows = if self.asking {
            0
        } else {
            self.rows_per_commit.into()
        };
        (rows, rows)
    }
}

/// The smallest key of a table, as its deleter last knew it: written once a delete, read once in 100 point queries.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct KeyMin(pub(super) AtomicI64);

/// Scans one of three indexes from a random key.
pub struct RangeReader<S> {
    pub(super) session: S,
    pub(super) queries: [PreparedRange; 3],
    pub(super) random: Random,
    /// Fewer rows than the limit are right, since the scan began near the index's end.
    pub(super) may_fall_short: bool,
}

/// A range query ready to be run.
pub(super) struct PreparedRange {
    pub(super) statement: Statement,
    pub(super) domain: u32,
    /// From this first key on so few rows may follow that the limit may not be reached.
    pub(super) short_from: u32,
}

impl<S: Session> RangeReader<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        let bits = self.random.next_u64();
        let query = &self.queries[scale(bits as u32, 3) as usize];
        let first = scale((bits >> 32) as u32, query.domain);
        self.may_fall_short = first >= query.short_from;
        self.session.start(query.statement);
        self.session.int4(first as i32);
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        self.session.execute()
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        (
            if self.may_fall_short {
                0
            } else {
                RANGE_LIMIT.into()
            },
            RANGE_LIMIT.into(),
        )
    }
}

/// Looks up ten random keys between the smallest and the largest.
pub struct PointReader<S> {
    pub(super) session: S,
    pub(super) statement: Statement,
    pub(super) get_max: Statement,
    pub(super) random: Random,
    pub(super) published: Arc<KeyMin>,
    pub(super) key_min: i64,
    pub(super) key_max: i64,
    /// Queries until the keys are asked for again.
    pub(super) max_due: u64,
    pub(super) asking: bool,
}

impl<S: Session> PointReader<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        self.asking = self.max_due == 0;
        if self.asking {
            self.max_due = MAX_EVERY;
            self.session.start(self.get_max);
            return Next::Ready(1);
        }
        self.max_due -= 1;
        self.session.start(self.statement);
        let span = (self.key_max - self.key_min + 1).max(1) as u64;
        // Distinct keys: one from each tenth of the span, which needs no search for doubles.
        let keys = u64::from(POINT_KEYS);
        for part in 0..keys {
            let (from, to) = (span * part / keys, span * (part + 1) / keys);
            self.session
                .int8(self.key_min + (from + self.random.below((to - from).max(1))) as i64);
        }
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        let mut outcome = self.session.execute()?;
        if self.asking {
            outcome.rows = 0; // It read none of the table's.
            self.key_max = outcome.value.unwrap_or(self.key_max);
            self.key_min = self.published.0.load(Relaxed).min(self.key_max);
        }
        Ok(outcome)
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        // A key may have been deleted since, or never have been: the share of keys found is checked as a whole.
        (0, if self.asking { 0 } else { POINT_KEYS.into() })
    }
}

/// Inserts a few rows and creates the indexes.
pub struct Indexer<S> {
    pub(super) inserter: Inserter<S>,
    pub(super) statements: Vec<String>,
    pub(super) next: usize,
    pub(super) creating: bool,
}

impl<S: Session> Indexer<S> {
    fn prepare(&mut self) -> Next {
        match self.inserter.prepare() {
            Next::Done => {}
            Next::Later => return Next::Later,
            Next::Ready(_) => return Next::Ready(1),
        }
        if self.next == self.statements.len() {
            return Next::Done;
        }
        self.creating = true;
        self.next += 1;
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Outcome, Error> {
        if self.creating {
            self.inserter
                .session
                .query(&self.statements[self.next - 1])?;
            return Ok(Outcome::default());
        }
        self.inserter.execute()
    }

    fn expected_rows(&self) -> (u64, u64) {
        if self.creating {
            (0, 0)
        } else {
            self.inserter.expected_rows()
        }
    }
}

/// Holds a transaction that has read one row, and begins a new one when the schedule says so.
pub struct Holder<S> {
    pub(super) session: S,
    pub(super) begin: &'static str,
    pub(super) commit: &'static str,
    pub(super) read: String,
    pub(super) open: bool,
}

impl<S: Session> Holder<S> {
    fn prepare(&mut self) -> Next {
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Outcome, Error> {
        if self.open {
            self.session.query(self.commit)?;
            self.open = false;
        }
        self.session.query(self.begin)?;
        self.open = true;
        let rows = self.session.query(&self.read)?.len() as u64;
        Ok(Outcome { rows, value: None })
    }

    fn expected_rows(&self) -> (u64, u64) {
        (0, 1)
    }
}
