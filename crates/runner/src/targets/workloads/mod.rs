//! The interfaces between the steps of a cell, its engine and its workload.
//!
//! A step sees an engine as a [`StepEngine`], which settles and is observed, and a workload on it
//! as a [`WorkloadRunner`], which opens connections and knows what the data should be. There is a
//! runner for each workload, and [`sql`] chooses one for a SQL engine.

pub mod insert;
pub mod kv;
pub mod sql;
pub mod sysbench;
pub mod transactions;

use std::sync::atomic::AtomicBool;

use engine::{
    Engine, Error, ErrorClass, IndexRows, KeyValueEngine, Observer, SettleLimits, Settled,
    SqlEngine, Table,
};
use load::Totals;
use plan::Settle;
use record::{StatementPlan, Step};
use workload::{Check, DataState, OpKind, Summaries, Task};

use crate::ground::failure::RejectedStatement;
use crate::targets::replicas::{Replication, TableContents};

/// Returns the error of a step of which a connection cannot be opened, or a statement not be
/// prepared.
fn cannot_begin(error: Error) -> anyhow::Error {
    if is_about_statement(&error) {
        return RejectedStatement(error).into();
    }
    anyhow::Error::from(error).context("the step's connections cannot be opened")
}

/// The numbers of MySQL and MariaDB for wrong syntax, and for names of columns, tables and routines
/// that do not exist. That of SQLite is for both.
const WRONG_STATEMENTS: [&str; 5] = ["1054", "1064", "1146", "1305", "sqlite 1"];

/// The class of PostgreSQL's codes for wrong syntax and names. It has that for missing privileges as
/// well.
const WRONG_SYNTAX_OR_NAME: &str = "42";
const NO_PRIVILEGE: &str = "42501";

/// Returns true if an engine rejects the text of a statement.
fn is_about_statement(error: &Error) -> bool {
    let Some(code) = error.code.as_deref() else {
        return false;
    };

    let is_sqlstate = code.len() == NO_PRIVILEGE.len() && code.starts_with(WRONG_SYNTAX_OR_NAME);
    error.class == ErrorClass::Other
        && (WRONG_STATEMENTS.contains(&code) || (is_sqlstate && code != NO_PRIVILEGE))
}

/// A started engine, as the steps of a cell use it.
pub trait StepEngine: Sync {
    /// Returns the engine.
    fn engine(&self) -> &dyn Engine;

    /// Opens an observer of the counters of `tables` and the whole engine.
    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error>;

    /// Waits until the engine has finished its background work.
    fn settle(
        &self,
        tables: &[Table],
        settle: Settle,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error>;

    /// Returns the engine's replicas, if it has any.
    fn replication(&self) -> Option<&dyn Replication> {
        None
    }

    /// Compares the contents of each table on each replica with those on the primary: smallest and
    /// largest key, rows, a digest of all columns, and with `indexes`, rows in each index.
    fn compare_replicas(&self, _: &[Table], _: bool) -> anyhow::Result<Vec<Check>> {
        Ok(Vec::new())
    }

    /// Prepares the engine for a check of its data.
    fn before_check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// An engine that speaks SQL.
pub struct SqlSteps<'a, E> {
    pub engine: &'a E,
    pub replication: Option<&'a dyn Replication>,
}

impl<E: SqlEngine> StepEngine for SqlSteps<'_, E> {
    fn engine(&self) -> &dyn Engine {
        self.engine
    }

    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
        self.engine.observer(tables)
    }

    fn settle(
        &self,
        tables: &[Table],
        _: Settle,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        self.engine.settle(tables, limits, stop)
    }

    fn replication(&self) -> Option<&dyn Replication> {
        self.replication
    }

    fn compare_replicas(&self, tables: &[Table], indexes: bool) -> anyhow::Result<Vec<Check>> {
        let mut checks = Vec::new();
        for (table, replication) in tables.iter().zip(self.replication.iter().cycle()) {
            let facts = self.engine.inspect(table, indexes)?;
            let every = facts.rows.div_ceil(DIGESTED_ROWS_MAX).max(1);
            let digest = self.engine.digest(table, every)?;
            let expected = TableContents { facts, digest };

            for (replica, found) in replication.inspect(table, indexes, every)? {
                checks.push(Check {
                    what: format!("contents of {} on {replica}", table.name),
                    expected: contents(&expected, every),
                    found: contents(&found, every),
                    holds: expected == found,
                    left_out: None,
                });
            }
        }

        Ok(checks)
    }
}

/// The most rows of a table whose columns are compared on primary and replicas; of a larger table,
/// the rows whose keys are multiples of some number. A server reads a million in about 2 s.
const DIGESTED_ROWS_MAX: u64 = 1_000_000;

/// Returns the contents of a table as text. Its digest is of one row in `every`.
fn contents(contents: &TableContents, every: u64) -> String {
    let TableContents { facts, digest } = contents;

    let key = |key: Option<i64>| key.map_or("none".to_owned(), |key| key.to_string());
    let (min, max) = (key(facts.key_min), key(facts.key_max));

    let mut text = format!("{} rows, keys {min} to {max}", facts.rows);
    for (index, rows) in &facts.index_rows {
        if let IndexRows::Counted(rows) = rows {
            text += &format!(", {rows} in {index}");
        }
    }

    if let Some(digest) = digest {
        let of = match every {
            1 => "all columns".to_owned(),
            every => format!("all columns of one row in {every}"),
        };
        text += &format!(", digest {digest} of {of}");
    }

    text
}

/// The database of a library.
pub struct LibrarySteps<'a, D> {
    pub database: &'a D,
    /// The database is open for the load only. Checks then flush it first, since only closing it
    /// does.
    pub is_loading: bool,
}

impl<D: KeyValueEngine> StepEngine for LibrarySteps<'_, D> {
    fn engine(&self) -> &dyn Engine {
        self.database
    }

    fn observer(&self, _: &[Table]) -> Result<Box<dyn Observer>, Error> {
        Ok(self.database.observer())
    }

    fn settle(
        &self,
        _: &[Table],
        settle: Settle,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        self.database.settle(settle == Settle::EmptyLevel0, limits, stop)
    }

    fn before_check(&self) -> Result<(), Error> {
        if self.is_loading { self.database.flush() } else { Ok(()) }
    }
}

/// Runs a workload on an engine. Steps are numbered as in the plan, from 0.
pub trait WorkloadRunner {
    /// Returns the workload's tables, if it has any.
    fn tables(&self) -> &[Table];

    /// Returns the number of rows or keys that should exist now.
    fn rows(&self) -> u64;

    /// Returns the size of the user data that should exist now, in bytes; random sizes count as
    /// their mean.
    fn data_bytes(&self) -> u64;

    /// Returns why the engine cannot run a step; `None` if the engine can.
    fn not_applicable(&self, _step: usize) -> Option<String> {
        None
    }

    /// Adds the workload's description of a step to its record.
    fn describe(&self, step: usize, record: &mut Step);

    /// Returns the number of rows that a step without a time limit writes.
    fn planned_rows(&self, step: usize) -> u64;

    /// Opens the connections of a step, or of its warm-up.
    fn tasks(&mut self, step: usize, is_warm_up: bool) -> anyhow::Result<Vec<Task>>;

    /// Updates the expected data with what a step or its warm-up did. Returns the checks of what it
    /// read.
    fn apply(&mut self, step: usize, summaries: &Summaries, totals: &Totals) -> Vec<Check>;

    /// Returns the knowledge of the data with which another process can continue; `None` if nothing
    /// was loaded.
    fn state(&self) -> Option<DataState>;

    /// Takes over the knowledge of the same data after the first `done` steps. Returns `false` if it
    /// is about other data.
    fn restore(&mut self, state: DataState, done: usize) -> bool;

    /// Asks the engine for the plans of the step's statements. Empty if it has none.
    fn plans(&self, _step: usize) -> anyhow::Result<Vec<StatementPlan>> {
        Ok(Vec::new())
    }

    /// Compares the engine's data with the expected data, as far as the plan requires. Not called
    /// for [`plan::Checks::Off`].
    fn check(&self) -> anyhow::Result<Vec<Check>>;
}

/// Returns whether no operation of that kind failed.
fn none_failed(totals: &Totals, kind: OpKind) -> bool {
    totals.get(kind.name).is_none_or(|totals| totals.failed == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wrong_syntax_and_unknown_names_are_mistakes_of_a_statement() {
        let error_of = |class, code: &str| Error {
            class,
            code: Some(code.to_owned()),
            message: String::new(),
        };

        for code in ["42703", "42601", "42P01", "1054", "1064", "1146", "1305", "sqlite 1"] {
            assert!(is_about_statement(&error_of(ErrorClass::Other, code)), "{code}");
        }
        for code in ["42501", "53200", "1142", "1461", "4215", "sqlite 7"] {
            assert!(!is_about_statement(&error_of(ErrorClass::Other, code)), "{code}");
        }
        assert!(!is_about_statement(&error_of(ErrorClass::Refused, "42703")));
        assert!(!is_about_statement(&Error::new(ErrorClass::Other, "no code")));
    }
}
