//! Makes the tables of a cell, and drops them where others use the server too.

use anyhow::Context;
use engine::{Session, SqlEngine, Table};
use record::{Cell, CellDir, RunDir};

/// Makes the tables in a database of assay's own.
pub fn make(session: &mut impl Session, statements: &[String]) -> anyhow::Result<()> {
    for sql in statements {
        session.query(sql).with_context(|| format!("`{sql}`"))?;
    }
    Ok(())
}

/// The tables of a cell in a server that assay did not start.
pub struct Foreign<'a> {
    /// The record of the run.
    pub run: &'a RunDir,
    /// The record of the cell.
    pub directory: &'a CellDir,
}

impl Foreign<'_> {
    /// Makes the tables and notes which: only those are ever dropped.
    pub fn make<E: SqlEngine>(
        &self,
        record: &mut Cell,
        engine: &E,
        tables: &[Table],
        session: &mut E::Session,
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
                    record.tables_left.push(table.name.clone());
                    self.directory.write(record)?;
                }
            }
        }
        Ok(())
    }

    /// Drops the tables that cells of this run made in the server of `build` and could not drop: a server or assay was
    /// killed.
    pub fn drop_what_was_left(
        &self,
        build: &str,
        session: &mut impl Session,
    ) -> anyhow::Result<()> {
        for directory in self.run.begun_cells()? {
            let mut record = directory.read()?;
            if record.build == build && !record.tables_left.is_empty() {
                drop_all(session, &mut record.tables_left)?;
                directory.write(&record)?;
            }
        }
        Ok(())
    }
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
