//! A connection to a database file, with its prepared statements.

#![expect(
    unsafe_code,
    reason = "this calls the library's functions, and lends texts to them for one execution"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

use libsqlite3_sys::{
    SQLITE_BLOB, SQLITE_DONE, SQLITE_FLOAT, SQLITE_INTEGER, SQLITE_MISUSE, SQLITE_NULL, SQLITE_OK,
    SQLITE_OPEN_CREATE, SQLITE_OPEN_NOMUTEX, SQLITE_OPEN_READWRITE, SQLITE_PREPARE_PERSISTENT,
    SQLITE_ROW, SQLITE_TOOBIG, sqlite3, sqlite3_stmt,
};

use super::api::Api;
use super::lock_waits::wait_for_lock;
use crate::contract::{KeptRow, Outcome, Rows};

/// The part of a statement that an error shows: a load inserts many rows with one.
const SHOWN_CHARS_MAX: usize = 200;

/// A failure that the library reports.
#[derive(Debug)]
pub(in crate::libraries::sqlite) struct Failure {
    /// The extended result code.
    pub(in crate::libraries::sqlite) code: c_int,
    /// The library's message.
    pub(in crate::libraries::sqlite) message: String,
}

/// A value for a parameter; a text is a range of the bytes that are passed with it.
#[derive(Clone, Copy, Debug)]
pub(in crate::libraries::sqlite) enum Param {
    Integer(i64),
    Text { start: u32, end: u32 },
}

/// The time for which a statement stays prepared.
#[derive(Clone, Copy, Debug)]
enum Lifetime {
    /// For many executions. The library, if it has a choice, leaves its fast memory to others.
    Kept,
    /// For one execution.
    Once,
}

/// A database's address for interrupts from other threads; null once the connection is closed.
struct Interruptible(*mut sqlite3);

// SAFETY: the library lets any thread interrupt an open connection, and the lock around this keeps
// the connection open meanwhile.
unsafe impl Send for Interruptible {}

/// A connection, and the statements that it keeps prepared.
pub(in crate::libraries::sqlite) struct Connection {
    api: &'static Api,
    database: *mut sqlite3,
    prepared: Vec<*mut sqlite3_stmt>,
    interruptible: Arc<Mutex<Interruptible>>,
}

// SAFETY: the library is thread-safe, which `Library` checks, so a connection and its statements
// may be used by one thread after another. Nothing of them is shared but for interrupts.
unsafe impl Send for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        for &statement in &self.prepared {
            // SAFETY: the statement is this connection's, and is not used again.
            unsafe { (self.api.sqlite3_finalize)(statement) };
        }
        let mut interruptible = self.interruptible.lock().unwrap_or_else(PoisonError::into_inner);
        interruptible.0 = null_mut();
        // SAFETY: the database is open, has no statements, and nobody interrupts it any more.
        unsafe { (self.api.sqlite3_close)(self.database) };
    }
}

/// The busy handler of all connections.
unsafe extern "C" fn on_busy(_: *mut c_void, naps: c_int) -> c_int {
    c_int::from(wait_for_lock(naps))
}

impl Connection {
    /// Opens a database file, which is created if it is missing. The connection waits for locks.
    pub(in crate::libraries::sqlite) fn open(
        api: &'static Api,
        file: &Path,
    ) -> Result<Self, Failure> {
        let path = CString::new(file.as_os_str().as_bytes()).map_err(|_| Failure {
            code: SQLITE_MISUSE,
            message: format!("the path `{}` has a zero byte", file.display()),
        })?;

        // A connection is used by one thread at a time, so the library needs no lock for it.
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
        let mut database = null_mut();

        // SAFETY: the path ends with a zero byte, and lives during the call.
        let code =
            unsafe { (api.sqlite3_open_v2)(path.as_ptr(), &raw mut database, flags, null()) };
        if database.is_null() {
            let message = "the library does not have enough memory to open a database".into();
            return Err(Failure { code, message });
        }

        // From here on, the connection closes itself.
        let connection = Self {
            api,
            database,
            prepared: Vec::new(),
            interruptible: Arc::new(Mutex::new(Interruptible(database))),
        };
        if code != SQLITE_OK {
            let Failure { code, message } = connection.failure(code);
            return Err(Failure { code, message: format!("{message}: {}", file.display()) });
        }

        // SAFETY: the database is open, and the handler uses no argument.
        unsafe {
            (api.sqlite3_extended_result_codes)(database, 1);
            (api.sqlite3_busy_handler)(database, Some(on_busy), null_mut());
        }

        Ok(connection)
    }

    /// Lets statements fail at once that have to wait for a lock.
    pub(in crate::libraries::sqlite) fn stop_waiting_for_locks(&mut self) {
        // SAFETY: the database is open.
        unsafe { (self.api.sqlite3_busy_handler)(self.database, None, null_mut()) };
    }

    /// Prepares a statement and keeps it. Returns its number.
    pub(in crate::libraries::sqlite) fn prepare(&mut self, sql: &str) -> Result<usize, Failure> {
        let statement = self.compile(sql, Lifetime::Kept)?;
        self.prepared.push(statement);
        Ok(self.prepared.len() - 1)
    }

    /// Returns the number of parameters of a kept statement.
    pub(in crate::libraries::sqlite) fn parameter_count(&self, number: usize) -> usize {
        // SAFETY: kept statements live as long as the connection.
        let count = unsafe { (self.api.sqlite3_bind_parameter_count)(self.prepared[number]) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Executes a kept statement with these parameters, of which texts are in `texts`. Parameters
    /// without a value are NULL. The first row of the result is put into `kept`.
    #[inline]
    pub(in crate::libraries::sqlite) fn execute(
        &mut self,
        number: usize,
        params: &[Param],
        texts: &str,
        kept: Option<&mut KeptRow>,
    ) -> Result<Outcome, Failure> {
        let statement = self.prepared[number];
        let bound = self.bind(statement, params, texts);
        let result = bound.and_then(|()| self.outcome(statement, kept));
        // SAFETY: the statement lives. It lets go of the texts, which end with the caller's buffer.
        unsafe {
            (self.api.sqlite3_reset)(statement);
            (self.api.sqlite3_clear_bindings)(statement);
        }
        result
    }

    /// Executes a statement that has no parameters, and is not kept.
    pub(in crate::libraries::sqlite) fn execute_text(
        &mut self,
        sql: &str,
    ) -> Result<Outcome, Failure> {
        let statement = self.compile(sql, Lifetime::Once)?;
        let result = self.outcome(statement, None);
        // SAFETY: the statement lives, and is not used again.
        unsafe { (self.api.sqlite3_finalize)(statement) };
        result
    }

    /// Executes a statement that has no parameters, and returns its rows as text.
    pub(in crate::libraries::sqlite) fn query(&mut self, sql: &str) -> Result<Rows, Failure> {
        let statement = self.compile(sql, Lifetime::Once)?;
        let result = self.rows(statement);
        // SAFETY: the statement lives, and is not used again.
        unsafe { (self.api.sqlite3_finalize)(statement) };
        result
    }

    /// Returns the number of columns that a statement would return.
    pub(in crate::libraries::sqlite) fn column_count(
        &mut self,
        sql: &str,
    ) -> Result<usize, Failure> {
        let statement = self.compile(sql, Lifetime::Once)?;
        // SAFETY: the statement lives, and is not used after this.
        let count = unsafe {
            let count = (self.api.sqlite3_column_count)(statement);
            (self.api.sqlite3_finalize)(statement);
            count
        };
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Returns the key of the last row that the connection inserted; 0 if it inserted none.
    pub(in crate::libraries::sqlite) fn last_insert_rowid(&self) -> i64 {
        // SAFETY: the database is open.
        unsafe { (self.api.sqlite3_last_insert_rowid)(self.database) }
    }

    /// Returns a function with which another thread interrupts the running statement.
    pub(in crate::libraries::sqlite) fn interrupt(&self) -> impl Fn() + Send + use<> {
        let (api, interruptible) = (self.api, Arc::clone(&self.interruptible));
        move || {
            let interruptible = interruptible.lock().unwrap_or_else(PoisonError::into_inner);
            if !interruptible.0.is_null() {
                // SAFETY: the database is open, and is not closed while the lock is held.
                unsafe { (api.sqlite3_interrupt)(interruptible.0) };
            }
        }
    }

    /// Compiles a text, which must be a single statement. Whoever gets it must finalize it.
    fn compile(&self, sql: &str, lifetime: Lifetime) -> Result<*mut sqlite3_stmt, Failure> {
        let (statement, rest) = self.compile_first(sql, lifetime)?;
        if statement.is_null() {
            let message = format!("the text has no statement: `{sql}`");
            return Err(Failure { code: SQLITE_MISUSE, message });
        }

        // The rest may be a comment, which makes no statement.
        let second = if rest.trim().is_empty() {
            Ok(null_mut())
        } else {
            self.compile_first(rest, Lifetime::Once).map(|(second, _)| second)
        };

        match second {
            Ok(second) if second.is_null() => Ok(statement),
            second => {
                // SAFETY: both live or are null, which the function accepts, and are not used
                // again.
                unsafe {
                    (self.api.sqlite3_finalize)(statement);
                    (self.api.sqlite3_finalize)(second.unwrap_or(null_mut()));
                }
                let message = format!("the text has several statements: `{sql}`");
                Err(Failure { code: SQLITE_MISUSE, message })
            }
        }
    }

    /// Compiles the first statement of a text; null if it has none. Also returns the rest of the
    /// text.
    fn compile_first<'a>(
        &self,
        sql: &'a str,
        lifetime: Lifetime,
    ) -> Result<(*mut sqlite3_stmt, &'a str), Failure> {
        let length = c_int::try_from(sql.len()).map_err(|_| Failure {
            code: SQLITE_TOOBIG,
            message: "the statement is longer than 2 GiB".into(),
        })?;

        let start = sql.as_ptr().cast::<c_char>();
        let (mut statement, mut rest) = (null_mut(), null());
        let (statement_place, rest_place) = (&raw mut statement, &raw mut rest);
        let code = match (lifetime, self.api.sqlite3_prepare_v3) {
            // SAFETY: the text has this length, and is borrowed for the call.
            (Lifetime::Kept, Some(prepare)) => unsafe {
                let flags = SQLITE_PREPARE_PERSISTENT;
                prepare(self.database, start, length, flags, statement_place, rest_place)
            },
            // SAFETY: as above.
            _ => unsafe {
                let prepare = self.api.sqlite3_prepare_v2;
                prepare(self.database, start, length, statement_place, rest_place)
            },
        };

        if code != SQLITE_OK {
            let Failure { code, message } = self.failure(code);
            let beginning: String = sql.chars().take(SHOWN_CHARS_MAX).collect();
            return Err(Failure { code, message: format!("{message} in `{beginning}`") });
        }

        let used = (rest as usize).saturating_sub(start as usize);
        Ok((statement, sql.get(used..).unwrap_or_default()))
    }

    #[inline]
    fn bind(
        &self,
        statement: *mut sqlite3_stmt,
        params: &[Param],
        texts: &str,
    ) -> Result<(), Failure> {
        for (number, param) in (1..).zip(params) {
            let code = match *param {
                // SAFETY: the statement lives.
                Param::Integer(value) => unsafe {
                    (self.api.sqlite3_bind_int64)(statement, number, value)
                },
                Param::Text { start, end } => {
                    let text = &texts[start as usize..end as usize];
                    let length = text.len() as c_int;
                    // SAFETY: the statement lives. It reads the text without a copy until its
                    // bindings are cleared, which `execute` does while the text is borrowed.
                    unsafe {
                        let bind = self.api.sqlite3_bind_text;
                        bind(statement, number, text.as_ptr().cast(), length, None)
                    }
                }
            };

            if code != SQLITE_OK {
                return Err(self.failure(code));
            }
        }
        Ok(())
    }

    /// Runs a statement to its end, without its reset, and puts its first row into `kept`.
    #[inline]
    fn outcome(
        &self,
        statement: *mut sqlite3_stmt,
        mut kept: Option<&mut KeptRow>,
    ) -> Result<Outcome, Failure> {
        let api = self.api;
        if let Some(kept) = &mut kept {
            kept.clear();
        }

        // SAFETY: the statement lives.
        let has_rows = unsafe { (api.sqlite3_column_count)(statement) } != 0;

        let mut outcome = Outcome::default();

        loop {
            // SAFETY: the statement lives, and its texts do.
            match unsafe { (api.sqlite3_step)(statement) } {
                SQLITE_ROW => {}
                SQLITE_DONE if has_rows => return Ok(outcome),
                SQLITE_DONE => {
                    // SAFETY: the database is open.
                    let rows = unsafe { (api.sqlite3_changes)(self.database) };
                    return Ok(Outcome { rows: u64::try_from(rows).unwrap_or(0), value: None });
                }
                code => return Err(self.failure(code)),
            }

            // SAFETY: the statement has a row, whose first column may be read as an integer.
            unsafe {
                if outcome.rows == 0 && (api.sqlite3_column_type)(statement, 0) == SQLITE_INTEGER {
                    outcome.value = Some((api.sqlite3_column_int64)(statement, 0));
                }
            }
            if outcome.rows == 0
                && let Some(kept) = &mut kept
            {
                self.keep(statement, kept);
            }
            outcome.rows += 1;
        }
    }

    /// Keeps the row that a statement has.
    fn keep(&self, statement: *mut sqlite3_stmt, kept: &mut KeptRow) {
        let api = self.api;
        // SAFETY: the statement lives.
        let columns = unsafe { (api.sqlite3_column_count)(statement) };
        for column in 0..columns {
            // SAFETY: the statement has a row with this column. Its bytes live until the next step,
            // and are asked for before their number, as the library demands.
            unsafe {
                match (api.sqlite3_column_type)(statement, column) {
                    SQLITE_INTEGER => {
                        kept.push_integer((api.sqlite3_column_int64)(statement, column))
                    }
                    SQLITE_NULL | SQLITE_BLOB => kept.push_nothing(),
                    _ => {
                        let text = (api.sqlite3_column_text)(statement, column);
                        let length = (api.sqlite3_column_bytes)(statement, column);
                        if text.is_null() {
                            kept.push_nothing();
                        } else {
                            let length = usize::try_from(length).unwrap_or(0);
                            kept.push_text(std::slice::from_raw_parts(text, length));
                        }
                    }
                }
            }
        }
    }

    /// Returns all rows of a statement as text.
    fn rows(&self, statement: *mut sqlite3_stmt) -> Result<Rows, Failure> {
        // SAFETY: the statement lives.
        let columns = unsafe { (self.api.sqlite3_column_count)(statement) };
        let mut rows = Rows::new();

        loop {
            // SAFETY: the statement lives, and has no parameters with texts.
            match unsafe { (self.api.sqlite3_step)(statement) } {
                SQLITE_ROW => {}
                SQLITE_DONE => return Ok(rows),
                code => return Err(self.failure(code)),
            }
            rows.push((0..columns).map(|column| self.text_of(statement, column)).collect());
        }
    }

    /// Returns a value of the current row as text, and bytes in hexadecimal; `None` for NULL.
    fn text_of(&self, statement: *mut sqlite3_stmt, column: c_int) -> Option<String> {
        let api = self.api;
        // SAFETY: the statement has a row, of which this is a column. Its bytes are copied before
        // anything else is read.
        unsafe {
            match (api.sqlite3_column_type)(statement, column) {
                SQLITE_NULL => None,
                SQLITE_INTEGER => Some((api.sqlite3_column_int64)(statement, column).to_string()),
                SQLITE_FLOAT => Some((api.sqlite3_column_double)(statement, column).to_string()),
                SQLITE_BLOB => {
                    let start = (api.sqlite3_column_blob)(statement, column).cast();
                    let length = (api.sqlite3_column_bytes)(statement, column);
                    Some(hexadecimal(bytes(start, length)))
                }
                _ => {
                    let start = (api.sqlite3_column_text)(statement, column);
                    let length = (api.sqlite3_column_bytes)(statement, column);
                    Some(String::from_utf8_lossy(bytes(start, length)).into_owned())
                }
            }
        }
    }

    /// Returns the failure of the last call, which returned `code`.
    #[cold]
    fn failure(&self, code: c_int) -> Failure {
        // SAFETY: the database is open, and its message ends with a zero byte. The message is
        // copied before another call changes it.
        let message = unsafe {
            let message = (self.api.sqlite3_errmsg)(self.database);
            if message.is_null() { c"no message" } else { CStr::from_ptr(message) }
        };
        Failure { code, message: message.to_string_lossy().into_owned() }
    }
}

/// Returns bytes of the library.
///
/// # Safety
/// `start` must be null, or have `length` bytes for as long as the result is used.
unsafe fn bytes<'a>(start: *const u8, length: c_int) -> &'a [u8] {
    match usize::try_from(length) {
        // SAFETY: promised by the caller.
        Ok(length) if !start.is_null() => unsafe { std::slice::from_raw_parts(start, length) },
        _ => &[],
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
