//! What the workload knows of each table, and how that compares with what the engine says.

use std::collections::VecDeque;

use engine::{IndexRows, Table, TableFacts};

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was compared: `rows of pi1`.
    pub what: String,
    /// What the workload expects: a number, or a bound such as `>= 17`.
    pub expected: String,
    /// What the engine says.
    pub found: String,
    /// Whether they agree; also where they were not compared.
    pub holds: bool,
    /// Why they were not compared, where that is so: then nothing was found.
    pub left_out: Option<String>,
}

impl Check {
    fn equal<T: PartialEq + ToString>(what: String, expected: T, found: T) -> Self {
        Self {
            what,
            holds: expected == found,
            expected: expected.to_string(),
            found: found.to_string(),
            left_out: None,
        }
    }

    /// What could not be compared, and why.
    pub(crate) fn left_out(what: String, why: impl Into<String>) -> Self {
        Self {
            what,
            expected: String::new(),
            found: String::new(),
            holds: true,
            left_out: Some(why.into()),
        }
    }

    /// The rows of `table` by way of its index `index`.
    pub(crate) fn of_index(table: &Table, index: &str, expected: u64, found: &IndexRows) -> Self {
        let what = format!("rows in index {index} of {}", table.name);
        match found {
            IndexRows::Counted(rows) => Self::equal(what, expected, *rows),
            IndexRows::NoIndex => Self {
                found: "no such index".into(),
                holds: false,
                ..Self::equal(what, expected, expected)
            },
            IndexRows::NotCounted(why) => Self::left_out(what, why),
        }
    }

    /// So many were compared and so many of them are wrong, the `first` in this way.
    pub(crate) fn none_wrong(
        what: String,
        compared: u64,
        wrong: u64,
        first: Option<String>,
    ) -> Self {
        let found = match first {
            None => format!("0 wrong; {compared} compared"),
            Some(first) => format!("{wrong} wrong; {compared} compared; the first: {first}"),
        };
        Self {
            what,
            expected: "0 wrong".into(),
            found,
            holds: wrong == 0,
            left_out: None,
        }
    }
}

/// Keys that are known to be in a table, all of them: runs without gaps, ascending.
#[derive(Clone, Debug, Default)]
struct Keys {
    /// First key and length of each run.
    runs: VecDeque<(i64, u64)>,
}

impl Keys {
    fn push(&mut self, first: i64, length: u64) {
        match self.runs.back_mut() {
            Some((start, count)) if *start + *count as i64 == first => *count += length,
            _ if length > 0 => self.runs.push_back((first, length)),
            _ => {}
        }
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

/// What is known of one table.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// Rows in it.
    pub(super) rows: u64,
    /// The number of the next row to make: numbers are never used twice.
    pub(super) next_row: u64,
    /// The next key to give to a row, where the workload does that and no server.
    pub(super) next_key: i64,
    /// Its indexes exist.
    pub(super) indexed: bool,
    /// All its keys; `None` once they can't be known: several connections inserted at once, or an insert failed.
    keys: Option<Keys>,
    /// No key is smaller.
    key_min_bound: Option<i64>,
    /// The largest key.
    key_max: Option<i64>,
    /// The least share of keys between the smallest and the largest that existed during the last step.
    density_least: Option<f64>,
}

/// Keys that a server may set aside for a connection and leave unused: the cache of PostgreSQL's sequence.
const KEYS_SET_ASIDE: i64 = 1000;

/// What one connection inserted into a table during a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inserted {
    /// Rows.
    pub(super) rows: u64,
    /// The largest key that the server gave it.
    pub(super) last_key: Option<i64>,
    /// No statement failed or was tried again, so that the server gave its keys without gaps.
    pub(super) gapless: bool,
}

/// What was deleted from a table during a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deleted {
    /// Rows, each the oldest that there was and nobody else was deleting.
    pub(super) rows: u64,
    /// No key is smaller, if that is known.
    pub(super) key_min: Option<i64>,
    /// But for these, from here on, which somebody failed to delete.
    pub(super) left: Option<i64>,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            rows: 0,
            next_row: 0,
            next_key: 1,
            indexed: false,
            keys: Some(Keys::default()),
            key_min_bound: None,
            key_max: None,
            density_least: None,
        }
    }

    /// Takes in a step: what each connection inserted, and what was deleted.
    pub(super) fn apply(&mut self, inserted: &[Inserted], deleted: Deleted) {
        // What is set aside for its connections is a gap as soon as the first of them inserts.
        let before = self.density(KEYS_SET_ASIDE * inserted.len() as i64);
        self.key_min_bound = self.key_min_bound.max(Some(self.bound_after(deleted)));
        let deleted = deleted.rows;
        self.rows += inserted.iter().map(|inserted| inserted.rows).sum::<u64>();
        self.rows = self.rows.saturating_sub(deleted);
        self.key_max = self.key_max.max(
            inserted
                .iter()
                .filter_map(|inserted| inserted.last_key)
                .max(),
        );
        let sources: Vec<&Inserted> = inserted
            .iter()
            .filter(|inserted| inserted.rows > 0)
            .collect();
        self.keys = match (self.keys.take(), &sources[..]) {
            (keys, []) => keys,
            (
                Some(mut keys),
                [
                    Inserted {
                        rows,
                        last_key: Some(last),
                        gapless: true,
                    },
                ],
            ) => {
                keys.push(last - *rows as i64 + 1, *rows);
                Some(keys)
            }
            _ => None,
        };
        if let Some(keys) = &mut self.keys {
            keys.drop_lowest(deleted);
        }
        self.density_least = match (before, self.density(0)) {
            (Some(before), Some(after)) => Some(before.min(after)),
            (before, after) => before.or(after),
        };
    }

    /// No key is smaller after a step that deleted this.
    fn bound_after(&self, deleted: Deleted) -> i64 {
        // The oldest rows go first, and those that come meanwhile have larger keys than all that were there.
        let gone = deleted.rows.min(self.rows) as i64;
        let counted = self.first().saturating_add(gone);
        let bound = counted.max(deleted.key_min.unwrap_or(counted));
        bound.min(deleted.left.unwrap_or(bound))
    }

    /// Compares with what the engine counted.
    pub(super) fn check(&self, table: &Table, facts: &TableFacts) -> Vec<Check> {
        let mut checks = vec![Check::equal(
            format!("rows of {}", table.name),
            self.rows,
            facts.rows,
        )];
        checks.extend(self.check_keys(table, facts.key_min, facts.key_max));
        for (index, rows) in &facts.index_rows {
            checks.push(Check::of_index(table, index, self.rows, rows));
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
        let text = |key: Option<i64>| key.map_or("none".into(), |key| key.to_string());
        let mut checks = Vec::new();
        let what = format!("smallest key of {}", table.name);
        let known = self
            .keys
            .as_ref()
            .map(|keys| keys.runs.front().map(|&(first, _)| first));
        match (known, self.key_min_bound) {
            (Some(expected), _) => checks.push(Check::equal(what, text(expected), text(key_min))),
            (None, Some(bound)) => checks.push(Check {
                what,
                expected: format!(">= {bound}"),
                found: text(key_min),
                holds: key_min.is_none_or(|key| key >= bound),
                left_out: None,
            }),
            (None, None) => {}
        }
        if self.key_max.is_some() && self.rows > 0 {
            checks.push(Check::equal(
                format!("largest key of {}", table.name),
                text(self.key_max),
                text(key_max),
            ));
        }
        checks
    }

    /// The least share of keys between the smallest and the largest that existed during the last step, from 0 to 1;
    /// `None` where the keys aren't known.
    pub(super) fn density_least(&self) -> Option<f64> {
        self.density_least
    }

    /// No key is smaller.
    pub(super) fn key_min(&self) -> i64 {
        match &self.keys {
            Some(keys) if keys.runs.is_empty() => self.next_key,
            _ => self.first(),
        }
    }

    /// The key after the largest one.
    pub(super) fn end_key(&self) -> i64 {
        self.key_max.map_or(1, |last| last.saturating_add(1))
    }

    /// No key of a row that is there is smaller; what is inserted next may come anywhere above.
    fn first(&self) -> i64 {
        let runs = self.keys.as_ref().map(|keys| &keys.runs);
        let known = runs.and_then(|runs| runs.front().map(|&(first, _)| first));
        known.or(self.key_min_bound).unwrap_or(1)
    }

    /// The share of keys that exist, if so many more are set aside.
    fn density(&self, set_aside: i64) -> Option<f64> {
        let span = self.key_max?.checked_sub(self.first())? + 1;
        (span > 0).then(|| self.rows as f64 / (span + set_aside).max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insert::schema::{IndexSet, table};

    fn inserted(rows: u64, last_key: i64) -> Inserted {
        Inserted {
            rows,
            last_key: Some(last_key),
            gapless: true,
        }
    }

    fn deleted(rows: u64, key_min: Option<i64>) -> Deleted {
        Deleted {
            rows,
            key_min,
            left: None,
        }
    }

    fn smallest(ledger: &Ledger, found: i64) -> Check {
        let table = table(0, IndexSet::Current, 20, None);
        ledger.check_keys(&table, Some(found), None).remove(0)
    }

    #[test]
    fn the_smallest_key_is_known_across_a_gap_between_sessions() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(100, 100)], deleted(0, None));
        // A session that took a new block of the sequence: 1001 to 1050.
        ledger.apply(&[inserted(50, 1050)], deleted(110, Some(80)));
        assert_eq!(ledger.rows, 40);
        assert!(smallest(&ledger, 1011).holds);
        assert!(!smallest(&ledger, 1010).holds);
    }

    #[test]
    fn a_gap_between_sessions_lowers_the_share_of_keys_that_exist() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(2000, 2000)], deleted(0, None));
        ledger.apply(&[inserted(100, 3100)], deleted(100, Some(0)));
        // At its end 101 to 2000 and 3001 to 3100.
        assert_eq!(ledger.density_least(), Some(2000.0 / 3000.0));
    }

    #[test]
    fn keys_of_several_connections_are_bounded_only() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(100, 1100), inserted(100, 100)], deleted(0, None));
        ledger.apply(&[], deleted(20, Some(15)));
        let check = smallest(&ledger, 21);
        assert!(check.holds && check.expected == ">= 21");
        assert!(!smallest(&ledger, 20).holds);
        ledger.apply(&[], deleted(20, Some(60)));
        assert_eq!(smallest(&ledger, 0).expected, ">= 60");
        let left = Deleted {
            left: Some(70),
            ..deleted(20, None)
        };
        ledger.apply(&[], left);
        assert_eq!(smallest(&ledger, 0).expected, ">= 70");
    }

    /// A server may give one connection keys, and set more aside for it, that it inserts after all of another's are gone.
    #[test]
    fn rows_that_come_and_go_in_one_step_do_not_move_the_bound() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(50, 1050), inserted(50, 50)], deleted(0, None));
        let connections = [inserted(300, 2300), inserted(500, 3500)];
        ledger.apply(&connections, deleted(700, None));
        assert_eq!(smallest(&ledger, 2001).expected, ">= 101");
    }

    #[test]
    fn the_share_of_keys_that_exist_is_known_of_a_table_that_nobody_deletes_from() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(300, 1300), inserted(100, 100)], deleted(0, None));
        assert_eq!(ledger.density_least(), Some(400.0 / 1300.0));
    }

    #[test]
    fn a_lost_row_a_foreign_row_and_a_broken_index_are_found() {
        let mut ledger = Ledger::new();
        ledger.apply(&[inserted(100, 100)], deleted(0, None));
        let table = table(0, IndexSet::Current, 20, None);
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
