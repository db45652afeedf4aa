//! Counts the rows of a table with one of its indexes.

use std::collections::BTreeSet;

use super::{PostgresDialect, PostgresSession};
use crate::contract::{Dialect, Index, IndexRows, Session, Table};
use crate::error::Error;
use crate::support::catalog::index_on;

pub(super) fn count_by_index(
    session: &mut PostgresSession,
    dialect: &PostgresDialect,
    table: &Table,
    index: &Index,
) -> Result<IndexRows, Error> {
    let Some(name) = index_on(session, dialect, table, &index.columns)? else {
        return Ok(IndexRows::NoIndex);
    };

    let statements = dialect.count_rows(table, Some(index));
    let Some((count, settings)) = statements.split_last() else {
        return Ok(IndexRows::NotCounted("no statement counts them".into()));
    };
    for sql in settings {
        session.query(sql)?;
    }

    let indexes = index_and_partitions(session, &name)?;
    let plan = session.query_column(&format!("explain {count}"))?;
    // A count without this index would not check it.
    if !reads_only(&plan, &indexes) {
        return Ok(IndexRows::NotCounted(format!(
            "the server does not use only the index `{name}` to count rows"
        )));
    }

    let rows = session.query_i64(count)?.unwrap_or(0);
    Ok(IndexRows::Counted(rows as u64))
}

/// Returns the names of an index and its partitions, as query plans have them.
fn index_and_partitions(
    session: &mut PostgresSession,
    index: &str,
) -> Result<BTreeSet<String>, Error> {
    let name = index.replace('\'', "''");
    let sql = format!(
        "select c.oid::regclass from pg_class c where c.oid = to_regclass('{name}') \
         union select p.relid::regclass from pg_partition_tree(to_regclass('{name}')) p"
    );
    Ok(session.query_column(&sql)?.into_iter().collect())
}

/// Returns true when the query plan has scans, and all read one of `indexes`.
fn reads_only(plan: &[String], indexes: &BTreeSet<String>) -> bool {
    let mut scans = 0;
    for line in plan {
        // Such as `Index Only Scan using NAME on TABLE`. `Subquery Scan on ordered` reads nothing
        // itself.
        let Some((kind, target)) = line.split_once("Scan ") else {
            continue;
        };

        if kind.trim_end().ends_with("Subquery") {
            continue;
        }

        let name =
            target.strip_prefix("using ").and_then(|target| target.split_whitespace().next());
        if !kind.contains("Index") || !name.is_some_and(|name| indexes.contains(name)) {
            return false;
        }
        scans += 1;
    }
    scans > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(plan: &[&str]) -> bool {
        let indexes = BTreeSet::from(["pi1_pdc".to_string(), "pi1_p0_idx".to_string()]);
        reads_only(&plan.iter().map(|line| line.to_string()).collect::<Vec<_>>(), &indexes)
    }

    #[test]
    fn a_plan_must_read_only_that_index() {
        assert!(uses(&[
            "Aggregate  (cost=1)",
            "  ->  Index Only Scan using pi1_pdc on pi1  (cost=1)"
        ]));
        assert!(uses(&[
            "->  Merge Append",
            "  -> Index Scan using pi1_p0_idx on pi1_p0 pi1_1",
            "Index Only Scan using pi1_pdc on x"
        ]));
        assert!(!uses(&["Aggregate", "  ->  Seq Scan on pi1"]));
        assert!(!uses(&["  ->  Index Only Scan using pi1_pkey on pi1"]));
        assert!(!uses(&[
            "Index Only Scan using pi1_pdc on pi1",
            "  ->  Bitmap Index Scan on pi1_pdc"
        ]));
        assert!(!uses(&["Aggregate"]));
    }
}
