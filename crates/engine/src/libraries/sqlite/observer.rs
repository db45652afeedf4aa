//! Reads SQLite's sizes, free pages, write-ahead log, and waits for the lock.
//!
//! SQLite counts cache hits and page writes for each connection. To read them would disturb the
//! load's connections, so they are *not applicable* instead of zero.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use words::{Counter, Role};

use super::ffi::{Connection, LOCK_WAIT_COUNT, LOCK_WAIT_NS};
use super::first_integer;
use crate::contract::Observer;
use crate::error::Error;

pub(super) struct SqliteObserver {
    connection: Connection,
    wal: PathBuf,
}

impl SqliteObserver {
    pub(super) fn new(connection: Connection, wal: PathBuf) -> Self {
        Self { connection, wal }
    }

    /// Returns the size of the write-ahead log, which is zero without a log.
    pub(super) fn wal_file_bytes(&self) -> Counter {
        let bytes = fs_err::metadata(&self.wal).map_or(0, |metadata| metadata.len());
        Counter::gauge("wal_file_bytes", bytes as f64).with_role(Role::LogFileBytes)
    }
}

impl Observer for SqliteObserver {
    fn counters(&mut self) -> Result<Vec<Counter>, Error> {
        let pages = first_integer(&mut self.connection, "pragma page_count")? as f64;
        let free = first_integer(&mut self.connection, "pragma freelist_count")? as f64;
        let size = first_integer(&mut self.connection, "pragma page_size")? as f64;

        let mut counters = vec![
            Counter::gauge("database_bytes", pages * size).with_role(Role::DatabaseBytes),
            Counter::gauge("free_bytes", free * size),
        ];

        counters.extend(self.sample()?);
        Ok(counters)
    }

    /// Reads no page of the database, which would take a read lock every second.
    fn sample(&mut self) -> Result<Vec<Counter>, Error> {
        Ok(vec![
            self.wal_file_bytes(),
            Counter::cumulative("lock_wait_count", LOCK_WAIT_COUNT.load(Relaxed) as f64)
                .with_role(Role::LockWaitCount),
            Counter::cumulative("lock_wait_ns", LOCK_WAIT_NS.load(Relaxed) as f64)
                .with_role(Role::LockWaitTime),
        ])
    }
}
