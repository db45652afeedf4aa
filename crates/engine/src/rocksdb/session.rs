//! A load thread's way to the database.

use std::sync::Arc;

use super::ffi::{Client, Database};
use crate::{Durability, Error, KeyValueSession, Scan, Scanned};

/// One thread's session with an open database.
#[derive(Debug)]
pub struct RocksSession(Client);

impl RocksSession {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self(Client::new(database))
    }
}

impl KeyValueSession for RocksSession {
    /// Without the library's counts of each thread's own work, which nobody reads here and `db_bench` does without too.
    fn enter_thread(&mut self) {
        self.0.stop_counting();
    }

    fn set_durability(&mut self, durability: Durability) {
        self.0.set_durability(durability);
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.0.put(key, value)
    }

    /// The library doesn't look whether the key is there.
    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.0.delete(key)
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.0.batch_put(key, value);
    }

    #[inline]
    fn batch_delete(&mut self, key: &[u8]) {
        self.0.batch_delete(key);
    }

    fn batch_len(&self) -> u64 {
        self.0.batch_len()
    }

    #[inline]
    fn write_batch(&mut self) -> Result<(), Error> {
        self.0.write_batch()
    }

    fn clear_batch(&mut self) {
        self.0.clear_batch();
    }

    #[inline]
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        self.0.get(key)
    }

    #[inline]
    fn multi_get<'k>(&mut self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<u64, Error> {
        self.0.multi_get(keys)
    }

    #[inline]
    fn found(&self, index: usize) -> Option<&[u8]> {
        self.0.found(index)
    }

    #[inline]
    fn scan(&mut self, scan: Scan<'_>, visit: impl FnMut(&[u8], &[u8])) -> Result<Scanned, Error> {
        self.0.scan(scan, visit)
    }

    fn release(&mut self) {
        self.0.release();
    }
}
