//! A load thread's session with an adapter's database.

#![expect(
    unsafe_code,
    reason = "this calls functions of a library, and lends values while they are held"
)]

use std::sync::Arc;

use words::Durability;

use super::abi::{self, Bytes, Entry, ErrorText, RawSession};
use super::database::{Api, Database, checked, failure};
use crate::contract::{Direction, KeyOrder, KeyValueSession, Scan, Scanned};
use crate::error::{Error, ErrorClass};

/// A change of the batch: the sizes of its parts in the batch's bytes.
#[derive(Clone, Copy, Debug)]
struct BatchedChange {
    key_size: usize,
    /// `None`: the key is removed.
    value_size: Option<usize>,
}

/// The reused buffers of a batch.
#[derive(Debug, Default)]
struct Batch {
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    changes: Vec<BatchedChange>,
    /// The changes as the library reads them, which are made when the batch is written.
    lent: Vec<Entry>,
}

/// One thread's session with an open database. The library's session is closed before the database.
#[derive(Debug)]
pub struct CustomSession {
    api: &'static Api,
    raw: RawSession,
    durability: u32,
    batch: Batch,
    /// The keys of a read of several, and their values.
    keys: Vec<Bytes>,
    values: Vec<Bytes>,
    order: KeyOrder,
    error: Box<ErrorText>,
    database: Arc<Database>,
}

// SAFETY: the header demands that any thread may use a session, one at a time; all other pointers
// are to what the session itself holds, and are not used between calls.
unsafe impl Send for CustomSession {}

impl Drop for CustomSession {
    fn drop(&mut self) {
        // SAFETY: the session is of this database, and nothing uses it any more.
        unsafe { self.database.close_session(self.raw) }
    }
}

impl CustomSession {
    /// Opens a session.
    ///
    /// # Errors
    /// The library's own, and a durability that it does not offer.
    pub(in crate::libraries::custom) fn open(
        database: &Arc<Database>,
        durability: Durability,
    ) -> Result<Self, Error> {
        let api = database.api;
        let durability = api.durability_at_least(durability).ok_or_else(|| {
            let wanted = durability.name();
            Error::other(format!("no write of {} survives `{wanted}`", api.version_text))
        })?;

        Ok(Self {
            api,
            raw: database.open_session()?,
            durability,
            batch: Batch::default(),
            keys: Vec::new(),
            values: Vec::new(),
            order: KeyOrder::default(),
            error: Box::new(ErrorText::new()),
            database: Arc::clone(database),
        })
    }

    #[inline]
    fn write(&mut self, change: Entry) -> Result<(), Error> {
        // SAFETY: the session is open; the change is lent for the call.
        let result = unsafe {
            (self.api.write)(self.raw, &raw const change, 1, self.durability, &raw mut *self.error)
        };
        checked("write", result, &self.error)
    }

    /// Returns whether a call of `seek` or `next` returned an entry.
    #[inline]
    fn has_entry(&self, name: &str, result: std::ffi::c_int) -> Result<bool, Error> {
        match result {
            abi::OK => Ok(true),
            abi::NOT_FOUND => Ok(false),
            other => Err(failure(name, other, &self.error)),
        }
    }
}

impl KeyValueSession for CustomSession {
    fn enter_thread(&mut self) {
        if let Some(enter) = self.api.enter_thread {
            // SAFETY: the session is open.
            unsafe { enter(self.raw) }
        }
    }

    fn set_durability(&mut self, durability: Durability) {
        // The config's durability is offered, and so is the weakest one that is wanted.
        if let Some(offered) = self.api.durability_at_least(durability) {
            self.durability = offered;
        }
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(Entry { key: Bytes::of(key), value: Bytes::of(value) })
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.write(Entry { key: Bytes::of(key), value: Bytes::MISSING })
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.bytes.extend_from_slice(key);
        self.batch.bytes.extend_from_slice(value);
        let value_size = Some(value.len());
        self.batch.changes.push(BatchedChange { key_size: key.len(), value_size });
    }

    #[inline]
    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.bytes.extend_from_slice(key);
        self.batch.changes.push(BatchedChange { key_size: key.len(), value_size: None });
    }

    fn batch_len(&self) -> u64 {
        self.batch.changes.len() as u64
    }

    #[inline]
    fn write_batch(&mut self) -> Result<(), Error> {
        if self.api.lacks.batches && self.batch.changes.len() > 1 {
            let why = format!("{} has no atomic batches", self.api.version_text);
            return Err(Error::other(why));
        }

        let Batch { bytes, changes, lent } = &mut self.batch;
        lent.clear();
        let mut rest = &bytes[..];
        for change in changes.iter() {
            let (key, after) = rest.split_at(change.key_size);
            let (value, after) = after.split_at(change.value_size.unwrap_or(0));
            let value = change.value_size.map_or(Bytes::MISSING, |_| Bytes::of(value));
            lent.push(Entry { key: Bytes::of(key), value });

            rest = after;
        }

        let (start, count) = (lent.as_ptr(), lent.len());
        // SAFETY: the session is open; there are `count` changes, whose bytes are the batch's.
        let result = unsafe {
            (self.api.write)(self.raw, start, count, self.durability, &raw mut *self.error)
        };

        checked("write", result, &self.error)?;
        self.clear_batch();
        Ok(())
    }

    fn clear_batch(&mut self) {
        self.batch.bytes.clear();
        self.batch.changes.clear();
    }

    #[inline]
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        let mut value = Bytes::MISSING;

        // SAFETY: the session is open; the key is lent for the call.
        let result = unsafe {
            (self.api.get)(self.raw, Bytes::of(key), &raw mut value, &raw mut *self.error)
        };

        match result {
            // SAFETY: the library lends the value until the next call with this session, for which
            // it has to be borrowed mutably.
            abi::OK => unsafe { lent("get", value).map(Some) },
            abi::NOT_FOUND => Ok(None),
            other => Err(failure("get", other, &self.error)),
        }
    }

    #[inline]
    fn multi_get<'k>(&mut self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<u64, Error> {
        let Some(get_several) = self.api.get_several else {
            return Err(Error::other(format!(
                "{} cannot read several keys at once",
                self.api.version_text
            )));
        };

        self.keys.clear();
        self.keys.extend(keys.into_iter().map(Bytes::of));
        self.values.clear();
        self.values.resize(self.keys.len(), Bytes::MISSING);

        let (start, count) = (self.keys.as_ptr(), self.keys.len());
        // SAFETY: the session is open; there are `count` keys, which live as long as `'k`, and as
        // many places for values.
        let result = unsafe {
            let values = self.values.as_mut_ptr();
            get_several(self.raw, start, count, values, &raw mut *self.error)
        };

        if result != abi::OK {
            self.values.clear();
            return Err(failure("get_several", result, &self.error));
        }

        Ok(self.values.iter().filter(|value| !value.is_missing()).count() as u64)
    }

    #[inline]
    fn found(&self, index: usize) -> Option<&[u8]> {
        let value = self.values.get(index).filter(|value| !value.is_missing())?;
        // SAFETY: the library lends the value until the next call with this session, for which it
        // has to be borrowed mutably.
        Some(unsafe { std::slice::from_raw_parts(value.start.cast(), value.size) })
    }

    #[inline]
    fn scan(
        &mut self,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<Scanned, Error> {
        let direction = match scan.direction {
            Direction::Forward => abi::UPWARD,
            Direction::Reverse if self.api.lacks.reverse_scans => {
                let why = format!("{} cannot scan downward", self.api.version_text);
                return Err(Error::other(why));
            }
            Direction::Reverse => abi::DOWNWARD,
        };

        let mut scanned = Scanned::default();
        self.values.clear();
        self.order.begin(scan.direction);

        while scanned.entries < scan.limit {
            let mut place = Entry::MISSING;
            let (raw, error) = (self.raw, &raw mut *self.error);
            // SAFETY: the session is open; the key is lent for the call.
            let (name, result) = unsafe {
                if scanned.entries == 0 {
                    let from = Bytes::of(scan.from);
                    ("seek", (self.api.seek)(raw, from, direction, &raw mut place, error))
                } else {
                    ("next", (self.api.next)(raw, &raw mut place, error))
                }
            };

            if !self.has_entry(name, result)? {
                break;
            }

            // SAFETY: the library lends both until the next call with the session: below, when
            // neither is used any more.
            let (key, value) = unsafe { (lent(name, place.key)?, lent(name, place.value)?) };
            if scan.verifies_order && !self.order.follows(scan.from, key) {
                return Err(self.order.violated_by(key));
            }

            scanned.entries += 1;
            scanned.bytes += (key.len() + value.len()) as u64;
            visit(key, value);
        }

        self.release();
        Ok(scanned)
    }

    fn release(&mut self) {
        self.values.clear();
        // SAFETY: the session is open, and nothing that it lent is used any more.
        unsafe { (self.api.release)(self.raw) }
    }
}

/// Returns what the library lends.
///
/// # Safety
/// The bytes must not change during `'e`.
#[inline]
unsafe fn lent<'e>(name: &str, bytes: Bytes) -> Result<&'e [u8], Error> {
    if bytes.is_missing() {
        return Err(without_bytes(name));
    }
    // SAFETY: the library says that there are that many bytes, and the caller that they stay.
    Ok(unsafe { std::slice::from_raw_parts(bytes.start.cast(), bytes.size) })
}

#[cold]
fn without_bytes(name: &str) -> Error {
    let what = format!("`{name}` returned ASSAY_OK without a key or a value");
    Error::new(ErrorClass::Protocol, what)
}
