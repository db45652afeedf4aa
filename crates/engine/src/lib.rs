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
//!   guard, limits, freeze                     a server ends with assay, keeps to its limits, and
//!                                             is frozen while another target has its turn
//! ```
//!
//! A running target is an [`Engine`]. A [`SqlEngine`] opens [`Session`]s, and a [`KeyValueEngine`]
//! opens [`KeyValueSession`]s. These are the hot path of the load. [`Capabilities`] says what an
//! engine cannot do; no missing feature is emulated.
//!
//! The rooms stand on each other, and each uses only those below it:
//!
//! ```text
//! kinds      the engines by their names
//! servers/   engines in programs of their own: postgres/, mysql/, and what they share
//! libraries/ engines in this process: sqlite/, rocksdb/, null/, custom/, and what they share
//! support/   what several engines do alike: read counters and catalogs, wait until work ends
//! contract/  the traits of engines and sessions, and the values that pass between both sides
//! local/     servers that assay starts on this host: programs, sockets and logs
//! net/       the way to a server: addresses, streams and TLS
//! safety/    what keeps programs and data safe: guard/, limits/, freeze/, data_dir
//! error      errors of engines, and of setting them up
//! ```
//!
//! `ARCHITECTURE.md` says what a new engine needs, and how one is added without a change of assay.
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

mod contract;
mod error;
mod kinds;
mod libraries;
mod local;
mod net;
mod safety;
#[cfg(test)]
#[path = "../tests/it/script.rs"]
mod script;
mod servers;
mod support;

pub use contract::{
    Action, BulkLoad, Capabilities, Capture, CaptureSession, Column, ColumnType, Comparison,
    DefinedType, Dialect, Direction, Engine, HEARTBEAT_TABLE, Index, IndexRows, Interrupt, KeptRow,
    KeyFacts, KeyOrder, KeyValueEngine, KeyValueLibrary, KeyValueSession, LibraryConfig, Needs,
    OUTCOME_SQLSTATE, Observer, Obstacle, Outcome, ParamType, Partitions, RangeScan, Replicated,
    Rows, Scan, Scanned, ServerEngine, Session, SettleLimits, Settled, SqlEngine, Statement,
    Storage, Table, TableFacts, TransactionOptions, UnknownOption, Value, notation,
};
pub use error::{Error, ErrorClass, SetupError};
pub use kinds::notation_of;
pub use libraries::{custom, null, rocksdb, sqlite};
pub use local::log::{LogParser, events as log_events, tail as log_tail};
pub use local::server::{Origin, Server};
pub use local::start_options::{ForReplicas, StartOptions, StoppedDatabase, Wrapper};
pub use net::address::connection_help;
pub use net::network::{Certificate, Network, Port};
pub use safety::copying::{
    Copied, CopyOptions, DatabaseFile, Owner, copy_database, for_each_file, list_database,
    set_page_cache,
};
pub use safety::data_dir::{DataDir, MARKER, create_enterable};
pub use safety::freeze::{Freezer, Freezing};
pub use safety::trial::{TRIAL_MEMORY_BYTES_MAX, TRIAL_TIMEOUT};
pub use safety::{freeze, guard, limits, placement};
pub use servers::sql_server::SqlServer;
pub use servers::{mysql, postgres};
pub use support::catalog::index_on;
pub use support::runtime::{check_preloaded, settings as runtime_settings};
pub use words::{
    Counter, CounterKind, Creation, DeclaredOption, Durability, IndexStatements, MergeOperator,
    OptionStatus, Role, Setting, SettingRole, StatementPlan, TransactionKind, UnmetOption,
};
