//! A connection of the Insert Benchmark to a key-value engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use engine::{Direction, Error, ErrorClass, Interrupt, KeyValueSession, Scan};

use super::encoding::{
    EncodedCommit, IndexLayout, Layout, RANGE_START_BYTES, ROW_KEY_BYTES, columns, id, primary_key,
    row,
};
use crate::insert::choices::OldestRows;
use crate::insert::programs::{Connection, LastKeys};
use crate::insert::rows::RowBatches;
use crate::insert::schema::{POINT_KEYS, RANGE_LIMIT};
use crate::insert::shared::SharedKeys;

/// Rows whose entries are written in one batch when an index is created.
const INDEX_ROWS: u64 = 1000;

/// Scans upwards from `from`, the start of a key, over up to `limit` entries. Visits those of the
/// same table or index until `visit` fails; returns their number.
#[inline]
pub(super) fn scan_up<S: KeyValueSession>(
    session: &mut S,
    from: &[u8],
    limit: u64,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut entries = 0;
    let mut visited = Ok(());
    let scan = Scan { from, direction: Direction::Forward, limit, verifies_order: true };
    session.scan(scan, |key, value| {
        if visited.is_ok() && key.starts_with(id(from)) {
            entries += 1;
            visited = visit(key, value);
        }
    })?;
    visited.map(|()| entries)
}

/// Returns the smallest primary key of a table, by a scan from its beginning, which passes over
/// deleted entries.
#[inline]
pub(super) fn smallest_key<S: KeyValueSession>(
    session: &mut S,
    layout: &Layout,
) -> Result<Option<i64>, Error> {
    let mut found = None;
    scan_up(session, layout.start(), 1, |key, _| {
        found = primary_key(key);
        Ok(())
    })?;
    Ok(found)
}

/// Returns the largest primary key of a table, by a scan from its end.
#[inline]
pub(super) fn largest_key<S: KeyValueSession>(
    session: &mut S,
    layout: &Layout,
) -> Result<Option<i64>, Error> {
    let from = layout.row_key(i64::MAX);
    let scan = Scan { from: &from, direction: Direction::Reverse, limit: 1, verifies_order: true };

    // In an empty table, the scan finds a key of the table or index before it.
    let mut found = None;
    session.scan(scan, |key, _| {
        if key.starts_with(layout.start()) {
            found = primary_key(key);
        }
    })?;
    Ok(found)
}

/// A range of keys that one deleter is to delete.
#[derive(Clone, Copy, Debug)]
struct KeyClaim {
    first: i64,
    length: u64,
}

/// Divides the rows of one table between several deleters: each claims a range of keys at a time,
/// from the smallest on.
#[derive(Debug, Default)]
pub(super) struct DeleteRanges {
    /// The claimed range that is not deleted yet.
    claim: Option<KeyClaim>,
    /// Rows that were missing because inserts had failed. The next claim is that much larger, so
    /// that deletes keep up with inserts.
    owed: u64,
    /// Keys of the last claim.
    size: u64,
}

impl DeleteRanges {
    /// Returns the range to delete next: after a failure, the same one again.
    #[inline]
    fn claim(&mut self, rows: u64, shared: &SharedKeys) -> KeyClaim {
        let length = rows + self.owed;
        let claim = *self
            .claim
            .get_or_insert_with(|| KeyClaim { first: shared.claim_keys(length), length });
        self.size = claim.length;
        claim
    }

    /// Notes that the claimed range was deleted, and had `rows` rows.
    #[inline]
    fn settle(&mut self, rows: u64) {
        self.owed = self.size - rows.min(self.size);
        self.claim = None;
    }
}

/// A batch that is prepared but not written.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreparedBatch {
    rows: u64,
    /// The last key that the batch inserts, or the key below which it deletes all.
    key: i64,
}

/// The index that a range query scans.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScannedIndex {
    pub(super) index: IndexLayout,
    /// The query's parameter is increased by this: 0 for `>=`, 1 for `>`.
    pub(super) above: i32,
}

/// A session and its buffers. Buffers that the connection's part of the step does not need are
/// empty.
pub(in crate::insert) struct KeyedConnection<S> {
    pub(super) session: S,
    pub(super) layout: Layout,
    /// Sizes of a row's key and of its index entries' keys.
    pub(super) sizes: Vec<usize>,
    pub(super) rows_per_commit: u32,
    pub(super) shared: Arc<SharedKeys>,
    /// Inserts: the next commit, without its primary keys.
    pub(super) encoded: EncodedCommit,
    pub(super) batch: Option<PreparedBatch>,
    pub(super) last_key: Option<i64>,
    /// Deletes: present if others delete from the same table.
    pub(super) delete_ranges: Option<DeleteRanges>,
    /// The keys to delete, grouped by row.
    pub(super) delete_keys: Vec<u8>,
    /// The index of each range query.
    pub(super) ranges: [ScannedIndex; 3],
    /// The first key of the prepared range query.
    pub(super) range_start: [u8; RANGE_START_BYTES],
    /// The size of the keys that the prepared range query reads.
    pub(super) range_key_bytes: usize,
    /// The keys of a point query.
    pub(super) points: [[u8; ROW_KEY_BYTES]; POINT_KEYS as usize],
    /// The indexes to create, one operation per group.
    pub(super) index_passes: Vec<Vec<IndexLayout>>,
    /// Interrupts the creation of indexes.
    pub(super) stop: Arc<AtomicBool>,
}

impl<S: KeyValueSession> Connection for KeyedConnection<S> {
    fn begin(&mut self) {
        self.session.enter_thread();
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        if self.index_passes.is_empty() {
            return Ok(None);
        }
        let stop = Arc::clone(&self.stop);
        Ok(Some(Box::new(move || stop.store(true, Relaxed))))
    }

    fn prepare_insert(&mut self, batches: &mut RowBatches) {
        self.drop_batch();
        self.encoded.clear();
        for row in batches.next_batch() {
            let (columns, data) = batches.source.row(row);
            self.encoded.push(&self.layout, &columns, data);
        }
    }

    fn insert(&mut self) -> Result<u64, Error> {
        let batch = self.batch.unwrap_or_else(|| {
            // As a server does: keys follow the order of commits, not of prepared batches.
            let first = self.shared.take_keys(self.rows_per_commit);
            self.encoded.put(first, &mut self.session);
            PreparedBatch {
                rows: self.rows_per_commit.into(),
                key: first + i64::from(self.rows_per_commit) - 1,
            }
        });

        // If the write fails, a retry writes the same batch.
        self.batch = Some(batch);
        self.session.write_batch()?;
        self.batch = None;

        self.last_key = Some(batch.key);
        Ok(batch.rows)
    }

    fn last_keys(&mut self, _: u64) -> Result<LastKeys, Error> {
        Ok(LastKeys { inserted: self.last_key, next: Some(self.shared.next_key()) })
    }

    fn final_ops(&self) -> usize {
        self.index_passes.len()
    }

    /// Creates indexes: writes an entry for each row. A retry starts over and writes the same
    /// entries.
    fn end(&mut self, number: usize) -> Result<(), Error> {
        let indexes = &self.index_passes[number];
        let session = &mut self.session;
        let mut entries = Vec::new();
        let mut from = self.layout.start().to_vec();
        session.clear_batch();

        loop {
            if self.stop.load(Relaxed) {
                let what = "the creation of an index was interrupted";
                return Err(Error::new(ErrorClass::Interrupted, what));
            }

            // The scan borrows the session, so the entries wait in a buffer.
            entries.clear();
            let start = from.clone();
            let rows = scan_up(session, &start, INDEX_ROWS, |key, value| {
                let (number, columns) = row(key, value)?;
                for index in indexes {
                    index.push_entry(&columns, number, &mut entries);
                }
                from.clear();
                from.extend_from_slice(key);
                Ok(())
            })?;

            let mut rest = entries.as_slice();
            while !rest.is_empty() {
                for index in indexes {
                    let (key, more) = rest.split_at(index.key_bytes);
                    session.batch_put(key, &[]);
                    rest = more;
                }
            }
            session.write_batch()?;

            if rows < INDEX_ROWS {
                return Ok(());
            }
            // The smallest key after the last row's.
            from.push(0);
        }
    }

    fn prepare_delete(&mut self, _: &OldestRows) {
        self.drop_batch();
    }

    /// Reads the rows first, since their index entries depend on their columns.
    fn delete(&mut self, oldest: &mut OldestRows) -> Result<u64, Error> {
        let batch = match self.batch {
            Some(batch) => batch,
            None => self.fill_delete_batch(oldest.key_min)?,
        };

        // If the write fails, a retry writes the same batch.
        self.batch = Some(batch);
        self.session.write_batch()?;
        self.batch = None;

        if let Some(delete_ranges) = &mut self.delete_ranges {
            delete_ranges.settle(batch.rows);
        }
        oldest.learn(batch.key);
        Ok(batch.rows)
    }

    fn expected_deletes(&self) -> (u64, u64) {
        match &self.delete_ranges {
            None => (self.rows_per_commit.into(), self.rows_per_commit.into()),
            // Keys of failed inserts are missing; the total of deleted rows is checked instead.
            Some(delete_ranges) => (0, delete_ranges.size),
        }
    }

    fn first_undeleted_key(&self, oldest: &OldestRows) -> i64 {
        let claim = self.delete_ranges.as_ref().and_then(|delete_ranges| delete_ranges.claim);
        claim.map_or(oldest.key_min, |claim| claim.first)
    }

    fn key_min(&mut self, known: i64) -> Result<i64, Error> {
        let found = smallest_key(&mut self.session, &self.layout)?.unwrap_or(known);
        Ok(match self.delete_ranges {
            None => found,
            // Smaller keys may belong to another deleter that has not deleted them yet.
            Some(_) => known.max(found),
        })
    }

    fn prepare_range(&mut self, query: usize, first: i32) {
        let ScannedIndex { index, above } = &self.ranges[query];
        self.range_start = index.range_start(first + above);
        self.range_key_bytes = index.key_bytes;
    }

    fn read_range(&mut self) -> Result<u64, Error> {
        let mut rows = 0;
        scan_up(&mut self.session, &self.range_start, RANGE_LIMIT.into(), |key, _| {
            rows += u64::from(key.len() == self.range_key_bytes);
            Ok(())
        })?;
        Ok(rows)
    }

    fn prepare_points(&mut self, keys: impl Iterator<Item = i64>) {
        for (point, key) in self.points.iter_mut().zip(keys) {
            *point = self.layout.row_key(key);
        }
    }

    fn read_points(&mut self) -> Result<u64, Error> {
        self.session.multi_get(self.points.iter().map(|key| &key[..]))?;

        let rows = (0..self.points.len())
            .filter(|point| self.session.found(*point).and_then(columns).is_some())
            .count();
        Ok(rows as u64)
    }

    fn key_max(&mut self) -> Result<Option<i64>, Error> {
        largest_key(&mut self.session, &self.layout)
    }
}

impl<S: KeyValueSession> KeyedConnection<S> {
    /// Drops a batch that could not be written.
    #[inline]
    fn drop_batch(&mut self) {
        if self.batch.take().is_some() {
            self.session.clear_batch();
        }
    }

    /// Reads the oldest rows and adds their deletion to the batch.
    #[inline]
    fn fill_delete_batch(&mut self, key_min: i64) -> Result<PreparedBatch, Error> {
        // A sole deleter takes the oldest rows, whatever their keys are. One of several takes the
        // rows of its range, up to `end`.
        let rows_per_commit = self.rows_per_commit.into();
        let (first, limit, end) = match &mut self.delete_ranges {
            None => (key_min, rows_per_commit, i64::MAX),
            Some(delete_ranges) => {
                let claim = delete_ranges.claim(rows_per_commit, &self.shared);
                (claim.first, claim.length, claim.first + claim.length as i64)
            }
        };

        // The scan borrows the session, so the keys wait in a buffer.
        let (layout, delete_keys) = (&self.layout, &mut self.delete_keys);
        let is_indexed = self.sizes.len() > 1;
        let mut rows = 0;
        let mut last = None;
        delete_keys.clear();
        let from = layout.row_key(first);
        scan_up(&mut self.session, &from, limit, |key, value| {
            let (number, columns) = row(key, value)?;
            if number < end {
                rows += 1;
                last = Some(number);
                delete_keys.extend_from_slice(key);
                if is_indexed {
                    layout.push_entries(&columns, number, delete_keys);
                }
            }
            Ok(())
        })?;

        for mut keys in self.delete_keys.chunks_exact(self.sizes.iter().sum()) {
            for &size in &self.sizes {
                let (key, rest) = keys.split_at(size);
                self.session.batch_delete(key);
                keys = rest;
            }
        }
        // The whole range counts as deleted, even if its last keys don't exist.
        let key = match (&self.delete_ranges, last) {
            (Some(_), _) => end,
            (None, Some(last)) => last + 1,
            (None, None) => first,
        };
        Ok(PreparedBatch { rows, key })
    }
}
