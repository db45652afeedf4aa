//! The Insert Benchmark on an engine of keys and values: what a storage engine below an SQL layer would be asked to do, and
//! no SQL layer. A commit is one batch of rows and of the entries of their three indexes.
//!
//! What the server does for SQL the client does here: it gives each row its key, keeps the entries in step with the rows, and
//! reads the rows that it deletes, whose entries hang on their columns. Long transactions, partitions and bulk loads are
//! not applicable.

mod check;
pub mod connection;
mod encoding;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::{Comparison, Durability, Error, IndexStatements, KeyValueSession};

use super::choices::{KeyMin, Oldest, PointChoices, RangeChoices};
use super::pace::Turns;
use super::rows::Feed;
use super::schema::{POINT_KEYS, RangeQuery};
use super::{Insert, Part, Programs, StepKind};
use crate::{Program, Task};
use connection::{
    Claims, Connection, Counter, Deleter, Indexer, Inserter, Keys, PointReader, RangeReader,
    smallest_key,
};
use encoding::{Encoded, Layout, RANGE_START_BYTES, ROW_KEY_BYTES};

impl Insert {
    /// Sets what writes leave behind on an engine of keys and values; [`Durability::Log`] to begin with.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// What the options ask for and an engine of keys and values has not, by the names that plans use.
    pub fn keyed_not_applicable(&self) -> Vec<&'static str> {
        let options = &self.options;
        let asked = [
            ("partitions", options.partitions.is_some()),
            ("bulk-load", options.bulk_load),
            (
                "long-transaction",
                options.long_transaction_seconds.is_some(),
            ),
        ];
        let asked = asked.into_iter().filter(|(_, is_asked)| *is_asked);
        asked.map(|(name, _)| name).collect()
    }

    /// Opens the connections of a step on an engine of keys and values. There is no table to be made before.
    ///
    /// # Errors
    /// Those of `connect`, and the engine's own.
    pub fn keyed_connections<S: KeyValueSession>(
        &self,
        step: &super::Step,
        connect: impl FnMut() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        let counters = |first: fn(&super::Ledger) -> i64| {
            self.ledgers
                .iter()
                .map(|ledger| Counter::new(first(ledger)))
                .collect()
        };
        let programs = Batches {
            insert: self,
            connect,
            next_keys: counters(|ledger| ledger.next_key),
            oldest_keys: counters(super::Ledger::key_min),
        };
        self.tasks(step, programs)
    }

    fn layout(&self, table: usize) -> Layout {
        Layout::new(table, self.options.indexes)
    }
}

/// Makes programs that read keys and write batches.
struct Batches<'a, F> {
    insert: &'a Insert,
    connect: F,
    /// Of each table the key of the next row, where several connections insert.
    next_keys: Vec<Arc<Counter>>,
    /// Of each table the smallest key that is nobody's to delete yet, where several connections delete.
    oldest_keys: Vec<Arc<Counter>>,
}

impl<S: KeyValueSession, F: FnMut() -> Result<S, Error>> Batches<'_, F> {
    fn session(&mut self) -> Result<S, Error> {
        let mut session = (self.connect)()?;
        session.set_durability(self.insert.durability);
        Ok(session)
    }

    fn make_inserter(
        &mut self,
        part: Part<'_>,
        feed: Feed,
        turns: Turns,
    ) -> Result<Inserter<S>, Error> {
        let insert = self.insert;
        let ledger = &insert.ledgers[part.table];
        let is_shared = insert.options.shared_table;
        let layout = insert.layout(part.table);
        // While one client creates the indexes of a shared table the others may still insert: both write entries then,
        // and those that are written twice are the same.
        let is_creating = is_shared && matches!(part.step.kind, StepKind::Index { .. });
        let sizes = layout.key_sizes(ledger.indexed || is_creating);
        let rows_per_commit = feed.rows_per_commit();
        Ok(Inserter {
            session: self.session()?,
            layout,
            feed,
            turns,
            keys: match is_shared {
                true => Keys::Shared(Arc::clone(&self.next_keys[part.table])),
                false => Keys::Own(ledger.next_key),
            },
            encoded: Encoded::new(sizes, rows_per_commit, insert.options.data_length.1),
            batch: None,
            last_key: None,
        })
    }
}

impl<S: KeyValueSession, F: FnMut() -> Result<S, Error>> Programs for Batches<'_, F> {
    fn inserter(
        &mut self,
        part: Part<'_>,
        feed: Feed,
        turns: Turns,
    ) -> Result<Box<dyn Program>, Error> {
        let inserter = self.make_inserter(part, feed, turns)?;
        Ok(Box::new(Connection::Inserter(inserter)))
    }

    fn indexer(
        &mut self,
        part: Part<'_>,
        feed: Feed,
        turns: Turns,
        creates: bool,
    ) -> Result<Box<dyn Program>, Error> {
        let inserter = self.make_inserter(part, feed, turns)?;
        let indexes = inserter.layout.indexes;
        let passes = match self.insert.options.index_statements {
            _ if !creates => Vec::new(),
            // As MyRocks does, one index at a time.
            IndexStatements::Usual | IndexStatements::Each => {
                indexes.iter().map(|index| vec![*index]).collect()
            }
            IndexStatements::One => vec![indexes.to_vec()],
        };
        Ok(Box::new(Connection::Indexer(Indexer {
            inserter,
            passes,
            next: 0,
            is_creating: false,
            stop: Arc::new(AtomicBool::new(false)),
            entries: Vec::new(),
        })))
    }

    fn deleter(
        &mut self,
        part: Part<'_>,
        turns: Turns,
        published: &Arc<KeyMin>,
    ) -> Result<Box<dyn Program>, Error> {
        let layout = self.insert.layout(part.table);
        let sizes = layout.key_sizes(self.insert.ledgers[part.table].indexed);
        let rows_per_commit = part.step.kind.rows_per_commit();
        let is_shared = self.insert.options.shared_table;
        Ok(Box::new(Connection::Deleter(Deleter {
            session: self.session()?,
            layout,
            rows_per_commit,
            turns,
            oldest: Oldest::new(published),
            claims: is_shared.then(|| Claims::new(&self.oldest_keys[part.table])),
            doomed: Vec::with_capacity(rows_per_commit as usize * sizes.total()),
            sizes,
            batch: None,
        })))
    }

    fn range_reader(
        &mut self,
        part: Part<'_>,
        choices: RangeChoices,
    ) -> Result<Box<dyn Program>, Error> {
        let layout = self.insert.layout(part.table);
        let query = |query: RangeQuery| {
            let above = match query.comparison {
                Comparison::AtLeast => 0,
                Comparison::Above => 1,
            };
            (layout.indexes[query.index], above)
        };
        Ok(Box::new(Connection::RangeReader(RangeReader {
            session: self.session()?,
            queries: self.insert.options.indexes.range_queries().map(query),
            choices,
            from: [0; RANGE_START_BYTES],
            key_bytes: 0,
        })))
    }

    fn point_reader(
        &mut self,
        part: Part<'_>,
        mut choices: PointChoices,
    ) -> Result<Box<dyn Program>, Error> {
        let layout = self.insert.layout(part.table);
        let mut session = self.session()?;
        choices.start(smallest_key(&mut session, &layout)?.unwrap_or(0));
        Ok(Box::new(Connection::PointReader(PointReader {
            session,
            layout,
            choices,
            keys: [[0; ROW_KEY_BYTES]; POINT_KEYS as usize],
        })))
    }

    fn holder(&mut self, _: Part<'_>) -> Result<Option<Box<dyn Program>>, Error> {
        Ok(None)
    }
}
