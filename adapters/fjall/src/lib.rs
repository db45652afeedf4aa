//! fjall for Assay. Build: `cargo build --release`.
//!
//! Options, with the names of fjall: `cache_size`, `max_journaling_size` (bytes), `worker_threads`;
//! and those that fjall fixes when it creates a database: `max_memtable_size`, `data_block_size`
//! (bytes), `compression` (`true` for LZ4 below the second level).
//!
//! Each write goes to the journal. With the durability `none`, it may stay in the memory of the
//! process; with `process`, the kernel has it (`PersistMode::Buffer`, the default of fjall); with
//! `machine`, the device has it (`PersistMode::SyncData`). Keys have at most 65,535 bytes.

#[path = "../../rust/assay_engine.rs"]
mod assay_engine;

use std::ffi::CStr;
use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use assay_engine::{
    Change, Counter, Database, Durability, Entry, Failure, Options, Session, Settings, Table,
};
use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{
    CompressionType, Iter, Keyspace, KeyspaceCreateOptions, KvPair, PersistMode, Readable as _,
    UserValue,
};

struct FjallDatabase {
    fjall: fjall::Database,
    entries: Keyspace,
    settings: Settings,
}

struct FjallSession {
    fjall: fjall::Database,
    entries: Keyspace,
    /// The value that is lent.
    value: Option<UserValue>,
    entry: Option<KvPair>,
    scan: Option<Scan>,
}

struct Scan {
    range: Iter,
    is_downward: bool,
}

impl Database for FjallDatabase {
    type Session = FjallSession;

    const NAME: &'static CStr = c"fjall";
    const VERSION: &'static CStr = assay_engine::VERSION;
    const DURABILITIES: &'static [Durability] =
        &[Durability::Nothing, Durability::Process, Durability::Machine];

    fn open(directory: &Path, creates: bool, mut options: Options) -> Result<Self, Failure> {
        // fjall would create it.
        if !creates {
            directory.join("version").metadata()?;
        }
        let cores = std::thread::available_parallelism()?.get();
        let builder = fjall::Database::builder(directory)
            // Each write says whether it is persisted.
            .manual_journal_persist(true)
            .cache_size(options.take("cache_size", 32 << 20)?)
            .max_journaling_size(options.take("max_journaling_size", 512 << 20)?)
            .worker_threads(options.take("worker_threads", cores.min(4))?);
        let mut of_entries = KeyspaceCreateOptions::default()
            .manual_journal_persist(true)
            .max_memtable_size(options.take("max_memtable_size", 64 << 20)?)
            .data_block_size_policy(BlockSizePolicy::all(options.take("data_block_size", 4096)?));
        if !options.take("compression", true)? {
            let none = CompressionPolicy::all(CompressionType::None);
            of_entries = of_entries.data_block_compression_policy(none);
        }
        let settings = options.into_settings()?;

        let fjall = builder.open()?;
        let entries = fjall.keyspace("entries", || of_entries)?;
        Ok(Self { fjall, entries, settings })
    }

    fn close(self) -> Result<(), Failure> {
        self.sync()
    }

    fn open_session(&self) -> Result<FjallSession, Failure> {
        let (fjall, entries) = (self.fjall.clone(), self.entries.clone());
        Ok(FjallSession { fjall, entries, value: None, entry: None, scan: None })
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.fjall.persist(PersistMode::SyncAll)?)
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.entries.rotate_memtable_and_wait()?)
    }

    /// fjall does not tell whether a compaction is due: none must begin in all of the time.
    fn wait_until_idle(&self, at_most: Duration) -> Result<bool, Failure> {
        let began = self.fjall.compactions_completed();
        std::thread::sleep(at_most);
        Ok(self.fjall.outstanding_flushes() == 0
            && self.fjall.active_compactions() == 0
            && self.fjall.compactions_completed() == began)
    }

    fn counters(&self) -> Vec<Counter> {
        let compaction_seconds = self.fjall.time_compacting().as_secs_f64();
        let compactions = self.fjall.compactions_completed() as f64;
        let memtable_bytes = self.fjall.write_buffer_size() as f64;
        let cache_bytes = self.fjall.cache_size() as f64;
        let tree_bytes = self.entries.disk_space() as f64;
        let mut counters = vec![
            Counter::cumulative(c"compaction_seconds", compaction_seconds, None),
            Counter::cumulative(c"compaction_count", compactions, Some(c"work")),
            Counter::gauge(c"memtable_bytes", memtable_bytes, Some(c"memtable_bytes")),
            Counter::gauge(c"cache_bytes", cache_bytes, Some(c"block_cache_bytes")),
            Counter::gauge(c"tree_bytes", tree_bytes, Some(c"tree_bytes")),
            Counter::gauge(c"table_count", self.entries.table_count() as f64, Some(c"file_count")),
        ];
        if let Ok(journal_bytes) = self.fjall.journal_disk_space() {
            counters.push(Counter::gauge(c"journal_bytes", journal_bytes as f64, None));
        }
        counters
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Session for FjallSession {
    fn write(&mut self, changes: &[Change], durability: Durability) -> Result<(), Failure> {
        let mode = match durability {
            Durability::Nothing => None,
            Durability::Process => Some(PersistMode::Buffer),
            Durability::Machine => Some(PersistMode::SyncData),
        };

        // A single change needs no list of changes.
        if let [change] = changes {
            match change.value() {
                Some(value) => self.entries.insert(change.key(), value)?,
                None => self.entries.remove(change.key())?,
            }
            return Ok(mode.map_or(Ok(()), |mode| self.fjall.persist(mode))?);
        }

        let mut batch = self.fjall.batch().durability(mode);
        for change in changes {
            match change.value() {
                Some(value) => batch.insert(&self.entries, change.key(), value),
                None => batch.remove(&self.entries, change.key()),
            }
        }
        Ok(batch.commit()?)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Failure> {
        self.value = self.entries.get(key)?;
        Ok(self.value.as_deref())
    }

    fn seek(&mut self, key: &[u8], is_downward: bool) -> Result<Option<Entry<'_>>, Failure> {
        let bounds = if is_downward {
            (Bound::Unbounded, Bound::Included(key))
        } else {
            (Bound::Included(key), Bound::Unbounded)
        };
        let range = self.fjall.snapshot().range::<&[u8], _>(&self.entries, bounds);
        self.scan = Some(Scan { range, is_downward });
        self.next()
    }

    fn next(&mut self) -> Result<Option<Entry<'_>>, Failure> {
        let Some(Scan { range, is_downward }) = &mut self.scan else { return Ok(None) };
        let next = if *is_downward { range.next_back() } else { range.next() };
        self.entry = next.map(|guard| guard.into_inner()).transpose()?;
        Ok(self.entry.as_ref().map(|(key, value)| Entry { key, value }))
    }

    fn release(&mut self) {
        self.value = None;
        self.entry = None;
        self.scan = None;
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn assay_engine() -> *const Table {
    assay_engine::table::<FjallDatabase>()
}
