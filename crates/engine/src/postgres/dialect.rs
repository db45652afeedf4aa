//! SQL as PostgreSQL wants it.

use crate::{ColumnType, Comparison, Dialect, Index, IndexStatements, RangeScan, Table};

/// Keys that a session draws from the sequence at once: as the Insert Benchmark does, so that the sequence is not what
/// is measured.
const SEQUENCE_CACHE: u32 = 1000;

/// How PostgreSQL writes SQL.
#[derive(Clone, Copy, Debug, Default)]
pub struct PostgresDialect;

/// The name of an index: in PostgreSQL it is global, so the table's is put before it.
pub(super) fn index_name(table: &Table, index: &Index) -> String {
    format!("{}_{}", table.name, index.name)
}

/// Counts rows through one index: the order can be had without sorting only from it.
pub(super) fn count_by_index(table: &Table, index: &Index) -> String {
    let columns = index.columns.join(", ");
    format!(
        "select count(*) from (select {columns} from {} order by {columns} offset 0) as ordered",
        table.name
    )
}

/// `($1, $2), ($3, $4)`: `rows` rows of `columns` parameters.
fn parameters(rows: u32, columns: usize) -> String {
    let mut text = String::new();
    let mut number = 0;
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..columns {
            number += 1;
            text.push_str(if column == 0 { "$" } else { ", $" });
            text.push_str(&number.to_string());
        }
        text.push(')');
    }
    text
}

impl Dialect for PostgresDialect {
    fn create_table(&self, table: &Table) -> Vec<String> {
        let Table { name, .. } = table;
        let key = table.key();
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|column| {
                let kind = match column.kind {
                    ColumnType::AutoKey => "bigserial".to_string(),
                    ColumnType::Int4 => "int".to_string(),
                    ColumnType::Timestamp => "timestamp".to_string(),
                    ColumnType::Text(length) => format!("varchar({length})"),
                };
                format!("{} {kind} not null", column.name)
            })
            .collect();
        let columns = columns.join(", ");
        let by_range = table
            .partitions
            .map_or(String::new(), |_| format!(" partition by range ({key})"));
        let mut statements = vec![
            format!("create table {name} ({columns}, primary key ({key})){by_range}"),
            format!("alter sequence {name}_{key}_seq cache {SEQUENCE_CACHE}"),
        ];
        if let Some(partitions) = table.partitions {
            for number in 0..partitions.count {
                // Keys begin at 1.
                let bound = |number: u32| u64::from(number) * partitions.rows_each + 1;
                let from = if number == 0 {
                    "minvalue".into()
                } else {
                    bound(number).to_string()
                };
                let is_last = number + 1 == partitions.count;
                let to = if is_last {
                    "maxvalue".into()
                } else {
                    bound(number + 1).to_string()
                };
                statements.push(format!(
                    "create table {name}_p{number} partition of {name} for values from ({from}) to ({to})"
                ));
            }
        }
        statements
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
        format!(
            "insert into {} ({}) values {}",
            table.name,
            columns.join(", "),
            parameters(rows, columns.len())
        )
    }

    fn delete_oldest(&self, table: &Table, rows: u32, shared: bool) -> String {
        let (name, key) = (&table.name, table.key());
        let skip = if shared {
            " for update skip locked"
        } else {
            ""
        };
        format!(
            "delete from {name} where {key} in \
             (select {key} from {name} where {key} >= $1 order by {key} limit {rows}{skip})"
        )
    }

    fn range_scan(&self, table: &Table, scan: RangeScan<'_>) -> String {
        let columns = scan.index.columns.join(", ");
        let comparison = match scan.comparison {
            Comparison::AtLeast => ">=",
            Comparison::Above => ">",
        };
        format!(
            "select {columns} from {} where {} {comparison} $1 order by {columns} limit {}",
            table.name, scan.index.columns[0], scan.limit
        )
    }

    fn point_lookup(&self, table: &Table, columns: &[&str], keys: u32) -> String {
        let key = table.key();
        let mut selected = vec![key];
        selected.extend_from_slice(columns);
        let parameters: Vec<String> = (1..=keys).map(|number| format!("${number}")).collect();
        format!(
            "select {} from {} where {key} in ({})",
            selected.join(", "),
            table.name,
            parameters.join(", ")
        )
    }

    fn min_key(&self, table: &Table) -> String {
        format!("select min({}) from {}", table.key(), table.name)
    }

    fn max_key(&self, table: &Table) -> String {
        format!("select max({}) from {}", table.key(), table.name)
    }

    fn count_rows(&self, table: &Table, index: Option<&Index>) -> Vec<String> {
        let set = |name: &str, value: &str| format!("set enable_{name} = {value}");
        match index {
            None => vec![
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

    fn begin(&self) -> &'static str {
        // A snapshot that lasts: the isolation by default takes a new one for each statement, which holds back
        // nothing.
        "begin isolation level repeatable read"
    }

    fn commit(&self) -> &'static str {
        "commit"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Partitions};

    fn table(partitions: Option<Partitions>) -> Table {
        let column = |name, kind| Column { name, kind };
        Table {
            name: "pi1".into(),
            columns: vec![
                column("transactionid", ColumnType::AutoKey),
                column("price", ColumnType::Int4),
                column("data", ColumnType::Text(40)),
            ],
            indexes: vec![Index {
                name: "pdc",
                columns: vec!["price", "data"],
            }],
            partitions,
        }
    }

    #[test]
    fn partitions_have_no_gaps_and_the_last_has_no_end() {
        let sql = PostgresDialect.create_table(&table(Some(Partitions {
            count: 3,
            rows_each: 100,
        })));
        assert!(
            sql[0].ends_with("primary key (transactionid)) partition by range (transactionid)"),
            "{}",
            sql[0]
        );
        let bounds: Vec<&str> = sql[2..]
            .iter()
            .map(|s| s.split_once(" from ").unwrap().1)
            .collect();
        assert_eq!(
            bounds,
            [
                "(minvalue) to (101)",
                "(101) to (201)",
                "(201) to (maxvalue)"
            ]
        );
    }

    #[test]
    fn parameters_are_numbered_row_by_row() {
        let sql = PostgresDialect.insert(&table(None), 2);
        assert_eq!(
            sql,
            "insert into pi1 (price, data) values ($1, $2), ($3, $4)"
        );
    }

    #[test]
    fn names_of_indexes_are_the_tables_own() {
        assert_eq!(
            PostgresDialect.create_indexes(&table(None), IndexStatements::Usual),
            ["create index pi1_pdc on pi1 (price, data)"]
        );
    }
}
