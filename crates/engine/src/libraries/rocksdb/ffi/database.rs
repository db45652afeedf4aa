//! An open database and its options.

#![expect(
    unsafe_code,
    reason = "this calls the library's functions, and keeps track of what they own and borrow"
)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use words::TransactionKind;

use super::api::{Api, Opaque, Owned};
use super::transactions::{Opened, TransactionDatabase};
use crate::error::Error;
use crate::libraries::rocksdb::failure;

/// Converts the error that a function returned, and frees its text.
pub(super) fn check(api: &Api, text: *mut c_char) -> Result<(), Error> {
    match take(api, text) {
        None => Ok(()),
        Some(text) => Err(failure::error(&text)),
    }
}

/// Copies a text that the library allocated, and frees it; `None` for null.
fn take(api: &Api, text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }

    // SAFETY: not null, so it is a text with a zero at its end that is ours until it is given back,
    // once, here.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        (api.free)(text.cast::<c_void>());
        Some(copy)
    }
}

/// Returns text with a zero at its end.
pub(super) fn text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::other(format!("`{text:?}` contains a zero byte")))
}

/// A lock-free cache, which no version accepts as a text option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::libraries::rocksdb) struct ClockCache {
    /// The size of the cache.
    pub(in crate::libraries::rocksdb) capacity: usize,
    /// The estimated charge of an entry; 0 for a cache that adapts.
    pub(in crate::libraries::rocksdb) entry_charge: usize,
}

/// Options of a database and of its only column family.
#[derive(Debug)]
pub(in crate::libraries::rocksdb) struct Options {
    api: &'static Api,
    owned: Owned,
}

// SAFETY: the object behind it is plain data and shared pointers, bound to no thread.
unsafe impl Send for Options {}
// SAFETY: through `&self` it is only read, or given to functions that copy it or read its atomic
// counters.
unsafe impl Sync for Options {}

impl Options {
    /// Returns the library's default options.
    pub(in crate::libraries::rocksdb) fn new(api: &'static Api) -> Self {
        // SAFETY: no arguments; what is returned is ours.
        let owned = unsafe { Owned::new((api.options_create)(), api.options_destroy) };
        Self { api, owned }
    }

    /// Returns the object of the library.
    pub(super) fn raw(&self) -> Opaque {
        self.owned.raw
    }

    /// Returns these options with `changes`, in the library's notation.
    pub(in crate::libraries::rocksdb) fn with(&self, changes: &str) -> Result<Self, Error> {
        let changes = text(changes)?;
        let new = Self::new(self.api);

        let mut failure = null_mut();
        // SAFETY: both options live, and the text ends with a zero; all three are only borrowed.
        unsafe {
            (self.api.get_options_from_string)(
                self.owned.raw,
                changes.as_ptr(),
                new.owned.raw,
                &mut failure,
            );
        }

        check(self.api, failure)?;
        Ok(new)
    }

    /// Turns on the library's statistics, which cost some speed.
    pub(in crate::libraries::rocksdb) fn enable_statistics(&mut self) {
        // SAFETY: the options live.
        unsafe { (self.api.options_enable_statistics)(self.owned.raw) }
    }

    /// Returns the library's statistics as text, if they are on.
    pub(in crate::libraries::rocksdb) fn statistics(&self) -> Option<String> {
        // SAFETY: the options live; the text that is returned is ours.
        take(self.api, unsafe { (self.api.options_statistics_get_string)(self.owned.raw) })
    }

    /// Sets whether to create the database. If so, it must not exist yet.
    pub(in crate::libraries::rocksdb) fn set_create(&mut self, create: bool) {
        // SAFETY: the options live.
        unsafe {
            (self.api.options_set_create_if_missing)(self.owned.raw, create.into());
            (self.api.options_set_error_if_exists)(self.owned.raw, create.into());
        }
    }

    /// Sets a lock-free cache for tables. Returns false if the version has none. Call it before
    /// other options of tables are set, because it resets them.
    pub(in crate::libraries::rocksdb) fn set_clock_cache(&mut self, cache: ClockCache) -> bool {
        let Some(create) = self.api.cache_create_hyper_clock else {
            return false;
        };

        // SAFETY: each of the three objects is made here; the options copy or share what they are
        // given, so the cache and the options of tables are given back at once.
        unsafe {
            let cache = create(cache.capacity, cache.entry_charge);
            let table = (self.api.block_based_options_create)();
            (self.api.block_based_options_set_block_cache)(table, cache);
            (self.api.options_set_block_based_table_factory)(self.owned.raw, table);
            (self.api.block_based_options_destroy)(table);
            (self.api.cache_destroy)(cache);
        }

        true
    }
}

/// An open database with the column family `default`, which is closed on drop.
#[derive(Debug)]
pub(in crate::libraries::rocksdb) struct Database {
    pub(super) api: &'static Api,
    pub(super) raw: Opaque,
    pub(super) family: Opaque,
    pub(super) directory: PathBuf,
    /// The handle for transactions, if the database was opened with any.
    pub(super) transactions: Option<TransactionDatabase>,
    /// The kind that was asked for is none that protects reads: a transaction is a batch.
    pub(super) has_batches_as_transactions: bool,
    /// The options, which contain the statistics.
    options: Options,
}

// SAFETY: the library's database may be used by any number of threads, and be closed by any of them
// when the others are done with it: those that use it hold it by a shared pointer.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: both were given by the library and are given back once. Whoever uses the database
        // holds it, so there is nobody left.
        unsafe {
            // Other versions stop their background work when they close.
            if let Some(cancel) = self.api.cancel_all_background_work {
                cancel(self.raw, 1);
            }
            (self.api.column_family_handle_destroy)(self.family);
            match &self.transactions {
                Some(transactions) => transactions.close(self.raw),
                None => (self.api.close)(self.raw),
            }
        }
    }
}

impl Database {
    /// Opens or creates the database in `directory`, depending on the options. If the version lacks
    /// transactions of this kind, the database has none.
    pub(in crate::libraries::rocksdb) fn open(
        options: Options,
        directory: &Path,
        kind: Option<TransactionKind>,
    ) -> Result<Self, Error> {
        let api = options.api;
        let is_unprotected = kind == Some(TransactionKind::Unprotected);
        if let Some(kind) = kind.filter(|_| !is_unprotected)
            && let Some(opened) = TransactionDatabase::open(api, &options, directory, kind)?
        {
            let Opened { transactions, base, family } = opened;
            return Ok(Self {
                api,
                raw: base,
                family,
                directory: directory.to_owned(),
                transactions: Some(transactions),
                has_batches_as_transactions: false,
                options,
            });
        }

        let path = text(&directory.to_string_lossy())?;
        let names = [c"default".as_ptr()];
        let families = [options.owned.raw.cast_const()];
        let mut family = null_mut();
        let mut failure = null_mut();

        // SAFETY: one name, one set of options, one place for a handle, as is said; all borrowed
        // for the call.
        let raw = unsafe {
            (api.open_column_families)(
                options.owned.raw,
                path.as_ptr(),
                1,
                names.as_ptr(),
                families.as_ptr().cast(),
                &mut family,
                &mut failure,
            )
        };

        check(api, failure)?;
        Ok(Self {
            api,
            raw,
            family,
            directory: directory.to_owned(),
            transactions: None,
            has_batches_as_transactions: is_unprotected,
            options,
        })
    }

    /// Returns whether sessions have transactions, of any kind.
    pub(in crate::libraries::rocksdb) fn has_transactions(&self) -> bool {
        self.transactions.is_some() || self.has_batches_as_transactions
    }

    /// Returns whether transactions of several sessions are kept apart.
    pub(in crate::libraries::rocksdb) fn isolates_transactions(&self) -> bool {
        self.transactions.is_some()
    }

    /// Returns whether ranges can be deleted. Some versions put all writes of a database with
    /// transactions into one, which has no such write.
    pub(in crate::libraries::rocksdb) fn deletes_ranges(&self) -> bool {
        let transactions = self.transactions.as_ref();
        !transactions.is_some_and(TransactionDatabase::covers_other_work)
    }

    /// Returns the options, which live as long as the database.
    pub(super) fn options_raw(&self) -> Opaque {
        self.options.owned.raw
    }

    /// Returns a property as text; `None` if the version does not know it.
    pub(in crate::libraries::rocksdb) fn property(&self, name: &str) -> Option<String> {
        let name = text(name).ok()?;
        // SAFETY: the database is open; the text that is returned is ours.
        take(self.api, unsafe { (self.api.property_value)(self.raw, name.as_ptr()) })
    }

    /// Returns a numeric property; `None` if the version does not know it.
    pub(in crate::libraries::rocksdb) fn number(&self, name: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: the database is open; the number is written to a place of ours.
        let failed = unsafe { (self.api.property_int)(self.raw, name.as_ptr(), &mut value) };
        (failed == 0).then_some(value)
    }

    /// Returns the library's statistics as text, if they are on.
    pub(in crate::libraries::rocksdb) fn statistics(&self) -> Option<String> {
        self.options.statistics()
    }

    /// Writes the memtables to files, and waits until they are written.
    pub(in crate::libraries::rocksdb) fn flush(&self) -> Result<(), Error> {
        let mut failure = null_mut();

        // SAFETY: the options are made and destroyed here; the database is open.
        unsafe {
            let options = (self.api.flushoptions_create)();
            (self.api.flushoptions_set_wait)(options, 1);
            (self.api.flush)(self.raw, options, &mut failure);
            (self.api.flushoptions_destroy)(options);
        }

        check(self.api, failure)
    }

    /// Changes an option of the open database.
    pub(in crate::libraries::rocksdb) fn set_option(
        &self,
        name: &str,
        value: &str,
    ) -> Result<(), Error> {
        let (name, value) = (text(name)?, text(value)?);
        let mut failure = null_mut();

        // SAFETY: one name and one value, as is said, both borrowed for the call.
        unsafe {
            (self.api.set_options)(
                self.raw,
                1,
                [name.as_ptr()].as_ptr(),
                [value.as_ptr()].as_ptr(),
                &mut failure,
            );
        }

        check(self.api, failure)
    }
}

/// Returns a pointer and a length from the library as bytes. Null means empty.
///
/// # Safety
/// Unless `length` is zero, `start` must point to `length` bytes that don't change during `'a`.
pub(super) unsafe fn bytes<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 || start.is_null() {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}
