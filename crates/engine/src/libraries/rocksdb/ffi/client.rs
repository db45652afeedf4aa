//! A load thread's session with an open database.

#![expect(
    unsafe_code,
    reason = "this calls the library's functions, and lends pinned values while they are held"
)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use words::Durability;

use super::api::{Api, Opaque, Owned};
use super::database::{Database, bytes, check};
use super::sorted_files::SortedFiles;
use super::transactions::SessionTransactions;
use crate::contract::{Direction, KeyOrder, KeyValueSession, Scan, Scanned, TransactionOptions};
use crate::error::Error;

/// The value of `rocksdb_disable`, which turns per-thread counters off.
const PERF_LEVEL_DISABLE: c_int = 1;

/// The reused buffers of reads of several keys.
#[derive(Debug, Default)]
struct MultiGet {
    keys: Vec<*const c_char>,
    key_sizes: Vec<usize>,
    failures: Vec<*mut c_char>,
    /// Values that the library pinned; null for a missing key.
    pinned: Vec<Opaque>,
    /// Values that the library copied, if it cannot pin several; null for a missing key.
    copied: Vec<*mut c_char>,
    copied_sizes: Vec<usize>,
}

/// One thread's session with an open database: options, a batch, and the last values read. The library's objects are dropped before the database.
#[derive(Debug)]
pub struct RocksSession {
    api: &'static Api,
    raw: Opaque,
    read: Owned,
    write: Owned,
    batch: Owned,
    /// A batch for writes of one entry, for each of which the library would create one.
    single: Owned,
    /// The last value read.
    pinned: Option<Owned>,
    multi_get: MultiGet,
    /// The files that the session writes; `None` if it wrote none since the last ingestion.
    files: Option<SortedFiles>,
    order: KeyOrder,
    /// `None` if a transaction is a batch, or the database has none.
    transactions: Option<SessionTransactions>,
    database: Arc<Database>,
}

// SAFETY: all pointers are to objects that are this session's alone, but for the database, which
// any thread may use.
unsafe impl Send for RocksSession {}

impl Drop for RocksSession {
    fn drop(&mut self) {
        self.release_many();
    }
}

impl RocksSession {
    pub(in crate::libraries::rocksdb) fn new(
        database: Arc<Database>,
        durability: Durability,
    ) -> Self {
        let api = database.api;

        // SAFETY: no arguments; what is returned is ours, and destroyed by the function of its
        // kind.
        let mut session = unsafe {
            let batch = || Owned::new((api.writebatch_create)(), api.writebatch_destroy);
            Self {
                api,
                raw: database.raw,
                read: Owned::new((api.readoptions_create)(), api.readoptions_destroy),
                write: Owned::new((api.writeoptions_create)(), api.writeoptions_destroy),
                batch: batch(),
                single: batch(),
                pinned: None,
                multi_get: MultiGet::default(),
                files: None,
                order: KeyOrder::default(),
                transactions: database
                    .transactions
                    .as_ref()
                    .map(|transactions| SessionTransactions::new(api, transactions)),
                database,
            }
        };

        session.set_durability(durability);
        session
    }

    #[inline]
    fn walk(
        &mut self,
        iterator: Opaque,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<Scanned, Error> {
        let api = self.api;
        let (seek, step) = match scan.direction {
            Direction::Forward => (api.iter_seek, api.iter_next),
            Direction::Reverse => (api.iter_seek_for_prev, api.iter_prev),
        };

        // SAFETY: the iterator lives; where the scan begins is borrowed for the call.
        unsafe { seek(iterator, scan.from.as_ptr().cast(), scan.from.len()) };
        let mut scanned = Scanned::default();

        self.order.begin(scan.direction);
        while scanned.entries < scan.limit {
            // SAFETY: the iterator lives.
            if unsafe { (api.iter_valid)(iterator) } == 0 {
                let mut failure = null_mut();
                // SAFETY: the iterator lives.
                unsafe { (api.iter_get_error)(iterator, &mut failure) };
                check(api, failure)?;
                break;
            }

            // SAFETY: the iterator is valid, so that it has a key and a value, which stay until it
            // is moved: below, when neither is used any more.
            let (key, value) = unsafe {
                let (mut key_size, mut value_size) = (0, 0);
                let key = (api.iter_key)(iterator, &mut key_size);
                let value = (api.iter_value)(iterator, &mut value_size);
                (bytes(key, key_size), bytes(value, value_size))
            };

            if scan.verifies_order && !self.order.follows(scan.from, key) {
                return Err(self.order.violated_by(key));
            }

            scanned.entries += 1;
            scanned.bytes += (key.len() + value.len()) as u64;
            visit(key, value);

            if scanned.entries < scan.limit {
                // SAFETY: the iterator is valid.
                unsafe { step(iterator) };
            }
        }
        Ok(scanned)
    }

    #[inline]
    fn release_many(&mut self) {
        for value in self.multi_get.pinned.drain(..).filter(|value| !value.is_null()) {
            // SAFETY: given by the library, given back once: it leaves the list here.
            unsafe { (self.api.pinnableslice_destroy)(value) };
        }
        for value in self.multi_get.copied.drain(..).filter(|value| !value.is_null()) {
            // SAFETY: as above.
            unsafe { (self.api.free)(value.cast::<c_void>()) };
        }
    }
}

impl KeyValueSession for RocksSession {
    /// Turns off the library's per-thread counters, like `db_bench`. They are not read, and took 15
    /// % of a reader's time.
    fn enter_thread(&mut self) {
        // SAFETY: sets a variable of the thread.
        unsafe { (self.api.set_perf_level)(PERF_LEVEL_DISABLE) }
    }

    fn set_durability(&mut self, durability: Durability) {
        let (is_unlogged, is_synced) = match durability {
            Durability::None => (1, 0),
            Durability::Process => (0, 0),
            Durability::Machine => (0, 1),
        };

        // SAFETY: the options are this session's and live.
        unsafe {
            // The library refuses both only at a write, so the order does not matter.
            (self.api.writeoptions_disable_WAL)(self.write.raw, is_unlogged);
            (self.api.writeoptions_set_sync)(self.write.raw, is_synced);
        }
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut failure = null_mut();
        // SAFETY: the database is held open; the batch is this session's and copies key and value.
        unsafe {
            (self.api.writebatch_clear)(self.single.raw);
            self.api.put(&self.single, key, value);
            (self.api.write)(self.raw, self.write.raw, self.single.raw, &mut failure);
        }
        check(self.api, failure)
    }

    #[inline]
    fn merge(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
        let batch = self.single.raw;
        let mut failure = null_mut();
        // SAFETY: the database is held open; the batch is this session's and copies key and value.
        unsafe {
            (self.api.writebatch_clear)(batch);
            (self.api.writebatch_merge)(batch, key_start, key.len(), value_start, value.len());
            (self.api.write)(self.raw, self.write.raw, batch, &mut failure);
        }
        check(self.api, failure)
    }

    /// Deletes a key. The library does not check that it exists.
    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        let batch = self.single.raw;
        let mut failure = null_mut();
        // SAFETY: the database is held open; the batch is this session's and copies the key.
        unsafe {
            (self.api.writebatch_clear)(batch);
            (self.api.writebatch_delete)(batch, key.as_ptr().cast(), key.len());
            (self.api.write)(self.raw, self.write.raw, batch, &mut failure);
        }
        check(self.api, failure)
    }

    #[inline]
    fn delete_range(&mut self, from: &[u8], end: &[u8]) -> Result<(), Error> {
        let (from_start, end_start) = (from.as_ptr().cast(), end.as_ptr().cast());
        let batch = self.single.raw;
        let mut failure = null_mut();
        // SAFETY: the database is held open; the batch is this session's and copies both keys.
        unsafe {
            (self.api.writebatch_clear)(batch);
            (self.api.writebatch_delete_range)(batch, from_start, from.len(), end_start, end.len());
            (self.api.write)(self.raw, self.write.raw, batch, &mut failure);
        }
        check(self.api, failure)
    }

    #[inline]
    fn write_file(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let files = self.files.get_or_insert_with(|| SortedFiles::new(&self.database));
        files.write(&self.database, key, value)
    }

    fn ingest(&mut self) -> Result<(), Error> {
        match self.files.take() {
            Some(mut files) => files.ingest(&self.database),
            None => Ok(()),
        }
    }

    fn set_transactions(&mut self, options: TransactionOptions) {
        if let Some(transactions) = &self.transactions {
            transactions.set_options(options);
        }
    }

    #[inline]
    fn begin_transaction(&mut self) -> Result<(), Error> {
        match &mut self.transactions {
            Some(transactions) => transactions.begin(&self.write),
            None if self.database.has_batches_as_transactions => self.clear_batch(),
            None => return Err(Error::other("the database has no transactions")),
        }
        Ok(())
    }

    #[inline]
    fn get_for_update(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        match &mut self.transactions {
            Some(transactions) => transactions.get_for_update(&self.read, key),
            None => get_pinned(&self.database, &self.read, &mut self.pinned, key),
        }
    }

    #[inline]
    fn put_in_transaction(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        match &mut self.transactions {
            Some(transactions) => transactions.put(key, value),
            None => {
                self.batch_put(key, value);
                Ok(())
            }
        }
    }

    #[inline]
    fn commit(&mut self) -> Result<(), Error> {
        match &mut self.transactions {
            Some(transactions) => transactions.commit(),
            None => self.write_batch(),
        }
    }

    fn roll_back(&mut self) -> Result<(), Error> {
        match &mut self.transactions {
            Some(transactions) => transactions.roll_back(),
            None => {
                self.clear_batch();
                Ok(())
            }
        }
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        // SAFETY: the batch is this session's; it copies key and value.
        unsafe { self.api.put(&self.batch, key, value) }
    }

    #[inline]
    fn batch_delete(&mut self, key: &[u8]) {
        // SAFETY: the batch is this session's; it copies the key.
        unsafe { (self.api.writebatch_delete)(self.batch.raw, key.as_ptr().cast(), key.len()) }
    }

    fn batch_len(&self) -> u64 {
        // SAFETY: the batch is this session's.
        let count = unsafe { (self.api.writebatch_count)(self.batch.raw) };
        count.try_into().unwrap_or(0)
    }

    fn clear_batch(&mut self) {
        // SAFETY: the batch is this session's.
        unsafe { (self.api.writebatch_clear)(self.batch.raw) }
    }

    #[inline]
    fn write_batch(&mut self) -> Result<(), Error> {
        let mut failure = null_mut();
        // SAFETY: the database is held open; the batch is this session's and not emptied by the
        // call.
        unsafe { (self.api.write)(self.raw, self.write.raw, self.batch.raw, &mut failure) };
        check(self.api, failure)?;
        self.clear_batch();
        Ok(())
    }

    #[inline]
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        get_pinned(&self.database, &self.read, &mut self.pinned, key)
    }

    #[inline]
    fn multi_get<'k>(&mut self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<u64, Error> {
        self.release_many();
        let batch = &mut self.multi_get;
        batch.keys.clear();
        batch.key_sizes.clear();
        for key in keys {
            batch.keys.push(key.as_ptr().cast());
            batch.key_sizes.push(key.len());
        }

        let count = batch.keys.len();
        batch.failures.resize(count, null_mut());
        if let Some(batched) = self.api.batched_multi_get_cf {
            batch.pinned.resize(count, null_mut());
            // SAFETY: each array has `count` places; the keys live as long as `'k`, which ends
            // after the call at the earliest; what is left in the places is ours.
            unsafe {
                batched(
                    self.raw,
                    self.read.raw,
                    self.database.family,
                    count,
                    batch.keys.as_ptr(),
                    batch.key_sizes.as_ptr(),
                    batch.pinned.as_mut_ptr(),
                    batch.failures.as_mut_ptr(),
                    0,
                );
            }
        } else {
            batch.copied.resize(count, null_mut());
            batch.copied_sizes.resize(count, 0);
            // SAFETY: as above.
            unsafe {
                (self.api.multi_get)(
                    self.raw,
                    self.read.raw,
                    count,
                    batch.keys.as_ptr(),
                    batch.key_sizes.as_ptr(),
                    batch.copied.as_mut_ptr(),
                    batch.copied_sizes.as_mut_ptr(),
                    batch.failures.as_mut_ptr(),
                );
            }
        }

        let mut first = Ok(());
        for failure in batch.failures.drain(..) {
            // Frees all errors, and returns the first.
            first = first.and(check(self.api, failure));
        }
        first?;

        let there = batch.pinned.iter().filter(|value| !value.is_null()).count()
            + batch.copied.iter().filter(|value| !value.is_null()).count();
        Ok(there as u64)
    }

    #[inline]
    fn found(&self, index: usize) -> Option<&[u8]> {
        let batch = &self.multi_get;

        if let Some(&value) = batch.pinned.get(index).filter(|value| !value.is_null()) {
            // SAFETY: pinned until it is released, for which this session has to be borrowed
            // mutably.
            return Some(unsafe { pinned_bytes(self.api, value) });
        }

        let &value = batch.copied.get(index).filter(|value| !value.is_null())?;
        // SAFETY: a copy of that size, ours until it is released, for which this session has to be
        // borrowed mutably.
        Some(unsafe { bytes(value, batch.copied_sizes[index]) })
    }

    #[inline]
    fn scan(&mut self, scan: Scan<'_>, visit: impl FnMut(&[u8], &[u8])) -> Result<Scanned, Error> {
        // SAFETY: the database is held open; the iterator is ours. It is destroyed before the
        // database is let go, and when `visit` panics.
        let iterator = unsafe {
            let raw = (self.api.create_iterator)(self.raw, self.read.raw);
            Owned::new(raw, self.api.iter_destroy)
        };
        self.walk(iterator.raw, scan, visit)
    }

    fn release(&mut self) {
        self.pinned = None;
        self.release_many();
        if let Some(transactions) = &mut self.transactions {
            transactions.release();
        }
    }
}

/// Reads a key, and keeps its value in `pinned`.
#[inline]
fn get_pinned<'p>(
    database: &Database,
    read: &Owned,
    pinned: &'p mut Option<Owned>,
    key: &[u8],
) -> Result<Option<&'p [u8]>, Error> {
    *pinned = None;
    let api = database.api;
    let mut failure = null_mut();

    // SAFETY: the database is held open; the key is borrowed for the call; what is returned is ours.
    let value = unsafe {
        let start = key.as_ptr().cast();
        (api.get_pinned)(database.raw, read.raw, start, key.len(), &mut failure)
    };
    check(api, failure)?;

    if value.is_null() {
        return Ok(None);
    }

    // SAFETY: the value is pinned until it is released, for which `pinned` has to be borrowed
    // mutably: not while what is returned lives.
    unsafe {
        *pinned = Some(Owned::new(value, api.pinnableslice_destroy));
        Ok(Some(pinned_bytes(api, value)))
    }
}

/// Returns the bytes of a pinned value.
///
/// # Safety
/// `value` must be a pinned value that is not released during `'a`.
#[inline]
unsafe fn pinned_bytes<'a>(api: &Api, value: Opaque) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: promised by the caller.
    unsafe {
        let start = (api.pinnableslice_value)(value, &mut length);
        bytes(start, length)
    }
}
