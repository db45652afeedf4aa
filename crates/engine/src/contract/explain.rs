//! Asks an engine for the plans of a workload's statements.
//!
//! The workload runs its first operations on a [`Capture`], which keeps their statements and
//! parameters instead of running them. So each plan is that of an operation of the step.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use words::{Setting, StatementPlan, digest, excerpt, masked};

use super::{
    Capabilities, Dialect, Engine, Interrupt, Observer, Outcome, ParamType, Rows, Session,
    SettleLimits, Settled, SqlEngine, Statement, Table,
};
use crate::error::Error;

/// The maximum length of a recorded statement, in characters.
const STATEMENT_CHARS: usize = 300;
/// The first words of statements that have plans.
const PLANNED: [&str; 6] = ["select", "insert", "update", "delete", "replace", "with"];
/// The beginnings of queries that run for real: later parameters depend on their results.
const BOUNDARY_KEYS: [&str; 2] = ["select min(", "select max("];

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A 32-bit signed integer.
    Int4(i32),
    /// A 64-bit signed integer.
    Int8(i64),
    /// A time in microseconds since 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
    /// A text.
    Text(String),
}

/// An engine whose sessions capture statements with their parameters and run only queries for
/// boundary keys.
pub struct Capture<'a, E: SqlEngine> {
    engine: &'a E,
    captured: Arc<Mutex<Captured<E::Session>>>,
}

struct Captured<S> {
    /// The connection of all sessions.
    session: S,
    /// The first execution of each statement.
    statements: Vec<Execution>,
}

struct Execution {
    sql: String,
    values: Vec<Value>,
    /// The statement without numbers: statements of several tables differ only in the table's
    /// number.
    masked: String,
}

impl<'a, E: SqlEngine> Capture<'a, E> {
    /// Connects to an engine; `None` if it has no plans.
    ///
    /// # Errors
    /// An error of the engine.
    pub fn new(engine: &'a E) -> Result<Option<Self>, Error> {
        if engine.dialect().explain("", &[]).is_empty() {
            return Ok(None);
        }
        let captured = Captured { session: engine.connect()?, statements: Vec::new() };
        Ok(Some(Self { engine, captured: Arc::new(Mutex::new(captured)) }))
    }

    /// Asks the engine for the plans of the captured statements. A statement that it cannot explain
    /// has an error.
    ///
    /// # Errors
    /// An error of the engine that ends the session.
    pub fn plans(&self) -> Result<Vec<StatementPlan>, Error> {
        let dialect = self.engine.dialect();
        let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        let Captured { session, statements } = &mut *captured;

        let mut plans = Vec::new();
        for Execution { sql, values, masked } in statements {
            let mut rows = Ok(Rows::new());
            for explain in dialect.explain(sql, values) {
                rows = session.query(&explain);
                if rows.is_err() {
                    break;
                }
            }

            let (plan, error) = match rows {
                Ok(rows) => (dialect.plan_text(&rows), None),
                Err(error) if error.class.ends_session() => return Err(error),
                Err(error) => (String::new(), Some(error.to_string())),
            };

            plans.push(StatementPlan {
                statement: excerpt(sql, STATEMENT_CHARS),
                digest: digest(masked),
                plan,
                error,
            });
        }
        Ok(plans)
    }
}

impl<E: SqlEngine> Engine for Capture<'_, E> {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn version(&self) -> &str {
        self.engine.version()
    }

    fn settings(&self) -> Result<Vec<Setting>, Error> {
        self.engine.settings()
    }
}

impl<E: SqlEngine> SqlEngine for Capture<'_, E> {
    type Session = CaptureSession<E::Session>;

    fn dialect(&self) -> &dyn Dialect {
        self.engine.dialect()
    }

    fn connect(&self) -> Result<Self::Session, Error> {
        Ok(CaptureSession {
            captured: Arc::clone(&self.captured),
            statements: Vec::new(),
            current: (String::new(), Vec::new()),
        })
    }

    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
        self.engine.observer(tables)
    }

    fn settle(
        &self,
        tables: &[Table],
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        self.engine.settle(tables, limits, stop)
    }
}

/// A session of a [`Capture`].
pub struct CaptureSession<S> {
    captured: Arc<Mutex<Captured<S>>>,
    /// The prepared statements.
    statements: Vec<String>,
    /// The selected statement and its parameters so far.
    current: (String, Vec<Value>),
}

fn begins_with(sql: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| {
        sql.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    })
}

impl<S: Session> Session for CaptureSession<S> {
    fn prepare(&mut self, sql: &str, _: &[ParamType]) -> Result<Statement, Error> {
        let number = u16::try_from(self.statements.len())
            .map_err(|_| Error::other("a session supports at most 65535 statements"))?;
        self.statements.push(sql.to_owned());
        Ok(Statement(number))
    }

    fn start(&mut self, statement: Statement) {
        let sql = self.statements[usize::from(statement.0)].clone();
        self.current = (sql, Vec::new());
    }

    fn start_text(&mut self, sql: &str) {
        self.current = (sql.to_owned(), Vec::new());
    }

    fn int4(&mut self, value: i32) {
        self.current.1.push(Value::Int4(value));
    }

    fn int8(&mut self, value: i64) {
        self.current.1.push(Value::Int8(value));
    }

    fn timestamp(&mut self, unix_us: i64) {
        self.current.1.push(Value::Timestamp(unix_us));
    }

    fn text(&mut self, value: &str) {
        self.current.1.push(Value::Text(value.to_owned()));
    }

    fn execute(&mut self) -> Result<Outcome, Error> {
        let (sql, values) = &self.current;
        if begins_with(sql, &PLANNED) {
            let captured = &mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner);
            let masked = masked(sql);
            if !captured.statements.iter().any(|known| known.masked == masked) {
                captured.statements.push(Execution {
                    sql: sql.clone(),
                    values: values.clone(),
                    masked,
                });
            }
        }

        let value = self.query_i64(&self.current.0.clone())?;
        Ok(Outcome { rows: 0, value })
    }

    fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        if !begins_with(sql, &BOUNDARY_KEYS) {
            return Ok(Rows::new());
        }
        let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        captured.session.query(sql)
    }

    fn last_key(&mut self, _: &Table) -> Result<Option<i64>, Error> {
        Ok(None)
    }

    fn interrupt(&self) -> Result<Interrupt, Error> {
        Ok(Box::new(|| ()))
    }
}
