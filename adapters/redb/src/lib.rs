//! redb for Assay. Build: `cargo build --release`.
//!
//! Option: `cache_size` (bytes; 1 GiB unless given).
//!
//! A write is one transaction. redb has two durabilities. `Immediate` waits for the device.
//! `None` leaves the transaction in the memory of the process, and the next one with `Immediate`
//! makes it durable. There is none between: writes that must survive the process use `Immediate`.

#[path = "../../rust/assay_engine.rs"]
mod assay_engine;

use std::ffi::CStr;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_engine::{
    Change, Counter, Database, Durability, Entry, Failure, Options, Session, Settings, Table,
};
use redb::{AccessGuard, Builder, Range, ReadOnlyTable, ReadableDatabase, TableDefinition};

type Slice = &'static [u8];

const ENTRIES: TableDefinition<Slice, Slice> = TableDefinition::new("entries");

struct RedbDatabase {
    shared: Arc<Shared>,
    settings: Settings,
}

/// The state that the database and its sessions share.
struct Shared {
    redb: redb::Database,
    commit_count: AtomicU64,
}

struct RedbSession {
    shared: Arc<Shared>,
    view: Option<View>,
    /// The value that is lent.
    value: Option<AccessGuard<'static, Slice>>,
    entry: Option<(AccessGuard<'static, Slice>, AccessGuard<'static, Slice>)>,
    scan: Option<Scan>,
}

/// The data as they were after a number of commits.
struct View {
    table: ReadOnlyTable<Slice, Slice>,
    commit_count: u64,
}

struct Scan {
    range: Range<'static, Slice, Slice>,
    is_downward: bool,
}

impl Shared {
    fn commit(&self, changes: &[Change], durability: redb::Durability) -> Result<(), Failure> {
        let mut transaction = self.redb.begin_write()?;
        transaction.set_durability(durability)?;

        let mut table = transaction.open_table(ENTRIES)?;
        for change in changes {
            match change.value() {
                Some(value) => table.insert(change.key(), value)?,
                None => table.remove(change.key())?,
            };
        }
        drop(table);

        transaction.commit()?;
        self.commit_count.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

impl Database for RedbDatabase {
    type Session = RedbSession;

    const NAME: &'static CStr = c"redb";
    const VERSION: &'static CStr = assay_engine::VERSION;
    const DURABILITIES: &'static [Durability] = &[Durability::Nothing, Durability::Machine];

    fn open(directory: &Path, creates: bool, mut options: Options) -> Result<Self, Failure> {
        let mut builder = Builder::new();
        builder.set_cache_size(options.take("cache_size", 1 << 30)?);
        let settings = options.into_settings()?;

        let file = directory.join("data.redb");
        let redb = if creates { builder.create(file)? } else { builder.open(file)? };
        let shared = Shared { redb, commit_count: AtomicU64::new(0) };
        // Reads expect the table.
        shared.commit(&[], redb::Durability::Immediate)?;
        Ok(Self { shared: Arc::new(shared), settings })
    }

    fn close(self) -> Result<(), Failure> {
        if let Some(shared) = Arc::into_inner(self.shared) {
            shared.redb.close()?;
        }
        Ok(())
    }

    fn open_session(&self) -> Result<RedbSession, Failure> {
        let shared = Arc::clone(&self.shared);
        Ok(RedbSession { shared, view: None, value: None, entry: None, scan: None })
    }

    /// Makes the commits before it durable, too.
    fn sync(&self) -> Result<(), Failure> {
        self.shared.commit(&[], redb::Durability::Immediate)
    }

    fn flush(&self) -> Result<(), Failure> {
        self.sync()
    }

    /// redb has no threads of its own.
    fn wait_until_idle(&self, _: Duration) -> Result<bool, Failure> {
        Ok(true)
    }

    fn counters(&self) -> Vec<Counter> {
        let commit_count = self.shared.commit_count.load(Ordering::Relaxed);
        vec![Counter::cumulative(c"commit_count", commit_count as f64, None)]
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl RedbSession {
    /// Returns the current data. A view is as good as a new one while nobody has written.
    fn table(&mut self) -> Result<&ReadOnlyTable<Slice, Slice>, Failure> {
        let commit_count = self.shared.commit_count.load(Ordering::Acquire);
        let view = match self.view.take().filter(|view| view.commit_count == commit_count) {
            Some(view) => view,
            None => {
                let table = self.shared.redb.begin_read()?.open_table(ENTRIES)?;
                View { table, commit_count }
            }
        };
        Ok(&self.view.insert(view).table)
    }
}

impl Session for RedbSession {
    fn write(&mut self, changes: &[Change], durability: Durability) -> Result<(), Failure> {
        // What a view holds cannot be used again.
        self.release();
        let durability = if durability == Durability::Nothing {
            redb::Durability::None
        } else {
            redb::Durability::Immediate
        };
        self.shared.commit(changes, durability)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Failure> {
        self.value = self.table()?.get(key)?;
        Ok(self.value.as_ref().map(AccessGuard::value))
    }

    fn seek(&mut self, key: &[u8], is_downward: bool) -> Result<Option<Entry<'_>>, Failure> {
        let table = self.table()?;
        let range = if is_downward {
            table.range::<&[u8]>((Bound::Unbounded, Bound::Included(key)))?
        } else {
            table.range(key..)?
        };
        self.scan = Some(Scan { range, is_downward });
        self.next()
    }

    fn next(&mut self) -> Result<Option<Entry<'_>>, Failure> {
        let Some(Scan { range, is_downward }) = &mut self.scan else { return Ok(None) };
        let next = if *is_downward { range.next_back() } else { range.next() };
        self.entry = next.transpose()?;
        let lent = self.entry.as_ref();
        Ok(lent.map(|(key, value)| Entry { key: key.value(), value: value.value() }))
    }

    fn release(&mut self) {
        self.value = None;
        self.entry = None;
        self.scan = None;
        self.view = None;
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn assay_engine() -> *const Table {
    assay_engine::table::<RedbDatabase>()
}
