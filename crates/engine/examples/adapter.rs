//! Measures what the C interface for engines of others adds to an operation: the same RocksDB, bound
//! by Assay and by an adapter, in one process and in turns of a millisecond.
//!
//! Usage: `adapter LIBRARY ADAPTER`. Prints the CPU time of a read, of an entry of a scan and of a
//! write by the binding, and what the adapter adds to each, in ns. They are medians over pairs of
//! turns next to each other, so that other load on the machine slows both of a pair. New databases
//! are opened several times, since two databases with the same entries differ in their layout in
//! memory.

#![expect(clippy::print_stdout, reason = "prints its results")]

use std::path::Path;
use std::sync::Arc;

use engine::custom::CustomLibrary;
use engine::{
    Direction, KeyValueEngine as _, KeyValueLibrary, KeyValueSession, LibraryConfig, Scan, rocksdb,
};
use rustix::time::{ClockId, clock_gettime};
use words::{Durability, Random};

type Failure = Box<dyn std::error::Error>;

/// All fit in the memtable, so that the library itself does little.
const KEYS: u64 = 2_000;
/// The number of times that both databases are opened anew.
const DATABASES: u64 = 20;
/// The pairs of turns of each operation with the same databases.
const PAIRS: usize = 40;
/// The operations of a turn, or the entries of its scans.
const OPERATIONS: u64 = 1_000;
/// The entries of a scan.
const ENTRIES: u64 = 100;

/// The operation of a turn.
#[derive(Clone, Copy)]
enum Operation {
    Read,
    Scan,
    Write,
}

const ALL: [(&str, Operation); 3] =
    [("read", Operation::Read), ("entry", Operation::Scan), ("write", Operation::Write)];

/// The CPU time of an operation in each pair of turns, in ns.
#[derive(Default)]
struct Times {
    of_binding: Vec<f64>,
    /// Those of the adapter minus those of the binding.
    added: Vec<f64>,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [library, adapter] = &arguments[..] else {
        return Err("usage: adapter LIBRARY ADAPTER".into());
    };
    let binding = rocksdb::Library::load(Path::new(library))?;
    let adapter = CustomLibrary::load(Path::new(adapter))?;

    let mut all_times = ALL.map(|_| Times::default());
    for number in 0..DATABASES {
        measure(number, &binding, &adapter, &mut all_times)?;
    }

    for ((name, _), times) in ALL.iter().zip(all_times) {
        println!("{name} {:.2}", median(times.of_binding));
        println!("added_to_{name} {:.2}", median(times.added));
    }
    Ok(())
}

/// Measures all operations with new databases.
fn measure(
    number: u64,
    binding: &Arc<rocksdb::Library>,
    adapter: &Arc<CustomLibrary>,
    all_times: &mut [Times; 3],
) -> Result<(), Failure> {
    let places = [tempfile::tempdir()?, tempfile::tempdir()?];
    let mut by_binding = open(binding, places[0].path())?;
    let mut by_adapter = open(adapter, places[1].path())?;

    for (times, (_, operation)) in all_times.iter_mut().zip(ALL) {
        for pair in 0..PAIRS {
            // Both do the same, and each is as often first as the other.
            let seed = number * PAIRS as u64 + pair as u64;
            let [of_binding, of_adapter];
            if pair % 2 == 0 {
                of_binding = turn(&mut by_binding, operation, seed)?;
                of_adapter = turn(&mut by_adapter, operation, seed)?;
            } else {
                of_adapter = turn(&mut by_adapter, operation, seed)?;
                of_binding = turn(&mut by_binding, operation, seed)?;
            }
            times.of_binding.push(of_binding);
            times.added.push(of_adapter - of_binding);
        }
    }
    Ok(())
}

/// Returns a session with a new database that has all keys.
fn open<L: KeyValueLibrary>(
    library: &Arc<L>,
    place: &Path,
) -> Result<impl KeyValueSession + use<L>, Failure> {
    let config = LibraryConfig { durability: Durability::None, ..LibraryConfig::default() };
    let database = library.create_database(place, &config)?;
    let mut session = database.connect()?;
    session.enter_thread();
    for number in 0..KEYS {
        session.put(&key(number), &VALUE)?;
    }
    Ok(session)
}

const VALUE: [u8; 100] = [7; 100];

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Returns the CPU time of an operation in a turn, or that of an entry of a scan, in ns.
fn turn(
    session: &mut impl KeyValueSession,
    operation: Operation,
    seed: u64,
) -> Result<f64, Failure> {
    let mut random = Random::new(seed);
    let mut sum = 0;

    let began = cpu_ns();
    match operation {
        Operation::Read => {
            for _ in 0..OPERATIONS {
                let found = session.get(&key(random.below(KEYS)))?;
                sum += found.ok_or("a key is missing")?.len() as u64;
            }
        }
        Operation::Scan => {
            for _ in 0..OPERATIONS / ENTRIES {
                let from = key(random.below(KEYS - ENTRIES));
                let scan = Scan {
                    from: &from,
                    direction: Direction::Forward,
                    limit: ENTRIES,
                    verifies_order: false,
                };
                sum += session.scan(scan, |_, _| {})?.entries;
            }
        }
        Operation::Write => {
            for _ in 0..OPERATIONS {
                session.put(&key(random.below(KEYS)), &VALUE)?;
            }
        }
    }
    let ended = cpu_ns();

    // The compiler must not leave the operations out.
    std::hint::black_box(sum);
    Ok((ended - began) / OPERATIONS as f64)
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
