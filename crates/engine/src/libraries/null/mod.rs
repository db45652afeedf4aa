//! An engine that does nothing, to measure the cost of assay itself.
//!
//! Every statement succeeds at once with the number of rows that a database would return. So the
//! whole harness runs: schedule, clock, histograms, record. The engine stores no data, so its data
//! is not checked.

use std::sync::atomic::AtomicBool;

use words::Setting;

use crate::contract::{
    Capabilities, ColumnType, Dialect, Engine, Index, Interrupt, Observer, Outcome, ParamType,
    Rows, Session, SettleLimits, Settled, SqlEngine, Statement, Table,
};
use crate::error::Error;

/// An engine that does nothing.
#[derive(Debug, Default)]
pub struct Null;

impl Engine for Null {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            partitions: true,
            long_transactions: true,
            embedded: true,
            writers_max: u32::MAX,
            stores_data: false,
        }
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn settings(&self) -> Result<Vec<Setting>, Error> {
        Ok(Vec::new())
    }
}

impl SqlEngine for Null {
    type Session = NullSession;

    fn dialect(&self) -> &dyn Dialect {
        &NullDialect
    }

    fn connect(&self) -> Result<NullSession, Error> {
        Ok(NullSession::default())
    }

    fn observer(&self, _tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
        Ok(Box::new(NullObserver))
    }

    fn settle(&self, _: &[Table], _: SettleLimits, _: &AtomicBool) -> Result<Settled, Error> {
        Ok(Settled::default())
    }
}

/// A session of the null engine.
#[derive(Debug, Default)]
pub struct NullSession {
    /// The number of rows that each prepared statement returns.
    statements: Vec<u64>,
    /// The number of rows that the selected statement returns.
    current_rows: u64,
    /// A digest of the parameters, which keeps the compiler from removing the code that computes
    /// them.
    digest: u64,
}

impl NullSession {
    fn absorb(&mut self, value: u64) {
        self.digest = self.digest.rotate_left(5) ^ value;
    }
}

impl Session for NullSession {
    /// Prepares `sql` of [`NullDialect`], which is the number of rows to return. Any other text
    /// returns none.
    fn prepare(&mut self, sql: &str, _: &[ParamType]) -> Result<Statement, Error> {
        let number = u16::try_from(self.statements.len())
            .map_err(|_| Error::other("a session supports at most 65535 statements"))?;
        self.statements.push(sql.parse().unwrap_or(0));
        Ok(Statement(number))
    }

    fn start(&mut self, statement: Statement) {
        self.current_rows = self.statements[usize::from(statement.0)];
    }

    fn start_text(&mut self, sql: &str) {
        self.current_rows = sql.parse().unwrap_or(0);
    }

    fn int4(&mut self, value: i32) {
        self.absorb(value as u64);
    }

    fn int8(&mut self, value: i64) {
        self.absorb(value as u64);
    }

    fn timestamp(&mut self, unix_us: i64) {
        self.absorb(unix_us as u64);
    }

    fn text(&mut self, value: &str) {
        self.absorb(value.len() as u64);
    }

    fn execute(&mut self) -> Result<Outcome, Error> {
        std::hint::black_box(self.digest);
        Ok(Outcome { rows: self.current_rows, value: Some(1) })
    }

    fn query(&mut self, _: &str) -> Result<Rows, Error> {
        Ok(Vec::new())
    }

    fn last_key(&mut self, _: &Table) -> Result<Option<i64>, Error> {
        Ok(None)
    }

    fn interrupt(&self) -> Result<Interrupt, Error> {
        Ok(Box::new(|| {}))
    }
}

/// The notation of an engine without settings.
pub struct NullNotation;

impl crate::contract::notation::Notation for NullNotation {
    fn canonical(&self, _: &str, value: &str) -> String {
        value.trim().to_owned()
    }
}

/// A dialect whose statements are the number of rows to return.
#[derive(Debug)]
pub struct NullDialect;

impl Dialect for NullDialect {
    fn column_type(&self, _: ColumnType) -> String {
        String::new()
    }

    fn create_table(&self, _: &Table) -> Vec<String> {
        Vec::new()
    }

    fn create_indexes(&self, _: &Table, _: words::IndexStatements) -> Vec<String> {
        Vec::new()
    }

    fn statement(&self, _: String, rows: u64) -> String {
        rows.to_string()
    }

    fn delete_oldest(&self, _: &Table, rows: u32, _: bool) -> String {
        rows.to_string()
    }

    fn count_rows(&self, _: &Table, _: Option<&Index>) -> Vec<String> {
        Vec::new()
    }

    fn begin(&self) -> &'static str {
        "begin"
    }
}

struct NullObserver;

impl Observer for NullObserver {
    fn counters(&mut self) -> Result<Vec<words::Counter>, Error> {
        Ok(Vec::new())
    }

    fn sample(&mut self) -> Result<Vec<words::Counter>, Error> {
        Ok(Vec::new())
    }
}
