//! Engines with keys and values that are shared libraries: what RocksDB and the engines of others
//! promise.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use words::{Durability, MergeOperator, Setting, SettingRole, TransactionKind};

use super::{Direction, Engine, KeyFacts, KeyValueSession, Observer, Scan, SettleLimits, Settled};
use crate::error::{Error, SetupError};

/// The treatment of an option that the library's version does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnknownOption {
    /// An unknown option is an error.
    #[default]
    Refuse,
    /// An unknown option is ignored and reported as *not applicable*.
    Skip,
}

/// The config of a library's database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LibraryConfig {
    /// RocksDB: the text of an options file that any version wrote.
    pub file: Option<String>,
    /// Options, in the engine's notation; they override the file.
    ///
    /// RocksDB: options of tables may be alone (`block_size`), with their table
    /// (`block_based_table_factory.block_size`), or combined (`block_based_table_factory`,
    /// `{...}`). A cache is `block_cache`: a size, `{capacity=...;num_shard_bits=...}`,
    /// `{id=HyperClockCache;capacity=...;estimated_entry_charge=...}` or
    /// `{id=AutoHyperClockCache;capacity=...}`. Paths (`wal_dir`, `db_paths`, ...) cannot be set,
    /// because assay keeps all files in one directory, which it can wipe.
    pub set: Vec<(String, String)>,
    /// RocksDB: the treatment of options that the version does not know.
    pub unknown: UnknownOption,
    /// RocksDB: the library keeps its statistics, which are exact counters but cost some speed.
    pub statistics: bool,
    /// The durability of writes, unless a step asks for another one.
    pub durability: Durability,
    /// RocksDB: the operator for values that sessions merge into keys; `None` if they merge none.
    #[serde(default)]
    pub merges: Option<MergeOperator>,
    /// RocksDB: the kind of transactions that sessions have; `None` if they have none.
    #[serde(default)]
    pub transactions: Option<TransactionKind>,
}

impl Default for LibraryConfig {
    fn default() -> Self {
        Self {
            file: None,
            set: Vec::new(),
            unknown: UnknownOption::Refuse,
            statistics: false,
            durability: Durability::Process,
            merges: None,
            transactions: None,
        }
    }
}

/// Returns the durability of writes as a setting. It is not an option of the library, but how
/// assay's sessions use it.
pub(crate) fn durability_setting(durability: Durability) -> Setting {
    Setting {
        source: Some("assay".into()),
        role: Some(SettingRole::Durability),
        ..Setting::new("durability", durability.name())
    }
}

/// Returns the kind of transactions as a setting, as [`durability_setting`] does.
pub(crate) fn transactions_setting(kind: TransactionKind) -> Setting {
    Setting { source: Some("assay".into()), ..Setting::new("transactions", kind.name()) }
}

/// An open database with keys and values.
pub trait KeyValueEngine: Engine {
    /// The engine's sessions.
    type Session: KeyValueSession;

    /// Opens a session for one thread of the load. The database is closed with the last session.
    ///
    /// # Errors
    /// An error of the engine.
    fn connect(&self) -> Result<Self::Session, Error>;

    /// Opens an observer, which reads counters during the load.
    fn observer(&self) -> Box<dyn Observer>;

    /// Writes what is only in memory to files, if the engine can be asked to.
    ///
    /// # Errors
    /// An error of the engine.
    fn flush(&self) -> Result<(), Error>;

    /// Finishes the engine's background work within `limits`. If `empties_first_level`, also
    /// compacts the first level of an LSM tree into the next one, where the engine can do that.
    ///
    /// # Errors
    /// An error of the engine.
    fn settle(
        &self,
        empties_first_level: bool,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error>;

    /// Returns the config's options that this version does not know, and that were ignored as the
    /// config allows.
    fn left_out_options(&self) -> &[String] {
        &[]
    }

    /// Returns what a session of the engine cannot do; all false for an engine that can do all.
    fn lacks(&self) -> Lacking {
        Lacking::default()
    }

    /// Counts all keys with a full scan in order.
    ///
    /// # Errors
    /// An error of the engine, or keys that are out of order.
    fn inspect(&self) -> Result<KeyFacts, Error> {
        let mut facts = KeyFacts::default();
        let mut last = Vec::new();

        let scan = Scan {
            from: &[],
            direction: Direction::Forward,
            limit: u64::MAX,
            verifies_order: true,
        };

        let scanned = self.connect()?.scan(scan, |key, _| {
            if facts.first.is_none() {
                facts.first = Some(key.to_vec());
            }
            last.clear();
            last.extend_from_slice(key);
        })?;

        facts.keys = scanned.entries;
        facts.bytes = scanned.bytes;
        facts.last = (scanned.entries > 0).then_some(last);
        Ok(facts)
    }
}

/// The operations that an engine with keys and values lacks. Steps that need it are *not
/// applicable*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Writing several changes atomically.
    pub batches: bool,
    /// Scanning downward.
    pub reverse_scans: bool,
    /// Reading several keys at once.
    pub reads_of_several: bool,
    /// Writing with several sessions at the same time.
    pub concurrent_writers: bool,
    /// Writing so that the write survives a crash of the machine.
    pub synced_writes: bool,
    /// Merging values into keys.
    pub merges: bool,
    /// Deleting ranges of keys.
    pub range_deletions: bool,
    /// Taking over sorted files.
    pub ingestion: bool,
    /// Transactions of the config's kind.
    pub transactions: bool,
    /// Keeping transactions of several sessions apart.
    pub isolation: bool,
}

/// A library that opens databases. A process loads at most one, since two versions in one address
/// space would mix their functions and threads.
pub trait KeyValueLibrary: Sized + Send + Sync + 'static {
    /// Its databases.
    type Database: KeyValueEngine;

    /// Loads the library at `path`, or returns it if it is already loaded.
    ///
    /// # Errors
    /// [`SetupError::Build`] when the file is not such a library or is for another architecture, or
    /// another library is already loaded.
    fn load(path: &Path) -> Result<Arc<Self>, SetupError>;

    /// Returns the library's path, without symbolic links.
    fn path(&self) -> &Path;

    /// Returns product and version.
    fn version_text(&self) -> &str;

    /// Creates an empty database in `directory`, which is assay's and has no database yet.
    ///
    /// # Errors
    /// An option that the library does not know, a value that it refuses, or a directory that it
    /// cannot write.
    fn create_database(
        self: &Arc<Self>,
        directory: &Path,
        config: &LibraryConfig,
    ) -> Result<Self::Database, SetupError>;

    /// Opens the database that [`create_database`](Self::create_database) created in `directory`.
    ///
    /// # Errors
    /// The errors of [`create_database`](Self::create_database), and a database that a newer
    /// version wrote.
    fn open_database(
        self: &Arc<Self>,
        directory: &Path,
        config: &LibraryConfig,
    ) -> Result<Self::Database, SetupError>;

    /// Opens an empty database with a config in the directory for temporary files, and removes it.
    /// Returns the options that the version does not know, if the config allows that.
    ///
    /// # Errors
    /// The errors of [`create_database`](Self::create_database).
    fn try_config(self: &Arc<Self>, config: &LibraryConfig) -> Result<Vec<String>, SetupError>;

    /// Returns the path of the library's log for a database in `directory`, if it writes one.
    fn log_path(directory: &Path) -> Option<PathBuf>;
}
