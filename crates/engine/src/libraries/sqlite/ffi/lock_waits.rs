//! Waits for the lock of a database, and counts them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The number of waits for a lock of all connections, in a static because the handler is a plain
/// function.
pub(in crate::libraries::sqlite) static LOCK_WAIT_COUNT: AtomicU64 = AtomicU64::new(0);
/// The total time of these waits.
pub(in crate::libraries::sqlite) static LOCK_WAIT_NS: AtomicU64 = AtomicU64::new(0);

/// The number of naps, about a minute, after which a connection stops waiting for a lock and the
/// operation is retried.
const LOCK_NAPS_MOST: i32 = 120_000;

/// Naps 10 us at first, then doubles up to 500 us. Returns false when a connection has waited long
/// enough.
pub(super) fn wait_for_lock(naps: i32) -> bool {
    let nap_ns = (10_000_u64 << naps.clamp(0, 5)).min(500_000);
    LOCK_WAIT_COUNT.fetch_add(u64::from(naps == 0), Relaxed);
    LOCK_WAIT_NS.fetch_add(nap_ns, Relaxed);
    std::thread::sleep(Duration::from_nanos(nap_ns));
    naps < LOCK_NAPS_MOST
}
