//! A connection to a database file.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, ErrorCode, ToSql};

use crate::{Error, Interrupt, Outcome, ParamType, Rows, Session, Statement, Table};

/// The number of waits for a lock of all connections, in a static because the handler is a plain
/// function.
pub(super) static LOCK_WAIT_COUNT: AtomicU64 = AtomicU64::new(0);
/// The total time of these waits.
pub(super) static LOCK_WAIT_NS: AtomicU64 = AtomicU64::new(0);

/// The number of naps, about a minute, after which a connection stops waiting for a lock and the
/// operation is retried.
const LOCK_NAPS_MOST: i32 = 120_000;

/// The busy handler, which naps 10 us at first, then doubles up to 500 us.
pub(super) fn wait_for_lock(naps: i32) -> bool {
    let nap_ns = 10_000_u64 << naps.clamp(0, 5);
    LOCK_WAIT_COUNT.fetch_add(u64::from(naps == 0), Relaxed);
    LOCK_WAIT_NS.fetch_add(nap_ns.min(500_000), Relaxed);
    std::thread::sleep(Duration::from_nanos(nap_ns.min(500_000)));
    naps < LOCK_NAPS_MOST
}

/// The number of attempts of a statement that finds a changed schema each time.
const SCHEMA_TURNS_MOST: u32 = 1_000;

/// Retries `work`, a statement, if other connections have changed the schema. SQLite itself retries
/// at most 50 times, which may be too few while many connections create tables and indexes. A retry
/// is safe, because a statement checks the schema before it does anything.
fn with_the_schema_as_it_is<T>(mut work: impl FnMut() -> rusqlite::Result<T>) -> Result<T, Error> {
    let mut turns = 1;
    loop {
        let failure = match work() {
            Ok(done) => return Ok(done),
            Err(failure) => failure,
        };
        let is_changed = failure.sqlite_error_code() == Some(ErrorCode::SchemaChanged);
        if !is_changed || turns == SCHEMA_TURNS_MOST {
            return Err(error(&failure));
        }
        turns += 1;
    }
}

/// The minimum number of cached statements.
const CACHED_LEAST: usize = 64;

/// A bound parameter; its text is in the session's buffer.
#[derive(Clone, Copy, Debug)]
enum Param {
    Integer(i64),
    Text { start: u32, end: u32 },
}

/// A connection to the database.
///
/// Statements are in the connection's cache, and each execution finds its statement by its text.
/// The library's prepared statements borrow their connection, so a type that moves between threads
/// can't contain both.
pub struct SqliteSession {
    connection: Connection,
    statements: Vec<String>,
    started: usize,
    /// The selected statement is text instead of a prepared statement.
    is_text: bool,
    params: Vec<Param>,
    texts: String,
}

impl SqliteSession {
    pub(super) fn new(connection: Connection) -> Self {
        connection.set_prepared_statement_cache_capacity(CACHED_LEAST);
        Self {
            connection,
            statements: Vec::new(),
            started: 0,
            is_text: false,
            params: Vec::new(),
            texts: String::new(),
        }
    }

    fn run(&self) -> rusqlite::Result<Outcome> {
        if self.is_text {
            return outcome(&mut self.connection.prepare(&self.texts)?);
        }
        let mut statement = self.connection.prepare_cached(&self.statements[self.started])?;
        self.bind(&mut statement)?;
        outcome(&mut statement)
    }

    fn bind(&self, statement: &mut CachedStatement<'_>) -> rusqlite::Result<()> {
        for (number, param) in self.params.iter().enumerate() {
            let text;
            let value: &dyn ToSql = match param {
                Param::Integer(value) => value,
                Param::Text { start, end } => {
                    text = &self.texts[*start as usize..*end as usize];
                    &text
                }
            };
            statement.raw_bind_parameter(number + 1, value)?;
        }
        Ok(())
    }
}

impl Session for SqliteSession {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, Error> {
        let statement = with_the_schema_as_it_is(|| self.connection.prepare_cached(sql))?;
        if statement.parameter_count() != params.len() {
            return Err(Error::other(format!(
                "the statement has {} parameters, but {} are declared",
                statement.parameter_count(),
                params.len()
            )));
        }
        drop(statement);
        let number = u16::try_from(self.statements.len())
            .map_err(|_| Error::other("a session supports at most 65535 statements"))?;
        self.statements.push(sql.to_string());
        // A statement outside of the cache would be prepared again each time.
        let capacity = CACHED_LEAST.max(2 * self.statements.len());
        if self.statements.len().is_power_of_two() {
            self.connection.set_prepared_statement_cache_capacity(capacity);
        }
        self.params.reserve(params.len());
        Ok(Statement(number))
    }

    fn start(&mut self, statement: Statement) {
        self.started = usize::from(statement.0);
        self.is_text = false;
        self.params.clear();
        self.texts.clear();
    }

    fn start_text(&mut self, sql: &str) {
        self.is_text = true;
        self.params.clear();
        self.texts.clear();
        self.texts.push_str(sql);
    }

    fn int4(&mut self, value: i32) {
        self.params.push(Param::Integer(value.into()));
    }

    fn int8(&mut self, value: i64) {
        self.params.push(Param::Integer(value));
    }

    /// Binds a timestamp as an integer, because SQLite has no type for it.
    fn timestamp(&mut self, unix_us: i64) {
        self.params.push(Param::Integer(unix_us));
    }

    fn text(&mut self, value: &str) {
        let start = self.texts.len() as u32;
        self.texts.push_str(value);
        self.params.push(Param::Text { start, end: self.texts.len() as u32 });
    }

    fn execute(&mut self) -> Result<Outcome, Error> {
        with_the_schema_as_it_is(|| self.run())
    }

    fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        with_the_schema_as_it_is(|| {
            let mut statement = self.connection.prepare(sql)?;
            let columns = statement.column_count();
            let mut rows = statement.raw_query();
            let mut result = Rows::new();
            while let Some(row) = rows.next()? {
                let texts = (0..columns).map(|column| Ok(as_text(row.get_ref(column)?)));
                result.push(texts.collect::<rusqlite::Result<_>>()?);
            }
            Ok(result)
        })
    }

    fn last_key(&mut self, _: &Table) -> Result<Option<i64>, Error> {
        Ok(Some(self.connection.last_insert_rowid()).filter(|&key| key != 0))
    }

    fn interrupt(&self) -> Result<Interrupt, Error> {
        let handle = self.connection.get_interrupt_handle();
        Ok(Box::new(move || handle.interrupt()))
    }
}

/// Returns a value as text, and bytes in hexadecimal; `None` for NULL.
fn as_text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(value) => Some(value.to_string()),
        ValueRef::Real(value) => Some(value.to_string()),
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => {
            let mut hex = String::with_capacity(2 * bytes.len());
            for byte in bytes {
                let _ = write!(hex, "{byte:02x}");
            }
            Some(hex)
        }
    }
}

/// Runs a statement with its bound parameters.
fn outcome(statement: &mut rusqlite::Statement<'_>) -> rusqlite::Result<Outcome> {
    if statement.column_count() == 0 {
        let rows = statement.raw_execute()? as u64;
        return Ok(Outcome { rows, value: None });
    }
    let mut outcome = Outcome::default();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        if outcome.rows == 0
            && let ValueRef::Integer(value) = row.get_ref(0)?
        {
            outcome.value = Some(value);
        }
        outcome.rows += 1;
    }
    Ok(outcome)
}

/// Converts an error of the library.
pub(super) fn error(failure: &rusqlite::Error) -> Error {
    match failure.sqlite_error() {
        Some(sqlite) => Error {
            class: super::class_of(sqlite),
            code: Some(format!("sqlite {}", sqlite.extended_code)),
            message: failure.to_string(),
        },
        None => Error::other(failure.to_string()),
    }
}
