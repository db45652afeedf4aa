//! What assay needs of a storage engine, and one folder per engine that provides it.
//!
//! An [`Engine`] is one target that is up: a build, started with a config. A [`SqlEngine`] opens [`Session`]s and
//! [`rocksdb::RocksDb`] opens [`KeyValueSession`]s, which are the hot path of the load and belong to one thread each, and
//! both an [`Observer`], which reads counters on a connection of its own. What an engine can't do it says in [`Capabilities`]; it never imitates it.
//!
//! Adding an engine is adding a folder here.

pub mod guard;
pub mod limits;
pub mod mysql;
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
pub use running::{
    Action, Capabilities, Engine, IndexRows, Needs, Observer, Obstacle, ServerEngine, Setting,
    SettleLimits, Settled, SqlEngine, Storage, TableFacts,
};
pub use schema::{Column, ColumnType, Comparison, Index, Partitions, Table};
pub use session::{Interrupt, Outcome, ParamType, Rows, Session, Statement};
pub use words::{Counter, CounterKind, IndexStatements, Role};
