//! What the binding to RocksDB costs per read, outside of the library: reads of a cached database through a session,
//! in turn with the same reads by the bare function in a loop. And what reading the counters costs.
//!
//! ```sh
//! cargo run --release -p engine --example rocksdb_binding -- LIBRARY
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    unsafe_code,
    reason = "a measurement to be run by hand, of what the safe interface adds to the unsafe one"
)]

use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::Engine as _;
use engine::rocksdb::{Config, Library, RocksDb};
use engine::{Durability, KeyValueSession, SettleLimits};
use rustix::time::{ClockId, clock_gettime};

/// So few that all of them stay in the processor's caches: what is left to see is the calls.
const KEYS: u64 = 1000;
/// A round is over in milliseconds, so that some of many rounds are had without an interruption.
const READS: u64 = 1000;
const ROUNDS: usize = 2001;

type Opaque = *mut c_void;
type Create = unsafe extern "C" fn() -> Opaque;
type Get = unsafe extern "C" fn(Opaque, Opaque, *const c_char, usize, *mut *mut c_char) -> Opaque;
type Value = unsafe extern "C" fn(Opaque, *mut usize) -> *const c_char;
type Destroy = unsafe extern "C" fn(Opaque);

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Writes the key of a round's read number `n` into `key`: the same for both, all over the database.
fn next_key(key: &mut [u8; 20], n: u64) {
    let mut rest = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % KEYS;
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

fn per_read(mut read: impl FnMut(&[u8; 20]) -> usize) -> f64 {
    let mut key = [b'0'; 20];
    let mut bytes = 0;
    let before = cpu_ns();
    for n in 0..READS {
        next_key(&mut key, n);
        bytes += read(&key);
    }
    let spent = cpu_ns() - before;
    assert_eq!(bytes as u64, READS * 400);
    spent as f64 / READS as f64
}

/// A database of `KEYS` keys, in files that are all of one level.
fn load(library: &Arc<Library>, directory: &Path, config: &Config) -> RocksDb {
    let database = RocksDb::create(library, directory, config).unwrap();
    let mut session = database.connect();
    session.set_durability(Durability::NoLog);
    let mut key = [b'0'; 20];
    for n in 0..KEYS {
        let mut rest = n;
        for digit in key.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        session.put(&key, &[n as u8; 400]).unwrap();
    }
    let limits = SettleLimits {
        at_least: Duration::ZERO,
        at_most: Duration::from_secs(60),
    };
    let go_on = AtomicBool::new(false);
    database.settle_and_empty_l0(limits, &go_on).unwrap();
    database
}

fn main() {
    let path = std::env::args_os().nth(1).expect("the path of a library");
    let library = Library::open(Path::new(&path)).unwrap();
    let config = Config {
        set: [
            ("compression", "kNoCompression"),
            ("block_cache", "{capacity=512M}"),
            (
                "block_based_table_factory.filter_policy",
                "bloomfilter:10:false",
            ),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .to_vec(),
        ..Config::default()
    };
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let other = load(&library, places[1].path(), &config);
    other.stop().unwrap();
    let database = load(&library, places[0].path(), &config);
    let mut session = database.connect();

    // The same library, and a second database with the same in it, by the bare functions.
    // SAFETY: the library is loaded already; the functions have the types that RocksDB's header gives them.
    let (bare, options, get, value, destroy) = unsafe {
        let library = libloading::Library::new(library.path()).unwrap();
        let options_create: Create = *library.get(b"rocksdb_readoptions_create\0").unwrap();
        let get: Get = *library.get(b"rocksdb_get_pinned\0").unwrap();
        let value: Value = *library.get(b"rocksdb_pinnableslice_value\0").unwrap();
        let destroy: Destroy = *library.get(b"rocksdb_pinnableslice_destroy\0").unwrap();
        let new_options: Create = *library.get(b"rocksdb_options_create\0").unwrap();
        let from_string: unsafe extern "C" fn(Opaque, *const c_char, Opaque, *mut *mut c_char) =
            *library.get(b"rocksdb_get_options_from_string\0").unwrap();
        let open: unsafe extern "C" fn(Opaque, *const c_char, *mut *mut c_char) -> Opaque =
            *library.get(b"rocksdb_open\0").unwrap();
        let text = CString::new(
            "compression=kNoCompression;block_based_table_factory={block_cache={capacity=512M};\
             filter_policy=bloomfilter:10:false}",
        )
        .unwrap();
        let (base, set, mut error) = (new_options(), new_options(), null_mut());
        from_string(base, text.as_ptr(), set, &mut error);
        assert!(error.is_null());
        let files = CString::new(places[1].path().join("db").to_str().unwrap()).unwrap();
        let bare = open(set, files.as_ptr(), &mut error);
        assert!(error.is_null() && !bare.is_null());
        std::mem::forget(library);
        (bare, options_create(), get, value, destroy)
    };
    let mut by_session = Vec::new();
    let mut by_function = Vec::new();
    let mut empty = Vec::new();
    for _ in 0..ROUNDS {
        by_function.push(per_read(|key| {
            let mut error = null_mut();
            // SAFETY: the database is open, the key is borrowed for the call, the value is given back.
            unsafe {
                let found = get(bare, options, key.as_ptr().cast(), key.len(), &mut error);
                let mut length = 0;
                std::hint::black_box(value(found, &mut length));
                destroy(found);
                length
            }
        }));
        by_session.push(per_read(|key| session.get(key).unwrap().unwrap().len()));
        empty.push(per_read(|key| {
            std::hint::black_box(key);
            400
        }));
    }
    for times in [&mut by_session, &mut by_function, &mut empty] {
        times.sort_by(f64::total_cmp);
    }
    println!(
        "{}: ns of CPU per read, first decile and median of {ROUNDS} rounds of {READS}",
        library.version_text()
    );
    for (what, times) in [
        ("session", &by_session),
        ("bare function", &by_function),
        ("making a key", &empty),
    ] {
        println!(
            "{what:14} {:8.1} {:8.1}",
            times[ROUNDS / 10],
            times[ROUNDS / 2]
        );
    }

    println!(
        "the session adds {:.1} ns (of the first deciles)",
        by_session[ROUNDS / 10] - by_function[ROUNDS / 10]
    );
    let mut observer = database.observer();
    let mut samples: Vec<u64> = (0..201)
        .map(|_| {
            let before = cpu_ns();
            observer.sample().unwrap();
            cpu_ns() - before
        })
        .collect();
    samples.sort_unstable();
    println!(
        "reading counters, as each second: median {} us, largest {} us",
        samples[100] / 1000,
        samples[200] / 1000
    );
}
