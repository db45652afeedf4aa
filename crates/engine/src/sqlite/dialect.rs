//! SQL as SQLite writes it.

use crate::{ColumnType, Comparison, Dialect, Index, IndexStatements, RangeScan, Table};

/// SQLite's SQL.
#[derive(Debug)]
pub struct SqliteDialect;

/// Names of indexes are global, so they begin with the table's.
fn index_name(table: &Table, index: &Index) -> String {
    format!("{}_{}", table.name, index.name)
}

impl Dialect for SqliteDialect {
    fn create_table(&self, table: &Table) -> Vec<String> {
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|column| {
                let kind = match column.kind {
                    ColumnType::AutoKey => "integer primary key".into(),
                    ColumnType::Int4 | ColumnType::Timestamp => "integer not null".into(),
                    ColumnType::Text(length) => format!("varchar({length})"),
                };
                format!("{} {kind}", column.name)
            })
            .collect();
        vec![format!(
            "create table {} ({})",
            table.name,
            columns.join(", ")
        )]
    }

    fn create_indexes(&self, table: &Table, _: IndexStatements) -> Vec<String> {
        let create = |index: &Index| {
            format!(
                "create index {} on {} ({})",
                index_name(table, index),
                table.name,
                index.columns.join(", ")
            )
        };
        table.indexes.iter().map(create).collect()
    }

    fn drop_table(&self, table: &Table) -> Vec<String> {
        vec![format!("drop table if exists {}", table.name)]
    }

    fn insert(&self, table: &Table, rows: u32) -> String {
        let columns: Vec<&str> = table.columns[1..]
            .iter()
            .map(|column| column.name)
            .collect();
        let row = format!("({})", vec!["?"; columns.len()].join(","));
        let values = vec![row.as_str(); rows as usize].join(",");
        format!(
            "insert into {} ({}) values {values}",
            table.name,
            columns.join(", ")
        )
    }

    /// Writers take turns, so `shared` makes no difference.
    fn delete_oldest(&self, table: &Table, rows: u32, _shared: bool) -> String {
        let (name, key) = (&table.name, table.key());
        format!(
            "delete from {name} where {key} in (select {key} from {name} where {key} >= ? order by {key} limit {rows})"
        )
    }

    fn range_scan(&self, table: &Table, scan: RangeScan<'_>) -> String {
        let columns = scan.index.columns.join(", ");
        let comparison = match scan.comparison {
            Comparison::AtLeast => ">=",
            Comparison::Above => ">",
        };
        format!(
            "select {columns} from {} indexed by {} where {} {comparison} ? order by {columns} limit {}",
            table.name,
            index_name(table, scan.index),
            scan.index.columns[0],
            scan.limit
        )
    }

    fn point_lookup(&self, table: &Table, columns: &[&str], keys: u32) -> String {
        let (key, places) = (table.key(), vec!["?"; keys as usize].join(","));
        format!(
            "select {key}, {} from {} where {key} in ({places})",
            columns.join(", "),
            table.name
        )
    }

    fn min_key(&self, table: &Table) -> String {
        format!("select min({}) from {}", table.key(), table.name)
    }

    fn max_key(&self, table: &Table) -> String {
        format!("select max({}) from {}", table.key(), table.name)
    }

    fn count_rows(&self, table: &Table, index: Option<&Index>) -> Vec<String> {
        vec![match index {
            None => format!("select count(*) from {} not indexed", table.name),
            // `indexed by` fails rather than use another; the condition holds for every row and needs the index.
            Some(index) => format!(
                "select count(*) from {} indexed by {} where {} >= 0",
                table.name,
                index_name(table, index),
                index.columns[0]
            ),
        }]
    }

    fn begin(&self) -> &'static str {
        "begin"
    }

    fn commit(&self) -> &'static str {
        "commit"
    }
}
