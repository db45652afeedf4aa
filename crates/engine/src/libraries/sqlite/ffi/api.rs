//! The function table of a library.

#![expect(
    unsafe_code,
    reason = "functions are loaded by name, so the compiler cannot check their signatures"
)]

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::path::Path;

use libloading::os::unix::Library;
use libsqlite3_sys as bundled_library;
use libsqlite3_sys::{sqlite3, sqlite3_stmt};

use crate::libraries::dynamic::open_with;

/// The function that waits for a lock: its own argument, and the number of calls so far.
type BusyHandler = Option<unsafe extern "C" fn(*mut c_void, c_int) -> c_int>;
/// The function that releases a bound text.
type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

macro_rules! functions {
    (
        required { $( $name:ident: fn($($arg:ty),*) $(-> $ret:ty)?; )* }
        optional { $( $maybe:ident: fn($($marg:ty),*) $(-> $mret:ty)?; )* }
    ) => {
        /// The functions of a library, which is never unloaded.
        #[derive(Debug)]
        pub(in crate::libraries::sqlite) struct Api {
            $( pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?, )*
            $( pub(super) $maybe: Option<unsafe extern "C" fn($($marg),*) $(-> $mret)?>, )*
        }

        /// The names of the required functions.
        pub(in crate::libraries::sqlite) const REQUIRED: &[&str] = &[$( stringify!($name) ),*];

        /// The functions of the library that is part of this program. The compiler checks that the
        /// table has their signatures.
        static BUNDLED: Api = Api {
            $( $name: bundled_library::$name, )*
            $( $maybe: Some(bundled_library::$maybe), )*
        };

        impl Api {
            fn resolve(library: &Library) -> Option<Self> {
                Some(Self {
                    // SAFETY: a function of this name has the signature of the bundled library's in every version of
                    // SQLite 3; the library stays loaded, so the copied address stays good.
                    $( $name: unsafe {
                        *library.get(concat!(stringify!($name), "\0").as_bytes()).ok()?
                    }, )*
                    // SAFETY: as above, for the libraries that have it.
                    $( $maybe: unsafe {
                        library
                            .get(concat!(stringify!($maybe), "\0").as_bytes())
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
        sqlite3_libversion: fn() -> *const c_char;
        sqlite3_libversion_number: fn() -> c_int;
        sqlite3_threadsafe: fn() -> c_int;

        sqlite3_open_v2: fn(*const c_char, *mut *mut sqlite3, c_int, *const c_char) -> c_int;
        sqlite3_close: fn(*mut sqlite3) -> c_int;
        sqlite3_extended_result_codes: fn(*mut sqlite3, c_int) -> c_int;
        sqlite3_errmsg: fn(*mut sqlite3) -> *const c_char;
        sqlite3_busy_handler: fn(*mut sqlite3, BusyHandler, *mut c_void) -> c_int;
        sqlite3_interrupt: fn(*mut sqlite3);
        sqlite3_changes: fn(*mut sqlite3) -> c_int;
        sqlite3_last_insert_rowid: fn(*mut sqlite3) -> i64;

        sqlite3_prepare_v2: fn(*mut sqlite3, *const c_char, c_int, *mut *mut sqlite3_stmt, *mut *const c_char) -> c_int;
        sqlite3_step: fn(*mut sqlite3_stmt) -> c_int;
        sqlite3_reset: fn(*mut sqlite3_stmt) -> c_int;
        sqlite3_finalize: fn(*mut sqlite3_stmt) -> c_int;

        sqlite3_bind_parameter_count: fn(*mut sqlite3_stmt) -> c_int;
        sqlite3_bind_int64: fn(*mut sqlite3_stmt, c_int, i64) -> c_int;
        sqlite3_bind_text: fn(*mut sqlite3_stmt, c_int, *const c_char, c_int, Destructor) -> c_int;
        sqlite3_clear_bindings: fn(*mut sqlite3_stmt) -> c_int;

        sqlite3_column_count: fn(*mut sqlite3_stmt) -> c_int;
        sqlite3_column_type: fn(*mut sqlite3_stmt, c_int) -> c_int;
        sqlite3_column_int64: fn(*mut sqlite3_stmt, c_int) -> i64;
        sqlite3_column_double: fn(*mut sqlite3_stmt, c_int) -> f64;
        sqlite3_column_text: fn(*mut sqlite3_stmt, c_int) -> *const c_uchar;
        sqlite3_column_blob: fn(*mut sqlite3_stmt, c_int) -> *const c_void;
        sqlite3_column_bytes: fn(*mut sqlite3_stmt, c_int) -> c_int;
    }
    optional {
        sqlite3_compileoption_get: fn(c_int) -> *const c_char;
        sqlite3_prepare_v3: fn(*mut sqlite3, *const c_char, c_int, c_uint, *mut *mut sqlite3_stmt, *mut *const c_char) -> c_int;
    }
}

impl Api {
    /// Returns the version: `3.40.1`.
    pub(in crate::libraries::sqlite) fn version(&self) -> &'static str {
        // SAFETY: the function takes nothing, and returns a constant of the library, which is never
        // unloaded.
        let version = unsafe { CStr::from_ptr((self.sqlite3_libversion)()) };
        version.to_str().unwrap_or("unknown")
    }

    /// Returns the version as a number: 3040001 for 3.40.1.
    pub(in crate::libraries::sqlite) fn version_number(&self) -> i32 {
        // SAFETY: the function takes nothing, and returns a constant.
        unsafe { (self.sqlite3_libversion_number)() }
    }

    /// Returns true if several threads may use the library, each with its own connections.
    pub(in crate::libraries::sqlite) fn is_thread_safe(&self) -> bool {
        // SAFETY: the function takes nothing, and returns how the library was compiled.
        unsafe { (self.sqlite3_threadsafe)() != 0 }
    }

    /// Returns the options that the library was compiled with, such as `THREADSAFE=1`; none if the
    /// library does not tell.
    pub(in crate::libraries::sqlite) fn compile_options(&self) -> Vec<String> {
        let Some(option) = self.sqlite3_compileoption_get else {
            return Vec::new();
        };

        let mut options = Vec::new();
        for number in 0.. {
            // SAFETY: any number may be asked for.
            let text = unsafe { option(number) };
            if text.is_null() {
                break;
            }

            // SAFETY: the text is a constant of the library, which is never unloaded.
            let text = unsafe { CStr::from_ptr(text) };
            options.push(text.to_string_lossy().into_owned());
        }

        options
    }
}

/// Returns the functions of the library that is part of this program.
pub(in crate::libraries::sqlite) fn bundled() -> &'static Api {
    &BUNDLED
}

/// Loads a library and its functions. It stays loaded until the process ends, because connections
/// refer to its functions.
///
/// # Errors
/// The message of the dynamic loader, or the missing functions.
pub(in crate::libraries::sqlite) fn load(path: &Path) -> Result<&'static Api, String> {
    let library = open_with(path, "SQLite", REQUIRED)?;
    let api = Api::resolve(&library).ok_or("the library changed while it was loaded")?;
    std::mem::forget(library);
    Ok(Box::leak(Box::new(api)))
}
