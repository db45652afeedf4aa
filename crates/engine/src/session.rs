//! One connection of the load: prepare once, then bind and execute in turn.

use crate::Error;

/// A statement that a [`Session`] has prepared; valid only on that session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub(crate) u16);

/// The type of a parameter, as the engine is told when the statement is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// 32-bit signed integer.
    Int4,
    /// 64-bit signed integer.
    Int8,
    /// A point in time, given in microseconds since 1970-01-01 00:00:00 UTC, stored without a time zone.
    Timestamp,
    /// Text in UTF-8.
    Text,
}

/// What an executed statement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows returned by a query; rows inserted, changed or deleted by anything else.
    pub rows: u64,
    /// The first column of the first row returned, if it is an integer (a key, a count, a minimum).
    pub value: Option<i64>,
}

/// The rows of a statement that is not measured, every value as text; `None` is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// Ends what a session is waiting for, from another thread: the blocked call returns an error of the class
/// [`crate::ErrorClass::Interrupted`] or [`crate::ErrorClass::ConnectionLost`].
pub type Interrupt = Box<dyn Fn() + Send + Sync>;

/// One connection, owned by one load thread: blocking, no locks, no allocation once its statements are prepared.
///
/// An operation is [`start`](Session::start), one push per parameter in their order, [`execute`](Session::execute).
/// What comes before `execute` talks to nobody: a session that sends messages encodes them there, outside of the
/// time that is measured.
pub trait Session: Send + 'static {
    /// Prepares `sql`, which is in the engine's [`crate::Dialect`], with parameters of the types `params`.
    ///
    /// # Errors
    /// The engine's own, when it can't parse or plan the statement.
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, Error>;

    /// Makes `statement` the one that [`execute`](Session::execute) runs next, with no parameter given yet.
    fn start(&mut self, statement: Statement);

    /// Makes `sql` what [`execute`](Session::execute) runs next: sent as text, not prepared, without parameters.
    fn start_text(&mut self, sql: &str);

    /// Gives the next parameter, declared as [`ParamType::Int4`].
    fn int4(&mut self, value: i32);

    /// Gives the next parameter, declared as [`ParamType::Int8`].
    fn int8(&mut self, value: i64);

    /// Gives the next parameter, declared as [`ParamType::Timestamp`], in microseconds since 1970 UTC.
    fn timestamp(&mut self, unix_us: i64);

    /// Gives the next parameter, declared as [`ParamType::Text`].
    fn text(&mut self, value: &str);

    /// Runs the started statement and reads its whole result. Calling it again without a new
    /// [`start`](Session::start) runs the same statement with the same parameters again: that is how a failed
    /// operation is retried.
    ///
    /// # Errors
    /// The engine's own, by class. After [`crate::ErrorClass::ConnectionLost`] the session is of no further use.
    fn execute(&mut self) -> Result<Outcome, Error>;

    /// Runs any SQL that returns rows or not, outside of measured time; it may allocate.
    ///
    /// # Errors
    /// The engine's own, by class.
    fn query(&mut self, sql: &str) -> Result<Rows, Error>;

    /// Runs SQL whose first column of the first row is an integer.
    ///
    /// # Errors
    /// The engine's own; `None` when there is no row, or NULL in it.
    fn query_i64(&mut self, sql: &str) -> Result<Option<i64>, Error> {
        let rows = self.query(sql)?;
        Ok(rows
            .first()
            .and_then(|row| row.first()?.as_deref()?.parse().ok()))
    }

    /// Runs SQL and returns the first column of its rows, without NULLs.
    ///
    /// # Errors
    /// The engine's own.
    fn query_column(&mut self, sql: &str) -> Result<Vec<String>, Error> {
        let rows = self.query(sql)?;
        Ok(rows
            .into_iter()
            .filter_map(|row| row.into_iter().next()?)
            .collect())
    }

    /// The largest key that the server assigned to a row that this session inserted; `None` before the first insert,
    /// or where the engine can't tell.
    ///
    /// # Errors
    /// The engine's own: it may have to ask the server.
    fn last_key(&mut self, table: &crate::Table) -> Result<Option<i64>, Error>;

    /// Returns the id of the operating-system thread that serves this connection alone, as the server names it:
    /// meaningful where the server runs on this host. `None` where there is none, as in an engine that works on the
    /// caller's thread, or the server does not tell. It may ask the server.
    fn server_thread(&mut self) -> Option<u32> {
        None
    }

    /// A handle with which another thread can end what this session waits for.
    ///
    /// # Errors
    /// When no such handle can be made.
    fn interrupt(&self) -> Result<Interrupt, Error>;
}
