//! Makes the tables of a cell, and drops them where others use the server too.

use anyhow::Context;
use engine::{Session, SqlEngine, Table};
use record::RunDir;

/// Makes tables, and tells `made` of each as soon as it is there.
pub fn make<E: SqlEngine>(
    engine: &E,
    session: &mut E::Session,
    tables: &[Table],
    mut made: impl FnMut(&Table) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for table in tables {
        for (number, sql) in engine.dialect().create_table(table).iter().enumerate() {
            if let Err(error) = session.query(sql) {
                let is_there = matches!(error.code.as_deref(), Some("42P07" | "1050"));
                let failed = anyhow::Error::from(error).context(format!("`{sql}`"));
                return Err(match is_there {
                    true => failed.context(format!(
                        "a table of that name exists, which this run did not make and leaves as it is; if a killed run left it, \
                         resume that run with `assay run --resume` to drop it, or use `drop table {}`",
                        table.name
                    )),
                    false => failed,
                });
            }
            // The first makes the table: what fails or is killed in those that follow must not leave it.
            if number == 0 {
                made(table)?;
            }
        }
    }
    Ok(())
}

/// Drops the tables that cells of this run made in the server of `build` and could not drop: a server or assay was
/// killed.
pub fn drop_what_was_left(
    run: &RunDir,
    build: &str,
    session: &mut impl Session,
) -> anyhow::Result<()> {
    for directory in run.started_cells()? {
        let mut record = directory.read()?;
        if record.build == build && !record.tables_left.is_empty() {
            drop_all(session, &mut record.tables_left)?;
            directory.write(&record)?;
        }
    }
    Ok(())
}

/// Drops tables, and takes those that are gone out of the list.
pub fn drop_all(session: &mut impl Session, tables: &mut Vec<String>) -> anyhow::Result<()> {
    while let Some(table) = tables.last() {
        let sql = format!("drop table if exists {table}");
        session.query(&sql).with_context(|| format!("`{sql}`"))?;
        tables.pop();
    }
    Ok(())
}
