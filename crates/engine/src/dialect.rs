//! SQL as each engine wants it, made from tables as data.

use words::IndexStatements;

use crate::{Column, ColumnType, Comparison, Index, Table};

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

/// What a session says before and after it loads many rows, so that the engine does it in its own fast way.
#[derive(Clone, Copy, Debug)]
pub struct BulkLoad {
    /// Before the first insert.
    pub begin: &'static [&'static str],
    /// After the last one: only then the rows need to be there.
    pub end: &'static [&'static str],
}

/// The name of an index where such names are global: the table's is put before it.
pub(crate) fn global_index_name(table: &Table, index: &Index) -> String {
    format!("{}_{}", table.name, index.name)
}

/// The statements that workloads need, as one engine writes them. Parameters are in the engine's own notation. What
/// most engines write alike is here.
pub trait Dialect: Sync {
    /// The parameter of this number, counted from 1.
    fn parameter(&self, _number: usize) -> String {
        "?".into()
    }

    /// The type of a column in the table's definition, with what else is said of it there.
    fn column_type(&self, kind: ColumnType) -> String;

    /// What follows a table's name where an index is to be read; empty where the engine takes no advice.
    fn index_hint(&self, _table: &Table, _index: &Index) -> String {
        String::new()
    }

    /// The columns of the table, as its definition lists them.
    fn column_definitions(&self, table: &Table) -> String {
        let definition =
            |column: &Column| format!("{} {}", column.name, self.column_type(column.kind));
        let columns: Vec<String> = table.columns.iter().map(definition).collect();
        columns.join(", ")
    }

    /// Creates the table without its secondary indexes; its partitions with it.
    fn create_table(&self, table: &Table) -> Vec<String>;

    /// Lists the columns of the table's indexes, of those that find any row of it: the index's name, the column's place in it
    /// from 1, and its name. Empty where there is no such listing.
    fn list_indexes(&self, _table: &Table) -> String {
        String::new()
    }

    /// Creates all secondary indexes.
    fn create_indexes(&self, table: &Table, _statements: IndexStatements) -> Vec<String> {
        let create = |index: &Index| {
            let name = global_index_name(table, index);
            let columns = index.columns.join(", ");
            format!("create index {name} on {} ({columns})", table.name)
        };
        table.indexes.iter().map(create).collect()
    }

    /// How a session loads many rows in the order of their keys into a table that nobody else writes; `None` where the
    /// engine knows no way but inserts.
    fn bulk_load(&self) -> Option<BulkLoad> {
        None
    }

    /// Drops the table, if it exists.
    fn drop_table(&self, table: &Table) -> Vec<String> {
        vec![format!("drop table if exists {}", table.name)]
    }

    /// Inserts `rows` rows: every column but the key is a parameter, row by row.
    fn insert(&self, table: &Table, rows: u32) -> String {
        insert_columns(self, table, &table.columns[1..], rows)
    }

    /// Inserts `rows` rows with keys that the workload gives: every column is a parameter, row by row.
    fn insert_with_keys(&self, table: &Table, rows: u32) -> String {
        insert_columns(self, table, &table.columns, rows)
    }

    /// What makes the server assign keys above `last` after rows were given theirs; nothing where it does by itself.
    fn assign_keys_above(&self, _table: &Table, _last: u64) -> Vec<String> {
        Vec::new()
    }

    /// Returns a statement as the engine is given it; so many rows are expected of it.
    fn statement(&self, sql: String, _rows: u64) -> String {
        sql
    }

    /// Deletes the `rows` rows with the lowest keys that are at least the parameter. With `shared`, other connections
    /// do the same at the same time and none waits for rows that another is deleting, where the engine can do that.
    fn delete_oldest(&self, table: &Table, rows: u32, shared: bool) -> String;

    /// Reads index columns in index order.
    fn range_scan(&self, table: &Table, scan: RangeScan<'_>) -> String {
        let RangeScan { index, limit, .. } = scan;
        let columns = index.columns.join(", ");
        let comparison = match scan.comparison {
            Comparison::AtLeast => ">=",
            Comparison::Above => ">",
        };
        let sql = format!(
            "select {columns} from {}{} where {} {comparison} {} order by {columns} limit {limit}",
            table.name,
            self.index_hint(table, index),
            index.columns[0],
            self.parameter(1)
        );
        self.statement(sql, limit.into())
    }

    /// Reads the key and `columns` of `keys` rows by key; the keys are the parameters.
    fn point_lookup(&self, table: &Table, columns: &[&str], keys: u32) -> String {
        let key = table.key();
        let mut selected = vec![key];
        selected.extend_from_slice(columns);
        let sql = format!(
            "select {} from {} where {key} in ({})",
            selected.join(", "),
            table.name,
            parameters(self, 1, keys as usize)
        );
        self.statement(sql, keys.into())
    }

    /// The smallest key, NULL in an empty table. No parameters.
    fn min_key(&self, table: &Table) -> String {
        let sql = format!("select min({}) from {}", table.key(), table.name);
        self.statement(sql, 1)
    }

    /// The largest key, NULL in an empty table. No parameters.
    fn max_key(&self, table: &Table) -> String {
        let sql = format!("select max({}) from {}", table.key(), table.name);
        self.statement(sql, 1)
    }

    /// Counts the rows by way of the table itself (`None`) or of one index: statements to run in turn on one session,
    /// of which the last returns the count. Empty where the engine can't be told which index to read.
    fn count_rows(&self, table: &Table, index: Option<&Index>) -> Vec<String>;

    /// Opens a transaction that can see and hold back old row versions.
    fn begin(&self) -> &'static str;

    /// Opens a transaction as the engine has it by default, and says whether it is to write.
    fn begin_transaction(&self, _writes: bool) -> &'static str {
        "begin"
    }

    /// Ends a transaction.
    fn commit(&self) -> &'static str {
        "commit"
    }

    /// Ends a transaction without what it did.
    fn rollback(&self) -> &'static str {
        "rollback"
    }
}

fn insert_columns(
    dialect: &(impl Dialect + ?Sized),
    table: &Table,
    columns: &[Column],
    rows: u32,
) -> String {
    let columns: Vec<&str> = columns.iter().map(|it| it.name).collect();
    let row = |row: usize| {
        let first = row * columns.len() + 1;
        format!("({})", parameters(dialect, first, columns.len()))
    };
    let values: Vec<String> = (0..rows as usize).map(row).collect();
    let sql = format!(
        "insert into {} ({}) values {}",
        table.name,
        columns.join(", "),
        values.join(", ")
    );
    dialect.statement(sql, rows.into())
}

/// So many parameters, from this number on.
fn parameters(dialect: &(impl Dialect + ?Sized), first: usize, count: usize) -> String {
    let each: Vec<String> = (first..first + count)
        .map(|number| dialect.parameter(number))
        .collect();
    each.join(", ")
}
