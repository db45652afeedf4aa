//! What assay needs of a storage engine, and one folder per engine that provides it.
//!
//! An [`Engine`] is one target that is up: a build, started with a config. A [`SqlEngine`] opens [`Session`]s and
//! [`rocksdb::RocksDb`] opens [`KeyValueSession`]s, which are the hot path of the load and belong to one thread each, and
//! both an [`Observer`], which reads counters on a connection of its own. What an engine can't do it says in [`Capabilities`]; it never imitates it.
//!
//! Adding an engine is adding a folder here and a row to [`ENGINES`]; `ARCHITECTURE.md` lists what else names it.

pub mod guard;
pub mod limits;
pub mod mysql;
pub mod notation;
pub mod null;
pub mod postgres;
pub mod rocksdb;
pub mod sqlite;

mod catalogue;
mod data_dir;
mod dialect;
mod error;
mod figures;
mod key_order;
mod key_value;
mod local;
mod net;
mod running;
mod schema;
#[cfg(test)]
#[path = "../tests/it/script.rs"]
mod script;
mod session;
mod trial;
mod waiting;

pub use catalogue::index_on;
pub use data_dir::{DataDir, MARKER};
pub use dialect::{BulkLoad, Dialect, RangeScan};
pub use error::{Error, ErrorClass, SetupError};
pub use key_order::KeyOrder;
pub use key_value::{Direction, Durability, KeyFacts, KeyValueSession, Scan, Scanned, View};
pub use local::log::tail as log_tail;
pub use local::server::{Server, StartOptions};
pub use net::server::SqlServer;
use notation::Notation;
pub use running::{
    Action, Capabilities, Engine, IndexRows, Needs, Observer, Obstacle, ServerEngine, SettleLimits,
    Settled, SqlEngine, Storage, TableFacts,
};
pub use schema::{Column, ColumnType, Comparison, Index, Partitions, Table};
pub use session::{Interrupt, Outcome, ParamType, Rows, Session, Statement};
pub use words::{
    Counter, CounterKind, DeclaredOption, IndexStatements, OptionStatus, Role, Setting,
    SettingRole, UnmetOption,
};

/// What is known of an engine before one runs.
pub struct EngineKind {
    /// Its name in plans and records.
    pub name: &'static str,
    /// How it writes options and settings.
    pub notation: &'static dyn Notation,
}

/// All engines: each has a folder here.
pub const ENGINES: [EngineKind; 5] = [
    EngineKind {
        name: "sqlite",
        notation: &sqlite::SqliteNotation,
    },
    EngineKind {
        name: "postgres",
        notation: &postgres::PostgresNotation,
    },
    EngineKind {
        name: "mysql",
        notation: &mysql::MysqlNotation,
    },
    EngineKind {
        name: "rocksdb",
        notation: &rocksdb::RocksdbNotation,
    },
    EngineKind {
        name: "null",
        notation: &null::NullNotation,
    },
];

/// Returns how an engine writes options and settings, by its name.
pub fn notation_of(engine: &str) -> &'static dyn Notation {
    let kind = ENGINES.iter().find(|kind| kind.name == engine);
    kind.map_or(&null::NullNotation, |kind| kind.notation)
}
