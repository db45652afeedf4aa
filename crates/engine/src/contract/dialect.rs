//! Generates SQL in each engine's dialect from descriptions of tables.

use words::{Engine, IndexStatements};

use super::{Column, ColumnType, Comparison, Index, Rows, Table, Value};

/// A scan in index order from a first key, the only parameter.
#[derive(Clone, Copy, Debug)]
pub struct RangeScan<'a> {
    /// The index to read. The dialect adds a hint if the engine has hints.
    pub index: &'a Index,
    /// The comparison of the index's first column with the parameter.
    pub comparison: Comparison,
    /// The maximum number of rows to return.
    pub limit: u32,
}

/// The statements around a load of many rows that select the engine's fast path.
#[derive(Clone, Copy, Debug)]
pub struct BulkLoad {
    /// Statements before the first insert.
    pub begin: &'static [&'static str],
    /// Statements after the last insert. Rows may become visible only then.
    pub end: &'static [&'static str],
}

/// Returns the name of an index, prefixed with its table's name, for engines with global index
/// names.
pub(crate) fn global_index_name(table: &Table, index: &Index) -> String {
    format!("{}_{}", table.name, index.name)
}

/// The statements that workloads need, in the SQL of one engine and with its notation for
/// parameters. The default methods suit most engines.
pub trait Dialect: Sync {
    /// Returns the placeholder of a parameter, counted from 1.
    fn parameter(&self, _number: usize) -> String {
        "?".into()
    }

    /// Returns the type of a column and its constraints in the table's definition.
    fn column_type(&self, kind: ColumnType) -> String;

    /// Returns the hint after a table's name to read an index; empty if the engine has no hints.
    fn index_hint(&self, _table: &Table, _index: &Index) -> String {
        String::new()
    }

    /// Returns the list of columns in the table's definition.
    fn column_definitions(&self, table: &Table) -> String {
        let definition =
            |column: &Column| format!("{} {}", column.name, self.column_type(column.kind));
        let columns: Vec<String> = table.columns.iter().map(definition).collect();
        columns.join(", ")
    }

    /// Returns statements that create the table and its partitions, without secondary indexes.
    fn create_table(&self, table: &Table) -> Vec<String>;

    /// Returns a query that lists the columns of the table's indexes: the index's name, the
    /// column's position in it from 1, and the column's name. It excludes partial indexes.
    /// Empty if the engine has no such listing.
    fn list_indexes(&self, _table: &Table) -> String {
        String::new()
    }

    /// Returns statements that create all secondary indexes.
    fn create_indexes(&self, table: &Table, _statements: IndexStatements) -> Vec<String> {
        let create = |index: &Index| {
            let name = global_index_name(table, index);
            let columns = index.columns.join(", ");
            format!("create index {name} on {} ({columns})", table.name)
        };
        table.indexes.iter().map(create).collect()
    }

    /// Returns the engine's fast path to load many rows, in the order of their keys, into a table
    /// that no one else writes; `None` if it only has inserts.
    fn bulk_load(&self) -> Option<BulkLoad> {
        None
    }

    /// Returns statements that drop the table if it exists.
    fn drop_table(&self, table: &Table) -> Vec<String> {
        vec![format!("drop table if exists {}", table.name)]
    }

    /// Returns a statement that inserts `rows` rows. Every column except the key is a parameter,
    /// row by row.
    fn insert(&self, table: &Table, rows: u32) -> String {
        insert_columns(self, table, &table.columns[1..], rows)
    }

    /// Returns a statement that inserts `rows` rows with keys from the workload. Every column is a
    /// parameter, row by row.
    fn insert_with_keys(&self, table: &Table, rows: u32) -> String {
        insert_columns(self, table, &table.columns, rows)
    }

    /// Returns statements that make the server assign keys above `last` after rows were inserted
    /// with keys; none if it does so by itself.
    fn assign_keys_above(&self, _table: &Table, _last: u64) -> Vec<String> {
        Vec::new()
    }

    /// Returns a statement in the form to send to the engine; `_rows` is the number of rows
    /// expected.
    fn statement(&self, sql: String, _rows: u64) -> String {
        sql
    }

    /// Returns a statement that deletes the `rows` rows with the lowest keys from the parameter on.
    /// With `shared`, other connections do the same concurrently, and skip rows that another
    /// deletes if the engine supports that.
    fn delete_oldest(&self, table: &Table, rows: u32, shared: bool) -> String;

    /// Returns a query that reads index columns in index order.
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

    /// Returns a query that reads the key and `columns` of `keys` rows. The keys are the
    /// parameters.
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

    /// Returns a query for the smallest key, which is NULL in an empty table. It has no parameters.
    fn min_key(&self, table: &Table) -> String {
        let sql = format!("select min({}) from {}", table.key(), table.name);
        self.statement(sql, 1)
    }

    /// Returns a query for the largest key, which is NULL in an empty table. It has no parameters.
    fn max_key(&self, table: &Table) -> String {
        let sql = format!("select max({}) from {}", table.key(), table.name);
        self.statement(sql, 1)
    }

    /// Returns statements that ask for the plan of `sql` with its first parameters. Run them in
    /// turn on one session; the last one returns the plan. Empty if the engine has no plans.
    fn explain(&self, _sql: &str, _values: &[Value]) -> Vec<String> {
        Vec::new()
    }

    /// Returns the text of a plan: a line for each row of the last of those statements.
    fn plan_text(&self, rows: &Rows) -> String {
        let lines = rows.iter().filter_map(|row| row.first()?.as_deref());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns statements that count the rows in the table itself (`None`) or in an index. Run them
    /// in turn on one session; the last one returns the count. Empty if the engine has no way
    /// to select the index.
    fn count_rows(&self, table: &Table, index: Option<&Index>) -> Vec<String>;

    /// Returns statements that compute a number from all columns of each row whose key is a
    /// multiple of `every`, whatever the order of rows. Run them in turn on one session; the
    /// last one returns the number, which is the same in all versions of the server. Empty if
    /// the engine has no replicas.
    fn digest(&self, _table: &Table, _every: u64) -> Vec<String> {
        Vec::new()
    }

    /// Returns a statement that begins a transaction which reads, and so retains, old row versions.
    fn begin(&self) -> &'static str;

    /// Returns a statement that begins a transaction of the engine's default kind. `_writes` says
    /// whether it will write.
    fn begin_transaction(&self, _writes: bool) -> &'static str {
        "begin"
    }

    /// Returns the statement that sets the isolation level of a session's transactions, as SQL writes
    /// the level; `None` if the engine has only one.
    fn set_isolation(&self, _level: &str) -> Option<String> {
        None
    }

    /// Returns the engine whose SQL this is; `None` if statements are not run.
    fn engine(&self) -> Option<Engine> {
        None
    }

    /// Returns the statement that commits a transaction.
    fn commit(&self) -> &'static str {
        "commit"
    }

    /// Returns the statement that rolls a transaction back.
    fn rollback(&self) -> &'static str {
        "rollback"
    }
}

/// Returns SQL with the options of tables at its end.
pub(crate) fn with_table_options(sql: String, options: &str) -> String {
    if options.is_empty() { sql } else { format!("{sql} {options}") }
}

/// Returns a text as a literal of standard SQL.
pub(crate) fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn insert_columns(
    dialect: &(impl Dialect + ?Sized),
    table: &Table,
    columns: &[Column],
    rows: u32,
) -> String {
    let columns: Vec<&str> = columns.iter().map(|column| column.name).collect();

    let row = |row: usize| {
        let first = row * columns.len() + 1;
        format!("({})", parameters(dialect, first, columns.len()))
    };
    let values: Vec<String> = (0..rows as usize).map(row).collect();

    let sql =
        format!("insert into {} ({}) values {}", table.name, columns.join(", "), values.join(", "));
    dialect.statement(sql, rows.into())
}

/// Returns a list of `count` placeholders, from the number `first` on.
fn parameters(dialect: &(impl Dialect + ?Sized), first: usize, count: usize) -> String {
    let placeholders: Vec<String> =
        (first..first + count).map(|number| dialect.parameter(number)).collect();
    placeholders.join(", ")
}
