//! Starts storage engines, or connects to running ones, and runs operations on them.
//!
//! ```text
//!  build + config
//!        │  start or attach
//!        ▼
//!     Engine ──► Session or KeyValueSession   operations of the load, one thread each
//!        │  ──► Observer                      counters, on its own connection
//!        │  ──► settle, inspect, settings     between the steps
//!        ▼
//!   guard/, limits/, freeze/                  a server ends with assay, keeps to its limits, and
//!                                             is frozen while another target has its turn
//! ```
//!
//! Each engine has a folder: `sqlite/`, `postgres/`, `mysql/`, `rocksdb/` and `null/`. A running
//! target is an [`Engine`]. A [`SqlEngine`] opens [`Session`]s, and [`rocksdb::RocksDb`] opens
//! [`KeyValueSession`]s. These are the hot path of the load. [`Capabilities`] says what an engine
//! can't do; no missing feature is emulated.
//!
//! To add an engine, add a folder here and a row to [`ENGINES`]. `ARCHITECTURE.md` lists the other
//! places.
//!
//! ```
//! use engine::sqlite::{Library, Sqlite};
//! use engine::{ParamType, Session as _, SqlEngine as _};
//!
//! let directory = tempfile::tempdir()?;
//! let pragmas = [("journal_mode".into(), "wal".into())];
//! let sqlite = Sqlite::start(Library::bundled(), directory.path(), &pragmas)?;
//! let mut session = sqlite.connect()?;
//! session.query("create table item (id integer primary key, price integer)")?;
//!
//! let insert = session.prepare("insert into item (price) values (?)", &[ParamType::Int4])?;
//! session.start(insert);
//! session.int4(42);
//! assert_eq!(session.execute()?.rows, 1);
//! assert_eq!(session.query_i64("select max(price) from item")?, Some(42));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod custom;
pub mod freeze;
pub mod guard;
pub mod limits;
pub mod mysql;
pub mod notation;
pub mod null;
pub mod placement;
pub mod postgres;
pub mod rocksdb;
pub mod sqlite;

mod catalog;
mod copying;
mod data_dir;
mod dialect;
mod dynamic;
mod error;
mod explain;
mod figures;
mod key_order;
mod key_value;
mod library;
mod local;
mod net;
mod quiet;
mod replication;
mod running;
mod runtime;
mod schema;
#[cfg(test)]
#[path = "../tests/it/script.rs"]
mod script;
mod session;
mod trial;
mod waiting;

pub use catalog::index_on;
pub use copying::{
    Copied, CopyOptions, DatabaseFile, Owner, copy_database, for_each_file, list_database,
    set_page_cache,
};
pub use data_dir::{DataDir, MARKER, create_enterable};
pub use dialect::{BulkLoad, Dialect, RangeScan};
pub use error::{Error, ErrorClass, SetupError};
pub use explain::{Capture, CaptureSession, Value};
pub use freeze::{Freezer, Freezing};
pub use key_order::KeyOrder;
pub use key_value::{Direction, KeyFacts, KeyValueSession, Scan, Scanned};
pub use library::{KeyValueEngine, KeyValueLibrary, LibraryConfig, UnknownOption};
pub use local::log::{LogParser, events as log_events, tail as log_tail};
pub use local::server::{ForReplicas, Origin, Server, StartOptions, StoppedDatabase, Wrapper};
pub use net::network::{Certificate, Network, Port};
pub use net::server::SqlServer;
use notation::Notation;
pub use replication::{HEARTBEAT_TABLE, Replicated};
pub use running::{
    Action, Capabilities, Engine, IndexRows, Needs, Observer, Obstacle, ServerEngine, SettleLimits,
    Settled, SqlEngine, Storage, TableFacts,
};
pub use runtime::{check_preloaded, settings as runtime_settings};
pub use schema::{Column, ColumnType, Comparison, Index, Partitions, Table};
pub use session::{Interrupt, Outcome, ParamType, Rows, Session, Statement};
pub use trial::{TRIAL_MEMORY_BYTES_MAX, TRIAL_TIMEOUT};
pub use words::{
    Counter, CounterKind, Creation, DeclaredOption, Durability, IndexStatements, OptionStatus,
    Role, Setting, SettingRole, StatementPlan, UnmetOption,
};

/// An engine's name and notation, which are known before it runs.
pub struct EngineKind {
    /// The engine's name in plans and records.
    pub name: &'static str,
    /// The engine's notation of options and settings.
    pub notation: &'static dyn Notation,
}

/// All engines. Each has a folder in this crate.
pub const ENGINES: [EngineKind; 6] = [
    EngineKind { name: "sqlite", notation: &sqlite::SqliteNotation },
    EngineKind { name: "postgres", notation: &postgres::PostgresNotation },
    EngineKind { name: "mysql", notation: &mysql::MysqlNotation },
    EngineKind { name: "rocksdb", notation: &rocksdb::RocksdbNotation },
    EngineKind { name: "library", notation: &null::NullNotation },
    EngineKind { name: "null", notation: &null::NullNotation },
];

/// Returns the notation of the engine with this name.
pub fn notation_of(engine: &str) -> &'static dyn Notation {
    let kind = ENGINES.iter().find(|kind| kind.name == engine);
    kind.map_or(&null::NullNotation, |kind| kind.notation)
}
