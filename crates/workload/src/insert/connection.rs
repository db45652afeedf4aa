//! What each kind of connection of the Insert Benchmark does on an engine that speaks SQL.

use std::any::Any;
use std::time::Duration;

use engine::{BulkLoad, Error, Interrupt, Outcome, Session, Statement, Table};

use super::Account;
use super::choices::{Oldest, PointChoices, RangeChoices};
use super::pace::Turns;
use super::rows::Feed;
use crate::{Kind, Next, Program};

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
            Self::Inserter(Inserter { turns, .. }) | Self::Deleter(Deleter { turns, .. }) => {
                turns.wait(at_most);
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

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session().interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session().server_thread()
    }

    fn account(&mut self, rows: u64) -> Result<Box<dyn Any>, Error> {
        let account = match self {
            Self::Inserter(inserter) | Self::Indexer(Indexer { inserter, .. }) => {
                Account::Inserted {
                    last_key: match rows {
                        0 => None,
                        _ => inserter.session.last_key(&inserter.table)?,
                    },
                    end_row: inserter.feed.end_row(),
                    next_key: None,
                }
            }
            Self::Deleter(deleter) => Account::Deleted {
                key_min: deleter.oldest.key_min,
                is_of_old: deleter.is_shared,
                left: deleter.has_failed.then_some(deleter.oldest.key_min),
            },
            Self::RangeReader(_) | Self::PointReader(_) | Self::Holder(_) => {
                return Ok(Box::new(()));
            }
        };
        Ok(Box::new(account))
    }
}

impl<S> Connection<S> {
    fn session(&mut self) -> &mut S {
        match self {
            Self::Inserter(inserter) | Self::Indexer(Indexer { inserter, .. }) => {
                &mut inserter.session
            }
            Self::Deleter(deleter) => &mut deleter.session,
            Self::RangeReader(reader) => &mut reader.session,
            Self::PointReader(reader) => &mut reader.session,
            Self::Holder(holder) => &mut holder.session,
        }
    }
}

/// Inserts rows of one table, a commit at a time.
pub struct Inserter<S> {
    pub(super) session: S,
    pub(super) table: Table,
    pub(super) statement: Statement,
    pub(super) feed: Feed,
    pub(super) turns: Turns,
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
        match self.turns.look() {
            Next::Ready(_) => {}
            Next::Later => return Next::Later,
            Next::Done => {
                self.is_ending = !self.last_statements.is_empty();
                return if self.is_ending {
                    Next::Ready(1)
                } else {
                    Next::Done
                };
            }
        }
        self.session.start(self.statement);
        for row in self.feed.next_commit() {
            self.feed.source.push(row, &mut self.session);
        }
        self.turns.begin();
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
        let rows = self.feed.rows_per_commit().into();
        (rows, rows)
    }
}

/// Deletes the oldest rows of one table, as many a commit as its client's inserter inserts.
pub struct Deleter<S> {
    pub(super) session: S,
    pub(super) statement: Statement,
    pub(super) get_min: Statement,
    pub(super) rows_per_commit: u32,
    pub(super) turns: Turns,
    pub(super) oldest: Oldest,
    /// Others insert into the same table and delete from it.
    pub(super) is_shared: bool,
    /// The last delete failed: its rows are there.
    pub(super) has_failed: bool,
}

impl<S: Session> Deleter<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        match self.turns.look() {
            Next::Ready(_) => {}
            not_now => return not_now,
        }
        self.oldest.begin();
        if self.oldest.is_asking {
            self.session.start(self.get_min);
            return Next::Ready(1);
        }
        self.turns.begin();
        self.session.start(self.statement);
        self.session.int8(self.oldest.key_min);
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        let result = self.session.execute();
        let oldest = &mut self.oldest;
        if !oldest.is_asking {
            self.has_failed = result.is_err();
        }
        let mut outcome = result?;
        if oldest.is_asking {
            oldest.learn(outcome.value.unwrap_or(oldest.key_min));
            outcome.rows = 0; // It deleted none.
        } else {
            oldest.deleted(outcome.rows);
        }
        Ok(outcome)
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        let rows = if self.oldest.is_asking {
            0
        } else {
            self.rows_per_commit.into()
        };
        (rows, rows)
    }
}

/// Scans one of three indexes from a random key.
pub struct RangeReader<S> {
    pub(super) session: S,
    pub(super) statements: [Statement; 3],
    pub(super) choices: RangeChoices,
}

impl<S: Session> RangeReader<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        let (query, first) = self.choices.next_query();
        self.session.start(self.statements[query]);
        self.session.int4(first);
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        self.session.execute()
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        self.choices.expected_rows()
    }
}

/// Looks up ten random keys between the smallest and the largest.
pub struct PointReader<S> {
    pub(super) session: S,
    pub(super) statement: Statement,
    pub(super) get_max: Statement,
    pub(super) choices: PointChoices,
}

impl<S: Session> PointReader<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        self.choices.begin();
        if self.choices.is_asking {
            self.session.start(self.get_max);
            return Next::Ready(1);
        }
        self.session.start(self.statement);
        for key in self.choices.keys() {
            self.session.int8(key);
        }
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        let mut outcome = self.session.execute()?;
        if self.choices.is_asking {
            outcome.rows = 0; // It read none of the table's.
            self.choices.learn(outcome.value);
        }
        Ok(outcome)
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        self.choices.expected_rows()
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
