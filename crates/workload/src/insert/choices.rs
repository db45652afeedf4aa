//! What queries and deletes are about: the same, whatever the engine is and however it is spoken to.

use std::sync::Arc;

use super::rows::scale;
use super::schema::{POINT_KEYS, RANGE_LIMIT, RangeQuery};
use super::shared::Shared;
use crate::Random;

/// The deleter learns the smallest key anew after so many deletes.
const MIN_EVERY: u64 = 1000;
/// The point reader learns the largest key anew after so many queries.
const MAX_EVERY: u64 = 100;

/// Where the oldest rows of a table begin.
pub(super) struct Oldest {
    /// No key is smaller.
    pub(super) key_min: i64,
    /// Deletes until the smallest key is asked for again.
    min_due: u64,
    /// The operation asks for the smallest key.
    pub(super) is_asking: bool,
    /// Where the point readers of the same table read the smallest key.
    shared: Arc<Shared>,
}

impl Oldest {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            key_min: 0,
            min_due: 0,
            is_asking: false,
            shared: Arc::clone(shared),
        }
    }

    /// Begins an operation: a delete, or asking for the smallest key.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.is_asking = self.min_due == 0;
        self.min_due = if self.is_asking {
            MIN_EVERY
        } else {
            self.min_due - 1
        };
    }

    #[inline]
    pub(super) fn learn(&mut self, key_min: i64) {
        self.key_min = key_min;
        self.shared.raise_key_min(key_min);
    }

    /// The oldest rows were deleted, so many. Keys may have gaps, so this is a bound; it need not be more.
    #[inline]
    pub(super) fn deleted(&mut self, rows: u64) {
        self.key_min += rows as i64;
        self.shared.deleted(rows);
    }
}

/// Range queries: which index, and from where.
pub(super) struct RangeChoices {
    random: Random,
    /// Of each query the values that a scan may begin with, and the one from which on so few rows may follow that the
    /// limit may not be reached.
    domains: Vec<(u32, u32)>,
    /// Fewer rows than the limit are right, since the scan began near the index's end.
    may_fall_short: bool,
}

impl RangeChoices {
    /// Choices for a table of so many rows.
    pub(super) fn new(random: Random, queries: &[RangeQuery], rows: u64) -> Self {
        let domain = |query: &RangeQuery| {
            // With 100 rows to be expected behind a key, fewer than ten are out of the question (Poisson: 1e-30).
            let margin = u64::from(query.domain) * 100 / rows.max(1) + 2;
            let short_from = u64::from(query.domain).saturating_sub(margin) as u32;
            (query.domain, short_from)
        };
        Self {
            random,
            domains: queries.iter().map(domain).collect(),
            may_fall_short: false,
        }
    }

    /// The next query's number, and its parameter.
    #[inline]
    pub(super) fn next_query(&mut self) -> (usize, i32) {
        let bits = self.random.next_u64();
        let query = scale(bits as u32, self.domains.len() as u32) as usize;
        let (domain, short_from) = self.domains[query];
        let first = scale((bits >> 32) as u32, domain);
        self.may_fall_short = first >= short_from;
        (query, first as i32)
    }

    #[inline]
    pub(super) fn expected_rows(&self) -> (u64, u64) {
        let least = if self.may_fall_short { 0 } else { RANGE_LIMIT };
        (least.into(), RANGE_LIMIT.into())
    }
}

/// Point queries: random keys between the smallest and the largest.
pub(super) struct PointChoices {
    random: Random,
    shared: Arc<Shared>,
    key_min: i64,
    key_max: i64,
    /// Queries until the keys are asked for again.
    max_due: u64,
    /// The operation asks for the largest key.
    pub(super) is_asking: bool,
}

impl PointChoices {
    pub(super) fn new(random: Random, shared: &Arc<Shared>) -> Self {
        Self {
            random,
            shared: Arc::clone(shared),
            key_min: 0,
            key_max: 0,
            max_due: 0,
            is_asking: false,
        }
    }

    /// Takes in the smallest key before the step.
    pub(super) fn start(&mut self, key_min: i64) {
        self.shared.raise_key_min(key_min);
        (self.key_min, self.key_max) = (key_min, key_min);
    }

    /// Begins an operation: a query, or asking for the largest key.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.is_asking = self.max_due == 0;
        self.max_due = if self.is_asking {
            MAX_EVERY
        } else {
            self.max_due - 1
        };
    }

    /// The keys of the next query: distinct, one from each tenth of the span, which needs no search for doubles.
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

    /// Takes in the largest key, and what the deleters know of the smallest.
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
        let mut deleters = [(); 3].map(|()| Oldest::new(&shared));
        reader.start(1);
        for deleter in &mut deleters {
            deleter.learn(1);
            deleter.deleted(10);
        }
        reader.learn(Some(40));
        assert!(reader.keys().eq(31..=40));
    }
}
