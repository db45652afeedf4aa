//! The contract between engines and those who measure them: the traits of engines and sessions, and
//! the values that pass between both sides.

mod dialect;
mod explain;
mod kept_row;
mod key_order;
mod key_value;
mod library;
pub mod notation;
mod replication;
mod running;
pub(crate) mod schema;
mod session;

pub use dialect::{BulkLoad, Dialect, RangeScan};
pub(crate) use dialect::{global_index_name, text_literal, with_table_options};
pub use explain::{Capture, CaptureSession, Value};
pub use kept_row::KeptRow;
pub use key_order::KeyOrder;
pub use key_value::{Direction, KeyFacts, KeyValueSession, Scan, Scanned, TransactionOptions};
pub use library::{KeyValueEngine, KeyValueLibrary, Lacking, LibraryConfig, UnknownOption};
pub(crate) use library::{durability_setting, transactions_setting};
pub(crate) use replication::no_own_primary;
pub use replication::{HEARTBEAT_TABLE, Replicated};
pub use running::{
    Action, Capabilities, Engine, IndexRows, Needs, Observer, Obstacle, ServerEngine, SettleLimits,
    Settled, SqlEngine, Storage, TableFacts,
};
pub use schema::{Column, ColumnType, Comparison, DefinedType, Index, Partitions, Table};
pub use session::{Interrupt, OUTCOME_SQLSTATE, Outcome, ParamType, Rows, Session, Statement};
