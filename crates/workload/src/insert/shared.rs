//! What the connections to one table share during a step.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A value on a cache line of its own.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(super) struct CacheLine<T>(pub(super) T);

/// The keys of one table, as far as its connections tell each other.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The smallest key, as the deleters together know it: written once per delete, read once in 100 point queries. Where
    /// several delete it may be a few commits above the smallest key.
    key_min: CacheLine<AtomicI64>,
    /// The next key to give to a row, where the client does that and no server.
    next_key: CacheLine<AtomicI64>,
    /// The smallest key that no deleter has claimed, where several share the keys out.
    unclaimed: CacheLine<AtomicI64>,
}

impl Shared {
    pub(super) fn new(next_key: i64, unclaimed: i64) -> Self {
        Self {
            key_min: CacheLine::default(),
            next_key: CacheLine(next_key.into()),
            unclaimed: CacheLine(unclaimed.into()),
        }
    }

    #[inline]
    pub(super) fn key_min(&self) -> i64 {
        self.key_min.0.load(Relaxed)
    }

    /// No key is smaller than this.
    #[inline]
    pub(super) fn raise_key_min(&self, key_min: i64) {
        self.key_min.0.fetch_max(key_min, Relaxed);
    }

    /// So many of the oldest rows were deleted.
    #[inline]
    pub(super) fn deleted(&self, rows: u64) {
        self.key_min.0.fetch_add(rows as i64, Relaxed);
    }

    /// Returns the first of so many new keys.
    #[inline]
    pub(super) fn take_keys(&self, count: u32) -> i64 {
        self.next_key.0.fetch_add(count.into(), Relaxed)
    }

    /// Returns the key after the last one that was taken.
    pub(super) fn next_key(&self) -> i64 {
        self.next_key.0.load(Relaxed)
    }

    /// Returns the first of so many keys that are the caller's to delete.
    #[inline]
    pub(super) fn claim_keys(&self, count: u64) -> i64 {
        self.unclaimed.0.fetch_add(count as i64, Relaxed)
    }
}
