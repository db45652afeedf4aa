//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the nanoseconds since 1970 UTC.
pub fn unix_now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
