//! The programs of the Insert Benchmark's connections, on any engine. A program decides what is done
//! next, and a [`Connection`] does it with SQL or with keys and values.

use std::time::Duration;

use engine::{Error, Interrupt};

use super::choices::{OldestRows, PointChoices, RangeChoices};
use super::pace::CommitQuota;
use super::rows::RowBatches;
use super::schema::POINT_KEYS;
use crate::summary::{Deleted, Inserted};
use crate::{Executed, Next, OpKind, OpRole, Program, Summary};

/// A statement or batch that inserts rows and commits.
pub const INSERT: OpKind = OpKind::new("insert", OpRole::Insert);
pub(super) const BULK_LOAD_END: OpKind = OpKind::new("bulk_load_end", OpRole::EndBulkLoad);
pub(super) const CREATE_INDEX: OpKind = OpKind::new("create_index", OpRole::CreateIndex);
/// A statement or batch that deletes the oldest rows and commits.
pub(super) const DELETE: OpKind = OpKind::new("delete", OpRole::Delete);
const GET_MIN: OpKind = OpKind::new("get_min", OpRole::FindPosition);
/// A range query, or a query for one row.
pub const QUERY: OpKind = OpKind::new("query", OpRole::Query);
/// The point reader's query for the largest key.
const GET_MAX: OpKind = OpKind::new("get_max", OpRole::FindPosition);

/// The keys at which a connection stopped to insert.
pub(super) struct LastKeys {
    /// The largest key of the connection's rows.
    pub(super) inserted: Option<i64>,
    /// The key after the last assigned one, if the client assigns keys and not the server.
    pub(super) next: Option<i64>,
}

/// A connection to one table: the benchmark's operations on it. The last prepared operation is
/// executed, and retried if it fails.
pub(super) trait Connection: Send + 'static {
    /// Called first, by the thread that calls the others.
    fn begin(&mut self) {}

    /// Returns the interrupt of the current operation; `None` if all operations are short.
    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error>;

    fn server_thread(&mut self) -> Option<u32> {
        None
    }

    /// Prepares the next commit of rows.
    fn prepare_insert(&mut self, batches: &mut RowBatches);

    /// Inserts the prepared rows; returns their number.
    fn insert(&mut self) -> Result<u64, Error>;

    /// Returns the last keys of a connection that inserted `rows` rows.
    fn last_keys(&mut self, rows: u64) -> Result<LastKeys, Error>;

    /// Returns the number of operations that follow after all rows are inserted.
    fn final_ops(&self) -> usize {
        0
    }

    /// Runs one of these operations, by number.
    fn end(&mut self, number: usize) -> Result<(), Error>;

    /// Prepares the delete of a commit of the oldest rows.
    fn prepare_delete(&mut self, oldest: &OldestRows);

    /// Deletes the oldest rows, as prepared; returns their number.
    fn delete(&mut self, oldest: &mut OldestRows) -> Result<u64, Error>;

    /// Returns the minimum and the maximum number of rows that the last delete should delete.
    fn expected_deletes(&self) -> (u64, u64);

    /// Returns the first key that a failed delete did not delete.
    fn first_undeleted_key(&self, oldest: &OldestRows) -> i64 {
        oldest.key_min
    }

    /// Returns the smallest key, or `known` if the table is empty.
    fn key_min(&mut self, known: i64) -> Result<i64, Error>;

    /// Prepares the range query of that number from a first key on.
    fn prepare_range(&mut self, query: usize, first: i32);

    /// Runs the prepared range query; returns the number of rows found.
    fn read_range(&mut self) -> Result<u64, Error>;

    fn prepare_points(&mut self, keys: impl Iterator<Item = i64>);

    /// Runs the prepared point query; returns the number of rows found.
    fn read_points(&mut self) -> Result<u64, Error>;

    fn key_max(&mut self) -> Result<Option<i64>, Error>;
}

/// Inserts rows of one table, one commit at a time; then ends a bulk load, or creates the indexes.
pub(super) struct Inserter<C> {
    pub(super) connection: C,
    pub(super) kinds: &'static [OpKind],
    pub(super) batches: RowBatches,
    pub(super) quota: CommitQuota,
    /// Final operations begun: 0 while rows are inserted.
    pub(super) final_ops: usize,
}

impl<C: Connection> Program for Inserter<C> {
    fn kinds(&self) -> &'static [OpKind] {
        self.kinds
    }

    fn begin(&mut self) {
        self.connection.begin();
    }

    fn prepare(&mut self) -> Next {
        match self.quota.poll() {
            Next::Ready(_) => {}
            Next::Done if self.final_ops < self.connection.final_ops() => {
                self.final_ops += 1;
                return Next::Ready(1);
            }
            not_now => return not_now,
        }

        self.connection.prepare_insert(&mut self.batches);
        self.quota.begin();
        Next::Ready(0)
    }

    fn wait(&self, at_most: Duration) {
        self.quota.wait(at_most);
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        if let Some(number) = self.final_ops.checked_sub(1) {
            self.connection.end(number)?;
            return Ok(Executed::without_rows());
        }
        let expected = self.batches.rows_per_commit.into();
        let rows = self.connection.insert()?;
        Ok(Executed::new(rows, (expected, expected)))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.connection.interrupt()
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.connection.server_thread()
    }

    fn summary(&mut self, rows: u64) -> Result<Summary, Error> {
        let keys = self.connection.last_keys(rows)?;
        Ok(Summary::Inserted(Inserted {
            rows,
            last_key: keys.inserted,
            end_row: self.batches.end_row,
            next_key: keys.next,
        }))
    }
}

/// Deletes the oldest rows of one table, as many per commit as its client's inserter inserts.
pub(super) struct Deleter<C> {
    pub(super) connection: C,
    pub(super) quota: CommitQuota,
    pub(super) oldest: OldestRows,
    /// See [`Deleted::covers_old_rows_only`].
    pub(super) covers_old_rows_only: bool,
    /// The last delete failed, so its rows still exist.
    pub(super) has_failed: bool,
}

impl<C: Connection> Program for Deleter<C> {
    fn kinds(&self) -> &'static [OpKind] {
        &[DELETE, GET_MIN]
    }

    fn begin(&mut self) {
        self.connection.begin();
    }

    fn prepare(&mut self) -> Next {
        match self.quota.poll() {
            Next::Ready(_) => {}
            not_now => return not_now,
        }

        self.oldest.begin();
        if self.oldest.is_key_query {
            return Next::Ready(1);
        }

        self.quota.begin();
        self.connection.prepare_delete(&self.oldest);
        Next::Ready(0)
    }

    fn wait(&self, at_most: Duration) {
        self.quota.wait(at_most);
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        if self.oldest.is_key_query {
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

    fn summary(&mut self, rows: u64) -> Result<Summary, Error> {
        Ok(Summary::Deleted(Deleted {
            rows,
            key_min: self.oldest.key_min,
            covers_old_rows_only: self.covers_old_rows_only,
            left: self.has_failed.then(|| self.connection.first_undeleted_key(&self.oldest)),
        }))
    }
}

/// Scans one of the indexes from a random key.
pub(super) struct RangeReader<C> {
    pub(super) connection: C,
    pub(super) choices: RangeChoices,
}

impl<C: Connection> Program for RangeReader<C> {
    fn kinds(&self) -> &'static [OpKind] {
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
    fn kinds(&self) -> &'static [OpKind] {
        &[QUERY, GET_MAX]
    }

    fn begin(&mut self) {
        self.connection.begin();
    }

    fn prepare(&mut self) -> Next {
        self.choices.begin();
        if self.choices.is_key_query {
            return Next::Ready(1);
        }
        self.connection.prepare_points(self.choices.keys());
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        if self.choices.is_key_query {
            self.choices.learn(self.connection.key_max()?);
            return Ok(Executed::without_rows());
        }
        let rows = self.connection.read_points()?;
        // A key may have been deleted or never existed: the share of keys found is checked over the
        // whole step.
        Ok(Executed::new(rows, (0, POINT_KEYS.into())))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.connection.interrupt()
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.connection.server_thread()
    }
}
