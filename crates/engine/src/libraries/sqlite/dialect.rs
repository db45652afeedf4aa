//! The SQL dialect of SQLite.

use std::collections::BTreeMap;

use words::Engine;

use crate::contract::schema::DefinedNames;
use crate::contract::{ColumnType, Dialect, Index, Rows, Table, Value, global_index_name};

/// A key of this integer type is the table itself.
const DEFINED: DefinedNames =
    DefinedNames { int4: "integer", int8: "integer", timestamp: "timestamp" };

/// The dialect of SQLite.
#[derive(Debug)]
pub struct SqliteDialect;

impl Dialect for SqliteDialect {
    fn column_type(&self, kind: ColumnType) -> String {
        match kind {
            ColumnType::AutoKey | ColumnType::AutoInt4 { .. } => "integer primary key".into(),
            ColumnType::Int4OrZero => "integer not null default 0".into(),
            ColumnType::Char(length) => format!("char({length}) not null default ''"),
            ColumnType::Int4 | ColumnType::Timestamp => "integer not null".into(),
            ColumnType::Text(length) => format!("varchar({length})"),
            ColumnType::Defined { kind, nullable, .. } => DEFINED.column_type(kind, nullable),
        }
    }

    fn index_hint(&self, table: &Table, index: &Index) -> String {
        format!(" indexed by {}", global_index_name(table, index))
    }

    /// Needs SQLite 3.16, whose pragmas can be read like tables. Assay knows the indexes of the
    /// tables that it makes itself.
    fn list_indexes(&self, table: &Table) -> String {
        format!(
            "select l.name, i.seqno + 1, i.name from pragma_index_list('{0}') l, pragma_index_info(l.name) i \
             where not l.partial union all select 'primary key', 1, name from pragma_table_info('{0}') where pk = 1 \
             order by 1, 2",
            table.name
        )
    }

    /// Creates the table with its primary key, which is the table itself.
    fn create_table(&self, table: &Table) -> Vec<String> {
        let columns = self.column_definitions(table);
        // The types of other tables say which column is the primary key.
        let is_defined = matches!(table.columns[0].kind, ColumnType::Defined { .. });
        let primary = match table.primary_key().as_slice() {
            key @ [_, ..] if is_defined => format!(", primary key ({})", key.join(", ")),
            _ => String::new(),
        };
        vec![format!("create table {} ({columns}{primary})", table.name)]
    }

    /// Ignores `shared`, because writers take turns.
    fn delete_oldest(&self, table: &Table, rows: u32, _shared: bool) -> String {
        let (name, key) = (&table.name, table.key());
        format!(
            "delete from {name} where {key} in (select {key} from {name} where {key} >= ? order by {key} limit {rows})"
        )
    }

    /// Leaves parameters unbound: plans depend on values only with `SQLITE_ENABLE_STAT4`.
    fn explain(&self, sql: &str, _: &[Value]) -> Vec<String> {
        vec![format!("explain query plan {sql}")]
    }

    fn plan_text(&self, rows: &Rows) -> String {
        // Each row has its number, its parent's number, an unused column and the text.
        let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
        let mut lines = Vec::new();

        for row in rows {
            let [Some(number), Some(parent), _, Some(text)] = row.as_slice() else {
                continue;
            };

            let depth = depths.get(parent.as_str()).map_or(0, |depth| depth + 1);
            depths.insert(number, depth);
            lines.push(format!("{:1$}{text}", "", 2 * depth));
        }
        lines.join("\n")
    }

    fn count_rows(&self, table: &Table, index: Option<&Index>) -> Vec<String> {
        vec![match index {
            None => format!("select count(*) from {} not indexed", table.name),
            // `indexed by` fails if the index cannot be used. The condition is true for every row
            // and needs the index.
            Some(index) => format!(
                "select count(*) from {}{} where {} >= {}",
                table.name,
                self.index_hint(table, index),
                index.columns[0],
                i64::MIN
            ),
        }]
    }

    fn engine(&self) -> Option<Engine> {
        Some(Engine::Sqlite)
    }

    fn begin(&self) -> &'static str {
        "begin"
    }

    /// Begins a transaction. One that will write takes the lock at once: if it read first, SQLite
    /// would refuse its write after another connection's.
    fn begin_transaction(&self, writes: bool) -> &'static str {
        if writes { "begin immediate" } else { "begin" }
    }
}
