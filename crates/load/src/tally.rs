//! The counts of a connection before it hands them over to the collector.
//!
//! The buckets are HdrHistogram's for three significant digits. Recording is an index and an
//! addition, which costs a third of the library's `record`; the collector turns them into real
//! histograms outside of the measured path.

use hdrhistogram::Histogram;
use words::LATENCY_NS_MAX;

/// Each value below this has a bucket of its own: 2048 gives three significant digits.
const LINEAR: u64 = 2048;
const HALF_BITS: u32 = 10;
const BUCKETS: usize = index_of(LATENCY_NS_MAX) + 1;

/// Returns an empty histogram of nanoseconds up to [`LATENCY_NS_MAX`], with three significant
/// digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
        .expect("the bounds are constants that the library allows")
}

#[inline(always)]
const fn index_of(value: u64) -> usize {
    let shift = 64 - HALF_BITS - 1 - (value | (LINEAR - 1)).leading_zeros();
    ((shift as usize) << HALF_BITS) + (value >> shift) as usize
}

/// Returns the smallest value in a bucket.
const fn value_of(index: usize) -> u64 {
    if index < LINEAR as usize {
        return index as u64;
    }
    let shift = (index >> HALF_BITS) - 1;
    ((index - (shift << HALF_BITS)) as u64) << shift
}

/// Latencies of one second.
#[derive(Debug)]
pub(crate) struct Latencies {
    counts: Box<[u32]>,
    pub(crate) ns_max: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; BUCKETS].into(), ns_max: 0 }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, ns: u64) {
        self.counts[index_of(ns.min(LATENCY_NS_MAX))] += 1;
        self.ns_max = self.ns_max.max(ns);
    }

    /// Returns the range of buckets that may be in use, by the largest value.
    fn used(&self) -> std::ops::RangeInclusive<usize> {
        0..=index_of(self.ns_max.min(LATENCY_NS_MAX))
    }

    /// Adds what was recorded to `histogram`.
    pub(crate) fn add_to(&self, histogram: &mut Histogram<u64>) {
        for (index, &count) in self.counts[self.used()].iter().enumerate() {
            if count > 0 {
                histogram.saturating_record_n(value_of(index).max(1), u64::from(count));
            }
        }
    }

    /// Removes what was recorded.
    pub(crate) fn clear(&mut self) {
        let used = self.used();
        self.counts[used].fill(0);
        self.ns_max = 0;
    }
}

/// One connection's operations of one kind in one second.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Counted when operations are sent, so that `sent = ok + failed` can be asserted.
    pub(crate) sent: u64,
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) retried: u64,
    /// The time of the attempts that others followed.
    pub(crate) retried_ns: u64,
    pub(crate) rows: u64,
    pub(crate) rolled_back: u64,
    pub(crate) unexpected_rows: u64,
    pub(crate) service: Latencies,
    /// Absent in a closed loop, where it would equal `service`.
    pub(crate) response: Option<Latencies>,
    pub(crate) failed_service: Option<Box<Latencies>>,
}

impl Tally {
    fn new(open: bool) -> Self {
        Self {
            sent: 0,
            ok: 0,
            failed: 0,
            retried: 0,
            retried_ns: 0,
            rows: 0,
            rolled_back: 0,
            unexpected_rows: 0,
            service: Latencies::new(),
            response: open.then(Latencies::new),
            failed_service: None,
        }
    }

    /// Removes what was counted. The collector calls this, outside of the measured path.
    pub(crate) fn clear(&mut self) {
        self.sent = 0;
        self.ok = 0;
        self.failed = 0;
        self.retried = 0;
        self.retried_ns = 0;
        self.rows = 0;
        self.rolled_back = 0;
        self.unexpected_rows = 0;

        self.service.clear();
        if let Some(response) = &mut self.response {
            response.clear();
        }
        if let Some(failed) = &mut self.failed_service {
            failed.clear();
        }
    }
}

/// One connection's operations in one second.
#[derive(Debug)]
pub(crate) struct Lap {
    pub(crate) second: u32,
    /// One for each of the program's kinds.
    pub(crate) tallies: Vec<Tally>,
}

impl Lap {
    pub(crate) fn new(kinds: usize, open: bool) -> Box<Self> {
        Box::new(Self { second: 0, tallies: (0..kinds).map(|_| Tally::new(open)).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_equals_the_library_s_histogram() {
        let mut latencies = Latencies::new();
        let mut expected = new_histogram();
        let mut value = 1_u64;
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..200_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            value = value.wrapping_add(state) % (1 << (state % 42));
            latencies.record(value);
            expected.saturating_record(value.max(1));
        }
        let mut actual = new_histogram();
        latencies.add_to(&mut actual);
        latencies.clear();
        assert_eq!(actual.len(), expected.len());
        for quantile in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            assert_eq!(actual.value_at_quantile(quantile), expected.value_at_quantile(quantile));
        }
        let mut again = new_histogram();
        latencies.add_to(&mut again);
        assert_eq!(again.len(), 0);
    }

    #[test]
    fn every_bucket_starts_at_its_own_value() {
        for index in 0..BUCKETS {
            assert_eq!(index_of(value_of(index)), index);
        }
    }

    #[test]
    fn a_latency_above_the_limit_is_counted_with_its_exact_maximum() {
        let mut latencies = Latencies::new();
        latencies.record(2 * LATENCY_NS_MAX);
        assert_eq!(latencies.ns_max, 2 * LATENCY_NS_MAX);
        let mut histogram = new_histogram();
        latencies.add_to(&mut histogram);
        assert_eq!(histogram.len(), 1);
    }
}
