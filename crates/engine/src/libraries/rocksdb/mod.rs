//! RocksDB and its forks, embedded. The build is a shared library with RocksDB's C API, loaded at
//! run time, and the config is options in RocksDB's notation.
//!
//! So one binary measures every version. A process loads only one library: two versions never share
//! an address space. There is no SQL; the load uses [`crate::KeyValueSession`].

mod checked_options;
mod failure;
mod ffi;
mod hints;
pub(crate) mod library;
mod log;
mod notation;
mod observer;
mod options;
mod settle;
mod statistics;
mod trial;

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use words::{Durability, Setting, SettingRole, TransactionKind};

pub use ffi::RocksSession;
pub use library::Library;
pub use notation::RocksdbNotation;
pub use semver::Version;
pub(crate) use statistics::{add_stall_totals, levels};

use crate::contract::{
    Capabilities, Engine, KeyValueEngine, KeyValueLibrary, Lacking, LibraryConfig, Observer,
    SettleLimits, Settled, Storage, durability_setting, transactions_setting,
};
use crate::error::{Error, ErrorClass, SetupError};
use crate::local::log::LogParser;
use checked_options::{add_merge_operator, entries_of, prepare};
use ffi::Database;
use observer::RocksObserver;
use options::OptionEntry;
use settle::Settling;

/// The first version that leaves readahead for compaction to the kernel.
const FIRST_KERNEL_READAHEAD: Version = Version::new(8, 6, 0);

/// An open database.
#[derive(Debug)]
pub struct RocksDb {
    library: Arc<Library>,
    database: Arc<Database>,
    directory: PathBuf,
    wal: PathBuf,
    set: Vec<OptionEntry>,
    not_applicable: Vec<String>,
    durability: Durability,
    /// The kind of transactions that was asked for.
    transactions: Option<TransactionKind>,
    /// The database has the merge operator that sessions need.
    can_merge: bool,
}

impl RocksDb {
    /// Creates an empty database in `directory`, which is assay's and has no database yet.
    ///
    /// # Errors
    /// An option that the library does not know, a value that it refuses, or a directory that it
    /// cannot write.
    pub fn create(
        library: &Arc<Library>,
        directory: &Path,
        config: &LibraryConfig,
    ) -> Result<Self, SetupError> {
        Self::start(library, directory, config, true)
    }

    /// Opens the database that [`create`](Self::create) created in `directory`.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create), and a database that a newer version wrote.
    pub fn open(
        library: &Arc<Library>,
        directory: &Path,
        config: &LibraryConfig,
    ) -> Result<Self, SetupError> {
        let database = directory.join(DATABASE);
        if !database.join("CURRENT").exists() {
            return Err(SetupError::Directory {
                path: database,
                what: "has no database".into(),
                help: "create a database first".into(),
            });
        }

        refuse_newer(library, &database)?;

        Self::start(library, directory, config, false)
    }

    fn start(
        library: &Arc<Library>,
        directory: &Path,
        config: &LibraryConfig,
        create: bool,
    ) -> Result<Self, SetupError> {
        let database = directory.join(DATABASE);
        let wal = directory.join(WAL);
        let mut entries = entries_of(library, config)?;
        let can_merge = match config.merges {
            Some(operator) => add_merge_operator(library, &mut entries, operator)?,
            None => false,
        };

        // Separate from the tables, so that the sizes of both are known.
        let place = wal.display().to_string();
        if place.contains([';', '{', '}', '=']) || wal.to_str().is_none() {
            return Err(SetupError::Directory {
                path: wal,
                what: "cannot be a value in RocksDB's notation of options".into(),
                help: "choose a data directory without `;`, `=` and braces in its name".into(),
            });
        }
        entries.push(OptionEntry::new(false, "wal_dir", &place));

        let (mut options, not_applicable) = prepare(library, &mut entries, config)?;
        options.set_create(create);
        let opened = Database::open(options, &database, config.transactions).map_err(|source| {
            SetupError::Server {
                server: format!("{} at `{}`", library.version_text(), database.display()),
                help: match source.class {
                    ErrorClass::DiskFull => {
                        Some("free disk space, or choose another data directory".into())
                    }
                    _ => None,
                },
                source,
            }
        })?;

        refuse_missing_cache(library, &entries, &opened)?;
        Ok(Self {
            library: Arc::clone(library),
            database: Arc::new(opened),
            directory: database,
            wal,
            set: entries,
            not_applicable,
            durability: config.durability,
            transactions: config.transactions,
            can_merge,
        })
    }

    /// Returns the library of the database.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Opens a session for one thread of the load. The database is closed with the last session.
    pub fn connect(&self) -> RocksSession {
        RocksSession::new(Arc::clone(&self.database), self.durability)
    }
}

impl KeyValueEngine for RocksDb {
    type Session = RocksSession;

    fn connect(&self) -> Result<RocksSession, Error> {
        Ok(self.connect())
    }

    fn observer(&self) -> Box<dyn Observer> {
        Box::new(RocksObserver::new(Arc::clone(&self.database)))
    }

    fn flush(&self) -> Result<(), Error> {
        self.database.flush()
    }

    fn settle(
        &self,
        empties_first_level: bool,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        let (database, directory) = (&self.database, &self.directory);
        Settling { database, directory, limits, stop }.run(empties_first_level)
    }

    fn left_out_options(&self) -> &[String] {
        &self.not_applicable
    }

    fn lacks(&self) -> Lacking {
        Lacking {
            merges: !self.can_merge,
            range_deletions: !self.database.deletes_ranges(),
            transactions: !self.database.has_transactions(),
            isolation: !self.database.isolates_transactions(),
            ..Lacking::default()
        }
    }
}

impl KeyValueLibrary for Library {
    type Database = RocksDb;

    fn load(path: &Path) -> Result<Arc<Self>, SetupError> {
        Self::open(path)
    }

    fn path(&self) -> &Path {
        self.path()
    }

    fn version_text(&self) -> &str {
        self.version_text()
    }

    fn create_database(
        self: &Arc<Self>,
        directory: &Path,
        config: &LibraryConfig,
    ) -> Result<RocksDb, SetupError> {
        RocksDb::create(self, directory, config)
    }

    fn open_database(
        self: &Arc<Self>,
        directory: &Path,
        config: &LibraryConfig,
    ) -> Result<RocksDb, SetupError> {
        RocksDb::open(self, directory, config)
    }

    fn try_config(self: &Arc<Self>, config: &LibraryConfig) -> Result<Vec<String>, SetupError> {
        trial::try_config(self, config)
    }

    fn log_path(directory: &Path) -> Option<PathBuf> {
        Some(log_path(directory))
    }
}

impl Engine for RocksDb {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of_keys(u32::MAX)
    }

    /// Returns product and version.
    fn version(&self) -> &str {
        self.library.version_text()
    }

    /// Returns this process. It runs no other database, so its memory and background work belong to
    /// the database and the load.
    fn process_id(&self) -> Option<u32> {
        Some(std::process::id())
    }

    fn storage(&self) -> Storage {
        Storage { data: vec![self.directory.clone()], logs: vec![self.wal.clone()] }
    }

    /// Reads the settings, such as `[DBOptions] max_background_jobs`, from the file that the
    /// library wrote. Readahead for compaction has a role if it is left to the kernel.
    fn settings(&self) -> Result<Vec<Setting>, Error> {
        let file = options::read_newest(&self.directory)
            .map_err(|error| Error::other(error.to_string()))?
            .ok_or_else(|| {
                let directory = self.directory.display();
                Error::other(format!("the library has written no options file in `{directory}`"))
            })?;

        // Direct reads have no readahead by the kernel.
        let mut entries = file.sections.iter().flat_map(|section| &section.entries);
        let is_direct = entries.any(|(name, value)| name == "use_direct_reads" && value == "true");
        let asks_kernel = *self.library.version() >= FIRST_KERNEL_READAHEAD && !is_direct;

        let mut settings = Vec::new();
        for section in file.sections.iter().filter(|section| section.name != "Version") {
            let is_table = section.name.starts_with("TableOptions");
            for (name, value) in &section.entries {
                let is_set =
                    self.set.iter().any(|entry| entry.is_table == is_table && entry.name == *name);

                settings.push(Setting {
                    source: Some(if is_set { "config" } else { "default" }.into()),
                    role: (asks_kernel && name == "compaction_readahead_size")
                        .then_some(SettingRole::CompactionReadahead),
                    ..Setting::new(format!("[{}] {name}", section.name), value)
                });
            }
        }

        // The file omits some options, and has others under another name.
        let capacity = self.database.number(CACHE_CAPACITY);
        for entry in &self.set {
            let section = match entry.name.as_str() {
                "block_cache" if capacity.is_some() => "TableOptions/BlockBasedTable",
                "memtable" => "CFOptions",
                _ => continue,
            };
            settings.push(Setting {
                source: Some("config".into()),
                ..Setting::new(format!("[{section}] {}", entry.name), &entry.value)
            });
        }
        if let Some(bytes) = capacity {
            settings.push(capacity_setting(bytes, &self.set));
        }

        // Not options of the library, but how assay's connections use it.
        settings.push(durability_setting(self.durability));
        settings.extend(self.transactions.map(transactions_setting));
        settings
            .push(Setting { source: Some("assay".into()), ..Setting::new(PERF_LEVEL, "disable") });

        settings.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(settings)
    }

    fn log_path(&self) -> Option<PathBuf> {
        Some(self.directory.join(LOG))
    }

    fn log_parser(&self) -> Option<LogParser> {
        Some(log::events)
    }

    /// Closes the database. The library first flushes memtables that are not in a log. Fails if
    /// sessions or observers still use the database.
    fn stop(self) -> Result<(), SetupError> {
        match Arc::try_unwrap(self.database) {
            Ok(database) => {
                drop(database);
                Ok(())
            }
            Err(shared) => Err(SetupError::Directory {
                path: self.directory,
                what: format!(
                    "cannot be closed: {} sessions or observers use the database",
                    Arc::strong_count(&shared) - 1
                ),
                help: "close them first; this is a bug in assay".into(),
            }),
        }
    }
}

/// The property with the size of the block cache; absent without a cache.
const CACHE_CAPACITY: &CStr = c"rocksdb.block-cache-capacity";
/// The library's per-thread counters, which each connection turns off.
const PERF_LEVEL: &str = "perf_level";
/// The folder of the database in a data directory, separate from assay's marker.
const DATABASE: &str = "db";
/// The folder of the write-ahead log.
const WAL: &str = "wal";
/// The name of the library's log file.
const LOG: &str = "LOG";

/// Returns the path of the library's log for the database that [`RocksDb::create`] creates in
/// `directory`.
pub fn log_path(directory: &Path) -> PathBuf {
    directory.join(DATABASE).join(LOG)
}

/// Returns the size of the block cache as a setting. It counts as that of a cache where no option
/// sets it: versions have other defaults. Otherwise `block_cache` counts.
fn capacity_setting(bytes: u64, set: &[OptionEntry]) -> Setting {
    let is_set = set.iter().any(|entry| entry.name == "block_cache");
    Setting {
        role: (!is_set).then_some(SettingRole::CacheSize),
        ..Setting::new("block_cache_capacity_bytes", bytes.to_string())
    }
}

/// Refuses a database with options of a newer version, which an older one may read incorrectly.
fn refuse_newer(library: &Library, database: &Path) -> Result<(), SetupError> {
    let written = options::read_newest(database)?.and_then(|file| file.version());
    match written {
        Some(written) if written > *library.version() => Err(SetupError::Directory {
            path: database.to_path_buf(),
            what: format!(
                "was written by version {written}, which is newer than {}",
                library.version_text()
            ),
            help: "load the data again with this version, or use a version that is at least as new"
                .into(),
        }),
        _ => Ok(()),
    }
}

/// Refuses a database without the block cache of the config. If the library cannot create the cache,
/// it opens the database without one and reports no error.
fn refuse_missing_cache(
    library: &Library,
    entries: &[OptionEntry],
    database: &Database,
) -> Result<(), SetupError> {
    let of_tables = |name: &str| entries.iter().find(|entry| entry.is_table && entry.name == name);
    let is_off = of_tables("no_block_cache")
        .is_some_and(|entry| matches!(entry.value.as_str(), "true" | "1"));
    let Some(entry) = of_tables("block_cache").filter(|_| !is_off) else {
        return Ok(());
    };

    let requested = match options::nested(&entry.value) {
        Ok(parts) => options::part(&parts, "capacity").and_then(options::bytes),
        Err(_) => options::bytes(&entry.value),
    };
    let effective = database.number(CACHE_CAPACITY);
    if requested.is_none() || effective == requested.map(|bytes| bytes as u64) {
        return Ok(());
    }

    let made = match effective {
        Some(bytes) => format!("a block cache of {bytes} bytes"),
        None => "no block cache".into(),
    };
    Err(SetupError::config(
        format!("{}: {} made {made}", entry.shown(), library.version_text()),
        "set `num_shard_bits` to a value below 20, and ratios to values between 0 and 1",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The default cache of 10.2.1 is four times that of 6.29.5, and findings did not name it.
    #[test]
    fn the_default_size_of_the_block_cache_counts_as_that_of_a_cache() {
        let role = |set: &[OptionEntry]| capacity_setting(33_554_432, set).role;
        assert_eq!(role(&[]), Some(SettingRole::CacheSize));

        let block_cache = OptionEntry::new(true, "block_cache", "8M");
        assert_eq!(role(&[block_cache]), None, "it would be named twice");
    }
}
