//! A connection to a database file.

use libsqlite3_sys::SQLITE_SCHEMA;

use super::ffi::{Connection, Failure, Param};
use crate::contract::{Interrupt, KeptRow, Outcome, ParamType, Rows, Session, Statement, Table};
use crate::error::Error;

/// The number of attempts of a statement that finds a changed schema each time.
const SCHEMA_TURNS_MOST: u32 = 1_000;

/// Retries `work`, a statement, if other connections have changed the schema. SQLite itself retries
/// at most 50 times, which may be too few while many connections create tables and indexes. A retry
/// is safe, because a statement checks the schema before it does anything.
fn with_the_schema_as_it_is<T>(mut work: impl FnMut() -> Result<T, Failure>) -> Result<T, Error> {
    let mut turns = 1;

    loop {
        let failure = match work() {
            Ok(done) => return Ok(done),
            Err(failure) => failure,
        };

        let is_changed = failure.result() == SQLITE_SCHEMA;
        if !is_changed || turns == SCHEMA_TURNS_MOST {
            return Err(failure.into());
        }

        turns += 1;
    }
}

/// A connection to the database, which keeps its statements prepared.
pub struct SqliteSession {
    connection: Connection,
    started: usize,
    /// The selected statement is text instead of a prepared statement.
    is_text: bool,
    params: Vec<Param>,
    texts: String,
    /// By the number of a statement: it keeps its first row. Those after the last one don't.
    keeping: Vec<bool>,
    /// The first row of the last statement that keeps it.
    row: KeptRow,
}

impl SqliteSession {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            started: 0,
            is_text: false,
            params: Vec::new(),
            texts: String::new(),
            keeping: Vec::new(),
            row: KeptRow::default(),
        }
    }
}

impl Session for SqliteSession {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, Error> {
        let number = with_the_schema_as_it_is(|| self.connection.prepare(sql))?;
        let parameters = self.connection.parameter_count(number);

        if parameters != params.len() {
            return Err(Error::other(format!(
                "the statement has {parameters} parameters, but {} are declared",
                params.len()
            )));
        }

        self.params.reserve(params.len());

        let number = u16::try_from(number)
            .map_err(|_| Error::other("a session supports at most 65535 statements"))?;
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

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        let keeps_row = !self.is_text && self.keeping.get(self.started) == Some(&true);
        with_the_schema_as_it_is(|| {
            if self.is_text {
                return self.connection.execute_text(&self.texts);
            }
            let kept = keeps_row.then_some(&mut self.row);
            self.connection.execute(self.started, &self.params, &self.texts, kept)
        })
    }

    fn keep_row(&mut self, statement: Statement) {
        let number = usize::from(statement.0);
        if self.keeping.len() <= number {
            self.keeping.resize(number + 1, false);
        }
        self.keeping[number] = true;
    }

    fn row(&self) -> Option<&KeptRow> {
        Some(&self.row)
    }

    fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        with_the_schema_as_it_is(|| self.connection.query(sql))
    }

    fn last_key(&mut self, _: &Table) -> Result<Option<i64>, Error> {
        Ok(Some(self.connection.last_insert_rowid()).filter(|&key| key != 0))
    }

    fn interrupt(&self) -> Result<Interrupt, Error> {
        Ok(Box::new(self.connection.interrupt()))
    }
}
