//! The function table of the library.

#![expect(
    unsafe_code,
    reason = "functions are loaded by name, so the compiler cannot check their signatures"
)]

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;

use libloading::os::unix::Library;

use crate::libraries::dynamic::open_with;

/// Pointers to opaque objects of the library.
pub(super) type Opaque = *mut c_void;
/// The place for a function's error: null, or a text that `free` must release.
pub(super) type Failure = *mut *mut c_char;

macro_rules! functions {
    (
        required { $( $name:ident: fn($($arg:ty),*) $(-> $ret:ty)?; )* }
        optional { $( $maybe:ident: fn($($marg:ty),*) $(-> $mret:ty)?; )* }
    ) => {
        /// The functions of a library, which is never unloaded.
        #[derive(Debug)]
        #[expect(non_snake_case, reason = "these are the library's names")]
        pub(in crate::libraries::rocksdb) struct Api {
            $( pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?, )*
            $( pub(super) $maybe: Option<unsafe extern "C" fn($($marg),*) $(-> $mret)?>, )*
        }

        /// The required functions, by their names in the library.
        const REQUIRED: &[&str] = &[$( concat!("rocksdb_", stringify!($name)) ),*];

        impl Api {
            fn resolve(library: &Library) -> Option<Self> {
                Some(Self {
                    // SAFETY: the name is one of RocksDB's C API and the type is what its header gives it, in every
                    // version; the library stays loaded, so the copied address stays good.
                    $( $name: unsafe {
                        *library.get(concat!("rocksdb_", stringify!($name), "\0").as_bytes()).ok()?
                    }, )*
                    // SAFETY: as above, for the versions that have it.
                    $( $maybe: unsafe {
                        library
                            .get(concat!("rocksdb_", stringify!($maybe), "\0").as_bytes())
                            .ok()
                            .map(|function| *function)
                    }, )*
                })
            }
        }
    };
}

functions! {
    required {
        free: fn(*mut c_void);
        open_column_families: fn(Opaque, *const c_char, c_int, *const *const c_char, *const Opaque, *mut Opaque, Failure) -> Opaque;
        close: fn(Opaque);
        column_family_handle_destroy: fn(Opaque);

        options_create: fn() -> Opaque;
        options_destroy: fn(Opaque);
        options_set_create_if_missing: fn(Opaque, c_uchar);
        options_set_error_if_exists: fn(Opaque, c_uchar);
        options_enable_statistics: fn(Opaque);
        options_statistics_get_string: fn(Opaque) -> *mut c_char;
        get_options_from_string: fn(Opaque, *const c_char, Opaque, Failure);
        set_options: fn(Opaque, c_int, *const *const c_char, *const *const c_char, Failure);

        block_based_options_create: fn() -> Opaque;
        block_based_options_destroy: fn(Opaque);
        block_based_options_set_block_cache: fn(Opaque, Opaque);
        options_set_block_based_table_factory: fn(Opaque, Opaque);
        cache_destroy: fn(Opaque);

        property_value: fn(Opaque, *const c_char) -> *mut c_char;
        property_int: fn(Opaque, *const c_char, *mut u64) -> c_int;

        flushoptions_create: fn() -> Opaque;
        flushoptions_destroy: fn(Opaque);
        flushoptions_set_wait: fn(Opaque, c_uchar);
        flush: fn(Opaque, Opaque, Failure);

        set_perf_level: fn(c_int);

        readoptions_create: fn() -> Opaque;
        readoptions_destroy: fn(Opaque);
        writeoptions_create: fn() -> Opaque;
        writeoptions_destroy: fn(Opaque);
        writeoptions_set_sync: fn(Opaque, c_uchar);
        writeoptions_disable_WAL: fn(Opaque, c_int);

        writebatch_create: fn() -> Opaque;
        writebatch_destroy: fn(Opaque);
        writebatch_clear: fn(Opaque);
        writebatch_count: fn(Opaque) -> c_int;
        writebatch_put: fn(Opaque, *const c_char, usize, *const c_char, usize);
        writebatch_merge: fn(Opaque, *const c_char, usize, *const c_char, usize);
        writebatch_delete: fn(Opaque, *const c_char, usize);
        writebatch_delete_range: fn(Opaque, *const c_char, usize, *const c_char, usize);
        write: fn(Opaque, Opaque, Opaque, Failure);

        envoptions_create: fn() -> Opaque;
        envoptions_destroy: fn(Opaque);
        sstfilewriter_create: fn(Opaque, Opaque) -> Opaque;
        sstfilewriter_destroy: fn(Opaque);
        sstfilewriter_open: fn(Opaque, *const c_char, Failure);
        sstfilewriter_put: fn(Opaque, *const c_char, usize, *const c_char, usize, Failure);
        sstfilewriter_finish: fn(Opaque, Failure);
        ingestexternalfileoptions_create: fn() -> Opaque;
        ingestexternalfileoptions_destroy: fn(Opaque);
        ingestexternalfileoptions_set_move_files: fn(Opaque, c_uchar);
        ingest_external_file: fn(Opaque, *const *const c_char, usize, Opaque, Failure);

        get_pinned: fn(Opaque, Opaque, *const c_char, usize, Failure) -> Opaque;
        pinnableslice_value: fn(Opaque, *mut usize) -> *const c_char;
        pinnableslice_destroy: fn(Opaque);
        multi_get: fn(Opaque, Opaque, usize, *const *const c_char, *const usize, *mut *mut c_char, *mut usize, *mut *mut c_char);

        create_iterator: fn(Opaque, Opaque) -> Opaque;
        iter_destroy: fn(Opaque);
        iter_valid: fn(Opaque) -> c_uchar;
        iter_seek: fn(Opaque, *const c_char, usize);
        iter_seek_for_prev: fn(Opaque, *const c_char, usize);
        iter_next: fn(Opaque);
        iter_prev: fn(Opaque);
        iter_key: fn(Opaque, *mut usize) -> *const c_char;
        iter_value: fn(Opaque, *mut usize) -> *const c_char;
        iter_get_error: fn(Opaque, Failure);
    }
    optional {
        cancel_all_background_work: fn(Opaque, c_uchar);
        cache_create_hyper_clock: fn(usize, usize) -> Opaque;
        transactiondb_options_create: fn() -> Opaque;
        transactiondb_options_destroy: fn(Opaque);
        transactiondb_open_column_families: fn(Opaque, Opaque, *const c_char, c_int, *const *const c_char, *const Opaque, *mut Opaque, Failure) -> Opaque;
        transactiondb_get_base_db: fn(Opaque) -> Opaque;
        transactiondb_close_base_db: fn(Opaque);
        transactiondb_close: fn(Opaque);
        optimistictransactiondb_open_column_families: fn(Opaque, *const c_char, c_int, *const *const c_char, *const Opaque, *mut Opaque, Failure) -> Opaque;
        optimistictransactiondb_get_base_db: fn(Opaque) -> Opaque;
        optimistictransactiondb_close_base_db: fn(Opaque);
        optimistictransactiondb_close: fn(Opaque);
        transaction_options_create: fn() -> Opaque;
        transaction_options_destroy: fn(Opaque);
        transaction_options_set_set_snapshot: fn(Opaque, c_uchar);
        transaction_options_set_lock_timeout: fn(Opaque, i64);
        optimistictransaction_options_create: fn() -> Opaque;
        optimistictransaction_options_destroy: fn(Opaque);
        optimistictransaction_options_set_set_snapshot: fn(Opaque, c_uchar);
        transaction_begin: fn(Opaque, Opaque, Opaque, Opaque) -> Opaque;
        optimistictransaction_begin: fn(Opaque, Opaque, Opaque, Opaque) -> Opaque;
        transaction_destroy: fn(Opaque);
        transaction_get_for_update: fn(Opaque, Opaque, *const c_char, usize, *mut usize, c_uchar, Failure) -> *mut c_char;
        transaction_put: fn(Opaque, *const c_char, usize, *const c_char, usize, Failure);
        transaction_commit: fn(Opaque, Failure);
        transaction_rollback: fn(Opaque, Failure);
        batched_multi_get_cf: fn(Opaque, Opaque, Opaque, usize, *const *const c_char, *const usize, *mut Opaque, *mut *mut c_char, c_uchar);
    }
}

impl Api {
    /// Copies an entry into a batch.
    ///
    /// # Safety
    /// The batch must be an object of this library.
    #[inline]
    pub(super) unsafe fn put(&self, batch: &Owned, key: &[u8], value: &[u8]) {
        let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: promised by the caller; key and value are borrowed for the call.
        unsafe { (self.writebatch_put)(batch.raw, key_start, key.len(), value_start, value.len()) }
    }

    /// Returns true when the library has lock-free caches.
    pub(in crate::libraries::rocksdb) fn has_clock_cache(&self) -> bool {
        self.cache_create_hyper_clock.is_some()
    }
}

/// Loads a library and its functions. It stays loaded until the process ends, because its threads
/// may remain.
///
/// # Errors
/// The message of the dynamic loader, or the missing functions.
pub(in crate::libraries::rocksdb) fn load(path: &Path) -> Result<&'static Api, String> {
    let library = open_with(path, "RocksDB", REQUIRED)?;
    let api = Api::resolve(&library).ok_or("the library changed while it was loaded")?;
    std::mem::forget(library);
    Ok(Box::leak(Box::new(api)))
}

/// An object of the library that is destroyed on drop.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) raw: Opaque,
    destroy: unsafe extern "C" fn(Opaque),
}

impl Owned {
    /// Takes ownership of an object.
    ///
    /// # Safety
    /// `raw` must be an object of the library that must be destroyed once, by `destroy`, and that
    /// no one else destroys.
    #[inline]
    pub(super) unsafe fn new(raw: Opaque, destroy: unsafe extern "C" fn(Opaque)) -> Self {
        Self { raw, destroy }
    }
}

impl Drop for Owned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: promised to `new`.
        unsafe { (self.destroy)(self.raw) }
    }
}
