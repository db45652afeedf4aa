//! Reads the sizes of tables and indexes.

use words::{Counter, Role};

use super::observer::if_present;
use super::session::MysqlSession;
use crate::contract::{Rows, Session, Table};
use crate::error::Error;
use crate::support::figures::{Figure, figures, quoted, table_counters};

/// The sizes of tables with their indexes, as estimated from the last statistics; but the free
/// space is that of now.
const TABLES: &[Figure] = figures! {
    Gauge "data_length" => "table_bytes";
    Gauge "index_length" => "index_bytes";
    Gauge "data_free" => "free_bytes" FreeBytes;
};

/// The sizes of a table whose storage engine counts them in `information_schema` alone.
const OTHERS: &[Figure] = figures! {
    Gauge "data_length + index_length" => "total_bytes" TableBytes;
    Gauge "data_length" => "rows_bytes" PartBytes;
};

/// The pages of each index as of the last statistics.
const INDEXES: &[Figure] = figures! {
    Gauge "size" => "each_index_bytes" PartBytes;
    Gauge "n_leaf_pages" => "each_index_leaf_bytes";
};

/// The size of a table's files.
const FILES: &[Figure] = figures! { Gauge "file_size" => "file_bytes" TableBytes; };

pub(super) fn of_tables(
    session: &mut MysqlSession,
    tables: &[Table],
) -> Result<Vec<Counter>, Error> {
    figures_of(session, tables, TABLES)
}

/// Reads figures of each table that the server has in `information_schema`.
fn figures_of(
    session: &mut MysqlSession,
    tables: &[Table],
    figures: &[Figure],
) -> Result<Vec<Counter>, Error> {
    if tables.is_empty() {
        return Ok(Vec::new());
    }

    let columns: Vec<&str> = figures.iter().map(|figure| figure.source).collect();
    let sql = format!(
        "select table_name, {} from information_schema.tables \
         where table_schema = database() and table_name in ({})",
        columns.join(", "),
        quoted(tables.iter().map(|table| table.name.as_str()))
    );

    Ok(table_counters(session.query(&sql)?, figures))
}

/// Reads the sizes of tables of any storage engine, as the server reports them.
pub(super) fn of_others(
    session: &mut MysqlSession,
    tables: &[Table],
) -> Result<Vec<Counter>, Error> {
    figures_of(session, tables, OTHERS)
}

/// Reads the sizes of InnoDB's indexes and files, summed over partitions; those that the user may
/// read. `views` is the prefix of InnoDB's views.
pub(super) fn of_innodb(
    session: &mut MysqlSession,
    tables: &[Table],
    views: &str,
) -> Result<Vec<Counter>, Error> {
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    let names = quoted(tables.iter().map(|table| table.name.as_str()));
    let mut counters = files(session, &names, views)?;
    counters.extend(indexes(session, &names)?);
    Ok(counters)
}

/// Reads the sizes of the files of tables.
fn files(session: &mut MysqlSession, names: &str, views: &str) -> Result<Vec<Counter>, Error> {
    let table = table_of("substring_index(name, '/', -1)");
    let sql = format!(
        "select {table}, sum(file_size) from information_schema.{views}tablespaces \
         where substring_index(name, '/', 1) = database() and {table} in ({names}) group by 1"
    );
    Ok(table_counters(if_present(session, &sql)?, FILES))
}

/// Reads the sizes of indexes as of the last statistics of their tables.
fn indexes(session: &mut MysqlSession, names: &str) -> Result<Vec<Counter>, Error> {
    let table = table_of("table_name");

    let sums = INDEXES.iter().map(|figure| {
        let name = figure.source;
        format!("sum(if(stat_name = '{name}', stat_value, 0)) * @@innodb_page_size")
    });

    let sql = format!(
        "select concat({table}, '.', index_name), {}, min(last_update) from mysql.innodb_index_stats \
         where database_name = database() and {table} in ({names}) group by 1",
        Vec::from_iter(sums).join(", "),
    );

    let rows = if_present(session, &sql)?;

    let sql = format!(
        "select table_name, update_time from information_schema.tables \
         where table_schema = database() and table_name in ({names})"
    );

    let changes = session.query(&sql)?;
    let current_labels: Vec<String> = rows
        .iter()
        .filter(|row| is_current(row, &changes))
        .filter_map(|row| row.first()?.clone())
        .collect();

    // A size from before the last change is shown, but not compared with that of another time.
    let mut counters = table_counters(rows, INDEXES);
    for counter in &mut counters {
        let is_current = current_labels.iter().any(|label| counter.label() == Some(label));
        if counter.role == Some(Role::PartBytes) && !is_current {
            counter.role = Some(Role::OldPartBytes);
        }
    }
    Ok(counters)
}

/// Returns the expression for the table of a partition, whose name is in `name`.
fn table_of(name: &str) -> String {
    format!("substring_index(replace({name}, '#P#', '#p#'), '#p#', 1)")
}

/// Returns whether the statistics of an index are newer than the last change of its table, given
/// when each table changed. Times are in whole seconds, and a table that was just opened has none.
fn is_current(index: &[Option<String>], changes: &Rows) -> bool {
    let [Some(label), .., updated] = index else {
        return false;
    };
    let table = label.split('.').next();
    let change = changes.iter().find(|row| row[0].as_deref() == table);
    let changed = change.and_then(|row| row[1].as_ref());
    changed.is_some() && updated.as_ref() > changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statistics_from_after_the_last_change_are_current() {
        let current = |updated: &str, changed: Option<&str>| {
            let text = |text: &str| Some(text.to_owned());
            let index = [text("t1.PRIMARY"), text("1"), text("1"), text(updated)];
            is_current(&index, &vec![vec![text("t1"), changed.map(str::to_owned)]])
        };
        let time = "2026-11-24 15:28:27";
        assert!(current("2026-11-24 15:28:28", Some(time)));
        assert!(!current(time, Some(time)));
        assert!(!current("2026-11-24 09:28:28", Some(time)));
        assert!(!current(time, None));
    }
}
