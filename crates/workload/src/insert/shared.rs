//! The state that the connections to one table share during a step.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::cache_padded::CachePadded;

/// The state of one table's keys, shared by the connections to it.
#[derive(Debug, Default)]
pub(super) struct SharedKeys {
    /// The smallest key, as far as the deleters know: written once per delete, read once in 100
    /// point queries. With several deleters it may be a few commits above the smallest key.
    key_min: CachePadded<AtomicI64>,
    /// The next key to assign, if the client assigns keys and not the server.
    next_key: CachePadded<AtomicI64>,
    /// The smallest key that no deleter has claimed, if there are several deleters.
    unclaimed: CachePadded<AtomicI64>,
}

impl SharedKeys {
    pub(super) fn new(next_key: i64, unclaimed: i64) -> Self {
        Self {
            key_min: CachePadded::default(),
            next_key: CachePadded(next_key.into()),
            unclaimed: CachePadded(unclaimed.into()),
        }
    }

    #[inline]
    pub(super) fn key_min(&self) -> i64 {
        self.key_min.0.load(Relaxed)
    }

    /// Raises the smallest key to at least `key_min`.
    #[inline]
    pub(super) fn raise_key_min(&self, key_min: i64) {
        self.key_min.0.fetch_max(key_min, Relaxed);
    }

    /// Notes that the `rows` oldest rows were deleted.
    #[inline]
    pub(super) fn deleted(&self, rows: u64) {
        self.key_min.0.fetch_add(rows as i64, Relaxed);
    }

    /// Reserves `count` new keys; returns the first.
    #[inline]
    pub(super) fn take_keys(&self, count: u32) -> i64 {
        self.next_key.0.fetch_add(count.into(), Relaxed)
    }

    /// Returns the key after the last reserved one.
    pub(super) fn next_key(&self) -> i64 {
        self.next_key.0.load(Relaxed)
    }

    /// Claims `count` keys to delete; returns the first.
    #[inline]
    pub(super) fn claim_keys(&self, count: u64) -> i64 {
        self.unclaimed.0.fetch_add(count as i64, Relaxed)
    }
}
