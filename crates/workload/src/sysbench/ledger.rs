//! What the workload knows of each table, and how that compares with what the engine says.

use engine::{Table, TableFacts};

use super::connection::Changes;
use crate::insert::Check;

/// What is known of one table.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Rows in it.
    pub(super) rows: u64,
    /// Its index exists.
    pub(super) is_indexed: bool,
    /// The number of rows is not known: a server didn't answer, or did what can't be counted.
    is_unsure: bool,
    /// The largest key that was loaded; `None` before the end of the load, or when not all rows were.
    loaded: Option<u64>,
    /// Rows were inserted after the load.
    has_inserts: bool,
    /// Rows were deleted.
    has_deletes: bool,
}

impl Ledger {
    /// Takes in what the connections did together.
    pub(super) fn apply(&mut self, changes: Changes) {
        self.rows = (self.rows + changes.inserted).saturating_sub(changes.deleted);
        self.is_unsure |= changes.is_unsure;
        self.has_inserts |= changes.inserted > 0;
        self.has_deletes |= changes.deleted > 0;
    }

    /// So many rows should have been loaded, and nothing else has been done.
    pub(super) fn end_load(&mut self, rows: u64) {
        self.loaded = (self.rows == rows && !self.is_unsure).then_some(rows);
        self.has_inserts = false;
    }

    /// All rows that are to be loaded are there.
    pub(super) fn is_whole(&self) -> bool {
        self.loaded.is_some() && !self.has_deletes && !self.is_unsure
    }

    /// Compares with what the engine counted.
    pub(super) fn check(&self, table: &Table, facts: &TableFacts) -> Vec<Check> {
        let mut checks = Vec::new();
        if !self.is_unsure {
            checks.push(compared(
                format!("rows of {}", table.name),
                "",
                self.rows,
                facts.rows,
            ));
        }
        checks.extend(self.check_keys(table, facts.key_min, facts.key_max));
        for (index, rows) in &facts.index_rows {
            checks.push(compared(
                format!("rows in index {index} of {}", table.name),
                "",
                facts.rows,
                *rows,
            ));
        }
        checks
    }

    /// Compares the smallest and the largest key alone.
    pub(super) fn check_keys(
        &self,
        table: &Table,
        key_min: Option<i64>,
        key_max: Option<i64>,
    ) -> Vec<Check> {
        let (Some(loaded), false) = (self.loaded, self.is_unsure) else {
            return Vec::new();
        };
        let mut checks = Vec::new();
        let smallest = if self.has_deletes { ">= " } else { "" };
        let largest = match (self.has_inserts, self.has_deletes) {
            (false, false) => Some(""),
            (true, false) => Some(">= "),
            (false, true) => Some("<= "),
            (true, true) => None,
        };
        let ends = [
            ("smallest", Some(smallest), 1, key_min),
            ("largest", largest, loaded, key_max),
        ];
        for (end, relation, expected, found) in ends {
            if let (Some(relation), true) = (relation, self.rows > 0) {
                let found = found.and_then(|key| u64::try_from(key).ok()).unwrap_or(0);
                let what = format!("{end} key of {}", table.name);
                checks.push(compared(what, relation, expected, found));
            }
        }
        checks
    }
}

/// Compares: equal, or as `relation` says.
fn compared(what: String, relation: &str, expected: u64, found: u64) -> Check {
    Check {
        what,
        expected: format!("{relation}{expected}"),
        found: found.to_string(),
        holds: match relation {
            ">= " => found >= expected,
            "<= " => found <= expected,
            _ => found == expected,
        },
    }
}
