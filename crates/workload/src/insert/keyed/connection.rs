//! What each kind of connection of the Insert Benchmark does on an engine of keys and values.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use engine::{Direction, Error, ErrorClass, Interrupt, KeyValueSession, Outcome, Scan, View};

use super::encoding::{
    Encoded, IndexLayout, KeySizes, Layout, RANGE_START_BYTES, ROW_KEY_BYTES, columns, id, no_row,
    primary_key,
};
use crate::insert::Account;
use crate::insert::choices::{Oldest, PointChoices, RangeChoices};
use crate::insert::connection::kinds;
use crate::insert::pace::Turns;
use crate::insert::rows::Feed;
use crate::insert::schema::{POINT_KEYS, RANGE_LIMIT};
use crate::{Kind, Next, Program};

/// Rows that are read, and whose entries are written in one batch, when an index is created.
const INDEX_ROWS: u64 = 1000;

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
}

macro_rules! each {
    ($connection:expr, $inner:ident => $body:expr) => {
        match $connection {
            Connection::Inserter($inner) => $body,
            Connection::Deleter($inner) => $body,
            Connection::RangeReader($inner) => $body,
            Connection::PointReader($inner) => $body,
            Connection::Indexer($inner) => $body,
        }
    };
}

impl<S: KeyValueSession> Program for Connection<S> {
    fn kinds(&self) -> &'static [Kind] {
        match self {
            Self::Inserter(_) => &[kinds::INSERT],
            Self::Deleter(_) => &[kinds::DELETE, kinds::GET_MIN],
            Self::RangeReader(_) => &[kinds::QUERY],
            Self::PointReader(_) => &[kinds::QUERY, kinds::GET_MAX],
            Self::Indexer(_) => &[kinds::CREATE_INDEX, kinds::INSERT],
        }
    }

    fn begin(&mut self) {
        match self {
            Self::Inserter(Inserter { session, .. })
            | Self::Deleter(Deleter { session, .. })
            | Self::RangeReader(RangeReader { session, .. })
            | Self::PointReader(PointReader { session, .. }) => session.enter_thread(),
            Self::Indexer(indexer) => indexer.inserter.session.enter_thread(),
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
        let Self::Indexer(indexer) = self else {
            return Ok(None);
        };
        let stop = Arc::clone(&indexer.stop);
        Ok(Some(Box::new(move || stop.store(true, Relaxed))))
    }

    fn account(&mut self, _: u64) -> Result<Box<dyn Any>, Error> {
        let account = match self {
            Self::Inserter(inserter) | Self::Indexer(Indexer { inserter, .. }) => {
                Account::Inserted {
                    last_key: inserter.last_key,
                    end_row: inserter.feed.end_row(),
                    next_key: Some(inserter.keys.next()),
                }
            }
            Self::Deleter(deleter) => Account::Deleted {
                key_min: deleter.oldest.key_min,
                is_of_old: false,
                left: deleter.claims.as_ref().and_then(Claims::left),
            },
            Self::RangeReader(_) | Self::PointReader(_) => return Ok(Box::new(())),
        };
        Ok(Box::new(account))
    }
}

/// Scans upwards, and visits what belongs to the same table or index as `from`, the start of a key; returns how many
/// these were. It looks at up to `limit` entries.
#[inline]
pub(super) fn scan_up<S: KeyValueSession>(
    session: &mut S,
    from: &[u8],
    limit: u64,
    mut visit: impl FnMut(&[u8], &[u8]),
) -> Result<u64, Error> {
    let mut entries = 0;
    let scan = Scan {
        from,
        direction: Direction::Forward,
        limit,
        view: View::Now,
        verifies_order: true,
    };
    session.scan(scan, |key, value| {
        if key.starts_with(id(from)) {
            entries += 1;
            visit(key, value);
        }
    })?;
    Ok(entries)
}

/// The smallest primary key of a table, by a scan from its beginning: over all that was deleted there, too.
#[inline]
pub(super) fn smallest_key<S: KeyValueSession>(
    session: &mut S,
    layout: &Layout,
) -> Result<Option<i64>, Error> {
    let mut found = None;
    scan_up(session, layout.start(), 1, |key, _| {
        found = primary_key(key)
    })?;
    Ok(found)
}

/// The largest primary key of a table, by a scan from its end.
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

/// A number that several connections count up, each once a commit: a cache line of its own.
#[repr(align(128))]
#[derive(Debug)]
pub(super) struct Counter(AtomicI64);

impl Counter {
    pub(super) fn new(first: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(first)))
    }

    /// The first of so many.
    #[inline]
    fn take(&self, count: u64) -> i64 {
        self.0.fetch_add(count as i64, Relaxed)
    }
}

/// Where the keys of new rows come from.
pub(super) enum Keys {
    /// Nobody else inserts into the table.
    Own(i64),
    /// The connections that insert into the table share them.
    Shared(Arc<Counter>),
}

impl Keys {
    #[inline]
    fn take(&mut self, count: u32) -> i64 {
        match self {
            Self::Own(next) => {
                let first = *next;
                *next += i64::from(count);
                first
            }
            Self::Shared(counter) => counter.take(count.into()),
        }
    }

    /// The key after the last one that was taken.
    fn next(&self) -> i64 {
        match self {
            Self::Own(next) => *next,
            Self::Shared(counter) => counter.0.load(Relaxed),
        }
    }
}

/// Inserts rows of one table, a commit at a time: each row and its entries.
pub struct Inserter<S> {
    pub(super) session: S,
    pub(super) layout: Layout,
    pub(super) feed: Feed,
    pub(super) turns: Turns,
    pub(super) keys: Keys,
    pub(super) encoded: Encoded,
    /// The last key of the batch that is made and not written yet.
    pub(super) batch: Option<i64>,
    /// The last key that was written.
    pub(super) last_key: Option<i64>,
}

impl<S: KeyValueSession> Inserter<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        match self.turns.look() {
            Next::Ready(_) => {}
            not_now => return not_now,
        }
        if self.batch.take().is_some() {
            // It could not be written.
            self.session.clear_batch();
        }
        self.encoded.clear();
        for row in self.feed.next_commit() {
            let (columns, data) = self.feed.source.row(row);
            self.encoded.push(&self.layout, &columns, data);
        }
        self.turns.begin();
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        let rows = self.feed.rows_per_commit();
        let last = match self.batch {
            Some(last) => last,
            None => {
                // As a server does: keys are in the order of the commits, not of what waits for its time.
                let first = self.keys.take(rows);
                self.encoded.put(first, &mut self.session);
                first + i64::from(rows) - 1
            }
        };
        self.batch = Some(last);
        self.session.write_batch()?;
        self.last_key = self.batch.take();
        Ok(Outcome {
            rows: rows.into(),
            value: None,
        })
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        let rows = self.feed.rows_per_commit().into();
        (rows, rows)
    }
}

/// Which rows each of several deleters of one table deletes: so many keys at a time are one's, from the smallest on.
pub(super) struct Claims {
    next: Arc<Counter>,
    /// The first key of those that are this deleter's and not deleted yet, and how many.
    claim: Option<(i64, u64)>,
    /// Rows that were missing where inserts had failed: the next claim is larger.
    owed: u64,
    /// Keys of the last claim.
    size: u64,
}

impl Claims {
    pub(super) fn new(next: &Arc<Counter>) -> Self {
        Self {
            next: Arc::clone(next),
            claim: None,
            owed: 0,
            size: 0,
        }
    }

    #[inline]
    fn claim(&mut self, rows: u64) -> (i64, u64) {
        let (next, owed) = (&self.next, self.owed);
        let claim = *self
            .claim
            .get_or_insert_with(|| (next.take(rows + owed), rows + owed));
        self.size = claim.1;
        claim
    }

    #[inline]
    fn settle(&mut self, rows: u64) {
        self.owed = self.size - rows.min(self.size);
        self.claim = None;
    }

    /// The first key that a delete which failed has left.
    fn left(&self) -> Option<i64> {
        self.claim.map(|(first, _)| first)
    }
}

/// Deletes the oldest rows of one table, as many a commit as its client's inserter inserts: reads them, since their
/// entries hang on what is in them.
pub struct Deleter<S> {
    pub(super) session: S,
    pub(super) layout: Layout,
    pub(super) rows_per_commit: u32,
    pub(super) turns: Turns,
    pub(super) oldest: Oldest,
    /// Where others delete from the same table.
    pub(super) claims: Option<Claims>,
    /// The keys to delete, each row's together.
    pub(super) doomed: Vec<u8>,
    pub(super) sizes: KeySizes,
    /// The batch that is made and not written yet: its rows, and a key below which none is then.
    pub(super) batch: Option<(u64, i64)>,
}

impl<S: KeyValueSession> Deleter<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        match self.turns.look() {
            Next::Ready(_) => {}
            not_now => return not_now,
        }
        if self.batch.take().is_some() {
            // It could not be written.
            self.session.clear_batch();
        }
        self.oldest.begin();
        if self.oldest.is_asking {
            return Next::Ready(1);
        }
        self.turns.begin();
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        if self.oldest.is_asking {
            let value = smallest_key(&mut self.session, &self.layout)?;
            // Of keys that are shared out those below may be another's, which has not deleted them yet.
            let known = self.oldest.key_min;
            self.oldest.learn(match self.claims {
                None => value.unwrap_or(known),
                Some(_) => known.max(value.unwrap_or(known)),
            });
            return Ok(Outcome { rows: 0, value });
        }
        let (rows, key_min) = match self.batch {
            Some(batch) => batch,
            None => self.gather()?,
        };
        self.batch = Some((rows, key_min));
        self.session.write_batch()?;
        self.batch = None;
        if let Some(claims) = &mut self.claims {
            claims.settle(rows);
        }
        self.oldest.learn(key_min);
        Ok(Outcome { rows, value: None })
    }

    /// Reads the oldest rows and puts what deletes them into the batch.
    #[inline]
    fn gather(&mut self) -> Result<(u64, i64), Error> {
        let limit = self.rows_per_commit.into();
        let (first, limit, end) = match &mut self.claims {
            None => (self.oldest.key_min, limit, i64::MAX),
            Some(claims) => {
                let (first, size) = claims.claim(limit);
                (first, size, first + size as i64)
            }
        };
        let (layout, doomed) = (&self.layout, &mut self.doomed);
        let is_indexed = self.sizes.all().len() > 1;
        let (mut rows, mut last, mut damaged) = (0, None, None);
        doomed.clear();
        scan_up(
            &mut self.session,
            &layout.row_key(first),
            limit,
            |key, value| match (primary_key(key), columns(value)) {
                (Some(number), _) if number >= end => {}
                (Some(number), Some(columns)) if key.len() == ROW_KEY_BYTES => {
                    rows += 1;
                    last = Some(number);
                    doomed.extend_from_slice(key);
                    if is_indexed {
                        layout.push_entries(&columns, number, doomed);
                    }
                }
                _ => {
                    damaged.get_or_insert_with(|| no_row(key));
                }
            },
        )?;
        if let Some(damaged) = damaged {
            return Err(damaged);
        }
        for mut keys in self.doomed.chunks_exact(self.sizes.total()) {
            for &size in self.sizes.all() {
                let (key, rest) = keys.split_at(size);
                self.session.batch_delete(key);
                keys = rest;
            }
        }
        let key_min = match (&self.claims, last) {
            (None, None) => first,
            (None, Some(last)) => last + 1,
            (Some(_), _) => end,
        };
        Ok((rows, key_min))
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        match &self.claims {
            _ if self.oldest.is_asking => (0, 0),
            None => (self.rows_per_commit.into(), self.rows_per_commit.into()),
            // Where inserts failed keys are missing; what was deleted is counted as a whole.
            Some(claims) => (0, claims.size),
        }
    }
}

/// Scans one of three indexes from a random key.
pub struct RangeReader<S> {
    pub(super) session: S,
    /// Each query's index, and what is added to its parameter: nothing for `>=`, one for `>`.
    pub(super) queries: [(IndexLayout, i32); 3],
    pub(super) choices: RangeChoices,
    pub(super) from: [u8; RANGE_START_BYTES],
    /// Bytes of the entries that the query reads.
    pub(super) key_bytes: usize,
}

impl<S: KeyValueSession> RangeReader<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        let (query, first) = self.choices.next_query();
        let (index, above) = &self.queries[query];
        self.from = index.range_start(first + above);
        self.key_bytes = index.key_bytes;
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        let (mut rows, key_bytes) = (0, self.key_bytes);
        scan_up(
            &mut self.session,
            &self.from,
            RANGE_LIMIT.into(),
            |key, _| rows += u64::from(key.len() == key_bytes),
        )?;
        Ok(Outcome { rows, value: None })
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        self.choices.expected_rows()
    }
}

/// Looks up ten random keys between the smallest and the largest.
pub struct PointReader<S> {
    pub(super) session: S,
    pub(super) layout: Layout,
    pub(super) choices: PointChoices,
    /// The keys of a query.
    pub(super) keys: [[u8; ROW_KEY_BYTES]; POINT_KEYS as usize],
}

impl<S: KeyValueSession> PointReader<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        self.choices.begin();
        if self.choices.is_asking {
            return Next::Ready(1);
        }
        for (key, number) in self.keys.iter_mut().zip(self.choices.keys()) {
            *key = self.layout.row_key(number);
        }
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        if self.choices.is_asking {
            let value = largest_key(&mut self.session, &self.layout)?;
            self.choices.learn(value);
            return Ok(Outcome { rows: 0, value });
        }
        self.session
            .multi_get(self.keys.iter().map(|key| &key[..]))?;
        let found = |index: &usize| self.session.found(*index).and_then(columns).is_some();
        let rows = (0..self.keys.len()).filter(found).count() as u64;
        Ok(Outcome { rows, value: None })
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        self.choices.expected_rows()
    }
}

/// Inserts a few rows and creates the indexes: reads the table, and writes the entries in batches.
pub struct Indexer<S> {
    pub(super) inserter: Inserter<S>,
    /// The indexes that are created at once, in turn; an operation each.
    pub(super) passes: Vec<Vec<IndexLayout>>,
    pub(super) next: usize,
    pub(super) is_creating: bool,
    /// Set from outside.
    pub(super) stop: Arc<AtomicBool>,
    pub(super) entries: Vec<u8>,
}

impl<S: KeyValueSession> Indexer<S> {
    fn prepare(&mut self) -> Next {
        match self.inserter.prepare() {
            Next::Done => {}
            Next::Later => return Next::Later,
            Next::Ready(_) => return Next::Ready(1),
        }
        if self.next == self.passes.len() {
            return Next::Done;
        }
        self.is_creating = true;
        self.next += 1;
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Outcome, Error> {
        if self.is_creating {
            self.create()?;
            return Ok(Outcome::default());
        }
        self.inserter.execute()
    }

    /// Writes an entry for each row. What is there already is the same: tried again it begins anew.
    fn create(&mut self) -> Result<(), Error> {
        let indexes = &self.passes[self.next - 1];
        let (session, entries) = (&mut self.inserter.session, &mut self.entries);
        let mut from = self.inserter.layout.start().to_vec();
        session.clear_batch();
        loop {
            if self.stop.load(Relaxed) {
                let what = "the creation of an index was ended";
                return Err(Error::new(ErrorClass::Interrupted, what));
            }
            let mut damaged = None;
            entries.clear();
            let start = from.clone();
            let rows = scan_up(session, &start, INDEX_ROWS, |key, value| {
                match (primary_key(key), columns(value)) {
                    (Some(number), Some(columns)) if key.len() == ROW_KEY_BYTES => {
                        for index in indexes {
                            index.push_entry(&columns, number, entries);
                        }
                    }
                    _ => {
                        damaged.get_or_insert_with(|| no_row(key));
                    }
                }
                from.clear();
                from.extend_from_slice(key);
            })?;
            if let Some(damaged) = damaged {
                return Err(damaged);
            }
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

    fn expected_rows(&self) -> (u64, u64) {
        if self.is_creating {
            (0, 0)
        } else {
            self.inserter.expected_rows()
        }
    }
}
