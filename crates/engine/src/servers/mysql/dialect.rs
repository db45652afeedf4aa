//! The SQL dialect of MySQL and MariaDB.
//!
//! A timestamp is a `datetime` without fractions of a second, as in the Insert Benchmark; the
//! server rounds. Deleters that share a table wait for each other's rows, because `delete` cannot
//! skip locked ones.

use words::{Engine, IndexStatements};

use crate::contract::schema::DefinedNames;
use crate::contract::{
    BulkLoad, ColumnType, Dialect, Index, Rows, Table, Value, text_literal, with_table_options,
};

const DEFINED: DefinedNames = DefinedNames { int4: "int", int8: "bigint", timestamp: "datetime" };

/// The columns of a plan, as MySQL has them since 5.7.
const PLAN_COLUMNS: [&str; 12] = [
    "id",
    "select_type",
    "table",
    "partitions",
    "type",
    "possible_keys",
    "key",
    "key_len",
    "ref",
    "rows",
    "filtered",
    "extra",
];
/// The columns that MariaDB's plans lack.
const ONLY_OF_MYSQL: [&str; 2] = ["partitions", "filtered"];
/// The columns in the line of a plan, with the text before each.
const PLAN_TEXT: [(&str, &str); 4] =
    [(" ", "table"), (": ", "type"), (" on ", "key"), ("; ", "extra")];

/// The storage engine of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageEngine {
    /// InnoDB.
    InnoDb,
    /// MyRocks, which servers call `ROCKSDB`.
    RocksDb,
    /// Another one, with the server's name for it.
    Other(String),
}

impl StorageEngine {
    /// Returns the storage engine of that name; `myrocks` means `rocksdb`.
    pub fn by_name(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "innodb" => Self::InnoDb,
            "rocksdb" | "myrocks" => Self::RocksDb,
            _ => Self::Other(name.to_string()),
        }
    }

    /// Returns the server's name for the storage engine.
    pub fn name(&self) -> &str {
        match self {
            Self::InnoDb => "InnoDB",
            Self::RocksDb => "ROCKSDB",
            Self::Other(name) => name,
        }
    }
}

/// The dialect of MySQL and MariaDB, for tables in one storage engine.
#[derive(Clone, Debug)]
pub struct MysqlDialect {
    /// The storage engine of new tables.
    pub storage_engine: StorageEngine,
    /// SQL after the storage engine in the statements that create tables.
    pub table_options: String,
}

impl Dialect for MysqlDialect {
    fn column_type(&self, kind: ColumnType) -> String {
        match kind {
            ColumnType::AutoKey => "bigint not null auto_increment".into(),
            ColumnType::AutoInt4 { .. } => "int not null auto_increment".into(),
            ColumnType::Int4 => "int not null".into(),
            ColumnType::Int4OrZero => "int not null default 0".into(),
            ColumnType::Timestamp => "datetime not null".into(),
            ColumnType::Text(length) => format!("varchar({length}) not null"),
            ColumnType::Char(length) => format!("char({length}) not null default ''"),
            ColumnType::Defined { kind, nullable, .. } => DEFINED.column_type(kind, nullable),
        }
    }

    fn index_hint(&self, _table: &Table, index: &Index) -> String {
        format!(" force index ({})", index.name)
    }

    fn list_indexes(&self, table: &Table) -> String {
        format!(
            "select index_name, seq_in_index, column_name from information_schema.statistics \
             where table_schema = database() and table_name = '{}' and sub_part is null \
             and index_type not in ('HASH', 'FULLTEXT', 'SPATIAL', 'RTREE') order by index_name, seq_in_index",
            table.name
        )
    }

    fn create_table(&self, table: &Table) -> Vec<String> {
        let key = table.key();
        let partitions = table.partitions.map_or(String::new(), |partitions| {
            let definitions = (0..partitions.count).map(|number| {
                let end = match partitions.end(number) {
                    Some(end) => format!("({end})"),
                    None => "maxvalue".into(),
                };
                format!("partition p{number} values less than {end}")
            });
            format!(" partition by range ({key}) ({})", Vec::from_iter(definitions).join(", "))
        });

        let index = match table.primary_key().as_slice() {
            [] if matches!(table.columns[0].kind, ColumnType::Defined { .. }) => String::new(),
            [] => format!(", key x{key} ({key})"),
            columns => format!(", primary key ({})", columns.join(", ")),
        };

        let create = format!(
            "create table {} ({}{index}) engine={}",
            table.name,
            self.column_definitions(table),
            self.storage_engine.name()
        );
        vec![with_table_options(create, &self.table_options) + &partitions]
    }

    fn create_indexes(&self, table: &Table, statements: IndexStatements) -> Vec<String> {
        let additions: Vec<String> = table
            .indexes
            .iter()
            .map(|index| format!("add index {} ({})", index.name, index.columns.join(", ")))
            .collect();
        if additions.is_empty() {
            return Vec::new();
        }

        let is_one_each = match statements {
            // MyRocks is fastest with one index at a time.
            IndexStatements::Usual => self.storage_engine == StorageEngine::RocksDb,
            IndexStatements::One => false,
            IndexStatements::Each => true,
        };
        let changes = if is_one_each { additions } else { vec![additions.join(", ")] };
        changes.iter().map(|change| format!("alter table {} {change}", table.name)).collect()
    }

    fn bulk_load(&self) -> Option<BulkLoad> {
        (self.storage_engine == StorageEngine::RocksDb).then_some(BulkLoad {
            begin: &["set session unique_checks = 0, session rocksdb_bulk_load = 1"],
            // Installs the last file.
            end: &["set session rocksdb_bulk_load = 0, session unique_checks = 1"],
        })
    }

    fn delete_oldest(&self, table: &Table, rows: u32, _shared: bool) -> String {
        let (name, key) = (&table.name, table.key());
        format!("delete from {name} where {key} >= ? order by {key} limit {rows}")
    }

    fn explain(&self, sql: &str, values: &[Value]) -> Vec<String> {
        let literal = |value: &Value| match value {
            Value::Int4(value) => value.to_string(),
            Value::Int8(value) => value.to_string(),
            Value::Timestamp(us) => format!("timestamp('1970-01-01') + interval {us} microsecond"),
            Value::Text(text) => text_literal(&text.replace('\\', "\\\\")),
        };

        let mut literals = values.iter().map(literal);

        let mut explain = String::from("explain format=traditional ");
        let mut is_text = false;
        for char in sql.chars() {
            is_text ^= char == '\'';
            let placeholder = (char == '?' && !is_text).then_some(());
            match placeholder.and_then(|()| literals.next()) {
                Some(literal) => explain.push_str(&literal),
                None => explain.push(char),
            }
        }

        vec![explain]
    }

    fn plan_text(&self, rows: &Rows) -> String {
        let lines: Vec<String> = rows.iter().map(|row| plan_line(row)).collect();
        lines.join("\n")
    }

    fn digest(&self, table: &Table, every: u64) -> Vec<String> {
        // `concat_ws` leaves out NULL.
        let values = table.columns.iter().map(|column| format!("ifnull({}, '-')", column.name));
        let columns = Vec::from_iter(values).join(", ");
        let (key, name) = (table.key(), &table.name);

        vec![
            // The text of times depends on this.
            "set time_zone = '+00:00'".into(),
            format!(
                "select sum(crc32(concat_ws('|', {columns}))) from {name} where mod({key}, {every}) = 0"
            ),
        ]
    }

    fn count_rows(&self, table: &Table, index: Option<&Index>) -> Vec<String> {
        vec![match index {
            None if table.is_key_primary() => {
                format!("select count(*) from {} force index (primary)", table.name)
            }
            // Without an index, the server reads the table.
            None => format!("select count(*) from {} use index ()", table.name),
            Some(index) => count_by_index(table, index, index.name),
        }]
    }

    fn set_isolation(&self, level: &str) -> Option<String> {
        Some(format!("set session transaction isolation level {level}"))
    }

    fn engine(&self) -> Option<Engine> {
        Some(Engine::Mysql)
    }

    fn begin(&self) -> &'static str {
        // Takes the snapshot now instead of at the first read.
        "start transaction with consistent snapshot"
    }
}

/// Returns the line of a plan for a row of `explain`.
fn plan_line(row: &[Option<String>]) -> String {
    let is_mysql = row.len() == PLAN_COLUMNS.len();
    let names: Vec<&str> =
        PLAN_COLUMNS.into_iter().filter(|name| is_mysql || !ONLY_OF_MYSQL.contains(name)).collect();

    // A server with other columns is not known.
    let column = |name: &str| {
        if names.len() != row.len() {
            return None;
        }
        let place = names.iter().position(|known| *known == name)?;
        row[place].as_deref().filter(|value| !value.is_empty())
    };

    let mut line = column("select_type").unwrap_or_default().to_lowercase();
    for (before, name) in PLAN_TEXT {
        if let Some(value) = column(name) {
            line += &format!("{before}{value}");
        }
    }

    match (column("rows"), column("filtered")) {
        (None, _) => {}
        (Some(rows), None) => line += &format!("  (rows={rows})"),
        (Some(rows), Some(filtered)) => {
            line += &format!("  (rows={rows}, filtered={filtered})");
        }
    }
    line
}

/// Returns SQL that counts rows with one index, whose name in the server is `name`. If the index
/// begins with a number, a condition that all rows meet keeps the server from counting in another
/// way.
pub(super) fn count_by_index(table: &Table, index: &Index, name: &str) -> String {
    let first = index.columns.first().copied().unwrap_or_default();
    let is_int = table.columns.iter().any(|column| {
        column.name == first && matches!(column.kind, ColumnType::Int4 | ColumnType::Int4OrZero)
    });

    let condition = if is_int {
        // No workload uses the smallest integer.
        format!(" where {first} > {}", i32::MIN)
    } else {
        String::new()
    };

    format!(
        "select count(*) from {} force index (`{}`){condition}",
        table.name,
        name.replace('`', "``")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Partitions;
    use crate::contract::schema::tests::table;

    fn dialect(name: &str) -> MysqlDialect {
        MysqlDialect { storage_engine: StorageEngine::by_name(name), table_options: String::new() }
    }

    #[test]
    fn partitions_have_no_gaps_and_the_last_has_no_end() {
        let partitions = Some(Partitions { count: 3, rows_each: 100 });
        assert_eq!(
            dialect("innodb").create_table(&table(partitions)),
            [
                "create table pi1 (transactionid bigint not null auto_increment, price int not null, \
                 data varchar(40) not null, primary key (transactionid)) engine=InnoDB \
                 partition by range (transactionid) (partition p0 values less than (101), \
                 partition p1 values less than (201), partition p2 values less than maxvalue)"
            ]
        );
    }

    #[test]
    fn myrocks_creates_one_index_at_a_time() {
        assert_eq!(
            dialect("innodb").create_indexes(&table(None), IndexStatements::Usual),
            ["alter table pi1 add index pdc (price, data), add index byprice (price)"]
        );
        assert_eq!(
            dialect("MyRocks").create_indexes(&table(None), IndexStatements::Usual).len(),
            2
        );
    }
}
