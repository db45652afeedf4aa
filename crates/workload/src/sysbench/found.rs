//! Tables that are there already: made by `sysbench prepare`, and perhaps changed since by whoever used them. They are taken
//! as they are, and what the tests take for granted of them is looked up.

use engine::{Error, Session, SqlEngine, Table, index_on};

use plan::Checks;

use super::ledger::Ledger;
use super::{Sysbench, other};

/// A table as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    rows: u64,
    /// Of the ids that tests draw, those that are not there; `None`: it was not counted.
    missing: Option<u64>,
    key_min: Option<i64>,
    key_max: Option<i64>,
    is_indexed: bool,
}

impl Found {
    /// Whether all ids up to `rows` are there, as far as was looked.
    fn is_whole(&self, rows: u64) -> bool {
        match self.missing {
            Some(missing) => missing == 0,
            None => self.key_min == Some(1) && self.key_max >= i64::try_from(rows).ok(),
        }
    }
}

impl Sysbench {
    /// Takes the tables as they are found. What differs from what the plan says of them, and what that means for the
    /// figures, is returned.
    ///
    /// # Errors
    /// The engine's own, when a table is not there, or has other columns; an index that is missing, or there before a step
    /// makes it, and what to do.
    pub fn take_over<E: SqlEngine>(&mut self, engine: &E) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for table in &self.tables {
            found.push(look_at(engine, table, &self.plan)?);
        }
        for (ledger, found) in self.ledgers.iter_mut().zip(&found) {
            let keys = found.key_min.zip(found.key_max);
            let is_whole = found.is_whole(self.plan.rows);
            *ledger = Ledger::found(found.rows, keys, is_whole, found.is_indexed);
        }
        Ok(self.differences(&found))
    }

    /// Says how the tables differ from those of the plan.
    fn differences(&self, found: &[Found]) -> Vec<String> {
        let rows = self.plan.rows;
        let of = |differs: &dyn Fn(&Found) -> bool| {
            let mut those = self.tables.iter().zip(found).filter(|(_, it)| differs(it));
            let (table, first) = those.next()?;
            let others = match those.count() {
                0 => String::new(),
                1 => ", and another table is like that".into(),
                count => format!(", and {count} other tables are like that"),
            };
            Some((&table.name, first, others))
        };
        let mut said = Vec::new();
        if let Some((name, first, others)) = of(&|it| it.rows != rows) {
            said.push(format!(
                "`{name}` has {} rows when the cell begins, and the plan says `rows = {rows}`{others}: tests draw ids \
                 and values of `k` from 1 to {rows} all the same, and what ran before has changed the table; cells that \
                 begin with other rows are not measured on the same data",
                first.rows
            ));
        }
        if let Some((name, first, others)) = of(&|it| !it.is_whole(rows)) {
            let missing = match first.missing {
                Some(missing) => format!("{missing} of the ids 1 to {rows} are not in `{name}`"),
                None => format!("not all of the ids 1 to {rows} are in `{name}`"),
            };
            said.push(format!(
                "{missing}{others}: a query for one of them finds nothing, which costs less than finding it, and is not \
                 held to be wrong"
            ));
        }
        if !self.plan.secondary_index
            && let Some((name, _, others)) = of(&|it| it.is_indexed)
        {
            said.push(format!(
                "`{name}` has an index on `k`, and the plan says `secondary-index = false`{others}: writes keep it up, \
                 and reads by `k` use it"
            ));
        }
        said
    }
}

fn look_at<E: SqlEngine>(engine: &E, table: &Table, plan: &plan::Sysbench) -> Result<Found, Error> {
    let rows = plan.rows;
    let (dialect, name) = (engine.dialect(), &table.name);
    let mut session = engine.connect()?;
    // Without it no other error says that the table is not there at all.
    session
        .query(&format!("select id, k, c, pad from {name} where id = 0"))
        .map_err(|error| Error {
            message: format!(
                "`{name}` is not a table of sysbench's, which a plan without the step `load` has to find: {}",
                error.message
            ),
            ..error
        })?;
    if index_on(&mut session, dialect, table, &["id"])?.is_none() {
        return Err(other(format!(
            "`{name}` has no index on `id`: every query by id would read the whole table; make a primary key of it"
        )));
    }
    let index = index_on(&mut session, dialect, table, &["k"])?;
    match (&index, plan.makes_indexes()) {
        (None, false) if plan.secondary_index => {
            return Err(other(format!(
                "`{name}` has no index on `k`, and queries by `k` would read the whole table; make it with \
                 `create index k_{name} on {name} (k)`, put the step `index` first, or set `secondary-index = false`"
            )));
        }
        (Some(index), true) => {
            return Err(other(format!(
                "`{name}` has the index `{index}` on `k` already, which the step `index` is to make, and which an \
                 earlier cell may have made; take that step out, or drop the index"
            )));
        }
        _ => {}
    }
    if plan.policy.checks != Checks::Full {
        return Ok(Found {
            rows,
            missing: None,
            key_min: session.query_i64(&dialect.min_key(table))?,
            key_max: session.query_i64(&dialect.max_key(table))?,
            is_indexed: index.is_some(),
        });
    }
    let facts = engine.inspect(table, false).map_err(|error| {
        let help = match table.is_key_primary() {
            true => "; one of `sysbench --secondary=on` has no primary key, which `primary-key = false` says",
            false => "",
        };
        Error {
            message: format!("the rows of `{name}` can't be counted: {}{help}", error.message),
            ..error
        }
    })?;
    let is_as_loaded =
        facts.rows == rows && facts.key_min == Some(1) && facts.key_max == i64::try_from(rows).ok();
    let present = match is_as_loaded {
        true => rows,
        false => {
            let sql = format!("select count(*) from {name} where id between 1 and {rows}");
            let present = session.query_i64(&sql)?.unwrap_or(0);
            present.cast_unsigned()
        }
    };
    Ok(Found {
        rows: facts.rows,
        missing: Some(rows.saturating_sub(present)),
        key_min: facts.key_min,
        key_max: facts.key_max,
        is_indexed: index.is_some(),
    })
}
