//! What a table holds, counted by way of one of its indexes.

use std::collections::BTreeSet;

use super::PostgresSession;
use super::dialect::PostgresDialect;
use crate::{Dialect, Error, Index, IndexRows, Session, Table, index_on};

pub(super) fn count_by_index(
    session: &mut PostgresSession,
    table: &Table,
    index: &Index,
) -> Result<IndexRows, Error> {
    let dialect = PostgresDialect;
    let Some(name) = index_on(session, &dialect, table, &index.columns)? else {
        return Ok(IndexRows::NoIndex);
    };
    let statements = dialect.count_rows(table, Some(index));
    let Some((count, settings)) = statements.split_last() else {
        return Ok(IndexRows::NotCounted("there is no way to".into()));
    };
    for sql in settings {
        session.query(sql)?;
    }
    let parts = parts(session, &name)?;
    let plan = session.query_column(&format!("explain {count}"))?;
    // A count by another way would say nothing about this index.
    if !reads_only(&plan, &parts) {
        return Ok(IndexRows::NotCounted(format!(
            "the server does not count by way of `{name}` alone"
        )));
    }
    let rows = session.query_i64(count)?.unwrap_or(0);
    Ok(IndexRows::Counted(rows as u64))
}

/// The index, and on a partitioned table those of its partitions, as a plan names them.
fn parts(session: &mut PostgresSession, index: &str) -> Result<BTreeSet<String>, Error> {
    let index = index.replace('\'', "''");
    let sql = format!(
        "select c.oid::regclass from pg_class c where c.oid = to_regclass('{index}') \
         union select p.relid::regclass from pg_partition_tree(to_regclass('{index}')) p"
    );
    Ok(session.query_column(&sql)?.into_iter().collect())
}

/// Whether every scan in the plan is of one of `indexes`, and there is one.
fn reads_only(plan: &[String], indexes: &BTreeSet<String>) -> bool {
    let mut scans = 0;
    for line in plan {
        // `Index Only Scan using NAME on TABLE`, but `Subquery Scan on ordered` reads nothing itself.
        let Some((kind, rest)) = line.split_once("Scan ") else {
            continue;
        };
        if kind.trim_end().ends_with("Subquery") {
            continue;
        }
        let name = rest
            .strip_prefix("using ")
            .and_then(|rest| rest.split_whitespace().next());
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
        reads_only(
            &plan.iter().map(|line| line.to_string()).collect::<Vec<_>>(),
            &indexes,
        )
    }

    #[test]
    fn a_plan_counts_when_it_reads_that_index_and_no_other() {
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
