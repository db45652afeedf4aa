//! RocksDB and Speedb, with real libraries: those that `ASSAY_TEST_ROCKSDB` names, separated by
//! `:`.
//!
//! Two libraries never share an address space. So each test runs once for each library in a
//! separate process: the test binary with the library in `ASSAY_TEST_ROCKSDB_LIBRARY`.

mod counters;
mod crash;
mod libraries;
mod life;
mod sequence;
mod transactions;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::rocksdb::{Library, RocksDb};
use engine::{LibraryConfig, SettleLimits};

pub(crate) use libraries::{LIBRARY, alone, libraries, on_each};

pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// Small files and little memory, so that little data makes a tree of several levels.
pub(crate) const SMALL: [(&str, &str); 9] = [
    ("write_buffer_size", "64K"),
    ("max_background_jobs", "2"),
    ("target_file_size_base", "64K"),
    ("max_bytes_for_level_base", "256K"),
    ("compression", "kNoCompression"),
    ("level0_file_num_compaction_trigger", "4"),
    ("block_size", "4096"),
    ("block_cache", "{capacity=1M;num_shard_bits=2}"),
    ("block_based_table_factory.filter_policy", "bloomfilter:10:false"),
];

pub(crate) fn config(set: &[(&str, &str)]) -> LibraryConfig {
    LibraryConfig {
        set: set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        ..LibraryConfig::default()
    }
}

pub(crate) fn small(library: &Arc<Library>, directory: &Path) -> RocksDb {
    RocksDb::create(library, directory, &config(&SMALL)).unwrap()
}

pub(crate) const LIMITS: SettleLimits =
    SettleLimits { at_least: Duration::ZERO, at_most: Duration::from_secs(60) };

pub(crate) fn key(number: u64) -> [u8; 20] {
    let mut key = [b'0'; 20];
    let digits = number.to_string();
    key[20 - digits.len()..].copy_from_slice(digits.as_bytes());
    key
}

pub(crate) fn value(number: u64) -> [u8; 100] {
    let mut value = [0; 100];
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for byte in &mut value {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state as u8;
    }
    value
}
