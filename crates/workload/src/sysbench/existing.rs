//! Existing tables, created by `sysbench prepare` and perhaps changed since. They are used as they
//! are, after a check of what the tests require.

use engine::{Dialect, Error, Session, SqlEngine, Table, index_on};
use plan::Checks;

use super::ledger::Ledger;
use super::{Sysbench, other};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExistingTable {
    rows: u64,
    /// Missing ids among those that tests draw; `None` if they were not counted.
    missing: Option<u64>,
    key_min: Option<i64>,
    key_max: Option<i64>,
    is_indexed: bool,
}

impl ExistingTable {
    /// Returns whether all ids up to `rows` exist, as far as that was checked.
    fn is_whole(&self, rows: u64) -> bool {
        match self.missing {
            Some(missing) => missing == 0,
            None => self.key_min == Some(1) && self.key_max >= i64::try_from(rows).ok(),
        }
    }
}

impl Sysbench {
    /// Adopts the existing tables. Returns their differences from the plan, and the consequences
    /// for the results.
    ///
    /// # Errors
    /// Fails if a table is missing or has other columns, and if an index is missing or exists
    /// before a step creates it.
    pub fn adopt_tables<E: SqlEngine>(&mut self, engine: &E) -> Result<Vec<String>, Error> {
        let mut existing = Vec::new();
        for table in &self.tables {
            existing.push(inspect_existing(engine, table, &self.plan)?);
        }
        for (ledger, table) in self.ledgers.iter_mut().zip(&existing) {
            let keys = table.key_min.zip(table.key_max);
            let is_whole = table.is_whole(self.plan.rows);
            *ledger = Ledger::found(table.rows, keys, is_whole, table.is_indexed);
        }
        Ok(self.differences(&existing))
    }

    /// Returns the differences of the tables from those of the plan.
    fn differences(&self, existing: &[ExistingTable]) -> Vec<String> {
        let rows = self.plan.rows;
        let mut messages = Vec::new();

        if let Some(found) = self.different_tables(existing, |table| table.rows != rows) {
            let DifferentTables { name, first, others } = found;
            messages.push(format!(
                "`{name}` has {} rows at the start of the cell instead of the plan's `rows = {rows}`{others}: tests still draw \
                 ids and values of `k` from 1 to {rows}; something changed the table before, so cells may not be measured on \
                 the same data",
                first.rows
            ));
        }

        if let Some(found) = self.different_tables(existing, |table| !table.is_whole(rows)) {
            let DifferentTables { name, first, others } = found;
            let missing = match first.missing {
                Some(missing) => format!("`{name}` lacks {missing} of the ids 1 to {rows}"),
                None => format!("`{name}` lacks some of the ids 1 to {rows}"),
            };
            messages.push(format!(
                "{missing}{others}: a query for a missing id returns no row, which is cheaper and does not count as wrong"
            ));
        }

        if !self.plan.secondary_index
            && let Some(found) = self.different_tables(existing, |table| table.is_indexed)
        {
            let DifferentTables { name, others, .. } = found;
            messages.push(format!(
                "`{name}` has an index on `k` despite the plan's `secondary-index = false`{others}: writes maintain it, \
                 and reads by `k` use it"
            ));
        }
        messages
    }

    /// Returns the tables that differ, or `None` if none does.
    fn different_tables<'a>(
        &'a self,
        existing: &'a [ExistingTable],
        differs: impl Fn(&ExistingTable) -> bool,
    ) -> Option<DifferentTables<'a>> {
        let mut different =
            self.tables.iter().zip(existing).filter(|(_, existing)| differs(existing));
        let (table, first) = different.next()?;
        let others = match different.count() {
            0 => String::new(),
            1 => ", as does another table".into(),
            count => format!(", as do {count} other tables"),
        };
        Some(DifferentTables { name: &table.name, first, others })
    }
}

/// The tables that differ from the plan in one way.
struct DifferentTables<'a> {
    /// The name of the first.
    name: &'a str,
    first: &'a ExistingTable,
    /// The number of the others, as the continuation of a sentence.
    others: String,
}

fn inspect_existing<E: SqlEngine>(
    engine: &E,
    table: &Table,
    plan: &plan::Sysbench,
) -> Result<ExistingTable, Error> {
    let rows = plan.rows;
    let name = &table.name;
    let dialect = engine.dialect();
    let mut session = engine.connect()?;

    // Only this query reports that the table is missing.
    session
        .query(&format!("select id, k, c, pad from {name} where id = 0"))
        .map_err(|error| Error {
            message: format!(
                "`{name}` is not a sysbench table, and a plan without the step `load` needs one: {}",
                error.message
            ),
            ..error
        })?;
    let is_indexed = check_indexes(&mut session, dialect, table, plan)?;

    if plan.policy.checks != Checks::Full {
        return Ok(ExistingTable {
            rows,
            missing: None,
            key_min: session.query_i64(&dialect.min_key(table))?,
            key_max: session.query_i64(&dialect.max_key(table))?,
            is_indexed,
        });
    }

    let facts = engine.inspect(table, false).map_err(|error| {
        let help = if table.is_key_primary() {
            "; set `primary-key = false` for tables of `sysbench --secondary=on`, which have no primary key"
        } else {
            ""
        };
        Error {
            message: format!("cannot count the rows of `{name}`: {}{help}", error.message),
            ..error
        }
    })?;

    // A table as it was loaded lacks no id, so the ids need not be counted.
    let is_as_loaded =
        facts.rows == rows && facts.key_min == Some(1) && facts.key_max == i64::try_from(rows).ok();
    let present = if is_as_loaded {
        rows
    } else {
        let sql = format!("select count(*) from {name} where id between 1 and {rows}");
        session.query_i64(&sql)?.unwrap_or(0).cast_unsigned()
    };
    Ok(ExistingTable {
        rows: facts.rows,
        missing: Some(rows.saturating_sub(present)),
        key_min: facts.key_min,
        key_max: facts.key_max,
        is_indexed,
    })
}

/// Returns whether the table has an index on `k`.
///
/// # Errors
/// An index is missing, or exists before a step creates it.
fn check_indexes<S: Session>(
    session: &mut S,
    dialect: &dyn Dialect,
    table: &Table,
    plan: &plan::Sysbench,
) -> Result<bool, Error> {
    let name = &table.name;
    if index_on(session, dialect, table, &["id"])?.is_none() {
        return Err(other(format!(
            "`{name}` has no index on `id`: every query by id would read the whole table; make `id` its primary key"
        )));
    }

    let index = index_on(session, dialect, table, &["k"])?;
    match (&index, plan.makes_indexes()) {
        (None, false) if plan.secondary_index => Err(other(format!(
            "`{name}` has no index on `k`: queries by `k` would read the whole table; create it with \
             `create index k_{name} on {name} (k)`, put the step `index` first, or set `secondary-index = false`"
        ))),
        (Some(index), true) => Err(other(format!(
            "`{name}` already has the index `{index}` on `k`, which the step `index` creates; an \
             earlier cell may have created it; remove that step, or drop the index"
        ))),
        _ => Ok(index.is_some()),
    }
}
