//! Runs a step of the key-value sequence as Assay does. `cargo xtask bench kv` compares it with
//! `db_bench` on the same library, and measures the cost outside of the library on an engine that
//! does nothing.
//!
//! ```sh
//! kv LIBRARY DIRECTORY OPTIONS CACHE fillseq KEYS
//! kv LIBRARY DIRECTORY OPTIONS CACHE warm KEYS
//! kv LIBRARY DIRECTORY OPTIONS CACHE STEP KEYS CLIENTS SECONDS WRITE_RATE
//! kv nothing STEP KEYS CLIENTS SECONDS
//! ```
//!
//! `OPTIONS` is an options file of RocksDB, and `CACHE` the block cache, which such a file does not
//! have, in the notation of configs. `fillseq` creates the database in `DIRECTORY`, which the other
//! steps use. The step `warm` only reads all keys in order, as reading steps do before they are
//! measured. The program prints the results of the step.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use engine::rocksdb::{Library, RocksDb};
use engine::{
    Direction, Durability, Engine as _, Error, ErrorClass, KeyOrder, KeyValueEngine as _,
    KeyValueSession, LibraryConfig, Scan, Scanned,
};
use hdrhistogram::Histogram;
use load::{LatencyKind, Limits, Sink, StepEnd, SystemClock};
use words::IntervalRow;
use workload::kv::Kv;
use workload::plan::{self, KvStep, Workload};
use workload::{Next, Schedule, Summaries};

const KEY_SIZE: usize = 20;
const VALUE_SIZE: usize = 400;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["nothing", step, keys, clients, seconds] => {
            let (keys, clients) = (number(keys)?, number(clients)? as u32);
            let kv = sequence(keys, clients, step, "2MiB/s")?;
            on_nothing(kv, number(seconds)?)
        }
        [library, directory, options, cache, "fillseq", keys] => {
            let database = DatabasePlace::new(library, directory, options, cache)?;
            let kv = sequence(number(keys)?, 1, "fillseq", "2MiB/s")?;
            on_rocksdb(&database, kv, None)
        }
        [library, directory, options, cache, "warm", keys] => {
            fill(&mut sequence(number(keys)?, 1, "fillseq", "2MiB/s")?, false)?;
            DatabasePlace::new(library, directory, options, cache)?.open()?.inspect()?;
            Ok(())
        }
        [library, directory, options, cache, step, keys, clients, seconds, write_rate] => {
            let database = DatabasePlace::new(library, directory, options, cache)?;
            let seconds = Duration::from_secs(number(seconds)?);
            let clients = u32::try_from(number(clients)?)?;
            let write_rate = format!("{write_rate}B/s");
            let kv = sequence(number(keys)?, clients, step, &write_rate)?;
            on_rocksdb(&database, kv, Some(seconds))
        }
        _ => bail!("unknown arguments; the top of the source file lists them"),
    }
}

fn number(text: &str) -> anyhow::Result<u64> {
    text.parse().with_context(|| format!("`{text}` is not a number"))
}

/// Returns a sequence of the load and one further step.
fn sequence(keys: u64, clients: u32, step: &str, write_rate: &str) -> anyhow::Result<Kv> {
    let steps = match step {
        "fillseq" => vec![step],
        _ => vec!["fillseq", step],
    };
    let text = format!(
        "[workload.kv]\nkeys = {keys}\nkey-size = {KEY_SIZE}\nvalue-size = {VALUE_SIZE}\n\
         write-rate = \"{write_rate}\"\nsteps = {steps:?}\n\
         [build.any]\nrocksdb = \"any\"\n[config.rocksdb.any]\n"
    );
    let (plan, _) = plan::parse("kv", &text, &[]).map_err(|diagnostics| {
        let messages: Vec<String> =
            diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect();
        anyhow::Error::msg(messages.join("; "))
    })?;
    match &plan.variants[0].workload {
        Workload::Kv(kv) => Ok(Kv::new(kv, clients, 1)),
        _ => bail!("the plan has another workload"),
    }
}

/// Returns the step to measure.
fn measured(kv: &Kv) -> KvStep {
    let steps = &kv.plan().steps;
    steps[steps.len() - 1].clone()
}

/// A library, and a directory with the config of its database.
struct DatabasePlace {
    library: Arc<Library>,
    directory: String,
    config: LibraryConfig,
}

impl DatabasePlace {
    fn new(library: &str, directory: &str, options: &str, cache: &str) -> anyhow::Result<Self> {
        let config = LibraryConfig {
            file: Some(fs_err::read_to_string(options)?),
            set: vec![("block_cache".into(), cache.into())],
            ..LibraryConfig::default()
        };
        Ok(Self {
            library: Library::open(Path::new(library))?,
            directory: directory.into(),
            config,
        })
    }

    fn create(&self) -> anyhow::Result<RocksDb> {
        let directory = Path::new(&self.directory);
        fs_err::create_dir_all(directory)?;
        Ok(RocksDb::create(&self.library, directory, &self.config)?)
    }

    fn open(&self) -> anyhow::Result<RocksDb> {
        let directory = Path::new(&self.directory);
        Ok(RocksDb::open(&self.library, directory, &self.config)?)
    }
}

/// Runs a step on a database that this step loads, or that another call loaded.
fn on_rocksdb(place: &DatabasePlace, mut kv: Kv, time: Option<Duration>) -> anyhow::Result<()> {
    let step = measured(&kv);
    let creates = step.kind.is_load();
    let database = if creates {
        place.create()?
    } else {
        // Repeating the load on nothing tells the sequence what the database has.
        fill(&mut kv, false)?;
        let database = place.open()?;
        database.inspect()?;
        database
    };
    run(&mut kv, &step, time, || Ok(database.connect()))?;
    if creates {
        // At the end all data is in files, as after db_bench's `flush`.
        let limits =
            engine::SettleLimits { at_least: Duration::ZERO, at_most: Duration::from_secs(60) };
        database.settle(false, limits, &AtomicBool::new(false))?;
    }
    database.stop()?;
    Ok(())
}

/// Runs a step on an engine that does nothing, so that only the load, the programs and their data
/// remain.
fn on_nothing(mut kv: Kv, seconds: u64) -> anyhow::Result<()> {
    let step = measured(&kv);
    if step.kind.is_load() {
        return run(&mut kv, &step, None, || Ok(Nothing::new(&Arc::default())));
    }
    let table = Arc::new(fill(&mut kv, true)?);
    let time = Some(Duration::from_secs(seconds));
    run(&mut kv, &step, time, || Ok(Nothing::new(&table)))
}

/// Tells the sequence that it is loaded. Returns the entries in order if `keep`, otherwise none.
fn fill(kv: &mut Kv, keep: bool) -> anyhow::Result<Table> {
    let kept = Arc::new(Mutex::new(Table::default()));
    let step = kv.plan().steps[0].clone();
    let mut tasks = kv.tasks(&step, || {
        let kept = keep.then(|| Arc::clone(&kept));
        Ok(Nothing { kept, ..Nothing::new(&Arc::default()) })
    })?;
    for task in &mut tasks {
        while task.program.prepare() != Next::Done {
            task.program.execute()?;
        }
    }

    let mut summaries = Summaries::new();
    for task in &mut tasks {
        summaries.push((task.client, task.program.summary(0)?));
    }
    kv.apply(&step, &summaries, true);

    let mut table = kept.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *table))
}

/// Counts the recorded operations and latencies.
#[derive(Default)]
struct Counts {
    done: u64,
    recorded: u64,
}

impl Sink for Counts {
    fn intervals(&mut self, rows: &[IntervalRow<'_>]) -> Result<(), String> {
        self.done += rows.iter().map(|row| row.ok).sum::<u64>();
        Ok(())
    }

    fn latencies(
        &mut self,
        _: u32,
        _: &str,
        time: LatencyKind,
        histogram: &Histogram<u64>,
    ) -> Result<(), String> {
        if time == LatencyKind::Service {
            self.recorded += histogram.len();
        }
        Ok(())
    }
}

/// Runs a step and prints its results. They include only connections without a rate, not the writer
/// with a rate.
fn run<S: KeyValueSession>(
    kv: &mut Kv,
    step: &KvStep,
    time: Option<Duration>,
    connect: impl Fn() -> Result<S, Error>,
) -> anyhow::Result<()> {
    let mut tasks = kv.tasks(step, connect)?;
    for task in &mut tasks {
        task.background = task.schedule != Schedule::Closed;
    }

    let limits = Limits { time, error_limit: 0, attempts: 1, grace: Duration::from_secs(10) };
    let main_role = tasks[0].role;
    let mut counts = Counts::default();
    let outcome =
        load::run(tasks, limits, &SystemClock::begin(), &AtomicBool::new(false), &mut counts);
    if outcome.end != StepEnd::Complete {
        bail!("the step failed: {:?}", outcome.end);
    }

    let Counts { done, recorded } = counts;
    let unexpected: u64 = outcome.totals.values().map(|total| total.unexpected_rows).sum();
    if done != recorded || unexpected > 0 {
        bail!(
            "{done} operations, {recorded} latencies, and {unexpected} reads of values that were not written"
        );
    }
    let checks = kv.apply(step, &outcome.summaries, true);
    if let Some(check) = checks.iter().find(|check| !check.holds) {
        bail!("{}: {}, expected {}", check.what, check.found, check.expected);
    }

    let (mut operations, mut cpu_ns) = (0, 0);
    for connection in outcome.connections.iter().filter(|one| one.role == main_role) {
        operations += connection.ok;
        cpu_ns += connection.cpu_user_ns + connection.cpu_system_ns;
    }
    println!("operations: {operations}");
    println!("elapsed_ns: {}", outcome.elapsed_ns);
    println!("client_cpu_ns: {cpu_ns}");
    Ok(())
}

/// A session that does only what the trait requires: it finds the entries of a load, if it has
/// them, and checks the order of a scan's keys.
struct Nothing {
    table: Arc<Table>,
    /// Collects the entries of a load, if they are kept.
    kept: Option<Arc<Mutex<Table>>>,
    /// The numbers of the keys in the last multi-get.
    found: Vec<u64>,
    order: KeyOrder,
}

/// The entries of a load, in the order of the keys. Keys and values are separate, so that keys are
/// close together in memory.
#[derive(Default)]
struct Table {
    keys: Vec<[u8; KEY_SIZE]>,
    values: Vec<[u8; VALUE_SIZE]>,
}

impl Table {
    #[inline]
    fn key(&self, number: u64) -> Option<&[u8]> {
        Some(self.keys.get(usize::try_from(number).ok()?)?)
    }

    #[inline]
    fn value(&self, number: u64) -> Option<&[u8]> {
        Some(self.values.get(usize::try_from(number).ok()?)?)
    }
}

impl Nothing {
    fn new(table: &Arc<Table>) -> Self {
        Self { table: Arc::clone(table), kept: None, found: Vec::new(), order: KeyOrder::default() }
    }
}

/// Returns the number at the start of a key.
#[inline]
fn number_of(key: &[u8]) -> u64 {
    key.first_chunk().map_or(u64::MAX, |head| u64::from_be_bytes(*head))
}

fn wrong_size() -> Error {
    Error::new(ErrorClass::Protocol, "an entry of another size")
}

impl KeyValueSession for Nothing {
    fn set_durability(&mut self, _: Durability) {}

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        // Otherwise the compiler could omit computing them.
        std::hint::black_box((key, value));
        if let Some(kept) = &self.kept {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let (keys, values) = (key.try_into(), value.try_into());
            kept.keys.push(keys.map_err(|_| wrong_size())?);
            kept.values.push(values.map_err(|_| wrong_size())?);
        }
        Ok(())
    }

    fn delete(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn batch_put(&mut self, _: &[u8], _: &[u8]) {}

    fn batch_delete(&mut self, _: &[u8]) {}

    fn batch_len(&self) -> u64 {
        0
    }

    fn write_batch(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn clear_batch(&mut self) {}

    #[inline]
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        Ok(self.table.value(number_of(key)))
    }

    #[inline]
    fn multi_get<'k>(&mut self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<u64, Error> {
        self.found.clear();
        self.found.extend(keys.into_iter().map(number_of));
        Ok(self.found.len() as u64)
    }

    #[inline]
    fn found(&self, index: usize) -> Option<&[u8]> {
        self.table.value(*self.found.get(index)?)
    }

    #[inline]
    fn scan(
        &mut self,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<Scanned, Error> {
        let mut scanned = Scanned::default();
        let is_forward = scan.direction == Direction::Forward;
        let mut number = number_of(scan.from);
        self.order.begin(scan.direction);
        while scanned.entries < scan.limit {
            let (Some(key), Some(value)) = (self.table.key(number), self.table.value(number))
            else {
                break;
            };
            if scan.verifies_order && !self.order.follows(scan.from, key) {
                return Err(Error::new(ErrorClass::Protocol, "keys are out of order"));
            }
            scanned.entries += 1;
            scanned.bytes += (key.len() + value.len()) as u64;
            visit(key, value);
            number = if is_forward { number.wrapping_add(1) } else { number.wrapping_sub(1) };
        }
        Ok(scanned)
    }

    fn release(&mut self) {}
}
