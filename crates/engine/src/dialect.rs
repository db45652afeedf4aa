//! SQL as each engine wants it, made from tables as data.

use crate::{Comparison, Index, Table};

/// A scan in index order from a first key, which is its only parameter.
#[derive(Clone, Copy, Debug)]
pub struct RangeScan<'a> {
    /// The index to read; the dialect forces it where the engine has a hint for that.
    pub index: &'a Index,
    /// How the first column of the index compares with the parameter.
    pub comparison: Comparison,
    /// The most rows to return.
    pub limit: u32,
}

/// With how many statements the indexes of a table are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexStatements {
    /// As suits the engine.
    Usual,
    /// One for all, where the engine has such a statement; otherwise one for each.
    One,
    /// One for each index.
    Each,
}

/// What a session says before and after it loads many rows, so that the engine does it in its own fast way.
#[derive(Clone, Copy, Debug)]
pub struct BulkLoad {
    /// Before the first insert.
    pub begin: &'static [&'static str],
    /// After the last one: only then the rows need to be there.
    pub end: &'static [&'static str],
}

/// The statements that workloads need, as one engine writes them. Parameters are in the engine's own notation.
pub trait Dialect: Sync {
    /// Creates the table without its secondary indexes; its partitions with it.
    fn create_table(&self, table: &Table) -> Vec<String>;

    /// Creates all secondary indexes.
    fn create_indexes(&self, table: &Table, statements: IndexStatements) -> Vec<String>;

    /// How a session loads many rows in the order of their keys into a table that nobody else writes; `None` where the
    /// engine knows no way but inserts.
    fn bulk_load(&self) -> Option<BulkLoad> {
        None
    }

    /// Drops the table, if it exists.
    fn drop_table(&self, table: &Table) -> Vec<String>;

    /// Inserts `rows` rows: every column but the key is a parameter, row by row.
    fn insert(&self, table: &Table, rows: u32) -> String;

    /// Deletes the `rows` rows with the lowest keys that are at least the parameter. With `shared`, other connections
    /// do the same at the same time and none waits for rows that another is deleting, where the engine can do that.
    fn delete_oldest(&self, table: &Table, rows: u32, shared: bool) -> String;

    /// Reads index columns in index order.
    fn range_scan(&self, table: &Table, scan: RangeScan<'_>) -> String;

    /// Reads the key and `columns` of `keys` rows by key; the keys are the parameters.
    fn point_lookup(&self, table: &Table, columns: &[&str], keys: u32) -> String;

    /// The smallest key, NULL in an empty table. No parameters.
    fn min_key(&self, table: &Table) -> String;

    /// The largest key, NULL in an empty table. No parameters.
    fn max_key(&self, table: &Table) -> String;

    /// Counts the rows by way of the table itself (`None`) or of one index: statements to run in turn on one session,
    /// of which the last returns the count. Empty where the engine can't be told which index to read.
    fn count_rows(&self, table: &Table, index: Option<&Index>) -> Vec<String>;

    /// Opens a transaction that can see and hold back old row versions.
    fn begin(&self) -> &'static str;

    /// Ends it.
    fn commit(&self) -> &'static str;
}
