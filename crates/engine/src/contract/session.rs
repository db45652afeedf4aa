//! A connection of the load, which prepares statements once, then binds and executes them
//! repeatedly.

use super::KeptRow;
use crate::error::Error;

/// A prepared statement, valid only on the [`Session`] that prepared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub(crate) u16);

/// The type of a parameter, declared when the statement is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A 32-bit signed integer.
    Int4,
    /// A 64-bit signed integer.
    Int8,
    /// A time in microseconds since 1970-01-01 00:00:00 UTC, stored without a time zone.
    Timestamp,
    /// A text in UTF-8.
    Text,
}

/// The SQLSTATE of the notice with which a `do` block of PostgreSQL, which has no result, tells its
/// outcome.
pub const OUTCOME_SQLSTATE: &str = "AS000";

/// The outcome of an executed statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The number of rows that a query returned, or that another statement inserted, changed or
    /// deleted.
    pub rows: u64,
    /// The first column of the first returned row, if it is an integer such as a key, a count or a
    /// minimum.
    pub value: Option<i64>,
}

/// The rows of an unmeasured statement, with every value as text; `None` is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// Interrupts a session's blocked call from another thread. The call returns an error of the class
/// [`crate::ErrorClass::Interrupted`] or [`crate::ErrorClass::ConnectionLost`].
pub type Interrupt = Box<dyn Fn() + Send + Sync>;

/// A connection of one load thread. It blocks, takes no locks, and does not allocate once its
/// statements are prepared.
///
/// An operation is [`start`](Session::start), one call per parameter in order, then
/// [`execute`](Session::execute). Calls before `execute` don't send anything. A session encodes its
/// messages there, outside of measured time.
pub trait Session: Send + 'static {
    /// Prepares `sql`, in the engine's [`crate::Dialect`], with parameters of the types `params`.
    ///
    /// # Errors
    /// An error of the engine, when it cannot parse or plan the statement.
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, Error>;

    /// Selects the statement that [`execute`](Session::execute) runs next, without parameters yet.
    fn start(&mut self, statement: Statement);

    /// Selects `sql` as the text that [`execute`](Session::execute) sends next, unprepared and
    /// without parameters.
    fn start_text(&mut self, sql: &str);

    /// Binds the next parameter, declared as [`ParamType::Int4`].
    fn int4(&mut self, value: i32);

    /// Binds the next parameter, declared as [`ParamType::Int8`].
    fn int8(&mut self, value: i64);

    /// Binds the next parameter, declared as [`ParamType::Timestamp`], in microseconds since 1970
    /// UTC.
    fn timestamp(&mut self, unix_us: i64);

    /// Binds the next parameter, declared as [`ParamType::Text`].
    fn text(&mut self, value: &str);

    /// Runs the selected statement and reads its whole result. If the call of a procedure returns
    /// several results, the outcome is that of the last one with rows. A `do` block of PostgreSQL,
    /// sent as text, has the value of its notice with the SQLSTATE [`OUTCOME_SQLSTATE`]. To retry a failed
    /// operation, call `execute` again without [`start`](Session::start): it runs the same statement
    /// with the same parameters.
    ///
    /// # Errors
    /// An error of the engine. After [`crate::ErrorClass::ConnectionLost`], the session cannot be
    /// used any more.
    fn execute(&mut self) -> Result<Outcome, Error>;

    /// Makes each execution of a statement keep the first row of its result, for
    /// [`row`](Session::row).
    fn keep_row(&mut self, _statement: Statement) {}

    /// Returns the row that the last execution of a statement with [`keep_row`](Session::keep_row)
    /// kept, which is empty if it returned none. `None` if the session has no rows to keep, since it
    /// does not run statements.
    fn row(&self) -> Option<&KeptRow> {
        None
    }

    /// Runs any SQL outside of measured time, and returns its rows. It may allocate.
    ///
    /// # Errors
    /// An error of the engine.
    fn query(&mut self, sql: &str) -> Result<Rows, Error>;

    /// Runs SQL, and returns the integer in the first column of the first row; `None` for NULL or
    /// no row.
    ///
    /// # Errors
    /// An error of the engine.
    fn query_i64(&mut self, sql: &str) -> Result<Option<i64>, Error> {
        let rows = self.query(sql)?;
        Ok(rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()))
    }

    /// Runs SQL and returns the first column of its rows, without NULLs.
    ///
    /// # Errors
    /// An error of the engine.
    fn query_column(&mut self, sql: &str) -> Result<Vec<String>, Error> {
        let rows = self.query(sql)?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next()?).collect())
    }

    /// Returns the largest key that the server assigned to a row of this session; `None` before the
    /// first insert, or if the engine does not report it. It may query the server.
    ///
    /// # Errors
    /// An error of the engine.
    fn last_key(&mut self, table: &super::Table) -> Result<Option<i64>, Error>;

    /// Returns the ID of the operating-system thread that serves only this connection, on the
    /// server's host. `None` if there is no such thread, as in an embedded engine, or the
    /// server does not report it. It may query the server.
    fn server_thread(&mut self) -> Option<u32> {
        None
    }

    /// Returns a handle with which another thread can interrupt this session's blocked call.
    ///
    /// # Errors
    /// Fails if the handle cannot be created.
    fn interrupt(&self) -> Result<Interrupt, Error>;
}
