//! Creates the tables of a cell, and drops them in a foreign server.

use anyhow::Context;
use engine::{Session, SqlEngine, Table};
use record::RunDir;

use super::procedures;

/// Creates tables, and calls `made` for each as soon as it exists.
pub fn make<E: SqlEngine>(
    engine: &E,
    session: &mut E::Session,
    tables: &[Table],
    mut made: impl FnMut(&Table) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for table in tables {
        for (number, sql) in engine.dialect().create_table(table).iter().enumerate() {
            if let Err(error) = session.query(sql) {
                return Err(creation_error(error, sql, table));
            }

            // The first statement creates the table: it must be dropped even if the following ones
            // fail.
            if number == 0 {
                made(table)?;
            }
        }
    }
    Ok(())
}

/// Returns the error of a statement that creates a table, with advice if the table exists.
fn creation_error(error: engine::Error, sql: &str, table: &Table) -> anyhow::Error {
    // The codes of PostgreSQL and of MySQL for a table that exists.
    let is_there = matches!(error.code.as_deref(), Some("42P07" | "1050"));
    let failed = anyhow::Error::from(error).context(format!("`{sql}`"));
    if !is_there {
        return failed;
    }

    failed.context(format!(
        "the table exists, and this run did not create it; if a killed run left it behind, \
         resume that run with `assay run --resume` to drop it, or use `drop table {}`",
        table.name
    ))
}

/// Drops the tables and procedures that cells of this run created in the server of `build` and could
/// not drop because a server or assay was killed.
pub fn drop_leftovers(run: &RunDir, build: &str, session: &mut impl Session) -> anyhow::Result<()> {
    for directory in run.started_cells()? {
        let mut record = directory.read()?;
        let has_left = !record.tables_left.is_empty() || !record.procedures_left.is_empty();
        if record.build == build && has_left {
            procedures::drop_all(session, &mut record.procedures_left, 0)?;
            drop_all(session, &mut record.tables_left, 0)?;
            // Written for each cell: the tables are gone, whatever happens next.
            directory.write(&record)?;
        }
    }

    Ok(())
}

/// Drops tables, and removes them from the list. Leaves the first `kept` of them.
pub fn drop_all(
    session: &mut impl Session,
    tables: &mut Vec<String>,
    kept: usize,
) -> anyhow::Result<()> {
    // A table leaves the list only when it is gone, so that a later try drops the rest.
    while let Some(table) = tables.get(kept..).and_then(<[String]>::last) {
        let sql = format!("drop table if exists {table}");
        session.query(&sql).with_context(|| format!("`{sql}`"))?;
        tables.pop();
    }
    Ok(())
}
