//! `assay_engine.h` in Rust. Adapters include this file with `#[path]`.
//!
//! An adapter implements [`Database`] and [`Session`] in safe code, and exports [`table`]:
//!
//! ```text
//! #[unsafe(no_mangle)]
//! pub extern "C" fn assay_engine() -> *const Table {
//!     table::<MyDatabase>()
//! }
//! ```
//!
//! A panic ends the process, which Assay reports as a failed cell.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Display;
use std::path::Path;
use std::ptr::null;
use std::str::FromStr;
use std::time::Duration;

const OK: c_int = 0;
const NOT_FOUND: c_int = 1;
const BUSY: c_int = 2;
const FULL: c_int = 3;
const BAD_OPTION: c_int = 4;
const FAILED: c_int = 5;

const ATOMIC_BATCHES: u32 = 1;
const REVERSE_SCANS: u32 = 2;

const DOWNWARD: c_int = 1;

/// The version of the adapter's crate, which has that of its engine.
pub const VERSION: &CStr = {
    let text = concat!(env!("CARGO_PKG_VERSION"), "\0");
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version contains no zero"),
    }
};

/// The events that a write survives once it has returned.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "an engine may offer only some")]
pub enum Durability {
    Nothing = 1,
    Process = 2,
    Machine = 4,
}

/// An open database. Its batches are atomic, and its scans go both ways.
pub trait Database: Send + Sync + Sized + 'static {
    type Session: Session;

    const NAME: &'static CStr;
    const VERSION: &'static CStr;
    const DURABILITIES: &'static [Durability];

    fn open(directory: &Path, creates: bool, options: Options) -> Result<Self, Failure>;
    fn close(self) -> Result<(), Failure>;
    fn open_session(&self) -> Result<Self::Session, Failure>;
    fn sync(&self) -> Result<(), Failure>;
    fn flush(&self) -> Result<(), Failure>;
    /// Returns whether no work is left.
    fn wait_until_idle(&self, at_most: Duration) -> Result<bool, Failure>;
    fn counters(&self) -> Vec<Counter>;
    fn settings(&self) -> &Settings;
}

/// The state of one thread. Dropping it closes it.
pub trait Session: Send {
    fn write(&mut self, changes: &[Change], durability: Durability) -> Result<(), Failure>;
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Failure>;
    fn seek(&mut self, key: &[u8], is_downward: bool) -> Result<Option<Entry<'_>>, Failure>;
    fn next(&mut self) -> Result<Option<Entry<'_>>, Failure>;
    fn release(&mut self);
}

pub struct Entry<'e> {
    pub key: &'e [u8],
    pub value: &'e [u8],
}

/// Why a function failed. Any error of the engine becomes one by `?`.
pub struct Failure {
    code: c_int,
    text: String,
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let text = error.to_string();
        let code = if text.contains("No space left on device") { FULL } else { FAILED };
        Self { code, text }
    }
}

/// The options of a config.
pub struct Options {
    given: Vec<(String, String)>,
    settings: Settings,
}

impl Options {
    /// Takes an option, or its default.
    pub fn take<T: FromStr + Display>(&mut self, name: &str, default: T) -> Result<T, Failure> {
        let value = match self.given.iter().position(|(given, _)| given == name) {
            Some(at) => {
                let (_, value) = self.given.swap_remove(at);
                value.parse().map_err(|_| Self::refused(name, &value))?
            }
            None => default,
        };
        self.settings.0.push((CString::new(name)?, CString::new(value.to_string())?));
        Ok(value)
    }

    /// Returns the settings in effect, unless an option was not taken.
    pub fn into_settings(self) -> Result<Settings, Failure> {
        match self.given.first() {
            Some((name, value)) => Err(Self::refused(name, value)),
            None => Ok(self.settings),
        }
    }

    fn refused(name: &str, value: &str) -> Failure {
        Failure { code: BAD_OPTION, text: format!("`{name} = {value}` is not an option") }
    }
}

/// The settings in effect: names and values.
#[derive(Default)]
pub struct Settings(Vec<(CString, CString)>);

// What follows has the types of the header.

#[repr(C)]
pub struct ErrorText([c_char; 512]);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    start: *const c_void,
    size: usize,
}

impl Bytes {
    fn of(slice: &[u8]) -> Self {
        Self { start: slice.as_ptr().cast(), size: slice.len() }
    }

    /// # Safety
    /// There must be bytes, which live as long as `'b`.
    unsafe fn get<'b>(self) -> &'b [u8] {
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.size) }
    }
}

/// An entry to write, or a key to remove.
#[repr(C)]
pub struct Change {
    key: Bytes,
    value: Bytes,
}

impl Change {
    pub fn key(&self) -> &[u8] {
        // SAFETY: only Assay makes changes, and lends their bytes as long as the change.
        unsafe { self.key.get() }
    }

    /// Returns the value; `None` if the key is to be removed.
    pub fn value(&self) -> Option<&[u8]> {
        // SAFETY: as above.
        (!self.value.start.is_null()).then(|| unsafe { self.value.get() })
    }
}

#[repr(C)]
pub struct OptionText {
    name: *const c_char,
    value: *const c_char,
}

#[repr(C)]
pub struct Counter {
    name: *const c_char,
    value: f64,
    is_cumulative: c_int,
    role: *const c_char,
}

impl Counter {
    /// Returns a counter that only grows.
    pub fn cumulative(name: &'static CStr, value: f64, role: Option<&'static CStr>) -> Self {
        let role = role.map_or(null(), CStr::as_ptr);
        Self { name: name.as_ptr(), value, is_cumulative: 1, role }
    }

    /// Returns a counter that rises and falls.
    #[allow(dead_code, reason = "not every engine has one")]
    pub fn gauge(name: &'static CStr, value: f64, role: Option<&'static CStr>) -> Self {
        Self { is_cumulative: 0, ..Self::cumulative(name, value, role) }
    }
}

type Raw = *mut c_void;
type OfDatabase = unsafe extern "C" fn(Raw, *mut ErrorText) -> c_int;

#[repr(C)]
struct Found {
    key: Bytes,
    value: Bytes,
}

#[repr(C)]
pub struct Table {
    size: usize,
    name: *const c_char,
    version: *const c_char,
    durabilities: u32,
    features: u32,
    writers_max: u32,
    open: unsafe extern "C" fn(
        *const c_char,
        c_int,
        *const OptionText,
        usize,
        *mut Raw,
        *mut ErrorText,
    ) -> c_int,
    close: OfDatabase,
    open_session: unsafe extern "C" fn(Raw, *mut Raw, *mut ErrorText) -> c_int,
    close_session: unsafe extern "C" fn(Raw),
    write: unsafe extern "C" fn(Raw, *const Change, usize, u32, *mut ErrorText) -> c_int,
    get: unsafe extern "C" fn(Raw, Bytes, *mut Bytes, *mut ErrorText) -> c_int,
    seek: unsafe extern "C" fn(Raw, Bytes, c_int, *mut Found, *mut ErrorText) -> c_int,
    next: unsafe extern "C" fn(Raw, *mut Found, *mut ErrorText) -> c_int,
    release: unsafe extern "C" fn(Raw),
    enter_thread: *const c_void,
    get_several: *const c_void,
    sync: OfDatabase,
    flush: OfDatabase,
    wait_until_idle: unsafe extern "C" fn(Raw, u32, *mut ErrorText) -> c_int,
    counters: unsafe extern "C" fn(Raw, *mut Counter, usize) -> usize,
    settings: unsafe extern "C" fn(Raw, *mut OptionText, usize) -> usize,
}

/// Returns what `assay_engine` of an adapter returns.
pub fn table<D: Database>() -> *const Table {
    const { &table_of::<D>() }
}

/// Returns the durabilities that a database offers, as the bits of one number.
const fn durabilities<D: Database>() -> u32 {
    let mut bits = 0;
    let mut at = 0;
    // Constants cannot iterate.
    while at < D::DURABILITIES.len() {
        bits |= D::DURABILITIES[at] as u32;
        at += 1;
    }
    bits
}

const fn table_of<D: Database>() -> Table {
    Table {
        size: size_of::<Table>(),
        name: D::NAME.as_ptr(),
        version: D::VERSION.as_ptr(),
        durabilities: durabilities::<D>(),
        features: ATOMIC_BATCHES | REVERSE_SCANS,
        writers_max: 0,
        open: open::<D>,
        close: close::<D>,
        open_session: open_session::<D>,
        close_session: close_session::<D>,
        write: write::<D>,
        get: get::<D>,
        seek: seek::<D>,
        next: next::<D>,
        release: release::<D>,
        enter_thread: null(),
        get_several: null(),
        sync: sync::<D>,
        flush: flush::<D>,
        wait_until_idle: wait_until_idle::<D>,
        counters: counters::<D>,
        settings: settings::<D>,
    }
}

/// Returns the code of a result, and leaves the text of a failure.
///
/// # Safety
/// There must be a place for the text.
unsafe fn ended(result: Result<c_int, Failure>, error: *mut ErrorText) -> c_int {
    let failure = match result {
        Ok(code) => return code,
        Err(failure) => failure,
    };
    // SAFETY: promised by the caller.
    let ErrorText(place) = unsafe { &mut *error };
    let size = failure.text.floor_char_boundary(place.len() - 1);
    for (to, from) in place.iter_mut().zip(failure.text[..size].bytes().chain([0])) {
        *to = from as c_char;
    }
    failure.code
}

fn found<T>(value: Option<T>, place: &mut T) -> c_int {
    match value {
        Some(value) => {
            *place = value;
            OK
        }
        None => NOT_FOUND,
    }
}

impl From<Entry<'_>> for Found {
    fn from(entry: Entry<'_>) -> Self {
        Self { key: Bytes::of(entry.key), value: Bytes::of(entry.value) }
    }
}

// SAFETY of what follows: Assay passes databases and sessions that these functions have given,
// places for what they return, and texts and bytes that live during the call. One thread at a time
// uses a session. What is closed is not used again.

unsafe extern "C" fn open<D: Database>(
    directory: *const c_char,
    create: c_int,
    options: *const OptionText,
    count: usize,
    database: *mut Raw,
    error: *mut ErrorText,
) -> c_int {
    let text = |start| unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned();
    let mut given = Vec::new();
    for at in 0..count {
        let OptionText { name, value } = unsafe { &*options.add(at) };
        given.push((text(*name), text(*value)));
    }
    let options = Options { given, settings: Settings::default() };

    let opened = D::open(Path::new(&text(directory)), create == 1, options);
    let result = opened.map(|opened| {
        unsafe { *database = Box::into_raw(Box::new(opened)).cast() };
        OK
    });
    unsafe { ended(result, error) }
}

unsafe extern "C" fn close<D: Database>(database: Raw, error: *mut ErrorText) -> c_int {
    let database = unsafe { Box::from_raw(database.cast::<D>()) };
    unsafe { ended(database.close().map(|()| OK), error) }
}

unsafe extern "C" fn open_session<D: Database>(
    database: Raw,
    session: *mut Raw,
    error: *mut ErrorText,
) -> c_int {
    let opened = unsafe { &*database.cast::<D>() }.open_session();
    let result = opened.map(|opened| {
        unsafe { *session = Box::into_raw(Box::new(opened)).cast() };
        OK
    });
    unsafe { ended(result, error) }
}

unsafe extern "C" fn close_session<D: Database>(session: Raw) {
    drop(unsafe { Box::from_raw(session.cast::<D::Session>()) });
}

unsafe extern "C" fn write<D: Database>(
    session: Raw,
    changes: *const Change,
    count: usize,
    durability: u32,
    error: *mut ErrorText,
) -> c_int {
    let session = unsafe { &mut *session.cast::<D::Session>() };
    let changes = unsafe { std::slice::from_raw_parts(changes, count) };
    let durability = match durability {
        1 => Durability::Nothing,
        2 => Durability::Process,
        _ => Durability::Machine,
    };
    unsafe { ended(session.write(changes, durability).map(|()| OK), error) }
}

unsafe extern "C" fn get<D: Database>(
    session: Raw,
    key: Bytes,
    value: *mut Bytes,
    error: *mut ErrorText,
) -> c_int {
    let (session, value) = unsafe { (&mut *session.cast::<D::Session>(), &mut *value) };
    let result = session.get(unsafe { key.get() });
    unsafe { ended(result.map(|lent| found(lent.map(Bytes::of), value)), error) }
}

unsafe extern "C" fn seek<D: Database>(
    session: Raw,
    key: Bytes,
    direction: c_int,
    entry: *mut Found,
    error: *mut ErrorText,
) -> c_int {
    let (session, entry) = unsafe { (&mut *session.cast::<D::Session>(), &mut *entry) };
    let result = session.seek(unsafe { key.get() }, direction == DOWNWARD);
    unsafe { ended(result.map(|lent| found(lent.map(Found::from), entry)), error) }
}

unsafe extern "C" fn next<D: Database>(
    session: Raw,
    entry: *mut Found,
    error: *mut ErrorText,
) -> c_int {
    let (session, entry) = unsafe { (&mut *session.cast::<D::Session>(), &mut *entry) };
    let result = session.next();
    unsafe { ended(result.map(|lent| found(lent.map(Found::from), entry)), error) }
}

unsafe extern "C" fn release<D: Database>(session: Raw) {
    unsafe { &mut *session.cast::<D::Session>() }.release();
}

unsafe extern "C" fn sync<D: Database>(database: Raw, error: *mut ErrorText) -> c_int {
    let database = unsafe { &*database.cast::<D>() };
    unsafe { ended(database.sync().map(|()| OK), error) }
}

unsafe extern "C" fn flush<D: Database>(database: Raw, error: *mut ErrorText) -> c_int {
    let database = unsafe { &*database.cast::<D>() };
    unsafe { ended(database.flush().map(|()| OK), error) }
}

unsafe extern "C" fn wait_until_idle<D: Database>(
    database: Raw,
    milliseconds: u32,
    error: *mut ErrorText,
) -> c_int {
    let at_most = Duration::from_millis(milliseconds.into());
    let waited = unsafe { &*database.cast::<D>() }.wait_until_idle(at_most);
    let result = waited.map(|is_idle| if is_idle { OK } else { BUSY });
    unsafe { ended(result, error) }
}

unsafe extern "C" fn counters<D: Database>(
    database: Raw,
    counters: *mut Counter,
    capacity: usize,
) -> usize {
    let values = unsafe { &*database.cast::<D>() }.counters();
    let count = values.len();
    for (at, value) in values.into_iter().take(capacity).enumerate() {
        unsafe { counters.add(at).write(value) };
    }
    count
}

unsafe extern "C" fn settings<D: Database>(
    database: Raw,
    settings: *mut OptionText,
    capacity: usize,
) -> usize {
    let Settings(values) = unsafe { &*database.cast::<D>() }.settings();
    for (at, (name, value)) in values.iter().take(capacity).enumerate() {
        let text = OptionText { name: name.as_ptr(), value: value.as_ptr() };
        unsafe { settings.add(at).write(text) };
    }
    values.len()
}
