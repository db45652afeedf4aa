//! Measures what an operation costs a thread: with RocksDB bound by Assay, or by an adapter.
//!
//! Usage: `adapter rocksdb LIBRARY` or `adapter library LIBRARY`. Prints the CPU time of a read, a
//! write and an entry of a scan, in ns: the least of several rounds, since others on the machine
//! can only add to it.

#![expect(clippy::print_stdout, reason = "prints its results")]

use std::path::Path;
use std::sync::Arc;

use engine::custom::CustomLibrary;
use engine::{
    Direction, KeyValueEngine as _, KeyValueLibrary, KeyValueSession as _, LibraryConfig, Scan,
    rocksdb,
};
use rustix::time::{ClockId, clock_gettime};
use words::{Durability, Random};

type Failure = Box<dyn std::error::Error>;

/// All fit in the memtable, so that the library itself does little.
const KEYS: u64 = 2_000;
const ROUNDS: usize = 20;
const OPERATIONS: u64 = 20_000;
/// The entries of a scan.
const ENTRIES: u64 = 100;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [kind, path] if kind == "rocksdb" => measure::<rocksdb::Library>(Path::new(path)),
        [kind, path] if kind == "library" => measure::<CustomLibrary>(Path::new(path)),
        _ => Err("usage: adapter rocksdb|library LIBRARY".into()),
    }
}

fn measure<L: KeyValueLibrary>(path: &Path) -> Result<(), Failure> {
    let library: Arc<L> = L::load(path)?;
    let place = tempfile::tempdir()?;
    let config = LibraryConfig { durability: Durability::None, ..LibraryConfig::default() };
    let database = library.create_database(place.path(), &config)?;
    let mut session = database.connect()?;
    session.enter_thread();
    let value = [7; 100];
    for number in 0..KEYS {
        session.put(&key(number), &value)?;
    }

    let mut random = Random::new(1);
    let read = least(OPERATIONS, || {
        let found = session.get(&key(random.below(KEYS)))?;
        Ok(found.ok_or("a key is missing")?.len() as u64)
    })?;
    let scanned = least(OPERATIONS / ENTRIES, || {
        let from = key(random.below(KEYS - ENTRIES));
        let scan = Scan {
            from: &from,
            direction: Direction::Forward,
            limit: ENTRIES,
            verifies_order: false,
        };
        Ok(session.scan(scan, |_, _| {})?.entries)
    })?;
    let written = least(OPERATIONS, || {
        session.put(&key(random.below(KEYS)), &value)?;
        Ok(1)
    })?;
    println!("read {read:.2}");
    println!("entry {:.2}", scanned / ENTRIES as f64);
    println!("write {written:.2}");
    Ok(())
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Returns the least CPU time of an operation over all rounds, in ns.
fn least(
    operations: u64,
    mut operation: impl FnMut() -> Result<u64, Failure>,
) -> Result<f64, Failure> {
    let mut least = f64::INFINITY;
    let mut sum = 0;
    for _ in 0..ROUNDS {
        let began = cpu_ns();
        for _ in 0..operations {
            sum += operation()?;
        }
        least = least.min((cpu_ns() - began) / operations as f64);
    }
    // The compiler must not leave the operations out.
    std::hint::black_box(sum);
    Ok(least)
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
