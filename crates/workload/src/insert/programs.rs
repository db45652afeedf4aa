//! What each connection of the Insert Benchmark does, whatever engine it is to.

use std::any::Any;
use std::time::Duration;

use engine::{Error, Interrupt};

use super::choices::{Oldest, PointChoices, RangeChoices};
use super::ledger::{Deleted, Inserted};
use super::pace::Turns;
use super::rows::Feed;
use super::schema::POINT_KEYS;
use crate::{Executed, Kind, Next, Program};

/// A statement or batch that inserts rows and commits.
pub(super) const INSERT: Kind = Kind("insert");
/// What ends a bulk load.
pub(super) const BULK_LOAD_END: Kind = Kind("bulk_load_end");
/// What creates an index, or several.
pub(super) const CREATE_INDEX: Kind = Kind("create_index");
/// A statement or batch that deletes the oldest rows and commits.
const DELETE: Kind = Kind("delete");
/// The deleter asks for the smallest key.
const GET_MIN: Kind = Kind("get_min");
/// A range or point query.
const QUERY: Kind = Kind("query");
/// The point reader asks for the largest key.
const GET_MAX: Kind = Kind("get_max");

/// A connection to one table: the benchmark's operations on it. What was prepared last is what runs, and what runs again
/// when it failed.
pub(super) trait Connection: Send + 'static {
    /// Called first by the thread that calls the others.
    fn begin(&mut self) {}

    /// Returns what ends the operation that it waits for; `None` where that is never long.
    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error>;

    /// Returns the server's thread.
    fn server_thread(&mut self) -> Option<u32> {
        None
    }

    /// Prepares the next commit of rows.
    fn prepare_insert(&mut self, feed: &mut Feed);

    /// Inserts them; returns how many.
    fn insert(&mut self) -> Result<u64, Error>;

    /// Returns the largest key of the rows that it inserted, so many in all, and the key after the last one that was given
    /// where no server gives them.
    fn last_keys(&mut self, rows: u64) -> Result<(Option<i64>, Option<i64>), Error>;

    /// Operations that it does once all rows are inserted.
    fn endings(&self) -> usize {
        0
    }

    /// Does one of them, by number.
    fn end(&mut self, number: usize) -> Result<(), Error>;

    /// Prepares the delete of a commit of the oldest rows.
    fn prepare_delete(&mut self, oldest: &Oldest);

    /// Deletes them; returns how many.
    fn delete(&mut self, oldest: &mut Oldest) -> Result<u64, Error>;

    /// Returns the fewest and the most rows that are right for the last delete.
    fn expected_deletes(&self) -> (u64, u64);

    /// Returns the first key that a delete which failed has left.
    fn first_left(&self, oldest: &Oldest) -> i64 {
        oldest.key_min
    }

    /// Returns the smallest key, or what is known of it.
    fn key_min(&mut self, known: i64) -> Result<i64, Error>;

    /// Prepares the range query of that number from a first key on.
    fn prepare_range(&mut self, query: usize, first: i32);

    /// Runs it; returns the rows found.
    fn read_range(&mut self) -> Result<u64, Error>;

    /// Prepares a point query.
    fn prepare_points(&mut self, keys: impl Iterator<Item = i64>);

    /// Runs it; returns the rows found.
    fn read_points(&mut self) -> Result<u64, Error>;

    /// Returns the largest key.
    fn key_max(&mut self) -> Result<Option<i64>, Error>;
}

/// Inserts rows of one table, a commit at a time; then ends a bulk load, or creates the indexes.
pub(super) struct Inserter<C> {
    pub(super) connection: C,
    pub(super) kinds: &'static [Kind],
    pub(super) feed: Feed,
    pub(super) turns: Turns,
    /// Endings begun: none while rows are inserted.
    pub(super) endings: usize,
}

impl<C: Connection> Program for Inserter<C> {
    fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }

    fn begin(&mut self) {
        self.connection.begin();
    }

    fn prepare(&mut self) -> Next {
        match self.turns.look() {
            Next::Ready(_) => {}
            Next::Done if self.endings < self.connection.endings() => {
                self.endings += 1;
                return Next::Ready(1);
            }
            not_now => return not_now,
        }
        self.connection.prepare_insert(&mut self.feed);
        self.turns.begin();
        Next::Ready(0)
    }

    fn wait(&self, at_most: Duration) {
        self.turns.wait(at_most);
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        match self.endings.checked_sub(1) {
            None => {
                let expected = self.feed.rows_per_commit.into();
                let rows = self.connection.insert()?;
                Ok(Executed::new(rows, (expected, expected)))
            }
            Some(number) => {
                self.connection.end(number)?;
                Ok(Executed::without_rows())
            }
        }
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.connection.interrupt()
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.connection.server_thread()
    }

    fn account(&mut self, rows: u64) -> Result<Box<dyn Any>, Error> {
        let (last_key, next_key) = self.connection.last_keys(rows)?;
        Ok(Box::new(Inserted {
            rows,
            last_key,
            end_row: self.feed.end_row,
            next_key,
        }))
    }
}

/// Deletes the oldest rows of one table, as many a commit as its client's inserter inserts.
pub(super) struct Deleter<C> {
    pub(super) connection: C,
    pub(super) turns: Turns,
    pub(super) oldest: Oldest,
    /// See [`Deleted::is_of_old`].
    pub(super) is_of_old: bool,
    /// The last delete failed: its rows are there.
    pub(super) has_failed: bool,
}

impl<C: Connection> Program for Deleter<C> {
    fn kinds(&self) -> &'static [Kind] {
        &[DELETE, GET_MIN]
    }

    fn begin(&mut self) {
        self.connection.begin();
    }

    fn prepare(&mut self) -> Next {
        match self.turns.look() {
            Next::Ready(_) => {}
            not_now => return not_now,
        }
        self.oldest.begin();
        if self.oldest.is_asking {
            return Next::Ready(1);
        }
        self.turns.begin();
        self.connection.prepare_delete(&self.oldest);
        Next::Ready(0)
    }

    fn wait(&self, at_most: Duration) {
        self.turns.wait(at_most);
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        if self.oldest.is_asking {
            let key_min = self.connection.key_min(self.oldest.key_min)?;
            self.oldest.learn(key_min);
            return Ok(Executed::without_rows());
        }
        let result = self.connection.delete(&mut self.oldest);
        self.has_failed = result.is_err();
        Ok(Executed::new(result?, self.connection.expected_deletes()))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.connection.interrupt()
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.connection.server_thread()
    }

    fn account(&mut self, rows: u64) -> Result<Box<dyn Any>, Error> {
        let left = || self.connection.first_left(&self.oldest);
        Ok(Box::new(Deleted {
            rows,
            key_min: self.oldest.key_min,
            is_of_old: self.is_of_old,
            left: self.has_failed.then(left),
        }))
    }
}

/// Scans one of the indexes from a random key.
pub(super) struct RangeReader<C> {
    pub(super) connection: C,
    pub(super) choices: RangeChoices,
}

impl<C: Connection> Program for RangeReader<C> {
    fn kinds(&self) -> &'static [Kind] {
        &[QUERY]
    }

    fn begin(&mut self) {
        self.connection.begin();
    }

    fn prepare(&mut self) -> Next {
        let (query, first) = self.choices.next_query();
        self.connection.prepare_range(query, first);
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        let rows = self.connection.read_range()?;
        Ok(Executed::new(rows, self.choices.expected_rows()))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.connection.interrupt()
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.connection.server_thread()
    }
}

/// Looks up ten random keys between the smallest and the largest.
pub(super) struct PointReader<C> {
    pub(super) connection: C,
    pub(super) choices: PointChoices,
}

impl<C: Connection> Program for PointReader<C> {
    fn kinds(&self) -> &'static [Kind] {
        &[QUERY, GET_MAX]
    }

    fn begin(&mut self) {
        self.connection.begin();
    }

    fn prepare(&mut self) -> Next {
        self.choices.begin();
        if self.choices.is_asking {
            return Next::Ready(1);
        }
        self.connection.prepare_points(self.choices.keys());
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        if self.choices.is_asking {
            self.choices.learn(self.connection.key_max()?);
            return Ok(Executed::without_rows());
        }
        let rows = self.connection.read_points()?;
        // A key may have been deleted since, or never have been: the share of keys found is checked as a whole.
        Ok(Executed::new(rows, (0, POINT_KEYS.into())))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.connection.interrupt()
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.connection.server_thread()
    }
}
