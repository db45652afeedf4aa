//! The SQL dialect of PostgreSQL.

use words::Engine;

use crate::contract::schema::DefinedNames;
use crate::contract::{ColumnType, Dialect, Index, Table, Value, text_literal, with_table_options};

const DEFINED: DefinedNames = DefinedNames { int4: "int", int8: "bigint", timestamp: "timestamp" };

/// The number of keys that a session caches from the sequence, as in the Insert Benchmark, so that
/// the sequence is not the bottleneck.
const SEQUENCE_CACHE: u32 = 1000;
/// After this many executions of a prepared statement, the server may keep one plan for all
/// parameters.
const CUSTOM_PLANS: usize = 5;

/// The dialect of PostgreSQL. The server's own option selects the format of new tables.
#[derive(Clone, Debug, Default)]
pub struct PostgresDialect {
    /// SQL at the end of the statements that create tables.
    pub table_options: String,
}

/// Returns SQL that counts rows with an index: only an index on those columns has the order without
/// sorting.
pub(super) fn count_by_index(table: &Table, index: &Index) -> String {
    let columns = index.columns.join(", ");
    format!(
        "select count(*) from (select {columns} from {} order by {columns} offset 0) as ordered",
        table.name
    )
}

impl Dialect for PostgresDialect {
    fn parameter(&self, number: usize) -> String {
        format!("${number}")
    }

    fn column_type(&self, kind: ColumnType) -> String {
        match kind {
            ColumnType::AutoKey => "bigserial not null".into(),
            ColumnType::AutoInt4 { .. } => "serial not null".into(),
            ColumnType::Int4 => "int not null".into(),
            ColumnType::Int4OrZero => "int not null default 0".into(),
            ColumnType::Timestamp => "timestamp not null".into(),
            ColumnType::Text(length) => format!("varchar({length}) not null"),
            ColumnType::Char(length) => format!("char({length}) not null default ''"),
            ColumnType::Defined { kind, nullable, .. } => DEFINED.column_type(kind, nullable),
        }
    }

    fn list_indexes(&self, table: &Table) -> String {
        format!(
            "select i.indexrelid::regclass, k.place, a.attname from pg_index i \
             join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam and m.amname = 'btree' \
             cross join lateral unnest(i.indkey::int2[]) with ordinality k(attribute, place) \
             join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attribute \
             where i.indrelid = to_regclass('{}') and i.indisvalid and i.indpred is null and k.place <= i.indnkeyatts \
             order by i.indexrelid, k.place",
            table.name
        )
    }

    fn create_table(&self, table: &Table) -> Vec<String> {
        let Table { name, .. } = table;
        let key = table.key();
        let columns = self.column_definitions(table);
        let by_range = if table.partitions.is_some() {
            format!(" partition by range ({key})")
        } else {
            String::new()
        };

        let primary = match table.primary_key().as_slice() {
            [] => String::new(),
            columns => format!(", primary key ({})", columns.join(", ")),
        };

        // A partitioned table has no storage of its own.
        let create = format!("create table {name} ({columns}{primary}){by_range}");
        let mut statements = match table.partitions {
            Some(_) => vec![create],
            None => vec![with_table_options(create, &self.table_options)],
        };

        if table.columns[0].kind == (ColumnType::AutoInt4 { primary: false }) {
            statements.push(format!("create index {name}_x{key} on {name} ({key})"));
        }

        // The tables of sysbench have a default sequence.
        if table.columns[0].kind == ColumnType::AutoKey {
            statements.push(format!("alter sequence {name}_{key}_seq cache {SEQUENCE_CACHE}"));
        }

        if let Some(partitions) = table.partitions {
            for number in 0..partitions.count {
                let key =
                    |key: Option<u64>, other: &str| key.map_or(other.into(), |key| key.to_string());
                let before = number.checked_sub(1);

                let from = key(before.and_then(|before| partitions.end(before)), "minvalue");
                let to = key(partitions.end(number), "maxvalue");

                let create = format!(
                    "create table {name}_p{number} partition of {name} for values from ({from}) to ({to})"
                );
                statements.push(with_table_options(create, &self.table_options));
            }
        }
        statements
    }

    fn assign_keys_above(&self, table: &Table, last: u64) -> Vec<String> {
        let (name, key) = (&table.name, table.key());
        match last {
            0 => Vec::new(),
            _ => vec![format!("select setval(pg_get_serial_sequence('{name}', '{key}'), {last})")],
        }
    }

    fn delete_oldest(&self, table: &Table, rows: u32, shared: bool) -> String {
        let (name, key) = (&table.name, table.key());
        let oldest =
            format!("select {key} from {name} where {key} >= $1 order by {key} limit {rows}");
        if shared {
            format!("delete from {name} where {key} = any(array({oldest} for update skip locked))")
        } else {
            format!("delete from {name} where {key} in ({oldest})")
        }
    }

    /// Prepares the statement and explains it as often as it takes until the server has chosen
    /// between a plan for these parameters and one for all. The load's sessions are in that
    /// state for almost all of a step.
    fn explain(&self, sql: &str, values: &[Value]) -> Vec<String> {
        let typed = |value: &Value| match value {
            Value::Int4(value) => ("int", value.to_string()),
            Value::Int8(value) => ("bigint", value.to_string()),
            Value::Timestamp(us) => {
                ("timestamp", format!("timestamp 'epoch' + {us} * interval '1 microsecond'"))
            }
            Value::Text(text) => ("text", text_literal(text)),
        };

        let (types, literals): (Vec<&str>, Vec<String>) = values.iter().map(typed).unzip();
        let (types, literals) = if values.is_empty() {
            (String::new(), String::new())
        } else {
            (format!("({})", types.join(", ")), format!("({})", literals.join(", ")))
        };

        let mut statements =
            vec!["deallocate all".to_owned(), format!("prepare explained{types} as {sql}")];
        let explain = format!("explain execute explained{literals}");
        statements.extend(vec![explain; CUSTOM_PLANS + 1]);
        statements
    }

    fn digest(&self, table: &Table, every: u64) -> Vec<String> {
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let (columns, key, name) = (columns.join(", "), table.key(), &table.name);
        vec![
            // The text of times depends on these.
            "set timezone = 'UTC'".into(),
            "set datestyle = 'ISO, YMD'".into(),
            format!(
                "select sum(('x' || substr(md5(row({columns})::text), 1, 15))::bit(60)::bigint) \
                 from {name} where mod({key}, {every}) = 0"
            ),
        ]
    }

    fn count_rows(&self, table: &Table, index: Option<&Index>) -> Vec<String> {
        let set = |name: &str, value: &str| format!("set enable_{name} = {value}");

        match index {
            None => vec![
                "set statement_timeout = 0".into(),
                set("seqscan", "on"),
                set("indexscan", "off"),
                set("indexonlyscan", "off"),
                set("bitmapscan", "off"),
                format!("select count(*) from {}", table.name),
            ],
            Some(index) => vec![
                set("seqscan", "off"),
                set("bitmapscan", "off"),
                set("sort", "off"),
                set("indexscan", "on"),
                set("indexonlyscan", "on"),
                count_by_index(table, index),
            ],
        }
    }

    fn set_isolation(&self, level: &str) -> Option<String> {
        Some(format!("set session characteristics as transaction isolation level {level}"))
    }

    fn engine(&self) -> Option<Engine> {
        Some(Engine::Postgres)
    }

    fn begin(&self) -> &'static str {
        // Keeps its snapshot. The default isolation level takes a new snapshot for each statement.
        "begin isolation level repeatable read"
    }
}

#[cfg(test)]
mod tests {
    use words::IndexStatements;

    use super::*;
    use crate::contract::Partitions;
    use crate::contract::schema::tests::table;

    #[test]
    fn partitions_have_no_gaps_and_the_last_has_no_end() {
        let sql = PostgresDialect::default()
            .create_table(&table(Some(Partitions { count: 3, rows_each: 100 })));
        assert!(
            sql[0].ends_with("primary key (transactionid)) partition by range (transactionid)"),
            "{}",
            sql[0]
        );
        let bounds: Vec<&str> =
            sql[2..].iter().map(|s| s.split_once(" from ").unwrap().1).collect();
        assert_eq!(bounds, ["(minvalue) to (101)", "(101) to (201)", "(201) to (maxvalue)"]);
    }

    #[test]
    fn parameters_are_numbered_row_by_row() {
        let sql = PostgresDialect::default().insert(&table(None), 2);
        assert_eq!(sql, "insert into pi1 (price, data) values ($1, $2), ($3, $4)");
    }

    #[test]
    fn index_names_begin_with_the_tables_name() {
        assert_eq!(
            PostgresDialect::default().create_indexes(&table(None), IndexStatements::Usual),
            [
                "create index pi1_pdc on pi1 (price, data)",
                "create index pi1_byprice on pi1 (price)"
            ]
        );
    }
}
