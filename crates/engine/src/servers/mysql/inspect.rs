//! Counts the rows of a table with one of its indexes.

use super::MysqlSession;
use super::dialect::{self, MysqlDialect};
use crate::contract::{Index, IndexRows, Session, Table};
use crate::error::Error;
use crate::support::catalog::index_on;

/// The code of the server's error for an index that does not exist or cannot be used.
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
        // A count without this index would not check it.
        Ok(false) => Ok(IndexRows::NotCounted(format!(
            "the server does not use only the index `{name}` to count rows"
        ))),
        Err(error) if error.code.as_deref() == Some(NO_SUCH_INDEX) => Ok(IndexRows::NoIndex),
        Err(error) => Err(error),
    }
}

/// Returns true when the query plan reads only that index. The columns of `explain` depend on the
/// version, but not their order: `key` follows `possible_keys`, and the number of columns shows
/// whether `partitions` and `filtered` exist.
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

    Ok(row.get(key).is_some_and(|key| key.as_deref() == Some(index)))
}
