//! The vocabulary that the live half and the reading half share: what a recorded counter, setting, metric or cell is
//! called and means. No dependencies but serde's derives, and no I/O.

mod connection;
mod counter;

pub use connection::ConnectionState;
pub use counter::{Counter, CounterKind, Role, unit_of};
