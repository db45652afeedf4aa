//! The workload's knowledge of each table, and its comparison with what the engine reports.
//!
//! The knowledge comes from what the connections did, not from the plan, because a step may end
//! early.

use engine::{Table, TableFacts};
use serde::{Deserialize, Serialize};

use crate::Check;
use crate::check::index_check;
use crate::summary::RowChanges;

/// The reason why the number of rows is no longer compared.
const UNCERTAIN: &str = "a statement whose effect is not known may have changed the number of rows";

/// The workload's knowledge of one table, from which only this crate can read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    pub(super) rows: u64,
    pub(super) is_indexed: bool,
    /// The number of rows is unknown: a server did not answer, or did something that cannot be
    /// counted.
    is_uncertain: bool,
    /// The smallest and the largest key when the tests began; `None` before the end of the load,
    /// or when not all rows were loaded.
    keys: Option<(i64, i64)>,
    /// All ids that tests draw existed then.
    has_all: bool,
    /// Rows were inserted since.
    has_inserts: bool,
    /// Rows were deleted.
    has_deletes: bool,
}

impl Ledger {
    /// Returns the state of a table that the workload did not load.
    pub(super) fn found(
        rows: u64,
        keys: Option<(i64, i64)>,
        has_all: bool,
        is_indexed: bool,
    ) -> Self {
        Self { rows, is_indexed, keys, has_all, ..Self::default() }
    }

    /// Applies what the connections did together.
    pub(super) fn apply(&mut self, changes: RowChanges) {
        self.rows = (self.rows + changes.inserted).saturating_sub(changes.deleted);
        self.is_uncertain |= changes.is_uncertain;
        self.has_inserts |= changes.inserted > 0;
        self.has_deletes |= changes.deleted > 0;
    }

    /// Notes the end of a load of `rows` rows.
    pub(super) fn end_load(&mut self, rows: u64) {
        self.has_all = self.rows == rows && !self.is_uncertain;
        let last = i64::try_from(rows).unwrap_or(i64::MAX);
        self.keys = self.has_all.then_some((1, last));
        self.has_inserts = false;
    }

    /// Returns whether all loaded rows still exist.
    pub(super) fn is_whole(&self) -> bool {
        self.has_all && !self.has_deletes && !self.is_uncertain
    }

    /// Compares the table with what the engine counted.
    pub(super) fn check(&self, table: &Table, facts: &TableFacts) -> Vec<Check> {
        let what = format!("rows of {}", table.name);
        let row_check = if self.is_uncertain {
            Check::left_out(what, UNCERTAIN)
        } else {
            Check::equal(what, self.rows, facts.rows)
        };

        let mut checks = vec![row_check];
        checks.extend(self.check_keys(table, facts.key_min, facts.key_max));
        for (index, rows) in &facts.index_rows {
            checks.push(index_check(table, index, facts.rows, rows));
        }
        checks
    }

    /// Compares only the smallest and the largest key.
    pub(super) fn check_keys(
        &self,
        table: &Table,
        key_min: Option<i64>,
        key_max: Option<i64>,
    ) -> Vec<Check> {
        // Inserts add keys above the largest one; deletes may remove either end.
        let smallest = if self.has_deletes { Relation::AtLeast } else { Relation::Equal };
        let largest = match (self.has_inserts, self.has_deletes) {
            (false, false) => Some(Relation::Equal),
            (true, false) => Some(Relation::AtLeast),
            (false, true) => Some(Relation::AtMost),
            (true, true) => None,
        };

        let (first, last) = self.keys.unzip();
        let name = &table.name;
        vec![
            self.check_key(format!("smallest key of {name}"), Some(smallest), first, key_min),
            self.check_key(format!("largest key of {name}"), largest, last, key_max),
        ]
    }

    /// Compares one end of the keys with its value when the tests began; `relation` is `None` if
    /// nothing can be said about it.
    fn check_key(
        &self,
        what: String,
        relation: Option<Relation>,
        expected: Option<i64>,
        found: Option<i64>,
    ) -> Check {
        match (relation, expected) {
            _ if self.is_uncertain => Check::left_out(what, UNCERTAIN),
            _ if self.rows == 0 => Check::left_out(what, "the table is empty"),
            (_, None) => Check::left_out(what, "not all rows were loaded"),
            (None, _) => Check::left_out(what, "rows were inserted and deleted"),
            (Some(relation), Some(expected)) => {
                let key = found.unwrap_or(0);
                let (sign, holds) = match relation {
                    Relation::Equal => ("", key == expected),
                    Relation::AtLeast => (">= ", key >= expected),
                    Relation::AtMost => ("<= ", key <= expected),
                };
                Check::new(what, format!("{sign}{expected}"), key, holds)
            }
        }
    }
}

/// The relation of a found key to the expected one.
enum Relation {
    Equal,
    AtLeast,
    AtMost,
}
