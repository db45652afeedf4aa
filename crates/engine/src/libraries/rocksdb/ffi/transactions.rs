//! Databases that are opened with transactions, and the transactions of a session.

#![expect(
    unsafe_code,
    reason = "this calls the library's functions, and lends the value of a read"
)]

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::null_mut;

use words::TransactionKind;

use super::api::{Api, Failure, Opaque, Owned};
use super::database::{Options, bytes, check, text};
use crate::contract::TransactionOptions;
use crate::error::Error;

type Create = unsafe extern "C" fn() -> Opaque;
type Destroy = unsafe extern "C" fn(Opaque);
type Put = unsafe extern "C" fn(Opaque, *const c_char, usize, *const c_char, usize, Failure);
type GetForUpdate = unsafe extern "C" fn(
    Opaque,
    Opaque,
    *const c_char,
    usize,
    *mut usize,
    c_uchar,
    Failure,
) -> *mut c_char;

/// The functions that open a database.
#[derive(Clone, Copy, Debug)]
enum Opening {
    Pessimistic {
        create_options: Create,
        destroy_options: Destroy,
        open: unsafe extern "C" fn(
            Opaque,
            Opaque,
            *const c_char,
            c_int,
            *const *const c_char,
            *const Opaque,
            *mut Opaque,
            Failure,
        ) -> Opaque,
    },
    Optimistic(
        unsafe extern "C" fn(
            Opaque,
            *const c_char,
            c_int,
            *const *const c_char,
            *const Opaque,
            *mut Opaque,
            Failure,
        ) -> Opaque,
    ),
}

/// The functions that return the database without transactions, and give that handle back.
#[derive(Clone, Copy, Debug)]
struct Base {
    get: unsafe extern "C" fn(Opaque) -> Opaque,
    close: Destroy,
}

/// The functions for one kind of transactions.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransactionFunctions {
    opening: Opening,
    /// `None` of pessimistic databases before version 8.
    base: Option<Base>,
    close: Destroy,
    create_options: Create,
    destroy_options: Destroy,
    set_snapshot: unsafe extern "C" fn(Opaque, c_uchar),
    /// `None` of optimistic transactions, which wait for nobody.
    set_lock_timeout: Option<unsafe extern "C" fn(Opaque, i64)>,
    begin: unsafe extern "C" fn(Opaque, Opaque, Opaque, Opaque) -> Opaque,
    of_both: FunctionsOfBoth,
}

/// The functions for transactions of both kinds.
#[derive(Clone, Copy, Debug)]
struct FunctionsOfBoth {
    destroy: Destroy,
    get_for_update: GetForUpdate,
    put: Put,
    commit: unsafe extern "C" fn(Opaque, Failure),
    roll_back: unsafe extern "C" fn(Opaque, Failure),
}

impl TransactionFunctions {
    /// Returns the functions for a kind; `None` if it has none, or if the version lacks some.
    fn of(api: &Api, kind: TransactionKind) -> Option<Self> {
        let of_both = FunctionsOfBoth {
            destroy: api.transaction_destroy?,
            get_for_update: api.transaction_get_for_update?,
            put: api.transaction_put?,
            commit: api.transaction_commit?,
            roll_back: api.transaction_rollback?,
        };
        match kind {
            TransactionKind::Unprotected => None,
            TransactionKind::Pessimistic => Self::pessimistic(api, of_both),
            TransactionKind::Optimistic => Self::optimistic(api, of_both),
        }
    }

    fn pessimistic(api: &Api, of_both: FunctionsOfBoth) -> Option<Self> {
        let base = api.transactiondb_get_base_db.zip(api.transactiondb_close_base_db);
        Some(Self {
            opening: Opening::Pessimistic {
                create_options: api.transactiondb_options_create?,
                destroy_options: api.transactiondb_options_destroy?,
                open: api.transactiondb_open_column_families?,
            },
            base: base.map(|(get, close)| Base { get, close }),
            close: api.transactiondb_close?,
            create_options: api.transaction_options_create?,
            destroy_options: api.transaction_options_destroy?,
            set_snapshot: api.transaction_options_set_set_snapshot?,
            set_lock_timeout: Some(api.transaction_options_set_lock_timeout?),
            begin: api.transaction_begin?,
            of_both,
        })
    }

    fn optimistic(api: &Api, of_both: FunctionsOfBoth) -> Option<Self> {
        Some(Self {
            opening: Opening::Optimistic(api.optimistictransactiondb_open_column_families?),
            base: Some(Base {
                get: api.optimistictransactiondb_get_base_db?,
                close: api.optimistictransactiondb_close_base_db?,
            }),
            close: api.optimistictransactiondb_close?,
            create_options: api.optimistictransaction_options_create?,
            destroy_options: api.optimistictransaction_options_destroy?,
            set_snapshot: api.optimistictransaction_options_set_set_snapshot?,
            set_lock_timeout: None,
            begin: api.optimistictransaction_begin?,
            of_both,
        })
    }
}

/// A handle of a database with transactions.
#[derive(Debug)]
pub(super) struct TransactionDatabase {
    raw: Opaque,
    functions: TransactionFunctions,
}

/// The handles of a database that was opened with transactions.
pub(super) struct Opened {
    pub(super) transactions: TransactionDatabase,
    /// The handle for all other work.
    pub(super) base: Opaque,
    pub(super) family: Opaque,
}

impl TransactionDatabase {
    /// Opens or creates a database with one column family. Returns `None` if the version has no such
    /// transactions.
    pub(super) fn open(
        api: &Api,
        options: &Options,
        directory: &Path,
        kind: TransactionKind,
    ) -> Result<Option<Opened>, Error> {
        let Some(functions) = TransactionFunctions::of(api, kind) else {
            return Ok(None);
        };
        let path = text(&directory.to_string_lossy())?;
        let names = [c"default".as_ptr()];
        let families = [options.raw().cast_const()];
        let (mut family, mut failure) = (null_mut(), null_mut());

        // SAFETY: one name, one set of options, one place for a handle, as is said; all are borrowed
        // for the call. The options of the transactions are made and given back here.
        let raw = unsafe {
            let (own, path) = (options.raw(), path.as_ptr());
            let (names, families) = (names.as_ptr(), families.as_ptr().cast());
            match functions.opening {
                Opening::Pessimistic { create_options, destroy_options, open } => {
                    let more = Owned::new(create_options(), destroy_options);
                    open(own, more.raw, path, 1, names, families, &mut family, &mut failure)
                }
                Opening::Optimistic(open) => {
                    open(own, path, 1, names, families, &mut family, &mut failure)
                }
            }
        };
        check(api, failure)?;

        let base = match functions.base {
            // SAFETY: the database was opened above.
            Some(base) => unsafe { (base.get)(raw) },
            // Both kinds of handles are a structure with one pointer to a `DB`, from which alone
            // `TransactionDB` derives, in all versions that lack the function.
            None => raw,
        };
        let transactions = Self { raw, functions };
        Ok(Some(Opened { transactions, base, family }))
    }

    /// Returns whether all other work passes through the transactions too, which cannot delete ranges.
    pub(super) fn covers_other_work(&self) -> bool {
        self.functions.base.is_none()
    }

    /// Closes the database.
    ///
    /// # Safety
    /// `base` is the handle that came with this one. Nobody uses either any more.
    pub(super) unsafe fn close(&self, base: Opaque) {
        // SAFETY: promised by the caller.
        unsafe {
            if let Some(functions) = self.functions.base {
                (functions.close)(base);
            }
            (self.functions.close)(self.raw);
        }
    }
}

/// The transactions of one session, one after the other.
#[derive(Debug)]
pub(super) struct SessionTransactions {
    api: &'static Api,
    database: Opaque,
    functions: TransactionFunctions,
    options: Owned,
    /// The current transaction, or the last one, whose memory the next one takes.
    current: Option<Owned>,
    /// The last value read, a copy that is ours; null for none.
    value: *mut c_char,
}

impl Drop for SessionTransactions {
    fn drop(&mut self) {
        self.release();
    }
}

impl SessionTransactions {
    /// Returns the transactions of a session with an open database. They must be dropped before it.
    pub(super) fn new(api: &'static Api, database: &TransactionDatabase) -> Self {
        let functions = database.functions;
        // SAFETY: no arguments; what is returned is ours, and destroyed by the function of its kind.
        let options =
            unsafe { Owned::new((functions.create_options)(), functions.destroy_options) };
        Self { api, database: database.raw, functions, options, current: None, value: null_mut() }
    }

    pub(super) fn set_options(&self, options: TransactionOptions) {
        // SAFETY: the options are ours and live.
        unsafe {
            (self.functions.set_snapshot)(self.options.raw, options.takes_snapshot.into());
            if let Some(set_lock_timeout) = self.functions.set_lock_timeout {
                set_lock_timeout(self.options.raw, options.lock_timeout_ms.into());
            }
        }
    }

    /// Begins a transaction with these options of writes.
    #[inline]
    pub(super) fn begin(&mut self, write: &Owned) {
        let last = self.current.as_ref().map_or(null_mut(), |last| last.raw);
        // SAFETY: the database is open and both options live. The last transaction is ours, and is
        // returned, or null, and a new one is returned.
        let raw =
            unsafe { (self.functions.begin)(self.database, write.raw, self.options.raw, last) };
        if last.is_null() {
            // SAFETY: a new transaction, which is ours.
            self.current = Some(unsafe { Owned::new(raw, self.functions.of_both.destroy) });
        }
    }

    /// Returns the handle of the transaction.
    #[inline]
    fn transaction(&self) -> Result<Opaque, Error> {
        let current = self.current.as_ref();
        current.map(|current| current.raw).ok_or_else(|| Error::other("no transaction has begun"))
    }

    /// Reads a key with these options of reads. All versions have this function, which copies the
    /// value.
    #[inline]
    pub(super) fn get_for_update(
        &mut self,
        read: &Owned,
        key: &[u8],
    ) -> Result<Option<&[u8]>, Error> {
        const EXCLUSIVE: c_uchar = 1;
        self.release();
        let transaction = self.transaction()?;

        let (mut size, mut failure) = (0, null_mut());
        // SAFETY: the transaction and the options live; the key is borrowed for the call; what is
        // returned is ours.
        self.value = unsafe {
            let start = key.as_ptr().cast();
            let get = self.functions.of_both.get_for_update;
            get(transaction, read.raw, start, key.len(), &mut size, EXCLUSIVE, &mut failure)
        };
        check(self.api, failure)?;

        if self.value.is_null() {
            return Ok(None);
        }
        // SAFETY: a copy of that size, ours until it is released, for which this has to be borrowed
        // mutably.
        Ok(Some(unsafe { bytes(self.value, size) }))
    }

    #[inline]
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let transaction = self.transaction()?;
        let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
        let mut failure = null_mut();
        // SAFETY: the transaction lives, and copies key and value.
        unsafe {
            (self.functions.of_both.put)(
                transaction,
                key_start,
                key.len(),
                value_start,
                value.len(),
                &mut failure,
            );
        }
        check(self.api, failure)
    }

    #[inline]
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        let transaction = self.transaction()?;
        let mut failure = null_mut();
        // SAFETY: the transaction lives.
        unsafe { (self.functions.of_both.commit)(transaction, &mut failure) };
        check(self.api, failure)
    }

    pub(super) fn roll_back(&mut self) -> Result<(), Error> {
        let transaction = self.transaction()?;
        let mut failure = null_mut();
        // SAFETY: the transaction lives.
        unsafe { (self.functions.of_both.roll_back)(transaction, &mut failure) };
        check(self.api, failure)
    }

    /// Frees the last value read.
    #[inline]
    pub(super) fn release(&mut self) {
        let value = std::mem::replace(&mut self.value, null_mut());
        if !value.is_null() {
            // SAFETY: given by the library, given back once: it is forgotten here.
            unsafe { (self.api.free)(value.cast::<c_void>()) };
        }
    }
}
