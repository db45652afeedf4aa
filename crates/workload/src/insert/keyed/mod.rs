//! The Insert Benchmark on a key-value engine: the work of a storage engine below an SQL layer,
//! without the SQL layer. A commit is one batch of rows and their index entries.
//!
//! The client does what a SQL server would do: it assigns keys, maintains index entries, and
//! reads rows before it deletes them and their entries. Long transactions, partitions and bulk
//! loads are not applicable.

mod check;
mod connection;
mod encoding;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use engine::{Comparison, Error, KeyValueSession};
use plan::{Checks, IndexStatements, InsertStepKind, Query};

use super::schema::{POINT_KEYS, range_queries};
use super::{ClientStep, Connector, Database, Insert, Purpose};
use crate::{Check, Program, Task};
use connection::{DeleteRanges, KeyedConnection, ScannedIndex, largest_key, smallest_key};
use encoding::{EncodedCommit, Layout, RANGE_START_BYTES, ROW_KEY_BYTES};

/// A key-value engine for the benchmark.
pub struct Keyed<F> {
    /// Opens a session.
    pub connect: F,
    /// Why the engine cannot run steps with point queries, each of which reads several keys at once;
    /// `None` if it can.
    pub refuses_points: Option<String>,
}

impl<S: KeyValueSession, F: Fn() -> Result<S, Error>> Database for Keyed<F> {
    fn tasks(&self, insert: &Insert, step: &plan::InsertStep) -> Result<Vec<Task>, Error> {
        insert.tasks_on(step, self)
    }

    fn check(&self, insert: &Insert, table: usize) -> Result<Vec<Check>, Error> {
        let mut session = (self.connect)()?;
        if insert.plan.policy.checks == Checks::Full {
            return insert.check_entries(table, &mut session);
        }

        let layout = insert.layout(table);
        let key_min = smallest_key(&mut session, &layout)?;
        let key_max = largest_key(&mut session, &layout)?;
        session.release();

        Ok(insert.ledgers[table].check_keys(&insert.tables[table], key_min, key_max))
    }

    fn refuses(&self, step: &plan::InsertStep) -> Option<String> {
        match step.kind {
            InsertStepKind::Query { query: Query::Point, .. } => self.refuses_points.clone(),
            _ => None,
        }
    }

    fn not_applicable(&self, insert: &Insert, _: &plan::InsertStep) -> Option<String> {
        let plan = &insert.plan;
        let mut keys = Vec::new();
        if plan.partitions > 0 {
            keys.push("partitions");
        }
        if plan.bulk_load {
            keys.push("bulk-load");
        }
        if plan.long_transaction.is_some() {
            keys.push("long-transaction");
        }

        if keys.is_empty() {
            return None;
        }
        Some(format!("not supported by key-value engines: `{}`", keys.join("`, `")))
    }
}

impl<S: KeyValueSession, F: Fn() -> Result<S, Error>> Connector for Keyed<F> {
    type Connection = KeyedConnection<S>;

    fn open(&self, part: &ClientStep<'_>, purpose: Purpose) -> Result<Self::Connection, Error> {
        let insert = part.insert;
        let layout = insert.layout(part.table);
        let rows_per_commit = part.step.rows_per_commit;

        // While one client creates the indexes of a shared table, others may still insert. Both
        // write index entries then, and duplicates are identical.
        let is_creating = insert.is_shared() && matches!(purpose, Purpose::Index { .. });
        let sizes = layout.key_sizes(insert.ledgers[part.table].is_indexed || is_creating);

        let (rows_to_insert, rows_to_delete) = match purpose {
            Purpose::Insert | Purpose::Index { .. } => (rows_per_commit, 0),
            Purpose::Delete => (0, rows_per_commit),
            Purpose::ReadRanges | Purpose::ReadPoints => (0, 0),
        };
        let (_, data_length_max) = insert.plan.data_length;
        let encoded = EncodedCommit::new(sizes.clone(), rows_to_insert, data_length_max);
        let delete_keys = Vec::with_capacity(rows_to_delete as usize * sizes.iter().sum::<usize>());
        let is_one_of_several_deleters = insert.is_shared() && matches!(purpose, Purpose::Delete);

        let mut ranges = layout.all_indexes.map(|index| ScannedIndex { index, above: 0 });
        for (range, query) in ranges.iter_mut().zip(range_queries(insert.plan.indexes)) {
            range.above = i32::from(query.comparison == Comparison::Above);
        }

        let index_passes = match (purpose, insert.plan.index_statements) {
            (Purpose::Index { creates: true }, IndexStatements::One) => {
                vec![layout.indexes().to_vec()]
            }
            // As MyRocks does, one index at a time.
            (Purpose::Index { creates: true }, _) => {
                layout.indexes().iter().map(|index| vec![*index]).collect()
            }
            _ => Vec::new(),
        };

        Ok(KeyedConnection {
            session: (self.connect)()?,
            layout,
            sizes,
            rows_per_commit,
            shared: Arc::clone(&part.shared),
            encoded,
            batch: None,
            last_key: None,
            delete_ranges: is_one_of_several_deleters.then(DeleteRanges::default),
            delete_keys,
            ranges,
            range_start: [0; RANGE_START_BYTES],
            range_key_bytes: 0,
            points: [[0; ROW_KEY_BYTES]; POINT_KEYS as usize],
            index_passes,
            stop: Arc::default(),
        })
    }

    fn key_min(&self, _: &ClientStep<'_>, on: &mut Self::Connection) -> Result<Option<i64>, Error> {
        smallest_key(&mut on.session, &on.layout)
    }

    fn long_transaction(&self, _: &ClientStep<'_>) -> Result<Option<Box<dyn Program>>, Error> {
        Ok(None)
    }

    fn server_assigns_keys(&self) -> bool {
        false
    }
}

impl Insert {
    fn layout(&self, table: usize) -> Layout {
        let index_count = self.plan.secondary_indexes as usize;
        Layout::new(table, self.plan.indexes, index_count)
    }
}
