//! The keys that queries and deletes choose: the same on every engine, with or without SQL.

use std::sync::Arc;

use super::rows::scale;
use super::schema::{POINT_KEYS, RANGE_LIMIT, RangeQuery};
use super::shared::SharedKeys;
use crate::Random;

/// The deleter asks for the smallest key again after this many deletes.
const MIN_KEY_INTERVAL: u64 = 1000;
/// The point reader asks for the largest key again after this many queries.
pub(super) const MAX_KEY_INTERVAL: u64 = 100;

/// The position of a table's oldest rows.
pub(super) struct OldestRows {
    /// No key is smaller.
    pub(super) key_min: i64,
    /// Deletes until the smallest key is asked for again.
    min_due: u64,
    /// The current operation asks for the smallest key.
    pub(super) is_key_query: bool,
    /// The point readers of the same table take the smallest key from here.
    shared: Arc<SharedKeys>,
}

impl OldestRows {
    pub(super) fn new(shared: &Arc<SharedKeys>) -> Self {
        Self { key_min: 0, min_due: 0, is_key_query: false, shared: Arc::clone(shared) }
    }

    /// Begins an operation: a delete, or asking for the smallest key.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.is_key_query = self.min_due == 0;
        self.min_due = if self.is_key_query { MIN_KEY_INTERVAL } else { self.min_due - 1 };
    }

    #[inline]
    pub(super) fn learn(&mut self, key_min: i64) {
        self.key_min = key_min;
        self.shared.raise_key_min(key_min);
    }

    /// Notes that the `rows` oldest rows were deleted. Keys may have gaps, so the smallest key is a
    /// lower bound.
    #[inline]
    pub(super) fn deleted(&mut self, rows: u64) {
        self.key_min += rows as i64;
        self.shared.deleted(rows);
    }
}

/// The values that a range query's scan may begin with, from 0.
struct FirstKeys {
    count: u32,
    /// From this value on, fewer rows than the limit may follow.
    short_from: u32,
}

/// The choices of range queries: the index and the first key.
pub(super) struct RangeChoices {
    random: Random,
    /// One for each query.
    domains: Vec<FirstKeys>,
    /// The scan begins near the end of the index, so fewer rows than the limit are correct.
    may_be_short: bool,
}

impl RangeChoices {
    /// Returns the choices for a table of `rows` rows.
    pub(super) fn new(random: Random, queries: &[RangeQuery], rows: u64) -> Self {
        let domains = queries
            .iter()
            .map(|query| {
                // Where 100 rows are expected after a key, fewer than ten are practically
                // impossible (Poisson: 1e-30).
                let margin = u64::from(query.domain) * 100 / rows.max(1) + 2;
                let short_from = u64::from(query.domain).saturating_sub(margin) as u32;
                FirstKeys { count: query.domain, short_from }
            })
            .collect();
        Self { random, domains, may_be_short: false }
    }

    /// Returns the next query's number and its parameter.
    #[inline]
    pub(super) fn next_query(&mut self) -> (usize, i32) {
        let bits = self.random.next_u64();
        let query = scale(bits as u32, self.domains.len() as u32) as usize;
        let domain = &self.domains[query];
        let first = scale((bits >> 32) as u32, domain.count);
        self.may_be_short = first >= domain.short_from;
        (query, first as i32)
    }

    #[inline]
    pub(super) fn expected_rows(&self) -> (u64, u64) {
        let least = if self.may_be_short { 0 } else { RANGE_LIMIT };
        (least.into(), RANGE_LIMIT.into())
    }
}

/// The choices of point queries: random keys between the smallest and the largest.
pub(super) struct PointChoices {
    random: Random,
    shared: Arc<SharedKeys>,
    key_min: i64,
    key_max: i64,
    /// Queries until the largest key is asked for again.
    max_due: u64,
    /// The current operation asks for the largest key.
    pub(super) is_key_query: bool,
}

impl PointChoices {
    pub(super) fn new(random: Random, shared: &Arc<SharedKeys>) -> Self {
        Self {
            random,
            shared: Arc::clone(shared),
            key_min: 0,
            key_max: 0,
            max_due: 0,
            is_key_query: false,
        }
    }

    /// Sets the smallest key before the step.
    pub(super) fn start(&mut self, key_min: i64) {
        self.shared.raise_key_min(key_min);
        (self.key_min, self.key_max) = (key_min, key_min);
    }

    /// Begins an operation: a query, or asking for the largest key.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.is_key_query = self.max_due == 0;
        self.max_due = if self.is_key_query { MAX_KEY_INTERVAL } else { self.max_due - 1 };
    }

    /// Returns the keys of the next query: one from each tenth of the range, and therefore
    /// distinct.
    #[inline]
    pub(super) fn keys(&mut self) -> impl Iterator<Item = i64> {
        let span = (self.key_max - self.key_min + 1).max(1) as u64;
        let keys = u64::from(POINT_KEYS);
        let (key_min, random) = (self.key_min, &mut self.random);
        (0..keys).map(move |part| {
            let (from, to) = (span * part / keys, span * (part + 1) / keys);
            key_min + (from + random.below((to - from).max(1))) as i64
        })
    }

    /// Sets the largest key, and takes the smallest from the deleters.
    #[inline]
    pub(super) fn learn(&mut self, key_max: Option<i64>) {
        self.key_max = key_max.unwrap_or(self.key_max);
        self.key_min = self.shared.key_min().min(self.key_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_knows_what_all_deleters_of_its_table_deleted() {
        let shared = Arc::default();
        let mut reader = PointChoices::new(Random::stream(1, &[]), &shared);
        let mut deleters = [(); 3].map(|()| OldestRows::new(&shared));
        reader.start(1);
        for deleter in &mut deleters {
            deleter.learn(1);
            deleter.deleted(10);
        }
        reader.learn(Some(40));
        assert!(reader.keys().eq(31..=40));
    }
}
