//! The workload's knowledge of each table, and its comparison with what the engine reports.
//!
//! The knowledge comes from what the connections did, not from the plan, because a step may end
//! early.

use std::collections::VecDeque;

use engine::{Table, TableFacts};
use serde::{Deserialize, Serialize};

use crate::Check;
use crate::check::index_check;
use crate::summary::{Deleted, Inserted};

/// All keys of a table, as ascending runs without gaps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct KeyRuns {
    /// First key and length of each run.
    runs: VecDeque<(i64, u64)>,
}

impl KeyRuns {
    fn push(&mut self, first: i64, length: u64) {
        match self.runs.back_mut() {
            Some((start, count)) if *start + *count as i64 == first => *count += length,
            _ if length > 0 => self.runs.push_back((first, length)),
            _ => {}
        }
    }

    fn first(&self) -> Option<i64> {
        self.runs.front().map(|&(first, _)| first)
    }

    fn drop_lowest(&mut self, mut count: u64) {
        while let Some((first, length)) = self.runs.front_mut() {
            let dropped = count.min(*length);
            *first += dropped as i64;
            *length -= dropped;
            count -= dropped;
            if *length > 0 {
                return;
            }
            self.runs.pop_front();
        }
    }
}

/// The workload's knowledge of one table, from which only this crate can read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    pub(super) rows: u64,
    /// The number of the next row; numbers are never reused.
    pub(super) next_row: u64,
    /// The next key to assign, if the client assigns keys and not the server.
    pub(super) next_key: i64,
    pub(super) is_indexed: bool,
    /// All keys of the table; `None` if they are unknown because several connections inserted at
    /// once, or an insert failed.
    keys: Option<KeyRuns>,
    /// No key is smaller.
    key_min_bound: Option<i64>,
    key_max: Option<i64>,
    /// The smallest share of existing keys between the smallest and the largest during the last
    /// step, from 0 to 1; `None` if the keys are unknown.
    pub(super) density_least: Option<f64>,
}

/// Keys that a server may reserve for a connection and leave unused: the cache of a PostgreSQL
/// sequence.
const SEQUENCE_CACHE: i64 = 1000;

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            rows: 0,
            next_row: 0,
            next_key: 1,
            is_indexed: false,
            keys: Some(KeyRuns::default()),
            key_min_bound: None,
            key_max: None,
            density_least: None,
        }
    }

    /// Applies what each connection inserted and deleted in a step. `is_gapless`: no insert failed
    /// or was retried.
    pub(super) fn apply(&mut self, inserted: &[Inserted], deleted: &[Deleted], is_gapless: bool) {
        // Keys reserved for other connections are a gap as soon as the first one inserts.
        let density_before = self.density(SEQUENCE_CACHE * inserted.len() as i64);
        self.key_min_bound = self.key_min_bound.max(Some(self.bound_after(deleted)));

        let deleted_rows = deleted.iter().map(|connection| connection.rows).sum();
        for connection in inserted {
            self.rows += connection.rows;
            self.key_max = self.key_max.max(connection.last_key);
            self.next_row = self.next_row.max(connection.end_row.unwrap_or(0));
            self.next_key = self.next_key.max(connection.next_key.unwrap_or(0));
        }
        self.rows = self.rows.saturating_sub(deleted_rows);

        // The keys of a single connection are consecutive. Between those of several, there may be
        // gaps.
        let inserters: Vec<&Inserted> =
            inserted.iter().filter(|connection| connection.rows > 0).collect();
        self.keys = match (self.keys.take(), &inserters[..]) {
            (keys, []) => keys,
            (Some(mut keys), [only]) if is_gapless => only.last_key.map(|last| {
                keys.push(last - only.rows as i64 + 1, only.rows);
                keys
            }),
            _ => None,
        };
        if let Some(keys) = &mut self.keys {
            keys.drop_lowest(deleted_rows);
        }

        self.density_least = match (density_before, self.density(0)) {
            (Some(before), Some(after)) => Some(before.min(after)),
            (before, after) => before.or(after),
        };
    }

    /// Returns a lower bound of the keys after these deletes.
    fn bound_after(&self, deleted: &[Deleted]) -> i64 {
        // The oldest rows are deleted first, and new rows have larger keys than all existing ones.
        let deleted_rows: u64 = deleted.iter().map(|connection| connection.rows).sum();
        let mut bound = self.first().saturating_add(deleted_rows.min(self.rows) as i64);

        // Each deleter of a table knows a valid bound; the largest is the best.
        for connection in deleted {
            let known = if connection.covers_old_rows_only {
                connection.key_min.min(self.end_key())
            } else {
                connection.key_min
            };
            bound = bound.max(known);
        }

        // A row that could not be deleted is still there, however far the others got.
        deleted.iter().filter_map(|connection| connection.left).fold(bound, i64::min)
    }

    /// Compares the table with what the engine counted.
    pub(super) fn check(&self, table: &Table, facts: &TableFacts) -> Vec<Check> {
        let mut checks =
            vec![Check::equal(format!("rows of {}", table.name), self.rows, facts.rows)];
        checks.extend(self.check_keys(table, facts.key_min, facts.key_max));
        for (index, rows) in &facts.index_rows {
            checks.push(index_check(table, index, self.rows, rows));
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
        let mut checks = Vec::new();
        let what = format!("smallest key of {}", table.name);
        match (&self.keys, self.key_min_bound) {
            (Some(keys), _) => {
                checks.push(Check::equal(what, key_text(keys.first()), key_text(key_min)));
            }
            (None, Some(bound)) => checks.push(Check::new(
                what,
                format!(">= {bound}"),
                key_text(key_min),
                key_min.is_none_or(|key| key >= bound),
            )),
            (None, None) => {}
        }

        if self.key_max.is_some() && self.rows > 0 {
            let what = format!("largest key of {}", table.name);
            checks.push(Check::equal(what, key_text(self.key_max), key_text(key_max)));
        }
        checks
    }

    /// Returns a lower bound of the existing keys, and of those to come if the table is empty.
    pub(super) fn key_min(&self) -> i64 {
        match &self.keys {
            Some(keys) if keys.runs.is_empty() => self.next_key,
            _ => self.first(),
        }
    }

    fn end_key(&self) -> i64 {
        self.key_max.map_or(1, |last| last.saturating_add(1))
    }

    /// Returns a lower bound of the existing keys.
    fn first(&self) -> i64 {
        let known = self.keys.as_ref().and_then(KeyRuns::first);
        known.or(self.key_min_bound).unwrap_or(1)
    }

    /// Returns the share of keys that exist, if `set_aside` more are reserved.
    fn density(&self, set_aside: i64) -> Option<f64> {
        let span = self.key_max?.checked_sub(self.first())? + 1;
        (span > 0).then(|| self.rows as f64 / (span + set_aside).max(1) as f64)
    }
}

fn key_text(key: Option<i64>) -> String {
    key.map_or("none".into(), |key| key.to_string())
}

#[cfg(test)]
mod tests {
    use engine::IndexRows;
    use plan::IndexSet;

    use super::*;
    use crate::insert::schema::table;

    fn inserted(rows: u64, last_key: i64) -> Inserted {
        Inserted { rows, last_key: Some(last_key), ..Inserted::default() }
    }

    fn deleted(rows: u64, key_min: i64) -> Deleted {
        Deleted { rows, key_min, ..Deleted::default() }
    }

    fn smallest(ledger: &Ledger, found: i64) -> Check {
        let table = table(0, IndexSet::Current, 3, 20, None);
        ledger.check_keys(&table, Some(found), None).remove(0)
    }

    #[test]
    fn the_smallest_key_is_known_across_a_gap_between_sessions() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(100, 100)], &[], true);
        // A session that took a new block of the sequence: 1001 to 1050.
        ledger.apply(&[inserted(50, 1050)], &[deleted(110, 80)], true);
        assert_eq!(ledger.rows, 40);
        assert!(smallest(&ledger, 1011).holds);
        assert!(!smallest(&ledger, 1010).holds);
    }

    #[test]
    fn a_gap_between_sessions_lowers_the_share_of_keys_that_exist() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(2000, 2000)], &[], true);
        ledger.apply(&[inserted(100, 3100)], &[deleted(100, 0)], true);
        // At its end 101 to 2000 and 3001 to 3100.
        assert_eq!(ledger.density_least, Some(2000.0 / 3000.0));
    }

    #[test]
    fn keys_of_several_connections_are_bounded_only() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(100, 1100), inserted(100, 100)], &[], true);
        ledger.apply(&[], &[deleted(20, 15)], true);
        let check = smallest(&ledger, 21);
        assert!(check.holds && check.expected == ">= 21");
        assert!(!smallest(&ledger, 20).holds);
        ledger.apply(&[], &[deleted(20, 60)], true);
        assert_eq!(smallest(&ledger, 0).expected, ">= 60");
        let left = Deleted { left: Some(70), ..deleted(20, 0) };
        ledger.apply(&[], &[left], true);
        assert_eq!(smallest(&ledger, 0).expected, ">= 70");
    }

    /// A server may give one connection keys, and set more aside for it, that it inserts after all
    /// of another's are gone.
    #[test]
    fn rows_that_come_and_go_in_one_step_do_not_move_the_bound() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(50, 1050), inserted(50, 50)], &[], true);
        let connections = [inserted(300, 2300), inserted(500, 3500)];
        ledger.apply(&connections, &[deleted(700, 0)], true);
        assert_eq!(smallest(&ledger, 2001).expected, ">= 101");
    }

    #[test]
    fn the_share_of_existing_keys_is_known_without_deletes() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(300, 1300), inserted(100, 100)], &[], true);
        assert_eq!(ledger.density_least, Some(400.0 / 1300.0));
    }

    #[test]
    fn a_lost_row_a_foreign_row_and_a_broken_index_are_found() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(100, 100)], &[], true);
        let table = table(0, IndexSet::Current, 3, 20, None);
        let facts = |rows, key_max, index_rows| TableFacts {
            rows,
            key_min: Some(1),
            key_max: Some(key_max),
            index_rows: vec![("pdc".into(), IndexRows::Counted(index_rows))],
        };
        let broken = |facts: &TableFacts| -> Vec<String> {
            ledger
                .check(&table, facts)
                .into_iter()
                .filter(|check| !check.holds)
                .map(|check| check.what)
                .collect()
        };
        assert!(broken(&facts(100, 100, 100)).is_empty());
        assert_eq!(broken(&facts(99, 100, 100)), ["rows of pi1"]);
        assert_eq!(broken(&facts(100, 101, 100)), ["largest key of pi1"]);
        assert_eq!(broken(&facts(100, 100, 101)), ["rows in index pdc of pi1"]);
        let mut without = facts(100, 100, 100);
        without.index_rows[0].1 = IndexRows::NoIndex;
        assert_eq!(broken(&without), ["rows in index pdc of pi1"]);
        without.index_rows[0].1 = IndexRows::NotCounted("it is not asked".into());
        assert!(broken(&without).is_empty());
        let checks = ledger.check(&table, &without);
        let left_out = checks.last().and_then(|check| check.left_out.as_deref());
        assert_eq!(left_out, Some("it is not asked"));
    }
}
