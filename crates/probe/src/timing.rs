//! The times of single requests to a disk.

use std::time::{Duration, Instant};

#[allow(
    clippy::disallowed_methods,
    reason = "these measurements are outside of the steps and their clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn whole_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the nearest-rank percentile; 0 without samples.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}
