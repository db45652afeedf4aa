//! A connection of the Insert Benchmark to a key-value engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use engine::{Direction, Error, ErrorClass, Interrupt, KeyValueSession, Scan, View};

use super::encoding::{
    EncodedCommit, IndexLayout, Layout, RANGE_START_BYTES, ROW_KEY_BYTES, columns, id, primary_key,
    row,
};
use crate::insert::choices::OldestRows;
use crate::insert::programs::Connection;
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
    let (mut entries, mut visited) = (0, Ok(()));
    let scan =
        Scan { from, direction: Direction::Forward, limit, view: View::Now, verifies_order: true };
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
    let mut found = None;
    let from = layout.row_key(i64::MAX);
    let scan = Scan {
        from: &from,
        direction: Direction::Reverse,
        limit: 1,
        view: View::Now,
        verifies_order: true,
    };
    session.scan(scan, |key, _| {
        if key.starts_with(layout.start()) {
            found = primary_key(key);
        }
    })?;
    Ok(found)
}

/// Divides the rows of one table between several deleters: each claims a range of keys at a time,
/// from the smallest on.
#[derive(Debug, Default)]
pub(super) struct DeleteRanges {
    /// The claimed range that is not deleted yet: its first key and length.
    claim: Option<(i64, u64)>,
    /// Rows that were missing because inserts had failed: the next claim is larger by as many.
    owed: u64,
    /// Keys of the last claim.
    size: u64,
}

impl DeleteRanges {
    #[inline]
    fn claim(&mut self, rows: u64, shared: &SharedKeys) -> (i64, u64) {
        let size = rows + self.owed;
        let new = || (shared.claim_keys(size), size);
        let claim = *self.claim.get_or_insert_with(new);
        self.size = claim.1;
        claim
    }

    #[inline]
    fn settle(&mut self, rows: u64) {
        self.owed = self.size - rows.min(self.size);
        self.claim = None;
    }
}

/// A session and its buffers; those that its part of the step does not need are empty.
pub(in crate::insert) struct KeyedConnection<S> {
    pub(super) session: S,
    pub(super) layout: Layout,
    /// Sizes of a row's key and of its index entries' keys.
    pub(super) sizes: Vec<usize>,
    pub(super) rows_per_commit: u32,
    pub(super) shared: Arc<SharedKeys>,
    /// Inserts: the next commit, without its primary keys.
    pub(super) encoded: EncodedCommit,
    /// The batch that is prepared but not written: its number of rows, and the last key that it
    /// inserts, or the key below which it deletes all.
    pub(super) batch: Option<(u64, i64)>,
    /// The last key that was written.
    pub(super) last_key: Option<i64>,
    /// Deletes: present if others delete from the same table.
    pub(super) delete_ranges: Option<DeleteRanges>,
    /// The keys to delete, grouped by row.
    pub(super) delete_keys: Vec<u8>,
    /// The index of each range query, and what is added to its parameter: 0 for `>=`, 1 for `>`.
    pub(super) ranges: [(IndexLayout, i32); 3],
    /// The start of the range query, and the size of the entries that it reads.
    pub(super) range: ([u8; RANGE_START_BYTES], usize),
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
        let (rows, last) = self.batch.unwrap_or_else(|| {
            // As a server does: keys follow the order of commits, not of prepared batches.
            let first = self.shared.take_keys(self.rows_per_commit);
            self.encoded.put(first, &mut self.session);
            let rows = self.rows_per_commit.into();
            (rows, first + i64::from(self.rows_per_commit) - 1)
        });
        self.batch = Some((rows, last));
        self.session.write_batch()?;
        self.batch = None;
        self.last_key = Some(last);
        Ok(rows)
    }

    fn last_keys(&mut self, _: u64) -> Result<(Option<i64>, Option<i64>), Error> {
        Ok((self.last_key, Some(self.shared.next_key())))
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
            // The key after it.
            from.push(0);
        }
    }

    fn prepare_delete(&mut self, _: &OldestRows) {
        self.drop_batch();
    }

    /// Reads the rows first, since their index entries depend on their columns.
    fn delete(&mut self, oldest: &mut OldestRows) -> Result<u64, Error> {
        let (rows, key_min) = match self.batch {
            Some(batch) => batch,
            None => self.fill_delete_batch(oldest.key_min)?,
        };
        self.batch = Some((rows, key_min));
        self.session.write_batch()?;
        self.batch = None;
        if let Some(delete_ranges) = &mut self.delete_ranges {
            delete_ranges.settle(rows);
        }
        oldest.learn(key_min);
        Ok(rows)
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
        claim.map_or(oldest.key_min, |(first, _)| first)
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
        let (index, above) = &self.ranges[query];
        self.range = (index.range_start(first + above), index.key_bytes);
    }

    fn read_range(&mut self) -> Result<u64, Error> {
        let (from, key_bytes) = &self.range;
        let mut rows = 0;
        scan_up(&mut self.session, from, RANGE_LIMIT.into(), |key, _| {
            rows += u64::from(key.len() == *key_bytes);
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
        let keys = self.points.iter().map(|key| &key[..]);
        self.session.multi_get(keys)?;
        let found = |index: &usize| self.session.found(*index).and_then(columns).is_some();
        let rows = (0..self.points.len()).filter(found).count() as u64;
        Ok(rows)
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
    fn fill_delete_batch(&mut self, key_min: i64) -> Result<(u64, i64), Error> {
        let limit = self.rows_per_commit.into();
        let (first, limit, end) = match &mut self.delete_ranges {
            None => (key_min, limit, i64::MAX),
            Some(delete_ranges) => {
                let (first, size) = delete_ranges.claim(limit, &self.shared);
                (first, size, first + size as i64)
            }
        };
        let (layout, delete_keys) = (&self.layout, &mut self.delete_keys);
        let is_indexed = self.sizes.len() > 1;
        let (mut rows, mut last) = (0, None);
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
        let key_min = match (&self.delete_ranges, last) {
            (None, None) => first,
            (None, Some(last)) => last + 1,
            (Some(_), _) => end,
        };
        Ok((rows, key_min))
    }
}
