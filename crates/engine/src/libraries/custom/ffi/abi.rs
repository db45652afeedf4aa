//! The types of the header, in its order. The header says what they mean.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;

/// The name of the only function that an adapter exports.
pub(super) const ENTRY: &str = "assay_engine";

/// The results of functions.
pub(super) const OK: c_int = 0;
pub(super) const NOT_FOUND: c_int = 1;
pub(super) const BUSY: c_int = 2;
pub(super) const FULL: c_int = 3;
pub(super) const BAD_OPTION: c_int = 4;
pub(super) const FAILED: c_int = 5;

/// All durabilities.
pub(super) const SURVIVES_NOTHING: u32 = 1;
pub(super) const SURVIVES_PROCESS: u32 = 2;
pub(super) const SURVIVES_MACHINE: u32 = 4;

/// The features.
pub(super) const ATOMIC_BATCHES: u32 = 1;
pub(super) const REVERSE_SCANS: u32 = 2;

/// The directions of `seek`.
pub(super) const UPWARD: c_int = 0;
pub(super) const DOWNWARD: c_int = 1;

const ERROR_BYTES: usize = 512;

/// The place for the text of an error.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ErrorText {
    text: [c_char; ERROR_BYTES],
}

impl ErrorText {
    pub(super) fn new() -> Self {
        Self { text: [0; ERROR_BYTES] }
    }

    /// Returns the text, which may lack its end.
    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> = self.text.iter().map(|char| char.cast_unsigned()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub(super) start: *const c_void,
    pub(super) size: usize,
}

impl Bytes {
    pub(super) const MISSING: Self = Self { start: null(), size: 0 };

    /// Lends a slice. Its start is never null, even if it is empty.
    #[inline]
    pub(super) fn of(slice: &[u8]) -> Self {
        Self { start: slice.as_ptr().cast(), size: slice.len() }
    }

    #[inline]
    pub(super) fn is_missing(self) -> bool {
        self.start.is_null()
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) key: Bytes,
    pub(super) value: Bytes,
}

impl Entry {
    pub(super) const MISSING: Self = Self { key: Bytes::MISSING, value: Bytes::MISSING };
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct OptionText {
    pub(super) name: *const c_char,
    pub(super) value: *const c_char,
}

impl OptionText {
    pub(super) const MISSING: Self = Self { name: null(), value: null() };
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CounterValue {
    pub(super) name: *const c_char,
    pub(super) value: f64,
    pub(super) is_cumulative: c_int,
    pub(super) role: *const c_char,
}

impl CounterValue {
    pub(super) const MISSING: Self =
        Self { name: null(), value: 0.0, is_cumulative: 0, role: null() };
}

/// The engine's own types.
pub(super) type RawDatabase = *mut c_void;
pub(super) type RawSession = *mut c_void;

type OfDatabase = unsafe extern "C" fn(RawDatabase, *mut ErrorText) -> c_int;

/// The table of functions. Those that are required may still be null in a faulty adapter.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) size: usize,
    pub(super) name: *const c_char,
    pub(super) version: *const c_char,
    pub(super) durabilities: u32,
    pub(super) features: u32,
    pub(super) writers_max: u32,
    pub(super) open: Option<
        unsafe extern "C" fn(
            *const c_char,
            c_int,
            *const OptionText,
            usize,
            *mut RawDatabase,
            *mut ErrorText,
        ) -> c_int,
    >,
    pub(super) close: Option<OfDatabase>,
    pub(super) open_session:
        Option<unsafe extern "C" fn(RawDatabase, *mut RawSession, *mut ErrorText) -> c_int>,
    pub(super) close_session: Option<unsafe extern "C" fn(RawSession)>,
    pub(super) write: Option<Write>,
    pub(super) get: Option<Get>,
    pub(super) seek: Option<Seek>,
    pub(super) next: Option<Next>,
    pub(super) release: Option<unsafe extern "C" fn(RawSession)>,
    pub(super) enter_thread: Option<unsafe extern "C" fn(RawSession)>,
    pub(super) get_several: Option<GetSeveral>,
    pub(super) sync: Option<OfDatabase>,
    pub(super) flush: Option<OfDatabase>,
    pub(super) wait_until_idle:
        Option<unsafe extern "C" fn(RawDatabase, u32, *mut ErrorText) -> c_int>,
    pub(super) counters:
        Option<unsafe extern "C" fn(RawDatabase, *mut CounterValue, usize) -> usize>,
    pub(super) settings: Option<unsafe extern "C" fn(RawDatabase, *mut OptionText, usize) -> usize>,
}

pub(super) type Write =
    unsafe extern "C" fn(RawSession, *const Entry, usize, u32, *mut ErrorText) -> c_int;
pub(super) type Get = unsafe extern "C" fn(RawSession, Bytes, *mut Bytes, *mut ErrorText) -> c_int;
pub(super) type Seek =
    unsafe extern "C" fn(RawSession, Bytes, c_int, *mut Entry, *mut ErrorText) -> c_int;
pub(super) type Next = unsafe extern "C" fn(RawSession, *mut Entry, *mut ErrorText) -> c_int;
pub(super) type GetSeveral =
    unsafe extern "C" fn(RawSession, *const Bytes, usize, *mut Bytes, *mut ErrorText) -> c_int;
