//! What a table holds, counted by way of one of its indexes.

use super::MysqlSession;
use super::dialect::{self, MysqlDialect};
use crate::{Error, Index, IndexRows, Session, Table, index_on};

/// The server's answer for an index that is not there, or that it does not use.
const NO_SUCH_INDEX: &str = "1176";

pub(super) fn count_by_index(
    session: &mut MysqlSession,
    dialect: &MysqlDialect,
    table: &Table,
    index: &Index,
) -> Result<IndexRows, Error> {
    let Some(name) = index_on(session, dialect, table, &index.columns)? else {
        return Ok(IndexRows::NoIndex);
    };
    let sql = dialect::count_by_index(table, index, &name);
    match reads_index(session, &sql, &name) {
        Ok(true) => {
            let rows = session.query_i64(&sql)?.unwrap_or(0);
            Ok(IndexRows::Counted(rows.cast_unsigned()))
        }
        // A count by another way would say nothing about this index.
        Ok(false) => Ok(IndexRows::NotCounted(format!(
            "the server does not count by way of `{name}` alone"
        ))),
        Err(error) if error.code.as_deref() == Some(NO_SUCH_INDEX) => Ok(IndexRows::NoIndex),
        Err(error) => Err(error),
    }
}

/// Whether the plan reads that index alone. The columns of a plan differ from version to version, their order does not:
/// `key` is the one after `possible_keys`, and the number of columns tells whether `partitions` and `filtered` are there.
fn reads_index(session: &mut MysqlSession, sql: &str, index: &str) -> Result<bool, Error> {
    let rows = session.query(&format!("explain format=traditional {sql}"))?;
    let [row] = rows.as_slice() else {
        return Ok(false);
    };
    // id, select_type, table, [partitions,] type, possible_keys, key, ...
    let key = match row.len() {
        12 => 6,
        _ => 5,
    };
    Ok(row
        .get(key)
        .is_some_and(|key| key.as_deref() == Some(index)))
}
